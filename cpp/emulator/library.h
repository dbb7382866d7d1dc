#pragma once

#include "emulator/api.h"
#include "emulator/image.h"

#include <map>
#include <memory>
#include <string>

namespace cudamod::emulator {

struct Context;
struct Device;
struct Kernel;
struct Module;

/// A library belongs to no context: it has kernels at once, and a module in each context that uses
/// it.
struct Library {
    CUlibrary handle = nullptr;
    std::unique_ptr<Image> image;
    std::map<std::string, std::shared_ptr<Kernel>> kernels;        ///< those that were asked for
    std::map<unsigned long long, std::shared_ptr<Module>> modules; ///< by context id
    bool unloaded = false;
};

/// The library behind a handle; fails with CUDA_ERROR_INVALID_HANDLE.
std::shared_ptr<Library> find_library(CUlibrary handle);

/// The library's code for a device; fails with the status of an image that the device cannot use.
std::shared_ptr<const Code> usable_code(Library& library, const Device& device);

/// The library's module in a context, loaded at the first use.
std::shared_ptr<Module> module_in(const std::shared_ptr<Library>& library,
                                  const std::shared_ptr<Context>& context);

/// The library's kernel of that name, the same object each time.
std::shared_ptr<Kernel> kernel_called(const std::shared_ptr<Library>& library,
                                      const std::string& name);

/// The device whose code a call without a current context means.
Device& device_in_view();

} // namespace cudamod::emulator
