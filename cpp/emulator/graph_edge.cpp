#include "emulator/call.h"
#include "emulator/graph.h"

#include <algorithm>

namespace cudamod::emulator {

void require_edge(const Graph& graph, const GraphNode& from, CUgraphNodeType to,
                  const CUgraphEdgeData& data) {
    if (from.graph != &graph)
        fail(CUDA_ERROR_INVALID_VALUE, "Node %p belongs to another graph",
             static_cast<void*>(from.handle));
    const bool reserved = std::any_of(std::begin(data.reserved), std::end(data.reserved),
                                      [](unsigned char byte) { return byte != 0; });
    if (reserved || data.type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || data.to_port ||
        data.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER)
        fail(CUDA_ERROR_INVALID_VALUE, "An edge's data is not valid");
    const bool kernels =
        type_of(from.operation) == CU_GRAPH_NODE_TYPE_KERNEL && to == CU_GRAPH_NODE_TYPE_KERNEL;
    if (data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && !kernels)
        fail(CUDA_ERROR_INVALID_VALUE, "Only kernels depend on each other programmatically");
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

bool plain(const CUgraphEdgeData& data) {
    return !data.from_port && !data.to_port && !data.type;
}

/// Writes edges as a caller's arrays want them: `count` is room on the way in, the number on the
/// way out; without arrays only the number is asked.
void write_edges(const std::vector<std::pair<CUgraphNode, Dependency>>& edges, CUgraphNode* from,
                 CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count, bool knows_data) {
    require_pointer(count, "the count");
    if (!from && !to) {
        *count = edges.size();
        return;
    }
    const std::size_t room = *count;
    for (std::size_t index = 0; index < room; ++index) {
        const bool there = index < edges.size();
        if (from) from[index] = there ? edges[index].second.node->handle : nullptr;
        if (to) to[index] = there ? edges[index].first : nullptr;
        if (there && !data && !plain(edges[index].second.data)) {
            fail(CUDA_ERROR_LOSSY_QUERY, "An edge has data, and there is no room for it%s",
                 knows_data ? "" : " in this call");
        }
        if (data) data[index] = there ? edges[index].second.data : CUgraphEdgeData{};
    }
    *count = std::min(room, edges.size());
}

void get_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
               std::size_t* count, bool knows_data) {
    const auto graph = find_graph(handle);
    if (!from != !to) fail(CUDA_ERROR_INVALID_VALUE, "Only one side of the edges has room");
    std::vector<std::pair<CUgraphNode, Dependency>> edges;
    for (const auto& node : graph->nodes) {
        for (const Dependency& dependency : node->dependencies)
            edges.emplace_back(node->handle, dependency);
    }
    write_edges(edges, from, to, data, count, knows_data);
}

void get_dependencies(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                      std::size_t* count, bool knows_data) {
    const auto node = find_node(handle);
    std::vector<std::pair<CUgraphNode, Dependency>> edges;
    for (const Dependency& dependency : node->dependencies)
        edges.emplace_back(handle, dependency);
    write_edges(edges, nodes, nullptr, data, count, knows_data);
}

void get_dependents(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                    std::size_t* count, bool knows_data) {
    const auto node = find_node(handle);
    std::vector<std::pair<CUgraphNode, Dependency>> edges;
    for (const auto& other : node->graph->nodes) {
        for (const Dependency& dependency : other->dependencies) {
            if (dependency.node == node.get()) edges.emplace_back(other->handle, dependency);
        }
    }
    write_edges(edges, nullptr, nodes, data, count, knows_data);
}

struct NewEdge {
    std::shared_ptr<GraphNode> from, to;
    CUgraphEdgeData data;
};

std::vector<NewEdge> read_edges(const Graph& graph, const CUgraphNode* from, const CUgraphNode* to,
                                const CUgraphEdgeData* data, std::size_t count) {
    if (count) {
        require_pointer(from, "the nodes depended on");
        require_pointer(to, "the nodes that depend");
    }
    std::vector<NewEdge> edges;
    for (std::size_t index = 0; index < count; ++index) {
        edges.push_back(
            {find_node(from[index]), find_node(to[index]), data ? data[index] : CUgraphEdgeData{}});
        const NewEdge& edge = edges.back();
        if (edge.from == edge.to)
            fail(CUDA_ERROR_INVALID_VALUE, "Edge %zu leads from a node to itself", index);
        if (edge.to->graph != &graph)
            fail(CUDA_ERROR_INVALID_VALUE, "Edge %zu leads into another graph", index);
        require_edge(graph, *edge.from, type_of(edge.to->operation), edge.data);
    }
    return edges;
}

auto edge_from(std::vector<Dependency>& dependencies, const GraphNode* from) {
    return std::find_if(dependencies.begin(), dependencies.end(),
                        [&](const Dependency& dependency) { return dependency.node == from; });
}

void add_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
               const CUgraphEdgeData* data, std::size_t count) {
    const auto edges = read_edges(*find_graph(handle), from, to, data, count);
    for (std::size_t index = 0; index < edges.size(); ++index) {
        auto& dependencies = edges[index].to->dependencies;
        bool twice = edge_from(dependencies, edges[index].from.get()) != dependencies.end();
        for (std::size_t earlier = 0; earlier < index; ++earlier)
            twice |=
                edges[earlier].from == edges[index].from && edges[earlier].to == edges[index].to;
        if (twice) fail(CUDA_ERROR_INVALID_VALUE, "Edge %zu is there already", index);
    }
    for (const NewEdge& edge : edges)
        edge.to->dependencies.push_back({edge.from.get(), edge.data});
}

