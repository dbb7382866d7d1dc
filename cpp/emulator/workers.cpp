#include "emulator/workers.h"

#include <csignal>
#include <pthread.h>

namespace cudamod::emulator {
namespace {

// More grids than any card runs at a time; further jobs wait for a thread.
constexpr std::size_t kMostThreads = 512;

} // namespace

Workers& workers() {
    static Workers* const all = new Workers;
    return *all;
}

void Workers::start(Job job) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() <= idle_) {
        changed_.notify_one();
        return;
    }
    if (threads_ >= kMostThreads) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, enter, this) == 0) {
        pthread_setname_np(thread, "cudamod-emu");
        pthread_detach(thread);
        ++threads_;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* Workers::enter(void* workers) {
    static_cast<Workers*>(workers)->serve();
    return nullptr;
}

// A thread that calls into Python while the interpreter ends is unwound from there, so nothing here
// catches, and nothing is noexcept.
void Workers::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        while (jobs_.empty()) {
            ++idle_;
            changed_.wait(lock);
            --idle_;
        }
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
    }
}

} // namespace cudamod::emulator
