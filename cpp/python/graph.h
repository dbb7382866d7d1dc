#pragma once

#include "handles/graph.h"
#include "python/instance.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace cudamod::python {

/// Python's `Graph`: what a capture made, and its executable once there is one. Both handles are
/// empty once it is closed.
struct Graph {
    handles::GraphHandle handle;
    handles::GraphExecHandle executable;
    std::size_t hash; // stays when it is closed

    explicit Graph(handles::GraphHandle open)
        : handle(std::move(open)), hash(std::hash<CUgraph>()(*handle)) {}
};

nb::object new_graph(handles::GraphHandle handle);

} // namespace cudamod::python
