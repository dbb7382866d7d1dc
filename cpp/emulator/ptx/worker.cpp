#include "emulator/ptx/worker.h"

#include "emulator/ptx/block_check.h"
#include "emulator/ptx/fault_text.h"
#include "emulator/ptx/heap.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cudamod::emulator::ptx {
namespace {

constexpr std::uint32_t kQuantum = 16384, kSharedQuantum = 2048;

std::string access(std::uint64_t address, std::uint32_t size, bool write) {
    return std::string(write ? "write of " : "read of ") + std::to_string(size) + " bytes at " +
           address_text(address);
}

Dim3 position(std::uint64_t index, const Dim3& size) {
    return {static_cast<std::uint32_t>(index % size.x),
            static_cast<std::uint32_t>(index / size.x % size.y),
            static_cast<std::uint32_t>(index / size.x / size.y)};
}

} // namespace

Worker::Worker(Grid& grid)
    : grid(grid), windows(grid.code.memory_instructions), random_(grid.launch.seed) {}

std::byte* Worker::find_global(const Warp& warp, const Instruction& i, unsigned lane,
                               std::uint64_t address, std::uint32_t size, bool write) {
    if (address % size != 0) {
        warp.fault(FaultKind::MisalignedAddress, i, lane,
                   access(address, size, write) + " is misaligned", address);
    }
    return global_memory(warp, i, lane, address, size, write);
}

std::byte* Worker::global_memory(const Warp& warp, const Instruction& i, unsigned lane,
                                 std::uint64_t address, std::uint32_t size, bool write) {
    if (in_window(address, kHeapWindow)) {
        if (std::byte* host = DeviceHeap::instance().find(address, size)) return host;
        warp.fault(FaultKind::IllegalAddress, i, lane,
                   access(address, size, write) + ": not allocated by malloc", address);
    }
    if (in_window(address, kWorkspaceWindow) &&
        address - kWorkspaceWindow + size <= sizeof grid.workspace) {
        return grid.workspace + (address - kWorkspaceWindow);
    }
    if (in_window(address, kSharedWindow) || in_window(address, kLocalWindow) ||
        in_window(address, kParameterWindow)) {
        warp.fault(FaultKind::InvalidAddressSpace, i, lane,
                   access(address, size, write) +
                       ": not a global address, it lies in the window of " +
                       (in_window(address, kSharedWindow)  ? "shared"
                        : in_window(address, kLocalWindow) ? "local"
                                                           : "parameter") +
                       " memory",
                   address);
    }
    const Window window = grid.memory.find(address, size);
    const bool inside = window.host != nullptr && address >= window.begin && address < window.end &&
                        window.end - address >= size;
    if (!inside) {
        warp.fault(FaultKind::IllegalAddress, i, lane,
                   access(address, size, write) + ": " + grid.memory.explain(address), address);
    }
    if (write && !window.writable) {
        warp.fault(FaultKind::IllegalAddress, i, lane,
                   access(address, size, write) + ": the memory is read-only", address);
    }
    std::byte* const host = window.host + (address - window.begin);
    if ((window.written == nullptr && window.watch == nullptr) || grid.code.is_plain(i)) {
        windows[i.cache] = window;
        return host;
    }
    // Nobody else notes it.
    if (write && window.written != nullptr)
        std::fill_n(window.written + (address - window.begin), size, std::uint8_t{1});
    if (window.watch != nullptr) {
        const auto& accesses = grid.code.accesses;
        const bool strong = i.cache < accesses.size() && accesses[i.cache].strong;
        warp.tell(*window.watch, i, lane, 1, address, size, write, strong);
    }
    return host;
}

std::byte* Worker::find_shared(const Warp& warp, const Instruction& i, unsigned lane,
                               std::uint64_t offset, std::uint32_t size) {
    if (offset % size != 0) {
        warp.fault(FaultKind::MisalignedAddress, i, lane,
                   "shared address " + address_text(offset) + " is misaligned for " +
                       std::to_string(size) + " bytes",
                   offset);
    }
    return shared_memory(warp, i, lane, offset, size);
}

std::byte* Worker::shared_memory(const Warp& warp, const Instruction& i, unsigned lane,
                                 std::uint64_t offset, std::uint32_t size) const {
    const Block* target = warp.block;
    std::uint64_t at = offset;
    if (offset >> kClusterRankShift != 0 && offset < kWindowBytes) {
        target = warp.block->cluster->at_rank(
            static_cast<std::uint32_t>(offset >> kClusterRankShift) - 1);
        at = offset & ((1u << kClusterRankShift) - 1);
    }
    if (target == nullptr || at + size > target->shared.size() || offset >= kWindowBytes) {
        warp.fault(FaultKind::IllegalAddress, i, lane,
                   "shared address " + address_text(offset) + " (" + std::to_string(size) +
                       " bytes) lies outside the block's " +
                       std::to_string(warp.block->shared.size()) + " bytes",
                   offset);
    }
    if (target->check) target->check->touch(at, size);
    return const_cast<Block*>(target)->shared.data() + at;
}

