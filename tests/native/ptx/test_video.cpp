/// Video instructions and fma.oob, by their definitions.
#include "conformance.h"
#include "harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace {

using Function = std::function<std::uint32_t(std::uint32_t, std::uint32_t, std::uint32_t)>;

void check_case(const std::string& instruction, std::size_t operands, const Function& expected) {
    const conformance::Case c{instruction, "i32", std::vector<std::string>(operands, "i32"), ""};
    harness::Module module(harness::header() + conformance::kernel(c, 0));
    if (!module.loaded()) return;
    const auto columns = conformance::inputs(c);
    const auto words = harness::over_columns(module, columns, true);
    std::size_t wrong = 0;
    for (std::size_t n = 0; n < words.size(); ++n) {
        const auto word = [&](std::size_t k) { return static_cast<std::uint32_t>(columns[k][n]); };
        wrong += words[n] != expected(word(0), word(1), word(2));
    }
    if (words.empty() || wrong != 0)
        check::report(__FILE__, __LINE__, instruction + ": " + std::to_string(wrong) + " wrong");
}

/// f32x2 is f32 twice.
void pairs() {
    const std::string head =
        ".visible .entry k(.param .u64 out) { .reg .b64 %d<8>; .reg .b32 %r<8>; "
        "ld.param.u64 %d0, [out]; mov.b32 %r0, 0x3f800001; mov.b32 %r1, "
        "0x40490fdb; mov.b64 %d1, {%r0, %r1}; mov.b64 %d2, {%r1, %r1}; ";
    harness::Module m(harness::header("9.0", "sm_100") + head +
                          "fma.rn.f32x2 %d3, %d1, %d2, %d1; mul.rz.ftz.f32x2 %d4, %d1, %d2; "
                          "sub.f32x2 %d1, %d2, %d1; st.global.v2.b64 [%d0], {%d3, %d4}; "
                          "st.global.b64 [%d0+16], %d1; ret; }",
                      {100, 'a', 90});
    const auto out = m.memory.allocate(32);
    CHECK_RUNS(m.launch("k", {1, 1, 1}, {1, 1, 1}, out));
    const auto f = m.memory.download<float>(out);
    const float a[] = {std::bit_cast<float>(0x3f800001u), std::bit_cast<float>(0x40490fdbu)},
                b = a[1];
    for (std::size_t n = 0; n < 2; ++n) {
        CHECK_EQ(f[n], std::fma(a[n], b, a[n]));
        CHECK(std::fabs(f[2 + n] - a[n] * b) <= 1e-6f);
        CHECK_EQ(f[4 + n], b - a[n]);
    }
    CHECK(harness::load(harness::header() + head + "add.f32x2 %d1, %d1, %d1; ret; }")
              .log.find("requires .target sm_100") != std::string::npos);
}

std::int32_t s(std::uint32_t x) {
    return static_cast<std::int32_t>(x);
}

} // namespace

int main() {
    pairs();
    check_case("vadd.u32.u32.u32", 2, [](auto a, auto b, auto) { return a + b; });
    check_case("vadd.u32.u32.u32.sat", 2,
               [](auto a, auto b, auto) { return a + b < a ? 0xffffffffu : a + b; });
    check_case("vabsdiff.s32.s32.s32.add", 3,
               [](auto a, auto b, auto c) { return (s(a) > s(b) ? a - b : b - a) + c; });
    check_case("vmax.s32.s32.s32.min", 3, [](auto a, auto b, auto c) {
        return static_cast<std::uint32_t>(std::min(std::max(s(a), s(b)), s(c)));
    });
    check_case("vshr.s32.s32.u32.clamp", 2, [](auto a, auto b, auto) {
        return static_cast<std::uint32_t>(b > 31 ? s(a) >> 31 : s(a) >> b);
    });
    check_case("vshl.u32.u32.u32.wrap", 2, [](auto a, auto b, auto) { return a << (b & 31); });
    check_case("vset.s32.s32.lt", 2, [](auto a, auto b, auto) { return s(a) < s(b) ? 1u : 0u; });
    check_case("vmad.u32.u32.u32.shr7", 3, [](auto a, auto b, auto c) {
        return static_cast<std::uint32_t>((std::uint64_t{a} * b + c) >> 7);
    });
    const auto bytes = [](const auto& apply) {
        return [apply](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
            std::uint32_t sum = c;
            for (int n = 0; n < 32; n += 8)
                sum += static_cast<std::uint32_t>(
                    apply(static_cast<int>(a >> n & 255), static_cast<int>(b >> n & 255)));
            return sum;
        };
    };
    check_case("vabsdiff4.u32.u32.u32.add", 3, bytes([](int a, int b) { return std::abs(a - b); }));
    check_case("vmin4.u32.u32.u32.add", 3, bytes([](int a, int b) { return std::min(a, b); }));
    check_case("vadd2.u32.u32.u32", 3, [](auto a, auto b, auto) {
        return ((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000));
    });
    check_case("vsub2.s32.s32.s32.sat", 3, [](auto a, auto b, auto) {
        const auto half = [](std::uint32_t x, std::uint32_t y) {
            const int d = static_cast<std::int16_t>(x) - static_cast<std::int16_t>(y);
            return static_cast<std::uint32_t>(std::clamp(d, -32768, 32767)) & 0xffff;
        };
        return half(a, b) | half(a >> 16, b >> 16) << 16;
    });
    return check::failures();
}
