#include "emulator/library.h"

#include "emulator/address_space.h"
#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/kernel.h"
#include "emulator/module.h"
#include "emulator/objects.h"

#include <algorithm>

namespace cudamod::emulator {

Device& device_in_view() {
    const auto context = try_current_context();
    return context ? *context->device : device_at(0);
}

std::shared_ptr<Library> find_library(CUlibrary handle) {
    auto library = objects().libraries.find(handle);
    if (!library) {
        fail(CUDA_ERROR_INVALID_HANDLE, "Library %p %s", static_cast<void*>(handle),
             objects().libraries.is_stale(handle) ? "was unloaded" : "does not exist");
    }
    return library;
}

std::shared_ptr<const Code> usable_code(Library& library, const Device& device) {
    auto code = library.image->code_for(*device.profile);
    if (code->status != CUDA_SUCCESS) fail(code->status, "%s", code->sentence.c_str());
    return code;
}

std::shared_ptr<Module> module_in(const std::shared_ptr<Library>& library,
                                  const std::shared_ptr<Context>& context) {
    const auto known = library->modules.find(context->id);
    if (known != library->modules.end()) return known->second;
    auto module = make_module(context, usable_code(*library, *context->device));
    module->library = library;
    module->of_library = true;
    library->modules[context->id] = module;
    return module;
}

std::shared_ptr<Kernel> kernel_called(const std::shared_ptr<Library>& library,
                                      const std::string& name) {
    auto& kernel = library->kernels[name];
    if (!kernel) {
        kernel = std::make_shared<Kernel>();
        kernel->library = library;
        kernel->name = name;
        kernel->handle = objects().kernels.insert(kernel);
    }
    return kernel;
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void load(CUlibrary* handle, std::vector<std::byte> bytes, unsigned jit_count,
          CUjit_option* jit_options, void** jit_values, unsigned option_count,
          CUlibraryOption* options) {
    require_pointer(handle, "the library");
    if (jit_count && (!jit_options || !jit_values))
        fail(CUDA_ERROR_INVALID_VALUE, "%u JIT options were announced and none given", jit_count);
    for (unsigned index = 0; index < option_count; ++index) {
        if (!options || options[index] >= CU_LIBRARY_NUM_OPTIONS)
            fail(CUDA_ERROR_INVALID_VALUE, "Library option %u is unknown", index);
    }
    auto library = std::make_shared<Library>();
    library->image = std::make_unique<Image>(std::move(bytes),
                                             max_registers_of(jit_count, jit_options, jit_values));
    const auto code = library->image->code_for(*device_in_view().profile);
    write_logs(*code, jit_count, jit_options, jit_values);
    if (code->fails_at_load) fail(code->status, "%s", code->sentence.c_str());
    *handle = library->handle = objects().libraries.insert(library);
}

std::shared_ptr<Allocation> variable_of(CUlibrary handle, const char* name, bool managed) {
    require_pointer(name, "the name");
    const auto library = find_library(handle);
    const auto context = current_context();
    const auto module = module_in(library, context);
    if (!managed) {
        if (!*name) fail(CUDA_ERROR_INVALID_VALUE, "The name of a variable is empty");
        const auto code = usable_code(*library, *context->device);
        for (const KernelCode& kernel : code->kernels) {
            if (kernel.name == name) fail(CUDA_ERROR_INVALID_VALUE, "'%s' is a kernel", name);
        }
    }
    auto variable = find_variable(*module, name);
    if ((variable->kind == MemoryKind::managed) != managed) {
        fail(CUDA_ERROR_NOT_FOUND, "Variable '%s' is %smanaged", name, managed ? "not " : "");
    }
    return variable;
}

} // namespace

CUDAMOD_API cuLibraryLoadData(CUlibrary* handle, const void* image, CUjit_option* jit_options,
                              void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                              void** values, unsigned int count) {
    return locked_call(
        "cuLibraryLoadData",
        [&] {
            require_pointer(image, "the image");
            load(handle, copy_image(image), jit_count, jit_options, jit_values, count, options);
        },
        handle, image, jit_options, jit_values, jit_count, options, values, count);
}

CUDAMOD_API cuLibraryLoadFromFile(CUlibrary* handle, const char* path, CUjit_option* jit_options,
                                  void** jit_values, unsigned int jit_count,
                                  CUlibraryOption* options, void** values, unsigned int count) {
    return locked_call(
        "cuLibraryLoadFromFile",
        [&] {
            require_pointer(path, "the path");
            load(handle, read_file(path), jit_count, jit_options, jit_values, count, options);
        },
        handle, path, jit_options, jit_values, jit_count, options, values, count);
}

CUDAMOD_API cuLibraryUnload(CUlibrary handle) {
    return unlocked_call(
        "cuLibraryUnload",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto library = find_library(handle);
            // Unloading what was resident waits for the whole device, as the card does.
            std::vector<std::shared_ptr<Context>> contexts;
            for (const auto& [id, module] : library->modules)
                contexts.push_back(module->context);
            lock.unlock();
            for (const auto& context : contexts)
                drain(context);
            lock.lock();
            if (library->unloaded)
                fail(CUDA_ERROR_INVALID_HANDLE, "Another thread unloaded the library");
            library->unloaded = true;
            for (const auto& [id, module] : library->modules)
                unload_module(*module);
            library->modules.clear();
            if (settings().manner == Manner::strict) {
                for (const auto& [name, kernel] : library->kernels)
                    objects().kernels.erase(kernel->handle);
                library->kernels.clear();
            }
            objects().libraries.erase(handle);
        },
        handle);
}

