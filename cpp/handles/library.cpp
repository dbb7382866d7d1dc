#include "handles/library.h"

#include "driver/library.h"
#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/destruction.h"
#include "handles/registry.h"
#include "handles/retirement.h"

#include <string_view>

namespace cudamod::handles {

static_assert(offsetof(LibraryBox, raw) == 0);

namespace {

// A name that no compiler emits: a good image answers NOT_FOUND to it, a bad one its real fault.
constexpr const char* kNoKernel = "cudamod: no such kernel";

/// The status of an image that the driver has "loaded".
CUresult fault_of(CUlibrary library) {
    unsigned count = 0;
    if (driver::has("cuLibraryGetKernelCount") &&
        driver::table.cuLibraryGetKernelCount(&count, library) == CUDA_SUCCESS && count > 0)
        return CUDA_SUCCESS;
    CUkernel kernel = nullptr;
    CUresult status = driver::table.cuLibraryGetKernel(&kernel, library, kNoKernel);
    driver::take_log(status);
    return status == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : status;
}

} // namespace

JitLog::JitLog() : error_(new char[kErrorBytes]), info_(new char[kInfoBytes]) {
    error_[0] = info_[0] = '\0';
}

LibraryBox::~LibraryBox() {
    if (!driver_is_ours()) return;
    registry<LibraryBox>().erase_expired(raw);
    retire(raw, image_bytes);
}

LibraryHandle load_library(std::span<const char> image, bool compiled, const LoadOptions& options,
                           const std::string& subject) {
    reclaim_beyond_limits();
    std::unique_ptr<JitLog> log;
    std::vector<CUjit_option> names;
    std::vector<void*> values;
    auto add = [&](CUjit_option name, std::uintptr_t value) {
        names.push_back(name);
        values.push_back(reinterpret_cast<void*>(value));
    };
    for (auto [name, value] : options.jit)
        add(name, value);
    if (compiled) {
        log = std::make_unique<JitLog>();
        add(CU_JIT_ERROR_LOG_BUFFER, reinterpret_cast<std::uintptr_t>(log->error_buffer()));
        add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, JitLog::kErrorBytes);
        add(CU_JIT_INFO_LOG_BUFFER, reinterpret_cast<std::uintptr_t>(log->info_buffer()));
        add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, JitLog::kInfoBytes);
    }
    CUlibrary raw = nullptr;
    auto attempt = [&] {
        return driver::table.cuLibraryLoadData(&raw, image.data(), names.data(), values.data(),
                                               static_cast<unsigned>(names.size()), nullptr,
                                               nullptr, 0);
    };
    CUresult status = attempt();
    if (status == CUDA_ERROR_OUT_OF_MEMORY && reclaim() > 0) status = attempt();
    auto refuse = [&](CUresult fault, const char* call) {
        std::string text = log ? log->error() : std::string();
        driver::raise(fault, call, subject, text);
    };
    if (status != CUDA_SUCCESS) refuse(status, "cuLibraryLoadData");
    // Owned from here on: a failure below unloads it again.
    auto box = make_box<LibraryBox>(raw, image.size(), std::move(log));
    if (CUresult fault = fault_of(raw); fault != CUDA_SUCCESS) {
        std::string text = box->log ? box->log->error() : std::string();
        driver::raise(fault, "cuLibraryLoadData", subject, text);
    }
    registry<LibraryBox>().insert(box);
    return alias<LibraryBox>(std::move(box));
}

std::vector<std::string> kernel_names(const LibraryHandle& library) {
    std::vector<std::string> names;
    if (!driver::has("cuLibraryEnumerateKernels") || !driver::has("cuKernelGetName")) return names;
    unsigned count = 0;
    driver::check(driver::table.cuLibraryGetKernelCount(&count, *library),
                  "cuLibraryGetKernelCount");
    std::vector<CUkernel> kernels(count);
    if (count)
        driver::check(driver::table.cuLibraryEnumerateKernels(kernels.data(), count, *library),
                      "cuLibraryEnumerateKernels");
    for (CUkernel kernel : kernels) {
        const char* name = nullptr;
        driver::check(driver::table.cuKernelGetName(&name, kernel), "cuKernelGetName");
        names.emplace_back(name);
    }
    return names;
}

} // namespace cudamod::handles