void remove_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData* data, std::size_t count) {
    const auto graph = find_graph(handle);
    const auto edges = read_edges(*graph, from, to, data, count);
    if (count && graph->has_memory_nodes())
        fail(CUDA_ERROR_NOT_SUPPORTED, "Edges of a graph with memory nodes stay");
    for (std::size_t index = 0; index < edges.size(); ++index) {
        auto& dependencies = edges[index].to->dependencies;
        if (edge_from(dependencies, edges[index].from.get()) == dependencies.end())
            fail(CUDA_ERROR_INVALID_VALUE, "Edge %zu does not exist", index);
    }
    for (const NewEdge& edge : edges) {
        const auto found = edge_from(edge.to->dependencies, edge.from.get());
        if (found != edge.to->dependencies.end()) edge.to->dependencies.erase(found);
    }
}

} // namespace

CUDAMOD_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
    return locked_call(
        "cuGraphGetEdges", [&] { get_edges(graph, from, to, nullptr, count, false); }, graph, from,
        to, count);
}

CUDAMOD_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                               CUgraphEdgeData* data, size_t* count) {
    return locked_call(
        "cuGraphGetEdges", [&] { get_edges(graph, from, to, data, count, true); }, graph, from, to,
        data, count);
}

CUDAMOD_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
    return locked_call(
        "cuGraphNodeGetDependencies", [&] { get_dependencies(node, nodes, nullptr, count, false); },
        node, nodes, count);
}

CUDAMOD_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes,
                                          CUgraphEdgeData* data, size_t* count) {
    return locked_call(
        "cuGraphNodeGetDependencies", [&] { get_dependencies(node, nodes, data, count, true); },
        node, nodes, data, count);
}

CUDAMOD_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
    return locked_call(
        "cuGraphNodeGetDependentNodes", [&] { get_dependents(node, nodes, nullptr, count, false); },
        node, nodes, count);
}

CUDAMOD_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                            CUgraphEdgeData* data, size_t* count) {
    return locked_call(
        "cuGraphNodeGetDependentNodes", [&] { get_dependents(node, nodes, data, count, true); },
        node, nodes, data, count);
}

CUDAMOD_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
    return locked_call(
        "cuGraphAddDependencies", [&] { add_edges(graph, from, to, nullptr, count); }, graph, from,
        to, count);
}

CUDAMOD_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, size_t count) {
    return locked_call(
        "cuGraphAddDependencies", [&] { add_edges(graph, from, to, data, count); }, graph, from, to,
        data, count);
}

CUDAMOD_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      size_t count) {
    return locked_call(
        "cuGraphRemoveDependencies", [&] { remove_edges(graph, from, to, nullptr, count); }, graph,
        from, to, count);
}

CUDAMOD_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                         const CUgraphNode* to, const CUgraphEdgeData* data,
                                         size_t count) {
    return locked_call(
        "cuGraphRemoveDependencies", [&] { remove_edges(graph, from, to, data, count); }, graph,
        from, to, data, count);
}
