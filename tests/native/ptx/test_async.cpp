/// mbarrier, bulk copies, tensors, clusters that copy to each other, and what has no effect.
#include "emulator/ptx/tensor_map.h"
#include "harness.h"

#include <array>
#include <bit>

using cudamod::emulator::ptx::TensorMap;
using harness::Module;
using harness::ptx::FaultKind;

namespace {

std::string entry(const std::string& parameters, const std::string& body) {
    return harness::header() + ".visible .entry k(" + parameters +
           ")\n{\n.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %d<32>; .reg .f32 "
           "%f<8>;\n.shared .align 128 .b8 s[4096]; .shared .align 8 .b64 bar;\nmov.u32 %r0, "
           "%tid.x;\n" +
           body + "\nret;\n}\n";
}

/// A fault of the body's kernel, run by one thread.
void faults(const std::string& body, FaultKind kind, const std::string& mention) {
    Module m(entry(".param .u64 out", "ld.param.u64 %d0, [out];\n" + body));
    if (!m.loaded()) return;
    const auto out = m.memory.allocate(4096);
    const auto fault = m.launch("k", {1, 1, 1}, {1, 1, 1}, out);
    if (!fault || fault->kind != kind || fault->message.find(mention) == std::string::npos)
        check::report(__FILE__, __LINE__, body + ": " + (fault ? fault->message : "no fault"));
}

std::vector<std::uint32_t> single(const std::string& body, std::size_t words) {
    Module m(entry(".param .u64 out", "ld.param.u64 %d0, [out];\n" + body));
    const auto out = m.memory.allocate(words * 4);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {1, 1, 1}, out));
    return m.memory.download<std::uint32_t>(out);
}

void phases() {
    // Two arrivals a phase; tests before, between and behind them, by state and by parity.
    const auto words = single(R"(
        mbarrier.init.shared.b64 [bar], 2;
        mbarrier.test_wait.parity.shared.b64 %p0, [bar], 0; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0], %r1;
        mbarrier.test_wait.parity.shared.b64 %p0, [bar], 1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+4], %r1;
        mbarrier.arrive.shared.b64 %d1, [bar];
        mbarrier.test_wait.shared.b64 %p0, [bar], %d1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+8], %r1;
        mbarrier.pending_count.b64 %r2, %d1; st.global.u32 [%d0+12], %r2;
        mbarrier.arrive.release.cta.shared::cta.b64 %d2, [bar];
        mbarrier.pending_count.b64 %r2, %d2; st.global.u32 [%d0+16], %r2;
        mbarrier.test_wait.shared.b64 %p0, [bar], %d1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+20], %r1;
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [bar], 0, 1000; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+24], %r1;
        mbarrier.arrive.noComplete.shared.b64 %d3, [bar], 1;
        mbarrier.arrive_drop.shared.b64 %d3, [bar];
        mbarrier.test_wait.parity.shared.b64 %p0, [bar], 1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+28], %r1;
        mbarrier.arrive.shared.b64 _, [bar], 1; // one arrival is left of two
        mbarrier.test_wait.parity.shared.b64 %p0, [bar], 0; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+32], %r1;
        mbarrier.inval.shared.b64 [bar];)",
                              9);
    const std::uint32_t expected[] = {0, 1, 0, 2, 1, 1, 1, 1, 1};
    for (std::size_t n = 0; n < std::size(expected); ++n) {
        if (words[n] != expected[n])
            check::report(__FILE__, __LINE__,
                          "word " + std::to_string(n) + " is " + std::to_string(words[n]));
    }
}

void bytes_are_awaited() {
    // The phase lacks nothing but bytes until they complete; the generic address means the same.
    const auto words = single(R"(
        mbarrier.init.shared.b64 [bar], 1; mov.u32 %r3, bar; cvt.u64.u32 %d2, %r3; cvta.shared.u64 %d2, %d2;
        mbarrier.arrive.expect_tx.b64 %d1, [%d2], 96;
        mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 64;
        mbarrier.test_wait.b64 %p0, [%d2], %d1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0], %r1;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
        mbarrier.complete_tx.shared.b64 [bar], 48;
        mbarrier.test_wait.b64 %p0, [%d2], %d1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+4], %r1;
        cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.test_wait.parity.b64 %p0, [%d2], 1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+8], %r1;
        cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; mbarrier.test_wait.parity.b64 %p0, [%d2], 1; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%d0+12], %r1;)",
                              4);
    CHECK_EQ(words[0], 0u);
    CHECK_EQ(words[1], 1u);
    CHECK_EQ(words[2], 0u);
    CHECK_EQ(words[3], 1u);
}