CUDAMOD_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
    return locked_call(
        "cuLibraryGetKernel",
        [&] {
            require_pointer(kernel, "the kernel");
            require_pointer(name, "the name");
            const auto library = find_library(handle);
            if (!usable_code(*library, device_in_view())->find(name)) {
                fail(CUDA_ERROR_NOT_FOUND, "Kernel (%s) cannot be found in library", name);
            }
            *kernel = kernel_called(library, name)->handle;
        },
        kernel, handle, name);
}

CUDAMOD_API cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
    return locked_call(
        "cuLibraryGetKernelCount",
        [&] {
            require_pointer(count, "the count");
            *count = static_cast<unsigned>(
                find_library(handle)->image->code_for(*device_in_view().profile)->kernels.size());
        },
        count, handle);
}

CUDAMOD_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary handle) {
    return locked_call(
        "cuLibraryEnumerateKernels",
        [&] {
            const auto library = find_library(handle);
            const auto code = library->image->code_for(*device_in_view().profile);
            if (count) require_pointer(kernels, "the kernels");
            for (unsigned index = 0; index < std::min<std::size_t>(count, code->kernels.size());
                 ++index) {
                kernels[index] = kernel_called(library, code->kernels[index].name)->handle;
            }
        },
        kernels, count, handle);
}

CUDAMOD_API cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
    return locked_call(
        "cuLibraryGetModule",
        [&] {
            require_pointer(module, "the module");
            *module = module_in(find_library(handle), current_context())->handle;
        },
        module, handle);
}

CUDAMOD_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                               const char* name) {
    return locked_call(
        "cuLibraryGetGlobal",
        [&] {
            const auto variable = variable_of(handle, name, false);
            if (address) *address = variable->begin;
            if (bytes) *bytes = variable->bytes;
        },
        address, bytes, handle, name);
}

CUDAMOD_API cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                                const char* name) {
    return locked_call(
        "cuLibraryGetManaged",
        [&] {
            const auto variable = variable_of(handle, name, true);
            if (address) *address = variable->begin;
            if (bytes) *bytes = variable->bytes;
        },
        address, bytes, handle, name);
}

CUDAMOD_API cuLibraryGetUnifiedFunction(void** function, CUlibrary handle, const char* name) {
    return locked_call(
        "cuLibraryGetUnifiedFunction",
        [&] {
            require_pointer(function, "the function");
            require_pointer(name, "the name");
            find_library(handle);
            fail(CUDA_ERROR_NOT_FOUND,
                 "The device has no unified function pointers, so there is none of '%s'", name);
        },
        function, handle, name);
}
