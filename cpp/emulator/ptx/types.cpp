#include "emulator/ptx/types.h"

#include <array>

namespace cudamod::emulator::ptx {
namespace {

enum Class : std::uint8_t { kOther, kBits, kUnsigned, kSigned, kFloat };

struct TypeRow {
    std::string_view name;
    std::uint8_t size;
    Class kind;
    bool packed;
    bool fundamental;
};

// Indexed by Type.
constexpr std::array<TypeRow, 32> kTypes{{
    {"none", 0, kOther, false, false},  {"pred", 0, kOther, false, true},
    {"b8", 1, kBits, false, true},      {"b16", 2, kBits, false, true},
    {"b32", 4, kBits, false, true},     {"b64", 8, kBits, false, true},
    {"b128", 16, kBits, false, true},   {"u8", 1, kUnsigned, false, true},
    {"u16", 2, kUnsigned, false, true}, {"u32", 4, kUnsigned, false, true},
    {"u64", 8, kUnsigned, false, true}, {"s8", 1, kSigned, false, true},
    {"s16", 2, kSigned, false, true},   {"s32", 4, kSigned, false, true},
    {"s64", 8, kSigned, false, true},   {"f16", 2, kFloat, false, true},
    {"f16x2", 4, kOther, true, true},   {"bf16", 2, kFloat, false, false},
    {"bf16x2", 4, kOther, true, false}, {"f32", 4, kFloat, false, true},
    {"f64", 8, kFloat, false, true},    {"u16x2", 4, kOther, true, false},
    {"s16x2", 4, kOther, true, false},  {"f32x2", 8, kOther, true, false},
    {"tf32", 4, kOther, false, false},  {"e4m3x2", 2, kOther, true, false},
    {"e5m2x2", 2, kOther, true, false}, {"e4m3", 1, kOther, false, false},
    {"e5m2", 1, kOther, false, false},  {"s4", 0, kOther, false, false},
    {"u4", 0, kOther, false, false},    {"b1", 0, kOther, false, false},
}};

const TypeRow& row(Type type) {
    return kTypes[static_cast<std::size_t>(type)];
}

} // namespace

std::optional<Type> type_named(std::string_view name) {
    for (std::size_t i = 1; i < kTypes.size(); ++i) {
        if (kTypes[i].name == name) return static_cast<Type>(i);
    }
    return std::nullopt;
}

std::string_view name_of(Type type) {
    return row(type).name;
}
unsigned size_of(Type type) {
    return row(type).size;
}
unsigned bits_of(Type type) {
    if (type == Type::TF32) return 32;
    if (type == Type::S4 || type == Type::U4) return 4;
    return type == Type::B1 ? 1 : 8 * size_of(type);
}
bool is_signed(Type type) {
    return row(type).kind == kSigned;
}
bool is_integer(Type type) {
    return row(type).kind == kSigned || row(type).kind == kUnsigned;
}
bool is_float(Type type) {
    return row(type).kind == kFloat;
}
bool is_bits(Type type) {
    return row(type).kind == kBits;
}
bool is_packed(Type type) {
    return row(type).packed;
}
bool is_fundamental(Type type) {
    return row(type).fundamental;
}

Type bits_of_size(unsigned bytes) {
    switch (bytes) {
    case 1:
        return Type::B8;
    case 2:
        return Type::B16;
    case 4:
        return Type::B32;
    case 8:
        return Type::B64;
    default:
        return Type::B128;
    }
}

Type widened(Type type) {
    switch (type) {
    case Type::U16:
        return Type::U32;
    case Type::S16:
        return Type::S32;
    case Type::U32:
        return Type::U64;
    case Type::S32:
        return Type::S64;
    default:
        return Type::None;
    }
}

} // namespace cudamod::emulator::ptx
