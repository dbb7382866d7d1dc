#pragma once

#include "emulator/event.h"

#include <cstdint>
#include <memory>

namespace cudamod::emulator {

class SharedEvent;

/// The latest recording of an event, when somebody asked: this process's mark, or what another
/// process recorded of an event that they share. Nothing before the first.
struct Recording {
    std::shared_ptr<Mark> mark;
    std::shared_ptr<SharedEvent> elsewhere; ///< null: not by another process
    std::uint64_t number = 0;

    bool reached() const;
};

/// The caller holds the driver's lock.
Recording latest_recording(const Event& event);

/// A new recording of the event, for a stream to reach. The caller holds the driver's lock.
std::shared_ptr<Mark> begin_recording(Event& event);

// The callers of these hold no lock of the driver's.

/// Later work of the stream runs after the recording is reached.
void await_in(const std::shared_ptr<Stream>& stream, const Recording& recording);

void wait_for(const Recording& recording);

} // namespace cudamod::emulator
