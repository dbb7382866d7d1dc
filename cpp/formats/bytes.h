#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace cudamod::formats {

using Bytes = std::span<const std::byte>;

/// The part [offset, offset + size) of bytes, or nothing when it isn't wholly inside.
inline std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
    return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

/// A little-endian value at an offset of any alignment, or nothing when it isn't wholly inside.
template <class T>
std::optional<T> read(Bytes bytes, std::uint64_t offset) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto part = slice(bytes, offset, sizeof(T));
    if (!part) return std::nullopt;
    T value;
    std::memcpy(&value, part->data(), sizeof(T));
    return value;
}

/// The NUL-terminated text at an offset; nothing when it starts or ends outside.
inline std::optional<std::string_view> read_string(Bytes bytes, std::uint64_t offset) {
    if (offset >= bytes.size()) return std::nullopt;
    const char* first = reinterpret_cast<const char*>(bytes.data()) + offset;
    const void* end = std::memchr(first, 0, bytes.size() - static_cast<std::size_t>(offset));
    if (!end) return std::nullopt;
    return std::string_view(first, static_cast<std::size_t>(static_cast<const char*>(end) - first));
}

inline std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline Bytes as_bytes(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// value rounded up to a multiple of alignment (1 and 0 leave it as it is); saturates.
inline std::uint64_t round_up(std::uint64_t value, std::uint64_t alignment) {
    if (alignment < 2) return value;
    const std::uint64_t over = value % alignment;
    if (over == 0) return value;
    const std::uint64_t add = alignment - over;
    return value > UINT64_MAX - add ? UINT64_MAX : value + add;
}

} // namespace cudamod::formats
