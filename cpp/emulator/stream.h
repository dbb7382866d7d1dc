#pragma once

#include "emulator/api.h"
#include "emulator/context.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace cudamod::emulator {

class Mark;
struct StreamCapture;

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

enum class StreamKind { legacy, per_thread, created };

/// A queue of work in one context. Everything that a stream does goes through enqueue(), so that
/// how work runs is decided there alone: at present inside the call that enqueues it.
struct Stream {
    CUstream handle = nullptr;
    std::shared_ptr<Context> context;
    unsigned flags = 0;
    int priority = 0;
    unsigned long long id = 0;
    StreamKind kind = StreamKind::created;
    std::shared_ptr<StreamCapture> capture; ///< null: not captured; under the driver's lock

    using Task = std::function<void()>;

    /// Runs the task after all earlier ones of this stream and, for blocking streams, in order with
    /// the legacy stream. The caller does not hold the driver's lock; the task owns what it uses.
    /// After a fault of the context nothing runs.
    void enqueue(const Task& task);

    /// Calls a function of the host after all earlier work. Unlike a task it does not hold up other
    /// threads that enqueue into this stream meanwhile: one of them may hold a lock that the
    /// function needs, Python's for one. wait() waits for it.
    void enqueue_host(const Task& function);

    /// Returns when everything enqueued so far has run. The caller does not hold the driver's lock.
    void wait();

    /// Later work of this stream runs after the mark is reached. Null: no wait.
    void await(const std::shared_ptr<Mark>& mark);

    /// Whether everything enqueued so far has run.
    bool idle();

    bool blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }

  private:
    std::mutex running_;
    std::mutex host_mutex_;
    std::condition_variable host_done_;
    int host_running_ = 0;
};

/// The stream behind a handle that a caller gives: 0 and 1 the current context's legacy stream, 2
/// this thread's default stream, else a created one. Fails with CUDA_ERROR_INVALID_HANDLE or
/// CUDA_ERROR_INVALID_CONTEXT, or what its context answers.
std::shared_ptr<Stream> find_stream(CUstream handle);

/// Every stream of the context; takes the driver's lock itself.
std::vector<std::shared_ptr<Stream>> streams_of(const std::shared_ptr<Context>& context);

std::shared_ptr<Stream> legacy_stream(const std::shared_ptr<Context>& context);

inline bool is_default_stream(CUstream handle) {
    return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

} // namespace cudamod::emulator
