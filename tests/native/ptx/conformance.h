/// One kernel for each instruction, over corner values: what the emulated driver and a card are
/// compared by.
///
/// Results are 64-bit words; a line of conformance.txt holds an instruction and a hash of the
/// card's words.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace conformance {

/// Kinds of operands: i16 i32 i64, f16 f32 f64 (f16 and bf16 as bits), n (shift amounts), p.
struct Case {
    std::string instruction; ///< "add.s32"
    std::string result;      ///< kind
    std::vector<std::string> operands;
    std::string tail; ///< ", 0x96"
};

inline std::string title(const Case& c) {
    std::string text = c.instruction;
    for (const std::string& kind : c.operands)
        text += " " + kind;
    return text + c.tail;
}

inline std::uint64_t next_random(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

inline std::vector<std::uint64_t> corners(const std::string& kind) {
    if (kind == "p") return {0, 1};
    if (kind == "n")
        return {0,  1,  2,  7,  8,   15,  16,  17,  31,         32,
                33, 63, 64, 65, 127, 255, 256, 257, 0x80000000, 0xffffffff};
    if (kind == "f16" || kind == "f16x2") {
        return {0,          0x8000,     1,          0x8001,     0x3ff,     0x400,  0x3c00,
                0xbc00,     0x3c01,     0x4000,     0x7bff,     0xfbff,    0x7c00, 0xfc00,
                0x7e00,     0x7d01,     0xfe00,     0x3555,     0x1400,    0x5640, 0x00200001,
                0x3c00bc00, 0x7c007bff, 0x83ff0400, 0x7e003c00, 0xd640c500};
    }
    if (kind == "bf16" || kind == "bf16x2") {
        return {0,          0x8000,     1,          0x8001,     0x7f,      0x80,   0x3f80,
                0xbf80,     0x3f81,     0x4000,     0x7f7f,     0xff7f,    0x7f80, 0xff80,
                0x7fc0,     0x7f81,     0xffc0,     0x3eab,     0x0100,    0x4640, 0x00200001,
                0x3f80bf80, 0x7f807f7f, 0x807f0080, 0x7fc03f80, 0xc640c500};
    }
    if (kind == "f32") {
        std::vector<std::uint64_t> values;
        for (const float x : {0.0f,
                              1.0f,
                              2.0f,
                              0.5f,
                              1.5f,
                              2.5f,
                              3.0f,
                              0.1f,
                              255.5f,
                              65504.0f,
                              65520.0f,
                              2147483648.0f,
                              4294967296.0f,
                              9.2233720e18f,
                              1.8446744e19f,
                              1e-3f,
                              123456.789f,
                              3.14159274f,
                              0x1p-126f,
                              0x1p-127f,
                              0x1p-149f,
                              0x1.fffffep-127f,
                              0x1.fffffep127f,
                              0x1p24f,
                              0x1p-25f}) {
            values.push_back(std::bit_cast<std::uint32_t>(x));
            values.push_back(std::bit_cast<std::uint32_t>(-x));
        }
        for (const std::uint32_t x : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u,
                                      0x7f800001u, 0x7fffffffu, 0x7fc12345u})
            values.push_back(x);
        return values;
    }
    if (kind == "f64") {
        std::vector<std::uint64_t> values;
        for (const double x : {0.0,
                               1.0,
                               2.0,
                               0.5,
                               1.5,
                               2.5,
                               3.0,
                               0.1,
                               65504.0,
                               2147483647.5,
                               4294967296.0,
                               9.2233720368547758e18,
                               1.8446744073709552e19,
                               1e-3,
                               0x1p-1022,
                               0x1p-1023,
                               0x1p-1074,
                               0x1.fffffffffffffp1023,
                               0x1p53,
                               0x1p-126,
                               0x1p-149,
                               0x1.fffffefp127,
                               3.4028235677973366e38,
                               1e-300,
                               1.00000005960464477539}) {
            values.push_back(std::bit_cast<std::uint64_t>(x));
            values.push_back(std::bit_cast<std::uint64_t>(-x));
        }
        for (const std::uint64_t x :
             {0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u, 0xfff8000000000000u,
              0x7ff0000000000001u, 0x7ff8000012345678u})
            values.push_back(x);
        return values;
    }
    const unsigned bits = kind == "i16" ? 16 : kind == "i32" ? 32 : 64;
    std::vector<std::uint64_t> values;
    const std::uint64_t top = std::uint64_t{1} << (bits - 1), all = top | (top - 1);
    for (const std::uint64_t x : {std::uint64_t{0},
                                  std::uint64_t{1},
                                  std::uint64_t{2},
                                  std::uint64_t{3},
                                  std::uint64_t{7},
                                  all,
                                  all - 1,
                                  top,
                                  top - 1,
                                  top + 1,
                                  all - 6,
                                  all / 3,
                                  all / 3 * 2,
                                  all / 15,
                                  std::uint64_t{127},
                                  std::uint64_t{128},
                                  std::uint64_t{255},
                                  std::uint64_t{256},
                                  all - 127,
                                  all - 128,
                                  std::uint64_t{32767},
                                  std::uint64_t{32768},
                                  std::uint64_t{65535} & all,
                                  std::uint64_t{65536} & all,
                                  all - 32767,
                                  all - 32768,
                                  std::uint64_t{0x12345678} & all,
                                  std::uint64_t{0x00ffffff} & all,
                                  std::uint64_t{0x00800000} & all,
                                  std::uint64_t{0xfedcba9876543210} & all,
                                  (std::uint64_t{1} << 24 | 1) & all,
                                  (std::uint64_t{1} << 53 | 1) & all,
                                  (std::uint64_t{1} << 62 | 1) & all}) {
        values.push_back(x);
    }
    return values;
}

