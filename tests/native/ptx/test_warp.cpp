/// Instructions of whole warps, blocks, clusters and cooperative grids.
#include "harness.h"

using harness::Module;
using harness::ptx::FaultKind;

namespace {

std::string entry(const std::string& body, const std::string& before = "") {
    return harness::header() + before +
           ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 "
           "%d<8>;\n" +
           "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; mov.u32 %r30, %ctaid.x; mad.lo.u32 %r31, "
           "%r30, %ntid.x, %r0; mad.wide.u32 %d0, %r31, 4, %d0;\n" +
           body + "\nst.global.u32 [%d0], %r1;\nret;\n}\n";
}

std::vector<std::uint32_t> words(const std::string& body, std::uint32_t threads = 32,
                                 std::uint32_t blocks = 1, const std::string& before = "") {
    Module m(entry(body, before));
    const auto out = m.memory.allocate(threads * blocks * 4);
    CHECK_RUNS(m.launch("k", {blocks, 1, 1}, {threads, 1, 1}, out));
    return m.memory.download<std::uint32_t>(out);
}

/// The documented definition of shfl, for one lane of a full warp.
std::uint32_t shuffled(const std::string& mode, std::uint32_t lane, std::uint32_t b,
                       std::uint32_t c, bool& valid) {
    const std::uint32_t segment = c >> 8 & 31, clamp = c & 31,
                        last = (lane & segment) | (clamp & ~segment & 31), first = lane & segment;
    b &= 31;
    std::int64_t j = lane;
    if (mode == "up")
        j = static_cast<std::int64_t>(lane) - b, valid = j >= static_cast<std::int64_t>(last);
    if (mode == "down") j = lane + b, valid = j <= last;
    if (mode == "bfly") j = lane ^ b, valid = j <= last;
    if (mode == "idx") j = first | (b & ~segment & 31), valid = j <= last;
    return valid ? static_cast<std::uint32_t>(j) : lane;
}

void shuffles() {
    for (const std::string mode : {"up", "down", "bfly", "idx"}) {
        for (const std::uint32_t b : {0u, 1u, 5u, 16u, 31u, 33u}) {
            for (const std::uint32_t c : {0u, 31u, 0x181fu, 0x1800u, 0x100fu, 7u}) {
                const auto out = words("mul.lo.u32 %r2, %r0, 10; shfl.sync." + mode +
                                       ".b32 %r1|%p0, %r2, " + std::to_string(b) + ", " +
                                       std::to_string(c) + ", -1; @%p0 add.u32 %r1, %r1, 1000;");
                for (std::uint32_t lane = 0; lane < 32; ++lane) {
                    bool valid = false;
                    const std::uint32_t from = shuffled(mode, lane, b, c, valid);
                    CHECK_EQ(out[lane], from * 10 + (valid ? 1000 : 0));
                }
            }
        }
    }
}

void votes_and_reductions() {
    auto out = words("setp.gt.u32 %p0, %r0, 20; vote.sync.ballot.b32 %r1, %p0, -1;");
    for (const auto word : out)
        CHECK_EQ(word, 0xffe00000u);
    out = words("setp.gt.u32 %p0, %r0, 20; vote.sync.any.pred %p1, %p0, -1; vote.sync.all.pred "
                "%p2, !%p0, -1; vote.sync.uni.pred %p3, %p0, -1; "
                "selp.u32 %r1, 1, 0, %p1; @%p2 add.u32 %r1, %r1, 2; @%p3 add.u32 %r1, %r1, 4;");
    for (const auto word : out)
        CHECK_EQ(word, 1u);
    out = words("and.b32 %r2, %r0, 3; match.any.sync.b32 %r1, %r2, -1;");
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], 0x11111111u << (n % 4));
    out = words("cvt.u64.u32 %d1, 9; match.all.sync.b64 %r1|%p0, %d1, -1; @!%p0 mov.u32 %r1, 5;");
    for (const auto word : out)
        CHECK_EQ(word, 0xffffffffu);
    out = words("match.all.sync.b32 %r1|%p0, %r0, -1; @!%p0 add.u32 %r1, %r1, 5;");
    for (const auto word : out)
        CHECK_EQ(word, 5u);
    const std::pair<const char*, std::uint32_t> reductions[] = {
        {"add.u32", 32 * 33 / 2}, {"min.u32", 1}, {"max.s32", 32},
        {"and.b32", 0},           {"or.b32", 63}, {"xor.b32", 32}};
    for (const auto& [name, value] : reductions) {
        out = words(std::string("add.u32 %r2, %r0, 1; redux.sync.") + name + " %r1, %r2, -1;");
        for (const auto word : out)
            CHECK_EQ(word, value);
    }
    out = words("elect.sync %r1|%p0, -1; @%p0 add.u32 %r1, %r1, 100;");
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], n == 0 ? 100u : 0u);
    // Halves with masks of their own.
    out = words("setp.lt.u32 %p0, %r0, 16; selp.b32 %r3, 0xffff, 0xffff0000, %p0; "
                "redux.sync.add.u32 %r1, %r0, %r3;");
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], n < 16 ? 120u : 376u);
}

