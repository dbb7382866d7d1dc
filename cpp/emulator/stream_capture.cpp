#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/context.h"
#include "emulator/stream.h"

#include <algorithm>

using namespace cudamod::emulator;

namespace {

void begin(CUstream handle, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
           std::vector<Dependency> tail) {
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        fail(CUDA_ERROR_INVALID_VALUE, "Capture mode %d is unknown", static_cast<int>(mode));
    const auto stream = find_stream(handle);
    if (stream->kind == StreamKind::legacy)
        fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "The legacy stream cannot be captured");
    if (stream->capture) fail(CUDA_ERROR_ILLEGAL_STATE, "The stream is being captured already");
    begin_capture(stream, mode, std::move(graph), std::move(tail));
}

/// Whether every node leads to the origin's next one: no other stream has work that nobody waits
/// for.
bool joined(const Graph& graph, const std::vector<Dependency>& tail) {
    std::vector<const GraphNode*> leaves;
    for (const auto& node : graph.nodes)
        leaves.push_back(node.get());
    const auto drop = [&](const GraphNode* node) {
        leaves.erase(std::remove(leaves.begin(), leaves.end(), node), leaves.end());
    };
    for (const auto& node : graph.nodes) {
        for (const Dependency& dependency : node->dependencies)
            drop(dependency.node);
    }
    for (const Dependency& dependency : tail)
        drop(dependency.node);
    return leaves.empty();
}

void end(CUstream handle, CUgraph* result) {
    require_pointer(result, "the graph");
    const auto stream = find_stream(handle);
    if (!stream->capture) fail(CUDA_ERROR_ILLEGAL_STATE, "The stream is not being captured");
    const auto capture = stream->capture->capture;
    if (capture->origin != stream.get()) {
        capture->invalidated = true;
        fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "The capture did not begin in this stream");
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_number())
        fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "Another thread began the capture");
    *result = nullptr;
    if (capture->invalidated) {
        finish_capture(capture);
        fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "The capture was invalidated before");
    }
    // In a graph that the caller gave, nodes from before the capture need not be joined.
    if (!capture->given_graph && !joined(*capture->graph, stream->capture->tail)) {
        capture->invalidated = true;
        finish_capture(capture);
        fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
             "A stream that joined the capture has work that its first stream does not wait for");
    }
    *result = capture->graph->handle;
    finish_capture(capture);
}

struct CaptureInfo {
    cuuint64_t* id = nullptr;
    CUgraph* graph = nullptr;
    const CUgraphNode** dependencies = nullptr;
    const CUgraphEdgeData** edges = nullptr;
    std::size_t* count = nullptr;
};

void inspect(CUstream handle, CUstreamCaptureStatus* status, const CaptureInfo& info = {}) {
    require_pointer(status, "the status");
    const auto stream = find_stream(handle);
    if (stream->kind == StreamKind::legacy && implicit_capture(*stream->context)) {
        fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
             "A blocking stream is being captured, which the legacy stream would wait for");
    }
    if (!stream->capture) {
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return;
    }
    StreamCapture& part = *stream->capture;
    *status = part.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (part.capture->invalidated) return;
    part.reported.clear();
    part.reported_edges.clear();
    for (const Dependency& dependency : part.tail) {
        part.reported.push_back(dependency.node->handle);
        part.reported_edges.push_back(dependency.data);
    }
    if (info.id) *info.id = part.capture->id;
    if (info.graph) *info.graph = part.capture->graph->handle;
    if (info.dependencies) *info.dependencies = part.reported.data();
    if (info.edges) *info.edges = part.reported_edges.data();
    if (info.count) *info.count = part.tail.size();
}

void update(CUstream handle, const CUgraphNode* nodes, const CUgraphEdgeData* data,
            std::size_t count, unsigned flags) {
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        fail(CUDA_ERROR_INVALID_VALUE, "Flags 0x%x are unknown", flags);
    const auto stream = find_stream(handle);
    if (!captures(*stream)) fail(CUDA_ERROR_ILLEGAL_STATE, "The stream is not being captured");
    StreamCapture& part = *stream->capture;
    const auto dependencies =
        read_dependencies(*part.capture->graph, CU_GRAPH_NODE_TYPE_KERNEL, nodes, data, count);
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) part.tail.clear();
    extend(part.tail, dependencies);
}

} // namespace

CUDAMOD_API cuStreamBeginCapture(CUstream stream) {
    return locked_call(
        "cuStreamBeginCapture", [&] { begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {}); },
        stream);
}

CUDAMOD_API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    return locked_call(
        "cuStreamBeginCapture", [&] { begin(stream, mode, nullptr, {}); }, stream,
        static_cast<int>(mode));
}

CUDAMOD_API cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode* nodes,
                                        const CUgraphEdgeData* data, size_t count,
                                        CUstreamCaptureMode mode) {
    return locked_call(
        "cuStreamBeginCaptureToGraph",
        [&] {
            const auto graph = find_graph(handle);
            if (under_capture(*graph))
                fail(CUDA_ERROR_INVALID_VALUE, "A stream is being captured into the graph already");
            begin(stream, mode, graph,
                  read_dependencies(*graph, CU_GRAPH_NODE_TYPE_KERNEL, nodes, data, count));
        },
        stream, handle, nodes, data, count, static_cast<int>(mode));
}

CUDAMOD_API cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    return locked_call("cuStreamEndCapture", [&] { end(stream, graph); }, stream, graph);
}

CUDAMOD_API cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    return locked_call("cuStreamIsCapturing", [&] { inspect(stream, status); }, stream, status);
}

CUDAMOD_API cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return locked_call(
        "cuStreamGetCaptureInfo",
        [&] {
            CaptureInfo info;
            info.id = id;
            inspect(stream, status, info);
        },
        stream, status, id);
}

CUDAMOD_API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                      cuuint64_t* id, CUgraph* graph,
                                      const CUgraphNode** dependencies, size_t* count) {
    return locked_call(
        "cuStreamGetCaptureInfo",
        [&] { inspect(stream, status, {id, graph, dependencies, nullptr, count}); }, stream, status,
        id, graph, dependencies, count);
}

CUDAMOD_API cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status,
                                      cuuint64_t* id, CUgraph* graph,
                                      const CUgraphNode** dependencies,
                                      const CUgraphEdgeData** edges, size_t* count) {
    return locked_call(
        "cuStreamGetCaptureInfo",
        [&] { inspect(stream, status, {id, graph, dependencies, edges, count}); }, stream, status,
        id, graph, dependencies, edges, count);
}

CUDAMOD_API cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count,
                                              unsigned int flags) {
    return locked_call(
        "cuStreamUpdateCaptureDependencies", [&] { update(stream, nodes, nullptr, count, flags); },
        stream, nodes, count, flags);
}

CUDAMOD_API cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                                 const CUgraphEdgeData* data, size_t count,
                                                 unsigned int flags) {
    return locked_call(
        "cuStreamUpdateCaptureDependencies", [&] { update(stream, nodes, data, count, flags); },
        stream, nodes, data, count, flags);
}

CUDAMOD_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return locked_call(
        "cuThreadExchangeStreamCaptureMode",
        [&] {
            require_pointer(mode, "the mode");
            if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
                fail(CUDA_ERROR_INVALID_VALUE, "Capture mode %d is unknown",
                     static_cast<int>(*mode));
            }
            std::swap(*mode, thread_capture_mode);
        },
        mode);
}
