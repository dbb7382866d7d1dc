/// State spaces, vectors, parameters, variables, and the faults of bad addresses.
#include "harness.h"

using harness::Module;
using harness::ptx::FaultKind;

namespace {

std::string entry(const std::string& parameters, const std::string& body,
                  const std::string& before = "") {
    return harness::header() + before + ".visible .entry k(" + parameters +
           ")\n{\n.reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<32>; .reg "
           ".f32 %f<16>; .reg .f64 %g<8>;\n" +
           "mov.u32 %r0, %tid.x;\n" + body + "\nret;\n}\n";
}

void widths_and_extension() {
    Module m(entry(".param .u64 in, .param .u64 out", R"(
        ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
        mad.wide.u32 %d0, %r0, 8, %d0; mad.wide.u32 %d1, %r0, 64, %d1;
        ld.global.u8 %r1, [%d0];   st.global.u32 [%d1], %r1;
        ld.global.s8 %r1, [%d0];   st.global.u32 [%d1+4], %r1;
        ld.global.u16 %r1, [%d0];  st.global.u32 [%d1+8], %r1;
        ld.global.s16 %r1, [%d0];  st.global.u32 [%d1+12], %r1;
        ld.global.s8 %h1, [%d0];   st.global.u16 [%d1+16], %h1;
        ld.global.s32 %d2, [%d0];  st.global.u64 [%d1+24], %d2;
        ld.global.u32 %d2, [%d0];  st.global.u64 [%d1+32], %d2;
        ld.global.b64 %d2, [%d0];  st.global.u8 [%d1+40], %d2;
        mov.b64 {%r2, %r3}, %d2;   st.global.v2.u32 [%d1+48], {%r3, %r2};)"));
    std::vector<std::uint64_t> in;
    for (std::uint64_t n = 0; n < 64; ++n)
        in.push_back(0x8182838485868788 * (n + 1) + n);
    const auto a = m.memory.upload(in), b = m.memory.allocate(64 * 64);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {64, 1, 1}, a, b));
    const auto bytes = m.memory.download<std::uint8_t>(b);
    for (std::size_t n = 0; n < in.size(); ++n) {
        const auto word = [&](std::size_t at) {
            std::uint64_t value = 0;
            std::memcpy(&value, bytes.data() + n * 64 + at, 8);
            return value;
        };
        const std::uint64_t x = in[n];
        CHECK_EQ(word(0) & 0xffffffff, x & 0xff);
        CHECK_EQ(word(4) & 0xffffffff, static_cast<std::uint32_t>(static_cast<std::int8_t>(x)));
        CHECK_EQ(word(8) & 0xffffffff, x & 0xffff);
        CHECK_EQ(word(12) & 0xffffffff, static_cast<std::uint32_t>(static_cast<std::int16_t>(x)));
        CHECK_EQ(word(16) & 0xffff, static_cast<std::uint16_t>(static_cast<std::int8_t>(x)));
        CHECK_EQ(word(24), static_cast<std::uint64_t>(
                               static_cast<std::int64_t>(static_cast<std::int32_t>(x))));
        CHECK_EQ(word(32), x & 0xffffffff);
        CHECK_EQ(word(40) & 0xff, x & 0xff);
        CHECK_EQ(word(48), x << 32 | x >> 32);
    }
}

