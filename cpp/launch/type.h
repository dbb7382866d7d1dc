#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cudamod::launch {

/// What a kernel parameter takes, as far as it is known.
enum class TypeClass : std::uint8_t {
    Integer,
    Float,
    BFloat,
    Bool,
    Complex,
    Pointer,
    Bytes,   // a struct or an array by value
    Unknown, // only the size is known
};

/// The type of one kernel parameter. An integer takes -`low` .. `high`.
struct Type {
    TypeClass type_class = TypeClass::Unknown;
    /// PTX knows no sign: its integers take both ranges, and those of 8 bytes pointers too.
    bool signedness_known = true;
    /// In bytes; 0 while only the driver can tell (a class or an enumeration by name).
    std::uint32_t size = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    bool takes_pointer() const {
        return type_class == TypeClass::Pointer ||
               (size == 8 && (type_class == TypeClass::Unknown ||
                              (type_class == TypeClass::Integer && !signedness_known)));
    }
    bool operator==(const Type&) const = default;
};

/// A parameter of which only the size is known.
Type unknown_of_size(std::uint32_t size);

/// The type of a name: i8..i64, u8..u64, b8..b64 (integers of either sign, as PTX has them), f16,
/// bf16, f32, f64, bool, c64, c128, ptr, bytes[N]. None for another name.
std::optional<Type> type_of_name(std::string_view name);

/// The name of a type, as `type_of_name` takes it; a description where there is none ("4 bytes").
std::string name_of(const Type& type);

} // namespace cudamod::launch
