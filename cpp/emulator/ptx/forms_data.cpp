#include "emulator/ptx/forms.h"

namespace cudamod::emulator::ptx {

#define NUMBERS "u8|u16|u32|u64|s8|s16|s32|s64|f16|f32|f64"
#define INTEGERS8 "u8|u16|u32|u64|s8|s16|s32|s64"
#define STORED "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"
#define SPACES                                                                                     \
    "global|shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func"
#define STORE_SPACES "global|shared|shared::cta|shared::cluster|local|param|param::func"
#define EVICTION                                                                                   \
    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"
#define EVICTION2 "L2::evict_normal|L2::evict_first|L2::evict_last"
#define PREFETCH "L2::64B|L2::128B|L2::256B"
#define SCOPES "cta|cluster|gpu|sys"
#define ATOMIC_SPACES "global|shared|shared::cta|shared::cluster"
// Order and scope may stand before or behind the space, and before or behind each other: ptxas
// takes it, and Triton writes it so.
#define ORDERS "relaxed|acquire|release|acq_rel"
#define ATOMIC ORDERS "? " SCOPES "? " ATOMIC_SPACES "? " SCOPES "? " ORDERS "? "
#define REDUCTION "relaxed|release? " SCOPES "? " ATOMIC_SPACES "? " SCOPES "? relaxed|release? "
#define CACHE_HINT "L2::cache_hint? "

void add_data_forms(std::vector<FormRow>& rows) {
    using enum Family;
    static constexpr FormRow kRows[] = {
        {"mov", "pred", "Dp Sp", Move},
        {"mov", "b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f32|f64|f16", "D0 S0", Move},

        {"cvt", "rn|rz|rm|rp|rni|rzi|rmi|rpi? ftz? sat? " NUMBERS " " NUMBERS, "D0 S1", Convert},
        {"cvt", "rn|rz relu? satfinite? f16|bf16 f32", "D0 S1", Convert, 80, 70},
        {"cvt", "rn|rz relu? satfinite? f16x2|bf16x2 f32", "D0 S1 S1", Convert, 80, 70},
        {"cvt", "rn|rz|rm|rp|rni|rzi|rmi|rpi? ftz? sat? bf16 " INTEGERS8 "|f16|f64|bf16", "D0 S1",
         Convert, 90, 78},
        {"cvt", "rn|rz|rm|rp|rni|rzi|rmi|rpi? ftz? sat? " INTEGERS8 "|f16|f64|f32 bf16", "D0 S1",
         Convert, 80, 71},
        {"cvt", "rn|rz|rna relu? satfinite? tf32 f32", "Db32 S1", Convert, 80, 70},
        {"cvt", "rn satfinite relu? e4m3x2|e5m2x2 f32", "Db16 S1 S1", Convert, 89, 78},
        {"cvt", "rn satfinite relu? e4m3x2|e5m2x2 f16x2", "Db16 Sb32", Convert, 89, 78},
        {"cvt", "rn relu? f16x2 e4m3x2|e5m2x2", "Db32 Sb16", Convert, 89, 78},
        {"cvt", "pack sat u16|s16 s32", "Db32 S1 S1", Convert, 72, 65},
        {"cvt", "pack sat u8|s8 s32 b32", "Db32 S1 S1 Sb32", Convert, 72, 65},

        {"cvta", "global|shared|shared::cta|shared::cluster|local|const|param|param::entry u32|u64",
         "D0 S0", Special},
        {"cvta",
         "to global|shared|shared::cta|shared::cluster|local|const|param|param::entry u32|u64",
         "D0 S0", Special},
        {"isspacep", "global|shared|shared::cta|shared::cluster|local|const|param|param::entry",
         "Dp Su64", Special},
        {"mapa", "shared::cluster? u32|u64", "D0 S0 Su32", Special, 90, 78},
        {"getctarank", "shared::cluster? u32|u64", "Du32 S0", Special, 90, 78},
        {"activemask", "b32", "Db32", Special},

        {"ld",
         "weak|volatile? " SPACES "? ca|cg|cs|lu|cv? nc? " EVICTION "? " EVICTION2 "? " PREFETCH
         "? v2|v4? " STORED,
         "V0 A", Memory},
        {"ld",
         "weak? global? ca|cg|cs? nc? " EVICTION "? " EVICTION2 "? L2::cache_hint " PREFETCH
         "? v2|v4? " STORED,
         "V0 A Sb64", Memory, 80, 74},
        {"ld",
         "relaxed|acquire " SCOPES " global? " EVICTION "? " EVICTION2 "? L2::cache_hint " PREFETCH
         "? v2|v4? " STORED,
         "V0 A Sb64", Memory, 80, 74},
        {"st",
         "relaxed|release " SCOPES " global? " EVICTION "? " EVICTION2
         "? L2::cache_hint v2|v4? " STORED,
         "A U0 Sb64", Memory, 80, 74},
        {"ld",
         "relaxed|acquire " SCOPES " " SPACES "? " EVICTION "? " EVICTION2 "? " PREFETCH
         "? v2|v4? " STORED,
         "V0 A", Memory, 70, 60},
        {"ld", "mmio relaxed sys global? " STORED, "V0 A", Memory, 70, 82},
        {"ldu", "global? v2|v4? " STORED, "V0 A", Memory},
        {"st",
         "weak|volatile? " STORE_SPACES "? wb|cg|cs|wt? " EVICTION "? " EVICTION2
         "? v2|v4? " STORED,
         "A U0", Memory},
        {"st",
         "weak? global? wb|cg|cs|wt? " EVICTION "? " EVICTION2 "? L2::cache_hint v2|v4? " STORED,
         "A U0 Sb64", Memory, 80, 74},
        {"st",
         "relaxed|release " SCOPES " " STORE_SPACES "? " EVICTION "? " EVICTION2 "? v2|v4? " STORED,
         "A U0", Memory, 70, 60},
        {"st", "mmio relaxed sys global? " STORED, "A U0", Memory, 70, 82},
        {"atom", ATOMIC "and|or|xor|exch " CACHE_HINT "b32|b64", "D0 A S0 Sb64?", Atomic},
        {"atom", ATOMIC "cas " CACHE_HINT "b16|b32|b64", "D0 A S0 S0 Sb64?", Atomic},
        {"atom", ATOMIC "add " CACHE_HINT "u32|s32|u64|f32|f64", "D0 A S0 Sb64?", Atomic},
        {"atom", ATOMIC "inc|dec " CACHE_HINT "u32", "D0 A S0 Sb64?", Atomic},
        {"atom", ATOMIC "min|max " CACHE_HINT "u32|s32|u64|s64", "D0 A S0 Sb64?", Atomic},
        {"atom", ATOMIC "add noftz " CACHE_HINT "f16|f16x2", "D0 A S0 Sb64?", Atomic, 70, 62},
        {"atom", ATOMIC "add noftz " CACHE_HINT "bf16|bf16x2", "D0 A S0 Sb64?", Atomic, 90, 78},
        {"atom", ATOMIC "add " CACHE_HINT "v2|v4 f32", "V0 A U0 Sb64?", Atomic, 90, 81},
        {"atom", ATOMIC "add|min|max noftz " CACHE_HINT "v2|v4|v8 f16|bf16", "V0 A U0 Sb64?",
         Atomic, 90, 81},
        {"atom", ATOMIC "add|min|max noftz " CACHE_HINT "v2|v4 f16x2|bf16x2", "V0 A U0 Sb64?",
         Atomic, 90, 81},
        {"red", REDUCTION "and|or|xor " CACHE_HINT "b32|b64", "A S0 Sb64?", Atomic},
        {"red", REDUCTION "add " CACHE_HINT "u32|s32|u64|f32|f64", "A S0 Sb64?", Atomic},
        {"red", REDUCTION "inc|dec " CACHE_HINT "u32", "A S0 Sb64?", Atomic},
        {"red", REDUCTION "min|max " CACHE_HINT "u32|s32|u64|s64", "A S0 Sb64?", Atomic},
        {"red", REDUCTION "add noftz " CACHE_HINT "f16|f16x2", "A S0 Sb64?", Atomic, 70, 62},
        {"red", REDUCTION "add noftz " CACHE_HINT "bf16|bf16x2", "A S0 Sb64?", Atomic, 90, 78},
        {"red", REDUCTION "add " CACHE_HINT "v2|v4 f32", "A U0 Sb64?", Atomic, 90, 81},
        {"red", REDUCTION "add|min|max noftz " CACHE_HINT "v2|v4|v8 f16|bf16", "A U0 Sb64?", Atomic,
         90, 81},
        {"red", REDUCTION "add|min|max noftz " CACHE_HINT "v2|v4 f16x2|bf16x2", "A U0 Sb64?",
         Atomic, 90, 81},

        // An order that ptxas takes too; cooperative_groups' headers use it.
        {"atom", "add|or|and|exch relaxed|acquire|release|acq_rel " SCOPES " u32|b32|u64|b64",
         "D0 A S0", Atomic, 70, 60},
        {"red", "add|or|and relaxed|release " SCOPES " u32|b32|u64|b64", "A S0", Atomic, 70, 60},
    };
    rows.insert(rows.end(), std::begin(kRows), std::end(kRows));
}

} // namespace cudamod::emulator::ptx
