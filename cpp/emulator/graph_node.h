#pragma once

#include "emulator/api.h"
#include "emulator/failure.h"
#include "emulator/graph.h"

namespace cudamod::emulator {

/// Operations from what callers describe nodes with; each fails as the call that takes it does.
Operation operation_of(const CUDA_KERNEL_NODE_PARAMS_v1* parameters);
Operation operation_of(const CUDA_KERNEL_NODE_PARAMS_v2* parameters);
Operation operation_of(const CUDA_MEMCPY3D* copy, CUcontext context);
Operation operation_of(const CUDA_MEMSET_NODE_PARAMS_v1* fill, CUcontext context);
Operation operation_of(const CUDA_HOST_NODE_PARAMS_v1* host);
Operation record_operation(CUevent event);
Operation wait_operation(CUevent event);
Operation child_operation(CUgraph graph);

/// The same of a generic node; writes back what the node decides (the address of memory).
Operation operation_of(CUgraphNodeParams* parameters);

/// The node, which must have that operation; fails with CUDA_ERROR_INVALID_VALUE.
template <class Kind>
std::shared_ptr<GraphNode> node_with(CUgraphNode handle) {
    auto node = find_node(handle);
    if (!std::holds_alternative<Kind>(node->operation)) {
        fail(CUDA_ERROR_INVALID_VALUE, "Node %p is a %s node", static_cast<void*>(handle),
             name_of(type_of(node->operation)));
    }
    return node;
}

/// The operation with other attributes, checked as a launch with them is.
Operation with_attributes(const KernelOperation& operation,
                          std::vector<CUlaunchAttribute> attributes);

/// Replaces a node's operation by one of the same type; fails with CUDA_ERROR_INVALID_VALUE.
void set_operation(CUgraphNode handle, Operation operation);

/// Adds a node with the caller's dependencies. The operation is made last, so that nothing is left
/// behind when something before is refused.
template <class Make>
void add_node(CUgraphNode* handle, CUgraph graph_handle, CUgraphNodeType type,
              const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
              const Make& make) {
    require_pointer(handle, "the node");
    const auto graph = find_graph(graph_handle);
    auto dependencies = read_dependencies(*graph, type, nodes, data, count);
    *handle = graph->add(make(), std::move(dependencies))->handle;
}

} // namespace cudamod::emulator
