/// mma, wmma, ldmatrix, stmatrix and movmatrix: where elements lie, what products give.
#include "harness.h"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

using harness::Module;
using harness::ptx::FaultKind;

namespace {

/// Row and column of an element of thread `lane`, as PTX documents them.
using Place = std::function<std::pair<int, int>(int lane, int index)>;

struct Shape {
    const char* name;
    int m, n, k;
    int bits; ///< of an element of A and B
    Place a, b, c;
    int a_registers, b_registers, c_registers;
};

int group(int lane) {
    return lane >> 2;
}
int member(int lane) {
    return lane % 4;
}

// The accumulators of all shapes with 16 rows.
std::pair<int, int> c16(int lane, int i) {
    return {i < 2 ? group(lane) : group(lane) + 8, member(lane) * 2 + (i & 1)};
}
std::pair<int, int> c8(int lane, int i) {
    return {group(lane), member(lane) * 2 + (i & 1)};
}

const Shape kShapes[] = {
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

const Shape& shape(const std::string& name, int bits) {
    for (const Shape& candidate : kShapes) {
        if (name == candidate.name && bits == candidate.bits) return candidate;
    }
    check::report(__FILE__, __LINE__, "no shape " + name);
    return kShapes[0];
}

std::uint64_t random_state = 7;
int random_number(int least, int most) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return least + static_cast<int>((random_state >> 33) % static_cast<unsigned>(most - least + 1));
}

/// An element's bits; all types here hold small integers exactly.
std::uint64_t bits_of(int value, const std::string& type) {
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
Matrix random_matrix(int rows, int columns, int least, int most) {
    Matrix matrix(static_cast<std::size_t>(rows));
    for (auto& row : matrix) {
        for (int n = 0; n < columns; ++n)
            row.push_back(random_number(least, most));
    }
    return matrix;
}
int& at(Matrix& matrix, std::pair<int, int> place) {
    return matrix[static_cast<std::size_t>(place.first)][static_cast<std::size_t>(place.second)];
}

/// Registers of all lanes, lane by lane.
std::vector<std::uint64_t> packed(Matrix& matrix, const Place& place, int registers, int bits,
                                  const std::string& type) {
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

std::string registers(const std::string& name, int count) {
    std::string text = "{";
    for (int n = 0; n < count; ++n)
        text += (n == 0 ? "%" : ", %") + name + std::to_string(n);
    return text + "}";
}

/// Loads operands from 64-bit words by lane, runs the instruction, stores D the same way.
std::string kernel(const std::string& instruction, int d, int a, int b, int c, bool wide_inputs,
                   bool wide_sums) {
    const auto declare = [](const std::string& name, int count, bool wide) {
        return std::string(".reg ") + (wide ? ".f64 %" : ".b32 %") + name + "<" +
               std::to_string(count) + ">;\n";
    };
    std::string text = harness::header() +
                       ".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 "
                       "c)\n{\n.reg .b32 %t; .reg .b64 %p, %w;\nmov.u32 %t, %tid.x;\n" +
                       declare("d", d, wide_sums) + declare("a", a, wide_inputs) +
                       declare("b", b, wide_inputs) + declare("c", c, wide_sums);
    const auto load = [&](const std::string& name, int count, bool wide) {
        text += "ld.param.u64 %p, [" + name + "]; mad.wide.u32 %p, %t, " +
                std::to_string(8 * count) + ", %p;\n";
        for (int n = 0; n < count; ++n)
            text += std::string("ld.global.") + (wide ? "f64" : "b32") + " %" + name +
                    std::to_string(n) + ", [%p+" + std::to_string(8 * n) + "];\n";
    };
    load("a", a, wide_inputs);
    load("b", b, wide_inputs);
    load("c", c, wide_sums);
    text += instruction + " " + registers("d", d) + ", " + registers("a", a) + ", " +
            registers("b", b) + ", " + registers("c", c) + ";\n";
    text += "ld.param.u64 %p, [d]; mad.wide.u32 %p, %t, " + std::to_string(8 * d) + ", %p;\n";
    for (int n = 0; n < d; ++n) {
        if (wide_sums) {
            text +=
                "st.global.f64 [%p+" + std::to_string(8 * n) + "], %d" + std::to_string(n) + ";\n";
        } else {
            text += "cvt.u64.u32 %w, %d" + std::to_string(n) + "; st.global.u64 [%p+" +
                    std::to_string(8 * n) + "], %w;\n";
        }
    }
    return text + "ret;\n}\n";
}

struct Range {
    int least, most;
};
Range range_of(const std::string& type) {
    if (type == "s8") return {-128, 127};
    if (type == "u8") return {0, 255};
    if (type == "s4") return {-8, 7};
    if (type == "u4") return {0, 15};
    if (type == "b1") return {0, 1};
    return {-8, 8};
}

void product(const std::string& name, const std::string& d, const std::string& a,
             const std::string& b, const std::string& c, int bits, const std::string& before = "",
             const std::string& behind = "") {
    const Shape& s = shape(name, bits);
    const Range left = range_of(a), right = range_of(b);
    Matrix ma = random_matrix(s.m, s.k, left.least, left.most),
           mb = random_matrix(s.k, s.n, right.least, right.most),
           mc = random_matrix(s.m, s.n, -20, 20);
    const bool half_d = d == "f16", half_c = c == "f16", wide = d == "f64";
    const int sum_bits = wide ? 64 : 32;
    const auto words_a = packed(ma, s.a, s.a_registers, bits, a);
    const auto words_b = packed(mb, s.b, s.b_registers, bits, b);
    const auto words_c =
        packed(mc, s.c, half_c ? s.c_registers / 2 : s.c_registers, half_c ? 16 : sum_bits, c);
    const std::string instruction = "mma.sync.aligned." + name + ".row.col" + before + "." + d +
                                    "." + a + "." + b + "." + c + behind;
    const int d_registers = half_d ? s.c_registers / 2 : s.c_registers;
    Module m(kernel(instruction, d_registers, s.a_registers, s.b_registers,
                    half_c ? s.c_registers / 2 : s.c_registers, bits == 64, wide));
    const auto out = m.memory.allocate(static_cast<std::size_t>(32 * d_registers * 8));
    const auto in_a = m.memory.upload(words_a), in_b = m.memory.upload(words_b),
               in_c = m.memory.upload(words_c);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, out, in_a, in_b, in_c));
    Matrix expected = mc;
    for (int row = 0; row < s.m; ++row) {
        for (int column = 0; column < s.n; ++column) {
            for (int k = 0; k < s.k; ++k) {
                const int x = at(ma, {row, k}), y = at(mb, {k, column});
                at(expected, {row, column}) += a != "b1" ? x * y : behind[1] == 'a' ? x & y : x ^ y;
            }
        }
    }
    const auto wanted = packed(expected, s.c, d_registers, half_d ? 16 : sum_bits, d);
    if (m.memory.download<std::uint64_t>(out) != wanted)
        check::report(__FILE__, __LINE__, instruction + ": wrong product");
}

void products() {
    for (const std::string k : {"m16n8k8", "m16n8k16"}) {
        product(k, "f32", "f16", "f16", "f32", 16);
        product(k, "f16", "f16", "f16", "f16", 16);
        product(k, "f32", "bf16", "bf16", "f32", 16);
    }
    product("m16n8k4", "f32", "tf32", "tf32", "f32", 32);
    product("m16n8k8", "f32", "tf32", "tf32", "f32", 32);
    for (const std::string a : {"s8", "u8"}) {
        for (const std::string b : {"s8", "u8"}) {
            product("m8n8k16", "s32", a, b, "s32", 8);
            product("m16n8k16", "s32", a, b, "s32", 8, ".satfinite");
            product("m16n8k32", "s32", a, b, "s32", 8);
        }
    }
    for (const std::string a : {"s4", "u4"}) {
        for (const std::string b : {"s4", "u4"}) {
            product("m8n8k32", "s32", a, b, "s32", 4);
            product("m16n8k32", "s32", a, b, "s32", 4);
            product("m16n8k64", "s32", a, b, "s32", 4, ".satfinite");
        }
    }
    for (const std::string operation : {".xor.popc", ".and.popc"}) {
        product("m8n8k128", "s32", "b1", "b1", "s32", 1, "", operation);
        product("m16n8k256", "s32", "b1", "b1", "s32", 1, "", operation);
    }
    product("m8n8k4", "f64", "f64", "f64", "f64", 64);
    product("m8n8k4", "f64", "f64", "f64", "f64", 64, ".rz");
    product("m16n8k16", "f64", "f64", "f64", "f64", 64);
    for (const std::string a : {"e4m3", "e5m2"}) {
        for (const std::string b : {"e4m3", "e5m2"}) {
            product("m16n8k32", "f32", a, b, "f32", 8);
            product("m16n8k16", "f32", a, b, "f32", 8);
            product("m16n8k32", "f16", a, b, "f16", 8);
        }
    }
}

/// D[0][0] of a product of f16 whose first row and column are given.
float first_element(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b,
                    float c) {
    const Shape& s = shape("m16n8k16", 16);
    std::vector<std::uint64_t> words_a(32 * 4), words_b(32 * 2), words_c(32 * 4);
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 8; ++i) {
            const auto [row, column] = s.a(lane, i);
            if (row == 0)
                words_a[static_cast<std::size_t>(lane * 4 + i / 2)] |=
                    std::uint64_t{a[static_cast<std::size_t>(column)]} << (16 * (i % 2));
        }
        for (int i = 0; i < 4; ++i) {
            const auto [row, column] = s.b(lane, i);
            if (column == 0)
                words_b[static_cast<std::size_t>(lane * 2 + i / 2)] |=
                    std::uint64_t{b[static_cast<std::size_t>(row)]} << (16 * (i % 2));
        }
    }
    words_c[0] = std::bit_cast<std::uint32_t>(c);
    Module m(kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2, 4, false, false));
    const auto out = m.memory.allocate(32 * 4 * 8);
    const auto in_a = m.memory.upload(words_a), in_b = m.memory.upload(words_b),
               in_c = m.memory.upload(words_c);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, out, in_a, in_b, in_c));
    return std::bit_cast<float>(
        static_cast<std::uint32_t>(m.memory.download<std::uint64_t>(out)[0]));
}

