/// Branches and their reconvergence, loops, calls, recursion, function pointers, and what the
/// driver provides.
#include "harness.h"

using harness::Module;
using harness::ptx::FaultKind;

namespace {

const char* const kRegisters =
    ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .f32 %f<16>;\n";

std::string entry(const std::string& body, const std::string& before = "") {
    return harness::header() + before + ".visible .entry k(.param .u64 out)\n{\n" + kRegisters +
           "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; mad.wide.u32 %d0, %r0, 4, %d0;\n" + body +
           "\nret;\n}\n";
}

/// Runs one block and returns one word for each thread.
std::vector<std::uint32_t> words(const std::string& text, std::uint32_t threads = 32) {
    Module m(text);
    const auto out = m.memory.allocate(threads * 4);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {threads, 1, 1}, out));
    return m.memory.download<std::uint32_t>(out);
}

void loops() {
    // Collatz: every lane loops for its own number of rounds.
    const auto out = words(entry(R"(
        add.u32 %r1, %r0, 1; mov.u32 %r2, 0;
        LOOP: setp.eq.u32 %p0, %r1, 1; @%p0 bra DONE;
        add.u32 %r2, %r2, 1; and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0;
        @%p1 bra EVEN;
        mad.lo.u32 %r1, %r1, 3, 1; bra.uni LOOP;
        EVEN: shr.u32 %r1, %r1, 1; bra LOOP;
        DONE: st.global.u32 [%d0], %r2;)"),
                           70);
    for (std::uint32_t n = 0; n < 70; ++n) {
        std::uint32_t x = n + 1, rounds = 0;
        for (; x != 1; ++rounds)
            x = x % 2 == 0 ? x / 2 : 3 * x + 1;
        CHECK_EQ(out[n], rounds);
    }
}

void reconvergence() {
    // Behind an if-else all lanes are together again, as activemask shows; inside they are not.
    const auto out = words(entry(R"(
        and.b32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 0; mov.u32 %r2, 0;
        @%p0 bra YES;
        activemask.b32 %r2; bra JOIN;
        YES: activemask.b32 %r2;
        JOIN: activemask.b32 %r3; popc.b32 %r2, %r2; popc.b32 %r3, %r3; mad.lo.u32 %r4, %r3, 100, %r2; st.global.u32 [%d0], %r4;)"));
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], n % 4 == 0 ? 3208u : 3224u);
}

void early_exit() {
    Module m(entry(R"(
        setp.lt.u32 %p0, %r0, 5; @%p0 exit;
        setp.gt.u32 %p1, %r0, 50; @%p1 ret;
        bar.sync 0; activemask.b32 %r1; st.global.u32 [%d0], %r1;)"));
    const auto out = m.memory.allocate(64 * 4);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {64, 1, 1}, out));
    const auto result = m.memory.download<std::uint32_t>(out);
    for (std::uint32_t n = 0; n < 64; ++n)
        CHECK_EQ(result[n], n < 5 || n > 50 ? 0u : n < 32 ? 0xffffffe0u : 0x0007ffffu);
}

void indexed_branch() {
    const auto out = words(entry(R"(
        rem.u32 %r1, %r0, 3;
        TABLE: .branchtargets A, B, C;
        brx.idx %r1, TABLE;
        A: mov.u32 %r2, 10; bra END;
        B: mov.u32 %r2, 20; bra END;
        C: mov.u32 %r2, 30;
        END: activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r2, %r2, %r3; st.global.u32 [%d0], %r2;)"));
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], 10 * (n % 3 + 1) + 32);
    Module m(entry("TABLE: .branchtargets A; brx.idx %r0, TABLE; A: ret;"));
    const auto fault = m.launch("k", {1, 1, 1}, {2, 1, 1}, m.memory.allocate(8));
    CHECK(fault && fault->kind == FaultKind::IllegalInstruction);
}

