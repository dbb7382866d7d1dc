#include "emulator/call.h"
#include "emulator/graph_exec.h"
#include "emulator/graph_node.h"

using namespace cudamod::emulator;

namespace {

void update_node(CUgraphExec exec_handle, CUgraphNode node_handle, Operation operation) {
    const auto exec = find_exec(exec_handle);
    ExecNode& node = node_in(*exec, node_handle);
    if (change_between(*node.operation, operation) != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        fail(CUDA_ERROR_INVALID_VALUE, "An executable's %s node cannot change in this way",
             name_of(type_of(*node.operation)));
    }
    node.operation = std::make_shared<Operation>(std::move(operation));
}

/// A kernel node's parameters; its attributes are the node's and stay.
void update_kernel(CUgraphExec exec_handle, CUgraphNode node_handle, Operation operation) {
    const auto exec = find_exec(exec_handle);
    const auto* before = std::get_if<KernelOperation>(node_in(*exec, node_handle).operation.get());
    if (before && !before->attributes.empty())
        operation = with_attributes(std::get<KernelOperation>(operation), before->attributes);
    update_node(exec_handle, node_handle, std::move(operation));
}

ExecNode& node_that_can_rest(GraphExec& exec, CUgraphNode handle) {
    ExecNode& node = node_in(exec, handle);
    const CUgraphNodeType type = type_of(*node.operation);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
        type != CU_GRAPH_NODE_TYPE_MEMSET)
        fail(CUDA_ERROR_INVALID_VALUE, "A %s node cannot be disabled", name_of(type));
    return node;
}

} // namespace

CUDAMOD_API cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphExecKernelNodeSetParams",
        [&] { update_kernel(exec, node, operation_of(parameters)); }, exec, node, parameters);
}

CUDAMOD_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return locked_call(
        "cuGraphExecKernelNodeSetParams",
        [&] { update_kernel(exec, node, operation_of(parameters)); }, exec, node, parameters);
}

CUDAMOD_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_MEMCPY3D* copy, CUcontext context) {
    return locked_call(
        "cuGraphExecMemcpyNodeSetParams",
        [&] { update_node(exec, node, operation_of(copy, context)); }, exec, node, copy, context);
}

CUDAMOD_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_MEMSET_NODE_PARAMS_v1* fill,
                                           CUcontext context) {
    return locked_call(
        "cuGraphExecMemsetNodeSetParams",
        [&] { update_node(exec, node, operation_of(fill, context)); }, exec, node, fill, context);
}

CUDAMOD_API cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                         const CUDA_HOST_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphExecHostNodeSetParams", [&] { update_node(exec, node, operation_of(parameters)); },
        exec, node, parameters);
}

CUDAMOD_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    return locked_call(
        "cuGraphExecEventRecordNodeSetEvent",
        [&] { update_node(exec, node, record_operation(event)); }, exec, node, event);
}

CUDAMOD_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
    return locked_call(
        "cuGraphExecEventWaitNodeSetEvent", [&] { update_node(exec, node, wait_operation(event)); },
        exec, node, event);
}

CUDAMOD_API cuGraphExecChildGraphNodeSetParams(CUgraphExec exec_handle, CUgraphNode node_handle,
                                               CUgraph graph) {
    return locked_call(
        "cuGraphExecChildGraphNodeSetParams",
        [&] {
            const auto exec = find_exec(exec_handle);
            ExecNode& node = node_in(*exec, node_handle);
            const auto compiled = compile(*find_graph(graph), nullptr);
            std::size_t position = 0;
            if (!node.child || compare(*node.child, compiled, position))
                fail(CUDA_ERROR_INVALID_VALUE, "The child graph differs in more than parameters");
            adopt(*node.child, compiled);
        },
        exec_handle, node_handle, graph);
}

CUDAMOD_API cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                     CUgraphNodeParams* parameters) {
    return locked_call(
        "cuGraphExecNodeSetParams",
        [&] {
            require_pointer(parameters, "the parameters");
            const CUgraphNodeType type = parameters->type;
            if (type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
                type == CU_GRAPH_NODE_TYPE_MEM_FREE || type == CU_GRAPH_NODE_TYPE_EMPTY)
                fail(CUDA_ERROR_NOT_SUPPORTED, "An executable's %s node does not change",
                     name_of(type));
            auto operation = operation_of(parameters);
            if (type == CU_GRAPH_NODE_TYPE_KERNEL)
                update_kernel(exec, node, std::move(operation));
            else
                update_node(exec, node, std::move(operation));
        },
        exec, node, parameters);
}

CUDAMOD_API cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode handle,
                                  unsigned int enabled) {
    return locked_call(
        "cuGraphNodeSetEnabled",
        [&] {
            const auto exec = find_exec(exec_handle);
            node_that_can_rest(*exec, handle).enabled = enabled != 0;
        },
        exec_handle, handle, enabled);
}

CUDAMOD_API cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode handle,
                                  unsigned int* enabled) {
    return locked_call(
        "cuGraphNodeGetEnabled",
        [&] {
            require_pointer(enabled, "the answer");
            const auto exec = find_exec(exec_handle);
            *enabled = node_that_can_rest(*exec, handle).enabled;
        },
        exec_handle, handle, enabled);
}
