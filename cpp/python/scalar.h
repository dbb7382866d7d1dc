#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace cudamod::python {

/// A NumPy or ctypes scalar's value in memory, as the buffer protocol describes it.
struct Scalar {
    enum class Kind : std::uint8_t { Bool, Signed, Unsigned, Float, Complex, Address, Other };
    Kind kind;
    std::uint8_t size;
    unsigned char bytes[16];
};

/// True for a NumPy scalar type (a subclass of numpy.generic), without importing NumPy.
bool is_numpy_scalar(PyTypeObject* type);

/// True for NumPy's bool.
bool is_numpy_bool(PyTypeObject* type);

/// True for numpy.void, whose values are structs.
bool is_numpy_struct(PyTypeObject* type);

/// True for a type of ctypes that stands for one C value (c_int, c_void_p, ...).
bool is_ctypes_scalar(PyTypeObject* type);

/// True for structures and unions of ctypes, which are passed by value.
bool is_ctypes_struct(PyTypeObject* type);

/// True for arrays of ctypes.
bool is_ctypes_array(PyTypeObject* type);

/// True for pointer types of ctypes. Their values point to the host's memory.
bool is_ctypes_pointer(PyTypeObject* type);

/// True for numpy.ndarray and its subclasses.
bool is_numpy_array(PyTypeObject* type);

/// The value of a NumPy or ctypes scalar; none with a Python error set.
std::optional<Scalar> read_scalar(PyObject* value);

} // namespace cudamod::python
