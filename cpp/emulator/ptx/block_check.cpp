#include "emulator/ptx/block_check.h"

#include "emulator/ptx/fault_text.h"
#include "emulator/ptx/instruction_set.h"
#include "emulator/ptx/worker.h"

#include <algorithm>

namespace cudamod::emulator::ptx {
namespace {

// Places of ThreadOrder: barriers by their numbers, locations in shared memory behind them.
constexpr std::uint64_t kFirstLocation = kBarriers;

std::uint32_t thread_number(const Warp& warp, unsigned lane) {
    return warp.index * kLanes + lane;
}

std::string thread_text(const Warp& warp, std::uint32_t thread) {
    const Warp& other = *warp.block->warps[thread / kLanes];
    const unsigned lane = thread % kLanes;
    return "thread " + triple_text({other.tid[0][lane], other.tid[1][lane], other.tid[2][lane]});
}

bool is_aligned(const Warp& warp, const Instruction& i) {
    const std::string text = instruction_text(warp.worker->grid.code, i);
    return text.find("barrier") == std::string::npos || text.find(".aligned") != std::string::npos;
}

/// Whether the store writes what the byte holds anyway: many threads may agree on a value.
bool stores_the_same(const Warp& warp, const Instruction& i, const Access& access, unsigned lane,
                     std::uint64_t byte, std::byte present) {
    if (access.kind != Access::Kind::Store) return false;
    const unsigned size = access.bytes / access.vector;
    const std::byte* lanes = warp.at<std::byte>(i.slots[byte / size]);
    return lanes[lane * size + byte % size] == present;
}

} // namespace

std::uint32_t BlockCheck::Lane::thread() const {
    return thread_number(warp, lane);
}

BlockCheck::BlockCheck(Block& block, unsigned checks)
    : block_(block), checks_(checks), order_(block.threads) {
    if (wants(kCheckUninitialized | kCheckRaces)) bytes_.resize(block.shared.size());
}

void BlockCheck::access(const Warp& warp, const Instruction& i, std::uint32_t mask) {
    const Code& code = warp.worker->grid.code;
    if (bytes_.empty() && !wants(kCheckUninitialized | kCheckStreams)) return;
    if (!code.is_plain(i)) return;
    const Access& access = code.accesses[i.cache];
    if (access.where == Where::Local) return;
    if (wants(kCheckStreams)) streams(warp, i, access, mask);
    if (!wants(kCheckUninitialized | kCheckRaces)) return;
    ++step_;
    const auto* base = warp.at<std::uint64_t>(i.slots[kAddressSlot]);
    const bool reads = access.kind != Access::Kind::Store,
               writes = access.kind != Access::Kind::Load;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(rest));
        Lane lane{warp,         i,     l,      base[l] + static_cast<std::uint64_t>(i.immediate),
                  access.bytes, reads, writes, access.strong};
        if (access.where == Where::Shared) {
            shared(lane, access);
        } else if (access.where == Where::Global || lane.address < kFirstWindow) {
            global(lane);
        } else if (in_window(lane.address, kSharedWindow)) {
            lane.address -= kSharedWindow;
            shared(lane, access);
        }
    }
}

void BlockCheck::shared(const Lane& lane, const Access& access) {
    if (lane.address >= kWindowBytes) return;
    const std::uint64_t offset = lane.address & ((1u << kClusterRankShift) - 1);
    const std::uint64_t rank = lane.address >> kClusterRankShift;
    Block* block =
        rank == 0 ? &block_ : block_.cluster->at_rank(static_cast<std::uint32_t>(rank) - 1);
    if (block == nullptr || block->check == nullptr || bytes_.empty() ||
        offset + lane.size > block->shared.size() || offset % lane.size != 0)
        return;
    for (std::uint64_t at = offset; at < offset + lane.size; ++at) {
        Byte& byte = block->check->bytes_[at];
        if (lane.reads && !byte.written && wants(kCheckUninitialized)) {
            lane.warp.report(FaultKind::UninitializedRead, lane.i, lane.lane,
                             "read of " + std::to_string(lane.size) +
                                 " bytes of shared memory at " + address_text(offset) +
                                 ", of which byte " + std::to_string(at - offset) +
                                 " was never written",
                             offset);
            byte.written = true; // said once
        }
        if (block == &block_ && wants(kCheckRaces)) {
            race(lane, byte, at,
                 byte.written && stores_the_same(lane.warp, lane.i, access, lane.lane, at - offset,
                                                 block->shared[at]));
        }
        byte.written |= lane.writes;
    }
    if (block != &block_ || !wants(kCheckRaces) || !lane.strong) return;
    // Flags and locks: who reads one strongly knows what its writers knew.
    if (lane.reads) order_.learn(lane.thread(), kFirstLocation + offset);
    if (lane.writes) order_.tell(lane.thread(), kFirstLocation + offset);
}