void special_values() {
    constexpr std::uint16_t kOne = 0x3c00, kInfinity = 0x7c00, kNan = 0x7e00, kLargest = 0x7bff,
                            kDenormal = 1;
    const auto row = [](std::uint16_t first, std::uint16_t second = 0) {
        std::vector<std::uint16_t> values(16);
        values[0] = first, values[1] = second;
        return values;
    };
    CHECK_EQ(first_element(row(kInfinity), row(kOne), 1.0f),
             std::numeric_limits<float>::infinity());
    CHECK(std::isnan(first_element(row(kInfinity), row(0), 1.0f)));
    CHECK(std::isnan(first_element(row(kNan), row(kOne), 1.0f)));
    CHECK(std::isnan(first_element(row(kInfinity, kInfinity), row(kOne, 0xbc00), 0.0f)));
    CHECK_EQ(first_element(row(kLargest, kLargest), row(kLargest, kLargest), 0.0f),
             2.0f * 65504.0f * 65504.0f);
    CHECK_EQ(first_element(row(kDenormal), row(kDenormal), 0.0f), 0x1p-48f);
    CHECK_EQ(first_element(row(0), row(0), 0x1p-149f), 0x1p-149f);
    CHECK_EQ(first_element(row(kOne), row(kOne), -1.0f), 0.0f);
}