/// One operand's values: corners, then random ones.
inline std::vector<std::uint64_t> pool(const std::string& kind, std::size_t count,
                                       std::uint64_t seed) {
    std::vector<std::uint64_t> values = corners(kind);
    if (kind == "p") return values;
    const bool is_float = kind[0] == 'f' || kind[0] == 'b';
    while (values.size() < count) {
        std::uint64_t x = next_random(seed);
        if (kind == "n") x &= 127;
        if (is_float && (seed & 1) != 0 && kind == "f32")
            x = std::bit_cast<std::uint32_t>((static_cast<float>(x % 200001) - 100000.0f) / 64.0f);
        if (is_float && (seed & 1) != 0 && kind == "f64")
            x = std::bit_cast<std::uint64_t>((static_cast<double>(x % 2000001) - 1000000.0) /
                                             1024.0);
        values.push_back(x);
    }
    return values;
}

/// The words of all operands, operand after operand, each of the same count.
inline std::vector<std::vector<std::uint64_t>> inputs(const Case& c) {
    std::vector<std::vector<std::uint64_t>> columns(3);
    const std::size_t operands = c.operands.size();
    if (operands == 1) {
        columns[0] = pool(c.operands[0], 1024, 11);
    } else if (operands == 2) {
        const auto a = pool(c.operands[0], 64, 21), b = pool(c.operands[1], 64, 22);
        for (const auto x : a)
            for (const auto y : b)
                columns[0].push_back(x), columns[1].push_back(y);
    } else {
        const auto a = pool(c.operands[0], 0, 31), b = pool(c.operands[1], 0, 32),
                   d = pool(c.operands[2], 0, 33);
        std::uint64_t seed = 34;
        for (const auto x : a)
            for (const auto y : b) {
                columns[0].push_back(x), columns[1].push_back(y),
                    columns[2].push_back(d[next_random(seed) % d.size()]);
            }
        for (int n = 0; n < 1024; ++n) {
            for (std::size_t k = 0; k < 3; ++k) {
                const auto values = pool(c.operands[k], 0, 0);
                columns[k].push_back(c.operands[k] == "p" || c.operands[k] == "n" || n % 4 == 0
                                         ? values[next_random(seed) % values.size()]
                                         : next_random(seed));
            }
        }
    }
    for (auto& column : columns)
        column.resize(columns[0].size());
    return columns;
}

