/// ldmatrix, stmatrix and movmatrix; wmma's fragments from memory, their products, and back.
#include "matrix_layouts.h"

using harness::Module;
using namespace layouts;

namespace {

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

} // namespace

int main() {
    rows_of_shared_memory();
    fragments();
    wmma_products();
    return check::failures();
}
