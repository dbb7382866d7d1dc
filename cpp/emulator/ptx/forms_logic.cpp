#include "emulator/ptx/forms.h"

namespace cudamod::emulator::ptx {

#define COMPARE "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"
#define COMPARED "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"
#define SELECTED "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"

void add_logic_forms(std::vector<FormRow>& rows) {
    using enum Family;
    static constexpr FormRow kRows[] = {
        {"and", "pred", "Dp Sp Sp", Logic},
        {"or", "pred", "Dp Sp Sp", Logic},
        {"xor", "pred", "Dp Sp Sp", Logic},
        {"not", "pred", "Dp Sp", Logic},
        {"and", "b16|b32|b64", "D0 S0 S0", Logic},
        {"or", "b16|b32|b64", "D0 S0 S0", Logic},
        {"xor", "b16|b32|b64", "D0 S0 S0", Logic},
        {"not", "b16|b32|b64", "D0 S0", Logic},
        {"cnot", "b16|b32|b64", "D0 S0", Logic},
        {"lop3", "b32", "D0 S0 S0 S0 I", Logic, 50, 43},
        {"lop3", "or|and b32", "R0 S0 S0 S0 I Sp", Logic, 70, 82},
        {"shl", "b16|b32|b64", "D0 S0 Su32", Logic},
        {"shr", "b16|b32|b64|u16|u32|u64|s16|s32|s64", "D0 S0 Su32", Logic},
        {"shf", "l|r clamp|wrap b32", "D0 S0 S0 Su32", Logic, 32, 31},
        {"prmt", "b32 f4e|b4e|rc8|ecl|ecr|rc16?", "D0 S0 S0 Su32", Logic},

        {"setp", COMPARE " ftz? " COMPARED, "Q S0 S0", Compare},
        {"setp", COMPARE " and|or|xor ftz? " COMPARED, "Q S0 S0 Sp", Compare},
        {"setp", COMPARE " ftz? f16|f16x2", "Q S0 S0", Half, 53, 42},
        {"setp", COMPARE " and|or|xor ftz? f16|f16x2", "Q S0 S0 Sp", Half, 53, 42},
        {"setp", COMPARE " bf16|bf16x2", "Q S0 S0", Half, 90, 78},
        {"setp", COMPARE " and|or|xor bf16|bf16x2", "Q S0 S0 Sp", Half, 90, 78},
        {"set", COMPARE " ftz? u32|s32|f32 " COMPARED, "D0 S1 S1", Compare},
        {"set", COMPARE " and|or|xor ftz? u32|s32|f32 " COMPARED, "D0 S1 S1 Sp", Compare},
        {"set", COMPARE " ftz? f16|f16x2|u16|s16|u32|s32 f16|f16x2", "D0 S1 S1", Half, 53, 42},
        {"set", COMPARE " bf16|bf16x2|u16|s16|u32|s32 bf16|bf16x2", "D0 S1 S1", Half, 90, 78},
        {"selp", SELECTED, "D0 S0 S0 Sp", Compare},
        {"slct", SELECTED " s32", "D0 S0 S0 S1", Compare},
        {"slct", "ftz? " SELECTED " f32", "D0 S0 S0 S1", Compare},
    };
    rows.insert(rows.end(), std::begin(kRows), std::end(kRows));
}

} // namespace cudamod::emulator::ptx
