#pragma once

#include "python/instance.h"

#include <cstddef>
#include <cstdint>

namespace cudamod::python {

/// The owner of a Buffer whose memory a resource written in Python gave: calls its `deallocate`
/// when the last Buffer or consumer of the memory is gone. An exception of that call is written to
/// sys.unraisablehook.
struct MemoryOwner {
    nb::object resource, stream;
    std::uint64_t address;
    std::size_t size;

    MemoryOwner(nb::object resource_, nb::object stream_, std::uint64_t address_, std::size_t size_)
        : resource(std::move(resource_)), stream(std::move(stream_)), address(address_),
          size(size_) {}
    ~MemoryOwner() { deallocate(); }
    MemoryOwner(const MemoryOwner&) = delete;
    MemoryOwner& operator=(const MemoryOwner&) = delete;

    void deallocate() noexcept;
};

} // namespace cudamod::python
