#pragma once

#include "emulator/api.h"
#include "emulator/code.h"
#include "emulator/kernel.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cudamod::emulator {

struct Allocation;
struct Context;
struct Library;

/// An image loaded into one context: its variables have memory there and its kernels are functions.
struct Module {
    CUmodule handle = nullptr;
    std::shared_ptr<Context> context;
    std::weak_ptr<Library> library; ///< empty for a module of cuModuleLoad*
    bool of_library = false;
    std::shared_ptr<const Code> code;
    std::vector<std::shared_ptr<Allocation>> variables; ///< by position in code->variables
    std::map<std::string, CUfunction> functions;        ///< those that were asked for
};

/// A kernel in a context.
struct Function {
    CUfunction handle = nullptr;
    std::shared_ptr<Module> module;
    KernelView view;
    bool loaded = false;
};

/// Loads code into a context: allocates and initialises its variables. Fails with
/// CUDA_ERROR_OUT_OF_MEMORY.
std::shared_ptr<Module> make_module(const std::shared_ptr<Context>& context,
                                    std::shared_ptr<const Code> code);

/// Ends a module: its variables are freed, its functions are gone.
void unload_module(Module& module);

std::shared_ptr<Module> find_module(CUmodule handle);

/// The function called `name`, the same handle each time; fails with CUDA_ERROR_NOT_FOUND.
std::shared_ptr<Function> function_in(const std::shared_ptr<Module>& module,
                                      const std::string& name, const KernelView& view);

/// What a CUfunction argument means: a function, or a kernel (CUkernel) in the given context.
std::shared_ptr<Function> find_function(CUfunction handle);

/// Address and size of a variable; fails with CUDA_ERROR_NOT_FOUND.
std::shared_ptr<Allocation> find_variable(const Module& module, const char* name);

} // namespace cudamod::emulator
