#include "python/pointer.h"

#include "driver/log.h"
#include "driver/table.h"
#include "handles/context.h"
#include "python/dlpack_abi.h"

#include <cstdint>

namespace cudamod::python {

namespace {

using namespace dlpack;

bool refuse_host(PyObject* value, const ArgumentSite& site) {
    PyErr_Format(PyExc_TypeError,
                 "kernel '%s', argument %zu: %s object lies in host memory; kernels need device, "
                 "pinned or managed memory",
                 site.kernel.name().c_str(), site.index, Py_TYPE(value)->tp_name);
    return false;
}

bool refuse_device(PyObject* value, int device, const ArgumentSite& site) {
    PyErr_Format(
        PyExc_ValueError,
        "kernel '%s', argument %zu: %s object lies on device %d, but the launch is on device %d",
        site.kernel.name().c_str(), site.index, Py_TYPE(value)->tp_name, device, site.device);
    return false;
}

bool store(std::uint64_t address, std::byte* cell) {
    std::memcpy(cell, &address, sizeof address);
    return true;
}

/// Whether the launch's device was given access to the pool that the memory is from.
bool peer_reaches(const Buffer& buffer, int device) {
    if (!buffer.memory) return false;
    const auto& pool = handles::box_of<handles::DeviceMemoryBox>(buffer.memory).pool;
    return pool && handles::has_access(pool, device);
}

/// What the driver knows of an address that another library gave without its device.
bool check_address(PyObject* value, std::uint64_t address, const ArgumentSite& site) {
    if (address == 0) return true; // an empty array's
    unsigned memory_type = 0;
    if (driver::table.cuPointerGetAttribute(&memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                            address) != CUDA_SUCCESS) {
        driver::take_log(CUDA_SUCCESS);
        return refuse_host(value, site);
    }
    if (memory_type == CU_MEMORYTYPE_HOST)
        return true; // pinned: the driver knows no other host memory
    unsigned managed = 0;
    driver::table.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    int device = site.device;
    driver::table.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    return managed || device == site.device || refuse_device(value, device, site);
}

} // namespace

const void* dlpack_exchange_api(PyTypeObject* type) {
    PyObject* capsule =
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
    if (!capsule) {
        PyErr_Clear();
        return nullptr;
    }
    const DLPackExchangeAPI* api = nullptr;
    if (PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        api = static_cast<const DLPackExchangeAPI*>(
            PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    Py_DECREF(capsule);
    while (api && api->version.major != 1)
        api = api->prev_api;
    return api && api->dltensor_from_py_object_no_sync ? api : nullptr;
}

bool lacks_memory(const DLTensor& tensor) {
    if (tensor.device.device_type != kDLCUDA) return false;
    for (std::int32_t i = 0; i < tensor.ndim; ++i)
        if (tensor.shape[i] == 0) return false;
    return true;
}

bool without_memory(PyObject* value, const ArgumentSite& site) {
    PyErr_Format(
        PyExc_TypeError,
        "kernel '%s', argument %zu: %s object has elements, but no memory (a fake tensor?)",
        site.kernel.name().c_str(), site.index, Py_TYPE(value)->tp_name);
    return false;
}

bool not_described(PyObject* value, const ArgumentSite& site) {
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "kernel '%s', argument %zu: DLPack can't describe %s object",
                     site.kernel.name().c_str(), site.index, Py_TYPE(value)->tp_name);
    return false;
}

bool pointer_elsewhere(PyObject* value, const DLDevice& device, std::uint64_t address,
                       std::byte* cell, const ArgumentSite& site) {
    switch (device.device_type) {
    case kDLCUDA:
        return refuse_device(value, device.device_id, site);
    case kDLCUDAHost:
    case kDLCUDAManaged:
        return store(address, cell);
    default:
        // A pinned tensor of the CPU says only that it is the CPU's; the driver knows better.
        return address != 0 && check_address(value, address, site) ? store(address, cell)
               : PyErr_Occurred()                                  ? false
                                                                   : refuse_host(value, site);
    }
}

namespace {

/// The tensor in a capsule that nobody has taken, or null.
const DLTensor* tensor_in(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        auto* managed = static_cast<DLManagedTensorVersioned*>(
            PyCapsule_GetPointer(capsule, "dltensor_versioned"));
        return managed && managed->version.major == 1 ? &managed->dl_tensor : nullptr;
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
        return managed ? &managed->dl_tensor : nullptr;
    }
    return nullptr;
}

/// The stream that a consumer names: none for memory that isn't a device's, and no synchronisation
/// for what is.
nb::object consumer_stream(PyObject* value) {
    nb::object device = nb::steal(PyObject_CallMethod(value, "__dlpack_device__", nullptr));
    if (!device.is_valid()) return device;
    nb::object kind = nb::steal(PySequence_GetItem(device.ptr(), 0));
    if (!kind.is_valid()) return kind;
    nb::object number = nb::steal(PyNumber_Index(kind.ptr()));
    if (!number.is_valid()) return number;
    const long long device_type = PyLong_AsLongLong(number.ptr());
    if (device_type == -1 && PyErr_Occurred()) return {};
    return device_type == kDLCUDA ? nb::object(nb::int_(-1)) : nb::none();
}

} // namespace

bool pointer_from_dlpack_methods(PyObject* value, std::byte* cell, const ArgumentSite& site) {
    nb::object stream = consumer_stream(value);
    if (!stream.is_valid()) return not_described(value, site);
    nb::object method = nb::steal(PyObject_GetAttrString(value, "__dlpack__"));
    if (!method.is_valid()) return not_described(value, site);
    nb::object none = nb::steal(PyTuple_New(0));
    nb::object keywords = nb::steal(PyDict_New());
    if (!none.is_valid() || !keywords.is_valid() ||
        PyDict_SetItemString(keywords.ptr(), "stream", stream.ptr()) < 0)
        return false;
    nb::object capsule = nb::steal(PyObject_Call(method.ptr(), none.ptr(), keywords.ptr()));
    // The capsule keeps what it describes; the caller's object does so afterwards.
    const DLTensor* tensor = capsule.is_valid() ? tensor_in(capsule.ptr()) : nullptr;
    if (!tensor) return not_described(value, site);
    auto address = reinterpret_cast<std::uint64_t>(tensor->data);
    if (!address && lacks_memory(*tensor)) return without_memory(value, site);
    if (address) address += tensor->byte_offset;
    const DLDevice& device = tensor->device;
    return device.device_type == kDLCUDA && device.device_id == site.device
               ? store(address, cell)
               : pointer_elsewhere(value, device, address, cell, site);
}

bool pointer_from_cupy(PyObject* value, std::byte* cell, const ArgumentSite& site) {
    static PyObject* const data_name = PyUnicode_InternFromString("data");
    static PyObject* const device_name = PyUnicode_InternFromString("device_id");
    static PyObject* const address_name = PyUnicode_InternFromString("ptr");
    nb::object data = nb::steal(PyObject_GetAttr(value, data_name));
    nb::object device, address;
    if (data.is_valid()) device = nb::steal(PyObject_GetAttr(data.ptr(), device_name));
    if (device.is_valid()) address = nb::steal(PyObject_GetAttr(data.ptr(), address_name));
    auto number = [](const nb::object& object, std::uint64_t& result) {
        bool negative;
        return object.is_valid() && PyLong_CheckExact(object.ptr()) &&
               read_long(object.ptr(), result, negative) && !negative;
    };
    std::uint64_t ordinal, pointer;
    if (number(device, ordinal) && number(address, pointer) &&
        ordinal == static_cast<std::uint64_t>(site.device))
        return store(pointer, cell);
    PyErr_Clear();
    return false;
}

bool pointer_from_cuda_array(PyObject* value, std::byte* cell, const ArgumentSite& site) {
    PyObject* interface = PyObject_GetAttrString(value, "__cuda_array_interface__");
    if (!interface) return false;
    PyObject* data = PyDict_Check(interface) ? PyDict_GetItemString(interface, "data") : nullptr;
    PyObject* address = data && PyTuple_Check(data) && PyTuple_GET_SIZE(data) == 2
                            ? PyTuple_GET_ITEM(data, 0)
                            : nullptr;
    bool done = false;
    std::uint64_t magnitude = 0;
    bool negative = false;
    PyObject* mask = PyDict_Check(interface) ? PyDict_GetItemString(interface, "mask") : nullptr;
    if (mask && mask != Py_None)
        PyErr_Format(PyExc_TypeError,
                     "kernel '%s', argument %zu: a masked %s object has no single address",
                     site.kernel.name().c_str(), site.index, Py_TYPE(value)->tp_name);
    else if (!address || !PyLong_Check(address) || !read_long(address, magnitude, negative) ||
             negative)
        PyErr_Format(PyExc_TypeError,
                     "kernel '%s', argument %zu: __cuda_array_interface__ of %s object has no "
                     "address in 'data' (got %R)",
                     site.kernel.name().c_str(), site.index, Py_TYPE(value)->tp_name,
                     data ? data : Py_None);
    else
        done = check_address(value, magnitude, site) && store(magnitude, cell);
    Py_DECREF(interface);
    return done;
}

bool pointer_from_buffer(const Buffer& buffer, std::byte* cell, const ArgumentSite& site) {
    if (buffer.closed) {
        PyErr_Format(PyExc_RuntimeError, "kernel '%s', argument %zu: Buffer has been closed",
                     site.kernel.name().c_str(), site.index);
        return false;
    }
    if (buffer.device == kNoDevice) {
        PyErr_Format(PyExc_TypeError,
                     "kernel '%s', argument %zu: the memory resource of the Buffer says that no "
                     "device reaches it",
                     site.kernel.name().c_str(), site.index);
        return false;
    }
    if (!buffer.reachable_from(site.device) && !peer_reaches(buffer, site.device)) {
        PyErr_Format(
            PyExc_ValueError,
            "kernel '%s', argument %zu: Buffer lies on device %d, but the launch is on device %d",
            site.kernel.name().c_str(), site.index, buffer.device, site.device);
        return false;
    }
    return store(buffer.address, cell);
}

} // namespace cudamod::python
