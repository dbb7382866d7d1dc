#pragma once

#include <Python.h>

#include <string>

namespace cudamod::python {

/// An object's `repr` for the message of an error: never raises (an int may have more digits than
/// Python writes), and is cut where it gets long.
std::string text_of(PyObject* object);

/// The UTF-8 of a str. Throws the UnicodeEncodeError (a ValueError) of a lone surrogate.
std::string utf8_of(PyObject* text);

} // namespace cudamod::python
