#include "emulator/graph_node.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/event.h"
#include "emulator/objects.h"

namespace cudamod::emulator {
namespace {

std::shared_ptr<Context> given_or_current(CUcontext handle) {
    if (!handle) return current_context();
    auto context = find_context(handle);
    require_healthy(*context);
    return context;
}

} // namespace

Operation operation_of(CUgraphNodeParams* parameters) {
    require_pointer(parameters, "the parameters");
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const auto& given = parameters->kernel;
        const CUDA_KERNEL_NODE_PARAMS_v2 kernel{
            given.func,         given.gridDimX,  given.gridDimY,  given.gridDimZ,
            given.blockDimX,    given.blockDimY, given.blockDimZ, given.sharedMemBytes,
            given.kernelParams, given.extra,     given.kern,      given.ctx};
        return operation_of(&kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return operation_of(&parameters->memcpy.copyParams, parameters->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const auto& given = parameters->memset;
        const CUDA_MEMSET_NODE_PARAMS_v1 fill{given.dst,         given.pitch, given.value,
                                              given.elementSize, given.width, given.height};
        return operation_of(&fill, given.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
        const CUDA_HOST_NODE_PARAMS_v1 host{parameters->host.fn, parameters->host.userData};
        return operation_of(&host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return child_operation(parameters->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return EmptyOperation{};
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return wait_operation(parameters->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return record_operation(parameters->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        auto& given = parameters->alloc;
        auto operation = allocate_operation(
            {given.poolProps, given.accessDescs, given.accessDescCount, given.bytesize, 0});
        given.dptr = operation.parameters.dptr;
        return operation;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return free_operation(parameters->free.dptr);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        fail(CUDA_ERROR_NOT_SUPPORTED, "Nodes of type %d are not emulated",
             static_cast<int>(parameters->type));
    default:
        fail(CUDA_ERROR_INVALID_VALUE, "Node type %d is unknown",
             static_cast<int>(parameters->type));
    }
}

Operation operation_of(const CUDA_MEMCPY3D* copy, CUcontext context) {
    require_pointer(copy, "the parameters");
    return copy_operation(*copy, given_or_current(context));
}

Operation operation_of(const CUDA_MEMSET_NODE_PARAMS_v1* fill, CUcontext context) {
    require_pointer(fill, "the parameters");
    return fill_operation(*fill, given_or_current(context));
}

Operation operation_of(const CUDA_HOST_NODE_PARAMS_v1* host) {
    require_pointer(host, "the parameters");
    if (!host->fn) fail(CUDA_ERROR_INVALID_VALUE, "The host function must not be NULL");
    return HostOperation{host->fn, host->userData};
}

Operation record_operation(CUevent event) {
    return RecordOperation{find_event(event)};
}

Operation wait_operation(CUevent event) {
    return WaitOperation{find_event(event)};
}

Operation child_operation(CUgraph handle) {
    auto copy = clone_graph(*find_graph(handle));
    copy->child = true;
    return ChildOperation{std::move(copy)};
}

void set_operation(CUgraphNode handle, Operation operation) {
    const auto node = find_node(handle);
    if (node->operation.index() != operation.index()) {
        fail(CUDA_ERROR_INVALID_VALUE, "Node %p is a %s node, not a %s node",
             static_cast<void*>(handle), name_of(type_of(node->operation)),
             name_of(type_of(operation)));
    }
    node->operation = std::move(operation);
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void add_generic(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                 const CUgraphEdgeData* data, std::size_t count, CUgraphNodeParams* parameters) {
    require_pointer(parameters, "the parameters");
    add_node(node, graph, parameters->type, nodes, data, count,
             [&] { return operation_of(parameters); });
}

} // namespace

CUDAMOD_API cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes, size_t count,
                           CUgraphNodeParams* parameters) {
    return locked_call(
        "cuGraphAddNode", [&] { add_generic(node, graph, nodes, nullptr, count, parameters); },
        node, graph, nodes, count, parameters);
}

CUDAMOD_API cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                              const CUgraphEdgeData* data, size_t count,
                              CUgraphNodeParams* parameters) {
    return locked_call(
        "cuGraphAddNode", [&] { add_generic(node, graph, nodes, data, count, parameters); }, node,
        graph, nodes, data, count, parameters);
}

CUDAMOD_API cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
    return locked_call(
        "cuGraphNodeSetParams",
        [&] {
            require_pointer(parameters, "the parameters");
            const auto type = type_of(find_node(node)->operation);
            if (type != parameters->type)
                fail(CUDA_ERROR_INVALID_VALUE, "The node is a %s node", name_of(type));
            if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
                type == CU_GRAPH_NODE_TYPE_GRAPH)
                fail(CUDA_ERROR_NOT_SUPPORTED, "A %s node cannot be changed", name_of(type));
            set_operation(node, operation_of(parameters));
        },
        node, parameters);
}

CUDAMOD_API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
    return locked_call(
        "cuGraphNodeGetType",
        [&] {
            require_pointer(type, "the type");
            *type = type_of(find_node(node)->operation);
        },
        node, type);
}

CUDAMOD_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                size_t count) {
    return locked_call(
        "cuGraphAddEmptyNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_EMPTY, nodes, nullptr, count,
                     [] { return EmptyOperation{}; });
        },
        node, graph, nodes, count);
}

