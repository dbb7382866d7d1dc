/// One host thread's share of a launch, and its view of memory.
#pragma once

#include "emulator/ptx/address_space.h"
#include "emulator/ptx/block.h"
#include "emulator/ptx/instruction_set.h"

#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

namespace cudamod::emulator::ptx {

/// What all workers of a launch share.
struct Grid {
    const Launch& launch;
    Memory& memory;
    const std::function<void(std::string_view)>& print;
    const Code& code;
    const EntryCode& entry;
    const std::byte* constants;
    std::uint32_t shared_bytes = 0;
    alignas(16) std::byte workspace[256] = {};
    Dim3 cluster{1, 1, 1};
    std::mutex print_mutex{};
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex fault_mutex{};
    std::optional<Fault> fault{};
    std::set<std::pair<const Instruction*, FaultKind>> reported{}; ///< by checks

    const Entry& kernel() const { return code.entries[launch.entry]; }
    std::uint64_t blocks() const {
        return std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    }
};

class Worker {
  public:
    explicit Worker(Grid& grid);

    /// Runs clusters until none is left.
    void run_all();
    /// Runs the clusters `first`, `first + step`, ... all at once: a cooperative grid's share.
    void run_together(std::uint64_t first, std::uint64_t step);

    Grid& grid;
    std::vector<Window> windows; ///< by Instruction::cache

    /// The host address of a global or constant address, checked; faults otherwise. Fills the
    /// cache.
    std::byte* find_global(const Warp& warp, const Instruction& i, unsigned lane,
                           std::uint64_t address, std::uint32_t size, bool write);
    /// The same for any generic address.
    std::byte* find_generic(const Warp& warp, const Instruction& i, unsigned lane,
                            std::uint64_t address, std::uint32_t size, bool write);
    /// An offset in the shared window: the own block's, or another's of the cluster.
    std::byte* find_shared(const Warp& warp, const Instruction& i, unsigned lane,
                           std::uint64_t offset, std::uint32_t size);
    /// The offset that a generic address has in the shared window; faults when it has none.
    std::uint64_t shared_offset(const Warp& warp, const Instruction& i, unsigned lane,
                                std::uint64_t address) const;
    /// `size` bytes that one instruction copies, aligned to 16: of global memory or of the shared
    /// window. Where is Global, Shared or Generic.
    std::byte* find_span(const Warp& warp, const Instruction& i, unsigned lane, Where where,
                         std::uint64_t address, std::uint32_t size, bool write);
    /// Whether the address belongs to one of the program's .const variables.
    bool is_constant(std::uint64_t address) const;
    std::byte* find_local(const Warp& warp, const Instruction& i, unsigned lane,
                          std::uint64_t offset, std::uint32_t size);

  private:
    std::byte* global_memory(const Warp& warp, const Instruction& i, unsigned lane,
                             std::uint64_t address, std::uint32_t size, bool write);
    std::byte* shared_memory(const Warp& warp, const Instruction& i, unsigned lane,
                             std::uint64_t offset, std::uint32_t size) const;
    using Units = std::vector<std::uint64_t>;
    void run_unit(const Units& clusters);
    void prepare(std::uint64_t cluster_index, Cluster& cluster, std::size_t& used);
    void report_deadlock(std::size_t used) const;
    void prepare_block(Block& block, Dim3 index);
    std::uint64_t clusters_in_grid() const;
    std::uint64_t shuffled(std::uint64_t index, std::uint64_t count) const;

    std::deque<Block> blocks_;
    std::uint64_t random_;
};

} // namespace cudamod::emulator::ptx
