#include "emulator/graph.h"

#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/objects.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

namespace cudamod::emulator {
namespace {

std::atomic<std::uint64_t> next_node_id{1};

} // namespace

Graph::Graph() : references(std::make_shared<UserReferences>()) {}

Graph::~Graph() {
    for (const auto& node : nodes) {
        if (const auto* child = std::get_if<ChildOperation>(&node->operation))
            objects().graphs.erase(child->graph->handle);
        objects().graph_nodes.erase(node->handle);
    }
}

std::shared_ptr<GraphNode> Graph::add(Operation operation, std::vector<Dependency> dependencies) {
    auto node = std::make_shared<GraphNode>();
    node->graph = this;
    node->id = next_node_id++;
    node->operation = std::move(operation);
    node->dependencies = std::move(dependencies);
    node->handle = objects().graph_nodes.insert(node);
    nodes.push_back(node);
    return node;
}

bool Graph::has_memory_nodes() const {
    return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
        const CUgraphNodeType type = type_of(node->operation);
        return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    });
}

std::shared_ptr<Graph> make_graph() {
    auto graph = std::make_shared<Graph>();
    graph->handle = objects().graphs.insert(graph);
    return graph;
}

Operation copy_of(const Operation& operation) {
    const auto* child = std::get_if<ChildOperation>(&operation);
    if (!child) return operation;
    auto copy = clone_graph(*child->graph);
    copy->child = true;
    return ChildOperation{std::move(copy)};
}

std::shared_ptr<Graph> clone_graph(const Graph& graph) {
    if (graph.has_memory_nodes())
        fail(CUDA_ERROR_NOT_SUPPORTED, "A graph with memory nodes cannot be copied");
    auto clone = make_graph();
    try {
        std::map<const GraphNode*, GraphNode*> twins;
        for (const auto& node : graph.nodes) {
            const auto twin = clone->add(copy_of(node->operation), {});
            twin->original = node->id;
            twins[node.get()] = twin.get();
        }
        for (const auto& node : graph.nodes) {
            for (const Dependency& dependency : node->dependencies)
                twins[node.get()]->dependencies.push_back(
                    {twins[dependency.node], dependency.data});
        }
        clone->references = graph.references->again();
    } catch (...) {
        objects().graphs.erase(clone->handle);
        throw;
    }
    return clone;
}

std::shared_ptr<Graph> find_graph(CUgraph handle) {
    auto graph = objects().graphs.find(handle);
    if (!graph) {
        fail(CUDA_ERROR_INVALID_VALUE, "Graph %p %s", static_cast<void*>(handle),
             objects().graphs.is_stale(handle) ? "was destroyed" : "does not exist");
    }
    return graph;
}

std::shared_ptr<GraphNode> find_node(CUgraphNode handle) {
    auto node = objects().graph_nodes.find(handle);
    if (!node) {
        fail(CUDA_ERROR_INVALID_VALUE, "Graph node %p %s", static_cast<void*>(handle),
             objects().graph_nodes.is_stale(handle) ? "was destroyed" : "does not exist");
    }
    return node;
}

std::vector<std::size_t> topological_order(const Graph& graph, CUgraphNode* culprit) {
    std::map<const GraphNode*, std::size_t> position;
    for (std::size_t index = 0; index < graph.nodes.size(); ++index)
        position[graph.nodes[index].get()] = index;
    std::vector<std::size_t> waiting(graph.nodes.size());
    std::vector<std::vector<std::size_t>> dependents(graph.nodes.size());
    std::set<std::size_t> ready;
    for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
        waiting[index] = graph.nodes[index]->dependencies.size();
        for (const Dependency& dependency : graph.nodes[index]->dependencies)
            dependents[position[dependency.node]].push_back(index);
        if (!waiting[index]) ready.insert(index);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
        const std::size_t index = *ready.begin();
        ready.erase(ready.begin());
        order.push_back(index);
        for (const std::size_t dependent : dependents[index]) {
            if (!--waiting[dependent]) ready.insert(dependent);
        }
    }
    if (order.size() == graph.nodes.size()) return order;
    const auto stuck =
        std::find_if(waiting.begin(), waiting.end(), [](std::size_t count) { return count > 0; });
    if (culprit) *culprit = graph.nodes[static_cast<std::size_t>(stuck - waiting.begin())]->handle;
    fail(CUDA_ERROR_INVALID_VALUE, "The graph's dependencies form a cycle");
}

