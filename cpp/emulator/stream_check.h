#pragma once

#include "emulator/access_map.h"
#include "emulator/launch.h"
#include "emulator/ptx/program.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace cudamod::emulator {

struct Allocation;

/// The work that the calling thread runs, a copy for example, reads or writes [at, at + bytes) of
/// the allocation as the driver sees it. A conflict with work of another stream is a finding, and
/// in the strict manner a fault. Null memory, and work that nobody checks: nothing.
void note_use(Allocation* memory, const std::byte* at, std::size_t bytes, bool writes);

/// What one launch does to one allocation; keeps neither alive.
class LaunchUses;
class WatchedAllocation : public ptx::AccessWatch {
  public:
    WatchedAllocation(LaunchUses& uses, Allocation& allocation);
    std::optional<ptx::AccessConflict> conflict(const ptx::MemoryAccess& access) override;

  private:
    LaunchUses& uses_;
    AccessMap& accesses_;
};

/// What one launch does to memory, while streams are checked.
class LaunchUses {
  public:
    LaunchUses(const std::shared_ptr<WorkRecord>& work, const ValidLaunch& launch);

    /// The watch of an allocation, which lives as long as this; null where nobody can tell who
    /// orders what, as with memory of several processes.
    ptx::AccessWatch* watch(Allocation& allocation);

  private:
    friend class WatchedAllocation;
    AccessId id_of(const ptx::MemoryAccess& access);

    std::shared_ptr<WorkRecord> work_;
    std::vector<std::atomic<AccessId>> ids_; ///< by instruction, and whether it writes
    std::mutex mutex_;
    std::vector<std::pair<Allocation*, std::unique_ptr<WatchedAllocation>>> watched_;
};

} // namespace cudamod::emulator
