/// Approximate functions, within the errors that the PTX manual states.
#include "harness.h"

#include <cmath>

namespace {

struct Bound {
    double absolute, relative;
};

/// Runs `instruction %f1, %f0` over the values.
std::vector<float> results(const std::string& instruction, const std::vector<float>& in) {
    harness::Module m(harness::header() + R"(
.visible .entry k(.param .u64 in, .param .u64 out) { .reg .b32 %r<2>; .reg .b64 %d<4>; .reg .f32 %f<2>;
    mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, %ntid.x, %tid.x; ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
    mad.wide.u32 %d0, %r0, 4, %d0; mad.wide.u32 %d1, %r0, 4, %d1; ld.global.f32 %f0, [%d0]; )" +
                      instruction + " %f1, %f0; st.global.f32 [%d1], %f1; ret; }");
    const auto a = m.memory.upload(in), b = m.memory.allocate(in.size() * 4);
    CHECK_RUNS(m.launch("k", {static_cast<std::uint32_t>(in.size() / 32), 1, 1}, {32, 1, 1}, a, b));
    return m.memory.download<float>(b);
}

void within(const std::string& instruction, double from, double to, double (*truth)(double),
            Bound bound) {
    std::vector<float> in;
    for (int n = 0; n < 4096; ++n)
        in.push_back(static_cast<float>(from + (to - from) * n / 4095));
    const auto out = results(instruction, in);
    for (std::size_t n = 0; n < in.size(); ++n) {
        const double expected = truth(static_cast<double>(in[n]));
        const double error = std::fabs(static_cast<double>(out[n]) - expected);
        if (error <= bound.absolute + bound.relative * std::fabs(expected)) continue;
        check::report(__FILE__, __LINE__,
                      instruction + " of " + std::to_string(in[n]) + " is " +
                          std::to_string(out[n]) + ", not " + std::to_string(expected));
        return;
    }
}

void special_values(const std::string& instruction, const std::vector<float>& in,
                    const std::vector<float>& expected) {
    std::vector<float> padded = in;
    padded.resize(32);
    const auto out = results(instruction, padded);
    for (std::size_t n = 0; n < in.size(); ++n) {
        const bool both_nan = std::isnan(out[n]) && std::isnan(expected[n]);
        const bool same =
            out[n] == expected[n] && std::signbit(out[n]) == std::signbit(expected[n]);
        if (!both_nan && !same) {
            check::report(__FILE__, __LINE__,
                          instruction + " of " + std::to_string(in[n]) + " is " +
                              std::to_string(out[n]));
        }
    }
}

} // namespace

int main() {
    within("sin.approx.f32", -3.14159, 3.14159, std::sin, {0x1p-20, 0});
    within("cos.approx.f32", -3.14159, 3.14159, std::cos, {0x1p-20, 0});
    within("ex2.approx.ftz.f32", -20, 20, std::exp2, {0, 0x1p-22});
    within("lg2.approx.f32", 0.01, 1000, std::log2, {0x1p-22, 0x1p-22});
    within("tanh.approx.f32", -4, 4, std::tanh, {0, 0x1p-10});
    within("sqrt.approx.ftz.f32", 0, 1e6, std::sqrt, {0, 0x1p-22});
    within("rsqrt.approx.f32", 1e-3, 1e3, [](double x) { return 1 / std::sqrt(x); }, {0, 0x1p-22});
    within("rcp.approx.ftz.f32", 1e-3, 1e3, [](double x) { return 1 / x; }, {0, 0x1p-22});
    const float infinity = INFINITY, nan = NAN;
    special_values("rcp.approx.f32", {0.0f, -0.0f, infinity, -infinity, nan},
                   {infinity, -infinity, 0.0f, -0.0f, nan});
    special_values("rsqrt.approx.f32", {0.0f, -0.0f, infinity, -1.0f, nan},
                   {infinity, -infinity, 0.0f, nan, nan});
    special_values("ex2.approx.f32", {0.0f, infinity, -infinity, 200.0f, -200.0f, nan},
                   {1.0f, infinity, 0.0f, infinity, 0.0f, nan});
    special_values("lg2.approx.f32", {0.0f, -0.0f, infinity, -1.0f, 1.0f},
                   {-infinity, -infinity, infinity, nan, 0.0f});
    special_values("lg2.approx.ftz.f32", {1e-40f}, {-infinity});
    special_values("sqrt.approx.f32", {-0.0f, -1.0f, infinity}, {-0.0f, nan, infinity});
    special_values("sin.approx.f32", {-0.0f, 0.0f, infinity}, {-0.0f, 0.0f, nan});
    return check::failures();
}
