/// Statements inside of a kernel: what loads runs to its end or to a fault, or is stopped.
#include "harness.h"

#include <chrono>

namespace {

constexpr std::chrono::milliseconds kLongest{45};

std::string kernel(std::string_view body) {
    return ".version 9.0\n.target sm_90a\n.address_size 64\n.global .align 8 .b8 g[256];\n.const "
           ".b32 c[4] = {1, 2, 3, 4};\n.extern .shared .align 16 .b8 dynamic[];\n.func (.param "
           ".b32 r) f(.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; st.param.b32 [r], %a; "
           "ret; }\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n.reg "
           ".pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<8>; "
           ".reg .f64 %e<4>;\n.shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar; .local "
           ".align 8 .b8 l[64];\nld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.u32 "
           "%r0, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, bar;\n" +
           std::string(body) + "\nret;\n}\n";
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace harness;
    const std::string text = kernel({reinterpret_cast<const char*>(data), size});
    const ptx::LoadResult loaded = load(text);
    if (!loaded.program) {
        if (loaded.log.empty()) __builtin_trap();
        return 0;
    }
    Module module(text);
    if (!module.loaded() || module.program().entries()[0].parameter_bytes != 20) return 0;
    const auto out = module.memory.allocate(1024), in = module.memory.allocate(1024);
    const auto end = std::chrono::steady_clock::now() + kLongest;
    module.options.watch = [end] {
        return std::chrono::steady_clock::now() < end ? nullptr : "long enough";
    };
    module.options.checks = ptx::kCheckUninitialized | ptx::kCheckRaces | ptx::kCheckBarriers;
    module.options.found = [](const ptx::Fault& finding) { return !finding.message.empty(); };
    module.options.dynamic_shared_bytes = 64;
    module.options.cluster = {2, 1, 1};
    const auto fault = module.launch("k", {2, 1, 1}, {64, 1, 1}, out, in, 40u);
    if (fault && fault->message.empty()) __builtin_trap();
    return 0;
}
