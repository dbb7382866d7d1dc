#include "python/tensor.h"

#include "driver/log.h"
#include "driver/table.h"
#include "python/buffer.h"
#include "python/dlpack_abi.h"
#include "python/integer_argument.h"
#include "python/pointer.h"
#include "python/text.h"

#include <stdexcept>

namespace cudamod::python {

namespace {

using namespace dlpack;

[[noreturn]] void refuse_tensor(nb::handle object, const char* what, const char* why) {
    PyErr_Format(PyExc_TypeError, "%s: %s object %s", what, Py_TYPE(object.ptr())->tp_name, why);
    throw nb::python_error();
}

constexpr const char* kHostMemory =
    "lies in host memory; kernels need device, pinned or managed memory";

/// The device that the driver knows an address to be of; -1 for pinned and managed memory.
int device_of_address(nb::handle object, std::uint64_t address, const char* what) {
    unsigned memory_type = 0, managed = 0;
    if (driver::table.cuPointerGetAttribute(&memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                            address) != CUDA_SUCCESS) {
        driver::take_log(CUDA_SUCCESS);
        refuse_tensor(object, what, kHostMemory);
    }
    if (memory_type == CU_MEMORYTYPE_HOST) return -1;
    driver::table.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    int device = -1;
    if (!managed)
        driver::table.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    return device;
}

std::string type_name(const char* kind, int bits) {
    return kind + std::to_string(bits);
}

Tensor from_buffer(const Buffer& buffer, nb::handle object) {
    if (buffer.closed) throw std::runtime_error("Buffer has been closed");
    Tensor tensor;
    tensor.address = buffer.address;
    tensor.device = buffer.device;
    tensor.size = buffer.size;
    tensor.memory = buffer.memory;
    tensor.owner = buffer.memory ? nb::none() : nb::borrow(object);
    return tensor;
}

Tensor from_dlpack(const void* exchange_api, nb::handle object, const char* what) {
    DLTensor described{};
    if (static_cast<const DLPackExchangeAPI*>(exchange_api)
            ->dltensor_from_py_object_no_sync(object.ptr(), &described) != 0) {
        if (PyErr_Occurred()) throw nb::python_error();
        refuse_tensor(object, what, "can't be described by DLPack");
    }
    Tensor tensor;
    tensor.owner = nb::borrow(object);
    tensor.address = reinterpret_cast<std::uint64_t>(described.data) + described.byte_offset;
    if (described.device.device_type == kDLCUDA)
        tensor.device = described.device.device_id;
    else if (described.device.device_type != kDLCUDAHost &&
             described.device.device_type != kDLCUDAManaged)
        tensor.device = device_of_address(object, tensor.address, what);
    if (described.ndim < 0 || (described.ndim && !described.shape))
        refuse_tensor(object, what, "has no shape by DLPack");
    tensor.shape.emplace(described.shape, described.shape + described.ndim);
    std::int64_t bytes = (described.dtype.bits * described.dtype.lanes + 7) / 8;
    if (described.strides) {
        tensor.strides.emplace(described.strides, described.strides + described.ndim);
        for (std::int64_t& stride : *tensor.strides)
            stride *= bytes;
    }
    if (described.dtype.lanes == 1) {
        if (described.dtype.code == kDLInt)
            tensor.data_type = type_name("int", described.dtype.bits);
        if (described.dtype.code == kDLUInt)
            tensor.data_type = type_name("uint", described.dtype.bits);
        if (described.dtype.code == kDLFloat)
            tensor.data_type = type_name("float", described.dtype.bits);
        if (described.dtype.code == kDLBfloat)
            tensor.data_type = type_name("bfloat", described.dtype.bits);
    }
    return tensor;
}

std::vector<std::int64_t> numbers(nb::handle value, nb::handle object, const char* what) {
    std::vector<std::int64_t> result;
    if (!PyTuple_Check(value.ptr()))
        refuse_tensor(object, what, "has no tuples in its __cuda_array_interface__");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value.ptr()); ++i) {
        long long number = PyLong_AsLongLong(PyTuple_GET_ITEM(value.ptr(), i));
        if (number == -1 && PyErr_Occurred()) throw nb::python_error();
        result.push_back(number);
    }
    return result;
}

Tensor from_cuda_array(nb::handle object, const char* what) {
    nb::object interface = nb::getattr(object, "__cuda_array_interface__");
    if (!nb::isinstance<nb::dict>(interface))
        refuse_tensor(object, what, "has a __cuda_array_interface__ that is no dict");
    auto item = [&](const char* name) {
        return nb::borrow(PyDict_GetItemString(interface.ptr(), name));
    };
    nb::object mask = item("mask"), data = item("data"), strides = item("strides");
    if (mask.is_valid() && !mask.is_none()) refuse_tensor(object, what, "is masked");
    if (!data.is_valid() || !PyTuple_Check(data.ptr()) || PyTuple_GET_SIZE(data.ptr()) != 2)
        refuse_tensor(object, what, "has no address in its __cuda_array_interface__");
    Tensor tensor;
    tensor.owner = nb::borrow(object);
    tensor.address = raw_argument(PyTuple_GET_ITEM(data.ptr(), 0), what);
    tensor.device = device_of_address(object, tensor.address, what);
    nb::object shape = item("shape"), type = item("typestr");
    if (!shape.is_valid())
        refuse_tensor(object, what, "has no shape in its __cuda_array_interface__");
    tensor.shape = numbers(shape, object, what);
    if (strides.is_valid() && !strides.is_none()) {
        tensor.strides = numbers(strides, object, what);
        if (tensor.strides->size() != tensor.shape->size())
            refuse_tensor(object, what, "has strides of another length than its shape");
    }
    if (type.is_valid() && PyUnicode_Check(type.ptr())) {
        std::string text = utf8_of(type.ptr());
        int bits = text.size() == 3 && text[2] > '0' && text[2] <= '8' ? 8 * (text[2] - '0') : 0;
        if (bits && text[0] != '>') {
            if (text[1] == 'i') tensor.data_type = type_name("int", bits);
            if (text[1] == 'u') tensor.data_type = type_name("uint", bits);
            if (text[1] == 'f') tensor.data_type = type_name("float", bits);
        }
    }
    return tensor;
}

} // namespace

Tensor read_tensor(nb::handle object, const char* what) {
    if (const Buffer* buffer = instance<Buffer>(object.ptr())) return from_buffer(*buffer, object);
    if (PyLong_Check(object.ptr()) && !PyBool_Check(object.ptr())) {
        Tensor tensor;
        tensor.address = raw_argument(object, what);
        tensor.owner = nb::none();
        return tensor;
    }
    if (const void* api = dlpack_exchange_api(Py_TYPE(object.ptr())))
        return from_dlpack(api, object, what);
    if (nb::hasattr(object, "__cuda_array_interface__")) return from_cuda_array(object, what);
    refuse_tensor(
        object, what,
        "is no tensor: a Buffer, an address, or something with __cuda_array_interface__ or "
        "DLPack's C exchange API is needed");
}

} // namespace cudamod::python
