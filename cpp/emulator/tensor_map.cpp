#include "emulator/ptx/tensor_map.h"
#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"

#include <array>
#include <cinttypes>
#include <cstring>

using namespace cudamod::emulator;

namespace {

constexpr int kMaxRank = ptx::TensorMap::kMaxRank;

using Encoded = ptx::TensorMap;
static_assert(sizeof(Encoded) == sizeof(CUtensorMap));

template <class... Values>
void require(bool kept, const char* format, Values... values) {
    if (kept) return;
    if constexpr (sizeof...(values) == 0)
        fail(CUDA_ERROR_INVALID_VALUE, "%s", format);
    else
        fail(CUDA_ERROR_INVALID_VALUE, format, values...);
}

bool is_padded(int type) {
    return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ||
           type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

bool is_packed(int type) {
    return type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
}

bool is_float(int type) {
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

std::uint64_t bits_of(int type) {
    constexpr std::uint8_t bits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
    return bits[type];
}

/// The arguments that all encoders share, as the caller gave them.
struct Request {
    CUtensorMap* map;
    CUtensorMapDataType type;
    cuuint32_t rank;
    void* address;
    const cuuint64_t* dimensions;
    const cuuint64_t* strides;
    const cuuint32_t* element_strides;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion l2_promotion;
    CUtensorMapFloatOOBfill oob_fill;
};

void require_device(int least) {
    const Profile& profile = *current_context()->device->profile;
    if (profile.major < least)
        fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no such tensor maps", profile.architecture.c_str());
}

void require_modes(const Request& request) {
    const auto type = static_cast<unsigned>(request.type);
    require(type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, "Tensor data type %u is unknown", type);
    require(static_cast<unsigned>(request.interleave) <= CU_TENSOR_MAP_INTERLEAVE_32B,
            "Interleave %d is unknown", static_cast<int>(request.interleave));
    require(static_cast<unsigned>(request.swizzle) <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
            "Swizzle %d is unknown", static_cast<int>(request.swizzle));
    require(static_cast<unsigned>(request.l2_promotion) <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            "L2 promotion %d is unknown", static_cast<int>(request.l2_promotion));
    require(static_cast<unsigned>(request.oob_fill) <=
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
            "Out-of-bounds fill %d is unknown", static_cast<int>(request.oob_fill));
    require(request.interleave != CU_TENSOR_MAP_INTERLEAVE_32B ||
                request.swizzle == CU_TENSOR_MAP_SWIZZLE_32B,
            "Interleave 32B needs swizzle 32B");
    require(!request.oob_fill || is_float(request.type), "NaN fills need a floating-point type");
    if (!is_padded(request.type)) return;
    const bool six = request.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
    require(!six || request.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE,
            "Data type 16U6_ALIGN16B needs interleave none");
    require(request.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ||
                request.swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
                request.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
                (six && request.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B),
            "Swizzle %d is none of the data type's", static_cast<int>(request.swizzle));
}

void require_tensor(const Request& request, cuuint32_t least_rank) {
    require_pointer(request.map, "the tensor map");
    require(reinterpret_cast<std::uintptr_t>(request.map) % 64 == 0,
            "The tensor map must be aligned to 64 bytes");
    if (request.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) least_rank = 3;
    require(request.rank >= least_rank && request.rank <= kMaxRank,
            "A rank of %u is not in %u to %d", request.rank, least_rank, kMaxRank);
    require_pointer(request.dimensions, "the dimensions");
    if (request.rank > 1) require_pointer(request.strides, "the strides");
    require_pointer(request.element_strides, "the element strides");
    const bool padded = is_padded(request.type);
    const std::uint64_t alignment =
        padded || request.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
    const auto address = reinterpret_cast<std::uintptr_t>(request.address);
    require(address && address % alignment == 0,
            "Address 0x%" PRIxPTR " is not aligned to %" PRIu64, address, alignment);
    for (cuuint32_t i = 0; i < request.rank; ++i) {
        require(request.dimensions[i] && request.dimensions[i] <= std::uint64_t{1} << 32,
                "Dimension %u of %" PRIu64 " elements is out of range", i, request.dimensions[i]);
        require(request.element_strides[i] && request.element_strides[i] <= 8,
                "Element stride %u of %u is not in 1 to 8", i, request.element_strides[i]);
        if (i + 1 == request.rank) break;
        require(request.strides[i] % alignment == 0 && request.strides[i] < std::uint64_t{1} << 40,
                "Stride %u of %" PRIu64 " bytes is no multiple of %" PRIu64 " below 2^40", i,
                request.strides[i], alignment);
    }
    const std::uint64_t multiple = padded ? 128 : is_packed(request.type) ? 2 : 1;
    require(request.dimensions[0] % multiple == 0,
            "Dimension 0 must be a multiple of %" PRIu64 " with this data type", multiple);
}

void require_inner_box(const Request& request, cuuint32_t elements) {
    if (is_padded(request.type))
        require(elements == 128, "The inner box must be 128 elements with this data type");
    if (request.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || is_padded(request.type)) return;
    const std::uint64_t bits = elements * bits_of(request.type);
    require(bits % 128 == 0, "The inner box must be a multiple of 16 bytes");
    const std::uint64_t most = request.swizzle == CU_TENSOR_MAP_SWIZZLE_32B   ? 32
                               : request.swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
                                                                              : 128;
    require(request.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || bits <= 8 * most,
            "The inner box exceeds the swizzle's %" PRIu64 " bytes", most);
}

void require_pixels(const Request& request, cuuint32_t channels, cuuint32_t pixels) {
    require(channels && channels <= 256, "%u channels per pixel are not in 1 to 256", channels);
    require(pixels && pixels <= 1024, "%u pixels per column are not in 1 to 1024", pixels);
    require_inner_box(request, channels);
}

void require_corners(int lower, int upper, int limit, std::uint64_t size) {
    require(lower >= -limit && lower < limit && upper >= -limit && upper < limit,
            "The corners %d and %d are not in %d to %d", lower, upper, -limit, limit - 1);
    require(static_cast<std::int64_t>(size) + upper - lower >= 1, "The pixel box is empty");
}

Encoded encoded(const Request& request, Encoded::Kind kind) {
    Encoded result;
    result.kind = kind;
    result.data_type = static_cast<std::uint8_t>(request.type);
    result.rank = static_cast<std::uint8_t>(request.rank);
    result.interleave = static_cast<std::uint8_t>(request.interleave);
    result.swizzle = static_cast<std::uint8_t>(request.swizzle);
    result.l2_promotion = static_cast<std::uint8_t>(request.l2_promotion);
    result.oob_fill = static_cast<std::uint8_t>(request.oob_fill);
    result.address = reinterpret_cast<std::uintptr_t>(request.address);
    for (cuuint32_t i = 0; i < request.rank; ++i) {
        result.dimensions[i] = request.dimensions[i];
        result.element_strides[i] = static_cast<std::uint8_t>(request.element_strides[i]);
        if (i + 1 < request.rank) result.strides[i] = request.strides[i];
    }
    return result;
}

void store(const Encoded& value, CUtensorMap* map) {
    std::memcpy(static_cast<void*>(map), &value, sizeof value);
}

} // namespace

CUDAMOD_API cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                   void* address, const cuuint64_t* dimensions,
                                   const cuuint64_t* strides, const cuuint32_t* box,
                                   const cuuint32_t* element_strides,
                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                   CUtensorMapL2promotion l2_promotion,
                                   CUtensorMapFloatOOBfill oob_fill) {
    return locked_call(
        "cuTensorMapEncodeTiled",
        [&] {
            require_device(9);
            const Request request{
                map,        type,    rank,         address, dimensions, strides, element_strides,
                interleave, swizzle, l2_promotion, oob_fill};
            require_modes(request);
            require_tensor(request, 1);
            require_pointer(box, "the box");
            Encoded result = encoded(request, Encoded::Tiled);
            for (cuuint32_t i = 0; i < rank; ++i) {
                require(box[i] && box[i] <= 256, "Box dimension %u of %u is not in 1 to 256", i,
                        box[i]);
                result.box[i] = static_cast<std::uint16_t>(box[i]);
            }
            require_inner_box(request, box[0]);
            store(result, map);
        },
        map, static_cast<int>(type), rank, address);
}

CUDAMOD_API cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                    void* address, const cuuint64_t* dimensions,
                                    const cuuint64_t* strides, const int* lower, const int* upper,
                                    cuuint32_t channels, cuuint32_t pixels,
                                    const cuuint32_t* element_strides,
                                    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                    CUtensorMapL2promotion l2_promotion,
                                    CUtensorMapFloatOOBfill oob_fill) {
    return locked_call(
        "cuTensorMapEncodeIm2col",
        [&] {
            require_device(9);
            const Request request{
                map,        type,    rank,         address, dimensions, strides, element_strides,
                interleave, swizzle, l2_promotion, oob_fill};
            require_modes(request);
            require_tensor(request, 3);
            require_pointer(lower, "the lower corner");
            require_pointer(upper, "the upper corner");
            Encoded result = encoded(request, Encoded::Im2col);
            const int limit = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
            for (cuuint32_t i = 0; i + 2 < rank; ++i) {
                require_corners(lower[i], upper[i], limit, dimensions[i + 1]);
                result.lower[i] = static_cast<std::int16_t>(lower[i]);
                result.upper[i] = static_cast<std::int16_t>(upper[i]);
            }
            require_pixels(request, channels, pixels);
            result.box[0] = static_cast<std::uint16_t>(channels);
            result.box[1] = static_cast<std::uint16_t>(pixels);
            store(result, map);
        },
        map, static_cast<int>(type), rank, address);
}

