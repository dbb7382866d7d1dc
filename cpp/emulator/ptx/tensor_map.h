/// The 128 bytes of a CUtensorMap as the emulated driver encodes them: an encoding of its own,
/// since the hardware's is not public.
#pragma once

#include <array>
#include <cstdint>

namespace cudamod::emulator::ptx {

struct TensorMap {
    static constexpr std::uint32_t kMagic = 0x50414d54; // "TMAP"
    static constexpr int kMaxRank = 5;
    enum Kind : std::uint8_t { Tiled, Im2col, Im2colWide };

    std::uint32_t magic = kMagic;
    Kind kind = Tiled;
    // Numbers of CUtensorMapDataType, ...Interleave, ...Swizzle, ...L2promotion, ...FloatOOBfill,
    // ...Im2ColWideMode.
    std::uint8_t data_type = 0, rank = 0, interleave = 0, swizzle = 0, l2_promotion = 0,
                 oob_fill = 0, mode = 0;
    std::uint32_t reserved = 0;
    std::uint64_t address = 0;
    std::array<std::uint64_t, kMaxRank> dimensions{};  ///< elements, the innermost first
    std::array<std::uint64_t, kMaxRank - 1> strides{}; ///< bytes, of dimensions 1 and up
    std::array<std::uint16_t, kMaxRank> box{};         ///< im2col: channels, pixels
    std::array<std::int16_t, 3> lower{}, upper{};
    std::array<std::uint8_t, kMaxRank> element_strides{};
    std::uint8_t unused = 0;
};
static_assert(sizeof(TensorMap) == 128);

} // namespace cudamod::emulator::ptx
