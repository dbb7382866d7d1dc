#pragma once

#include "emulator/api.h"
#include "emulator/context.h"
#include "emulator/queue.h"

#include <functional>
#include <memory>
#include <vector>

namespace cudamod::emulator {

class Mark;
struct StreamCapture;

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

enum class StreamKind { legacy, per_thread, created };

/// A queue of work in one context. Everything that a stream does goes through it; how and when work
/// runs is the scheduler's business. Whoever calls these holds no lock of the driver's, except for
/// push().
struct Stream : std::enable_shared_from_this<Stream> {
    CUstream handle = nullptr;
    std::shared_ptr<Context> context;
    unsigned flags = 0;
    int priority = 0;
    unsigned long long id = 0;
    StreamKind kind = StreamKind::created;
    std::shared_ptr<StreamCapture> capture; ///< null: not captured; under the driver's lock

    using Task = std::function<void()>;

    /// Has the task run on another thread, after all earlier work of this stream and, for blocking
    /// streams, in order with the legacy stream; the task owns what it uses. After a fault of the
    /// context it does not run. `what` names it in findings. Returns once the queue has room.
    void enqueue(Task task, const char* what);

    /// The same for a function of the host, which may not call the driver.
    void enqueue_host(Task function, bool after_fault = false);

    /// Appends work whatever room there is, and waits for nothing: the caller may hold the driver's
    /// lock and calls make_room() without it.
    void push(Work work);
    void make_room();

    /// Returns when everything enqueued so far has run; for the legacy stream also what blocking
    /// streams of the context have.
    void wait();

    /// Later work of this stream runs after the mark is reached. Null: no wait.
    void await(const std::shared_ptr<Mark>& mark);

    /// Whether everything enqueued so far has run.
    bool idle();

    bool blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }

    Queue queue; ///< the scheduler's
};

/// The stream behind a handle that a caller gives: 0 and 1 the current context's legacy stream, 2
/// this thread's default stream, else a created one. Fails with CUDA_ERROR_INVALID_HANDLE or
/// CUDA_ERROR_INVALID_CONTEXT, or what its context answers.
std::shared_ptr<Stream> find_stream(CUstream handle);

/// Every stream of the context; takes the driver's lock itself.
std::vector<std::shared_ptr<Stream>> streams_of(const std::shared_ptr<Context>& context);

/// A stream that no handle names and nothing blocks.
std::shared_ptr<Stream> make_hidden_stream(const std::shared_ptr<Context>& context);

std::shared_ptr<Stream> legacy_stream(const std::shared_ptr<Context>& context);

inline bool is_default_stream(CUstream handle) {
    return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

} // namespace cudamod::emulator
