#include "driver/host_callbacks.h"

#include <memory>
#include <new>
#include <type_traits>

#include <cuda.h>

#include "driver/table.h"

namespace cudamod::driver {

std::atomic<int> pending_host_callbacks{0};

namespace {

thread_local int depth = 0;

// The driver's own entry points.
std::atomic<decltype(&cuLaunchHostFunc)> launch_host_func{nullptr};
std::atomic<decltype(&cuStreamAddCallback)> stream_add_callback{nullptr};
std::atomic<decltype(&cuGraphAddHostNode)> graph_add_host_node{nullptr};
std::atomic<decltype(&cuGraphAddNode)> graph_add_node{nullptr};

template <class Function>
struct Counted {
    Function function;
    void* data;
};

void done() noexcept {
    pending_host_callbacks.fetch_sub(1, std::memory_order_release);
}

void CUDA_CB call_host_function(void* counted) {
    std::unique_ptr<Counted<CUhostFn>> own(static_cast<Counted<CUhostFn>*>(counted));
    const InHostCallback inside;
    own->function(own->data);
    done();
}

void CUDA_CB call_stream_callback(CUstream stream, CUresult status, void* counted) {
    std::unique_ptr<Counted<CUstreamCallback>> own(
        static_cast<Counted<CUstreamCallback>*>(counted));
    const InHostCallback inside;
    own->function(stream, status, own->data);
    done();
}

CUresult ask_whether_it_captures(CUstream stream, bool& captures) noexcept {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult status = table.cuStreamIsCapturing(stream, &capture);
    captures = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return status;
}

/// Gives the driver a counted function in place of the caller's; a captured one runs many times and
/// is handed on as it is.
template <class Function, class Enqueue>
CUresult enqueue(CUstream stream, Function function, void* data, Function trampoline,
                 Enqueue&& call_driver) noexcept {
    bool captured = false;
    CUresult status = ask_whether_it_captures(stream, captured);
    if (status != CUDA_SUCCESS) return status;
    pending_host_callbacks.fetch_add(1, std::memory_order_relaxed);
    if (!function || captured) {
        status = call_driver(function, data);
        if (status != CUDA_SUCCESS) done();
        return status;
    }
    auto* counted = new (std::nothrow) Counted<Function>{function, data};
    status = counted ? call_driver(trampoline, counted) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        delete counted;
        done();
    }
    return status;
}

CUresult CUDAAPI counted_launch_host_func(CUstream stream, CUhostFn function, void* data) noexcept {
    return enqueue(stream, function, data, &call_host_function, [&](CUhostFn given, void* with) {
        return launch_host_func.load(std::memory_order_acquire)(stream, given, with);
    });
}

CUresult CUDAAPI counted_stream_add_callback(CUstream stream, CUstreamCallback callback, void* data,
                                             unsigned flags) noexcept {
    return enqueue(
        stream, callback, data, &call_stream_callback, [&](CUstreamCallback given, void* with) {
            return stream_add_callback.load(std::memory_order_acquire)(stream, given, with, flags);
        });
}

CUresult CUDAAPI counted_graph_add_host_node(CUgraphNode* node, CUgraph graph,
                                             const CUgraphNode* after, std::size_t count,
                                             const CUDA_HOST_NODE_PARAMS* parameters) noexcept {
    pending_host_callbacks.fetch_add(1, std::memory_order_relaxed);
    return graph_add_host_node.load(std::memory_order_acquire)(node, graph, after, count,
                                                               parameters);
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI counted_graph_add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        const CUgraphEdgeData* edges, std::size_t count,
                                        CUgraphNodeParams* parameters) noexcept {
    if (parameters && parameters->type == CU_GRAPH_NODE_TYPE_HOST)
        pending_host_callbacks.fetch_add(1, std::memory_order_relaxed);
    return graph_add_node.load(std::memory_order_acquire)(node, graph, after, edges, count,
                                                          parameters);
}
#else
CUresult CUDAAPI counted_graph_add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        std::size_t count, CUgraphNodeParams* parameters) noexcept {
    if (parameters && parameters->type == CU_GRAPH_NODE_TYPE_HOST)
        pending_host_callbacks.fetch_add(1, std::memory_order_relaxed);
    return graph_add_node.load(std::memory_order_acquire)(node, graph, after, count, parameters);
}
#endif

template <class Pointer>
void* counting(std::atomic<Pointer>& real, void* entry,
               std::type_identity_t<Pointer> counted) noexcept {
    real.store(reinterpret_cast<Pointer>(entry), std::memory_order_release);
    return reinterpret_cast<void*>(counted);
}

} // namespace

InHostCallback::InHostCallback() noexcept {
    ++depth;
}

InHostCallback::~InHostCallback() {
    --depth;
}

bool in_host_callback() noexcept {
    return depth > 0;
}

void* counting_host_callbacks(std::string_view function, void* entry) noexcept {
    if (function == "cuLaunchHostFunc")
        return counting(launch_host_func, entry, &counted_launch_host_func);
    if (function == "cuStreamAddCallback")
        return counting(stream_add_callback, entry, &counted_stream_add_callback);
    if (function == "cuGraphAddHostNode")
        return counting(graph_add_host_node, entry, &counted_graph_add_host_node);
    if (function == "cuGraphAddNode")
        return counting(graph_add_node, entry, &counted_graph_add_node);
    return entry;
}

} // namespace cudamod::driver