void spin_lock() {
    // Lanes of one warp wait for each other: needs a scheduler that does not starve the holder.
    Module m(harness::header() + R"(
.global .u32 lock; .global .u32 count;
.visible .entry k(.param .u64 out) { .reg .pred %p; .reg .b32 %r<4>;
    TRY: atom.global.cas.b32 %r0, [lock], 0, 1; setp.ne.u32 %p, %r0, 0; @%p bra TRY;
    ld.volatile.global.u32 %r1, [count]; add.u32 %r1, %r1, 1; st.volatile.global.u32 [count], %r1;
    membar.gl; atom.global.exch.b32 %r2, [lock], 0; ret; })");
    CHECK_RUNS(m.launch("k", {2, 1, 1}, {64, 1, 1}, std::uint64_t{0}));
    CHECK_EQ(m.memory.download<std::uint32_t>(m.variable("count"))[0], 128u);
}

void calls() {
    const std::string functions = R"(
.func (.param .b32 result) twice(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r0, [x]; add.u32 %r1, %r0, %r0; st.param.b32 [result], %r1; ret; }
.func (.reg .u32 result) sum(.reg .u32 a, .reg .u32 b) { add.u32 result, a, b; ret; }
.func (.param .align 8 .b8 result[16]) swap(.param .align 8 .b8 pair[16]) { .reg .b64 %d<2>; ld.param.v2.u64 {%d0, %d1}, [pair]; st.param.v2.u64 [result], {%d1, %d0}; ret; }
.func (.param .b32 result) fib(.param .b32 n) { .reg .pred %p; .reg .b32 %r<8>; .local .b32 kept;
    ld.param.u32 %r0, [n]; setp.lt.u32 %p, %r0, 2; @%p bra BASE; st.local.u32 [kept], %r0;
    { .param .b32 a; .param .b32 v; sub.u32 %r1, %r0, 1; st.param.b32 [a], %r1; call.uni (v), fib, (a); ld.param.b32 %r2, [v]; }
    { .param .b32 a; .param .b32 v; ld.local.u32 %r3, [kept]; sub.u32 %r3, %r3, 2; st.param.b32 [a], %r3; call.uni (v), fib, (a); ld.param.b32 %r4, [v]; }
    add.u32 %r5, %r2, %r4; st.param.b32 [result], %r5; ret;
    BASE: st.param.b32 [result], %r0; ret; }
)";
    const auto out = words(entry(R"(
        { .param .b32 a; .param .b32 v; st.param.b32 [a], %r0; call (v), twice, (a); ld.param.b32 %r1, [v]; }
        call (%r2), sum, (%r1, 1000);
        { .param .align 8 .b8 a[16]; .param .align 8 .b8 v[16]; cvt.u64.u32 %d1, %r2; mov.u64 %d2, 5; st.param.u64 [a], %d1; st.param.u64 [a+8], %d2;
          call (v), swap, (a); ld.param.u64 %d3, [v]; ld.param.u64 %d4, [v+8]; }
        cvt.u32.u64 %r3, %d3; cvt.u32.u64 %r4, %d4; mad.lo.u32 %r5, %r3, 10000, %r4;
        and.b32 %r6, %r0, 7;
        { .param .b32 a; .param .b32 v; st.param.b32 [a], %r6; call (v), fib, (a); ld.param.b32 %r7, [v]; }
        mad.lo.u32 %r5, %r7, 1000000, %r5; st.global.u32 [%d0], %r5;)",
                                 functions));
    const std::uint32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13};
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], fibonacci[n % 8] * 1000000 + 50000 + 1000 + 2 * n);
}

void divergent_calls() {
    // A call under a predicate, a return that only some lanes take, and a barrier of the warp
    // inside.
    const auto out = words(entry(R"(
        mov.u32 %r1, 7; setp.gt.u32 %p0, %r0, 9;
        @%p0 call (%r1), f, (%r0);
        activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r1, %r2, 1000, %r1; st.global.u32 [%d0], %r1;)",
                                 R"(
.func (.reg .u32 result) f(.reg .u32 a) { .reg .pred %p; mov.u32 result, 1; setp.lt.u32 %p, a, 20; @%p ret; add.u32 result, a, a; ret; }
)"));
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], 32000 + (n <= 9 ? 7 : n < 20 ? 1 : 2 * n));
}

