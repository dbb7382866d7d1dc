/// Where mma's elements lie, as PTX documents them, and matrices of small integers to fill them.
#pragma once

#include "harness.h"

#include <bit>
#include <functional>

namespace layouts {

/// Row and column of an element of thread `lane`, as PTX documents them.
using Place = std::function<std::pair<int, int>(int lane, int index)>;

struct Shape {
    const char* name;
    int m, n, k;
    int bits; ///< of an element of A and B
    Place a, b, c;
    int a_registers, b_registers, c_registers;
};

inline int group(int lane) {
    return lane >> 2;
}
inline int member(int lane) {
    return lane % 4;
}

// The accumulators of all shapes with 16 rows.
inline std::pair<int, int> c16(int lane, int i) {
    return {i < 2 ? group(lane) : group(lane) + 8, member(lane) * 2 + (i & 1)};
}
inline std::pair<int, int> c8(int lane, int i) {
    return {group(lane), member(lane) * 2 + (i & 1)};
}

inline const Shape kShapes[] = {
    {"m16n8k8", 16, 8, 8, 16,
     [](int l, int i) {
         return std::pair(i < 2 ? group(l) : group(l) + 8, member(l) * 2 + (i & 1));
     },
     [](int l, int i) { return std::pair(member(l) * 2 + i, group(l)); }, c16, 2, 1, 4},
    {"m16n8k16", 16, 8, 16, 16,
     [](int l, int i) {
         return std::pair(i < 2 || (i >= 4 && i < 6) ? group(l) : group(l) + 8,
                          member(l) * 2 + (i & 1) + (i >= 4 ? 8 : 0));
     },
     [](int l, int i) { return std::pair(member(l) * 2 + (i & 1) + (i >= 2 ? 8 : 0), group(l)); },
     c16, 4, 2, 4},
    {"m16n8k4", 16, 8, 4, 32,
     [](int l, int i) { return std::pair(i == 0 ? group(l) : group(l) + 8, member(l)); },
     [](int l, int) { return std::pair(member(l), group(l)); }, c16, 2, 1, 4},
    {"m16n8k8", 16, 8, 8, 32,
     [](int l, int i) {
         return std::pair(i == 0 || i == 2 ? group(l) : group(l) + 8,
                          i < 2 ? member(l) : member(l) + 4);
     },
     [](int l, int i) { return std::pair(i == 0 ? member(l) : member(l) + 4, group(l)); }, c16, 4,
     2, 4},
    {"m8n8k16", 8, 8, 16, 8, [](int l, int i) { return std::pair(group(l), member(l) * 4 + i); },
     [](int l, int i) { return std::pair(member(l) * 4 + i, group(l)); }, c8, 1, 1, 2},
    {"m16n8k16", 16, 8, 16, 8,
     [](int l, int i) {
         return std::pair(i < 4 ? group(l) : group(l) + 8, member(l) * 4 + (i & 3));
     },
     [](int l, int i) { return std::pair(member(l) * 4 + i, group(l)); }, c16, 2, 1, 4},
    {"m16n8k32", 16, 8, 32, 8,
     [](int l, int i) {
         return std::pair(i < 4 || (i >= 8 && i < 12) ? group(l) : group(l) + 8,
                          member(l) * 4 + (i & 3) + (i < 8 ? 0 : 16));
     },
     [](int l, int i) { return std::pair(member(l) * 4 + (i & 3) + (i < 4 ? 0 : 16), group(l)); },
     c16, 4, 2, 4},
    {"m8n8k32", 8, 8, 32, 4, [](int l, int i) { return std::pair(group(l), member(l) * 8 + i); },
     [](int l, int i) { return std::pair(member(l) * 8 + i, group(l)); }, c8, 1, 1, 2},
    {"m16n8k32", 16, 8, 32, 4,
     [](int l, int i) {
         return std::pair(i < 8 ? group(l) : group(l) + 8, member(l) * 8 + (i & 7));
     },
     [](int l, int i) { return std::pair(member(l) * 8 + (i & 7), group(l)); }, c16, 2, 1, 4},
    {"m16n8k64", 16, 8, 64, 4,
     [](int l, int i) {
         return std::pair(i < 8 || (i >= 16 && i < 24) ? group(l) : group(l) + 8,
                          member(l) * 8 + (i & 7) + (i < 16 ? 0 : 32));
     },
     [](int l, int i) { return std::pair(member(l) * 8 + (i & 7) + (i < 8 ? 0 : 32), group(l)); },
     c16, 4, 2, 4},
    {"m8n8k128", 8, 8, 128, 1, [](int l, int i) { return std::pair(group(l), member(l) * 32 + i); },
     [](int l, int i) { return std::pair(member(l) * 32 + i, group(l)); }, c8, 1, 1, 2},
    {"m16n8k256", 16, 8, 256, 1,
     [](int l, int i) {
         return std::pair(i < 32 || (i >= 64 && i < 96) ? group(l) : group(l) + 8,
                          member(l) * 32 + (i & 31) + (i < 64 ? 0 : 128));
     },
     [](int l, int i) {
         return std::pair(member(l) * 32 + (i & 31) + (i < 32 ? 0 : 128), group(l));
     },
     c16, 4, 2, 4},
    {"m8n8k4", 8, 8, 4, 64, [](int l, int) { return std::pair(l >> 2, l % 4); },
     [](int l, int) { return std::pair(l % 4, l >> 2); }, c8, 1, 1, 2},
    {"m16n8k16", 16, 8, 16, 64,
     [](int l, int i) {
         return std::pair(i % 2 == 0 ? group(l) : group(l) + 8, member(l) + i / 2 * 4);
     },
     [](int l, int i) { return std::pair(member(l) + 4 * i, group(l)); }, c16, 8, 4, 4},
};

inline const Shape& shape(const std::string& name, int bits) {
    for (const Shape& candidate : kShapes) {
        if (name == candidate.name && bits == candidate.bits) return candidate;
    }
    check::report(__FILE__, __LINE__, "no shape " + name);
    return kShapes[0];
}

inline std::uint64_t random_state = 7;
inline int random_number(int least, int most) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return least + static_cast<int>((random_state >> 33) % static_cast<unsigned>(most - least + 1));
}