void access_patterns() {
    // Consecutive, the same for all, reversed, strided and masked: all must give the same as a
    // plain loop.
    Module m(entry(".param .u64 in, .param .u64 out, .param .u32 stride, .param .u32 offset, "
                   ".param .u32 limit",
                   R"(
        ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; ld.param.u32 %r1, [stride]; ld.param.u32 %r2, [offset]; ld.param.u32 %r3, [limit];
        setp.ge.u32 %p1, %r0, %r3;
        @%p1 bra END;
        mad.lo.s32 %r4, %r0, %r1, %r2;
        mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d0, %d2;
        ld.global.nc.u32 %r5, [%d3];
        mul.wide.u32 %d4, %r0, 4; add.s64 %d5, %d1, %d4;
        st.global.u32 [%d5], %r5;
        END:)"));
    std::vector<std::uint32_t> in(1024);
    for (std::uint32_t n = 0; n < in.size(); ++n)
        in[n] = n * 2654435761u;
    const auto a = m.memory.upload(in);
    for (const std::int32_t stride : {1, 0, -1, 3, 7}) {
        for (const std::uint32_t limit : {128u, 97u, 1u, 33u}) {
            const std::int32_t offset = stride < 0 ? 200 : 5;
            const auto out = m.memory.allocate(128 * 4);
            CHECK_RUNS(m.launch("k", {1, 1, 1}, {128, 1, 1}, a, out, stride, offset, limit));
            const auto result = m.memory.download<std::uint32_t>(out);
            for (std::uint32_t n = 0; n < 128; ++n) {
                const std::uint32_t expected =
                    n < limit ? in[static_cast<std::size_t>(static_cast<std::int32_t>(n) * stride +
                                                            offset)]
                              : 0;
                CHECK_EQ(result[n], expected);
            }
        }
    }
}

void vectors() {
    Module m(entry(".param .u64 p", R"(
        ld.param.u64 %d0, [p]; mad.wide.u32 %d1, %r0, 16, %d0;
        ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d1];
        add.f32 %f4, %f0, %f1;
        st.global.v4.f32 [%d1], {%f3, %f2, %f4, %f0};
        .reg .v4 .b32 %v;
        ld.global.v4.u32 %v, [%d1];
        mov.b32 %v.x, 7;
        st.global.v2.u32 [%d1], {%v.y, %v.x};
        ld.global.v2.u32 {_, %r5}, [%d1];
        st.global.u32 [%d1+12], %r5;)"));
    std::vector<float> in(4 * 40);
    for (std::size_t n = 0; n < in.size(); ++n)
        in[n] = static_cast<float>(n);
    const auto a = m.memory.upload(in);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {40, 1, 1}, a));
    const auto out = m.memory.download<float>(a);
    const auto words = m.memory.download<std::uint32_t>(a);
    for (std::size_t n = 0; n < 40; ++n) {
        CHECK_EQ(out[4 * n], in[4 * n + 2]);
        CHECK_EQ(words[4 * n + 1], 7u);
        CHECK_EQ(out[4 * n + 2], in[4 * n] + in[4 * n + 1]);
        CHECK_EQ(words[4 * n + 3], 7u);
    }
}

void generic_addresses() {
    Module m(entry(".param .u64 out, .param .align 8 .b8 block[32]", R"(
        .shared .align 8 .b32 s[64]; .local .align 8 .b32 l[4];
        ld.param.u64 %d0, [out]; mad.wide.u32 %d0, %r0, 32, %d0;
        mov.u64 %d1, s; cvta.shared.u64 %d2, %d1; mad.wide.u32 %d3, %r0, 4, %d2;
        st.u32 [%d3], %r0; cvta.to.shared.u64 %d4, %d3; ld.shared.u32 %r1, [%d4]; st.global.u32 [%d0], %r1;
        mov.u64 %d5, l; cvta.local.u64 %d6, %d5; add.u32 %r2, %r0, 100; st.u32 [%d6+8], %r2; ld.local.u32 %r3, [l+8]; st.u32 [%d0+4], %r3;
        isspacep.shared %p0, %d2; isspacep.local %p1, %d6; isspacep.global %p2, %d0; isspacep.global %p3, %d2; isspacep.shared %p4, %d0; isspacep.const %p5, %d0;
        selp.u32 %r4, 1, 0, %p0; @%p1 or.b32 %r4, %r4, 2; @%p2 or.b32 %r4, %r4, 4; @%p3 or.b32 %r4, %r4, 8; @%p4 or.b32 %r4, %r4, 16; @%p5 or.b32 %r4, %r4, 32;
        st.global.u32 [%d0+8], %r4;
        mov.b64 %d7, block; cvta.param.u64 %d8, %d7; ld.u32 %r5, [%d8+16]; ld.param.u32 %r6, [%d7+4];
        st.global.v2.u32 [%d0+16], {%r5, %r6};
        ld.u32 %r7, [s]; st.u32 [%d0+12], %r7;)"));
    struct {
        std::uint64_t out;
        std::uint32_t block[8];
    } parameters{m.memory.allocate(40 * 32), {10, 11, 12, 13, 14, 15, 16, 17}};
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {40, 1, 1}, parameters));
    const auto out = m.memory.download<std::uint32_t>(parameters.out);
    for (std::uint32_t n = 0; n < 40; ++n) {
        CHECK_EQ(out[8 * n], n);
        CHECK_EQ(out[8 * n + 1], n + 100);
        CHECK_EQ(out[8 * n + 2], 7u);
        CHECK_EQ(out[8 * n + 3], 0u);
        CHECK_EQ(out[8 * n + 4], 14u);
        CHECK_EQ(out[8 * n + 5], 11u);
    }
}