CUDAMOD_API
cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                            void* address, const cuuint64_t* dimensions, const cuuint64_t* strides,
                            int lower, int upper, cuuint32_t channels, cuuint32_t pixels,
                            const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                            CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                            CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill oob_fill) {
    return locked_call(
        "cuTensorMapEncodeIm2colWide",
        [&] {
            require_device(10);
            const Request request{
                map,        type,    rank,         address, dimensions, strides, element_strides,
                interleave, swizzle, l2_promotion, oob_fill};
            require_modes(request);
            require_tensor(request, 3);
            require(static_cast<unsigned>(mode) <= CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
                    "Im2col wide mode %d is unknown", static_cast<int>(mode));
            require(swizzle == CU_TENSOR_MAP_SWIZZLE_64B || swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
                        swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
                    "Swizzle %d is none of im2col wide's", static_cast<int>(swizzle));
            require_corners(lower, upper, 32768, dimensions[1]);
            require_pixels(request, channels, pixels);
            Encoded result = encoded(request, Encoded::Im2colWide);
            result.mode = static_cast<std::uint8_t>(mode);
            result.lower[0] = static_cast<std::int16_t>(lower);
            result.upper[0] = static_cast<std::int16_t>(upper);
            result.box[0] = static_cast<std::uint16_t>(channels);
            result.box[1] = static_cast<std::uint16_t>(pixels);
            store(result, map);
        },
        map, static_cast<int>(type), rank, address);
}

CUDAMOD_API cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
    return locked_call(
        "cuTensorMapReplaceAddress",
        [&] {
            require_device(9);
            require_pointer(map, "the tensor map");
            Encoded value;
            std::memcpy(static_cast<void*>(&value), map, sizeof value);
            require(value.magic == Encoded::kMagic,
                    "The 128 bytes are no tensor map of this driver");
            const bool wide =
                is_padded(value.data_type) || value.interleave == CU_TENSOR_MAP_INTERLEAVE_32B;
            const auto number = reinterpret_cast<std::uintptr_t>(address);
            require(number && number % (wide ? 32 : 16) == 0,
                    "Address 0x%" PRIxPTR " is not aligned to %d", number, wide ? 32 : 16);
            value.address = number;
            store(value, map);
        },
        map, address);
}
