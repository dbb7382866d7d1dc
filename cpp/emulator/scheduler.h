#pragma once

#include "emulator/queue.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace cudamod::emulator {

struct Context;

/// Decides when the work of all streams runs, and on which thread.
///
/// Work begins when what precedes it is done: the earlier work of its stream; for a blocking stream
/// that of the context's legacy stream, and the other way round; the mark that it awaits. Without a
/// seed it then runs at once, on a worker or on a thread that waits for it. With a seed
/// (CUDAMOD_EMULATOR_SEED) one piece of work runs at a time, chosen at random among the streams,
/// and only while a thread waits for something, asks for it or, now and then, enqueues: work is
/// late, and streams that nothing orders run in any order. The same program then runs in the same
/// order each time, as far as its own threads and the clock allow: after 0.2 s without progress
/// work runs anyway, since a program may wait for it by looking at memory.
///
/// Has its own lock, taken after the driver's where both are held and never while work runs.
class Scheduler {
  public:
    Scheduler();

    /// Appends work to the stream and returns when it will be done. Waits for nothing, so the
    /// caller may hold the driver's lock.
    Ticket push(const std::shared_ptr<Stream>& stream, Work work);

    // The callers of what follows hold no lock of the driver's.

    /// Waits until no more work is pending in the stream than its queue is deep.
    void make_room(const std::shared_ptr<Stream>& stream);

    void wait(const Ticket& ticket);

    /// Waits for the work that reaches the mark, which was pushed.
    void wait(const Mark& mark);

    /// Appends work and waits for it: sooner done than a push and a wait.
    void run(const std::shared_ptr<Stream>& stream, Work work);

    /// Waits for all work of the context that is pending now, that of destroyed streams included.
    void wait_for(const Context& context);

    /// All pending work of the context.
    std::vector<Ticket> pending(const Context& context);

    /// Whether nothing of the stream is pending, nor anything that it waits for as legacy stream.
    bool idle(const Stream& stream);

    /// A program that asks whether work is done again and again makes it run in the end.
    void nudge();

    /// The streams of a context that ends: what they have pending is dropped.
    void abandon(const Context& context);

    /// For the end of the process: nothing more begins, kernels are told to end and get a moment.
    void stop();
    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

    /// How many threads wait for work.
    int waiting() const { return waiting_.load(std::memory_order_relaxed); }

    void lock_for_fork() { mutex_.lock(); }
    void unlock_after_fork() { mutex_.unlock(); }

  private:
    using Lock = std::unique_lock<std::mutex>;
    using StreamPointer = std::shared_ptr<Stream>;
    /// By context, the legacy stream first, then by age: the same order in every run.
    using Key = std::pair<std::uintptr_t, unsigned long long>;
    struct Waiter;

    static Key key_of(const Stream& stream);
    void add_implicit_order(const Stream& stream, Work& work) const;
    Ticket append(const StreamPointer& stream, Work work);
    void complete(const StreamPointer& stream);
    void settle(StreamPointer stream);
    void settle_blocked();
    bool take(const StreamPointer& stream);
    void claim(std::size_t position);
    void pump();
    void serve(const StreamPointer& stream);
    void run_first(Lock& lock, const StreamPointer& stream);
    void run_while_waiting(Lock& lock, const Ticket& ticket);
    void wait(Lock& lock, const Ticket& ticket);
    void wait_until(Lock& lock, const std::function<bool()>& condition);
    void wake_waiters();
    void step_now_and_then(Lock& lock);
    void pulse();
    std::size_t random(std::size_t below);

    std::mutex mutex_;
    std::map<Key, StreamPointer> busy_;    ///< with pending work
    std::map<Key, StreamPointer> blocked_; ///< whose first work may not begin yet
    std::vector<StreamPointer> ready_;
    std::vector<Waiter*> waiters_;
    std::atomic<int> waiting_{0};
    std::atomic<bool> stopped_{false};
    std::condition_variable finished_;
    int running_ = 0;        ///< works claimed or running on workers
    int device_running_ = 0; ///< works running, functions of the host left out
    std::uint64_t pushes_ = 0;
    std::uint64_t steps_ = 0; ///< grows with all progress
    int permits_ = 0;         ///< works that may begin although nobody waits
    bool pulsing_ = false;
    bool seeded_;
    std::uint64_t random_;
};

Scheduler& scheduler();

} // namespace cudamod::emulator
