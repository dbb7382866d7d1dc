/// cvta, isspacep, mapa, getctarank, activemask and cp.async.
#include "emulator/ptx/runtime.h"
#include "emulator/ptx/worker.h"

#include <cstring>

namespace cudamod::emulator::ptx {
namespace {

using std::uint32_t, std::uint64_t;

uint64_t window_of(WindowOf space) {
    switch (space) {
    case WindowOf::Shared:
    case WindowOf::SharedCluster:
        return kSharedWindow;
    case WindowOf::Local:
        return kLocalWindow;
    case WindowOf::Param:
        return kParameterWindow;
    default:
        return 0;
    }
}

template <class F>
void each(Warp& w, const Instruction& i, uint32_t mask, F apply) {
    auto* d = w.at<uint64_t>(i.slots[0]);
    const auto* a = w.at<uint64_t>(i.slots[1]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) != 0) d[l] = apply(a[l]);
    }
}

/// The rank of the block whose shared memory the offset means.
uint32_t rank_of(const Warp& w, uint64_t offset) {
    const auto part = static_cast<uint32_t>(offset & 0xffffffff) >> kClusterRankShift;
    return part == 0 ? w.block->rank : part - 1;
}

} // namespace

void to_generic(Warp& w, const Instruction& i, uint32_t mask) {
    const uint64_t window = window_of(static_cast<WindowOf>(i.extra));
    each(w, i, mask, [window](uint64_t a) { return a + window; });
}

void from_generic(Warp& w, const Instruction& i, uint32_t mask) {
    const uint64_t window = window_of(static_cast<WindowOf>(i.extra));
    each(w, i, mask, [window](uint64_t a) { return a - window; });
}

void is_in_space(Warp& w, const Instruction& i, uint32_t mask) {
    const auto space = static_cast<WindowOf>(i.extra);
    const auto* a = w.at<uint64_t>(i.slots[1]);
    uint32_t result = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        bool inside = false;
        const bool constant = w.worker->is_constant(a[l]);
        switch (space) {
        case WindowOf::Global:
            inside = (a[l] < kFirstWindow || in_window(a[l], kHeapWindow) ||
                      in_window(a[l], kWorkspaceWindow)) &&
                     !constant;
            break;
        case WindowOf::Constant:
            inside = constant;
            break;
        case WindowOf::Shared:
            inside =
                in_window(a[l], kSharedWindow) && a[l] - kSharedWindow < (1u << kClusterRankShift);
            break;
        default:
            inside = in_window(a[l], window_of(space));
            break;
        }
        result |= inside ? 1u << l : 0u;
    }
    auto* p = w.at<uint32_t>(i.slots[0]);
    *p = (*p & ~mask) | (result & mask);
}

void map_to_rank(Warp& w, const Instruction& i, uint32_t mask) {
    auto* d = w.at<uint64_t>(i.slots[0]);
    const auto* a = w.at<uint64_t>(i.slots[1]);
    const auto* rank = w.at<uint32_t>(i.slots[2]);
    const uint64_t window = i.extra != 0 ? kSharedWindow : 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        const uint64_t offset = a[l] & ((1u << kClusterRankShift) - 1);
        d[l] = window + ((uint64_t{rank[l]} + 1) << kClusterRankShift) + offset;
    }
}

void rank_of_address(Warp& w, const Instruction& i, uint32_t mask) {
    auto* d = w.at<uint32_t>(i.slots[0]);
    const auto* a = w.at<uint64_t>(i.slots[1]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) != 0) d[l] = rank_of(w, a[l]);
    }
}

void active_mask(Warp& w, const Instruction& i, uint32_t mask) {
    auto* d = w.at<uint32_t>(i.slots[0]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) != 0) d[l] = mask;
    }
}

void copy_async(Warp& w, const Instruction& i, uint32_t mask) {
    const auto* to = w.at<uint64_t>(i.slots[kAddressSlot]);
    const auto* from = w.at<uint64_t>(i.slots[7]);
    const auto* wanted = i.slots[0] == kNoSlot ? nullptr : w.at<uint32_t>(i.slots[0]);
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        std::byte* target =
            w.worker->find_shared(w, i, l, to[l] + static_cast<uint64_t>(i.immediate), i.extra);
        const uint32_t bytes = wanted == nullptr ? i.extra : std::min(wanted[l], i.extra);
        if (bytes != 0)
            std::memcpy(target, w.worker->find_global(w, i, l, from[l], i.extra, false), bytes);
        std::memset(target + bytes, 0, i.extra - bytes);
    }
}

} // namespace cudamod::emulator::ptx
