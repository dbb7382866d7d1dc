#pragma once

#include "emulator/api.h"
#include "emulator/code.h"

#include <array>
#include <map>
#include <memory>
#include <string>

namespace cudamod::emulator {

struct Device;
struct Library;

/// What cuKernelSetAttribute and cuFuncSetAttribute change.
struct KernelSettings {
    int max_dynamic_shared = 0;
    int carveout = -1;
    int non_portable_cluster = 0;
    int cluster_policy = 0;
    std::array<int, 3> cluster{};
};

struct Kernel {
    CUkernel handle = nullptr;
    std::shared_ptr<Library> library;
    std::string name;
    std::map<int, std::shared_ptr<KernelSettings>> settings; ///< by device ordinal
};

/// The kernel behind a handle; fails with CUDA_ERROR_INVALID_HANDLE.
std::shared_ptr<Kernel> find_kernel(CUkernel handle);

/// The kernel's code for a device and the settings that go with it.
struct KernelView {
    std::shared_ptr<const Code> code; ///< keeps `kernel` alive
    const KernelCode* kernel = nullptr;
    std::shared_ptr<KernelSettings> settings;
    Device* device = nullptr;
};

KernelView view_kernel(Kernel& kernel, Device& device);

/// The settings that a fresh kernel has.
std::shared_ptr<KernelSettings> default_settings(const KernelCode& kernel);

/// Attribute of a kernel; fails with CUDA_ERROR_INVALID_VALUE for one that this driver does not
/// know.
int read_attribute(const KernelView& view, CUfunction_attribute attribute);

/// Changes an attribute; fails with CUDA_ERROR_INVALID_VALUE for one that cannot be set, or that
/// value.
void write_attribute(const KernelView& view, CUfunction_attribute attribute, int value);

/// Offset and size of parameter `index`; fails with CUDA_ERROR_INVALID_VALUE past the last.
void read_parameter(const KernelView& view, std::size_t index, std::size_t* offset,
                    std::size_t* size);

} // namespace cudamod::emulator
