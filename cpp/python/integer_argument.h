#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace cudamod::python {

/// Integer arguments of public calls: anything with `__index__`, but no bool. `what` names call and
/// argument in the errors ("Device.allocate: size"). All throw TypeError for what is no integer.

/// A raw handle or an address. Throws OverflowError outside 0 .. 2**64 - 1.
std::uint64_t raw_argument(nanobind::handle value, const char* what);

/// A number of bytes. Throws ValueError when it is negative, OverflowError beyond 2**64 - 1.
std::size_t size_argument(nanobind::handle value, const char* what);

/// An int of C. Throws ValueError outside its range.
int int_argument(nanobind::handle value, const char* what);

} // namespace cudamod::python