void BlockCheck::race(const Lane& lane, Byte& byte, std::uint64_t offset, bool silent) {
    if (silent) return;
    const std::uint32_t thread = lane.thread();
    const auto conflicts = [&](const Mark& mark, bool strong) {
        return mark.at != nullptr && !(strong && lane.strong) &&
               !(mark.step == step_ && mark.at == &lane.i) && !order_.before(mark.when, thread);
    };
    if (conflicts(byte.write, byte.strong[0]))
        report_race(lane, offset, lane.writes, byte.write, true);
    if (lane.writes) {
        for (std::size_t n = 0; n < byte.reads.size(); ++n) {
            if (conflicts(byte.reads[n], byte.strong[n + 1]))
                report_race(lane, offset, true, byte.reads[n], false);
        }
    }
    const Mark mark{order_.now(thread), step_, &lane.i};
    if (lane.writes) {
        byte.write = mark;
        byte.reads = {};
        byte.strong = {lane.strong, false, false};
    } else {
        if (byte.reads[0].at != nullptr && byte.reads[0].when.thread != thread) {
            byte.reads[1] = byte.reads[0];
            byte.strong[2] = byte.strong[1];
        }
        byte.reads[0] = mark;
        byte.strong[1] = lane.strong;
    }
}

void BlockCheck::report_race(const Lane& lane, std::uint64_t offset, bool write,
                             const Mark& earlier, bool earlier_write) const {
    const Code& code = lane.warp.worker->grid.code;
    lane.warp.report(FaultKind::SharedRace, lane.i, lane.lane,
                     std::string(write ? "write" : "read") + " of shared memory at " +
                         address_text(offset) + " races with the " +
                         (earlier_write ? "write" : "read") + " by " +
                         thread_text(lane.warp, earlier.when.thread) + " in line " +
                         std::to_string(code.sources[earlier.at->source].line) + " '" +
                         instruction_text(code, *earlier.at) + "': no barrier lies between",
                     offset);
}

/// The memory that a plain access touches, as the worker keeps it; null where it will fault.
const Window* BlockCheck::window_of(const Warp& warp, const Instruction& i, std::uint64_t address,
                                    std::uint32_t size, bool writes) {
    Window& cached = warp.worker->windows[i.cache];
    const auto inside = [&](const Window& window) {
        return address >= window.begin && address < window.end && window.end - address >= size;
    };
    if (inside(cached)) return &cached;
    const Window found = warp.worker->grid.memory.find(address, size);
    if (found.host == nullptr || (writes && !found.writable) || !inside(found)) return nullptr;
    cached = found;
    return &cached;
}

/// Tells who watches of accesses to device memory, those of neighbouring lanes together.
void BlockCheck::streams(const Warp& warp, const Instruction& i, const Access& access,
                         std::uint32_t mask) {
    if (access.where == Where::Shared) return;
    const auto* base = warp.at<std::uint64_t>(i.slots[kAddressSlot]);
    const bool writes = access.kind != Access::Kind::Load;
    const std::uint32_t size = access.bytes;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const std::uint64_t address = base[lane] + static_cast<std::uint64_t>(i.immediate);
        if ((mask >> lane & 1) == 0 || address >= kFirstWindow || address % size != 0) continue;
        const Window* const window = window_of(warp, i, address, size, writes);
        if (window == nullptr || window->watch == nullptr) continue;
        const std::uint64_t room = (window->end - address) / size;
        unsigned lanes = 1;
        while (lane + lanes < kLanes && lanes < room && (mask >> (lane + lanes) & 1) != 0 &&
               base[lane + lanes] == base[lane] + std::uint64_t{lanes} * size)
            ++lanes;
        warp.tell(*window->watch, i, lane, lanes, address, size, writes, access.strong);
        lane += lanes - 1;
    }
}

