/// What the loader refuses: with the driver's status, the line, and the text at fault in the log.
#include "harness.h"

using harness::ptx::LoadStatus;

namespace {

void refused(const std::string& text, int line, const std::string& mention,
             LoadStatus status = LoadStatus::InvalidPtx) {
    const auto result = harness::load(text);
    CHECK(result.program == nullptr);
    CHECK_EQ(result.status, status);
    const std::string at = "line " + std::to_string(line) + "; error   : ";
    const bool there =
        result.log.find(at) != std::string::npos && result.log.find(mention) != std::string::npos;
    if (!there)
        check::report(__FILE__, __LINE__,
                      "log of\n" + text + "lacks '" + at + "' or '" + mention + "': " + result.log);
}

/// An instruction on line 6 of an otherwise good kernel.
std::string kernel(const std::string& instruction) {
    return harness::header() +
           ".visible .entry k(.param .u64 p) {\n.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 "
           "%r<4>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg .b8 %b<4>; .shared .b32 "
           "s[8];\n" +
           instruction + "\nret;\n}\n";
}

void instruction(const std::string& text, const std::string& mention) {
    refused(kernel(text), 6, mention);
}
void accepted(const std::string& text) {
    const auto result = harness::load(text);
    if (!result.program) check::report(__FILE__, __LINE__, "refused: " + result.log + text);
    CHECK_EQ(result.status, LoadStatus::Ok);
}

void versions_and_targets() {
    refused(".version 99.9\n.target sm_90\n", 1,
            "Unsupported .version 99.9; current version is '9.0'", LoadStatus::UnsupportedVersion);
    refused(".version 9.0\n.target sm_999\n", 2, "Unsupported .target");
    refused(".version 9.0\n.target sm_100\n", 2, "SM version specified by .target is higher than");
    refused(".version 7.0\n.target sm_90\n", 2, "does not support .target sm_90");
    refused(".version 9.0\n.target sm_80a\n", 2, "Unsupported .target");
    refused(".target sm_90\n", 1, "Missing .version");
    refused(".version 9.0\n.address_size 64\n", 2, "Missing .target");
    refused("", 1, "Missing .version");
    refused(harness::header() + ".address_size 32\n", 4, "address_size");
    accepted(harness::header());
    accepted(harness::header() + std::string(1, '\0'));
    accepted(harness::header() + std::string("\0garbage", 8));
    accepted(".version 6.0\n.target sm_50\n.address_size 64\n");
    accepted(".version 8.0\n.target sm_90a, debug\n");
}

void opcodes_and_modifiers() {
    instruction("frobnicate.u32 %r0, %r1;", "frobnicate");
    instruction("tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r0, %r1}];", "tex");
    instruction("wgmma.fence.sync.aligned;", "'wgmma' is not supported by the emulated driver");
    instruction("tcgen05.wait::ld.sync.aligned;", "'tcgen05' is not supported");
    instruction("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f0}, {%r0}, {%r1}, {%f1};",
                ".sp");
    instruction("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f0}, {%r0}, {%r1}, {%f1};",
                ".row");
    instruction("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0};",
                "1 registers where 2 are wanted");
    instruction("wmma.load.a.sync.aligned.row.m8n8k4.shared.f16 {%r0}, [s];", ".f16");
    instruction("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1}, [s];", "2 registers");
    instruction("mbarrier.arrive.shared::cluster.b64 %d0, [s];", "must be '_'");
    instruction("mbarrier.init.global.b64 [%d0], 1;", ".global");
    instruction("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                "[s], [%d0, {%r0}], [s];",
                "2 coordinates");
    instruction("cp.async.bulk.global.shared::cta.bulk_group [s], [s], 16;",
                "State space mismatch");
    instruction("cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.f32 [%d0], [s], 16;",
                "Illegal modifier combination");
    instruction("atom.acquire.global.gpu.acq_rel.add.u32 %r0, [%d0], 1;", "Duplicate order");
    instruction("atom.shared.add.v2.f32 {%f0, %f1}, [s], {%f0, %f1};", "global memory");
    instruction("prefetch.global.L2 [nowhere];", "nowhere");
    instruction("add.u32.foo %r0, %r1, %r2;", ".foo");
    instruction("add.wrap.u32 %r0, %r1, %r2;", ".wrap");
    instruction("add.sat.u32 %r0, %r1, %r2;", ".u32");
    instruction("add.f16x3 %r0, %r1, %r2;", ".f16x3");
    instruction("add %r0, %r1, %r2;", "lacks a modifier or a type");
    instruction("mul.u32 %r0, %r1, %r2;", ".u32");
    instruction("ld.global.v3.u32 {%r0, %r1, %r2}, [%d0];", ".v3");
    instruction("ld.globule.u32 %r0, [%d0];", ".globule");
    instruction("st.global.L9::evict_first.u32 [%d0], %r0;", ".L9::evict_first");
    instruction("setp.sometimes.u32 %p0, %r0, %r1;", ".sometimes");
    instruction("setp.lo.s32 %p0, %r0, %r1;", "Illegal modifier combination");
    instruction("setp.lt.b32 %p0, %r0, %r1;", "Illegal modifier combination");
    instruction("cvt.s32.f32 %r0, %f0;", "Illegal modifier combination");
    instruction("cvt.rn.f64.f32 %g0, %f0;", "Illegal modifier combination");
    instruction("cvt.sat.u32.u16 %r0, %h0;", "Illegal modifier combination");
    instruction("cvt.rn.s32.f32 %r0, %f0;", "Illegal modifier combination");
    instruction("bar.sync.wide 0;", ".wide");
    instruction("atom.global.add.u128 %r0, [%d0], %r1;", ".u128");
    instruction("shfl.sync.sideways.b32 %r0, %r1, 1, 31, -1;", ".sideways");
    instruction("membar.moon;", ".moon");
}

void operands() {
    instruction("add.u32 %r0, %r1;", "operands");
    instruction("add.u32 %r0, %r1, %r2, %r3;", "operands");
    instruction("add.u32 %r0, %r1, %d2;", "Arguments mismatch");
    instruction("add.f32 %f0, %f1, %h2;", "Arguments mismatch");
    instruction("add.s32 %r0, %f1, %r2;", "Arguments mismatch");
    instruction("add.f32 %f0, %f1, 1;", "Arguments mismatch");
    instruction("add.u32 %r0, %r1, 1.5;", "Arguments mismatch");
    instruction("add.u32 %r0, %r1, %r9;", "Unknown symbol '%r9'");
    instruction("add.u32 %nowhere, %r1, %r2;", "Unknown symbol '%nowhere'");
    instruction("add.u32 5, %r1, %r2;", "destination");
    instruction("add.u32 _, %r1, %r2;", "destination");
    instruction("add.u32 %r0, !%r1, %r2;", "'!'");
    instruction("mov.u32 %r0, %tid.q;", "%tid");
    instruction("@%r0 bra L;\nL:", "not a predicate");
    instruction("bra NOWHERE;", "NOWHERE");
    instruction("ld.shared.u32 %r0, [p];", "State space mismatch");
    instruction("ld.global.u32 %r0, [s];", "State space mismatch");
    instruction("st.param.u32 [p], %r0;", "read-only");
    instruction("ld.param.u64 %d0, [p+4];", "out of its 8 bytes");
    instruction("ld.param.u32 %r0, [p+2];", "misaligned");
    instruction("ld.global.v2.u32 %r0, [%d0];", "values");
    instruction("ld.global.v4.f64 {%g0, %g1, %g2, %g3}, [%d0];", "16 bytes");
    instruction("mov.b64 %d0, {%r0, %r1, %r2};", "Arguments mismatch");
    instruction("call nothing;", "nothing");
    instruction("ld.global.u32 %r0, %d0;", "address");
    instruction("cp.async.ca.shared.global [s], [%d0], 5;", "5 bytes");
}

void syntax_errors() {
    refused(kernel("add.u32 %r0, %r1, %r2"), 7, "Parsing error near 'ret'");
    refused(kernel("add.u32 %r0 %r1, %r2;"), 6, "Parsing error near '%r1'");
    refused(kernel("ld.global.u32 %r0, [%d0;"), 6, "Parsing error near ';'");
    refused(kernel("mov.u32 %r0, 0xZZ;"), 6, "malformed integer");
    refused(kernel("mov.f32 %f0, 0f3F80;"), 6, "malformed floating");
    refused(kernel("mov.u32 %r0, 99999999999999999999;"), 6, "64 bits");
    refused(kernel("mov.u32 %r0, `;"), 6, "unexpected character");
    refused(kernel("/* never closed"), 6, "unterminated comment");
    refused(kernel(".reg .b32 %r<9>;"), 6, "Duplicate definition");
    refused(kernel(".reg .b33 %x;"), 6, ".b33");
    refused(kernel(".texref t;"), 6, ".texref");
    refused(harness::header() + ".global .texref t;\n", 4, ".texref");
    refused(harness::header() + ".sreg .b32 x;\n", 4, ".sreg");
    refused(harness::header() + ".visible .entry k() .wishful 3 {\nret;\n}\n", 4, ".wishful");
    refused(harness::header() + ".visible .entry k() {\nret;\n", 6, "'}'");
    refused(harness::header() + ".visible .entry k() { ret; }\n.visible .entry k() { ret; }\n", 5,
            "Duplicate definition");
    refused(harness::header() + ".extern .global .b32 g;\n", 4, "Unresolved extern variable 'g'");
    refused(harness::header() + ".extern .func f;\n.visible .entry k() {\ncall f;\nret; }\n", 6,
            "Unresolved extern function 'f'");
    refused(harness::header() + ".global .u64 g = missing;\n", 4, "missing");
    refused(harness::header() + ".global .u8 g[2] = {1, 2, 3};\n", 4, "too many initial values");
    refused(harness::header() + ".global .u32 g[1 << 62];\n", 4, "too large");
    refused(harness::header() + ".visible .entry k(.param .b8 p[40000]) { ret; }\n", 4, "32764");
    refused(harness::header("8.0") + ".visible .entry k(.param .b8 p[4353]) { ret; }\n", 4,
            "exceed 4352 bytes, which requires PTX ISA .version 8.1");
    accepted(harness::header("8.0") + ".visible .entry k(.param .b8 p[4352]) { ret; }\n");
    accepted(harness::header("8.1") + ".visible .entry k(.param .b8 p[4353]) { ret; }\n");
    refused(harness::header() + ".visible .entry k(.reg .b32 p) { ret; }\n", 4,
            "parameter 'p' of a kernel must be in .param");
    refused(harness::header() + ".visible .entry k(.param .b8 p[]) { ret; }\n", 4,
            "parameter 'p' needs a size");
    refused(harness::header() + ".func f(.param .b8 p[]) { ret; }\n", 4,
            "parameter 'p' needs a size");
    refused(harness::header() + ".const .b8 a[65536];\n.const .b8 b;\n", 0,
            "'b' ends behind the 65536 bytes");
    accepted(harness::header() + ".const .b8 a[65535];\n.const .b8 b;\n");
    refused(harness::header() + ".global .align 4194304 .b8 a[4];\n", 4,
            "alignment 4194304 is larger than 1048576");
    refused(harness::header() + ".global .align 3 .b8 a[4];\n", 4, "3 is not a power of two");
}

void features() {
    const std::string body =
        ".visible .entry k() {\n.reg .b32 %r<3>;\nredux.sync.add.u32 %r0, %r1, -1;\nret;\n}\n";
    refused(harness::header("9.0", "sm_75") + body, 6, "requires .target sm_80");
    accepted(harness::header("9.0", "sm_80") + body);
    refused(harness::header("6.3", "sm_75") + ".visible .entry k() {\n.reg .b16 %h<3>;\n.reg .f32 "
                                              "%f;\nmin.f16 %h0, %h1, %h2;\nret; }\n",
            7, "requires");
}

void nesting() {
    std::string deep = harness::header() + ".visible .entry k() {\n";
    for (int n = 0; n < 10000; ++n)
        deep += "{";
    refused(deep, 5, "nested too deeply");
    refused(harness::header() + ".global .u32 g[" + std::string(10000, '(') + "1];\n", 4,
            "nested too deeply");
    refused(harness::header() + ".global .u32 g[" + std::string(10000, '-') + "1];\n", 4,
            "nested too deeply");
    refused(harness::header() + ".global .u32 g = " + std::string(10000, '{') + "\n", 4,
            "nested too deeply");
}

} // namespace

int main() {
    versions_and_targets();
    opcodes_and_modifiers();
    operands();
    syntax_errors();
    features();
    nesting();
    return check::failures();
}
