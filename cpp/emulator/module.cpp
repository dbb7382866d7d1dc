#include "emulator/module.h"

#include "emulator/address_space.h"
#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/image.h"
#include "emulator/library.h"
#include "emulator/memory.h"
#include "emulator/objects.h"

#include <algorithm>
#include <cstring>

namespace cudamod::emulator {
namespace {

std::shared_ptr<Allocation> place(const std::shared_ptr<Context>& context,
                                  const VariableCode& variable) {
    const std::size_t bytes = std::max<std::size_t>(variable.bytes, 1);
    auto memory = variable.managed
                      ? address_space().allocate_host(bytes, MemoryKind::managed)
                      : allocate(context, bytes, std::max<std::size_t>(variable.alignment, 256));
    if (!memory)
        fail(CUDA_ERROR_OUT_OF_MEMORY, "Variable '%s' needs %zu bytes", variable.name.c_str(),
             bytes);
    memory->variable = variable.name;
    memory->read_only = variable.constant;
    memory->context = context;
    memory->device = context->device;
    memory->written.reset();
    std::memset(memory->host, 0, bytes);
    if (!variable.initial.empty())
        std::memcpy(memory->host, variable.initial.data(),
                    std::min(bytes, variable.initial.size()));
    return memory;
}

/// Writes the addresses that initial values refer to.
void relocate(const Module& module) {
    const auto& variables = module.code->variables;
    for (std::size_t index = 0; index < variables.size(); ++index) {
        for (const ptx::Relocation& relocation : variables[index].relocations) {
            std::optional<std::uint64_t> address;
            for (std::size_t other = 0; other < variables.size() && !address; ++other) {
                if (variables[other].name == relocation.symbol)
                    address = module.variables[other]->begin;
            }
            if (!address) address = module.code->program->function_address(relocation.symbol);
            if (!address)
                fail(CUDA_ERROR_INVALID_IMAGE, "Variable '%s' refers to '%s', which is not there",
                     variables[index].name.c_str(), relocation.symbol.c_str());
            const std::uint64_t value = *address + static_cast<std::uint64_t>(relocation.addend);
            if (relocation.offset + sizeof value <= variables[index].bytes) {
                std::memcpy(module.variables[index]->host + relocation.offset, &value,
                            sizeof value);
            }
        }
    }
}

} // namespace

std::shared_ptr<Module> make_module(const std::shared_ptr<Context>& context,
                                    std::shared_ptr<const Code> code) {
    auto module = std::make_shared<Module>();
    module->context = context;
    module->code = std::move(code);
    try {
        for (const VariableCode& variable : module->code->variables)
            module->variables.push_back(place(context, variable));
        relocate(*module);
    } catch (...) {
        for (const auto& variable : module->variables)
            address_space().release(variable);
        throw;
    }
    module->handle = objects().modules.insert(module);
    return module;
}

void unload_module(Module& module) {
    for (const auto& [name, function] : module.functions)
        objects().functions.erase(function);
    module.functions.clear();
    for (const auto& variable : module.variables)
        address_space().release(variable);
    objects().modules.erase(module.handle);
}

std::shared_ptr<Module> find_module(CUmodule handle) {
    auto module = objects().modules.find(handle);
    if (!module) {
        fail(CUDA_ERROR_INVALID_HANDLE, "Module %p %s", static_cast<void*>(handle),
             objects().modules.is_stale(handle) ? "was unloaded" : "does not exist");
    }
    return module;
}

std::shared_ptr<Function> function_in(const std::shared_ptr<Module>& module,
                                      const std::string& name, const KernelView& view) {
    auto& handle = module->functions[name];
    if (!handle) {
        auto function = std::make_shared<Function>();
        function->module = module;
        function->view = view;
        handle = function->handle = objects().functions.insert(function);
    }
    return objects().functions.find(handle);
}

std::shared_ptr<Function> find_function(CUfunction handle) {
    if (auto function = objects().functions.find(handle)) return function;
    if (const auto kernel = objects().kernels.find(reinterpret_cast<CUkernel>(handle))) {
        const auto context = current_context();
        const auto view = view_kernel(*kernel, *context->device);
        return function_in(module_in(kernel->library, context), kernel->name, view);
    }
    const bool stale = objects().functions.is_stale(handle) ||
                       objects().kernels.is_stale(reinterpret_cast<CUkernel>(handle));
    fail(CUDA_ERROR_INVALID_HANDLE, "Function %p %s", static_cast<void*>(handle),
         stale ? "belongs to code that was unloaded" : "does not exist");
}

std::shared_ptr<Allocation> find_variable(const Module& module, const char* name) {
    const auto& variables = module.code->variables;
    const auto found = std::find_if(variables.begin(), variables.end(),
                                    [&](const auto& variable) { return variable.name == name; });
    if (found == variables.end()) fail(CUDA_ERROR_NOT_FOUND, "Variable (%s) cannot be found", name);
    return module.variables[static_cast<std::size_t>(found - variables.begin())];
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void load(CUmodule* handle, std::vector<std::byte> bytes, unsigned count, CUjit_option* options,
          void** values) {
    require_pointer(handle, "the module");
    if (count && (!options || !values))
        fail(CUDA_ERROR_INVALID_VALUE, "%u JIT options were announced and none given", count);
    const auto context = current_context();
    const auto code =
        decode(bytes, *context->device->profile, max_registers_of(count, options, values));
    write_logs(*code, count, options, values);
    if (code->status != CUDA_SUCCESS) fail(code->status, "%s", code->sentence.c_str());
    *handle = make_module(context, code)->handle;
}

std::shared_ptr<Module> find_in_context(CUmodule handle) {
    current_context();
    return find_module(handle);
}

CUfunction function_called(const std::shared_ptr<Module>& module, const char* name) {
    const KernelCode* kernel = module->code->find(name);
    if (!kernel) fail(CUDA_ERROR_NOT_FOUND, "Function (%s) cannot be found in module", name);
    KernelView view{module->code, kernel, nullptr, module->context->device};
    if (const auto library = module->library.lock()) {
        view.settings =
            view_kernel(*kernel_called(library, name), *module->context->device).settings;
    } else if (const auto known = module->functions.find(name); known != module->functions.end()) {
        return known->second;
    } else {
        view.settings = default_settings(*kernel);
    }
    return function_in(module, name, view)->handle;
}

} // namespace

CUDAMOD_API cuModuleLoad(CUmodule* module, const char* path) {
    return locked_call(
        "cuModuleLoad",
        [&] {
            require_pointer(path, "the path");
            load(module, read_file(path), 0, nullptr, nullptr);
        },
        module, path);
}

CUDAMOD_API cuModuleLoadData(CUmodule* module, const void* image) {
    return locked_call(
        "cuModuleLoadData",
        [&] {
            require_pointer(image, "the image");
            load(module, copy_image(image), 0, nullptr, nullptr);
        },
        module, image);
}

CUDAMOD_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                               CUjit_option* options, void** values) {
    return locked_call(
        "cuModuleLoadDataEx",
        [&] {
            require_pointer(image, "the image");
            load(module, copy_image(image), count, options, values);
        },
        module, image, count, options, values);
}

