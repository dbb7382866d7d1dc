#include "emulator/launch_watch.h"

#include "emulator/scheduler.h"
#include "emulator/settings.h"

#include <csignal>
#include <mutex>

namespace cudamod::emulator {
namespace {

using namespace std::chrono_literals;

constexpr auto kCatchAfter = 50ms;

std::atomic<bool> interrupted{false};
struct sigaction theirs;

void on_interrupt(int signal, siginfo_t* information, void* context) {
    interrupted = true;
    if (theirs.sa_flags & SA_SIGINFO)
        theirs.sa_sigaction(signal, information, context);
    else
        theirs.sa_handler(signal);
}

bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_interrupt;
}

bool acts(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/// How many launches listen for SIGINT.
struct Listeners {
    std::mutex mutex;
    int count = 0;

    void enter() {
        std::lock_guard lock(mutex);
        struct sigaction now{};
        if (count++ || sigaction(SIGINT, nullptr, &now) != 0 || !acts(now) || is_ours(now)) return;
        theirs = now;
        interrupted = false;
        struct sigaction ours = now;
        ours.sa_flags |= SA_SIGINFO;
        ours.sa_sigaction = on_interrupt;
        sigaction(SIGINT, &ours, nullptr);
    }

    void leave() {
        std::lock_guard lock(mutex);
        if (--count) return;
        struct sigaction now{};
        if (sigaction(SIGINT, nullptr, &now) == 0 && is_ours(now))
            sigaction(SIGINT, &theirs, nullptr);
        interrupted = false;
    }
};

Listeners& listeners() {
    static Listeners* const all = new Listeners;
    return *all;
}

} // namespace

LaunchWatch::LaunchWatch() : begin_(std::chrono::steady_clock::now()) {}

LaunchWatch::~LaunchWatch() {
    if (catching_) listeners().leave();
}

const char* LaunchWatch::reason_to_end() {
    if (scheduler().stopped()) return "was ended with the process";
    const auto elapsed = std::chrono::steady_clock::now() - begin_;
    const std::chrono::seconds limit(settings().launch_seconds);
    if (limit.count() && elapsed > limit)
        return "ran longer than CUDAMOD_EMULATOR_LAUNCH_SECONDS allows";
    if (elapsed < kCatchAfter || !settings().interruptible) return nullptr;
    const bool wanted = scheduler().waiting() > 0;
    if (catching_.exchange(wanted) != wanted) wanted ? listeners().enter() : listeners().leave();
    return wanted && interrupted ? "was interrupted (SIGINT)" : nullptr;
}

} // namespace cudamod::emulator
