/// mma: where elements lie, what products give, and what faults.
#include "matrix_layouts.h"

#include <cmath>
#include <limits>

using harness::Module;
using harness::ptx::FaultKind;
using namespace layouts;

namespace {

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
    faults();
    divergence();
    return check::failures();
}