inline unsigned width(const std::string& kind) {
    if (kind == "i16" || kind == "f16" || kind == "bf16") return 16;
    return kind == "i64" || kind == "f64" ? 64 : 32;
}

/// `.visible .entry kN(out, a, b, c, n)`.
inline std::string kernel(const Case& c, std::size_t number) {
    const std::string name = "k" + std::to_string(number);
    const auto type = [](const std::string& kind) -> std::string {
        if (kind == "p") return "pred";
        if (kind == "f32" || kind == "f64") return kind;
        return "b" + std::to_string(width(kind));
    };
    std::string text =
        ".visible .entry " + name +
        "(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n" +
        "\t.reg .pred %out_of_range;\n\t.reg .b32 %i<5>;\n\t.reg .b64 %address<5>, %w<4>;\n";
    const std::string names[] = {"%a", "%b", "%c"};
    text += "\t.reg ." + type(c.result) + " %d;\n";
    for (std::size_t n = 0; n < c.operands.size(); ++n)
        text += "\t.reg ." + type(c.operands[n]) + " " + names[n] + ";\n";
    text += "\tmov.u32 %i1, %ctaid.x;\n\tmov.u32 %i2, %ntid.x;\n\tmov.u32 %i3, "
            "%tid.x;\n\tmad.lo.u32 %i0, %i1, %i2, %i3;\n"
            "\tld.param.u32 %i4, [n];\n\tsetp.ge.u32 %out_of_range, %i0, %i4;\n\t@%out_of_range "
            "bra DONE;\n";
    const std::string parameters[] = {"a", "b", "c"};
    for (std::size_t n = 0; n < c.operands.size(); ++n) {
        const std::string w = "%w" + std::to_string(n), kind = c.operands[n];
        text += "\tld.param.u64 %address0, [" + parameters[n] +
                "];\n\tmad.wide.u32 %address0, %i0, 8, %address0;\n\tld.global.b64 " + w +
                ", [%address0];\n";
        if (kind == "p") {
            text += "\tsetp.ne.b64 " + names[n] + ", " + w + ", 0;\n";
        } else if (width(kind) == 64) {
            text += "\tmov.b64 " + names[n] + ", " + w + ";\n";
        } else if (width(kind) == 32) {
            text += "\tcvt.u32.u64 %i1, " + w + ";\n\tmov.b32 " + names[n] + ", %i1;\n";
        } else {
            text += "\tcvt.u16.u64 " + names[n] + ", " + w + ";\n";
        }
    }
    text += "\t" + c.instruction + " %d";
    for (std::size_t n = 0; n < c.operands.size(); ++n)
        text += ", " + names[n];
    text += c.tail + ";\n";
    if (c.result == "p") {
        text += "\tselp.b64 %w3, 1, 0, %d;\n";
    } else if (width(c.result) == 64) {
        text += "\tmov.b64 %w3, %d;\n";
    } else if (width(c.result) == 32) {
        text += "\tmov.b32 %i1, %d;\n\tcvt.u64.u32 %w3, %i1;\n";
    } else {
        text += "\tcvt.u64.u16 %w3, %d;\n";
    }
    return text + "\tld.param.u64 %address0, [out];\n\tmad.wide.u32 %address0, %i0, 8, "
                  "%address0;\n\tst.global.b64 [%address0], %w3;\nDONE:\n\tret;\n}\n";
}

inline std::uint64_t hash(const std::vector<std::uint64_t>& words) {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const std::uint64_t word : words) {
        for (unsigned byte = 0; byte < 8; ++byte)
            h = (h ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3;
    }
    return h;
}

std::vector<Case> all_cases();

} // namespace conformance

#include "conformance_cases.h"
