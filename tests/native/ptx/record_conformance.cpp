/// Runs conformance.h's kernels on the card of the real driver and writes what it answers:
///   record_conformance OUT.txt
/// Cases where the interpreter answers differently are printed with their first operands.
#include "conformance.h"
#include "harness.h"

#include <dlfcn.h>

#include <cstdio>

namespace {

using Handle = void*;

/// The few driver functions that this needs, by name.
struct Driver {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    template <class... A>
    int call(const char* name, A... arguments) const {
        auto* function = reinterpret_cast<int (*)(A...)>(dlsym(library, name));
        return function == nullptr ? 999 : function(arguments...);
    }
};

struct Card {
    Driver driver;
    std::uint64_t words[4] = {};
    static constexpr std::size_t kWords = 1 << 16;

    bool open() {
        if (driver.library == nullptr || driver.call("cuInit", 0u) != 0) return false;
        int device = 0;
        Handle context = nullptr;
        driver.call("cuDeviceGet", &device, 0);
        driver.call("cuDevicePrimaryCtxRetain", &context, device);
        driver.call("cuCtxSetCurrent", context);
        for (std::uint64_t& address : words) {
            if (driver.call("cuMemAlloc_v2", &address, kWords * 8) != 0) return false;
        }
        return true;
    }

    bool run(const std::string& text, const conformance::Case& c, std::vector<std::uint64_t>& out,
             std::string& why) {
        char log[4096] = {};
        int options[] = {5, 6}; // error log buffer and its size
        void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
        Handle module = nullptr, function = nullptr;
        int status = driver.call("cuModuleLoadDataEx", &module, text.c_str(), 2u, options, values);
        if (status != 0) {
            why = "load " + std::to_string(status) + " " + log;
            return false;
        }
        driver.call("cuModuleGetFunction", &function, module, "k0");
        const auto columns = conformance::inputs(c);
        const std::size_t count = columns[0].size();
        for (std::size_t n = 0; n < 3; ++n)
            driver.call("cuMemcpyHtoD_v2", words[n + 1], columns[n].data(), count * 8);
        auto size = static_cast<unsigned>(count);
        void* parameters[] = {&words[0], &words[1], &words[2], &words[3], &size};
        status = driver.call("cuLaunchKernel", function, (size + 127) / 128, 1u, 1u, 128u, 1u, 1u,
                             0u, static_cast<Handle>(nullptr), static_cast<void**>(parameters),
                             static_cast<void**>(nullptr));
        if (status == 0) status = driver.call("cuCtxSynchronize");
        out.resize(count);
        if (status == 0) status = driver.call("cuMemcpyDtoH_v2", out.data(), words[0], count * 8);
        driver.call("cuModuleUnload", module);
        why = "run " + std::to_string(status);
        return status == 0;
    }
};

bool interpret(const std::string& text, const conformance::Case& c,
               std::vector<std::uint64_t>& out) {
    harness::Module module(text);
    if (!module.loaded()) return false;
    const auto columns = conformance::inputs(c);
    const auto size = static_cast<std::uint32_t>(columns[0].size());
    const std::uint64_t result = module.memory.allocate(size * 8);
    const std::uint64_t a = module.memory.upload(columns[0]), b = module.memory.upload(columns[1]),
                        d = module.memory.upload(columns[2]);
    const auto fault =
        module.launch("k0", {(size + 127) / 128, 1, 1}, {128, 1, 1}, result, a, b, d, size);
    if (fault) std::printf("FAULT %s\n", fault->message.c_str());
    out = module.memory.download<std::uint64_t>(result);
    return !fault;
}

} // namespace

int main(int count, char** arguments) {
    Card card;
    const bool real = card.open();
    std::FILE* file = count > 1 ? std::fopen(arguments[1], "w") : nullptr;
    std::size_t differing = 0, total = 0;
    for (const conformance::Case& c : conformance::all_cases()) {
        const std::string text = harness::header() + conformance::kernel(c, 0),
                          name = conformance::title(c);
        std::vector<std::uint64_t> mine, its;
        std::string why;
        const bool interpreted = interpret(text, c, mine);
        if (!interpreted) std::printf("NOT INTERPRETED %s\n", name.c_str());
        if (!real) continue;
        ++total;
        if (!card.run(text, c, its, why)) {
            std::printf("NOT ON THE CARD %s: %s\n", name.c_str(), why.c_str());
            continue;
        }
        if (file != nullptr)
            std::fprintf(file, "%016llx %s\n",
                         static_cast<unsigned long long>(conformance::hash(its)), name.c_str());
        const auto columns = conformance::inputs(c);
        int shown = 0;
        std::size_t wrong = 0;
        for (std::size_t n = 0; n < its.size() && interpreted; ++n) {
            if (its[n] == mine[n]) continue;
            ++wrong;
            if (shown++ < 4) {
                std::printf("  %s: %llx %llx %llx -> card %llx, interpreter %llx\n", name.c_str(),
                            static_cast<unsigned long long>(columns[0][n]),
                            static_cast<unsigned long long>(columns[1][n]),
                            static_cast<unsigned long long>(columns[2][n]),
                            static_cast<unsigned long long>(its[n]),
                            static_cast<unsigned long long>(mine[n]));
            }
        }
        if (wrong != 0)
            std::printf("DIFFERS %s: %zu of %zu\n", name.c_str(), wrong, its.size()), ++differing;
    }
    std::printf("%zu cases, %zu differ\n", total, differing);
    if (file != nullptr) std::fclose(file);
    return 0;
}
