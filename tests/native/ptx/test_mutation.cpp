/// PTX with random damage: the loader answers, and what still loads runs to an end or a fault,
/// whatever it does.
#include "conformance.h"
#include "harness.h"

#include <chrono>
#include <thread>

namespace {

const char* const kSeeds[] = {
    R"(.global .align 4 .b8 table[12] = {1, 2, 3, 4};
.func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<3>; .local .align 8 .b8 l[16]; ld.param.b32 %r0, [x]; st.local.u32 [l+4], %r0; ld.local.u32 %r1, [l+4]; st.param.b32 [r], %r1; ret; }
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) .maxntid 64, 1, 1
{ .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<8>; .reg .f64 %g<4>; .shared .align 16 .b8 s[256];
ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; setp.ge.u32 %p0, %r1, %r0; @%p0 bra END;
mad.wide.u32 %d2, %r1, 4, %d1; ld.global.nc.f32 %f0, [%d2]; fma.rn.ftz.f32 %f1, %f0, 0f40000000, %f0; ex2.approx.f32 %f2, %f1; cvt.rn.f16.f32 %h0, %f2;
mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.f32 [%r3], %f2; bar.sync 0; ld.shared.v2.u32 {%r4, %r5}, [s+8];
shfl.sync.bfly.b32 %r6|%p1, %r4, 1, 31, -1; vote.sync.ballot.b32 %r7, %p1, -1; atom.global.add.u32 %r8, [%d0], %r7; cvta.to.global.u64 %d3, %d0;
{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r8; call.uni (v), f, (a); ld.param.b32 %r9, [v]; }
T: .branchtargets A, B; and.b32 %r10, %r1, 1; brx.idx %r10, T; A: add.cc.u32 %r9, %r9, 1; addc.u32 %r9, %r9, 0; B: mad.wide.u32 %d4, %r1, 4, %d0; st.global.u32 [%d4], %r9;
END: ret; })",
    R"(.extern .shared .align 16 .b8 dynamic[]; .const .f64 c[2] = {1.5, 0d4000000000000000};
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)
{ .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f64 %g<4>; .reg .v4 .f32 %v;
mov.u32 %r0, 0; ld.param.u64 %d0, [out]; LOOP: add.u32 %r0, %r0, 1; ld.const.f64 %g0, [c+8]; div.rn.f64 %g1, %g0, %g0; cvt.rzi.u32.f64 %r1, %g1; add.u32 %r2, %r2, %r1;
redux.sync.add.s32 %r3, %r2, 0xffffffff; match.any.sync.b32 %r4, %r3, -1; prmt.b32 %r5, %r4, %r3, 0x5410; lop3.b32 %r6, %r5, %r4, %r3, 0x96; bfe.u32 %r7, %r6, 3, 5;
setp.lt.and.u32 %p0|%p1, %r0, 20, !%p2; @%p0 bra LOOP; mov.b64 {%r8, %r9}, %d0; mov.b64 %d1, {%r8, %r9}; st.global.u32 [%d1+4], %r7; ld.global.v4.f32 %v, [%d1]; membar.gl; bar.red.popc.u32 %r10, 1, %p1; ret; })",
};

std::string damaged(std::string text, std::uint64_t& random) {
    static const char* const kPieces[] = {
        ";",     ",",   "{",       "}",     "[",        "]",           "(",          ")",
        "|",     "@",   "!",       "0",     "-1",       "99999999999", "0f7fc00000", ".u32",
        ".f64",  ".v4", ".pred",   "%r0",   "%d0",      "%p0",         "%h0",        "s",
        "f",     "k",   ".param ", ".reg ", ".shared ", ".local ",     "ret;",       "bra LOOP;",
        "exit;", "\n",  "\"",      "/*",    "%tid.x",   "bar.sync 1;", "0x",         "<5>",
        "= ",    "+4",  ".global"};
    const std::uint64_t edits = 1 + conformance::next_random(random) % 4;
    for (std::uint64_t n = 0; n < edits && !text.empty(); ++n) {
        const std::uint64_t at = conformance::next_random(random) % text.size(),
                            length = conformance::next_random(random) % 12;
        // Half of the edits change a digit only: other registers, numbers, sizes; most of that
        // still loads.
        const std::size_t digit = text.find_first_of("0123456789", std::max<std::size_t>(at, 50));
        if (digit != std::string::npos && conformance::next_random(random) % 4 != 0) {
            text[digit] = static_cast<char>('0' + conformance::next_random(random) % 10);
            continue;
        }
        switch (conformance::next_random(random) % 5) {
        case 0:
            text[at] = static_cast<char>(conformance::next_random(random));
            break;
        case 1:
            text.erase(at, length);
            break;
        case 2:
            text.insert(at, kPieces[conformance::next_random(random) % std::size(kPieces)]);
            break;
        case 3:
            text.insert(at,
                        text.substr(conformance::next_random(random) % text.size(), length * 4));
            break;
        default:
            text.resize(at < text.size() / 8 * 7 ? text.size() - 1 : at);
            break;
        }
    }
    return text;
}

} // namespace

/// test_mutation [DATA [ROUNDS [SEED]]]
int main(int count, char** arguments) {
    const int rounds = count > 2 ? std::atoi(arguments[2]) : 3000;
    std::uint64_t random = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1;
    int loaded = 0, faulted = 0;
    for (int n = 0; n < rounds; ++n) {
        const std::string whole =
            harness::header() + kSeeds[static_cast<std::size_t>(n) % std::size(kSeeds)];
        const std::string text = n < 2 ? whole : damaged(whole, random);
        const auto result = harness::load(text);
        if (!result.program) {
            CHECK(!result.log.empty());
            CHECK(n >= 2);
            continue;
        }
        ++loaded;
        harness::Module module(text);
        if (module.program().entries().empty() ||
            module.program().entries()[0].parameter_bytes > 20)
            continue;
        const auto out = module.memory.allocate(1024), in = module.memory.allocate(1024);
        std::atomic<bool> cancel = false;
        // A loop that never ends is stopped from outside, as the driver would.
        std::atomic<bool> done = false;
        std::thread watch([&] {
            for (int tick = 0; tick < 100 && !done; ++tick)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            cancel = true;
        });
        module.options.watch = [&cancel] { return cancel ? "was cancelled" : nullptr; };
        module.options.dynamic_shared_bytes = 64;
        faulted +=
            module.launch(module.program().entries()[0].name, {2, 1, 1}, {48, 1, 1}, out, in, 40u)
                .has_value();
        done = true;
        watch.join();
    }
    CHECK(loaded >= 2);
    std::printf("%d rounds, %d loaded, %d faulted\n", rounds, loaded, faulted);
    return check::failures();
}
