#pragma once

#include "emulator/api.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace cudamod::emulator {

/// What all processes see of an event that they share: how often it was recorded, and how many of
/// these recordings were reached. A file in memory, mapped by each of them; an exported handle
/// names it by the process that made it, and works while that process has the event.
class SharedEvent {
  public:
    /// Null when there is no room.
    static std::shared_ptr<SharedEvent> create();

    /// The one behind another process's handle; null when that is none, or gone.
    static std::shared_ptr<SharedEvent> open(const CUipcEventHandle& handle);

    ~SharedEvent();
    SharedEvent(const SharedEvent&) = delete;
    SharedEvent& operator=(const SharedEvent&) = delete;

    /// Whether this process exported the handle.
    static bool is_own(const CUipcEventHandle& handle);

    CUipcEventHandle exported() const;

    /// The number of a new recording, by this process.
    std::uint64_t record();

    /// That recording was reached, and with it those before.
    void reach(std::uint64_t number);

    /// The number of the latest recording; 0 before the first.
    std::uint64_t latest() const;

    /// Whether that recording was reached. One that another process made and left behind, dead,
    /// counts as reached.
    bool reached(std::uint64_t number) const;

    /// Returns when it was reached, or `stopped` answers true.
    void wait(std::uint64_t number, const std::function<bool()>& stopped) const;

  private:
    struct Content;

    SharedEvent() = default;
    bool map(int file);

    int file_ = -1;
    Content* content_ = nullptr;
};

} // namespace cudamod::emulator