std::byte* Worker::find_local(const Warp& warp, const Instruction& i, unsigned lane,
                              std::uint64_t offset, std::uint32_t size) {
    if (offset % size != 0) {
        warp.fault(FaultKind::MisalignedAddress, i, lane,
                   "local address " + address_text(offset) + " is misaligned for " +
                       std::to_string(size) + " bytes",
                   offset);
    }
    if (offset >= warp.local_limit || warp.local_limit - offset < size) {
        warp.fault(FaultKind::IllegalAddress, i, lane,
                   "local address " + address_text(offset) + " (" + std::to_string(size) +
                       " bytes) lies outside the thread's stack of " +
                       std::to_string(warp.local_limit) + " bytes",
                   offset);
    }
    return warp.local + std::size_t{lane} * warp.local_stride + offset;
}

std::uint64_t Worker::shared_offset(const Warp& warp, const Instruction& i, unsigned lane,
                                    std::uint64_t address) const {
    if (!in_window(address, kSharedWindow)) {
        warp.fault(FaultKind::InvalidAddressSpace, i, lane,
                   "generic address " + address_text(address) + " is not one of shared memory");
    }
    return address - kSharedWindow;
}

std::byte* Worker::find_span(const Warp& warp, const Instruction& i, unsigned lane, Where where,
                             std::uint64_t address, std::uint32_t size, bool write) {
    if (address % 16 != 0) {
        warp.fault(FaultKind::MisalignedAddress, i, lane,
                   access(address, size, write) + " is not aligned to 16 bytes");
    }
    if (where == Where::Global) return global_memory(warp, i, lane, address, size, write);
    if (where == Where::Generic) address = shared_offset(warp, i, lane, address);
    return shared_memory(warp, i, lane, address, size);
}

bool Worker::is_constant(std::uint64_t address) const {
    for (std::size_t n = 0; n < grid.code.variables.size(); ++n) {
        const Variable& variable = grid.code.variables[n];
        const bool inside = address - grid.launch.variable_addresses[n] < variable.size;
        if (variable.space == VariableSpace::Constant && inside) return true;
    }
    return false;
}

std::byte* Worker::find_generic(const Warp& warp, const Instruction& i, unsigned lane,
                                std::uint64_t address, std::uint32_t size, bool write) {
    if (address < kFirstWindow) return find_global(warp, i, lane, address, size, write);
    if (in_window(address, kSharedWindow))
        return find_shared(warp, i, lane, address - kSharedWindow, size);
    if (in_window(address, kLocalWindow))
        return find_local(warp, i, lane, address - kLocalWindow, size);
    if (in_window(address, kParameterWindow) && !write) {
        const std::uint64_t offset = address - kParameterWindow;
        if (offset % size == 0 && offset + size <= grid.kernel().parameter_bytes) {
            return const_cast<std::byte*>(grid.launch.parameters) + offset;
        }
    }
    return find_global(warp, i, lane, address, size, write);
}

std::uint64_t Worker::clusters_in_grid() const {
    return grid.blocks() / (std::uint64_t{grid.cluster.x} * grid.cluster.y * grid.cluster.z);
}

std::uint64_t Worker::shuffled(std::uint64_t index, std::uint64_t count) const {
    if (grid.launch.seed == 0 || count < 2) return index;
    // index * step is a permutation when the step has no common divisor with the count.
    std::uint64_t step = grid.launch.seed % count;
    const auto common = [](std::uint64_t a, std::uint64_t b) {
        while (b != 0)
            a = std::exchange(b, a % b);
        return a;
    };
    while (step == 0 || common(step, count) != 1)
        step = step + 1 >= count ? 1 : step + 1;
    const auto product = static_cast<unsigned __int128>(index) * step + grid.launch.seed / count;
    return static_cast<std::uint64_t>(product % count);
}

