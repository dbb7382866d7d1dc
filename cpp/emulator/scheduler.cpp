#include "emulator/scheduler.h"

#include "emulator/context.h"
#include "emulator/event.h"
#include "emulator/process.h"
#include "emulator/settings.h"
#include "emulator/stream.h"
#include "emulator/stream_order.h"
#include "emulator/user_object.h"
#include "emulator/workers.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>

namespace cudamod::emulator {
namespace {

using namespace std::chrono_literals;

// A seeded run without progress goes on after the first of these, and then after the second until
// the program enqueues again: a slow program is not one that looks at memory.
constexpr auto kPatience = 200ms, kPulse = 10ms;
constexpr auto kStepPatience = 100ms; // how long an enqueuing thread waits for a random step
constexpr auto kStopPatience = 200ms;
constexpr std::size_t kStepOneIn = 4; // enqueuing calls that let work run, seeded

bool satisfied(const Work& work) {
    if (work.awaited && !work.awaited->reached()) return false;
    return std::all_of(work.after.begin(), work.after.end(), [](const Ticket& ticket) {
        return ticket.stream->queue.done >= ticket.number;
    });
}

void perform(const Work& work, Context& context) {
    const RunningWork here(work.record);
    if (work.host) {
        // What it does may tell any thread of the host how far the stream is.
        if (work.record) stream_order().host_learns(work.record->before);
        const CallbackScope inside;
        work.task();
        return;
    }
    try {
        work.task();
    } catch (const std::exception& error) {
        std::lock_guard lock(driver_mutex());
        record_fault(context, CUDA_ERROR_UNKNOWN,
                     std::string("The driver failed inside of its work: ") + error.what());
    }
}

} // namespace

/// A thread that waits until its condition holds.
struct Scheduler::Waiter {
    const std::function<bool()>& condition;
    std::condition_variable changed{};
    bool satisfied = false;
};

Scheduler& scheduler() {
    static Scheduler* const only = new Scheduler;
    return *only;
}

Scheduler::Scheduler() : seeded_(settings().seed != 0), random_(settings().seed) {}

std::size_t Scheduler::random(std::size_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((random_ >> 33) % below);
}

Scheduler::Key Scheduler::key_of(const Stream& stream) {
    return {reinterpret_cast<std::uintptr_t>(stream.context->handle),
            stream.kind == StreamKind::legacy ? 0 : stream.id};
}

void Scheduler::add_implicit_order(const Stream& stream, Work& work) const {
    if (!stream.blocking()) return;
    const Key key = key_of(stream);
    if (stream.kind != StreamKind::legacy) {
        const auto legacy = busy_.find({key.first, 0});
        if (legacy != busy_.end())
            work.after.push_back({legacy->second, legacy->second->queue.pushed, {}});
        return;
    }
    for (auto at = busy_.upper_bound(key); at != busy_.end() && at->first.first == key.first;
         ++at) {
        if (at->second->blocking())
            work.after.push_back({at->second, at->second->queue.pushed, {}});
    }
}

Ticket Scheduler::append(const StreamPointer& stream, Work work) {
    add_implicit_order(*stream, work);
    Queue& queue = stream->queue;
    Ticket ticket{stream, ++queue.pushed};
    if (checks_streams()) ticket.clock = stream_order().push(*stream, work);
    if (work.mark) work.mark->set_origin(stream, ticket.number);
    queue.works.push_back(std::move(work));
    ++steps_;
    ++pushes_;
    if (queue.works.size() > 1) return ticket;
    busy_.emplace(key_of(*stream), stream);
    settle(stream);
    settle_blocked();
    if (seeded_ && !pulsing_ && !busy_.empty()) {
        pulsing_ = true;
        workers().start([this] { pulse(); });
    }
    return ticket;
}

Ticket Scheduler::push(const StreamPointer& stream, Work work) {
    Lock lock(mutex_);
    const Ticket ticket = append(stream, std::move(work));
    pump();
    return ticket;
}

void Scheduler::run(const StreamPointer& stream, Work work) {
    Lock lock(mutex_);
    const Ticket ticket = append(stream, std::move(work));
    if (!seeded_ && !stopped_) take(stream);
    wait(lock, ticket);
}

/// Ends the first work of the stream.
void Scheduler::complete(const StreamPointer& stream) {
    Queue& queue = stream->queue;
    if (const auto& mark = queue.works.front().mark) mark->set();
    queue.works.pop_front();
    ++queue.done;
    ++steps_;
    if (queue.works.empty()) busy_.erase(key_of(*stream));
}

/// Finds out whether the first work of a stream that does nothing may begin; work without a task is
/// over at once.
void Scheduler::settle(StreamPointer stream) {
    Queue& queue = stream->queue;
    blocked_.erase(key_of(*stream));
    while (queue.state == Queue::State::waiting && !queue.works.empty()) {
        if (!satisfied(queue.works.front())) {
            blocked_.emplace(key_of(*stream), stream);
            return;
        }
        if (queue.works.front().task) {
            queue.state = Queue::State::ready;
            ready_.push_back(stream);
            return;
        }
        complete(stream);
    }
}

/// After progress: the streams that waited for it.
void Scheduler::settle_blocked() {
    for (std::uint64_t before = steps_ + 1; before != steps_;) {
        before = steps_;
        const auto all = blocked_;
        for (const auto& [key, stream] : all)
            settle(stream);
    }
    wake_waiters();
}

/// Keeps a ready stream for the calling thread.
bool Scheduler::take(const StreamPointer& stream) {
    if (stream->queue.state != Queue::State::ready) return false;
    ready_.erase(std::find(ready_.begin(), ready_.end(), stream));
    stream->queue.state = Queue::State::claimed;
    return true;
}

void Scheduler::claim(std::size_t position) {
    const StreamPointer stream = ready_[position];
    take(stream);
    ++running_;
    ++steps_;
    workers().start([this, stream] { serve(stream); });
}

/// Starts what may run now.
void Scheduler::pump() {
    if (stopped_) return;
    if (!seeded_) {
        while (!ready_.empty())
            claim(0);
        return;
    }
    if (ready_.empty() || running_ || (waiters_.empty() && !permits_)) return;
    if (waiters_.empty()) --permits_;
    claim(random(ready_.size()));
}

void Scheduler::serve(const StreamPointer& stream) {
    Lock lock(mutex_);
    // Without a seed a thread that waits may have been faster.
    if (stream->queue.state == Queue::State::claimed && !stopped_) {
        do {
            run_first(lock, stream);
            const bool more = !seeded_ && !stopped_ && take(stream);
            if (!more) break;
            pump();
        } while (true);
    }
    --running_;
    pump();
}

void Scheduler::run_first(Lock& lock, const StreamPointer& stream) {
    Queue& queue = stream->queue;
    queue.state = Queue::State::running;
    Work& work = queue.works.front(); // stays where it is while others are appended
    Context& context = *stream->context;
    const bool runs = !queue.abandoned && (work.after_fault || !context.faulted), host = work.host;
    device_running_ += !host;
    lock.unlock();
    if (runs) perform(work, context);
    work.task = nullptr; // may be the last owner of memory, which takes time
    if (attention.load(std::memory_order_relaxed) & kUserObjects) end_user_objects();
    lock.lock();
    device_running_ -= !host;
    queue.state = Queue::State::waiting;
    complete(stream);
    settle(stream);
    settle_blocked();
    if (seeded_ || stopped_) finished_.notify_all();
}

void Scheduler::wake_waiters() {
    for (auto at = waiters_.begin(); at != waiters_.end();) {
        Waiter& waiter = **at;
        if (!waiter.condition()) {
            ++at;
            continue;
        }
        at = waiters_.erase(at);
        waiter.satisfied = true;
        waiter.changed.notify_one();
    }
}

void Scheduler::wait_until(Lock& lock, const std::function<bool()>& condition) {
    if (condition()) return;
    Waiter waiter{condition};
    waiters_.push_back(&waiter);
    ++waiting_;
    pump();
    waiter.changed.wait(lock, [&] { return waiter.satisfied; });
    --waiting_;
}

/// The waiting thread does the stream's work where no worker has begun it: that spares the way to
/// another thread and back. Functions of the host are left to workers.
void Scheduler::run_while_waiting(Lock& lock, const Ticket& ticket) {
    Queue& queue = ticket.stream->queue;
    if (queue.state != Queue::State::claimed) return;
    ++waiting_;
    while (queue.state == Queue::State::claimed && !queue.works.front().host) {
        run_first(lock, ticket.stream);
        const bool more = queue.done < ticket.number && !queue.works.empty();
        if (more && !queue.works.front().host && !stopped_) take(ticket.stream);
        pump();
    }
    --waiting_;
}

void Scheduler::wait(Lock& lock, const Ticket& ticket) {
    const Queue& queue = ticket.stream->queue;
    if (!seeded_) run_while_waiting(lock, ticket);
    pump();
    wait_until(lock, [&] { return queue.done >= ticket.number; });
    stream_order().host_learns(ticket.clock);
}

void Scheduler::wait(const Ticket& ticket) {
    Lock lock(mutex_);
    wait(lock, ticket);
}

void Scheduler::wait(const Mark& mark) {
    Lock lock(mutex_);
    // Without a stream it was reached: its work held the stream.
    if (const auto stream = mark.stream_.lock()) wait(lock, {stream, mark.number_, {}});
    stream_order().host_learns(mark.clock);
}

void Scheduler::wait_for(const Context& context) {
    const auto everything = stream_order().all_of(context);
    for (const Ticket& ticket : pending(context))
        wait(ticket);
    stream_order().host_learns(everything);
}

void Scheduler::make_room(const StreamPointer& stream) {
    Lock lock(mutex_);
    if (seeded_) step_now_and_then(lock);
    const Queue& queue = stream->queue;
    if (queue.works.size() <= settings().queue_depth) return;
    wait_until(lock, [&] { return queue.works.size() <= settings().queue_depth; });
}

/// Some work runs before anybody waits, so that late changes of what it reads are found as well.
void Scheduler::step_now_and_then(Lock& lock) {
    if (random(kStepOneIn) || ready_.empty() || running_) return;
    permits_ = 1;
    pump();
    finished_.wait_for(lock, kStepPatience, [&] { return !running_; });
}

std::vector<Ticket> Scheduler::pending(const Context& context) {
    Lock lock(mutex_);
    std::vector<Ticket> all;
    for (const auto& [key, stream] : busy_) {
        if (stream->context.get() == &context) all.push_back({stream, stream->queue.pushed, {}});
    }
    return all;
}

bool Scheduler::idle(const Stream& stream) {
    Lock lock(mutex_);
    if (!stream.queue.works.empty()) return false;
    const bool alone =
        stream.kind != StreamKind::legacy ||
        std::none_of(busy_.begin(), busy_.end(), [&](const auto& entry) {
            return entry.second->context == stream.context && entry.second->blocking();
        });
    if (alone && checks_streams()) stream_order().host_learns_all_of(stream);
    return alone;
}

void Scheduler::nudge() {
    if (!seeded_) return;
    Lock lock(mutex_);
    permits_ = 1;
    pump();
}

void Scheduler::abandon(const Context& context) {
    Lock lock(mutex_);
    for (const auto& [key, stream] : busy_) {
        if (stream->context.get() == &context) stream->queue.abandoned = true;
    }
}

void Scheduler::pulse() {
    Lock lock(mutex_);
    std::condition_variable nobody;
    for (std::uint64_t going_since = 0; !busy_.empty() && !stopped_;) {
        const std::uint64_t before = steps_;
        nobody.wait_for(lock, going_since == pushes_ ? kPulse : kPatience);
        if (steps_ != before || ready_.empty() || stopped_) continue;
        going_since = pushes_;
        claim(random(ready_.size()));
    }
    pulsing_ = false;
}

void Scheduler::stop() {
    Lock lock(mutex_);
    stopped_ = true;
    finished_.wait_for(lock, kStopPatience, [&] { return !device_running_; });
}

} // namespace cudamod::emulator
