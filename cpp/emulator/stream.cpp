#include "emulator/stream.h"

#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/device.h"
#include "emulator/event.h"
#include "emulator/objects.h"
#include "emulator/scheduler.h"
#include "emulator/stream_order.h"

#include <algorithm>
#include <atomic>

namespace cudamod::emulator {
namespace {

std::atomic<unsigned long long> next_stream_id{1};

std::shared_ptr<Stream> make_stream(const std::shared_ptr<Context>& context, StreamKind kind,
                                    unsigned flags, int priority) {
    auto stream = std::make_shared<Stream>();
    stream->context = context;
    stream->kind = kind;
    stream->flags = flags;
    stream->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    stream->id = next_stream_id++;
    return stream;
}

std::shared_ptr<Stream> thread_stream(const std::shared_ptr<Context>& context) {
    auto& stream = context->thread_streams[thread_number()];
    if (!stream) stream = make_stream(context, StreamKind::per_thread, 0, 0);
    return stream;
}

} // namespace

void Stream::push(Work work) {
    scheduler().push(shared_from_this(), std::move(work));
}

void Stream::make_room() {
    scheduler().make_room(shared_from_this());
}

void Stream::enqueue(Task task, const char* what) {
    Work work;
    work.what = what;
    work.task = std::move(task);
    push(std::move(work));
    make_room();
}

void Stream::enqueue_host(Task function, bool after_fault) {
    Work work;
    work.task = std::move(function);
    work.host = true;
    work.after_fault = after_fault;
    push(std::move(work));
    make_room();
}

void Stream::wait() {
    // Work that does nothing comes after all that the stream waits for.
    scheduler().wait(scheduler().push(shared_from_this(), {}));
}

void Stream::await(const std::shared_ptr<Mark>& mark) {
    if (!mark || (mark->reached() && !checks_streams())) return;
    Work work;
    work.awaited = mark;
    push(std::move(work));
    make_room();
}

bool Stream::idle() {
    if (scheduler().idle(*this)) return true;
    scheduler().nudge();
    return false;
}

std::shared_ptr<Stream> make_hidden_stream(const std::shared_ptr<Context>& context) {
    return make_stream(context, StreamKind::created, CU_STREAM_NON_BLOCKING, 0);
}

std::shared_ptr<Stream> legacy_stream(const std::shared_ptr<Context>& context) {
    if (!context->legacy_stream)
        context->legacy_stream = make_stream(context, StreamKind::legacy, 0, 0);
    return context->legacy_stream;
}

std::shared_ptr<Stream> find_stream(CUstream handle) {
    if (!handle || handle == CU_STREAM_LEGACY) return legacy_stream(current_context());
    if (handle == CU_STREAM_PER_THREAD) return thread_stream(current_context());
    auto stream = objects().streams.find(handle);
    if (!stream) {
        fail(CUDA_ERROR_INVALID_HANDLE, "Stream %p %s", static_cast<void*>(handle),
             objects().streams.is_stale(handle) ? "was destroyed" : "does not exist");
    }
    require_healthy(*stream->context);
    return stream;
}

std::vector<std::shared_ptr<Stream>> streams_of(const std::shared_ptr<Context>& context) {
    std::lock_guard lock(driver_mutex());
    std::vector<std::shared_ptr<Stream>> all;
    if (context->legacy_stream) all.push_back(context->legacy_stream);
    for (const auto& [thread, stream] : context->thread_streams)
        all.push_back(stream);
    for (CUstream handle : context->streams)
        all.push_back(objects().streams.find(handle));
    return all;
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void create(CUstream* handle, unsigned flags, int priority) {
    require_pointer(handle, "the stream");
    if (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) {
        fail(CUDA_ERROR_INVALID_VALUE, "Stream flags 0x%x are unknown", flags);
    }
    const auto context = current_context();
    auto stream = make_stream(context, StreamKind::created, flags, priority);
    stream->handle = objects().streams.insert(stream);
    context->streams.push_back(stream->handle);
    *handle = stream->handle;
}

std::shared_ptr<Stream> find_to_wait_for(CUstream handle) {
    std::lock_guard lock(driver_mutex());
    auto stream = find_stream(handle);
    require_not_capturing(*stream);
    return stream;
}

CUresult fault_of(const Context& context) {
    std::lock_guard lock(driver_mutex());
    return context.fault.status;
}

} // namespace

CUDAMOD_API cuStreamCreate(CUstream* stream, unsigned int flags) {
    return locked_call("cuStreamCreate", [&] { create(stream, flags, 0); }, stream, flags);
}

CUDAMOD_API cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
    return locked_call(
        "cuStreamCreateWithPriority", [&] { create(stream, flags, priority); }, stream, flags,
        priority);
}

