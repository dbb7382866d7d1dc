#include "emulator/ptx/special_registers.h"

#include "emulator/ptx/worker.h"

#include <array>
#include <chrono>
#include <cstring>

namespace cudamod::emulator::ptx {
namespace {

enum Id : std::uint32_t {
    kTid,
    kNtid,
    kCtaid,
    kNctaid,
    kClusterid,
    kNclusterid,
    kClusterCtaid,
    kClusterNctaid,
    kLaneid,
    kWarpid,
    kNwarpid,
    kSmid,
    kNsmid,
    kGridid,
    kLanemaskEq,
    kLanemaskLe,
    kLanemaskLt,
    kLanemaskGe,
    kLanemaskGt,
    kClock,
    kClockHi,
    kClock64,
    kGlobaltimer,
    kGlobaltimerLo,
    kGlobaltimerHi,
    kTotalShared,
    kDynamicShared,
    kAggregateShared,
    kClusterCtarank,
    kClusterNctarank,
    kExplicitCluster,
    kGraphExec,
    kZero,
    kEnvreg,
};

struct Row {
    std::string_view name;
    Id id;
    Type type;
    bool vector = false;
};

constexpr std::array kRows = std::to_array<Row>({
    {"%tid", kTid, Type::U32, true},
    {"%ntid", kNtid, Type::U32, true},
    {"%ctaid", kCtaid, Type::U32, true},
    {"%nctaid", kNctaid, Type::U32, true},
    {"%clusterid", kClusterid, Type::U32, true},
    {"%nclusterid", kNclusterid, Type::U32, true},
    {"%cluster_ctaid", kClusterCtaid, Type::U32, true},
    {"%cluster_nctaid", kClusterNctaid, Type::U32, true},
    {"%laneid", kLaneid, Type::U32},
    {"%warpid", kWarpid, Type::U32},
    {"%nwarpid", kNwarpid, Type::U32},
    {"%smid", kSmid, Type::U32},
    {"%nsmid", kNsmid, Type::U32},
    {"%gridid", kGridid, Type::U64},
    {"%lanemask_eq", kLanemaskEq, Type::U32},
    {"%lanemask_le", kLanemaskLe, Type::U32},
    {"%lanemask_lt", kLanemaskLt, Type::U32},
    {"%lanemask_ge", kLanemaskGe, Type::U32},
    {"%lanemask_gt", kLanemaskGt, Type::U32},
    {"%clock", kClock, Type::U32},
    {"%clock_hi", kClockHi, Type::U32},
    {"%clock64", kClock64, Type::U64},
    {"%globaltimer", kGlobaltimer, Type::U64},
    {"%globaltimer_lo", kGlobaltimerLo, Type::U32},
    {"%globaltimer_hi", kGlobaltimerHi, Type::U32},
    {"%total_smem_size", kTotalShared, Type::U32},
    {"%dynamic_smem_size", kDynamicShared, Type::U32},
    {"%aggr_smem_size", kAggregateShared, Type::U32},
    {"%cluster_ctarank", kClusterCtarank, Type::U32},
    {"%cluster_nctarank", kClusterNctarank, Type::U32},
    {"%is_explicit_cluster", kExplicitCluster, Type::Pred},
    {"%current_graph_exec", kGraphExec, Type::U64},
});

std::uint64_t nanoseconds() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

std::uint32_t component(const Dim3& value, std::uint32_t axis) {
    return axis == 0 ? value.x : axis == 1 ? value.y : axis == 2 ? value.z : 0;
}

std::uint64_t block_number(const Warp& w) {
    const Dim3& at = w.block->index;
    const Dim3& size = w.worker->grid.launch.grid;
    return (std::uint64_t{at.z} * size.y + at.y) * size.x + at.x;
}

/// The two halves of the address of a cooperative grid's workspace.
std::uint64_t environment(const Warp& w, std::uint32_t number) {
    if (!w.worker->grid.launch.cooperative) return 0;
    if (number == 1) return kWorkspaceWindow >> 32;
    return number == 2 ? kWorkspaceWindow & 0xffffffff : 0;
}

std::uint64_t dimension(const Warp& w, Id id, std::uint32_t axis) {
    const Grid& grid = w.worker->grid;
    const std::uint32_t unit = axis == 3 ? 1 : component(grid.cluster, axis);
    switch (id) {
    case kNtid:
        return component(grid.launch.block, axis);
    case kCtaid:
        return component(w.block->index, axis);
    case kNctaid:
        return component(grid.launch.grid, axis);
    case kClusterid:
        return component(w.block->index, axis) / unit;
    case kNclusterid:
        return component(grid.launch.grid, axis) / unit;
    case kClusterCtaid:
        return component(w.block->index, axis) % unit;
    default:
        return component(grid.cluster, axis);
    }
}

/// The value that all lanes see.
std::uint64_t uniform(const Warp& w, Id id, std::uint32_t axis) {
    const Grid& grid = w.worker->grid;
    const std::uint32_t shared = grid.shared_bytes;
    switch (id) {
    case kWarpid:
        return w.index;
    case kNwarpid:
        return 64;
    case kSmid:
        return block_number(w) % std::max(grid.launch.multiprocessors, 1u);
    case kNsmid:
        return std::max(grid.launch.multiprocessors, 1u);
    case kGridid:
        return 1;
    case kClock:
        return nanoseconds() & 0xffffffff;
    case kClockHi:
        return nanoseconds() >> 32;
    case kClock64:
    case kGlobaltimer:
        return nanoseconds();
    case kGlobaltimerLo:
        return nanoseconds() & 0xffffffff;
    case kGlobaltimerHi:
        return nanoseconds() >> 32;
    case kTotalShared:
    case kAggregateShared:
        return shared;
    case kDynamicShared:
        return grid.launch.dynamic_shared_bytes;
    case kClusterCtarank:
        return w.block->rank;
    case kClusterNctarank:
        return std::uint64_t{grid.cluster.x} * grid.cluster.y * grid.cluster.z;
    case kEnvreg:
        return environment(w, axis);
    case kGraphExec:
    case kZero:
        return 0;
    default:
        return dimension(w, id, axis);
    }
}

std::uint32_t lane_value(const Warp& w, Id id, std::uint32_t axis, unsigned l) {
    switch (id) {
    case kTid:
        return axis == 3 ? 0 : w.tid[axis][l];
    case kLaneid:
        return l;
    case kLanemaskEq:
        return 1u << l;
    case kLanemaskLt:
        return (1u << l) - 1;
    case kLanemaskLe:
        return (1u << l) - 1 + (1u << l);
    case kLanemaskGe:
        return ~((1u << l) - 1);
    default:
        return ~((1u << l) - 1 + (1u << l));
    }
}

bool differs_by_lane(Id id) {
    return id == kTid || id == kLaneid || (id >= kLanemaskEq && id <= kLanemaskGt);
}

} // namespace

std::optional<SpecialRegister> special_register(std::string_view name, std::string_view element) {
    for (const Row& row : kRows) {
        if (row.name != name) continue;
        if (!row.vector)
            return element.empty() ? std::optional(SpecialRegister{row.type, row.id})
                                   : std::nullopt;
        static constexpr std::string_view kElements[] = {".x", ".y", ".z", ".w"};
        for (std::uint32_t axis = 0; axis < 4; ++axis) {
            if (kElements[axis] == element) return SpecialRegister{row.type, row.id | axis << 8};
        }
        return std::nullopt;
    }
    const auto numbered = [&](std::string_view prefix,
                              std::uint32_t count) -> std::optional<std::uint32_t> {
        if (name.substr(0, prefix.size()) != prefix || !element.empty()) return std::nullopt;
        const std::string_view digits = name.substr(prefix.size());
        if (digits.empty() || digits.size() > 2) return std::nullopt;
        std::uint32_t number = 0;
        for (const char c : digits) {
            if (c < '0' || c > '9') return std::nullopt;
            number = number * 10 + static_cast<std::uint32_t>(c - '0');
        }
        return number < count ? std::optional(number) : std::nullopt;
    };
    if (const auto number = numbered("%envreg", 32))
        return SpecialRegister{Type::B32, kEnvreg | *number << 8};
    if (numbered("%pm", 8)) return SpecialRegister{Type::U32, kZero};
    return std::nullopt;
}

void read_special(Warp& w, const Instruction& i, std::uint32_t mask) {
    const auto id = static_cast<Id>(i.extra & 0xff);
    const std::uint32_t axis = i.extra >> 8;
    if (id == kExplicitCluster) {
        std::uint32_t* p = w.at<std::uint32_t>(i.slots[0]);
        const Grid& grid = w.worker->grid;
        const bool truth = grid.launch.cluster.x != 0 || grid.kernel().required_cluster.x != 0;
        *p = truth ? *p | mask : *p & ~mask;
        return;
    }
    if (id == kTid && mask == kAllLanes && axis < 3) {
        std::memcpy(w.at<std::uint32_t>(i.slots[0]), w.tid[axis], sizeof w.tid[axis]);
        return;
    }
    const bool by_lane = differs_by_lane(id);
    const std::uint64_t value = by_lane ? 0 : uniform(w, id, axis);
    const bool wide = id == kGridid || id == kClock64 || id == kGlobaltimer || id == kGraphExec;
    for (unsigned l = 0; l < kLanes; ++l) {
        if ((mask >> l & 1) == 0) continue;
        if (wide) {
            w.at<std::uint64_t>(i.slots[0])[l] = value;
        } else {
            w.at<std::uint32_t>(i.slots[0])[l] =
                by_lane ? lane_value(w, id, axis, l) : static_cast<std::uint32_t>(value);
        }
    }
}

} // namespace cudamod::emulator::ptx
