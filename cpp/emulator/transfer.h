#pragma once

#include "emulator/memory.h"

#include <cstddef>
#include <memory>

namespace cudamod::emulator {

struct Context;
struct Stream;

/// `height` rows of `width` bytes each, from one place to another.
struct Transfer {
    struct Side {
        Span span;
        std::size_t pitch = 0; ///< from row to row
    };
    Side to, from;
    std::size_t width = 0, height = 1;

    std::size_t bytes_of(const Side& side) const { return (height - 1) * side.pitch + width; }
};

/// Whether the host may see what becomes of the transfer before the call returns.
enum class HostOrder {
    asynchronous, ///< calls with a stream: pageable memory is read at the call, and written before
                  ///< it returns; all else is as late as the stream
    synchronous   ///< calls without: only copies from device to device are as late as the stream
};

/// Puts the transfer into the stream. The caller holds no lock of the driver's. Memory that was
/// freed before the stream gets there is a fault of its context.
void enqueue(Transfer transfer, const std::shared_ptr<Stream>& stream, HostOrder order);

/// Records a fault of the context when the memory is not live any more; true if it is.
bool require_live(const Span& span, Context& context, const char* what);

} // namespace cudamod::emulator