CUDAMOD_API cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    return locked_call(
        "cuModuleLoadFatBinary",
        [&] {
            require_pointer(image, "the image");
            load(module, copy_image(image), 0, nullptr, nullptr);
        },
        module, image);
}

CUDAMOD_API cuModuleUnload(CUmodule handle) {
    return unlocked_call(
        "cuModuleUnload",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto context = current_context();
            auto module = find_module(handle);
            if (module->of_library)
                fail(CUDA_ERROR_NOT_PERMITTED, "The module belongs to a library");
            lock.unlock();
            drain(module->context);
            lock.lock();
            unload_module(*find_module(handle));
        },
        handle);
}

CUDAMOD_API cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
    return locked_call(
        "cuModuleGetFunction",
        [&] {
            require_pointer(function, "the function");
            require_pointer(name, "the name");
            *function = function_called(find_in_context(handle), name);
        },
        function, handle, name);
}

CUDAMOD_API cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
    return locked_call(
        "cuModuleGetFunctionCount",
        [&] {
            require_pointer(count, "the count");
            *count = static_cast<unsigned>(find_in_context(handle)->code->kernels.size());
        },
        count, handle);
}

CUDAMOD_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule handle) {
    return locked_call(
        "cuModuleEnumerateFunctions",
        [&] {
            const auto module = find_in_context(handle);
            if (count) require_pointer(functions, "the functions");
            for (unsigned index = 0;
                 index < std::min<std::size_t>(count, module->code->kernels.size()); ++index) {
                functions[index] =
                    function_called(module, module->code->kernels[index].name.c_str());
            }
        },
        functions, count, handle);
}

CUDAMOD_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                                 const char* name) {
    return locked_call(
        "cuModuleGetGlobal",
        [&] {
            require_pointer(name, "the name");
            const auto variable = find_variable(*find_in_context(handle), name);
            if (address) *address = variable->begin;
            if (bytes) *bytes = variable->bytes;
        },
        address, bytes, handle, name);
}

CUDAMOD_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    return locked_call(
        "cuModuleGetLoadingMode",
        [&] {
            require_pointer(mode, "the mode");
            *mode = CU_MODULE_LAZY_LOADING;
        },
        mode);
}
