#include "launch/type.h"

#include <array>
#include <charconv>
#include <utility>

namespace cudamod::launch {

namespace {

constexpr std::uint64_t power(unsigned bits) {
    return std::uint64_t{1} << bits;
}
constexpr std::uint64_t unsigned_high(unsigned bits) {
    return bits == 64 ? ~std::uint64_t{0} : power(bits) - 1;
}

constexpr Type signed_integer(std::uint32_t size) {
    return {TypeClass::Integer, true, size, power(8 * size - 1), power(8 * size - 1) - 1};
}
/// PTX knows no sign: -2^(n-1) .. 2^n - 1, and 8 bytes may be a pointer.
constexpr Type integer_of_either_sign(std::uint32_t size) {
    return {TypeClass::Integer, false, size, power(8 * size - 1), unsigned_high(8 * size)};
}
constexpr Type unsigned_integer(std::uint32_t size) {
    return {TypeClass::Integer, true, size, 0, unsigned_high(8 * size)};
}

constexpr std::array kNames{
    std::pair{std::string_view("i8"), signed_integer(1)},
    std::pair{std::string_view("i16"), signed_integer(2)},
    std::pair{std::string_view("i32"), signed_integer(4)},
    std::pair{std::string_view("i64"), signed_integer(8)},
    std::pair{std::string_view("u8"), unsigned_integer(1)},
    std::pair{std::string_view("u16"), unsigned_integer(2)},
    std::pair{std::string_view("u32"), unsigned_integer(4)},
    std::pair{std::string_view("u64"), unsigned_integer(8)},
    std::pair{std::string_view("b8"), integer_of_either_sign(1)},
    std::pair{std::string_view("b16"), integer_of_either_sign(2)},
    std::pair{std::string_view("b32"), integer_of_either_sign(4)},
    std::pair{std::string_view("b64"), integer_of_either_sign(8)},
    std::pair{std::string_view("f16"), Type{TypeClass::Float, true, 2, 0, 0}},
    std::pair{std::string_view("bf16"), Type{TypeClass::BFloat, true, 2, 0, 0}},
    std::pair{std::string_view("f32"), Type{TypeClass::Float, true, 4, 0, 0}},
    std::pair{std::string_view("f64"), Type{TypeClass::Float, true, 8, 0, 0}},
    std::pair{std::string_view("bool"), Type{TypeClass::Bool, true, 1, 0, 1}},
    std::pair{std::string_view("c64"), Type{TypeClass::Complex, true, 8, 0, 0}},
    std::pair{std::string_view("c128"), Type{TypeClass::Complex, true, 16, 0, 0}},
    std::pair{std::string_view("ptr"), Type{TypeClass::Pointer, true, 8, 0, ~std::uint64_t{0}}},
};

// The driver's limit on all the parameters of a kernel together.
constexpr std::uint32_t kMaxBytes = 32764;

} // namespace

Type unknown_of_size(std::uint32_t size) {
    Type type{TypeClass::Unknown, false, size, 0, 0};
    if (size == 1 || size == 2 || size == 4 || size == 8) {
        type.low = power(8 * size - 1);
        type.high = unsigned_high(8 * size);
    }
    return type;
}

std::optional<Type> type_of_name(std::string_view name) {
    for (const auto& [known, type] : kNames)
        if (known == name) return type;
    if (name.starts_with("bytes[") && name.ends_with("]")) {
        std::string_view digits = name.substr(6, name.size() - 7);
        std::uint32_t size = 0;
        auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
        if (error == std::errc() && end == digits.data() + digits.size() && size >= 1 &&
            size <= kMaxBytes)
            return Type{TypeClass::Bytes, true, size, 0, 0};
    }
    return std::nullopt;
}

std::string name_of(const Type& type) {
    for (const auto& [known, candidate] : kNames)
        if (candidate == type) return std::string(known);
    switch (type.type_class) {
    case TypeClass::Bytes:
        return "bytes[" + std::to_string(type.size) + "]";
    default:
        return std::to_string(type.size) + (type.size == 1 ? " byte" : " bytes");
    }
}

} // namespace cudamod::launch