void misuse() {
    using enum FaultKind;
    faults("mbarrier.arrive.shared.b64 %d1, [bar];", IllegalInstruction, "no mbarrier");
    faults("mbarrier.init.shared.b64 [bar], 0;", IllegalInstruction, "0 arrivals");
    faults("mbarrier.init.shared.b64 [bar], 1048576;", IllegalInstruction, "1 to 1048575");
    faults("mbarrier.init.shared.b64 [s+4], 1;", MisalignedAddress, "misaligned");
    faults("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 _, [bar], 2;",
           IllegalInstruction, "2 arrivals");
    faults("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.noComplete.shared.b64 %d1, [bar], "
           "1;",
           IllegalInstruction, "noComplete");
    faults("mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar]; "
           "mbarrier.arrive.shared.b64 _, [bar];",
           IllegalInstruction, "no mbarrier");
    faults("mbarrier.init.shared.b64 [bar], 1; mbarrier.expect_tx.shared.b64 [bar], 2000000;",
           IllegalInstruction, "2000000");
    faults("mbarrier.arrive.b64 %d1, [%d0];", InvalidAddressSpace, "shared memory");
    faults("mbarrier.init.shared.b64 [bar], 1; cp.async.bulk.shared::cluster.global.mbarrier::"
           "complete_tx::bytes [s], [%d0], 20, [bar];",
           MisalignedAddress, "multiple of 16");
    faults("cp.async.bulk.global.shared::cta.bulk_group [%d0+8], [s], 32;", MisalignedAddress,
           "not aligned to 16");
    faults("cp.async.bulk.global.shared::cta.bulk_group [%d0+4080], [s], 32;", IllegalAddress,
           "write of 32 bytes");
    faults("cp.async.bulk.global.shared::cta.bulk_group [%d0], [s+4096], 32;", IllegalAddress,
           "outside");
}

void copies_in_bulk() {
    // Thread 0 asks for a tile, the others wait; the tile goes back reversed and is added to.
    Module m(entry(".param .u64 in, .param .u64 out", R"(
        ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; setp.ne.u32 %p0, %r0, 0; @%p0 bra WAIT;
        mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;
        createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
        cp.async.bulk.prefetch.L2.global [%d0], 1024;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d0], 512, [bar];
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [s+512], [%d0+512], 512, [bar], %d5;
        WAIT: bar.sync 0;
        SPIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra SPIN;
        mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; ld.shared.u32 %r4, [%r3]; bar.sync 0;
        sub.u32 %r5, 1020, %r2; add.u32 %r5, %r5, %r1; st.shared.u32 [%r5], %r4;
        fence.proxy.async; bar.sync 0; @%p0 bra END;
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 1024;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1+512], [s], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        END:)"));
    std::vector<std::uint32_t> in;
    for (std::uint32_t n = 0; n < 256; ++n)
        in.push_back(n * n + 3);
    const auto a = m.memory.upload(in), b = m.memory.allocate(1024);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {256, 1, 1}, a, b));
    const auto out = m.memory.download<std::uint32_t>(b);
    for (std::size_t n = 0; n < 256; ++n) {
        const std::uint32_t more = n >= 128 && n < 192 ? in[255 - (n - 128)] : 0;
        CHECK_EQ(out[n], in[255 - n] + more);
    }
}

void clusters_copy() {
    // Both blocks of a cluster multicast 32 bytes to both; then each writes to its neighbour.
    Module m(entry(".param .u64 in, .param .u64 out", R"(
        ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %ctaid.x;
        mov.u32 %r3, bar; mov.u32 %r4, s; setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
        mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 76;
        READY: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; @%p0 bra WAIT;
        mul.wide.u32 %d2, %r2, 32; add.u64 %d2, %d0, %d2; mad.lo.u32 %r5, %r1, 32, %r4; mov.b16 %h0, 3;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d2], 32, [%r3], %h0;
        xor.b32 %r6, %r1, 1; mapa.shared::cluster.u32 %r7, %r4, %r6; mapa.shared::cluster.u32 %r8, %r3, %r6; add.u32 %r9, %r2, 100;
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r7+64], {%r9, %r2}, [%r8];
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r7+72], %r9, [%r8];
        WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra WAIT;
        shl.b32 %r10, %r0, 2; add.u32 %r11, %r4, %r10; ld.shared.u32 %r12, [%r11]; mad.lo.u32 %r13, %r2, 32, %r0; mad.wide.u32 %d3, %r13, 4, %d1; st.global.u32 [%d3], %r12;
        barrier.cluster.arrive; barrier.cluster.wait;)"));
    std::vector<std::uint32_t> in;
    for (std::uint32_t n = 0; n < 32; ++n)
        in.push_back(1000 + n);
    const auto a = m.memory.upload(in), b = m.memory.allocate(4 * 32 * 4);
    m.options.cluster = {2, 1, 1};
    CHECK_RUNS(m.launch("k", {4, 1, 1}, {32, 1, 1}, a, b));
    const auto out = m.memory.download<std::uint32_t>(b);
    for (std::uint32_t block = 0; block < 4; ++block) {
        const auto word = [&](std::size_t n) { return out[block * 32 + n]; };
        for (std::uint32_t n = 0; n < 16; ++n)
            CHECK_EQ(word(n), in[block / 2 * 16 + n]);
        CHECK_EQ(word(16), 100 + (block ^ 1u));
        CHECK_EQ(word(17), block ^ 1u);
        CHECK_EQ(word(18), 100 + (block ^ 1u));
    }
}