void rows_of_shared_memory() {
    // Every element of the four matrices is its index.
    for (const bool transposed : {false, true}) {
        const std::string trans = transposed ? ".trans" : "";
        Module m(harness::header() + R"(.visible .entry k(.param .u64 out, .param .u64 back)
{ .reg .b16 %h; .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p; .shared .align 16 .b8 s[1024];
mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; mov.u32 %r1, 0;
FILL: mad.lo.u32 %r2, %r1, 32, %r0; shl.b32 %r3, %r2, 1; mov.u32 %r4, s; add.u32 %r3, %r3, %r4; cvt.u16.u32 %h, %r2; st.shared.u16 [%r3], %h;
add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 8; @%p bra FILL;
bar.sync 0; mad.lo.u32 %r5, %r0, 16, %r4;
ldmatrix.sync.aligned.m8n8.x4)" +
                 trans + R"(.shared.b16 {%r6, %r7, %r8, %r9}, [%r5];
mad.wide.u32 %d1, %r0, 16, %d0; st.global.v4.u32 [%d1], {%r6, %r7, %r8, %r9};
add.u32 %r5, %r5, 512; stmatrix.sync.aligned.m8n8.x4)" +
                 trans + R"(.shared.b16 [%r5], {%r6, %r7, %r8, %r9};
bar.sync 0; ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r5]; ld.param.u64 %d0, [back]; mad.wide.u32 %d1, %r0, 16, %d0; st.global.v4.u32 [%d1], {%r6, %r7, %r8, %r9};
ret; })");
        if (!m.loaded()) continue;
        const auto out = m.memory.allocate(512), back = m.memory.allocate(512);
        CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, out, back));
        const auto words = m.memory.download<std::uint16_t>(out);
        const auto again = m.memory.download<std::uint16_t>(back);
        for (std::size_t n = 0; n < 256; ++n) {
            const std::size_t lane = n / 8, matrix = n / 2 % 4, e = n % 2,
                              row = transposed ? 2 * (lane % 4) + e : lane / 4,
                              column = transposed ? lane / 4 : 2 * (lane % 4) + e;
            CHECK_EQ(words[n], matrix * 64 + row * 8 + column);
            CHECK_EQ(again[n], n);
        }
    }
    Module m(harness::header() + R"(.visible .entry k(.param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %d<2>; mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; shl.b32 %r1, %r0, 17; or.b32 %r1, %r1, 0x10000; mad.lo.u32 %r1, %r0, 2, %r1;
movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; mad.wide.u32 %d0, %r0, 4, %d0; st.global.u32 [%d0], %r2; ret; })");
    const auto out = m.memory.allocate(128);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, out));
    const auto words = m.memory.download<std::uint16_t>(out);
    for (std::size_t n = 0; n < 64; ++n)
        CHECK_EQ(words[n], n % 8 * 8 + n / 8);
}

