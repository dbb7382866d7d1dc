#include "handles/library.h"

#include "driver/library.h"
#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/destruction.h"
#include "handles/kernel.h"
#include "handles/registry.h"
#include "handles/retirement.h"

#include <string_view>

namespace cudamod::handles {

static_assert(offsetof(LibraryBox, raw) == 0);

namespace {

// A name that no compiler emits: a good image answers NOT_FOUND to it, a bad one its real fault.
constexpr const char* kNoKernel = "cudamod: no such kernel";

/// The status of an image that the driver has "loaded".
CUresult fault_of(CUlibrary library, bool counts_kernels) {
    unsigned count = 0;
    if (counts_kernels && driver::table.cuLibraryGetKernelCount(&count, library) == CUDA_SUCCESS &&
        count > 0)
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
    if (driver_is_ours()) {
        registry<LibraryBox>().erase_expired(raw);
        forget_kernels_of(raw);
    }
    retire(raw, image_bytes, std::move(used));
}

LibraryHandle load_library(const std::shared_ptr<const ImageMemory>& image, bool compiled,
                           const LoadOptions& options, const std::string& subject) {
    reclaim_beyond_limits();
    const bool counts_kernels = driver::has("cuLibraryGetKernelCount");
    auto used = std::make_shared<UsedByDriver>();
    std::vector<CUjit_option> names;
    std::vector<void*> values;
    auto add = [&](CUjit_option name, std::uintptr_t value) {
        names.push_back(name);
        values.push_back(reinterpret_cast<void*>(value));
    };
    for (auto [name, value] : options.jit)
        add(name, value);
    if (compiled) {
        used->log.emplace();
        add(CU_JIT_ERROR_LOG_BUFFER, reinterpret_cast<std::uintptr_t>(used->log->error_buffer()));
        add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, JitLog::kErrorBytes);
        add(CU_JIT_INFO_LOG_BUFFER, reinterpret_cast<std::uintptr_t>(used->log->info_buffer()));
        add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, JitLog::kInfoBytes);
    }
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
    void* yes = reinterpret_cast<void*>(std::uintptr_t{1});
    if (options.preserve_binary) used->image = image;
    CUlibrary raw = nullptr;
    auto attempt = [&] {
        return driver::table.cuLibraryLoadData(&raw, image->bytes().data(), names.data(),
                                               values.data(), static_cast<unsigned>(names.size()),
                                               &preserved, &yes, options.preserve_binary);
    };
    CUresult status = attempt();
    if (status == CUDA_ERROR_OUT_OF_MEMORY && reclaim() > 0) status = attempt();
    auto refuse = [&](CUresult fault) {
        std::string text = used->log ? used->log->error() : std::string();
        driver::raise(fault, "cuLibraryLoadData", subject, text);
    };
    if (status != CUDA_SUCCESS) refuse(status);
    if (CUresult fault = fault_of(raw, counts_kernels); fault != CUDA_SUCCESS) {
        discard(raw, used);
        refuse(fault);
    }
    auto box = make_box<LibraryBox>(raw, image->bytes().size(), std::move(used));
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

std::optional<GlobalVariable> find_global(const LibraryHandle& library, const std::string& name) {
    GlobalVariable variable{};
    auto attempt = [&](auto function, const char* call) {
        CUresult status = function(&variable.address, &variable.size, *library, name.c_str());
        // A kernel's name answers INVALID_VALUE ("not tracked by CUDA"), and so does an empty one;
        // there is nothing else here that could be invalid.
        if (status == CUDA_ERROR_NOT_FOUND || status == CUDA_ERROR_INVALID_VALUE) {
            driver::take_log(status);
            return false;
        }
        driver::check(status, call, [&] { return "variable '" + name + "'"; });
        return true;
    };
    if (attempt(driver::table.cuLibraryGetGlobal, "cuLibraryGetGlobal") ||
        attempt(driver::table.cuLibraryGetManaged, "cuLibraryGetManaged"))
        return variable;
    return std::nullopt;
}

CUmodule module_of(const LibraryHandle& library) {
    CUmodule module = nullptr;
    driver::check(driver::table.cuLibraryGetModule(&module, *library), "cuLibraryGetModule");
    return module;
}

} // namespace cudamod::handles
