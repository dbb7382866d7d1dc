#include "check.h"

#include "formats/ptx_header.h"

using namespace cudamod::formats;

namespace {

std::string data;

const std::string kHead = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// "type name size@offset" of each parameter.
std::string describe(const PtxEntry& entry) {
    std::string text;
    for (const auto& parameter : entry.parameters) {
        if (!text.empty()) text += ", ";
        text += parameter.type + (parameter.is_array ? "[] " : " ") + parameter.name + " " +
                std::to_string(parameter.size) + "@" + std::to_string(parameter.offset);
        if (parameter.is_pointer) {
            text += " ptr " + parameter.pointer_space + std::to_string(parameter.pointer_alignment);
        }
    }
    return text;
}

std::string parameters_of(const std::string& declarations) {
    auto header = read_ptx_header(kHead + ".visible .entry k(" + declarations + ") { ret; }");
    if (!header) return header.reason();
    const auto* entry = header->find_entry("k");
    return entry ? describe(*entry) : "no entry";
}

void check_directives() {
    auto header = read_ptx_header(
        "//\n.version 8.7\n.target sm_100f, debug, texmode_independent\n.address_size 64\n");
    CHECK_OK(header);
    if (!header) return;
    CHECK_EQ(header->version_major, 8);
    CHECK_EQ(header->version_minor, 7);
    CHECK_EQ(header->sm, 100);
    CHECK_EQ(header->suffix, 'f');
    CHECK_EQ(header->target_options.size(), 2u);
    CHECK_EQ(header->target_options[1], "texmode_independent");
    CHECK_EQ(header->address_size, 64);
    CHECK_EQ(header->entries.size(), 0u);
    auto old = read_ptx_header(".version 6.3 .target sm_75");
    CHECK(old && old->sm == 75 && old->suffix == '\0' && old->address_size == 32);
}

void check_parameters() {
    CHECK_EQ(parameters_of(""), "");
    CHECK_EQ(parameters_of(".param .u32 a, .param .f32 b, .param .u64 c"),
             "u32 a 4@0, f32 b 4@4, u64 c 8@8");
    CHECK_EQ(parameters_of(".param .u8 a,.param .f64 b,.param .b16 c,.param .s32 d"),
             "u8 a 1@0, f64 b 8@8, b16 c 2@16, s32 d 4@20");
    CHECK_EQ(parameters_of(".param .align 8 .b8 p[40], .param .u64 q"), "b8[] p 40@0, u64 q 8@40");
    CHECK_EQ(parameters_of(".param .u8 a, .param .align 16 .b8 p[3], .param .b8 q[2]"),
             "u8 a 1@0, b8[] p 3@16, b8[] q 2@19");
    CHECK_EQ(parameters_of(".param .align 4 .b32 p[2][0x3]"), "b32[] p 24@0");
    CHECK_EQ(parameters_of(".param .u64 .ptr .global .align 16 p, .param .u64 .ptr q"),
             "u64 p 8@0 ptr global16, u64 q 8@8 ptr 0");
    CHECK_EQ(parameters_of(".param .u64 .ptr .shared .align 1 p, .param .b128 x"),
             "u64 p 8@0 ptr shared1, b128 x 16@16");
    CHECK_EQ(parameters_of(".param .f16 a, .param .f16x2 b, .param .bf16 c, .param .pred d"),
             "f16 a 2@0, f16x2 b 4@4, bf16 c 2@8, pred d 1@10");
    CHECK_EQ(parameters_of(".param .texref t, .param .u32 %x$1"), "texref t 8@0, u32 %x$1 4@8");
    CHECK_EQ(parameters_of(".param/**/.u32 // one, two\n a\n,\n.param .u32 /* ) */ b"),
             "u32 a 4@0, u32 b 4@4");
}

void check_bad_parameters() {
    CHECK_EQ(parameters_of(".param .v4 a"), "PTX line 4: parameter attribute '.v4' is not known");
    CHECK_EQ(parameters_of(".param .u32 .u32 a"),
             "PTX line 4: parameter attribute '.u32' is not known");
    CHECK_EQ(parameters_of(".param a"), "PTX line 4: expected the type of a parameter, found 'a'");
    CHECK_EQ(parameters_of(".param .align 3 .u32 a"),
             "PTX line 4: alignment 3 is not a power of two");
    CHECK_EQ(parameters_of(".param .align 0 .u32 a"),
             "PTX line 4: alignment 0 is not a power of two");
    CHECK_EQ(parameters_of(".param .u32 a,"), "PTX line 4: expected '.param', found ')'");
    CHECK_EQ(parameters_of(".param .b8 a[999999999999]"),
             "PTX line 4: expected an array size (at most 2147483648), found '999999999999'");
    CHECK_EQ(parameters_of(".param .b64 a[2147483648]"), "PTX line 4: parameter is too large");
    CHECK_EQ(parameters_of(".param .b8 a[2147483648], .param .b8 b[2147483648]"),
             "PTX line 4: parameters are too large");
    CHECK_EQ(parameters_of(".param .b8 a[]"),
             "PTX line 4: expected an array size (at most 2147483648), found ']'");
}

void check_bounds() {
    auto header = read_ptx_header(kHead + R"(
.visible .entry a(.param .u64 p)
.maxntid 256, 2
.minnctapersm 3
.maxnreg 64
.maxclusterrank 8
{ ret; }
.weak .entry b
.reqntid 128
.reqnctapercluster 2, 1, 1
.explicitcluster
.blocksareclusters
.pragma "nounroll";
.someyoungerdirective 4, 5
{ ret; }
)");
    CHECK_OK(header);
    if (!header || header->entries.size() != 2) return CHECK(false);
    const PtxEntry& a = header->entries[0];
    CHECK(a.max_threads == (std::array<std::uint32_t, 3>{256, 2, 1}));
    CHECK(a.required_threads == (std::array<std::uint32_t, 3>{}));
    CHECK_EQ(a.min_blocks, 3u);
    CHECK_EQ(a.max_registers, 64u);
    CHECK_EQ(a.max_cluster_rank, 8u);
    CHECK(!a.explicit_cluster && !a.blocks_are_clusters);
    const PtxEntry& b = header->entries[1];
    CHECK_EQ(b.name, "b");
    CHECK(b.required_threads == (std::array<std::uint32_t, 3>{128, 1, 1}));
    CHECK(b.required_cluster == (std::array<std::uint32_t, 3>{2, 1, 1}));
    CHECK(b.explicit_cluster && b.blocks_are_clusters);
    CHECK_EQ(b.parameters.size(), 0u);
}

void check_what_lies_around() {
    auto header = read_ptx_header(kHead + R"(
.file 1 "a \" .entry x(){ .cu"
.file 2 "b.cu", 1234, 99
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ;
.global .align 4 .u32 table[2] = {1, 2};
.global .align 1 .b8 text[9] = {46, 101, 110};
.extern .shared .align 16 .b8 s[];
.const .f32 c = 0f3F800000;
.func (.reg .b32 r) helper(.reg .b32 a) .noreturn { { .reg .u32 %x; } bra L; L: ret; }
.alias other, helper;
.visible .entry declared(.param .u64 p);
.visible .entry declared(.param .u64 p) {
  // } .entry no() {
  /* } */
  .pragma "} .entry no() {";
  { .reg .b32 t; mov.u32 t, 1; }
  call (_), helper, (1);
}
.section .debug_info { .b8 1, 2 .entry }
@@DWARF .entry old ( {
.visible .entry last() { ret; }
)" + std::string("\0;.visible .entry hidden() {}", 29));
    CHECK_OK(header);
    if (!header) return;
    CHECK_EQ(header->entries.size(), 2u);
    CHECK(header->find_entry("declared") && header->find_entry("last"));
}

void check_failures_name_a_line() {
    CHECK_FAILS(read_ptx_header(""), "no .version");
    CHECK_FAILS(read_ptx_header(".target sm_90"), "no .version");
    CHECK_FAILS(read_ptx_header(".version x"), "line 1: expected a version such as 9.0");
    CHECK_FAILS(read_ptx_header(".version 9"), "found '9'");
    CHECK_FAILS(read_ptx_header(".version 9.0\n.target sm_9x0"), "target 'sm_9x0'");
    CHECK_FAILS(read_ptx_header(kHead + ".entry"), "line 4: expected the name of the entry");
    CHECK_FAILS(read_ptx_header(kHead + ".entry k("), "found the end");
    CHECK_FAILS(read_ptx_header(kHead + ".entry k() { {"), "expected '}'");
    CHECK_FAILS(read_ptx_header(kHead + ".entry k() { /* }"), "expected '}'");
    CHECK_FAILS(read_ptx_header(kHead + ".entry k() { \" }"), "expected '}'");
    CHECK_FAILS(read_ptx_header(kHead + ".entry k(){}\n.entry k(){}"), "second entry");
    CHECK_FAILS(read_ptx_header(kHead + ".entry k() .maxntid x {}"), "a dimension");
}

void check_compiled() {
    const std::string text = check::read_file(data + "/h200/templated.sm90.ptx");
    auto header = read_ptx_header(text);
    CHECK_OK(header);
    if (!header) return;
    CHECK_EQ(header->entries.size(), 4u);
    const auto* entry = header->find_entry("_Z4axpyIfEvT_PKS0_PS0_m");
    if (!entry) return CHECK(false);
    CHECK_EQ(describe(*entry), "f32 _Z4axpyIfEvT_PKS0_PS0_m_param_0 4@0, "
                               "u64 _Z4axpyIfEvT_PKS0_PS0_m_param_1 8@8, "
                               "u64 _Z4axpyIfEvT_PKS0_PS0_m_param_2 8@16, "
                               "u64 _Z4axpyIfEvT_PKS0_PS0_m_param_3 8@24");
    CHECK_EQ(entry->parameters[0].type_class, PtxClass::Float);
    CHECK_EQ(entry->parameters[3].type_class, PtxClass::Unsigned);
    CHECK_EQ(entry->parameter_bytes, 32u);
}

} // namespace

int main(int, char** arguments) {
    data = arguments[1];
    check_directives();
    check_parameters();
    check_bad_parameters();
    check_bounds();
    check_what_lies_around();
    check_failures_name_a_line();
    check_compiled();
    return check::failures();
}
