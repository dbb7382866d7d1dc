#include "handles/kernel.h"

#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/destruction.h"
#include "handles/registry.h"

#include <cstddef>
#include <utility>

namespace cudamod::handles {

static_assert(offsetof(KernelBox, raw) == 0);

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
    std::string name = describe(KernelBox::kKind, value_of(raw));
    return alias<KernelBox>(
        registry<KernelBox>().find_or_insert(make_box<KernelBox>(raw, library, std::move(name))));
}

} // namespace cudamod::handles