void tensors() {
    constexpr std::uint32_t kRows = 20, kColumns = 40;
    for (const int swizzle : {0, 1, 2, 3}) {
        // 8 rows of 8, 16, 32 or 64 columns of 2 bytes.
        const std::uint32_t box = swizzle == 0 ? 32 : 8u << swizzle, row_bytes = 2 * box,
                            bytes = 8 * row_bytes;
        const std::string size = std::to_string(bytes);
        Module m(entry(
            ".param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y", R"(
            ld.param.u64 %d0, [out]; ld.param.u32 %r1, [x]; ld.param.u32 %r2, [y]; mov.b64 %d2, map; cvta.param.u64 %d2, %d2;
            mbarrier.init.shared.b64 [bar], 1; prefetch.tensormap [%d2];
            mbarrier.arrive.expect_tx.shared.b64 %d1, [bar], )" + size + R"(;
            cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%d2, {%r1, %r2}], [bar];
            SPIN: mbarrier.try_wait.shared.b64 %p1, [bar], %d1; @!%p1 bra SPIN;
            cp.async.bulk.global.shared::cta.bulk_group [%d0], [s], )" + size + R"(;
            add.s32 %r1, %r1, 1; cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {%r1, %r2}], [s]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;)"));
        if (!m.loaded()) return;
        std::vector<std::uint16_t> in(kRows * kColumns);
        for (std::size_t n = 0; n < in.size(); ++n)
            in[n] = static_cast<std::uint16_t>(n + 1);
        for (const auto& [x, y] : {std::pair(8, 4), std::pair(-3, 15), std::pair(30, -2)}) {
            const auto tensor = m.memory.upload(in), out = m.memory.allocate(bytes);
            TensorMap map;
            map.data_type = 1;
            map.rank = 2;
            map.swizzle = static_cast<std::uint8_t>(swizzle);
            map.address = tensor;
            map.dimensions = {kColumns, kRows};
            map.strides = {kColumns * 2};
            map.box = {static_cast<std::uint16_t>(box), 8};
            map.element_strides = {1, 1};
            struct alignas(64) Bytes {
                std::array<std::uint64_t, 16> words;
            };
            static_assert(sizeof(Bytes) == sizeof(TensorMap));
            CHECK_RUNS(m.launch("k", {1, 1, 1}, {1, 1, 1}, std::bit_cast<Bytes>(map), out, x, y));
            const auto tile = m.memory.download<std::uint16_t>(out);
            auto expected = in;
            const auto value = [&](int row, int column) -> std::uint16_t {
                const bool inside =
                    row >= 0 && row < int{kRows} && column >= 0 && column < int{kColumns};
                return inside ? in[static_cast<std::size_t>(row * int{kColumns} + column)] : 0;
            };
            for (int row = 0; row < 8; ++row) {
                for (int column = 0; column < static_cast<int>(box); ++column) {
                    // The 16-byte pieces of 1024 (512, 256) bytes are exchanged among each other.
                    std::uint32_t at = static_cast<std::uint32_t>(row) * row_bytes +
                                       static_cast<std::uint32_t>(column) * 2;
                    if (swizzle == 1) at ^= (at >> 7 & 1) << 4;
                    if (swizzle == 2) at ^= (at >> 7 & 3) << 4;
                    if (swizzle == 3) at ^= (at >> 7 & 7) << 4;
                    CHECK_EQ(tile[at / 2], value(y + row, x + column));
                    const int r = y + row, c = x + column + 1;
                    if (r >= 0 && r < int{kRows} && c >= 0 && c < int{kColumns})
                        expected[static_cast<std::size_t>(r * int{kColumns} + c)] =
                            value(r, x + column);
                }
            }
            CHECK(m.memory.download<std::uint16_t>(tensor) == expected);
        }
        const auto out = m.memory.allocate(bytes);
        struct alignas(64) Zeros {
            std::array<std::uint64_t, 16> words{};
        };
        const auto fault = m.launch("k", {1, 1, 1}, {1, 1, 1}, Zeros{}, out, 0, 0);
        CHECK(fault && fault->message.find("no tensor map") != std::string::npos);
    }
}

