#include "python/scalar.h"

#include <cstring>

namespace cudamod::python {

namespace {

/// True when the type or one of its bases has this qualified name. The names are those that the
/// packages' own C types carry, so nothing has to be imported.
bool derives_from(PyTypeObject* type, const char* name) {
    PyObject* mro = type->tp_mro;
    if (!mro) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
        auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
        if (std::strcmp(base->tp_name, name) == 0) return true;
    }
    return false;
}

Scalar::Kind kind_of(const char* format) {
    if (!format) return Scalar::Kind::Unsigned;
    if (*format == '<' || *format == '=' || *format == '@') ++format;
    if (format[0] == 'Z') // alone it is ctypes' pointer to wide characters
        return format[1] == 'f' || format[1] == 'd' ? Scalar::Kind::Complex : Scalar::Kind::Other;
    switch (format[0]) {
    case '?':
        return Scalar::Kind::Bool;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return Scalar::Kind::Signed;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        return Scalar::Kind::Unsigned;
    case 'e':
    case 'f':
    case 'd':
        return Scalar::Kind::Float;
    case 'P':
        return Scalar::Kind::Address;
    default:
        return Scalar::Kind::Other; // long double, characters, references, other byte orders
    }
}

} // namespace

bool is_numpy_scalar(PyTypeObject* type) {
    return derives_from(type, "numpy.generic");
}
bool is_numpy_bool(PyTypeObject* type) { // its name changed with NumPy 2
    return derives_from(type, "numpy.bool") || derives_from(type, "numpy.bool_");
}
bool is_numpy_struct(PyTypeObject* type) {
    return derives_from(type, "numpy.void");
}
bool is_numpy_array(PyTypeObject* type) {
    return derives_from(type, "numpy.ndarray");
}
bool is_ctypes_scalar(PyTypeObject* type) {
    return derives_from(type, "_ctypes._SimpleCData");
}

bool is_ctypes_struct(PyTypeObject* type) {
    return derives_from(type, "_ctypes.Structure") || derives_from(type, "_ctypes.Union");
}
bool is_ctypes_array(PyTypeObject* type) {
    return derives_from(type, "_ctypes.Array");
}
bool is_ctypes_pointer(PyTypeObject* type) {
    return derives_from(type, "_ctypes._Pointer");
}

std::optional<Scalar> read_scalar(PyObject* value) {
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_FORMAT) < 0) return std::nullopt;
    Scalar scalar{Scalar::Kind::Other, 0, {}};
    if (view.ndim == 0 && view.len <= static_cast<Py_ssize_t>(sizeof scalar.bytes)) {
        scalar.kind = kind_of(view.format);
        scalar.size = static_cast<std::uint8_t>(view.len);
        std::memcpy(scalar.bytes, view.buf, static_cast<std::size_t>(view.len));
    }
    PyBuffer_Release(&view);
    return scalar;
}

} // namespace cudamod::python
