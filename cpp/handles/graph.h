#pragma once

#include "handles/handle.h"
#include "handles/kernel.h"
#include "handles/stream.h"
#include "handles/tracking.h"

#include <cuda.h>

#include <mutex>
#include <vector>

namespace cudamod::handles {

/// A graph, where it runs, and the kernels of its nodes: a graph outlives its libraries only in
/// appearance. (Of a captured graph they are held by user objects of the driver's.)
struct GraphBox {
    using Raw = CUgraph;
    static constexpr const char* kKind = "graph";
    Raw raw;
    CUcontext context;
    std::vector<KernelHandle> kernels;
    Tracked tracked;

    GraphBox(Raw raw_, CUcontext context_, std::vector<KernelHandle> kernels_)
        : raw(raw_), context(context_), kernels(std::move(kernels_)) {}
    ~GraphBox();
    Lifetime lifetime() const { return Lifetime::Owned; }
    std::vector<Dependency> dependencies() const;
    GraphBox(const GraphBox&) = delete;
    GraphBox& operator=(const GraphBox&) = delete;
};
using GraphHandle = Handle<GraphBox>;

/// An executable graph. The driver does not guard it against several threads: whoever launches or
/// changes it holds `use` for the length of the driver calls, and never waits for it with the
/// interpreter lock held.
struct GraphExecBox {
    using Raw = CUgraphExec;
    static constexpr const char* kKind = "executable graph";
    Raw raw;
    CUcontext context;
    std::vector<KernelHandle> kernels;
    mutable std::mutex use;
    Tracked tracked;

    GraphExecBox(Raw raw_, CUcontext context_, std::vector<KernelHandle> kernels_)
        : raw(raw_), context(context_), kernels(std::move(kernels_)) {}
    ~GraphExecBox();
    Lifetime lifetime() const { return Lifetime::Owned; }
    std::vector<Dependency> dependencies() const;
    GraphExecBox(const GraphExecBox&) = delete;
    GraphExecBox& operator=(const GraphExecBox&) = delete;
};
using GraphExecHandle = Handle<GraphExecBox>;

/// An empty graph whose nodes will be these kernels.
GraphHandle create_graph(CUcontext context, std::vector<KernelHandle> kernels);

/// Takes over a graph that a capture in `context` made.
GraphHandle adopt_graph(CUgraph raw, CUcontext context);

GraphExecHandle instantiate(const GraphHandle& graph);

} // namespace cudamod::handles
