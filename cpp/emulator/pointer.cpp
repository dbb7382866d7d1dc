#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/memory.h"
#include "emulator/pool.h"

#include <cstring>

using namespace cudamod::emulator;

namespace {

/// Writes one attribute of memory that the driver knows; false when the attribute is unknown or the
/// memory has none.
bool write_attribute(const Allocation& allocation, CUdeviceptr address,
                     CUpointer_attribute attribute, void* data) {
    const auto put = [&](auto value) {
        std::memcpy(data, &value, sizeof value);
        return true;
    };
    const bool on_host =
        allocation.kind == MemoryKind::pinned || allocation.kind == MemoryKind::registered;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return allocation.context && put(allocation.context->handle);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put(static_cast<unsigned>(on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return put(address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return allocation.kind != MemoryKind::device && put(address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return put(0u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return put(static_cast<unsigned long long>(allocation.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return put(static_cast<unsigned char>(allocation.kind == MemoryKind::managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put(allocation.device ? allocation.device->ordinal : 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return put(
            static_cast<unsigned char>(allocation.kind == MemoryKind::device && !allocation.pool));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return put(static_cast<CUdeviceptr>(allocation.begin));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return put(allocation.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return put(static_cast<unsigned char>(1));
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return put(cuuint64_t{allocation.pool ? allocation.pool->handle_types : 0});
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return put(static_cast<unsigned char>(0));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return put(static_cast<unsigned>(allocation.read_only
                                             ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                             : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return put(allocation.pool ? allocation.pool->handle : nullptr);
    default:
        return false;
    }
}

/// What cuPointerGetAttributes writes for memory that the driver does not know.
void write_nothing(CUpointer_attribute attribute, void* data) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        std::memset(data, 0, 4);
        return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
        const int none = -2;
        std::memcpy(data, &none, sizeof none);
        return;
    }
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        std::memset(data, 0, 1);
        return;
    default:
        std::memset(data, 0, 8);
    }
}

void require_known(CUpointer_attribute attribute) {
    if (attribute < CU_POINTER_ATTRIBUTE_CONTEXT ||
        attribute > CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE ||
        attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
        fail(CUDA_ERROR_INVALID_VALUE, "Pointer attribute %d is unknown",
             static_cast<int>(attribute));
    }
}

} // namespace

CUDAMOD_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    return locked_call(
        "cuPointerGetAttribute",
        [&] {
            require_pointer(data, "the value");
            require_known(attribute);
            const auto allocation = address_space().find(address);
            if (!allocation || !write_attribute(*allocation, address, attribute, data)) {
                fail(CUDA_ERROR_INVALID_VALUE, "Pointer attribute %d is not known of %s",
                     static_cast<int>(attribute), address_space().explain(address).c_str());
            }
        },
        static_cast<const void*>(data), static_cast<int>(attribute), address);
}

CUDAMOD_API cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                   CUdeviceptr address) {
    return locked_call(
        "cuPointerGetAttributes",
        [&] {
            if (!count) fail(CUDA_ERROR_INVALID_VALUE, "No attribute was asked");
            require_pointer(attributes, "the attributes");
            require_pointer(data, "the values");
            const auto allocation = address_space().find(address);
            for (unsigned index = 0; index < count; ++index) {
                require_pointer(data[index], "a value");
                require_known(attributes[index]);
                if (!allocation ||
                    !write_attribute(*allocation, address, attributes[index], data[index])) {
                    write_nothing(attributes[index], data[index]);
                }
            }
        },
        count, attributes, data, address);
}