void BlockCheck::global(const Lane& lane) {
    if (!wants(kCheckUninitialized) || lane.address % lane.size != 0) return;
    const Window* const window = window_of(lane.warp, lane.i, lane.address, lane.size, lane.writes);
    if (window == nullptr || window->written == nullptr) return;
    std::uint8_t* written = window->written + (lane.address - window->begin);
    if (lane.reads) {
        const auto* missing = std::find(written, written + lane.size, 0);
        if (missing != written + lane.size) {
            const std::uint64_t address =
                lane.address + static_cast<std::uint64_t>(missing - written);
            lane.warp.report(
                FaultKind::UninitializedRead, lane.i, lane.lane,
                "read of " + std::to_string(lane.size) + " bytes at " + address_text(lane.address) +
                    ", of which byte " + std::to_string(missing - written) +
                    " was never written: " + lane.warp.worker->grid.memory.explain(address),
                lane.address);
        }
    }
    if (lane.writes) std::fill_n(written, lane.size, std::uint8_t{1});
}

void BlockCheck::touch(std::uint64_t offset, std::uint32_t size) {
    if (bytes_.empty()) return;
    for (std::uint64_t at = offset; at < offset + size; ++at)
        bytes_[at].written = true;
}

void BlockCheck::meet_in_warp(const Warp& warp, std::uint32_t mask) {
    if (!wants(kCheckRaces)) return;
    std::vector<std::uint32_t> threads;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1)
        threads.push_back(thread_number(warp, static_cast<unsigned>(__builtin_ctz(rest))));
    order_.meet(threads);
}

void BlockCheck::arrive(const Warp& warp, std::uint32_t mask, unsigned barrier) {
    if (!wants(kCheckRaces)) return;
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1)
        order_.tell(thread_number(warp, static_cast<unsigned>(__builtin_ctz(rest))), barrier);
}

void BlockCheck::pass(unsigned barrier, bool partial) {
    for (const auto& warp : block_.warps) {
        const Group* first = nullptr;
        std::uint32_t here = 0;
        for (const Group& group : warp->groups()) {
            if (group.state != GroupState::AtBarrier || group.barrier != barrier) continue;
            here |= group.mask;
            if (first == nullptr) first = &group;
            compare(*warp, group, *first);
            for (std::uint32_t rest = partial ? group.mask : 0; rest != 0; rest &= rest - 1) {
                const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
                order_.learn(thread_number(*warp, lane), barrier);
            }
        }
        const std::uint32_t absent = warp->live & ~here;
        if (first == nullptr || absent == 0 || !wants(kCheckBarriers) ||
            !is_aligned(*warp, *first->waiting))
            continue;
        const auto missing = static_cast<unsigned>(__builtin_ctz(absent));
        warp->report(FaultKind::BarrierDivergence, *first->waiting,
                     static_cast<unsigned>(__builtin_ctz(first->mask)),
                     "passes the barrier without " +
                         thread_text(*warp, thread_number(*warp, missing)) + " of its warp");
    }
    order_.forget(barrier);
    if (!partial) order_.meet();
}

/// Two groups of a warp that pass a barrier together.
void BlockCheck::compare(const Warp& warp, const Group& group, const Group& other) const {
    const Instruction& here = *group.waiting;
    const Instruction& there = *other.waiting;
    if (&here == &there || !wants(kCheckBarriers)) return;
    if (!is_aligned(warp, here) && !is_aligned(warp, there)) return;
    const Code& code = warp.worker->grid.code;
    const auto lane = static_cast<unsigned>(__builtin_ctz(other.mask));
    warp.report(
        FaultKind::BarrierDivergence, here, static_cast<unsigned>(__builtin_ctz(group.mask)),
        "waits in another barrier instruction than " +
            thread_text(warp, thread_number(warp, lane)) + " of its warp, which is in line " +
            std::to_string(code.sources[there.source].line) + " '" + instruction_text(code, there) +
            "'");
}

} // namespace cudamod::emulator::ptx
