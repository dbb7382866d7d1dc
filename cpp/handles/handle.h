#pragma once

#include <memory>
#include <utility>

namespace cudamod::handles {

/// A handle aliases the raw CUDA value inside a box; the box owns what the value depends on, so
/// whoever has a handle has a valid object. `*handle` is the raw value.
template <class Box>
using Handle = std::shared_ptr<const typename Box::Raw>;

template <class Box>
Handle<Box> alias(std::shared_ptr<const Box> box) {
    const typename Box::Raw* raw = &box->raw;
    return Handle<Box>(std::move(box), raw);
}

/// The box behind a handle. `raw` is the first member of every box (each box asserts it).
template <class Box>
const Box& box_of(const Handle<Box>& handle) {
    return *reinterpret_cast<const Box*>(handle.get());
}

} // namespace cudamod::handles
