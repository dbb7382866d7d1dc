#include "emulator/kernel_memory.h"

#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/pool.h"
#include "emulator/stream_order.h"

#include <algorithm>

namespace cudamod::emulator {

KernelMemory::KernelMemory(const ValidLaunch& launch) : context_(launch.function->module->context) {
    if (const auto& work = running_work()) uses_.emplace(work, launch);
}

bool KernelMemory::reachable(const Allocation& allocation) const {
    if (allocation.backing) return allocation.access.contains(context_->device->ordinal);
    if (allocation.pool) return allocation.pool->accessible_from(*context_->device);
    if (allocation.kind != MemoryKind::device || allocation.device == context_->device) return true;
    return allocation.context && context_->peers.contains(allocation.context->id);
}

bool KernelMemory::writable(const Allocation& allocation) const {
    if (allocation.read_only) return false;
    return !allocation.backing ||
           allocation.access.at(context_->device->ordinal) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

ptx::Window KernelMemory::find(std::uint64_t address, std::size_t size) {
    auto allocation = address_space().find(address, size);
    if (!allocation || !allocation->live() || !reachable(*allocation)) return {};
    ptx::Window window{allocation->begin, allocation->end(), allocation->host,
                       writable(*allocation),
                       allocation->written ? allocation->written->data() : nullptr};
    if (uses_) window.watch = uses_->watch(*allocation);
    std::lock_guard lock(mutex_);
    if (std::find(in_use_.begin(), in_use_.end(), allocation) == in_use_.end())
        in_use_.push_back(std::move(allocation));
    return window;
}

std::string KernelMemory::explain(std::uint64_t address) {
    const auto allocation = address_space().find(address);
    if (allocation && !reachable(*allocation)) {
        return !allocation->device
                   ? "the memory belongs to a pool of the host, to which the kernel's device was "
                     "given no access"
                   : "the memory belongs to device " + std::to_string(allocation->device->ordinal) +
                         ", to which the kernel's device has no peer access";
    }
    if (allocation && !allocation->live())
        return "the memory is allocated in a stream that has not come so far";
    return address_space().explain(address);
}

} // namespace cudamod::emulator
