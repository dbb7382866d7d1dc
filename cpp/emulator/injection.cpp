#include "emulator/injection.h"

#include "emulator/logs.h"
#include "emulator/process.h"

#include <cstdio>
#include <mutex>
#include <sstream>
#include <vector>

namespace cudamod::emulator::injection {
namespace {

struct Armed {
    std::string call;
    std::uint64_t left;
    CUresult status;
};

struct Injection {
    std::mutex mutex;
    std::vector<Armed> armed;
};

Injection& all() {
    static Injection* const injection = new Injection;
    return *injection;
}

} // namespace

void arm(std::string call, std::uint64_t nth, CUresult status) {
    std::lock_guard lock(all().mutex);
    all().armed.push_back({std::move(call), nth, status});
    set_attention(kInjection, true);
}

bool arm_all(const std::string& specification) {
    std::stringstream parts(specification);
    for (std::string part; std::getline(parts, part, ',');) {
        char call[64];
        unsigned long long nth = 0;
        int status = 0, used = 0;
        const int read = std::sscanf(part.c_str(), "%63[^:]:%llu:%d%n", call, &nth, &status, &used);
        if (read != 3 || static_cast<std::size_t>(used) != part.size() || !nth || status <= 0)
            return false;
        arm(call, nth, static_cast<CUresult>(status));
    }
    return true;
}

void disarm_all() {
    std::lock_guard lock(all().mutex);
    all().armed.clear();
    set_attention(kInjection, false);
}

std::size_t armed() {
    std::lock_guard lock(all().mutex);
    return all().armed.size();
}

CUresult take(const char* call) {
    std::lock_guard lock(all().mutex);
    CUresult status = CUDA_SUCCESS;
    for (auto at = all().armed.begin(); at != all().armed.end();) {
        if ((at->call != "*" && at->call != call) || --at->left) {
            ++at;
            continue;
        }
        status = at->status;
        at = all().armed.erase(at);
    }
    if (status != CUDA_SUCCESS) logs::say("This failure was injected");
    if (all().armed.empty()) set_attention(kInjection, false);
    return status;
}

} // namespace cudamod::emulator::injection
