#include "handles/kernel.h"

#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/destruction.h"
#include "handles/registry.h"

#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cudamod::handles {

static_assert(offsetof(KernelBox, raw) == 0);

namespace {

/// The kernels that were found in our libraries, for as long as the library is loaded: a value that
/// comes back finds its library even when no handle of the kernel is left. Lock: a leaf.
class FoundKernels {
  public:
    void insert(CUkernel raw, CUlibrary library, const std::string& name) {
        std::lock_guard lock(mutex_);
        if (kernels_.insert_or_assign(raw, Found{library, name}).second)
            of_library_[library].push_back(raw);
    }

    /// The library (no handle of it) and the name; nothing for a kernel that isn't ours.
    std::optional<std::pair<CUlibrary, std::string>> find(CUkernel raw) const {
        std::lock_guard lock(mutex_);
        auto it = kernels_.find(raw);
        if (it == kernels_.end()) return std::nullopt;
        return std::pair(it->second.library, it->second.name);
    }

    void erase(CUlibrary library) noexcept {
        std::lock_guard lock(mutex_);
        auto it = of_library_.find(library);
        if (it == of_library_.end()) return;
        for (CUkernel kernel : it->second)
            kernels_.erase(kernel);
        of_library_.erase(it);
    }

  private:
    struct Found {
        CUlibrary library;
        std::string name;
    };
    mutable std::mutex mutex_;
    std::unordered_map<CUkernel, Found> kernels_;
    std::unordered_map<CUlibrary, std::vector<CUkernel>> of_library_;
};

FoundKernels& found_kernels() {
    static auto* instance = new FoundKernels; // libraries die after static destruction, too
    return *instance;
}

} // namespace

KernelBox::~KernelBox() {
    if (driver_is_ours()) registry<KernelBox>().erase_expired(raw);
}

KernelHandle find_kernel(const LibraryHandle& library, const std::string& name) {
    CUkernel raw = nullptr;
    CUresult status = driver::table.cuLibraryGetKernel(&raw, *library, name.c_str());
    if (status == CUDA_ERROR_NOT_FOUND) {
        driver::take_log(status);
        return nullptr;
    }
    driver::check(status, "cuLibraryGetKernel", [&] { return "kernel '" + name + "'"; });
    found_kernels().insert(raw, *library, name);
    if (auto known = registry<KernelBox>().find(raw); known && known->library == library)
        return alias<KernelBox>(std::move(known));
    auto fresh = make_box<KernelBox>(raw, library, name);
    auto box = registry<KernelBox>().find_or_insert(fresh);
    if (box->library != library) {
        // A wrapper around somebody else's kernel stood here; its library is gone and the value was
        // reused.
        registry<KernelBox>().insert(fresh);
        box = std::move(fresh);
    }
    return alias<KernelBox>(std::move(box));
}

KernelHandle kernel_from_raw(CUkernel raw, const LibraryHandle& library) {
    if (auto ours = registry<KernelBox>().find(raw)) return alias<KernelBox>(std::move(ours));
    if (auto found = found_kernels().find(raw))
        if (auto owner = registry<LibraryBox>().find(found->first))
            return alias<KernelBox>(registry<KernelBox>().find_or_insert(make_box<KernelBox>(
                raw, alias<LibraryBox>(std::move(owner)), std::move(found->second))));
    std::string name = describe(KernelBox::kKind, value_of(raw));
    return alias<KernelBox>(
        registry<KernelBox>().find_or_insert(make_box<KernelBox>(raw, library, std::move(name))));
}

void forget_kernels_of(CUlibrary library) noexcept {
    found_kernels().erase(library);
}

} // namespace cudamod::handles
