#pragma once

#include <cstdint>

/// The parts of DLPack's ABI (1.x) that are read or written here, under the specification's own
/// names.
namespace cudamod::python::dlpack {

constexpr std::int32_t kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13;
constexpr std::uint8_t kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4;

struct DLPackVersion {
    std::uint32_t major, minor;
};
struct DLDevice {
    std::int32_t device_type, device_id;
};
struct DLDataType {
    std::uint8_t code, bits;
    std::uint16_t lanes;
};
struct DLTensor {
    void* data;
    DLDevice device;
    std::int32_t ndim;
    DLDataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;
    std::uint64_t byte_offset;
};
struct DLManagedTensor {
    DLTensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned*);
    std::uint64_t flags;
    DLTensor dl_tensor;
};
struct DLPackExchangeAPI {
    DLPackVersion version;
    DLPackExchangeAPI* prev_api;
    void* managed_tensor_allocator;
    void* managed_tensor_from_py_object_no_sync;
    void* managed_tensor_to_py_object_no_sync;
    int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* tensor);
    int (*current_work_stream)(std::int32_t device_type, std::int32_t device_id, void** stream);
};

} // namespace cudamod::python::dlpack