std::vector<Dependency> read_dependencies(const Graph& graph, CUgraphNodeType type,
                                          const CUgraphNode* nodes, const CUgraphEdgeData* data,
                                          std::size_t count) {
    if (count) require_pointer(nodes, "the dependencies");
    std::vector<Dependency> dependencies;
    for (std::size_t index = 0; index < count; ++index) {
        const auto node = find_node(nodes[index]);
        for (const Dependency& earlier : dependencies) {
            if (earlier.node == node.get())
                fail(CUDA_ERROR_INVALID_VALUE, "Dependency %zu is given twice", index);
        }
        dependencies.push_back({node.get(), data ? data[index] : CUgraphEdgeData{}});
        require_edge(graph, *node, type, dependencies.back().data);
    }
    return dependencies;
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void get_nodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count, bool roots) {
    require_pointer(count, "the count");
    const auto graph = find_graph(handle);
    std::vector<CUgraphNode> all;
    for (const auto& node : graph->nodes) {
        if (!roots || node->dependencies.empty()) all.push_back(node->handle);
    }
    if (!nodes) {
        *count = all.size();
        return;
    }
    for (std::size_t index = 0; index < *count; ++index)
        nodes[index] = index < all.size() ? all[index] : nullptr;
    *count = std::min(*count, all.size());
}

} // namespace

CUDAMOD_API cuGraphCreate(CUgraph* graph, unsigned int flags) {
    return locked_call(
        "cuGraphCreate",
        [&] {
            require_pointer(graph, "the graph");
            if (flags) fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %u", flags);
            *graph = make_graph()->handle;
        },
        graph, flags);
}

CUDAMOD_API cuGraphDestroy(CUgraph handle) {
    return locked_call(
        "cuGraphDestroy",
        [&] {
            const auto graph = find_graph(handle);
            if (graph->child)
                fail(CUDA_ERROR_INVALID_VALUE, "The graph belongs to a node of another");
            if (under_capture(*graph))
                fail(CUDA_ERROR_INVALID_VALUE, "A stream is being captured into the graph");
            objects().graphs.erase(handle);
        },
        handle);
}

CUDAMOD_API cuGraphDestroyNode(CUgraphNode handle) {
    return locked_call(
        "cuGraphDestroyNode",
        [&] {
            const auto node = find_node(handle);
            Graph& graph = *node->graph;
            if (graph.has_memory_nodes())
                fail(CUDA_ERROR_NOT_SUPPORTED, "Nodes of a graph with memory nodes stay");
            if (under_capture(graph))
                fail(CUDA_ERROR_INVALID_VALUE, "A stream is being captured into the graph");
            for (const auto& other : graph.nodes) {
                std::erase_if(other->dependencies,
                              [&](const Dependency& edge) { return edge.node == node.get(); });
            }
            if (const auto* child = std::get_if<ChildOperation>(&node->operation))
                objects().graphs.erase(child->graph->handle);
            objects().graph_nodes.erase(handle);
            graph.nodes.erase(std::find(graph.nodes.begin(), graph.nodes.end(), node));
        },
        handle);
}

CUDAMOD_API cuGraphClone(CUgraph* clone, CUgraph original) {
    return locked_call(
        "cuGraphClone",
        [&] {
            require_pointer(clone, "the clone");
            *clone = clone_graph(*find_graph(original))->handle;
        },
        clone, original);
}

CUDAMOD_API cuGraphNodeFindInClone(CUgraphNode* twin, CUgraphNode original, CUgraph clone) {
    return locked_call(
        "cuGraphNodeFindInClone",
        [&] {
            require_pointer(twin, "the node");
            const auto node = find_node(original);
            for (const auto& candidate : find_graph(clone)->nodes) {
                if (candidate->original != node->id) continue;
                *twin = candidate->handle;
                return;
            }
            fail(CUDA_ERROR_INVALID_VALUE, "The graph has no clone of node %p",
                 static_cast<void*>(original));
        },
        twin, original, clone);
}

CUDAMOD_API cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    return locked_call(
        "cuGraphGetNodes", [&] { get_nodes(graph, nodes, count, false); }, graph, nodes, count);
}

CUDAMOD_API cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    return locked_call(
        "cuGraphGetRootNodes", [&] { get_nodes(graph, nodes, count, true); }, graph, nodes, count);
}