void meeting_across_branches() {
    // The two sides come to different instructions; they exchange values all the same.
    const auto out = words(R"(
        setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW;
        add.u32 %r2, %r0, 100; shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1; add.u32 %r1, %r1, 1000; bra END;
        LOW: add.u32 %r2, %r0, 200; shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
        END: bar.warp.sync -1;)");
    for (std::uint32_t n = 0; n < 32; ++n)
        CHECK_EQ(out[n], n < 16 ? n + 116 : n - 16 + 1200);
}

void block_barriers() {
    auto out = words(
        R"(.shared .b32 s[100]; mov.u32 %r2, s; mad.lo.u32 %r3, %r0, 4, %r2; st.shared.u32 [%r3], %r0; bar.sync 0;
        sub.u32 %r4, 99, %r0; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r1, [%r4];)",
        100, 3);
    for (std::uint32_t n = 0; n < 300; ++n)
        CHECK_EQ(out[n], 99 - n % 100);
    out = words("rem.u32 %r2, %r0, 3; setp.eq.u32 %p0, %r2, 0; bar.red.popc.u32 %r1, 0, %p0; "
                "barrier.cta.red.or.pred %p1, 1, %p0; bar.red.and.pred %p2, 2, 128, %p0; "
                "@%p1 add.u32 %r1, %r1, 1000; @%p2 add.u32 %r1, %r1, 5000;",
                100);
    for (const auto word : out)
        CHECK_EQ(word, 1034u);
    // Producer and consumer: warp 0 arrives, warp 1 waits.
    out = words(R"(.shared .b32 s; mov.u32 %r1, 0; setp.ge.u32 %p0, %r0, 32; @%p0 bra CONSUME;
        st.shared.u32 [s], 77; bar.arrive 3, 64; bra END; CONSUME: bar.sync 3, 64; ld.shared.u32 %r1, [s]; END:)",
                64);
    for (std::uint32_t n = 0; n < 64; ++n)
        CHECK_EQ(out[n], n < 32 ? 0u : 77u);
}

void deadlock() {
    Module m(entry("mov.u32 %r1, 0; setp.ge.u32 %p0, %r0, 32; @%p0 bra OTHER; bar.sync 1; bra END; "
                   "OTHER: bar.sync 2; END:"));
    const auto fault = m.launch("k", {1, 1, 1}, {64, 1, 1}, m.memory.allocate(256));
    CHECK(fault && fault->kind == FaultKind::Deadlock &&
          fault->message.find("bar.sync 1;") != std::string::npos);
    Module beyond(entry("mov.u32 %r1, 16; bar.sync %r1;"));
    CHECK(beyond.launch("k", {1, 1, 1}, {32, 1, 1}, beyond.memory.allocate(128)).has_value());
}

