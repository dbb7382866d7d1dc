/// Asynchronous copies, mbarrier, fences, and what concerns caches only.
#include "emulator/ptx/forms.h"

namespace cudamod::emulator::ptx {

#define FENCE_SCOPES "cta|cluster|gpu|sys"
#define BLOCK_SCOPES "cta|cluster"
#define OWN_SHARED "shared|shared::cta"
#define CLUSTER_SHARED "shared|shared::cta|shared::cluster"
#define COUNTED "mbarrier::complete_tx::bytes"
#define RANKS "1d|2d|3d|4d|5d"
#define L2_SIZES "L2::64B|L2::128B|L2::256B"
#define BULK_OPERATIONS "and|or|xor|add|inc|dec|min|max"
#define PRIORITIES "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"
#define LATER_PRIORITIES "L2::evict_first|L2::evict_unchanged"
#define RESTRICTED "sync_restrict::shared::cta|sync_restrict::shared::cluster"

void add_async_forms(std::vector<FormRow>& rows) {
    using enum Family;
    static constexpr FormRow kRows[] = {
        {"membar", "cta|gl|sys", "", Nothing},
        {"membar", "proxy alias", "", Nothing, 70, 75},
        {"membar", "proxy async", "", Nothing, 90, 80},
        {"fence", "sc|acq_rel? " FENCE_SCOPES, "", Nothing, 70, 60},
        {"fence", "acquire|release " FENCE_SCOPES, "", Nothing, 90, 86},
        {"fence", "acquire|release " RESTRICTED " cluster", "", Nothing, 90, 86},
        {"fence", "mbarrier_init release cluster", "", Nothing, 90, 80},
        {"fence", "proxy alias", "", Nothing, 70, 75},
        {"fence", "proxy async global|shared::cta|shared::cluster?", "", Nothing, 90, 80},
        {"fence", "proxy async::generic acquire|release " RESTRICTED " cluster", "", Nothing, 90,
         86},
        {"fence", "proxy tensormap::generic release " FENCE_SCOPES, "", Nothing, 90, 83},
        {"fence", "proxy tensormap::generic acquire " FENCE_SCOPES, "A I", Nothing, 90, 83},

        {"prefetch", "global|local? L1|L2", "A", Nothing},
        {"prefetch", "global L2::evict_last|L2::evict_normal", "A", Nothing, 80, 74},
        {"prefetch", "const|param? tensormap", "A", Nothing, 90, 80},
        {"prefetchu", "L1", "A", Nothing},
        {"applypriority", "global? L2::evict_normal", "A I", Nothing, 80, 74},
        {"discard", "global? L2", "A I", Nothing, 80, 74},
        {"createpolicy", "fractional " PRIORITIES " " LATER_PRIORITIES "? b64", "Db64 Sf32?",
         Policy, 80, 74},
        {"createpolicy", "range global? " PRIORITIES " " LATER_PRIORITIES "? b64",
         "Db64 A Su32 Su32", Policy, 80, 74},
        {"createpolicy", "cvt L2 b64", "Db64 Sb64", Policy, 80, 74},

        {"cp", "async ca|cg shared|shared::cta global " L2_SIZES "?", "A A I Su32?", Async, 80, 70},
        {"cp", "async ca|cg shared|shared::cta global L2::cache_hint " L2_SIZES "?", "A A I Sb64",
         Async, 80, 74},
        {"cp", "async ca|cg shared|shared::cta global L2::cache_hint " L2_SIZES "?",
         "A A I Su32 Sb64", Async, 80, 74},
        {"cp", "async commit_group", "", Nothing, 80, 70},
        {"cp", "async wait_group", "I", Nothing, 80, 70},
        {"cp", "async wait_all", "", Nothing, 80, 70},
        {"cp", "async mbarrier arrive noinc? " OWN_SHARED "? b64", "A", MemoryBarrier, 80, 70},

        {"cp", "async bulk shared::cluster global " COUNTED, "A A Su32 A", Bulk, 90, 80},
        {"cp", "async bulk shared::cta global " COUNTED, "A A Su32 A", Bulk, 90, 86},
        {"cp", "async bulk shared::cluster global " COUNTED " L2::cache_hint", "A A Su32 A Sb64",
         Bulk, 90, 80},
        {"cp", "async bulk shared::cta global " COUNTED " L2::cache_hint", "A A Su32 A Sb64", Bulk,
         90, 86},
        {"cp", "async bulk shared::cluster global " COUNTED " multicast::cluster",
         "A A Su32 A Su16", Bulk, 90, 80},
        {"cp", "async bulk shared::cluster global " COUNTED " multicast::cluster L2::cache_hint",
         "A A Su32 A Su16 Sb64", Bulk, 90, 80},
        {"cp", "async bulk shared::cluster shared::cta " COUNTED, "A A Su32 A", Bulk, 90, 80},
        {"cp", "async bulk global shared::cta bulk_group", "A A Su32", Bulk, 90, 80},
        {"cp", "async bulk global shared::cta bulk_group L2::cache_hint", "A A Su32 Sb64", Bulk, 90,
         80},
        {"cp", "async bulk prefetch L2 global", "A Su32", Nothing, 90, 80},
        {"cp", "async bulk prefetch L2 global L2::cache_hint", "A Su32 Sb64", Nothing, 90, 80},
        {"cp", "async bulk commit_group", "", Nothing, 90, 80},
        {"cp", "async bulk wait_group read?", "I", Nothing, 90, 80},

        {"cp",
         "reduce async bulk shared::cluster shared::cta " COUNTED " " BULK_OPERATIONS
         " b32|b64|s32|u32|s64|u64",
         "A A Su32 A", Bulk, 90, 80},
        {"cp",
         "reduce async bulk global shared::cta bulk_group " BULK_OPERATIONS
         " b32|b64|s32|u32|s64|u64|f32|f64",
         "A A Su32", Bulk, 90, 80},
        {"cp",
         "reduce async bulk global shared::cta bulk_group L2::cache_hint " BULK_OPERATIONS
         " b32|b64|s32|u32|s64|u64|f32|f64",
         "A A Su32 Sb64", Bulk, 90, 80},
        {"cp", "reduce async bulk global shared::cta bulk_group add noftz f16|bf16", "A A Su32",
         Bulk, 90, 80},
        {"cp", "reduce async bulk global shared::cta bulk_group L2::cache_hint add noftz f16|bf16",
         "A A Su32 Sb64", Bulk, 90, 80},

        {"cp", "async bulk tensor " RANKS " shared::cluster global tile? " COUNTED, "A A A", Tensor,
         90, 80},
        {"cp", "async bulk tensor " RANKS " shared::cta global tile? " COUNTED, "A A A", Tensor, 90,
         86},
        {"cp",
         "async bulk tensor " RANKS " shared::cluster global tile? " COUNTED " L2::cache_hint",
         "A A A Sb64", Tensor, 90, 80},
        {"cp", "async bulk tensor " RANKS " shared::cta global tile? " COUNTED " L2::cache_hint",
         "A A A Sb64", Tensor, 90, 86},
        {"cp",
         "async bulk tensor " RANKS " shared::cluster global tile? " COUNTED " multicast::cluster",
         "A A A Su16", Tensor, 90, 80},
        {"cp",
         "async bulk tensor " RANKS " shared::cluster global tile? " COUNTED
         " multicast::cluster L2::cache_hint",
         "A A A Su16 Sb64", Tensor, 90, 80},
        {"cp", "async bulk tensor " RANKS " global shared::cta tile? bulk_group", "A A", Tensor, 90,
         80},
        {"cp", "async bulk tensor " RANKS " global shared::cta tile? bulk_group L2::cache_hint",
         "A A Sb64", Tensor, 90, 80},
        {"cp",
         "reduce async bulk tensor " RANKS " global shared::cta " BULK_OPERATIONS
         " tile? bulk_group",
         "A A", Tensor, 90, 80},
        {"cp",
         "reduce async bulk tensor " RANKS " global shared::cta " BULK_OPERATIONS
         " tile? bulk_group L2::cache_hint",
         "A A Sb64", Tensor, 90, 80},
        {"cp", "async bulk prefetch tensor " RANKS " L2 global tile?", "A", Tensor, 90, 80},
        {"cp", "async bulk prefetch tensor " RANKS " L2 global tile? L2::cache_hint", "A Sb64",
         Tensor, 90, 80},

        {"st", "async weak? shared::cluster? " COUNTED " v2|v4? b32|b64|u32|u64|s32|s64|f32|f64",
         "A U0 A", Async, 90, 81},
        {"red", "async relaxed cluster shared::cluster? " COUNTED " and|or|xor b32|u32|s32|u64",
         "A S0 A", Async, 90, 81},
        {"red", "async relaxed cluster shared::cluster? " COUNTED " add|min|max u32|s32|u64",
         "A S0 A", Async, 90, 81},
        {"red", "async relaxed cluster shared::cluster? " COUNTED " inc|dec u32", "A S0 A", Async,
         90, 81},

        {"mbarrier", "init " OWN_SHARED "? b64", "A Su32", MemoryBarrier, 80, 70},
        {"mbarrier", "inval " OWN_SHARED "? b64", "A", MemoryBarrier, 80, 70},
        {"mbarrier", "expect_tx|complete_tx relaxed? " BLOCK_SCOPES "? " CLUSTER_SHARED "? b64",
         "A Su32", MemoryBarrier, 90, 80},
        {"mbarrier",
         "arrive|arrive_drop release|relaxed? " BLOCK_SCOPES "? " CLUSTER_SHARED "? b64", "Db64 A",
         MemoryBarrier, 80, 70},
        {"mbarrier",
         "arrive|arrive_drop release|relaxed? " BLOCK_SCOPES "? " CLUSTER_SHARED "? b64",
         "Db64 A Su32", MemoryBarrier, 80, 78},
        {"mbarrier",
         "arrive|arrive_drop expect_tx release|relaxed? " BLOCK_SCOPES "? " CLUSTER_SHARED "? b64",
         "Db64 A Su32", MemoryBarrier, 90, 80},
        {"mbarrier", "arrive|arrive_drop noComplete release|relaxed? cta? " OWN_SHARED "? b64",
         "Db64 A Su32", MemoryBarrier, 80, 70},
        {"mbarrier", "test_wait acquire|relaxed? " BLOCK_SCOPES "? " OWN_SHARED "? b64",
         "Dp A Sb64", MemoryBarrier, 80, 70},
        {"mbarrier", "test_wait parity acquire|relaxed? " BLOCK_SCOPES "? " OWN_SHARED "? b64",
         "Dp A Su32", MemoryBarrier, 80, 71},
        {"mbarrier", "try_wait acquire|relaxed? " BLOCK_SCOPES "? " OWN_SHARED "? b64",
         "Dp A Sb64 Su32?", MemoryBarrier, 90, 78},
        {"mbarrier", "try_wait parity acquire|relaxed? " BLOCK_SCOPES "? " OWN_SHARED "? b64",
         "Dp A Su32 Su32?", MemoryBarrier, 90, 78},
        {"mbarrier", "pending_count b64", "Du32 Sb64", MemoryBarrier, 80, 70},
    };
    rows.insert(rows.end(), std::begin(kRows), std::end(kRows));
}

} // namespace cudamod::emulator::ptx
