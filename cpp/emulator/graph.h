#pragma once

#include "emulator/api.h"
#include "emulator/operation.h"
#include "emulator/user_object.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace cudamod::emulator {

struct GraphExec;
struct GraphNode;

/// An edge, seen from the node that waits.
struct Dependency {
    GraphNode* node = nullptr;
    CUgraphEdgeData data{};
};

struct GraphNode {
    CUgraphNode handle = nullptr;
    Graph* graph = nullptr;
    std::uint64_t id = 0;       ///< never reused
    std::uint64_t original = 0; ///< of a clone: the id of what it is a clone of
    Operation operation;
    std::vector<Dependency> dependencies;
    std::vector<void*> pointers; ///< what the getter of kernel parameters gave out
};

/// Nodes in the order of their creation. Guarded by the driver's lock.
struct Graph {
    CUgraph handle = nullptr;
    std::vector<std::shared_ptr<GraphNode>> nodes;
    std::shared_ptr<UserReferences> references;
    std::weak_ptr<GraphExec> executable; ///< the latest; memory nodes allow one at a time
    bool child = false;                  ///< belongs to a node, which destroys it

    Graph();
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    /// Adds a node with valid dependencies.
    std::shared_ptr<GraphNode> add(Operation operation, std::vector<Dependency> dependencies);

    bool has_memory_nodes() const;
};

/// A graph with a handle.
std::shared_ptr<Graph> make_graph();

/// A copy, node by node in the same order; each knows its original. Fails with
/// CUDA_ERROR_NOT_SUPPORTED for memory nodes.
std::shared_ptr<Graph> clone_graph(const Graph& graph);

/// The objects behind handles; fail with CUDA_ERROR_INVALID_VALUE.
std::shared_ptr<Graph> find_graph(CUgraph handle);
std::shared_ptr<GraphNode> find_node(CUgraphNode handle);

/// Positions in an order that respects every dependency. Fails with CUDA_ERROR_INVALID_VALUE where
/// there is a cycle; `culprit` is then a node of it.
std::vector<std::size_t> topological_order(const Graph& graph, CUgraphNode* culprit);

/// Fails with CUDA_ERROR_INVALID_VALUE unless an edge of the graph may lead from the node to one of
/// that type.
void require_edge(const Graph& graph, const GraphNode& from, CUgraphNodeType to,
                  const CUgraphEdgeData& data);

/// The caller's dependencies of a node of that type, checked against the graph.
std::vector<Dependency> read_dependencies(const Graph& graph, CUgraphNodeType type,
                                          const CUgraphNode* nodes, const CUgraphEdgeData* data,
                                          std::size_t count);

/// An operation as another graph owns it: a child graph is copied.
Operation copy_of(const Operation& operation);

} // namespace cudamod::emulator
