#include "python/signature.h"

#include "python/scalar.h"
#include "python/text.h"

#include <nanobind/stl/string.h>

#include <optional>

namespace cudamod::python {

namespace {

using launch::Type;
using launch::TypeClass;

/// The type with NumPy's kind letter and a size.
std::optional<Type> type_of_kind(char kind, std::uint32_t size) {
    auto numbered = [&](const char* prefix) {
        return launch::type_of_name(prefix + std::to_string(8 * size));
    };
    switch (kind) {
    case 'b':
        return launch::type_of_name("bool");
    case 'i':
        return numbered("i");
    case 'u':
        return numbered("u");
    case 'f':
        return numbered("f");
    case 'c':
        return numbered("c");
    case 'V':
        return launch::type_of_name("bytes[" + std::to_string(size) + "]");
    default:
        return std::nullopt;
    }
}

std::optional<Type> type_of_dtype(nb::handle element) {
    nb::object dtype = nb::borrow(element);
    if (PyType_Check(element.ptr())) {
        if (!is_numpy_scalar(reinterpret_cast<PyTypeObject*>(element.ptr()))) return std::nullopt;
        dtype = nb::module_::import_("numpy").attr("dtype")(element);
    } else if (!nb::hasattr(element, "kind") || !nb::hasattr(element, "itemsize")) {
        return std::nullopt;
    }
    // What NumPy's scalars of a foreign byte order would be, the kernel is not.
    if (!nb::cast<bool>(nb::getattr(dtype, "isnative", nb::bool_(true)))) return std::nullopt;
    if (nb::cast<std::string>(nb::str(nb::getattr(dtype, "name", nb::none()))) == "bfloat16")
        return launch::type_of_name("bf16");
    std::string kind = nb::cast<std::string>(nb::str(dtype.attr("kind")));
    return kind.size() == 1 ? type_of_kind(kind[0], nb::cast<std::uint32_t>(dtype.attr("itemsize")))
                            : std::nullopt;
}

std::optional<Type> type_of_ctypes(nb::handle element) {
    if (!PyType_Check(element.ptr())) return std::nullopt;
    auto* type = reinterpret_cast<PyTypeObject*>(element.ptr());
    if (is_ctypes_pointer(type)) return launch::type_of_name("ptr");
    bool scalar = is_ctypes_scalar(type);
    if (!scalar && !is_ctypes_struct(type) && !is_ctypes_array(type)) return std::nullopt;
    auto size = nb::cast<std::uint32_t>(nb::module_::import_("ctypes").attr("sizeof")(element));
    if (!scalar) return type_of_kind('V', size);
    if (!nb::getattr(element, "__ctype_le__", element).is(element))
        return std::nullopt; // the other byte order
    switch (nb::cast<std::string>(nb::getattr(element, "_type_"))[0]) {
    case '?':
        return type_of_kind('b', size);
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
        return type_of_kind('i', size);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
        return type_of_kind('u', size);
    case 'f':
    case 'd':
        return type_of_kind('f', size);
    case 'P':
        return launch::type_of_name("ptr");
    default:
        return std::nullopt;
    }
}

Type type_of_element(nb::handle element, std::size_t index) {
    std::optional<Type> type;
    if (PyUnicode_Check(element.ptr()))
        type = launch::type_of_name(utf8_of(element.ptr()));
    else if (!(type = type_of_ctypes(element)))
        type = type_of_dtype(element);
    if (!type) {
        PyErr_Format(PyExc_ValueError,
                     "signature: parameter %zu has the unknown type %R (known: i8..i64, u8..u64, "
                     "b8..b64, f16, bf16, f32, f64, "
                     "bool, c64, c128, ptr, bytes[N], NumPy dtypes and ctypes types)",
                     index, element.ptr());
        throw nb::python_error();
    }
    return *type;
}

} // namespace

std::vector<Type> signature_types(nb::handle signature) {
    if (PyUnicode_Check(signature.ptr())) return launch::parse_signature(utf8_of(signature.ptr()));
    if (!PyList_Check(signature.ptr()) && !PyTuple_Check(signature.ptr())) {
        PyErr_Format(PyExc_TypeError, "signature must be a text or a sequence of types, not %s",
                     Py_TYPE(signature.ptr())->tp_name);
        throw nb::python_error();
    }
    std::vector<Type> types;
    for (nb::handle element : nb::borrow<nb::sequence>(signature))
        types.push_back(type_of_element(element, types.size()));
    return types;
}

std::optional<std::string> signature_text(const launch::Layout& layout) {
    std::string text;
    for (const launch::Parameter& parameter : layout.parameters) {
        if (parameter.type.type_class == TypeClass::Unknown) return std::nullopt;
        if (!text.empty()) text += ", ";
        text += launch::name_of(parameter.type);
    }
    return text;
}

} // namespace cudamod::python
