#include "python/integer_argument.h"

#include "python/integer.h"

#include <limits>

namespace nb = nanobind;

namespace cudamod::python {

namespace {

struct Integer {
    nb::object object;
    std::uint64_t magnitude = 0;
    bool negative = false;
    bool fits = false; // the magnitude, in 64 bits
};

Integer integer(nb::handle value, const char* what) {
    if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
        PyErr_Format(PyExc_TypeError, "%s must be an int, not %s", what,
                     Py_TYPE(value.ptr())->tp_name);
        throw nb::python_error();
    }
    Integer read{nb::steal(PyNumber_Index(value.ptr()))};
    if (!read.object.is_valid()) throw nb::python_error();
    read.fits = read_long(read.object.ptr(), read.magnitude, read.negative);
    if (!read.fits) {
        int overflow = 0;
        PyLong_AsLongAndOverflow(read.object.ptr(), &overflow);
        read.negative = overflow < 0;
    }
    return read;
}

} // namespace

std::uint64_t raw_argument(nb::handle value, const char* what) {
    Integer read = integer(value, what);
    if (read.fits && !read.negative) return read.magnitude;
    PyErr_Format(PyExc_OverflowError, "%s must be in 0 .. 2**64 - 1, not %S", what,
                 read.object.ptr());
    throw nb::python_error();
}

std::size_t size_argument(nb::handle value, const char* what) {
    Integer read = integer(value, what);
    if (read.fits && !read.negative) return read.magnitude;
    if (read.negative)
        PyErr_Format(PyExc_ValueError, "%s must be >= 0, not %S", what, read.object.ptr());
    else
        PyErr_Format(PyExc_OverflowError, "%s must be below 2**64, not %S", what,
                     read.object.ptr());
    throw nb::python_error();
}

int int_argument(nb::handle value, const char* what) {
    Integer read = integer(value, what);
    constexpr std::uint64_t kMax = std::numeric_limits<int>::max();
    if (read.fits && read.magnitude <= kMax + read.negative)
        return static_cast<int>(read.negative ? -static_cast<std::int64_t>(read.magnitude)
                                              : static_cast<std::int64_t>(read.magnitude));
    PyErr_Format(PyExc_ValueError, "%s is out of range: %S", what, read.object.ptr());
    throw nb::python_error();
}

} // namespace cudamod::python