void large_parameters() {
    Module m(entry(".param .align 4 .b8 big[32000], .param .u64 out", R"(
        ld.param.u64 %d0, [out]; ld.param.u32 %r1, [big+31996]; ld.param.v2.u16 {%h0, %h1}, [big+4]; st.global.u32 [%d0], %r1; st.global.u16 [%d0+4], %h1;)"));
    struct Parameters {
        std::uint8_t big[32000];
        std::uint64_t out;
    };
    auto parameters = std::make_unique<Parameters>();
    for (std::size_t n = 0; n < 32000; ++n)
        parameters->big[n] = static_cast<std::uint8_t>(n * 7);
    parameters->out = m.memory.allocate(8);
    CHECK_EQ(m.program().entries()[0].parameter_bytes, 32008u);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {1, 1, 1}, *parameters));
    const auto out = m.memory.download<std::uint8_t>(parameters->out);
    for (std::size_t n = 0; n < 4; ++n)
        CHECK_EQ(out[n], parameters->big[31996 + n]);
    CHECK_EQ(out[4], parameters->big[6]);
}

void variables() {
    const std::string before = R"(
.global .align 8 .b8 bytes[16] = {1, 2, 3, 4, 0xff};
.const .align 4 .f32 table[4] = {0f3F800000, 2.5, -3.0, 0f00000000};
.global .u64 pointers[2] = {bytes+4, generic(table)+4};
.global .align 8 .b8 split[8] = {0xff(bytes), 0xff00(bytes), 0xff0000(bytes), 0xff000000(bytes), 0xff00000000(bytes), 0xff0000000000(bytes), 0xff000000000000(bytes), 0xff00000000000000(bytes)};
.global .s16 grid[2][3] = {{1, 2, 3}, {-4}};
.global .u32 counter;
)";
    Module m(entry(".param .u64 out", R"(
        ld.param.u64 %d0, [out];
        ld.global.u8 %r1, [bytes+4]; st.global.u32 [%d0], %r1;
        ld.const.f32 %f1, [table+8]; st.global.f32 [%d0+4], %f1;
        ld.global.u64 %d1, [pointers]; ld.global.u8 %r2, [%d1]; st.global.u32 [%d0+8], %r2;
        ld.global.u64 %d2, [pointers+8]; ld.f32 %f2, [%d2]; st.global.f32 [%d0+12], %f2;
        mov.u64 %d3, grid; ld.global.s16 %r3, [%d3+6]; st.global.u32 [%d0+16], %r3;
        ld.global.u64 %d4, [split]; ld.global.u8 %r4, [%d4+1]; st.global.u32 [%d0+20], %r4;
        atom.global.add.u32 %r5, [counter], 3; red.global.add.u32 [counter], 1; ld.global.u32 %r6, [counter]; st.global.u32 [%d0+24], %r6;
        isspacep.const %p0, %d2; selp.u32 %r7, 1, 0, %p0; st.global.u32 [%d0+28], %r7;)",
                   before));
    const auto& list = m.program().variables();
    CHECK_EQ(list.size(), 6u);
    CHECK_EQ(list[1].name, std::string("table"));
    CHECK_EQ(list[1].size, 16u);
    CHECK(list[1].space == harness::ptx::VariableSpace::Constant);
    CHECK_EQ(list[0].alignment, 8u);
    CHECK_EQ(list[2].relocations.size(), 2u);
    CHECK_EQ(list[2].relocations[1].addend, 4);
    CHECK_EQ(list[3].relocations.size(), 1u);
    CHECK(list[5].initial.empty());
    const auto out = m.memory.allocate(32);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {1, 1, 1}, out));
    const auto words = m.memory.download<std::uint32_t>(out);
    const auto floats = m.memory.download<float>(out);
    CHECK_EQ(words[0], 255u);
    CHECK_EQ(floats[1], -3.0f);
    CHECK_EQ(words[2], 255u);
    CHECK_EQ(floats[3], 2.5f);
    CHECK_EQ(words[4], static_cast<std::uint32_t>(-4));
    CHECK_EQ(words[5], 2u);
    CHECK_EQ(words[6], 4u);
    CHECK_EQ(words[7], 1u);
}