void fragments() {
    // Through memory and back, with every layout and shape.
    struct Form {
        const char *shape, *type;
        int rows, columns;
        std::size_t bytes;
    };
    const Form accumulators[] = {{"m16n16k16", "f32", 16, 16, 4}, {"m8n32k16", "f32", 8, 32, 4},
                                 {"m32n8k16", "s32", 32, 8, 4},   {"m16n16k16", "f16", 16, 16, 2},
                                 {"m16n16k8", "f32", 16, 16, 4},  {"m8n8k4", "f64", 8, 8, 8}};
    for (const Form& form : accumulators) {
        for (const std::string in : {"row", "col"}) {
            for (const std::string to : {"row", "col"}) {
                const std::string type = form.type;
                const int count = type == "f64" ? 2 : type == "f16" ? 4 : 8;
                const std::string values = registers("f", count);
                Module m(harness::header() +
                         ".visible .entry k(.param .u64 in, .param .u64 out)\n{ .reg ." +
                         (type == "f16"   ? "b32"
                          : type == "s32" ? "s32"
                                          : type) +
                         " %f<8>; .reg .b64 %d<2>; ld.param.u64 %d0, [in]; ld.param.u64 %d1, "
                         "[out];\nwmma.load.c.sync.aligned." +
                         in + "." + form.shape + ".global." + type + " " + values +
                         ", [%d0], 48;\nwmma.store.d.sync.aligned." + to + "." + form.shape + "." +
                         type + " [%d1], " + values + ", 40; ret; }\n");
                std::vector<std::uint8_t> source(48 * 32 * form.bytes);
                for (std::size_t n = 0; n < source.size(); ++n)
                    source[n] = static_cast<std::uint8_t>(n * 37 + n / 256);
                const auto a = m.memory.upload(source), b = m.memory.allocate(source.size());
                CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, a, b));
                const auto result = m.memory.download<std::uint8_t>(b);
                for (int row = 0; row < form.rows; ++row) {
                    for (int column = 0; column < form.columns; ++column) {
                        const int from = in == "row" ? row * 48 + column : column * 48 + row;
                        const int there = to == "row" ? row * 40 + column : column * 40 + row;
                        CHECK(std::memcmp(
                                  source.data() + static_cast<std::size_t>(from) * form.bytes,
                                  result.data() + static_cast<std::size_t>(there) * form.bytes,
                                  form.bytes) == 0);
                    }
                }
            }
        }
    }
}

