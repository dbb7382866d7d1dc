#include "driver/search.h"

#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>

#include <cuda.h>

#include "driver/library.h"
#include "driver/status.h"

namespace cudamod::driver {
namespace {

constexpr const char* kLibraryName = "libcuda.so.1";
constexpr const char* kEmulatedName = "libcudamod_emulated_driver.so";

/// Folders with libcuda that the loader's own search does not always cover.
constexpr const char* kUsualFolders[] = {
    "/usr/lib/wsl/lib",           // Windows Subsystem for Linux
    "/usr/local/nvidia/lib64",    // container runtimes that mount the driver
    "/run/opengl-driver/lib",     // NixOS
    "/usr/lib/x86_64-linux-gnu",  //
    "/usr/lib/aarch64-linux-gnu", //
    "/usr/lib64",
    "/usr/lib64/nvidia",
    "/usr/lib",
};

/// The folder of the file that holds `address`.
std::filesystem::path folder_of(const void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
    return std::filesystem::path(info.dli_fname).parent_path();
}

template <class Pointer>
Pointer find(void* handle, const char* name) {
    return reinterpret_cast<Pointer>(dlsym(handle, name));
}

std::string answered(const char* call, CUresult status) {
    return std::string(call) + " answered " + std::to_string(status) + " (" + status_name(status) +
           ")";
}

/// What is wrong with the library, or nothing. `started` tells whether cuInit was called.
std::string complaint(void* handle, int& version, bool& started) {
    const auto get_version = find<decltype(&cuDriverGetVersion)>(handle, "cuDriverGetVersion");
    const auto initialize = find<decltype(&cuInit)>(handle, "cuInit");
    const auto count_devices = find<decltype(&cuDeviceGetCount)>(handle, "cuDeviceGetCount");
    if (get_version == nullptr || initialize == nullptr || count_devices == nullptr)
        return "not a CUDA driver: it has no cuInit, cuDriverGetVersion or cuDeviceGetCount";
    if (const CUresult status = get_version(&version); status == CUDA_ERROR_STUB_LIBRARY)
        return "a stub library for linking, not a driver";
    else if (status != CUDA_SUCCESS)
        return answered("cuDriverGetVersion", status);
    if (version < kOldestVersion)
        return "the driver supports CUDA " + version_text(version) + "; CUDA " +
               version_text(kOldestVersion) + " or newer is needed";
    if (dlsym(handle, kGetEntryName) == nullptr)
        return std::string("not a CUDA driver: it has no ") + kGetEntryName;
    started = true;
    switch (const CUresult status = initialize(0)) {
    case CUDA_SUCCESS:
        break;
    case CUDA_ERROR_STUB_LIBRARY:
        return "a stub library for linking, not a driver";
    case CUDA_ERROR_NO_DEVICE:
        return "no CUDA device: " + answered("cuInit", status);
    default:
        return answered("cuInit", status);
    }
    int count = 0;
    if (const CUresult status = count_devices(&count); status != CUDA_SUCCESS)
        return answered("cuDeviceGetCount", status);
    if (count == 0) return "no CUDA device: cuDeviceGetCount says 0";
    return {};
}

} // namespace

std::vector<std::string> places(const std::string& choice) {
    if (choice == "emulated") return {(folder_of(kUsualFolders) / kEmulatedName).string()};
    if (choice != "auto") {
        // A name without a slash would send the loader searching; a path is a path.
        return {choice.find('/') == std::string::npos ? "./" + choice : choice};
    }
    std::vector<std::string> found{kLibraryName};
    for (const char* folder : kUsualFolders) {
        const auto path = std::filesystem::path(folder) / kLibraryName;
        std::error_code ignored;
        if (std::filesystem::exists(path, ignored)) found.push_back(path.string());
    }
    return found;
}

std::optional<Candidate> probe(const std::string& place, std::string& reason) {
    void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const message = dlerror();
        reason = message == nullptr ? "cannot be loaded" : message;
        if (reason.starts_with(place + ": ")) reason.erase(0, place.size() + 2);
        return std::nullopt;
    }
    int version = 0;
    bool started = false;
    reason = complaint(handle, version, started);
    Dl_info info{};
    const bool known = dladdr(dlsym(handle, "cuInit"), &info) != 0 && info.dli_fname != nullptr;
    if (reason.empty()) return Candidate{handle, known ? info.dli_fname : place, version};
    if (known && place != info.dli_fname) reason += std::string(" (") + info.dli_fname + ")";
    // A driver that was started may have threads of its own; it stays loaded.
    if (!started) dlclose(handle);
    return std::nullopt;
}

} // namespace cudamod::driver