void shared_layout() {
    Module m(harness::header() + R"(
.shared .align 4 .b8 unused[4096];
.shared .align 4 .b32 first;
.extern .shared .align 16 .b8 dynamic[];
.func touch() { .reg .b32 %r; .shared .align 8 .b64 inner[2]; st.shared.u32 [inner+8], 5; ret; }
.visible .entry a() { .reg .b32 %r; st.shared.u32 [first], 1; call touch; ret; }
.visible .entry b(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %d; ld.param.u64 %d, [out]; mov.u32 %r0, %dynamic_smem_size; mov.u32 %r1, %total_smem_size; mov.u32 %r2, dynamic;
    st.shared.u32 [dynamic+60], 9; ld.shared.u32 %r3, [dynamic+60]; st.global.v4.u32 [%d], {%r0, %r1, %r2, %r3}; ret; }
.visible .entry c() { ret; }
)");
    const auto& entries = m.program().entries();
    CHECK_EQ(entries[0].static_shared_bytes, 24u);
    CHECK_EQ(entries[1].static_shared_bytes, 0u);
    CHECK_EQ(entries[2].static_shared_bytes, 0u);
    CHECK_RUNS(m.launch("a", {1, 1, 1}, {32, 1, 1}));
    const auto out = m.memory.allocate(16);
    m.options.dynamic_shared_bytes = 64;
    CHECK_RUNS(m.launch("b", {1, 1, 1}, {1, 1, 1}, out));
    const auto words = m.memory.download<std::uint32_t>(out);
    CHECK_EQ(words[0], 64u);
    CHECK_EQ(words[1], 64u);
    CHECK_EQ(words[2], 0u);
    CHECK_EQ(words[3], 9u);
}

void faulting(const std::string& body, FaultKind kind, const std::string& mention,
              std::uint64_t address = 0) {
    Module m(entry(".param .u64 p, .param .u64 q",
                   "ld.param.u64 %d0, [p]; ld.param.u64 %d1, [q];\n" + body));
    const auto good = m.memory.allocate(64);
    const auto fault = m.launch("k", {2, 1, 1}, {40, 1, 1}, address == 0 ? good : address, good);
    CHECK(fault.has_value());
    if (!fault) {
        check::report(__FILE__, __LINE__, "no fault from " + body);
        return;
    }
    CHECK_EQ(fault->kind, kind);
    if (fault->message.find(mention) == std::string::npos ||
        fault->message.find("kernel 'k'") == std::string::npos) {
        check::report(__FILE__, __LINE__, "'" + mention + "' is not in: " + fault->message);
    }
}

void faults() {
    faulting("ld.global.u32 %r1, [%d0+64];", FaultKind::IllegalAddress,
             "ld.global.u32 %r1, [%d0+64];");
    faulting("ld.global.u32 %r1, [%d0+64];", FaultKind::IllegalAddress,
             "outside of every allocation");
    faulting("mad.wide.u32 %d2, %r0, 4, %d0; st.global.u32 [%d2], %r0;", FaultKind::IllegalAddress,
             "thread (16,0,0)");
    faulting("mad.wide.u32 %d2, %r0, 4, %d0; ld.global.u32 %r1, [%d2];", FaultKind::IllegalAddress,
             "block (0,0,0)");
    faulting("mov.u64 %d0, 0; ld.global.u32 %r1, [%d0];", FaultKind::IllegalAddress, "null");
    faulting("mov.u64 %d0, 0; st.u32 [%d0], %r1;", FaultKind::IllegalAddress,
             "write of 4 bytes at 0x0");
    faulting("ld.global.u32 %r1, [%d0+2];", FaultKind::MisalignedAddress, "misaligned");
    faulting("st.global.v4.f32 [%d0+8], {%f0, %f1, %f2, %f3};", FaultKind::MisalignedAddress,
             "write of 16 bytes");
    faulting("ld.global.u64 %d2, [%d0+60];", FaultKind::MisalignedAddress, "misaligned");
    faulting("ld.global.u32 %r1, [%d0+-4];", FaultKind::IllegalAddress, "read of 4 bytes");
    faulting(".shared .b32 s[4]; ld.shared.u32 %r1, [s+16];", FaultKind::IllegalAddress,
             "outside the block's 16 bytes");
    faulting(".shared .b32 s[4]; mov.u64 %d2, s; ld.global.u32 %r1, [%d2];",
             FaultKind::IllegalAddress, "null");
    faulting(
        ".shared .b32 s[4]; mov.u64 %d2, s; cvta.shared.u64 %d3, %d2; ld.global.u32 %r1, [%d3];",
        FaultKind::InvalidAddressSpace, "shared");
    faulting(".local .b32 l[4]; ld.local.u32 %r1, [l+16];", FaultKind::IllegalAddress, "stack");
    faulting(".local .b32 l[4]; ld.local.u32 %r1, [l+2];", FaultKind::MisalignedAddress, "local");
    faulting("atom.global.add.u32 %r1, [%d0+64], 1;", FaultKind::IllegalAddress, "atom");
    faulting("atom.global.add.u64 %d2, [%d0+4], 1;", FaultKind::MisalignedAddress, "8 bytes");
    faulting("ld.global.u32 %r1, [%d0];", FaultKind::IllegalAddress,
             "read of 4 bytes at 0xffffffffffffff00", 0xffffffffffffff00);
    faulting("trap;", FaultKind::Trap, "trap");
    // Lanes that are masked off may hold any address.
    Module m(entry(".param .u64 p", "ld.param.u64 %d0, [p]; setp.ne.u32 %p0, %r0, 3; @%p0 mov.u64 "
                                    "%d0, 1; @!%p0 st.global.u32 [%d0], 77;"));
    const auto a = m.memory.allocate(4);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, a));
    CHECK_EQ(m.memory.download<std::uint32_t>(a)[0], 77u);
}