void wmma_product(const std::string& name, int rows, int columns, int depth, const std::string& a,
                  const std::string& d, int a_registers, int b_registers, int d_registers,
                  const std::string& types) {
    const auto bytes = [](const std::string& type) {
        return type == "f64" ? 8 : type == "f16" || type == "bf16" ? 2 : type[1] == '8' ? 1 : 4;
    };
    const auto encoded = [&](Matrix& matrix, const std::string& type) {
        std::vector<std::uint8_t> out;
        for (auto& row : matrix) {
            for (const int value : row) {
                const std::uint64_t bits = bits_of(value, type);
                for (int n = 0; n < bytes(type); ++n)
                    out.push_back(static_cast<std::uint8_t>(bits >> (8 * n)));
            }
        }
        return out;
    };
    const auto declared = [&](const std::string& type, const char* letter, int count) {
        const bool plain = type == "f32" || type == "f64" || type == "s32";
        return ".reg ." + (plain ? type : "b32") + " %" + letter + "<" + std::to_string(count) +
               ">; ";
    };
    Module m(harness::header() +
             ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{ .reg .b64 %p<3>; " +
             declared(a, "a", a_registers) + declared(a, "b", b_registers) +
             declared(d, "d", d_registers) +
             "ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c];\n" +
             "wmma.load.a.sync.aligned.row." + name + ".global." + a + " " +
             registers("a", a_registers) + ", [%p0];\nwmma.load.b.sync.aligned.row." + name +
             ".global." + a + " " + registers("b", b_registers) +
             ", [%p1];\nwmma.load.c.sync.aligned.row." + name + ".global." + d + " " +
             registers("d", d_registers) + ", [%p2];\nwmma.mma.sync.aligned.row.row." + name + "." +
             types + " " + registers("d", d_registers) + ", " + registers("a", a_registers) + ", " +
             registers("b", b_registers) + ", " + registers("d", d_registers) +
             ";\nwmma.store.d.sync.aligned.row." + name + ".global." + d + " [%p2], " +
             registers("d", d_registers) + ";\nret; }\n");
    const Range range = range_of(a);
    Matrix ma = random_matrix(rows, depth, range.least, range.most),
           mb = random_matrix(depth, columns, range.least, range.most),
           mc = random_matrix(rows, columns, -9, 9);
    const auto in_a = m.memory.upload(encoded(ma, a)), in_b = m.memory.upload(encoded(mb, a)),
               in_c = m.memory.upload(encoded(mc, d));
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, in_a, in_b, in_c));
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            for (int k = 0; k < depth; ++k)
                at(mc, {row, column}) += at(ma, {row, k}) * at(mb, {k, column});
        }
    }
    if (m.memory.download<std::uint8_t>(in_c) != encoded(mc, d))
        check::report(__FILE__, __LINE__, "wmma " + name + " " + types + ": wrong product");
}

