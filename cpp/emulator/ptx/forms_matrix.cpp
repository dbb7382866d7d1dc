#include "emulator/ptx/forms.h"

namespace cudamod::emulator::ptx {

#define WMMA_SHAPES "m16n16k16|m8n32k16|m32n8k16"
#define WMMA_SPACES "global|shared|shared::cta"
#define SHARED_SPACES "shared|shared::cta"
#define ANY_ROUNDING "rn|rz|rm|rp"
#define BYTES_INTEGERS "s8|u8"
#define NIBBLES "s4|u4"
#define FP8 "e4m3|e5m2"

void add_matrix_forms(std::vector<FormRow>& rows) {
    using enum Family;
    static constexpr FormRow kRows[] = {
        {"mma", "sync aligned m16n8k8 row col f16 f16 f16 f16", "M M M M", Matrix, 75, 65},
        {"mma", "sync aligned m16n8k8 row col f32 f16 f16 f32", "M M M M", Matrix, 75, 65},
        {"mma", "sync aligned m16n8k16 row col f16 f16 f16 f16", "M M M M", Matrix, 80, 70},
        {"mma", "sync aligned m16n8k16 row col f32 f16 f16 f32", "M M M M", Matrix, 80, 70},
        {"mma", "sync aligned m16n8k8|m16n8k16 row col f32 bf16 bf16 f32", "M M M M", Matrix, 80,
         70},
        {"mma", "sync aligned m16n8k4|m16n8k8 row col f32 tf32 tf32 f32", "M M M M", Matrix, 80,
         70},
        {"mma", "sync aligned m8n8k4 row col " ANY_ROUNDING "? f64 f64 f64 f64", "M M M M", Matrix,
         80, 70},
        {"mma", "sync aligned m16n8k4|m16n8k8|m16n8k16 row col " ANY_ROUNDING "? f64 f64 f64 f64",
         "M M M M", Matrix, 90, 78},
        {"mma",
         "sync aligned m8n8k16 row col satfinite? s32 " BYTES_INTEGERS " " BYTES_INTEGERS " s32",
         "M M M M", Matrix, 75, 65},
        {"mma",
         "sync aligned m16n8k16|m16n8k32 row col satfinite? s32 " BYTES_INTEGERS " " BYTES_INTEGERS
         " s32",
         "M M M M", Matrix, 80, 70},
        {"mma", "sync aligned m8n8k32 row col satfinite? s32 " NIBBLES " " NIBBLES " s32",
         "M M M M", Matrix, 75, 65},
        {"mma", "sync aligned m16n8k32|m16n8k64 row col satfinite? s32 " NIBBLES " " NIBBLES " s32",
         "M M M M", Matrix, 80, 70},
        {"mma", "sync aligned m8n8k128 row col s32 b1 b1 s32 xor popc", "M M M M", Matrix, 75, 70},
        {"mma", "sync aligned m16n8k128|m16n8k256 row col s32 b1 b1 s32 xor popc", "M M M M",
         Matrix, 80, 70},
        {"mma", "sync aligned m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 and popc",
         "M M M M", Matrix, 80, 71},
        {"mma", "sync aligned m16n8k32 row col f32 " FP8 " " FP8 " f32", "M M M M", Matrix, 89, 84},
        {"mma", "sync aligned m16n8k16 row col f32 " FP8 " " FP8 " f32", "M M M M", Matrix, 89, 87},
        {"mma", "sync aligned m16n8k16|m16n8k32 row col f16 " FP8 " " FP8 " f16", "M M M M", Matrix,
         89, 87},

        {"wmma", "load a|b sync aligned row|col " WMMA_SHAPES " " WMMA_SPACES "? f16", "M A Su32?",
         Matrix, 70, 60},
        {"wmma", "load a|b sync aligned row|col " WMMA_SHAPES " " WMMA_SPACES "? u8|s8",
         "M A Su32?", Matrix, 72, 63},
        {"wmma", "load a|b sync aligned row|col " WMMA_SHAPES " " WMMA_SPACES "? bf16", "M A Su32?",
         Matrix, 80, 70},
        {"wmma", "load a|b sync aligned row|col m16n16k8 " WMMA_SPACES "? tf32", "M A Su32?",
         Matrix, 80, 70},
        {"wmma", "load a|b|c sync aligned row|col m8n8k4 " WMMA_SPACES "? f64", "M A Su32?", Matrix,
         80, 70},
        {"wmma", "load a|b sync aligned row|col m8n8k32 " WMMA_SPACES "? u4|s4", "M A Su32?",
         Matrix, 75, 63},
        {"wmma", "load a|b sync aligned row|col m8n8k128 " WMMA_SPACES "? b1", "M A Su32?", Matrix,
         75, 63},
        {"wmma", "load c sync aligned row|col " WMMA_SHAPES " " WMMA_SPACES "? f16|f32",
         "M A Su32?", Matrix, 70, 60},
        {"wmma", "load c sync aligned row|col m16n16k8 " WMMA_SPACES "? f32", "M A Su32?", Matrix,
         80, 70},
        {"wmma",
         "load c sync aligned row|col " WMMA_SHAPES "|m8n8k32|m8n8k128 " WMMA_SPACES "? s32",
         "M A Su32?", Matrix, 72, 63},
        {"wmma", "store d sync aligned row|col " WMMA_SHAPES " " WMMA_SPACES "? f16|f32",
         "A M Su32?", Matrix, 70, 60},
        {"wmma", "store d sync aligned row|col m16n16k8 " WMMA_SPACES "? f32", "A M Su32?", Matrix,
         80, 70},
        {"wmma", "store d sync aligned row|col m8n8k4 " WMMA_SPACES "? f64", "A M Su32?", Matrix,
         80, 70},
        {"wmma",
         "store d sync aligned row|col " WMMA_SHAPES "|m8n8k32|m8n8k128 " WMMA_SPACES "? s32",
         "A M Su32?", Matrix, 72, 63},
        {"wmma", "mma sync aligned row|col row|col " WMMA_SHAPES " f16|f32 f16|f32", "M M M M",
         Matrix, 70, 60},
        {"wmma", "mma sync aligned row|col row|col " WMMA_SHAPES " f32 bf16 bf16 f32", "M M M M",
         Matrix, 80, 70},
        {"wmma", "mma sync aligned row|col row|col m16n16k8 f32 tf32 tf32 f32", "M M M M", Matrix,
         80, 70},
        {"wmma",
         "mma sync aligned row|col row|col m8n8k4 " ANY_ROUNDING "? f64 f64 f64 f64 " ANY_ROUNDING
         "?",
         "M M M M", Matrix, 80, 70},
        {"wmma", "mma sync aligned row|col row|col " WMMA_SHAPES " s32 s8 s8 s32 satfinite?",
         "M M M M", Matrix, 72, 63},
        {"wmma", "mma sync aligned row|col row|col " WMMA_SHAPES " s32 u8 u8 s32 satfinite?",
         "M M M M", Matrix, 72, 63},
        {"wmma", "mma sync aligned row col m8n8k32 s32 s4 s4 s32 satfinite?", "M M M M", Matrix, 75,
         63},
        {"wmma", "mma sync aligned row col m8n8k32 s32 u4 u4 s32 satfinite?", "M M M M", Matrix, 75,
         63},
        {"wmma", "mma xor popc sync aligned row col m8n8k128 s32 b1 b1 s32", "M M M M", Matrix, 75,
         63},
        {"wmma", "mma and popc sync aligned row col m8n8k128 s32 b1 b1 s32", "M M M M", Matrix, 80,
         71},

        {"ldmatrix", "sync aligned m8n8 x1|x2|x4 trans? " SHARED_SPACES "? b16", "M A", Matrix, 75,
         65},
        {"stmatrix", "sync aligned m8n8 x1|x2|x4 trans? " SHARED_SPACES "? b16", "A M", Matrix, 90,
         78},
        {"movmatrix", "sync aligned m8n8 trans b16", "M M", Matrix, 75, 78},
    };
    rows.insert(rows.end(), std::begin(kRows), std::end(kRows));
}

} // namespace cudamod::emulator::ptx