CUDAMOD_API cuStreamDestroy_v2(CUstream handle) {
    return locked_call(
        "cuStreamDestroy",
        [&] {
            if (is_default_stream(handle))
                fail(CUDA_ERROR_INVALID_HANDLE, "A default stream cannot be destroyed");
            const auto stream = find_stream(handle);
            abandon_capture(*stream);
            auto& streams = stream->context->streams;
            streams.erase(std::remove(streams.begin(), streams.end(), handle), streams.end());
            objects().streams.erase(handle);
        },
        handle);
}
CUDAMOD_API_ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

CUDAMOD_API cuStreamGetCtx(CUstream handle, CUcontext* context) {
    return locked_call(
        "cuStreamGetCtx",
        [&] {
            require_pointer(context, "the context");
            *context = find_stream(handle)->context->handle;
        },
        handle, context);
}

CUDAMOD_API cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
    return locked_call(
        "cuStreamGetCtx",
        [&] {
            require_pointer(context, "the context");
            *context = find_stream(handle)->context->handle;
            if (green) *green = nullptr;
        },
        handle, context, green);
}

CUDAMOD_API cuStreamGetDevice(CUstream handle, CUdevice* device) {
    return locked_call(
        "cuStreamGetDevice",
        [&] {
            require_pointer(device, "the device");
            *device = find_stream(handle)->context->device->ordinal;
        },
        handle, device);
}

CUDAMOD_API cuStreamGetFlags(CUstream handle, unsigned int* flags) {
    return locked_call(
        "cuStreamGetFlags",
        [&] {
            require_pointer(flags, "the flags");
            *flags = find_stream(handle)->flags;
        },
        handle, flags);
}

CUDAMOD_API cuStreamGetId(CUstream handle, unsigned long long* id) {
    return locked_call(
        "cuStreamGetId",
        [&] {
            require_pointer(id, "the id");
            *id = find_stream(handle)->id;
        },
        handle, id);
}

CUDAMOD_API cuStreamGetPriority(CUstream handle, int* priority) {
    return locked_call(
        "cuStreamGetPriority",
        [&] {
            require_pointer(priority, "the priority");
            *priority = find_stream(handle)->priority;
        },
        handle, priority);
}

CUDAMOD_API cuStreamQuery(CUstream handle) {
    return unlocked_call(
        "cuStreamQuery",
        [&] {
            const auto stream = find_to_wait_for(handle);
            if (!stream->idle()) return CUDA_ERROR_NOT_READY;
            std::lock_guard lock(driver_mutex());
            require_healthy(*stream->context);
            return CUDA_SUCCESS;
        },
        handle);
}

CUDAMOD_API cuStreamSynchronize(CUstream handle) {
    return unlocked_call(
        "cuStreamSynchronize",
        [&] {
            const auto stream = find_to_wait_for(handle);
            stream->wait();
            std::lock_guard lock(driver_mutex());
            require_healthy(*stream->context);
        },
        handle);
}

CUDAMOD_API cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    return unlocked_call(
        "cuLaunchHostFunc",
        [&] {
            if (!function) fail(CUDA_ERROR_INVALID_VALUE, "The host function must not be NULL");
            std::unique_lock lock(driver_mutex());
            const auto stream = find_stream(handle);
            if (capture_into(*stream, HostOperation{function, data})) return;
            lock.unlock();
            stream->enqueue_host([=] { function(data); });
        },
        handle, function, data);
}

CUDAMOD_API cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data,
                                unsigned int flags) {
    return unlocked_call(
        "cuStreamAddCallback",
        [&] {
            if (!callback) fail(CUDA_ERROR_INVALID_VALUE, "The callback must not be NULL");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %u", flags);
            const auto stream = find_to_wait_for(handle);
            stream->enqueue_host(
                [=, context = stream->context] { callback(handle, fault_of(*context), data); },
                true);
        },
        handle, callback, data, flags);
}

CUDAMOD_API cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes,
                                   unsigned int flags) {
    return locked_call(
        "cuStreamAttachMemAsync", [&] { find_stream(handle); }, handle, address, bytes, flags);
}