void function_pointers() {
    const std::string before = R"(
.func (.param .b32 r) inc(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; add.u32 %r, %r, 1; st.param.b32 [r], %r; ret; }
.func (.param .b32 r) neg_(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; neg.s32 %r, %r; st.param.b32 [r], %r; ret; }
.func other(.param .b64 x) { ret; }
.global .u64 table[3] = {inc, neg_, other};
)";
    const std::string body = R"(
        mov.u64 %d1, table; mad.wide.u32 %d1, %r1, 8, %d1; ld.global.u64 %d2, [%d1];
        P: .callprototype (.param .b32 _) _ (.param .b32 _);
        { .param .b32 a; .param .b32 v; st.param.b32 [a], %r0; call (v), %d2, (a), P; ld.param.b32 %r2, [v]; }
        st.global.u32 [%d0], %r2;)";
    const auto out = words(entry("and.b32 %r1, %r0, 1;" + body, before));
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], n % 2 == 0 ? n + 1 : 0 - n);
    Module m(entry("mov.u32 %r1, 2;" + body, before));
    const auto fault = m.launch("k", {1, 1, 1}, {1, 1, 1}, m.memory.allocate(4));
    CHECK(fault && fault->kind == FaultKind::IllegalInstruction);
}

void endless_recursion() {
    Module m(entry("call f;", ".func f() { .local .b8 l[64]; call f; ret; }\n"));
    const auto fault = m.launch("k", {1, 1, 1}, {32, 1, 1}, m.memory.allocate(128));
    CHECK(fault && fault->kind == FaultKind::StackOverflow);
}

void provided_functions() {
    const std::string before = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 format[24] = {105, 61, 37, 100, 32, 120, 61, 37, 54, 46, 50, 102, 32, 115, 61, 37, 115, 32, 37, 108, 108, 117, 10, 0};
.global .align 1 .b8 text[4] = {97, 98, 99, 0};
)";
    Module m(entry(R"(
        .local .align 8 .b8 arguments[32];
        setp.ne.u32 %p0, %r0, 0; @%p0 bra SKIP;
        st.local.s32 [arguments], -5; mov.b64 %d1, 0d4004000000000000; st.local.u64 [arguments+8], %d1;
        mov.u64 %d2, text; cvta.global.u64 %d2, %d2; st.local.u64 [arguments+16], %d2; mov.u64 %d3, 12345678901; st.local.u64 [arguments+24], %d3;
        mov.u64 %d4, arguments; cvta.local.u64 %d4, %d4; mov.u64 %d5, format; cvta.global.u64 %d5, %d5;
        { .param .b64 a; .param .b64 b; .param .b32 v; st.param.b64 [a], %d5; st.param.b64 [b], %d4; call.uni (v), vprintf, (a, b); ld.param.b32 %r1, [v]; }
        SKIP:
        { .param .b64 a; .param .b64 v; st.param.b64 [a], 64; call (v), malloc, (a); ld.param.b64 %d6, [v]; }
        st.u32 [%d6+60], %r0; ld.global.u32 %r2, [%d6+60]; st.global.u32 [%d0], %r2;
        { .param .b64 a; st.param.b64 [a], %d6; call free, (a); })",
                   before));
    const auto out = m.memory.allocate(64);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {16, 1, 1}, out));
    CHECK_EQ(m.printed, std::string("i=-5 x=  2.50 s=abc 12345678901\n"));
    for (std::uint32_t n = 0; n < 16; ++n)
        CHECK_EQ(m.memory.download<std::uint32_t>(out)[n], n);
    Module a(entry(R"(
        mov.u64 %d1, text; cvta.global.u64 %d1, %d1;
        { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %d1; st.param.b64 [b], %d1; st.param.b32 [c], 42; st.param.b64 [d], %d1; st.param.b64 [e], 1;
          call __assertfail, (a, b, c, d, e); })",
                   before));
    const auto fault = a.launch("k", {1, 1, 1}, {1, 1, 1}, out);
    CHECK(fault && fault->kind == FaultKind::Assert &&
          fault->message.find("abc:42: abc: assertion `abc` failed") != std::string::npos);
    Module twice(entry(R"(
        { .param .b64 a; .param .b64 v; st.param.b64 [a], 8; call (v), malloc, (a); ld.param.b64 %d6, [v]; }
        { .param .b64 a; st.param.b64 [a], %d6; call free, (a); call free, (a); })",
                       before));
    CHECK(twice.launch("k", {1, 1, 1}, {1, 1, 1}, out).has_value());
}

