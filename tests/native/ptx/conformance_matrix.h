/// Products of matrices over random operands. A thread's registers come from its three words and
/// from those of other threads of its warp; its result is one pair of the product's registers.
///
/// Integers and double precision must have the card's bits. Sums of the smaller types are compared
/// with a tolerance, so conformance_matrix.txt keeps the card's words themselves.
#pragma once

#include "conformance.h"

#include <array>

namespace conformance {

struct MatrixCase {
    std::string instruction;
    std::string kinds[3]; ///< f16 bf16 tf32 f32 f64 e4m3 e5m2 i
    int registers[4];     ///< of d, a, b and c
    int pair = 0;         ///< which of d's pairs is the result
    double tolerance = 0; ///< of the sum of the absolute values of products and addend; 0: exact
};

inline std::string title(const MatrixCase& c) {
    return c.instruction + " pair " + std::to_string(c.pair);
}

constexpr std::size_t kMatrixThreads = 512;

/// One element. Every fourth warp has numbers near one, of wide range, near zero, or any bits.
inline std::uint64_t matrix_element(const std::string& kind, std::size_t mode,
                                    std::uint64_t& random) {
    const std::uint64_t bits = next_random(random);
    struct Layout {
        int width, mantissa, bias, least, most;
    };
    const Layout f = kind == "f16"    ? Layout{16, 10, 15, 1, 30}
                     : kind == "bf16" ? Layout{16, 7, 127, 110, 144}
                     : kind == "e4m3" ? Layout{8, 3, 7, 1, 14}
                     : kind == "e5m2" ? Layout{8, 2, 15, 1, 30}
                     : kind == "f64"  ? Layout{64, 52, 1023, 1000, 1046}
                                      : Layout{32, 23, 127, 110, 144};
    if (kind == "i" || mode == 3) return bits;
    const std::uint64_t sign = bits >> 63 << (f.width - 1),
                        mantissa = bits & ((std::uint64_t{1} << f.mantissa) - 1);
    int exponent = f.bias - 2 + static_cast<int>(bits >> 57 & 3);
    if (mode == 1)
        exponent = f.least +
                   static_cast<int>((bits >> 53 & 0x3ff) % static_cast<unsigned>(f.most - f.least));
    if (mode == 2) exponent = static_cast<int>(bits >> 57 & 1);
    return sign | static_cast<std::uint64_t>(exponent) << f.mantissa | mantissa;
}

inline std::vector<std::vector<std::uint64_t>> inputs(const MatrixCase& c) {
    std::vector<std::vector<std::uint64_t>> columns(3);
    std::uint64_t random = 77;
    for (std::size_t n = 0; n < 3; ++n) {
        const std::string& kind = c.kinds[n];
        const unsigned width = kind == "f16" || kind == "bf16"    ? 16
                               : kind == "e4m3" || kind == "e5m2" ? 8
                               : kind == "f64" || kind == "i"     ? 64
                                                                  : 32;
        for (std::size_t thread = 0; thread < kMatrixThreads; ++thread) {
            std::uint64_t word = 0;
            for (unsigned at = 0; at < 64; at += width)
                word |= matrix_element(kind, thread / 32 % 4, random) << at;
            columns[n].push_back(word);
        }
    }
    return columns;
}

/// `.visible .entry k0(out, a, b, c)`.
inline std::string kernel(const MatrixCase& c) {
    const bool wide = c.kinds[0] == "f64";
    std::string text =
        ".visible .entry k0(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
        "\t.reg .b32 %i<4>;\n\t.reg .b64 %address, %word;\n";
    const char* const names[] = {"d", "a", "b", "c"};
    for (int n = 0; n < 4; ++n)
        text += std::string("\t.reg ") + (wide ? ".f64 %" : ".b32 %") + names[n] + "<" +
                std::to_string(c.registers[n]) + ">;\n";
    text +=
        "\tmov.u32 %i0, %ctaid.x;\n\tmov.u32 %i1, %ntid.x;\n\tmov.u32 %i2, %tid.x;\n\tmad.lo.u32 "
        "%i0, %i0, %i1, %i2;\n";
    const auto list = [&](int n) {
        std::string result = "{";
        for (int r = 0; r < c.registers[n]; ++r)
            result += std::string(r == 0 ? "%" : ", %") + names[n] + std::to_string(r);
        return result + "}";
    };
    for (int n = 1; n < 4; ++n) {
        text += std::string("\tld.param.u64 %address, [") + names[n] +
                "];\n\tmad.wide.u32 %address, %i0, 8, %address;\n\tld.global.b64 %word, "
                "[%address];\n\tmov.b64 {%i1, %i2}, %word;\n";
        for (int r = 0; r < c.registers[n]; ++r) {
            // Each further pair of registers is another lane's word.
            const std::string name = std::string("%") + names[n] + std::to_string(r);
            const std::string step = std::to_string(wide ? r : r / 2);
            if (wide) {
                text += "\tshfl.sync.bfly.b32 %i3, %i1, " + step +
                        ", 31, -1;\n\tshfl.sync.bfly.b32 %i2, %i2, " + step +
                        ", 31, -1;\n\tmov.b64 " + name +
                        ", {%i3, %i2};\n\tmov.b64 {%i1, %i2}, "
                        "%word;\n";
            } else {
                text += "\tshfl.sync.bfly.b32 " + name + ", %i" + (r % 2 == 0 ? "1, " : "2, ") +
                        step + ", 31, -1;\n";
            }
        }
    }
    text += "\t" + c.instruction + " " + list(0) + ", " + list(1) + ", " + list(2) + ", " +
            list(3) + ";\n";
    const auto d = [&](int n) { return "%d" + std::to_string(n % c.registers[0]); };
    text += wide ? "\tmov.b64 %word, " + d(c.pair) + ";\n"
                 : "\tmov.b64 %word, {" + d(2 * c.pair) + ", " + d(2 * c.pair + 1) + "};\n";
    return text + "\tld.param.u64 %address, [out];\n\tmad.wide.u32 %address, %i0, 8, "
                  "%address;\n\tst.global.b64 [%address], %word;\n\tret;\n}\n";
}

inline std::vector<MatrixCase> matrix_cases() {
    std::vector<MatrixCase> cases;
    const auto add = [&](const std::string& shape, const std::string& types, const char* ab,
                         const char* c, std::array<int, 4> r, double tolerance,
                         const char* tail = "") {
        const bool wide = std::string(ab) == "f64";
        const int pairs = wide ? r[0] : (r[0] + 1) / 2;
        for (int pair = 0; pair < pairs; ++pair) {
            cases.push_back({"mma.sync.aligned." + shape + ".row.col." + types + tail,
                             {ab, ab, c},
                             {r[0], r[1], r[2], r[3]},
                             pair,
                             tolerance});
        }
    };
    constexpr double kSingle = 0x1p-21, kHalf = 0x1p-10;
    add("m16n8k8", "f32.f16.f16.f32", "f16", "f32", {4, 2, 1, 4}, kSingle);
    add("m16n8k16", "f32.f16.f16.f32", "f16", "f32", {4, 4, 2, 4}, kSingle);
    add("m16n8k8", "f16.f16.f16.f16", "f16", "f16", {2, 2, 1, 2}, kHalf);
    add("m16n8k16", "f16.f16.f16.f16", "f16", "f16", {2, 4, 2, 2}, kHalf);
    add("m16n8k8", "f32.bf16.bf16.f32", "bf16", "f32", {4, 2, 1, 4}, kSingle);
    add("m16n8k16", "f32.bf16.bf16.f32", "bf16", "f32", {4, 4, 2, 4}, kSingle);
    add("m16n8k4", "f32.tf32.tf32.f32", "tf32", "f32", {4, 2, 1, 4}, kSingle);
    add("m16n8k8", "f32.tf32.tf32.f32", "tf32", "f32", {4, 4, 2, 4}, kSingle);
    add("m16n8k32", "f32.e4m3.e4m3.f32", "e4m3", "f32", {4, 4, 2, 4}, kSingle);
    add("m16n8k32", "f32.e5m2.e5m2.f32", "e5m2", "f32", {4, 4, 2, 4}, kSingle);
    add("m8n8k4", "f64.f64.f64.f64", "f64", "f64", {2, 1, 1, 2}, 0);
    add("m16n8k8", "f64.f64.f64.f64", "f64", "f64", {4, 4, 2, 4}, 0);
    for (const std::string types : {"s8.s8", "u8.u8", "s8.u8"}) {
        add("m8n8k16", "s32." + types + ".s32", "i", "i", {2, 1, 1, 2}, 0);
        add("m16n8k32", "s32." + types + ".s32", "i", "i", {4, 4, 2, 4}, 0);
    }
    for (const std::string types : {"s4.s4", "u4.u4"})
        add("m16n8k64", "s32." + types + ".s32", "i", "i", {4, 4, 2, 4}, 0);
    add("m16n8k256", "s32.b1.b1.s32", "i", "i", {4, 4, 2, 4}, 0, ".xor.popc");
    add("m16n8k256", "s32.b1.b1.s32", "i", "i", {4, 4, 2, 4}, 0, ".and.popc");
    const std::size_t plain = cases.size();
    for (std::size_t n = 0; n < plain; ++n) {
        const std::string& text = cases[n].instruction;
        if (text.find("m16n8k32") == std::string::npos ||
            text.find("s32.s8.s8") == std::string::npos)
            continue;
        MatrixCase saturated = cases[n];
        saturated.instruction.replace(text.find("row.col"), 7, "row.col.satfinite");
        cases.push_back(std::move(saturated));
    }
    return cases;
}

} // namespace conformance
