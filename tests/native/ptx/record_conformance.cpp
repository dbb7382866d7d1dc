/// Runs conformance.h's and conformance_matrix.h's kernels on the card of the real driver and
/// writes what it answers:
///   record_conformance conformance.txt conformance_matrix.txt
/// Cases where the interpreter answers differently are printed with their first operands.
#include "conformance_matrix.h"
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

    /// `count` is a parameter of the kernel where it is not 0.
    bool run(const std::string& text, const std::vector<std::vector<std::uint64_t>>& columns,
             bool counted, std::vector<std::uint64_t>& out, std::string& why) {
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
        const std::size_t count = columns[0].size();
        for (std::size_t n = 0; n < 3; ++n)
            driver.call("cuMemcpyHtoD_v2", words[n + 1], columns[n].data(), count * 8);
        auto size = static_cast<unsigned>(count);
        void* parameters[] = {&words[0], &words[1], &words[2], &words[3],
                              counted ? &size : nullptr};
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

/// What differs, with the first operands.
std::size_t compare(const std::string& name, const std::vector<std::vector<std::uint64_t>>& columns,
                    const std::vector<std::uint64_t>& its, const std::vector<std::uint64_t>& mine) {
    std::size_t wrong = 0;
    for (std::size_t n = 0; n < its.size() && n < mine.size(); ++n) {
        if (its[n] == mine[n]) continue;
        if (wrong++ >= 4) continue;
        std::printf("  %s: %llx %llx %llx -> card %llx, interpreter %llx\n", name.c_str(),
                    static_cast<unsigned long long>(columns[0][n]),
                    static_cast<unsigned long long>(columns[1][n]),
                    static_cast<unsigned long long>(columns[2][n]),
                    static_cast<unsigned long long>(its[n]),
                    static_cast<unsigned long long>(mine[n]));
    }
    if (wrong != 0) std::printf("DIFFERS %s: %zu of %zu\n", name.c_str(), wrong, its.size());
    return wrong;
}

class Recorder {
  public:
    explicit Recorder(const char* path)
        : file_(path == nullptr ? nullptr : std::fopen(path, "w")) {}
    ~Recorder() {
        if (file_ != nullptr) std::fclose(file_);
    }
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    void hash(std::uint64_t value, const std::string& name) {
        if (file_ == nullptr) return;
        std::fprintf(file_, "%016llx %s\n", static_cast<unsigned long long>(value), name.c_str());
    }
    void words(const std::vector<std::uint64_t>& values, const std::string& name) {
        if (file_ == nullptr) return;
        std::fprintf(file_, "%s\n", name.c_str());
        for (std::size_t n = 0; n < values.size(); ++n)
            std::fprintf(file_, "%llx%c", static_cast<unsigned long long>(values[n]),
                         n + 1 == values.size() ? '\n' : ' ');
    }

  private:
    std::FILE* file_;
};

struct Tally {
    std::size_t total = 0, differing = 0;
};

/// Answers the card's words, or none.
std::vector<std::uint64_t> both(Card* card, const std::string& kernel, const std::string& name,
                                const std::vector<std::vector<std::uint64_t>>& columns,
                                bool counted, Tally& tally) {
    const std::string text = harness::header() + kernel;
    harness::Module module(text);
    const auto mine = module.loaded() ? harness::over_columns(module, columns, counted)
                                      : std::vector<std::uint64_t>{};
    if (mine.empty()) std::printf("NOT INTERPRETED %s\n", name.c_str());
    if (card == nullptr) return {};
    ++tally.total;
    std::vector<std::uint64_t> its;
    std::string why;
    if (!card->run(text, columns, counted, its, why)) {
        std::printf("NOT ON THE CARD %s: %s\n", name.c_str(), why.c_str());
        return {};
    }
    tally.differing += compare(name, columns, its, mine) != 0;
    return its;
}

} // namespace

int main(int count, char** arguments) {
    Card opened;
    Card* card = opened.open() ? &opened : nullptr;
    Tally tally;
    Recorder hashes(count > 1 ? arguments[1] : nullptr), words(count > 2 ? arguments[2] : nullptr);
    std::vector<conformance::Case> cases = conformance::all_cases();
    for (const conformance::Case& c : conformance::unrecorded_cases())
        cases.push_back(c);
    for (const conformance::Case& c : cases) {
        const std::string name = conformance::title(c);
        const auto its =
            both(card, conformance::kernel(c, 0), name, conformance::inputs(c), true, tally);
        if (!its.empty()) hashes.hash(conformance::hash(its), name);
    }
    for (const conformance::MatrixCase& c : conformance::matrix_cases()) {
        const std::string name = conformance::title(c);
        const auto its =
            both(card, conformance::kernel(c), name, conformance::inputs(c), false, tally);
        if (!its.empty()) words.words(its, name);
    }
    std::printf("%zu cases, %zu differ\n", tally.total, tally.differing);
    return 0;
}
