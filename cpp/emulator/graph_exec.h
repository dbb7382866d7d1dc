#pragma once

#include "emulator/api.h"
#include "emulator/graph.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace cudamod::emulator {

class Mark;

struct ExecGraph;

/// A node as an executable has it: apart from the graph, which may change or go.
struct ExecNode {
    std::uint64_t id = 0; ///< of the node that it was made of
    std::shared_ptr<const Operation> operation;
    std::vector<std::size_t> dependencies; ///< positions
    bool enabled = true;
    std::shared_ptr<ExecGraph> child; ///< of a child graph node
};

struct ExecGraph {
    std::vector<ExecNode> nodes;    ///< in the graph's order
    std::vector<std::size_t> order; ///< positions, each after its dependencies
};

/// An executable graph. Guarded by the driver's lock; a launch works on a copy of what it runs.
struct GraphExec {
    CUgraphExec handle = nullptr;
    ExecGraph body;
    cuuint64_t flags = 0;
    std::shared_ptr<UserReferences> references;
    std::mutex launching; ///< launches enter a stream one after the other; before the driver's
    std::shared_ptr<Mark> last; ///< the end of the latest launch, for which the next one waits
};

/// The executable's own form of a graph; fails with CUDA_ERROR_INVALID_VALUE where there is a
/// cycle.
ExecGraph compile(const Graph& graph, CUgraphNode* culprit);

/// The executable behind a handle; fails with CUDA_ERROR_INVALID_VALUE.
std::shared_ptr<GraphExec> find_exec(CUgraphExec handle);

/// The executable's node that was made of this node, or of one in a child graph of it; fails with
/// CUDA_ERROR_INVALID_VALUE.
ExecNode& node_in(GraphExec& exec, CUgraphNode handle);

/// Why an executable's operation cannot become the other one; success when it can.
CUgraphExecUpdateResult change_between(const Operation& before, const Operation& after);

/// Whether an executable can become the other; the position of the first node that cannot.
CUgraphExecUpdateResult compare(const ExecGraph& before, const ExecGraph& after,
                                std::size_t& position);

/// Takes over the operations of one that compare() found fit.
void adopt(ExecGraph& before, const ExecGraph& after);

/// What a launch runs of an executable, after these of its steps; null: nothing, but for the order.
struct ExecStep {
    std::shared_ptr<const Operation> operation;
    std::vector<std::size_t> dependencies;
};

/// The steps of a launch, in order: the nodes, those of child graphs in their node's place.
std::vector<ExecStep> steps_of(const ExecGraph& graph);

} // namespace cudamod::emulator