void special_registers() {
    Module m(harness::header() + R"(
.visible .entry k(.param .u64 out) { .reg .b32 %r<20>; .reg .b64 %d<3>; .reg .pred %p;
    mad.lo.u32 %r0, %ctaid.x, %nctaid.y, %ctaid.y; mad.lo.u32 %r0, %r0, %nctaid.z, %ctaid.z;
    mov.u32 %r1, %ntid.x; mul.lo.u32 %r1, %r1, %ntid.y; mul.lo.u32 %r1, %r1, %ntid.z;
    mad.lo.u32 %r2, %tid.z, %ntid.y, %tid.y; mad.lo.u32 %r2, %r2, %ntid.x, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2; ld.param.u64 %d0, [out]; mad.wide.u32 %d0, %r3, 16, %d0;
    mov.u32 %r4, %laneid; mov.u32 %r5, %lanemask_lt; popc.b32 %r5, %r5; mov.u32 %r6, %warpid;
    mov.u64 %d1, %clock64; mov.u32 %r8, %smid; setp.lt.u32 %p, %r8, %nsmid; selp.u32 %r7, 1, 0, %p;
    st.global.v4.u32 [%d0], {%r4, %r5, %r6, %r7}; ret; })");
    const auto out = m.memory.allocate(2 * 3 * 2 * 60 * 16);
    CHECK_RUNS(m.launch("k", {2, 3, 2}, {5, 4, 3}, out));
    const auto result = m.memory.download<std::uint32_t>(out);
    for (std::uint32_t n = 0; n < 720; ++n) {
        CHECK_EQ(result[4 * n], n % 60 % 32);
        CHECK_EQ(result[4 * n + 1], n % 60 % 32);
        CHECK_EQ(result[4 * n + 2], n % 60 / 32);
        CHECK_EQ(result[4 * n + 3], 1u);
    }
}

void threads_seeds_and_cancel() {
    const std::string text = harness::header() + R"(
.global .u32 count;
.visible .entry k() { .reg .b32 %r; atom.global.add.u32 %r, [count], 1; bar.sync 0; ret; }
.visible .entry forever() { L: bra L; })";
    for (const unsigned threads : {1u, 2u, 5u}) {
        for (const std::uint64_t seed : {0u, 1u, 77u}) {
            Module m(text);
            m.options.threads = threads;
            m.options.seed = seed;
            CHECK_RUNS(m.launch("k", {7, 5, 3}, {65, 1, 1}));
            CHECK_EQ(m.memory.download<std::uint32_t>(m.variable("count"))[0], 7u * 5 * 3 * 65);
        }
    }
    Module m(text);
    m.options.watch = [] { return "was cancelled"; };
    const auto fault = m.launch("forever", {1, 1, 1}, {1, 1, 1});
    CHECK(fault && fault->kind == FaultKind::Timeout);
}

void scopes() {
    const auto out = words(entry(R"(
        mov.u32 %r1, 1;
        { .reg .b32 %r<3>; mov.u32 %r1, 50; { .reg .b32 %r1; mov.u32 %r1, 70; L: } bra L2; L2: }
        { L2: bra L3; L3: }
        .reg .b32 %r1x; mov.u32 %r1x, 3; add.u32 %r1, %r1, %r1x;
        st.global.u32 [%d0], %r1;)"));
    CHECK_EQ(out[0], 4u);
}

} // namespace

int main() {
    loops();
    reconvergence();
    early_exit();
    indexed_branch();
    spin_lock();
    calls();
    divergent_calls();
    function_pointers();
    endless_recursion();
    provided_functions();
    special_registers();
    threads_seeds_and_cancel();
    scopes();
    return check::failures();
}
