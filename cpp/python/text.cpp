#include "python/text.h"

#include <nanobind/nanobind.h>

namespace cudamod::python {

namespace {

constexpr Py_ssize_t kLongest = 120;

} // namespace

std::string text_of(PyObject* object) {
    PyObject* whole = PyObject_Repr(object);
    PyObject* start = whole ? PyUnicode_Substring(whole, 0, kLongest) : nullptr;
    const char* text = start ? PyUnicode_AsUTF8(start) : nullptr;
    std::string result = text ? text : "that can't be written";
    if (!text) PyErr_Clear();
    if (text && PyUnicode_GET_LENGTH(whole) > kLongest) result += "...";
    Py_XDECREF(start);
    Py_XDECREF(whole);
    return result;
}

std::string utf8_of(PyObject* text) {
    Py_ssize_t length = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text, &length);
    if (!bytes) throw nanobind::python_error();
    return {bytes, static_cast<std::size_t>(length)};
}

} // namespace cudamod::python