void Worker::prepare_block(Block& block, Dim3 index) {
    const Dim3& size = grid.launch.block;
    const FunctionCode& code = grid.code.functions[grid.entry.function];
    block.index = index;
    block.threads = size.x * size.y * size.z;
    block.barriers.fill(Barrier{});
    block.shared.assign(grid.shared_bytes, std::byte{0});
    if (grid.launch.checks != 0)
        block.check = std::make_unique<BlockCheck>(block, grid.launch.checks);
    const std::uint32_t warps = (block.threads + kLanes - 1) / kLanes;
    const bool fresh = block.warps.size() != warps;
    block.warps.resize(warps);
    for (std::uint32_t n = 0; n < warps; ++n) {
        if (!block.warps[n]) block.warps[n] = std::make_unique<Warp>();
        Warp& warp = *block.warps[n];
        const std::uint32_t first = n * kLanes, lanes = std::min(block.threads - first, kLanes);
        warp.block = &block;
        warp.worker = this;
        warp.index = n;
        warp.bases[1] = const_cast<std::byte*>(grid.constants);
        for (std::uint32_t l = 0; fresh && l < kLanes; ++l) {
            const std::uint32_t thread = first + l;
            warp.tid[0][l] = thread % size.x;
            warp.tid[1][l] = thread / size.x % size.y;
            warp.tid[2][l] = thread / size.x / size.y;
        }
        warp.start(code, lanes == kLanes ? kAllLanes : (1u << lanes) - 1);
    }
}

void Worker::prepare(std::uint64_t cluster_index, Cluster& cluster, std::size_t& used) {
    const Dim3 in_grid{grid.launch.grid.x / grid.cluster.x, grid.launch.grid.y / grid.cluster.y, 1};
    const Dim3 origin = position(cluster_index, in_grid);
    const std::uint32_t count = grid.cluster.x * grid.cluster.y * grid.cluster.z;
    cluster.blocks.clear();
    cluster.in_use = false;
    for (std::uint32_t rank = 0; rank < count; ++rank) {
        if (used == blocks_.size()) blocks_.emplace_back();
        Block& block = blocks_[used++];
        const Dim3 inside = position(rank, grid.cluster);
        block.rank = rank;
        block.cluster = &cluster;
        cluster.blocks.push_back(&block);
        prepare_block(block,
                      {origin.x * grid.cluster.x + inside.x, origin.y * grid.cluster.y + inside.y,
                       origin.z * grid.cluster.z + inside.z});
    }
}

void Worker::run_unit(const Units& units) {
    std::deque<Cluster> clusters(units.size());
    std::size_t used = 0;
    for (std::size_t n = 0; n < units.size(); ++n)
        prepare(units[n], clusters[n], used);
    const bool alone = units.size() == 1;
    std::size_t left = 0;
    for (std::size_t n = 0; n < used; ++n)
        left += blocks_[n].warps.size();
    while (left != 0) {
        bool progress = false;
        const std::size_t turn =
            grid.launch.seed == 0
                ? 0
                : (random_ = random_ * 6364136223846793005u + 1442695040888963407u) >> 33;
        for (std::size_t n = 0; n < used; ++n) {
            Block& block = blocks_[(n + turn) % used];
            for (std::size_t m = 0; m < block.warps.size(); ++m) {
                Warp& warp = *block.warps[(m + turn) % block.warps.size()];
                if (warp.live == 0) continue;
                if (grid.stop.load(std::memory_order_relaxed)) return;
                const Warp::Status status = warp.run(alone ? kQuantum : kSharedQuantum);
                progress |= status != Warp::Status::Blocked;
                if (status == Warp::Status::Exited) --left;
            }
        }
        const char* reason = grid.launch.watch ? grid.launch.watch() : nullptr;
        if (reason != nullptr) {
            throw FaultError{{FaultKind::Timeout, "kernel '" + grid.kernel().name + "' " + reason}};
        }
        if (!progress && left != 0) report_deadlock(used);
    }
}

void Worker::report_deadlock(std::size_t used) const {
    for (std::size_t n = 0; n < used; ++n) {
        for (const auto& warp : blocks_[n].warps) {
            for (const Group& group : warp->groups()) {
                warp->fault(FaultKind::Deadlock, *group.waiting,
                            static_cast<unsigned>(__builtin_ctz(group.mask)),
                            "waits for threads that never come: no thread of the block can go on");
            }
        }
    }
}

void Worker::run_all() {
    const std::uint64_t count = clusters_in_grid();
    Units unit(1);
    for (;;) {
        const std::uint64_t index = grid.next.fetch_add(1);
        if (index >= count || grid.stop.load()) return;
        unit[0] = shuffled(index, count);
        run_unit(unit);
    }
}

void Worker::run_together(std::uint64_t first, std::uint64_t step) {
    Units units;
    for (std::uint64_t index = first; index < clusters_in_grid(); index += step)
        units.push_back(index);
    run_unit(units);
}

} // namespace cudamod::emulator::ptx
