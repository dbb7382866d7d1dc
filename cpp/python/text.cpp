#include "python/text.h"

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

} // namespace cudamod::python
