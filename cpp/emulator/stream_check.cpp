#include "emulator/stream_check.h"

#include "emulator/address_space.h"
#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/findings.h"
#include "emulator/module.h"
#include "emulator/stream_order.h"

#include <cstdio>

namespace cudamod::emulator {
namespace {

// A thread of a grid as one number; no block has more threads.
constexpr std::uint64_t kThreadsOfBlock = 1024;

AccessMap& accesses_of(Allocation& allocation) {
    std::call_once(allocation.accesses_made, [&] {
        allocation.accesses = std::make_unique<AccessMap>(allocation.begin, allocation.bytes);
    });
    return *allocation.accesses;
}

std::string triple(std::uint64_t index, const std::array<std::uint32_t, 3>& size) {
    const std::uint64_t plane = std::uint64_t{size[0]} * size[1];
    char text[80];
    std::snprintf(text, sizeof text, "(%llu,%llu,%llu)",
                  static_cast<unsigned long long>(index % size[0]),
                  static_cast<unsigned long long>(index / size[0] % size[1]),
                  static_cast<unsigned long long>(index / plane));
    return text;
}

/// "kernel 'k', line 12 'st.global.u32 [%rd1], %r1;', block (0,0,0), thread (1,0,0) (stream ...)".
std::string name_of(const Accessor& accessor, std::optional<std::uint64_t> thread) {
    const WorkRecord& work = *accessor.work;
    std::string name = work.what;
    if (work.program) {
        name += " '" + work.kernel + "', " + work.program->instruction_text(accessor.instruction);
        if (thread) {
            name += ", block " + triple(*thread / kThreadsOfBlock, work.grid) + ", thread " +
                    triple(*thread % kThreadsOfBlock, work.block);
        }
    }
    return name + " (" + work.place + ")";
}

std::string text_of(const WorkRecord& work, bool writes, std::size_t bytes, std::uint64_t begin,
                    const Conflict& conflict) {
    const auto earlier = accessor_of(conflict.earlier);
    char text[160];
    std::snprintf(text, sizeof text, "%s of %zu byte%s at 0x%llx (", writes ? "write" : "read",
                  bytes, bytes == 1 ? "" : "s", static_cast<unsigned long long>(begin));
    std::string whole = text + work.place;
    std::snprintf(text, sizeof text, ") conflicts at 0x%llx with the %s by ",
                  static_cast<unsigned long long>(conflict.address),
                  conflict.earlier & kAccessWrites ? "write" : "read");
    return whole + text + (earlier ? name_of(*earlier, conflict.thread) : "work long ago") +
           ": no event, stream or synchronization orders the two";
}

} // namespace

void note_use(Allocation* memory, const std::byte* at, std::size_t bytes, bool writes) {
    const auto& work = running_work();
    if (!memory || !work || memory->area || !bytes) return;
    const std::uint64_t begin = memory->begin + static_cast<std::uint64_t>(at - memory->host);
    AccessId& id = writes ? work->writes : work->reads;
    if (!id) id = add_access({work, 0, writes, false, 0});
    const MemoryUse use{id, work.get(), 0, 0};
    const auto conflict = accesses_of(*memory).note(use, begin, bytes);
    if (!conflict) return;
    ptx::Fault finding;
    finding.kind = ptx::FaultKind::StreamConflict;
    finding.address = conflict->address;
    finding.message =
        std::string(work->what) + ": " + text_of(*work, writes, bytes, begin, *conflict);
    if (findings::hear(finding)) return;
    std::lock_guard lock(driver_mutex());
    record_fault(*work->context, CUDA_ERROR_LAUNCH_FAILED, finding.message);
}

WatchedAllocation::WatchedAllocation(LaunchUses& uses, Allocation& allocation)
    : uses_(uses), accesses_(accesses_of(allocation)) {}

std::optional<ptx::AccessConflict> WatchedAllocation::conflict(const ptx::MemoryAccess& access) {
    const std::size_t each = access.bytes_of_each;
    const MemoryUse use{uses_.id_of(access), uses_.work_.get(),
                        access.block * kThreadsOfBlock + access.thread, each};
    const auto found = accesses_.note(use, access.address, access.bytes);
    if (!found) return std::nullopt;
    const std::uint64_t begin = found->address - (found->address - access.address) % each;
    return ptx::AccessConflict{found->address,
                               text_of(*uses_.work_, access.writes, each, begin, *found)};
}

LaunchUses::LaunchUses(const std::shared_ptr<WorkRecord>& work, const ValidLaunch& launch)
    : work_(work), ids_(launch.function->view.code->program->memory_instructions() * 2) {
    work->kernel = launch.function->view.kernel->name;
    work->program = launch.function->view.code->program;
    work->grid = launch.grid;
    work->block = launch.block;
}

ptx::AccessWatch* LaunchUses::watch(Allocation& allocation) {
    if (allocation.area) return nullptr;
    std::lock_guard lock(mutex_);
    for (const auto& [memory, watched] : watched_) {
        if (memory == &allocation) return watched.get();
    }
    watched_.emplace_back(&allocation, std::make_unique<WatchedAllocation>(*this, allocation));
    return watched_.back().second.get();
}

AccessId LaunchUses::id_of(const ptx::MemoryAccess& access) {
    auto& id = ids_[access.instruction * 2 + access.writes];
    if (const AccessId known = id.load(std::memory_order_acquire)) return known;
    std::lock_guard lock(mutex_);
    if (const AccessId known = id.load(std::memory_order_relaxed)) return known;
    const AccessId made =
        add_access({work_, access.instruction, access.writes, access.strong, access.bytes_of_each});
    id.store(made, std::memory_order_release);
    return made;
}

} // namespace cudamod::emulator
