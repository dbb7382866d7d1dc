#include "emulator/event.h"

#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/context.h"
#include "emulator/objects.h"
#include "emulator/recording.h"
#include "emulator/scheduler.h"
#include "emulator/shared_event.h"
#include "emulator/stream.h"
#include "emulator/stream_order.h"

namespace cudamod::emulator {

void Mark::set_origin(const std::shared_ptr<Stream>& stream, std::uint64_t number) {
    stream_ = stream;
    number_ = number;
}

void Mark::share(const std::shared_ptr<SharedEvent>& event, std::uint64_t recording) {
    shared_ = event;
    recording_ = recording;
}

void Mark::set() {
    time_ = std::chrono::steady_clock::now();
    reached_.store(true, std::memory_order_release);
    if (shared_) shared_->reach(recording_);
}

void reach_in(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Mark>& mark) {
    Work work;
    work.mark = mark;
    stream->push(std::move(work));
}

std::shared_ptr<Event> find_event(CUevent handle) {
    auto event = objects().events.find(handle);
    if (!event) {
        fail(CUDA_ERROR_INVALID_HANDLE, "Event %p %s", static_cast<void*>(handle),
             objects().events.is_stale(handle) ? "was destroyed" : "does not exist");
    }
    require_healthy(*event->context);
    return event;
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

constexpr unsigned kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

void record(CUevent event_handle, CUstream stream_handle, bool external = false) {
    std::unique_lock lock(driver_mutex());
    const auto event = find_event(event_handle);
    const auto stream = find_stream(stream_handle);
    if (event->context != stream->context) {
        fail(CUDA_ERROR_INVALID_HANDLE, "The event and the stream belong to different contexts");
    }
    if (capture_record(*stream, event, external)) return;
    reach_in(stream, begin_recording(*event));
    lock.unlock();
    stream->make_room();
}

std::shared_ptr<Context> context_or_current(CUcontext handle) {
    auto context = handle ? find_context(handle) : current_context();
    require_healthy(*context);
    return context;
}

} // namespace

CUDAMOD_API cuEventCreate(CUevent* handle, unsigned int flags) {
    return locked_call(
        "cuEventCreate",
        [&] {
            require_pointer(handle, "the event");
            if (flags & ~kEventFlags)
                fail(CUDA_ERROR_INVALID_VALUE, "Event flags 0x%x are unknown",
                     flags & ~kEventFlags);
            if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)) {
                fail(CUDA_ERROR_INVALID_VALUE, "An event for other processes has no timing");
            }
            auto event = std::make_shared<Event>();
            event->context = current_context();
            event->flags = flags;
            if (flags & CU_EVENT_INTERPROCESS) {
                event->shared = SharedEvent::create();
                if (!event->shared)
                    fail(CUDA_ERROR_OUT_OF_MEMORY, "There is no file for a shared event");
            }
            *handle = event->handle = objects().events.insert(event);
        },
        handle, flags);
}

CUDAMOD_API cuEventDestroy_v2(CUevent handle) {
    return locked_call(
        "cuEventDestroy",
        [&] {
            find_event(handle);
            objects().events.erase(handle);
        },
        handle);
}
CUDAMOD_API_ALIAS(cuEventDestroy, cuEventDestroy_v2);

CUDAMOD_API cuEventRecord(CUevent event, CUstream stream) {
    return unlocked_call("cuEventRecord", [&] { record(event, stream); }, event, stream);
}

CUDAMOD_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
    return unlocked_call(
        "cuEventRecordWithFlags",
        [&] {
            if (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) {
                fail(CUDA_ERROR_INVALID_VALUE, "Record flags 0x%x are unknown", flags);
            }
            record(event, stream, flags & CU_EVENT_RECORD_EXTERNAL);
        },
        event, stream, flags);
}

