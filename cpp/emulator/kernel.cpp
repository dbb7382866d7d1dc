#include "emulator/kernel.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/library.h"
#include "emulator/module.h"
#include "emulator/objects.h"

#include <algorithm>

namespace cudamod::emulator {

std::shared_ptr<Kernel> find_kernel(CUkernel handle) {
    auto kernel = objects().kernels.find(handle);
    if (!kernel) {
        fail(CUDA_ERROR_INVALID_HANDLE, "Kernel %p %s", static_cast<void*>(handle),
             objects().kernels.is_stale(handle) ? "belongs to a library that was unloaded"
                                                : "does not exist");
    }
    return kernel;
}

std::shared_ptr<KernelSettings> default_settings(const KernelCode& kernel) {
    auto settings = std::make_shared<KernelSettings>();
    constexpr std::uint32_t kDefaultShared = 49152;
    settings->max_dynamic_shared =
        static_cast<int>(kDefaultShared - std::min(kDefaultShared, kernel.static_shared));
    for (int axis = 0; axis < 3; ++axis)
        settings->cluster[axis] = static_cast<int>(kernel.required_cluster[axis]);
    return settings;
}

KernelView view_kernel(Kernel& kernel, Device& device) {
    KernelView view;
    view.code = usable_code(*kernel.library, device);
    view.kernel = view.code->find(kernel.name);
    view.device = &device;
    if (!view.kernel) {
        fail(CUDA_ERROR_NOT_FOUND, "Kernel '%s' does not exist in the code for %s",
             kernel.name.c_str(), device.profile->architecture.c_str());
    }
    auto& settings = kernel.settings[device.ordinal];
    if (!settings) settings = default_settings(*view.kernel);
    view.settings = settings;
    return view;
}

int read_attribute(const KernelView& view, CUfunction_attribute attribute) {
    const KernelCode& kernel = *view.kernel;
    const KernelSettings& settings = *view.settings;
    switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return static_cast<int>(kernel.max_threads);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        return static_cast<int>(kernel.static_shared);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        return static_cast<int>(kernel.constant_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        return static_cast<int>(kernel.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        return static_cast<int>(kernel.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        return kernel.ptx_version;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        return kernel.binary_version;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return settings.max_dynamic_shared;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return settings.carveout;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        return kernel.explicit_cluster || kernel.required_cluster[0] != 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        return settings.cluster[0];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        return settings.cluster[1];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return settings.cluster[2];
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return settings.non_portable_cluster;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return settings.cluster_policy;
    default:
        fail(CUDA_ERROR_INVALID_VALUE, "Kernel attribute %d is unknown to this driver",
             static_cast<int>(attribute));
    }
}

void write_attribute(const KernelView& view, CUfunction_attribute attribute, int value) {
    KernelSettings& settings = *view.settings;
    const auto require_range = [&](int least, int most) {
        if (value < least || value > most) {
            fail(CUDA_ERROR_INVALID_VALUE, "Kernel attribute %d of '%s' takes %d to %d, not %d",
                 static_cast<int>(attribute), view.kernel->name.c_str(), least, most, value);
        }
    };
    switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        require_range(0, view.device->profile->attribute(
                             CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) -
                             static_cast<int>(view.kernel->static_shared));
        settings.max_dynamic_shared = value;
        return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        require_range(-1, 100);
        settings.carveout = value;
        return;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        require_range(0, 1);
        settings.non_portable_cluster = value;
        return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        require_range(0, 2);
        settings.cluster_policy = value;
        return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (view.kernel->required_cluster[0]) {
            fail(CUDA_ERROR_NOT_PERMITTED, "Kernel '%s' has compile-time cluster dimensions",
                 view.kernel->name.c_str());
        }
        require_range(0, view.device->profile->max_cluster * 2);
        settings.cluster[static_cast<int>(attribute) - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] =
            value;
        return;
    default:
        fail(CUDA_ERROR_INVALID_VALUE, "Kernel attribute %d cannot be set",
             static_cast<int>(attribute));
    }
}

void read_parameter(const KernelView& view, std::size_t index, std::size_t* offset,
                    std::size_t* size) {
    require_pointer(offset, "the offset");
    const auto& parameters = view.kernel->parameters;
    if (index >= parameters.size()) {
        fail(CUDA_ERROR_INVALID_VALUE, "Kernel '%s' has %zu parameters, there is no parameter %zu",
             view.kernel->name.c_str(), parameters.size(), index);
    }
    *offset = parameters[index].offset;
    if (size) *size = parameters[index].size;
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

CUDAMOD_API cuKernelGetFunction(CUfunction* function, CUkernel handle) {
    return locked_call(
        "cuKernelGetFunction",
        [&] {
            require_pointer(function, "the function");
            const auto kernel = find_kernel(handle);
            const auto context = current_context();
            const auto view = view_kernel(*kernel, *context->device);
            *function =
                function_in(module_in(kernel->library, context), kernel->name, view)->handle;
        },
        function, handle);
}

CUDAMOD_API cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
    return locked_call(
        "cuKernelGetLibrary",
        [&] {
            require_pointer(library, "the library");
            *library = find_kernel(handle)->library->handle;
        },
        library, handle);
}

CUDAMOD_API cuKernelGetName(const char** name, CUkernel handle) {
    return locked_call(
        "cuKernelGetName",
        [&] {
            require_pointer(name, "the name");
            *name = find_kernel(handle)->name.c_str();
        },
        static_cast<const void*>(name), handle);
}

CUDAMOD_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                 CUdevice device) {
    return locked_call(
        "cuKernelGetAttribute",
        [&] {
            require_pointer(value, "the value");
            *value =
                read_attribute(view_kernel(*find_kernel(handle), device_at(device)), attribute);
        },
        value, static_cast<int>(attribute), handle, device);
}

CUDAMOD_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                 CUdevice device) {
    return locked_call(
        "cuKernelSetAttribute",
        [&] {
            write_attribute(view_kernel(*find_kernel(handle), device_at(device)), attribute, value);
        },
        static_cast<int>(attribute), value, handle, device);
}

CUDAMOD_API cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
    return locked_call(
        "cuKernelGetParamInfo",
        [&] {
            const auto context = current_context();
            read_parameter(view_kernel(*find_kernel(handle), *context->device), index, offset,
                           size);
        },
        handle, index, offset, size);
}

CUDAMOD_API cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
    return locked_call(
        "cuKernelSetCacheConfig",
        [&] {
            device_at(device);
            find_kernel(handle);
        },
        handle, static_cast<int>(config), device);
}