/// An element's bits; all types here hold small integers exactly.
inline std::uint64_t bits_of(int value, const std::string& type) {
    const auto x = static_cast<float>(value);
    const auto single = std::bit_cast<std::uint32_t>(x);
    if (type == "f64") return std::bit_cast<std::uint64_t>(static_cast<double>(value));
    if (type == "tf32" || type == "f32") return single;
    if (type == "bf16") return single >> 16;
    const std::uint32_t sign = value < 0 ? 1 : 0;
    if (value == 0 && (type[0] == 'f' || type[0] == 'e')) return 0;
    const std::uint32_t exponent = (single >> 23 & 0xff) - 127, mantissa = single & 0x7fffff;
    if (type == "f16") return sign << 15 | (exponent + 15) << 10 | mantissa >> 13;
    if (type == "e4m3") return sign << 7 | (exponent + 7) << 3 | mantissa >> 20;
    if (type == "e5m2") return sign << 7 | (exponent + 15) << 2 | mantissa >> 21;
    return static_cast<std::uint32_t>(value) & (type == "s8" || type == "u8"   ? 0xffu
                                                : type == "s4" || type == "u4" ? 15u
                                                : type == "b1"                 ? 1u
                                                                               : 0xffffffffu);
}

using Matrix = std::vector<std::vector<int>>;
inline Matrix random_matrix(int rows, int columns, int least, int most) {
    Matrix matrix(static_cast<std::size_t>(rows));
    for (auto& row : matrix) {
        for (int n = 0; n < columns; ++n)
            row.push_back(random_number(least, most));
    }
    return matrix;
}
inline int& at(Matrix& matrix, std::pair<int, int> place) {
    return matrix[static_cast<std::size_t>(place.first)][static_cast<std::size_t>(place.second)];
}

/// Registers of all lanes, lane by lane.
inline std::vector<std::uint64_t> packed(Matrix& matrix, const Place& place, int registers,
                                         int bits, const std::string& type) {
    std::vector<std::uint64_t> words;
    const int each = bits == 64 ? 1 : 32 / bits;
    for (int lane = 0; lane < 32; ++lane) {
        for (int r = 0; r < registers; ++r) {
            std::uint64_t word = 0;
            for (int e = 0; e < each; ++e)
                word |= bits_of(at(matrix, place(lane, r * each + e)), type) << (bits * e % 64);
            words.push_back(word);
        }
    }
    return words;
}

inline std::string registers(const std::string& name, int count) {
    std::string text = "{";
    for (int n = 0; n < count; ++n)
        text += (n == 0 ? "%" : ", %") + name + std::to_string(n);
    return text + "}";
}

struct Range {
    int least, most;
};
inline Range range_of(const std::string& type) {
    if (type == "s8") return {-128, 127};
    if (type == "u8") return {0, 255};
    if (type == "s4") return {-8, 7};
    if (type == "u4") return {0, 15};
    if (type == "b1") return {0, 1};
    return {-8, 8};
}

} // namespace layouts