void accepted() {
    // What concerns caches, registers and launches only.
    single(R"(
        griddepcontrol.wait; griddepcontrol.launch_dependents; createpolicy.cvt.L2.b64 %d1, 0;
        createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d1, [%d0], 128, 256;
        ld.global.L2::cache_hint.u32 %r1, [%d0], %d1; st.global.L1::no_allocate.L2::cache_hint.v2.u32 [%d0], {%r1, %r1}, %d1;
        atom.global.add.L2::cache_hint.u32 %r1, [%d0], 1, %d1; red.relaxed.gpu.global.add.L2::cache_hint.u32 [%d0], 1, %d1;
        prefetch.global.L2 [%d0]; prefetch.global.L2::evict_last [%d0]; applypriority.global.L2::evict_normal [%d0], 128; discard.global.L2 [%d0], 128;
        fence.proxy.alias; fence.proxy.tensormap::generic.acquire.gpu [%d0], 128; fence.proxy.tensormap::generic.release.gpu; fence.acq_rel.cluster; membar.proxy.alias;
        elect.sync %r2|%p1, 1; cp.async.ca.shared.global.L2::128B [s], [%d0], 8, 4; cp.async.cg.shared.global.L2::cache_hint [s], [%d0], 16, %d1; cp.async.wait_all;)",
           32);
    const auto text = [](const char* target, const char* value) {
        return harness::header("8.0", target) +
               ".visible .entry k() {\nsetmaxnreg.inc.sync.aligned.u32 " + value + ";\nret; }\n";
    };
    CHECK(harness::load(text("sm_90a", "232")).program != nullptr);
    CHECK(harness::load(text("sm_90", "232")).log.find("requires .target sm_90a") !=
          std::string::npos);
    CHECK(harness::load(text("sm_90a", "233")).log.find("multiple of 8") != std::string::npos);
}

void parts_of_copies() {
    // What is not read is zero: by a count, or by a predicate.
    const auto words = single(R"(
        st.global.v2.u32 [%d0], {5, 6}; setp.eq.u32 %p1, %r0, 0; st.shared.v4.u32 [s], {9, 9, 9, 9}; st.shared.v4.u32 [s+16], {9, 9, 9, 9};
        cp.async.ca.shared.global [s], [%d0], 8, 4; cp.async.ca.shared.global [s+8], [%d0], 8, %p1; setp.ne.u32 %p1, %r0, 0; cp.async.ca.shared.global [s+16], [%d0], 8, %p1;
        cp.async.wait_all; ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [s]; ld.shared.v2.u32 {%r5, %r6}, [s+16]; st.global.v4.u32 [%d0+16], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%d0+32], {%r5, %r6};)",
                              10);
    const std::uint32_t expected[] = {5, 0, 0, 0, 5, 6};
    for (std::size_t n = 0; n < std::size(expected); ++n)
        CHECK_EQ(words[4 + n], expected[n]);
}

void vector_atomics() {
    Module m(entry(".param .u64 out", R"(
        ld.param.u64 %d0, [out]; mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;
        atom.global.add.v4.f32 {%f4, %f5, %f6, %f7}, [%d0], {%f0, %f1, %f2, %f3};
        atom.global.gpu.acq_rel.add.f32 %f0, [%d0], %f0;
        mov.b16 %h0, 0x3c00; mov.b16 %h1, 0x4000; red.global.max.noftz.v2.f16 [%d0+16], {%h0, %h1};)"));
    const auto out = m.memory.allocate(32);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {32, 1, 1}, out));
    const auto sums = m.memory.download<float>(out);
    CHECK_EQ(sums[0], 64.0f);
    CHECK_EQ(sums[1], 64.0f);
    CHECK_EQ(sums[2], 96.0f);
    CHECK_EQ(sums[3], 128.0f);
    CHECK_EQ(m.memory.download<std::uint32_t>(out)[4], 0x40003c00u);
}

} // namespace

int main() {
    phases();
    bytes_are_awaited();
    misuse();
    copies_in_bulk();
    clusters_copy();
    tensors();
    accepted();
    vector_atomics();
    parts_of_copies();
    return check::failures();
}
