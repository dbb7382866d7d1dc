#pragma once

#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#include <longintrepr.h>
#endif

#include <cstddef>
#include <cstdint>

namespace cudamod::python {

static_assert(PyLong_SHIFT == 30, "64 bits are read as up to three digits of 30 bits");

/// Magnitude and sign of an int of at most 64 bits, read from its digits: the public calls cost
/// more than the whole packing. False when it is larger.
inline bool read_long(PyObject* object, std::uint64_t& magnitude, bool& negative) {
#if PY_VERSION_HEX >= 0x030C0000
    const auto& value = reinterpret_cast<PyLongObject*>(object)->long_value;
    std::size_t digits = value.lv_tag >> 3;
    negative = (value.lv_tag & 3) == 2;
    const digit* d = value.ob_digit;
#else
    Py_ssize_t size = Py_SIZE(object);
    negative = size < 0;
    std::size_t digits = static_cast<std::size_t>(negative ? -size : size);
    const digit* d = reinterpret_cast<PyLongObject*>(object)->ob_digit;
#endif
    switch (digits) {
    case 0:
        magnitude = 0;
        return true;
    case 1:
        magnitude = d[0];
        return true;
    case 2:
        magnitude = d[0] | std::uint64_t{d[1]} << 30;
        return true;
    case 3:
        if (d[2] >= 16) return false;
        magnitude = d[0] | std::uint64_t{d[1]} << 30 | std::uint64_t{d[2]} << 60;
        return true;
    default:
        return false;
    }
}

} // namespace cudamod::python