CUDAMOD_API cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                     size_t count, CUgraph child) {
    return locked_call(
        "cuGraphAddChildGraphNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_GRAPH, nodes, nullptr, count,
                     [&] { return child_operation(child); });
        },
        node, graph, nodes, count, child);
}

CUDAMOD_API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
    return locked_call(
        "cuGraphChildGraphNodeGetGraph",
        [&] {
            require_pointer(graph, "the graph");
            *graph =
                std::get<ChildOperation>(node_with<ChildOperation>(node)->operation).graph->handle;
        },
        node, graph);
}

CUDAMOD_API cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                               size_t count, const CUDA_HOST_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphAddHostNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_HOST, nodes, nullptr, count,
                     [&] { return operation_of(parameters); });
        },
        node, graph, nodes, count, parameters);
}

CUDAMOD_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphHostNodeGetParams",
        [&] {
            require_pointer(parameters, "the parameters");
            const auto& host = std::get<HostOperation>(node_with<HostOperation>(node)->operation);
            *parameters = {host.function, host.data};
        },
        node, parameters);
}

CUDAMOD_API cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphHostNodeSetParams", [&] { set_operation(node, operation_of(parameters)); }, node,
        parameters);
}

CUDAMOD_API cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                      size_t count, CUevent event) {
    return locked_call(
        "cuGraphAddEventRecordNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD, nodes, nullptr, count,
                     [&] { return record_operation(event); });
        },
        node, graph, nodes, count, event);
}

CUDAMOD_API cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                    size_t count, CUevent event) {
    return locked_call(
        "cuGraphAddEventWaitNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_WAIT_EVENT, nodes, nullptr, count,
                     [&] { return wait_operation(event); });
        },
        node, graph, nodes, count, event);
}

CUDAMOD_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
    return locked_call(
        "cuGraphEventRecordNodeGetEvent",
        [&] {
            require_pointer(event, "the event");
            *event = std::get<RecordOperation>(node_with<RecordOperation>(node)->operation)
                         .event->handle;
        },
        node, event);
}

CUDAMOD_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
    return locked_call(
        "cuGraphEventWaitNodeGetEvent",
        [&] {
            require_pointer(event, "the event");
            *event =
                std::get<WaitOperation>(node_with<WaitOperation>(node)->operation).event->handle;
        },
        node, event);
}

CUDAMOD_API cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
    return locked_call(
        "cuGraphEventRecordNodeSetEvent", [&] { set_operation(node, record_operation(event)); },
        node, event);
}

CUDAMOD_API cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
    return locked_call(
        "cuGraphEventWaitNodeSetEvent", [&] { set_operation(node, wait_operation(event)); }, node,
        event);
}