void atomics() {
    Module m(entry(".param .u64 p", R"(
        .shared .b32 s[2];
        ld.param.u64 %d0, [p];
        atom.global.add.u32 %r1, [%d0], 1;
        atom.global.max.s32 %r2, [%d0+4], %r0;
        atom.global.inc.u32 %r3, [%d0+8], 9;
        atom.global.dec.u32 %r4, [%d0+12], 4;
        atom.add.f64 %g0, [%d0+16], 0d3FE0000000000000;
        cvt.u64.u32 %d1, %r0; atom.global.cas.b64 %d2, [%d0+24], 0, 5;
        red.global.xor.b32 [%d0+32], %r0; red.global.or.b32 [%d0+36], %r0; red.relaxed.gpu.global.and.b32 [%d0+40], %r0;
        atom.shared.add.u32 %r5, [s], 2; bar.sync 0; ld.shared.u32 %r6, [s]; st.global.u32 [%d0+44], %r6;
        atom.global.exch.b32 %r7, [%d0+48], %r0;
        atom.global.add.noftz.f16x2 %r8, [%d0+52], 0x3c003c00;
        atom.global.add.f32 %f0, [%d0+56], 0f3F800000;
        atom.global.min.u64 %d3, [%d0+64], %d1;)"));
    std::vector<std::uint32_t> in(18, 0);
    in[1] = static_cast<std::uint32_t>(-5);
    in[10] = 0xffffffff;
    in[16] = in[17] = 0xffffffff;
    const auto a = m.memory.upload(in);
    CHECK_RUNS(m.launch("k", {3, 1, 1}, {100, 1, 1}, a));
    const auto out = m.memory.download<std::uint32_t>(a);
    CHECK_EQ(out[0], 300u);
    CHECK_EQ(out[1], 99u);
    CHECK_EQ(out[2], 0u);
    CHECK_EQ(out[3], 0u);
    CHECK_EQ(m.memory.download<double>(a)[2], 150.0);
    CHECK_EQ(out[6], 5u);
    std::uint32_t x = 0;
    for (std::uint32_t n = 0; n < 300; ++n)
        x ^= n % 100;
    CHECK_EQ(out[8], x);
    CHECK_EQ(out[9], 127u);
    CHECK_EQ(out[10], 0u);
    CHECK_EQ(out[11], 200u);
    CHECK(out[12] < 100);
    CHECK_EQ(out[13], 0x5cb05cb0u);
    CHECK_EQ(m.memory.download<float>(a)[14], 300.0f);
    CHECK_EQ(m.memory.download<std::uint64_t>(a)[8], 0u);
}

} // namespace

int main() {
    widths_and_extension();
    access_patterns();
    vectors();
    generic_addresses();
    large_parameters();
    variables();
    shared_layout();
    faults();
    atomics();
    return check::failures();
}
