#include "emulator/capture.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/event.h"
#include "emulator/logs.h"
#include "emulator/objects.h"
#include "emulator/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace cudamod::emulator {

thread_local CUstreamCaptureMode thread_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

namespace {

std::atomic<cuuint64_t> next_capture_id{1};

std::vector<std::shared_ptr<Capture>>& captures_in_progress() {
    static auto* const all = new std::vector<std::shared_ptr<Capture>>;
    return *all;
}

// Calls that may wait for the device, or free what a capture uses. The names as the journal has
// them.
constexpr const char* kUnsafe[] = {
    "cuMemAlloc",          "cuMemAllocPitch", "cuMemAllocManaged", "cuMemFree",
    "cuMemAllocHost",      "cuMemHostAlloc",  "cuMemFreeHost",     "cuMemHostRegister",
    "cuMemHostUnregister", "cuMemcpy",        "cuMemcpyHtoD",      "cuMemcpyDtoH",
    "cuMemcpyDtoD",        "cuMemcpyPeer",    "cuMemcpy2D",        "cuMemcpy2DUnaligned",
    "cuLibraryUnload",     "cuModuleUnload",  "cuEventQuery",      "cuEventSynchronize",
    "cuCtxSynchronize"};

void join(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture) {
    stream->capture = std::make_shared<StreamCapture>();
    stream->capture->capture = capture;
    capture->streams.push_back(stream);
}

std::shared_ptr<Capture> capture_in(const Context& context) {
    for (const auto& capture : captures_in_progress()) {
        for (const auto& part : capture->streams) {
            const auto stream = part.lock();
            if (stream && stream->context.get() == &context) return capture;
        }
    }
    return nullptr;
}

[[noreturn]] void fail_and_invalidate(Capture& capture, CUresult status, const char* sentence) {
    capture.invalidated = true;
    fail(status, "%s", sentence);
}

std::shared_ptr<GraphNode> append(StreamCapture& part, Operation operation) {
    auto node = part.capture->graph->add(std::move(operation), part.tail);
    part.tail = {{node.get(), {}}};
    return node;
}

} // namespace

void extend(std::vector<Dependency>& tail, const std::vector<Dependency>& more) {
    for (const Dependency& dependency : more) {
        const bool known = std::any_of(tail.begin(), tail.end(), [&](const Dependency& mine) {
            return mine.node == dependency.node;
        });
        if (!known) tail.push_back(dependency);
    }
}

void finish_capture(const std::shared_ptr<Capture>& capture) {
    for (const auto& part : capture->streams) {
        const auto stream = part.lock();
        if (stream && stream->capture && stream->capture->capture == capture)
            stream->capture.reset();
    }
    auto& all = captures_in_progress();
    all.erase(std::remove(all.begin(), all.end(), capture), all.end());
    set_attention(kCaptures, !all.empty());
    if (capture->invalidated && !capture->given_graph)
        objects().graphs.erase(capture->graph->handle);
}

std::shared_ptr<Capture> implicit_capture(const Context& context) {
    for (const auto& capture : captures_in_progress()) {
        for (const auto& part : capture->streams) {
            const auto stream = part.lock();
            if (stream && stream->context.get() == &context && stream->blocking() &&
                stream->capture && stream->capture->capture == capture)
                return capture;
        }
    }
    return nullptr;
}

bool captures(const Stream& stream) {
    if (stream.kind == StreamKind::legacy) {
        if (const auto capture = implicit_capture(*stream.context)) {
            fail_and_invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                "The legacy stream would wait for a blocking stream that is being "
                                "captured");
        }
        return false;
    }
    if (!stream.capture) return false;
    if (stream.capture->capture->invalidated)
        fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "The stream's capture was invalidated before");
    return true;
}

bool capture_into(Stream& stream, Operation operation) {
    if (!captures(stream)) return false;
    append(*stream.capture, std::move(operation));
    return true;
}

bool capture_launch(const ValidLaunch& launch, const LaunchRequest& request) {
    if (!captures(*launch.stream)) return false;
    KernelOperation operation;
    operation.launch = launch;
    operation.launch.stream.reset();
    operation.function = request.function;
    if (request.attribute_count) {
        operation.attributes.assign(request.attributes,
                                    request.attributes + request.attribute_count);
    }
    StreamCapture& part = *launch.stream->capture;
    append(part, std::move(operation));
    for (CUevent handle : {launch.programmatic_event, launch.completion_event}) {
        if (!handle) continue;
        find_event(handle)->captured =
            std::make_shared<EventCapture>(EventCapture{part.capture, part.tail});
    }
    return true;
}

