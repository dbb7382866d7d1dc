#include "emulator/graph_exec.h"

#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/context.h"
#include "emulator/event.h"
#include "emulator/graph_node.h"
#include "emulator/objects.h"

#include <algorithm>
#include <map>

namespace cudamod::emulator {
namespace {

ExecNode* find_in(ExecGraph& graph, std::uint64_t id) {
    for (ExecNode& node : graph.nodes) {
        if (node.id == id) return &node;
        if (node.child) {
            if (ExecNode* const found = find_in(*node.child, id)) return found;
        }
    }
    return nullptr;
}

/// Appends the graph's steps, all after those in `entry`; returns its end, a step that comes after
/// all of them.
std::size_t append_steps(const ExecGraph& graph, const std::vector<std::size_t>& entry,
                         std::vector<ExecStep>& steps) {
    std::vector<std::size_t> step(graph.nodes.size());
    std::vector<std::size_t> all = entry;
    for (const std::size_t position : graph.order) {
        const ExecNode& node = graph.nodes[position];
        std::vector<std::size_t> dependencies = entry;
        for (const std::size_t before : node.dependencies)
            dependencies.push_back(step[before]);
        if (node.child) {
            step[position] = append_steps(*node.child, dependencies, steps);
        } else {
            step[position] = steps.size();
            steps.push_back({node.enabled ? node.operation : nullptr, std::move(dependencies)});
        }
        all.push_back(step[position]);
    }
    steps.push_back({nullptr, std::move(all)});
    return steps.size() - 1;
}

} // namespace

std::vector<ExecStep> steps_of(const ExecGraph& graph) {
    std::vector<ExecStep> steps;
    append_steps(graph, {}, steps);
    return steps;
}

ExecGraph compile(const Graph& graph, CUgraphNode* culprit) {
    ExecGraph compiled;
    compiled.order = topological_order(graph, culprit);
    std::map<const GraphNode*, std::size_t> position;
    for (const auto& node : graph.nodes) {
        position[node.get()] = compiled.nodes.size();
        ExecNode& made = compiled.nodes.emplace_back();
        made.id = node->id;
        if (const auto* child = std::get_if<ChildOperation>(&node->operation)) {
            made.child = std::make_shared<ExecGraph>(compile(*child->graph, culprit));
            made.operation = std::make_shared<Operation>(ChildOperation{});
        } else {
            made.operation = std::make_shared<Operation>(node->operation);
        }
    }
    for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
        for (const Dependency& dependency : graph.nodes[index]->dependencies)
            compiled.nodes[index].dependencies.push_back(position[dependency.node]);
    }
    return compiled;
}

std::shared_ptr<GraphExec> find_exec(CUgraphExec handle) {
    auto exec = objects().graph_execs.find(handle);
    if (!exec) {
        fail(CUDA_ERROR_INVALID_VALUE, "Executable graph %p %s", static_cast<void*>(handle),
             objects().graph_execs.is_stale(handle) ? "was destroyed" : "does not exist");
    }
    return exec;
}

ExecNode& node_in(GraphExec& exec, CUgraphNode handle) {
    const auto node = find_node(handle);
    ExecNode* const found = find_in(exec.body, node->id);
    if (!found)
        fail(CUDA_ERROR_INVALID_VALUE, "The executable was not made with node %p",
             static_cast<void*>(handle));
    return *found;
}