CUDAMOD_API cuEventQuery(CUevent handle) {
    return locked_call(
        "cuEventQuery",
        [&] {
            const auto event = find_event(handle);
            require_not_captured(*event);
            if (!latest_recording(*event).reached()) {
                scheduler().nudge();
                return CUDA_ERROR_NOT_READY;
            }
            require_healthy(*event->context);
            if (event->mark) stream_order().host_learns(event->mark->clock);
            return CUDA_SUCCESS;
        },
        handle);
}

CUDAMOD_API cuEventSynchronize(CUevent handle) {
    return unlocked_call(
        "cuEventSynchronize",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto event = find_event(handle);
            require_not_captured(*event);
            const Recording recording = latest_recording(*event);
            if (!recording.reached()) {
                lock.unlock();
                wait_for(recording);
                lock.lock();
            }
            if (recording.mark) stream_order().host_learns(recording.mark->clock);
            require_healthy(*event->context);
        },
        handle);
}

CUDAMOD_API cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    return locked_call(
        "cuEventElapsedTime",
        [&] {
            require_pointer(milliseconds, "the time");
            const auto start = find_event(start_handle), end = find_event(end_handle);
            if (!start->timing() || !end->timing()) {
                fail(CUDA_ERROR_INVALID_HANDLE, "The %s event was created with timing disabled",
                     start->timing() ? "end" : "start");
            }
            require_not_captured(*start);
            require_not_captured(*end);
            if (!start->mark || !end->mark) {
                fail(CUDA_ERROR_INVALID_HANDLE, "The %s event was never recorded",
                     start->mark ? "end" : "start");
            }
            if (start->context != end->context)
                fail(CUDA_ERROR_INVALID_HANDLE, "The events belong to different contexts");
            if (!start->mark->reached() || !end->mark->reached()) return CUDA_ERROR_NOT_READY;
            const std::chrono::duration<float, std::milli> elapsed =
                end->mark->time() - start->mark->time();
            *milliseconds = elapsed.count();
            stream_order().host_learns(start->mark->clock);
            stream_order().host_learns(end->mark->clock);
            return CUDA_SUCCESS;
        },
        milliseconds, start_handle, end_handle);
}
CUDAMOD_API_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2);

CUDAMOD_API cuStreamWaitEvent(CUstream stream_handle, CUevent event_handle, unsigned int flags) {
    return unlocked_call(
        "cuStreamWaitEvent",
        [&] {
            if (flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) {
                fail(CUDA_ERROR_INVALID_VALUE, "Wait flags 0x%x are unknown", flags);
            }
            std::unique_lock lock(driver_mutex());
            const auto stream = find_stream(stream_handle);
            const auto event = find_event(event_handle);
            if (capture_wait(stream, event, flags & CU_EVENT_WAIT_EXTERNAL)) return;
            const Recording recording = latest_recording(*event);
            lock.unlock();
            await_in(stream, recording);
        },
        stream_handle, event_handle, flags);
}

CUDAMOD_API cuCtxRecordEvent(CUcontext context_handle, CUevent event_handle) {
    return unlocked_call(
        "cuCtxRecordEvent",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto context = context_or_current(context_handle);
            const auto event = find_event(event_handle);
            if (event->context != context)
                fail(CUDA_ERROR_INVALID_HANDLE, "The event belongs to another context");
            require_not_capturing(*context);
            event->captured.reset();
            Work work;
            work.mark = begin_recording(*event);
            work.after = scheduler().pending(*context);
            work.known = stream_order().all_of(*context);
            make_hidden_stream(context)->push(std::move(work));
        },
        context_handle, event_handle);
}

CUDAMOD_API cuCtxWaitEvent(CUcontext context_handle, CUevent event_handle) {
    return unlocked_call(
        "cuCtxWaitEvent",
        [&] {
            std::unique_lock lock(driver_mutex());
            const auto context = context_or_current(context_handle);
            const auto event = find_event(event_handle);
            require_not_capturing(*context);
            require_not_captured(*event);
            const Recording recording = latest_recording(*event);
            lock.unlock();
            for (const auto& stream : streams_of(context))
                await_in(stream, recording);
        },
        context_handle, event_handle);
}