bool capture_record(Stream& stream, const std::shared_ptr<Event>& event, bool external) {
    if (!captures(stream)) {
        event->captured.reset();
        return false;
    }
    StreamCapture& part = *stream.capture;
    if (external)
        append(part, RecordOperation{event});
    else
        event->captured = std::make_shared<EventCapture>(EventCapture{part.capture, part.tail});
    return true;
}

bool capture_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event,
                  bool external) {
    const bool capturing = captures(*stream);
    if (external) {
        if (capturing) append(*stream->capture, WaitOperation{event});
        return capturing;
    }
    const auto origin = event->captured ? event->captured->capture.lock() : nullptr;
    if (!capturing && !event->captured) return false;
    if (!origin) {
        if (!capturing)
            fail(CUDA_ERROR_CAPTURED_EVENT, "The event was recorded in a capture that has ended");
        fail_and_invalidate(*stream->capture->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                            "A stream that is being captured cannot wait for an event from outside "
                            "of its capture");
    }
    if (origin->invalidated)
        fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "The event's capture was invalidated before");
    if (capturing && stream->capture->capture != origin) {
        origin->invalidated = true;
        fail_and_invalidate(*stream->capture->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE,
                            "Two captures cannot wait for each other");
    }
    if (!capturing) {
        if (stream->kind == StreamKind::legacy)
            fail_and_invalidate(*origin, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                "The legacy stream cannot be captured");
        join(stream, origin);
    }
    extend(stream->capture->tail, event->captured->tail);
    return true;
}

void require_not_capturing(const Stream& stream) {
    if (captures(stream)) {
        fail_and_invalidate(*stream.capture->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                            "The stream is being captured, which does not permit this call");
    }
}

void require_not_capturing(const Context& context) {
    if (const auto capture = capture_in(context)) {
        fail_and_invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                            "A stream of the context is being captured, which does not permit this "
                            "call");
    }
}

void require_not_captured(const Event& event) {
    if (!event.captured) return;
    constexpr char kSentence[] = "The event was last recorded in a capture";
    if (const auto capture = event.captured->capture.lock())
        fail_and_invalidate(*capture, CUDA_ERROR_CAPTURED_EVENT, kSentence);
    fail(CUDA_ERROR_CAPTURED_EVENT, "%s", kSentence);
}

CUresult admit_in_captures(const char* call) {
    const bool safe = std::none_of(std::begin(kUnsafe), std::end(kUnsafe),
                                   [&](const char* name) { return std::strcmp(name, call) == 0; });
    if (safe || thread_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    std::lock_guard lock(driver_mutex());
    CUresult status = CUDA_SUCCESS;
    for (const auto& capture : captures_in_progress()) {
        const bool own = capture->thread == thread_number();
        const bool forbids = own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                                 : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                       thread_capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!forbids) continue;
        capture->invalidated = true;
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (status != CUDA_SUCCESS)
        logs::say("A capture is in progress whose mode does not permit this call");
    return status;
}

void abandon_capture(Stream& stream) {
    if (!stream.capture) return;
    const auto capture = stream.capture->capture;
    if (capture->origin != &stream) {
        stream.capture.reset(); // what it did stays in the graph
        return;
    }
    capture->invalidated = true;
    finish_capture(capture);
}

bool under_capture(const Graph& graph) {
    const auto& all = captures_in_progress();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& capture) { return capture->graph.get() == &graph; });
}

void begin_capture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
                   std::shared_ptr<Graph> graph, std::vector<Dependency> tail) {
    auto capture = std::make_shared<Capture>();
    capture->id = next_capture_id++;
    capture->mode = mode;
    capture->thread = thread_number();
    capture->origin = stream.get();
    capture->given_graph = graph != nullptr;
    capture->graph = graph ? std::move(graph) : make_graph();
    join(stream, capture);
    stream->capture->tail = std::move(tail);
    captures_in_progress().push_back(std::move(capture));
    set_attention(kCaptures, true);
}

} // namespace cudamod::emulator
