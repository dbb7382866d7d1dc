#include "python/argument.h"

#include "python/dlpack_abi.h"
#include "python/framework.h"
#include "python/number.h"
#include "python/pointer.h"
#include "python/scalar.h"
#include "python/tensor_map.h"
#include "python/text.h"
#include "python/torch_tensor.h"
#include "python/type_cache.h"

#include <cmath>
#include <limits>

namespace cudamod::python {

namespace {

using launch::Parameter;
using launch::Type;
using launch::TypeClass;

bool mismatch(PyObject* value, const Type& type, const ArgumentSite& site, const char* hint = "") {
    PyErr_Format(PyExc_TypeError, "kernel '%s', argument %zu (%s): can't pass %s object %s%s",
                 site.kernel.name().c_str(), site.index, launch::name_of(type).c_str(),
                 Py_TYPE(value)->tp_name, text_of(value).c_str(), hint);
    return false;
}

/// The same for an array, whose text may be long, and may have to be fetched from a device.
bool mismatched_array(PyObject* value, const Type& type, const ArgumentSite& site,
                      const char* hint = "") {
    PyErr_Format(PyExc_TypeError, "kernel '%s', argument %zu (%s): can't pass %s object%s",
                 site.kernel.name().c_str(), site.index, launch::name_of(type).c_str(),
                 Py_TYPE(value)->tp_name, hint);
    return false;
}

bool out_of_range(PyObject* value, const Type& type, const ArgumentSite& site) {
    std::string low = type.low ? "-" + std::to_string(type.low) : "0";
    PyErr_Format(PyExc_OverflowError, "kernel '%s', argument %zu (%s): %s is out of range %s .. %s",
                 site.kernel.name().c_str(), site.index, launch::name_of(type).c_str(),
                 text_of(value).c_str(), low.c_str(), std::to_string(type.high).c_str());
    return false;
}

bool too_large(PyObject* value, const Type& type, const ArgumentSite& site) {
    PyErr_Format(PyExc_OverflowError, "kernel '%s', argument %zu (%s): %s is too large",
                 site.kernel.name().c_str(), site.index, launch::name_of(type).c_str(),
                 text_of(value).c_str());
    return false;
}

/// One float, or one half of a complex number.
bool store_float(double number, PyObject* value, const Type& type, std::byte* cell,
                 const ArgumentSite& site) {
    bool overflow = false;
    std::uint32_t size = type.type_class == TypeClass::Complex ? type.size / 2 : type.size;
    if (size == 8) {
        std::memcpy(cell, &number, 8);
    } else if (size == 4) {
        auto rounded = static_cast<float>(number);
        overflow = std::isinf(rounded) && !std::isinf(number);
        std::memcpy(cell, &rounded, 4);
    } else {
        bool brain = type.type_class == TypeClass::BFloat;
        std::uint16_t rounded = round_to_16_bits(number, brain ? 8 : 5, brain ? 7 : 10, overflow);
        std::memcpy(cell, &rounded, 2);
    }
    return !overflow || too_large(value, type, site);
}

constexpr Type kComplex128{TypeClass::Complex, true, 16, 0, 0};

bool store_complex(Py_complex number, PyObject* value, const Type& type, std::byte* cell,
                   const ArgumentSite& site) {
    // Of unknown type it is complex128.
    const Type& wanted = type.type_class == TypeClass::Complex ? type : kComplex128;
    return store_float(number.real, value, wanted, cell, site) &&
           store_float(number.imag, value, wanted, cell + wanted.size / 2, site);
}

bool is_float(const Type& type) {
    return type.type_class == TypeClass::Float || type.type_class == TypeClass::BFloat;
}

/// An int as a double; false when it is too large for one. Bits that are lost leave the last bit
/// odd, so that rounding the double to a shorter float gives what rounding the int once would.
bool double_of_long(PyObject* number, double& result) {
    result = PyLong_AsDouble(number);
    std::uint64_t magnitude;
    bool negative;
    if (read_long(number, magnitude, negative) && magnitude <= std::uint64_t{1} << 53) return true;
    PyObject* back = result == -1.0 && PyErr_Occurred() ? nullptr : PyLong_FromDouble(result);
    int above = back ? PyObject_RichCompareBool(back, number, Py_GT) : -1;
    int below = above == 0 ? PyObject_RichCompareBool(back, number, Py_LT) : 0;
    Py_XDECREF(back);
    if (above < 0 || below < 0) {
        PyErr_Clear();
        return false;
    }
    std::uint64_t bits;
    std::memcpy(&bits, &result, sizeof bits);
    if ((above || below) && bits % 2 == 0)
        result = std::nextafter(result, above ? -HUGE_VAL : HUGE_VAL);
    return true;
}

/// An exact int or an instance of a subclass.
bool store_long(PyObject* number, PyObject* value, const Type& type, std::byte* cell,
                const ArgumentSite& site) {
    switch (type.type_class) {
    case TypeClass::Unknown:
        if (type.high == 0)
            return mismatch(value, type, site, "; an integer goes into 1, 2, 4 or 8 bytes");
        [[fallthrough]];
    case TypeClass::Integer:
    case TypeClass::Bool:
    case TypeClass::Pointer: {
        std::uint64_t magnitude;
        bool negative;
        if (!read_long(number, magnitude, negative) ||
            magnitude > (negative ? type.low : type.high))
            return out_of_range(value, type, site);
        std::uint64_t bits = negative ? std::uint64_t{0} - magnitude : magnitude;
        std::memcpy(cell, &bits, sizeof bits);
        return true;
    }
    case TypeClass::Float:
    case TypeClass::BFloat: {
        double converted;
        if (!double_of_long(number, converted)) return too_large(value, type, site);
        if (type.size == 8) converted = PyLong_AsDouble(number); // the nearest
        return store_float(converted, value, type, cell, site);
    }
    default:
        return mismatch(value, type, site);
    }
}

bool convert_long(PyObject* value, const Parameter& parameter, std::byte* cell,
                  const ArgumentSite& site, const void*) {
    return store_long(value, value, parameter.type, cell, site);
}

bool convert_index(PyObject* value, const Parameter& parameter, std::byte* cell,
                   const ArgumentSite& site, const void*) {
    PyObject* number = PyNumber_Index(value);
    if (!number) return false;
    bool done = store_long(number, value, parameter.type, cell, site);
    Py_DECREF(number);
    return done;
}

bool store_bool(bool truth, PyObject* value, const Type& type, std::byte* cell,
                const ArgumentSite& site) {
    bool fits = type.type_class == TypeClass::Integer || type.type_class == TypeClass::Bool ||
                (type.type_class == TypeClass::Unknown && type.high != 0);
    if (!fits) return mismatch(value, type, site);
    std::uint64_t bits = truth;
    std::memcpy(cell, &bits, sizeof bits);
    return true;
}

bool convert_bool(PyObject* value, const Parameter& parameter, std::byte* cell,
                  const ArgumentSite& site, const void*) {
    return store_bool(value == Py_True, value, parameter.type, cell, site);
}

bool convert_numpy_bool(PyObject* value, const Parameter& parameter, std::byte* cell,
                        const ArgumentSite& site, const void*) {
    int truth = PyObject_IsTrue(value);
    return truth >= 0 && store_bool(truth, value, parameter.type, cell, site);
}

bool convert_float(PyObject* value, const Parameter& parameter, std::byte* cell,
                   const ArgumentSite& site, const void*) {
    const Type& type = parameter.type;
    double number = PyFloat_AS_DOUBLE(value);
    if (is_float(type)) return store_float(number, value, type, cell, site);
    if (type.type_class == TypeClass::Unknown) {
        if (type.size != 8)
            return mismatch(value, type, site,
                            "; pass a typed scalar such as numpy.float32, or give a signature");
        std::memcpy(cell, &number, sizeof number);
        return true;
    }
    return mismatch(value, type, site);
}

bool convert_complex(PyObject* value, const Parameter& parameter, std::byte* cell,
                     const ArgumentSite& site, const void*) {
    const Type& type = parameter.type;
    if (type.type_class == TypeClass::Complex ||
        (type.type_class == TypeClass::Unknown && type.size == 16))
        return store_complex(PyComplex_AsCComplex(value), value, type, cell, site);
    return mismatch(value, type, site);
}

bool convert_none(PyObject* value, const Parameter& parameter, std::byte* cell,
                  const ArgumentSite& site, const void*) {
    if (!parameter.takes_pointer) return mismatch(value, parameter.type, site);
    std::memset(cell, 0, 8);
    return true;
}

double float_of(const Scalar& scalar) {
    if (scalar.size == 4) {
        float number;
        std::memcpy(&number, scalar.bytes, 4);
        return number;
    }
    if (scalar.size == 8) {
        double number;
        std::memcpy(&number, scalar.bytes, 8);
        return number;
    }
    std::uint16_t bits;
    std::memcpy(&bits, scalar.bytes, 2);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 31
                           ? (fraction ? std::numeric_limits<double>::quiet_NaN() : HUGE_VAL)
                       : exponent == 0 ? std::ldexp(fraction, -24)
                                       : std::ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

bool convert_scalar(PyObject* value, const Parameter& parameter, std::byte* cell,
                    const ArgumentSite& site, const void*) {
    std::optional<Scalar> scalar = read_scalar(value);
    if (!scalar) {
        PyErr_Clear();
        return mismatch(value, parameter.type, site);
    }
    const Type& type = parameter.type;
    if (scalar->kind == Scalar::Kind::Other) return mismatch(value, type, site);
    if (type.type_class == TypeClass::Unknown) {
        if (scalar->size != type.size) return mismatch(value, type, site, "; its size is another");
        std::memcpy(cell, scalar->bytes, scalar->size);
        return true;
    }
    switch (scalar->kind) {
    case Scalar::Kind::Bool:
        return store_bool(scalar->bytes[0] != 0, value, type, cell, site);
    case Scalar::Kind::Address:
        if (type.size != 8 || is_float(type)) return mismatch(value, type, site);
        [[fallthrough]];
    case Scalar::Kind::Signed:
    case Scalar::Kind::Unsigned: {
        std::uint64_t bits = 0;
        std::memcpy(&bits, scalar->bytes, scalar->size);
        PyObject* number;
        if (scalar->kind == Scalar::Kind::Signed) {
            unsigned unused = 64 - 8 * scalar->size;
            number = PyLong_FromLongLong(static_cast<long long>(bits << unused) >> unused);
        } else {
            number = PyLong_FromUnsignedLongLong(bits);
        }
        if (!number) return false;
        bool done = store_long(number, value, type, cell, site);
        Py_DECREF(number);
        return done;
    }
    case Scalar::Kind::Float:
        if (is_float(type)) return store_float(float_of(*scalar), value, type, cell, site);
        return mismatch(value, type, site);
    case Scalar::Kind::Complex:
        if (type.type_class == TypeClass::Complex) {
            Scalar part{Scalar::Kind::Float, static_cast<std::uint8_t>(scalar->size / 2), {}};
            Py_complex number;
            std::memcpy(part.bytes, scalar->bytes, part.size);
            number.real = float_of(part);
            std::memcpy(part.bytes, scalar->bytes + part.size, part.size);
            number.imag = float_of(part);
            return store_complex(number, value, type, cell, site);
        }
        return mismatch(value, type, site);
    default:
        return mismatch(value, type, site);
    }
}

bool is_scalar_size(std::uint32_t size) {
    return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

/// Copies an object's bytes whole. `structured`: the object is a struct, which may also have a
/// scalar's size.
bool copy_bytes(PyObject* value, const Type& type, std::byte* cell, const ArgumentSite& site,
                bool structured) {
    bool fits = type.type_class == TypeClass::Bytes || (type.type_class == TypeClass::Unknown &&
                                                        (structured || !is_scalar_size(type.size)));
    if (!fits) return mismatch(value, type, site);
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return mismatch(value, type, site, "; its bytes are not contiguous");
    }
    bool same = static_cast<std::uint64_t>(view.len) == type.size;
    if (same) std::memcpy(cell, view.buf, type.size);
    Py_ssize_t length = view.len;
    PyBuffer_Release(&view);
    if (same) return true;
    PyErr_Format(PyExc_TypeError,
                 "kernel '%s', argument %zu (%s): %s object has %zd bytes, the parameter %u",
                 site.kernel.name().c_str(), site.index, launch::name_of(type).c_str(),
                 Py_TYPE(value)->tp_name, length, type.size);
    return false;
}

bool convert_struct(PyObject* value, const Parameter& parameter, std::byte* cell,
                    const ArgumentSite& site, const void*) {
    return copy_bytes(value, parameter.type, cell, site, true);
}

bool convert_tensor_map(PyObject* value, const Parameter& parameter, std::byte* cell,
                        const ArgumentSite& site, const void*) {
    const Type& type = parameter.type;
    bool fits = type.size == sizeof(CUtensorMap) &&
                (type.type_class == TypeClass::Bytes || type.type_class == TypeClass::Unknown);
    if (!fits) return mismatch(value, type, site, "; it goes into 128 bytes by value");
    int device = -1;
    nb::inst_ptr<EncodedTensorMap>(nb::handle(value))->copy_to(cell, device);
    if (device < 0 || device == site.device) return true;
    PyErr_Format(
        PyExc_ValueError,
        "kernel '%s', argument %zu: the memory of the %s lies on device %d, but the launch "
        "is on device %d",
        site.kernel.name().c_str(), site.index, Py_TYPE(value)->tp_name, device, site.device);
    return false;
}

bool convert_bytes(PyObject* value, const Parameter& parameter, std::byte* cell,
                   const ArgumentSite& site, const void*) {
    return copy_bytes(value, parameter.type, cell, site, false);
}

bool convert_buffer(PyObject* value, const Parameter& parameter, std::byte* cell,
                    const ArgumentSite& site, const void*) {
    if (!parameter.takes_pointer) return mismatch(value, parameter.type, site);
    return pointer_from_buffer(*nb::inst_ptr<Buffer>(nb::handle(value)), cell, site);
}

/// Whether the value told the launch's stream: its address is known, and the device its own.
bool was_described(PyObject* value, std::byte* cell, const ArgumentSite& site) {
    if (!site.described || site.described->object != value) return false;
    std::memcpy(cell, &site.described->address, sizeof site.described->address);
    return true;
}

/// Writes the address of a tensor as DLPack describes it.
bool convert_dlpack(PyObject* value, const Parameter& parameter, std::byte* cell,
                    const ArgumentSite& site, const void* exchange_api) {
    if (!parameter.takes_pointer) [[unlikely]]
        return mismatched_array(value, parameter.type, site);
    if (was_described(value, cell, site)) return true;
    dlpack::DLTensor tensor;
    if (static_cast<const dlpack::DLPackExchangeAPI*>(exchange_api)
            ->dltensor_from_py_object_no_sync(value, &tensor) != 0) [[unlikely]]
        return not_described(value, site);
    auto address = reinterpret_cast<std::uint64_t>(tensor.data);
    if (!address && lacks_memory(tensor)) return without_memory(value, site);
    if (address) address += tensor.byte_offset;
    if (tensor.device.device_type != dlpack::kDLCUDA || tensor.device.device_id != site.device)
        [[unlikely]]
        return pointer_elsewhere(value, tensor.device, address, cell, site);
    std::memcpy(cell, &address, sizeof address);
    return true;
}

/// torch's own way, and DLPack for whatever that can't tell.
bool convert_torch(PyObject* value, const Parameter& parameter, std::byte* cell,
                   const ArgumentSite& site, const void* exchange_api) {
    std::uint64_t address;
    int device;
    if (parameter.takes_pointer) [[likely]] {
        if (was_described(value, cell, site)) return true;
        if (torch_reader.read(value, address, device) && device == site.device && address)
            [[likely]] {
            std::memcpy(cell, &address, sizeof address);
            return true;
        }
    }
    if (!convert_dlpack(value, parameter, cell, site, exchange_api)) return false;
    if (torch_reader.undecided()) torch_reader.decide(value, exchange_api);
    return true;
}

bool convert_dlpack_methods(PyObject* value, const Parameter& parameter, std::byte* cell,
                            const ArgumentSite& site, const void*) {
    if (!parameter.takes_pointer) return mismatched_array(value, parameter.type, site);
    return pointer_from_dlpack_methods(value, cell, site);
}

bool convert_cuda_array(PyObject* value, const Parameter& parameter, std::byte* cell,
                        const ArgumentSite& site, const void*) {
    if (!parameter.takes_pointer) return mismatched_array(value, parameter.type, site);
    return pointer_from_cuda_array(value, cell, site);
}

bool convert_cupy(PyObject* value, const Parameter& parameter, std::byte* cell,
                  const ArgumentSite& site, const void*) {
    if (!parameter.takes_pointer) return mismatched_array(value, parameter.type, site);
    return pointer_from_cupy(value, cell, site) || pointer_from_cuda_array(value, cell, site);
}

bool convert_host_array(PyObject* value, const Parameter& parameter, std::byte*,
                        const ArgumentSite& site, const void*) {
    return mismatched_array(
        value, parameter.type, site,
        "; a NumPy array lies in host memory: copy it to a Buffer, or pass a scalar of it");
}

bool refuse(PyObject* value, const Parameter& parameter, std::byte*, const ArgumentSite& site,
            const void*) {
    return mismatch(value, parameter.type, site);
}

bool type_has(PyTypeObject* type, const char* attribute) {
    return PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), attribute);
}

/// How values of a type are converted; the order matters, since many types are several of these at
/// once.
Conversion conversion_of(PyTypeObject* type) {
    if (PyType_IsSubtype(type, Buffer::python_type)) return {convert_buffer, nullptr};
    if (PyType_IsSubtype(type, EncodedTensorMap::python_type)) return {convert_tensor_map, nullptr};
    if (type == &PyBool_Type) return {convert_bool, nullptr};
    if (type == Py_TYPE(Py_None)) return {convert_none, nullptr};
    if (is_numpy_bool(type)) return {convert_numpy_bool, nullptr};
    if (is_numpy_scalar(type))
        return {is_numpy_struct(type) ? convert_struct : convert_scalar, nullptr};
    if (is_ctypes_scalar(type)) return {convert_scalar, nullptr};
    if (is_ctypes_struct(type)) return {convert_struct, nullptr};
    if (is_ctypes_array(type)) return {convert_bytes, nullptr};
    if (PyType_IsSubtype(type, &PyLong_Type)) return {convert_long, nullptr};
    if (PyType_IsSubtype(type, &PyFloat_Type)) return {convert_float, nullptr};
    if (PyType_IsSubtype(type, &PyComplex_Type)) return {convert_complex, nullptr};
    if (PyType_IsSubtype(type, &PyBytes_Type) || PyType_IsSubtype(type, &PyByteArray_Type) ||
        type == &PyMemoryView_Type)
        return {convert_bytes, nullptr};
    if (is_numpy_array(type)) return {convert_host_array, nullptr};
    if (const void* api = dlpack_exchange_api(type))
        return {is_torch_tensor(type) ? convert_torch : convert_dlpack, api};
    if (type_has(type, "__cuda_array_interface__"))
        return {framework_of(type).framework == Framework::CuPy ? convert_cupy : convert_cuda_array,
                nullptr};
    if (type_has(type, "__dlpack__") && type_has(type, "__dlpack_device__"))
        return {convert_dlpack_methods, nullptr};
    if (type->tp_as_number && type->tp_as_number->nb_index) return {convert_index, nullptr};
    return {refuse, nullptr};
}

constinit TypeCache<Conversion> conversions(conversion_of);

} // namespace

bool convert_any(PyObject* value, const Parameter& parameter, std::byte* cell,
                 const ArgumentSite& site) {
    Conversion conversion = conversions.find(Py_TYPE(value));
    // An instance may carry the interface that its type lacks (a proxy, a namespace).
    if (conversion.convert == refuse && PyObject_HasAttrString(value, "__cuda_array_interface__"))
        conversion = {convert_cuda_array, nullptr};
    return conversion.convert(value, parameter, cell, site, conversion.data);
}

} // namespace cudamod::python
