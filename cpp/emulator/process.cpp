#include "emulator/process.h"

#include "emulator/call.h"
#include "emulator/device.h"
#include "emulator/journal.h"
#include "emulator/leaks.h"
#include "emulator/scheduler.h"
#include "emulator/settings.h"
#include "emulator/workers.h"

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <string>
#include <unistd.h>

namespace cudamod::emulator {

std::atomic<unsigned> attention{kNotInitialized};
thread_local int callback_depth = 0;

namespace {

std::atomic<bool> forked{false};

// Workers hold these for moments only; held over the fork, the child finds them free.
void before_fork() {
    driver_mutex().lock();
    scheduler().lock_for_fork();
    workers().lock_for_fork();
}

void after_fork() {
    workers().unlock_after_fork();
    scheduler().unlock_after_fork();
    driver_mutex().unlock();
}

// The child shares no device with its parent, and the lock may have been held by a thread that it
// does not have.
void after_fork_in_child() {
    after_fork();
    if (attention.load() & kNotInitialized) return;
    forked = true;
    attention = kNotInitialized;
}

void announce() {
    if (settings().quiet) return;
    std::string names;
    for (const auto& device : devices())
        names += (names.empty() ? "" : ", ") + device->profile->architecture;
    std::fprintf(stderr,
                 "cudamod: emulated driver, not a GPU (%s): for tests and learning, its timings "
                 "mean nothing; "
                 "CUDAMOD_EMULATOR_QUIET=1 silences this\n",
                 names.empty() ? "no device" : names.c_str());
}

/// %p in a file's name is the number of the process.
std::string of_this_process(std::string path) {
    if (const std::size_t at = path.find("%p"); at != std::string::npos)
        path.replace(at, 2, std::to_string(getpid()));
    return path;
}

void at_exit() {
    if (attention.load() & kNotInitialized) return;
    scheduler().stop();
    if (settings().leak_report) report_leaks();
    const std::string path = of_this_process(settings().journal);
    if (!path.empty() && path != "1" && !journal::write_file(path)) {
        std::fprintf(stderr, "cudamod: emulated driver: the journal cannot be written to '%s'\n",
                     path.c_str());
    }
    set_attention(kShutDown, true);
}

} // namespace

std::mutex& driver_mutex() {
    static std::mutex* const mutex = new std::mutex;
    return *mutex;
}

CallbackScope::CallbackScope() {
    ++callback_depth;
    set_attention(kCallbacks, true);
}

CallbackScope::~CallbackScope() {
    --callback_depth;
}

void initialize_process() {
    if (forked)
        fail(CUDA_ERROR_NOT_INITIALIZED,
             "This process is a fork of one that had initialised the driver");
    std::lock_guard lock(driver_mutex());
    if (!(attention.load() & kNotInitialized)) return;
    create_devices();
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    std::atexit(at_exit);
    announce();
    set_attention(kNullLaunch, settings().null_launch);
    set_attention(kNotInitialized, false);
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

CUDAMOD_API cuInit(unsigned int flags) {
    return early_call(
        "cuInit",
        [&] {
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "cuInit flags must be 0, not %u", flags);
            initialize_process();
            if (devices().empty())
                fail(CUDA_ERROR_NO_DEVICE, "CUDAMOD_EMULATOR_DEVICES names no device");
        },
        flags);
}

CUDAMOD_API cuDriverGetVersion(int* version) {
    return early_call(
        "cuDriverGetVersion",
        [&] {
            require_pointer(version, "the version");
            *version = settings().driver_version;
        },
        version);
}