void clusters() {
    Module m(harness::header() + R"(
.visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 4, 1, 1
{ .reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %d<8>; .shared .b32 s;
    mov.u32 %r0, %cluster_ctarank; add.u32 %r1, %r0, 100; st.shared.u32 [s], %r1;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    add.u32 %r2, %r0, 1; rem.u32 %r2, %r2, %cluster_nctarank; mov.u32 %r3, s; mapa.shared::cluster.u32 %r4, %r3, %r2; ld.shared::cluster.u32 %r5, [%r4];
    mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; mapa.u64 %d2, %d1, %r2; ld.u32 %r6, [%d2]; getctarank.u64 %r7, %d2; atom.shared::cluster.add.u32 %r8, [%r4], 1;
    barrier.cluster.arrive; barrier.cluster.wait; ld.shared.u32 %r9, [s];
    mov.u32 %r10, %ctaid.x; ld.param.u64 %d0, [out]; mad.wide.u32 %d0, %r10, 16, %d0; st.global.v4.u32 [%d0], {%r5, %r6, %r7, %r9}; ret; })");
    CHECK_EQ(m.program().entries()[0].required_cluster.x, 4u);
    const auto out = m.memory.allocate(8 * 16);
    CHECK_RUNS(m.launch("k", {8, 1, 1}, {1, 1, 1}, out));
    const auto result = m.memory.download<std::uint32_t>(out);
    for (std::uint32_t n = 0; n < 8; ++n) {
        const std::uint32_t next = (n % 4 + 1) % 4;
        CHECK_EQ(result[4 * n], 100 + next);
        CHECK_EQ(result[4 * n + 1], 100 + next);
        CHECK_EQ(result[4 * n + 2], next);
        CHECK_EQ(result[4 * n + 3], 101 + n % 4);
    }
}

void cooperative_grid() {
    // Every block waits until all have arrived, twice.
    const std::string text = harness::header() + R"(
.global .u32 arrived; .global .u32 seen[64];
.visible .entry k() { .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<2>;
    mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; bar.sync 0; @%p0 bra JOIN;
    atom.global.add.u32 %r1, [arrived], 1;
    WAIT: ld.volatile.global.u32 %r2, [arrived]; setp.lt.u32 %p1, %r2, %nctaid.x; @%p1 bra WAIT;
    mov.u32 %r3, %ctaid.x; mov.u64 %d0, seen; mad.wide.u32 %d0, %r3, 4, %d0; st.global.u32 [%d0], %r2;
    JOIN: bar.sync 0; ret; })";
    for (const unsigned threads : {1u, 3u}) {
        Module m(text);
        m.options.cooperative = true;
        m.options.threads = threads;
        CHECK_RUNS(m.launch("k", {16, 1, 1}, {64, 1, 1}));
        const auto seen = m.memory.download<std::uint32_t>(m.variable("seen"));
        for (std::uint32_t n = 0; n < 16; ++n)
            CHECK_EQ(seen[n], 16u);
    }
}

void async_copies() {
    Module m(entry(
        R"(.shared .align 16 .b8 s[1024]; ld.param.u64 %d1, [out]; mad.wide.u32 %d2, %r0, 16, %d1; mov.u32 %r2, s; mad.lo.u32 %r3, %r0, 16, %r2;
        cp.async.cg.shared.global [%r3], [%d2+0], 16; cp.async.commit_group; cp.async.ca.shared.global [%r3+4], [%d2+8], 4, 0; cp.async.wait_group 0; bar.sync 0;
        xor.b32 %r4, %r3, 16; ld.shared.u32 %r1, [%r4]; ld.shared.u32 %r5, [%r4+4]; add.u32 %r1, %r1, %r5; bar.sync 0;)"));
    std::vector<std::uint32_t> in(64 * 4);
    for (std::uint32_t n = 0; n < in.size(); ++n)
        in[n] = n;
    const auto out = m.memory.upload(in);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {64, 1, 1}, out));
    const auto result = m.memory.download<std::uint32_t>(out);
    for (std::uint32_t n = 0; n < 64; ++n)
        CHECK_EQ(result[n], (n ^ 1) * 4);
}

} // namespace

int main() {
    shuffles();
    votes_and_reductions();
    meeting_across_branches();
    block_barriers();
    deadlock();
    clusters();
    cooperative_grid();
    async_copies();
    return check::failures();
}