void wmma_products() {
    struct Size {
        const char* name;
        int rows, columns;
    };
    for (const Size& s :
         {Size{"m16n16k16", 16, 16}, Size{"m8n32k16", 8, 32}, Size{"m32n8k16", 32, 8}}) {
        wmma_product(s.name, s.rows, s.columns, 16, "f16", "f32", 8, 8, 8, "f32.f32");
        wmma_product(s.name, s.rows, s.columns, 16, "f16", "f16", 8, 8, 4, "f16.f16");
        wmma_product(s.name, s.rows, s.columns, 16, "bf16", "f32", s.rows / 4, s.columns / 4, 8,
                     "f32.bf16.bf16.f32");
        wmma_product(s.name, s.rows, s.columns, 16, "s8", "s32", s.rows / 8, s.columns / 8, 8,
                     "s32.s8.s8.s32");
        wmma_product(s.name, s.rows, s.columns, 16, "u8", "s32", s.rows / 8, s.columns / 8, 8,
                     "s32.u8.u8.s32.satfinite");
    }
    wmma_product("m16n16k8", 16, 16, 8, "tf32", "f32", 4, 4, 8, "f32.tf32.tf32.f32");
    wmma_product("m8n8k4", 8, 8, 4, "f64", "f64", 1, 1, 2, "f64.f64.f64.f64");
}

void faults() {
    Module m(harness::header() + R"(.visible .entry half(.param .u64 out)
{ .reg .b32 %r<8>; mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, {%r4, %r5}; ret; }
.visible .entry outside(.param .u64 out)
{ .reg .b32 %r<8>; .shared .align 16 .b8 s[128]; mov.u32 %r0, s; add.u32 %r0, %r0, 64; ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r0+64]; ret; }
.visible .entry crooked(.param .u64 out)
{ .reg .b32 %r<8>; .shared .align 16 .b8 s[256]; mov.u32 %r0, s; ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r0+8]; ret; }
)");
    const auto out = m.memory.allocate(64);
    auto fault = m.launch("half", {1, 1, 1}, {16, 1, 1}, out);
    CHECK(fault && fault->kind == FaultKind::IllegalInstruction);
    CHECK(fault && fault->message.find("needs all 32 threads") != std::string::npos);
    fault = m.launch("outside", {1, 1, 1}, {32, 1, 1}, out);
    CHECK(fault && fault->kind == FaultKind::IllegalAddress);
    fault = m.launch("crooked", {1, 1, 1}, {32, 1, 1}, out);
    CHECK(fault && fault->kind == FaultKind::MisalignedAddress);
}

void divergence() {
    // The halves of the warp come from different sides of a branch to one instruction.
    Module m(harness::header() + R"(.visible .entry k(.param .u64 out)
{ .reg .b32 %r<8>; .reg .b64 %d; .reg .pred %p; mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 16; mov.u32 %r2, 0x01010101; mov.u32 %r3, 0x01010101;
@%p bra A; add.u32 %r4, %r4, 1; bra B; A: add.u32 %r4, %r4, 5; B: mov.u32 %r5, %r4;
mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%r6, %r7}, %r2, {%r3}, {%r4, %r5};
ld.param.u64 %d, [out]; mad.wide.u32 %d, %r0, 4, %d; st.global.u32 [%d], %r6; ret; })");
    const auto out = m.memory.allocate(128);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, out));
    const auto words = m.memory.download<std::uint32_t>(out);
    for (std::size_t n = 0; n < 32; ++n)
        CHECK_EQ(words[n], n < 16 ? 21u : 17u);
}

} // namespace

int main() {
    products();
    special_values();
    rows_of_shared_memory();
    fragments();
    wmma_products();
    faults();
    divergence();
    return check::failures();
}
