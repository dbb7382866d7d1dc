#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace cudamod::emulator {

/// The driver's own threads. The first starts with the first job, another one whenever a job finds
/// none idle, so that a job that never ends holds up no other. They block every signal, are never
/// joined, and do not exist in a forked child.
class Workers {
  public:
    using Job = std::function<void()>;

    void start(Job job);

    /// Around fork(), so that the child finds the lock free.
    void lock_for_fork() { mutex_.lock(); }
    void unlock_after_fork() { mutex_.unlock(); }

  private:
    static void* enter(void* workers);
    void serve();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    std::size_t idle_ = 0, threads_ = 0;
};

Workers& workers();

} // namespace cudamod::emulator