CUgraphExecUpdateResult change_between(const Operation& before, const Operation& after) {
    if (before.index() != after.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (const auto* kernel = std::get_if<KernelOperation>(&before)) {
        const auto& changed = std::get<KernelOperation>(after);
        if (kernel->launch.function->module->context != changed.launch.function->module->context)
            return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
        if (kernel->launch.cooperative != changed.launch.cooperative)
            return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    } else if (const auto* copy = std::get_if<CopyOperation>(&before)) {
        const auto& changed = std::get<CopyOperation>(after);
        if (copy->context != changed.context ||
            copy->copy.srcMemoryType != changed.copy.srcMemoryType ||
            copy->copy.dstMemoryType != changed.copy.dstMemoryType)
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    } else if (const auto* fill = std::get_if<FillOperation>(&before)) {
        const auto& changed = std::get<FillOperation>(after);
        if (fill->context != changed.context ||
            (fill->fill.height > 1) != (changed.fill.height > 1))
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    } else if (const auto* memory = std::get_if<AllocateOperation>(&before)) {
        if (memory->memory != std::get<AllocateOperation>(after).memory)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    } else if (const auto* free = std::get_if<FreeOperation>(&before)) {
        if (free->address != std::get<FreeOperation>(after).address)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUgraphExecUpdateResult compare(const ExecGraph& before, const ExecGraph& after,
                                std::size_t& position) {
    position = 0;
    if (before.nodes.size() != after.nodes.size()) {
        position = std::min(before.nodes.size(), after.nodes.size());
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    for (; position < before.nodes.size(); ++position) {
        const ExecNode &mine = before.nodes[position], &other = after.nodes[position];
        const auto change = change_between(*mine.operation, *other.operation);
        if (change != CU_GRAPH_EXEC_UPDATE_SUCCESS) return change;
        auto mine_sorted = mine.dependencies, other_sorted = other.dependencies;
        std::sort(mine_sorted.begin(), mine_sorted.end());
        std::sort(other_sorted.begin(), other_sorted.end());
        if (mine_sorted != other_sorted) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (mine.child) {
            std::size_t inner = 0;
            const auto nested = compare(*mine.child, *other.child, inner);
            if (nested != CU_GRAPH_EXEC_UPDATE_SUCCESS) return nested;
        }
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

void adopt(ExecGraph& before, const ExecGraph& after) {
    for (std::size_t index = 0; index < before.nodes.size(); ++index) {
        before.nodes[index].operation = after.nodes[index].operation;
        if (before.nodes[index].child) adopt(*before.nodes[index].child, *after.nodes[index].child);
    }
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

constexpr cuuint64_t kPlainFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

void instantiate(CUgraphExec* handle, CUgraph graph_handle, cuuint64_t flags,
                 CUgraphNode* culprit) {
    require_pointer(handle, "the executable");
    const auto graph = find_graph(graph_handle);
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        fail(CUDA_ERROR_NOT_SUPPORTED, "Launches of graphs by the device are not emulated");
    if (flags & ~kPlainFlags)
        fail(CUDA_ERROR_INVALID_VALUE, "Instantiation flags 0x%llx are unknown",
             static_cast<unsigned long long>(flags));
    if (under_capture(*graph))
        fail(CUDA_ERROR_INVALID_VALUE, "A stream is being captured into the graph");
    if (graph->has_memory_nodes() && graph->executable.lock()) {
        fail(CUDA_ERROR_NOT_SUPPORTED,
             "A graph with memory nodes has one executable at a time, and there is one");
    }
    auto exec = std::make_shared<GraphExec>();
    exec->body = compile(*graph, culprit);
    exec->flags = flags;
    exec->references = graph->references->again();
    graph->executable = exec;
    *handle = exec->handle = objects().graph_execs.insert(exec);
}

void update(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo& info) {
    info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const auto exec = find_exec(exec_handle);
    const auto graph = find_graph(graph_handle);
    const ExecGraph after = compile(*graph, &info.errorNode);
    std::size_t position = 0;
    info.result = compare(exec->body, after, position);
    if (info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        if (position < graph->nodes.size()) info.errorNode = graph->nodes[position]->handle;
        fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
             "The graph differs from the executable's in more than what can be updated (%d)",
             static_cast<int>(info.result));
    }
    adopt(exec->body, after);
    exec->references = graph->references->again();
}

} // namespace

CUDAMOD_API cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* culprit, char* log,
                               size_t bytes) {
    return locked_call(
        "cuGraphInstantiate",
        [&] {
            if (log && bytes) *log = '\0';
            instantiate(exec, graph, 0, culprit);
        },
        exec, graph, culprit, static_cast<const void*>(log), bytes);
}
CUDAMOD_API_ALIAS(cuGraphInstantiate_v2, cuGraphInstantiate);

CUDAMOD_API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                        unsigned long long flags) {
    return locked_call(
        "cuGraphInstantiateWithFlags", [&] { instantiate(exec, graph, flags, nullptr); }, exec,
        graph, flags);
}

CUDAMOD_API cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    return locked_call(
        "cuGraphInstantiateWithParams",
        [&] {
            require_pointer(parameters, "the parameters");
            parameters->hErrNode_out = nullptr;
            parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
            const auto flags = parameters->flags & ~cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
            try {
                instantiate(exec, graph, flags, &parameters->hErrNode_out);
            } catch (const Failure&) {
                if (parameters->hErrNode_out)
                    parameters->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
                throw;
            }
            parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
        },
        exec, graph, parameters);
}

CUDAMOD_API cuGraphExecDestroy(CUgraphExec handle) {
    return locked_call(
        "cuGraphExecDestroy",
        [&] {
            find_exec(handle);
            objects().graph_execs.erase(handle);
        },
        handle);
}

CUDAMOD_API cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
    return locked_call(
        "cuGraphExecGetFlags",
        [&] {
            require_pointer(flags, "the flags");
            *flags = find_exec(exec)->flags;
        },
        exec, static_cast<const void*>(flags));
}

CUDAMOD_API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* culprit,
                              CUgraphExecUpdateResult* result) {
    return locked_call(
        "cuGraphExecUpdate",
        [&] {
            CUgraphExecUpdateResultInfo info;
            const auto answer = [&] {
                if (culprit) *culprit = info.errorNode;
                if (result) *result = info.result;
            };
            try {
                update(exec, graph, info);
            } catch (const Failure&) {
                answer();
                throw;
            }
            answer();
        },
        exec, graph, culprit, result);
}

CUDAMOD_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                 CUgraphExecUpdateResultInfo* info) {
    return locked_call(
        "cuGraphExecUpdate",
        [&] {
            require_pointer(info, "the result");
            update(exec, graph, *info);
        },
        exec, graph, info);
}
