#include "emulator/call.h"
#include "emulator/device.h"
#include "emulator/graph_memory.h"
#include "emulator/graph_node.h"

using namespace cudamod::emulator;

CUDAMOD_API cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                 size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
    return locked_call(
        "cuGraphAddMemcpyNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_MEMCPY, nodes, nullptr, count,
                     [&] { return operation_of(copy, context); });
        },
        node, graph, nodes, count, copy, context);
}

CUDAMOD_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
    return locked_call(
        "cuGraphMemcpyNodeGetParams",
        [&] {
            require_pointer(copy, "the parameters");
            *copy = std::get<CopyOperation>(node_with<CopyOperation>(node)->operation).copy;
        },
        node, copy);
}

CUDAMOD_API cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* copy) {
    return locked_call(
        "cuGraphMemcpyNodeSetParams",
        [&] {
            require_pointer(copy, "the parameters");
            const auto node = node_with<CopyOperation>(handle);
            auto context = std::get<CopyOperation>(node->operation).context;
            node->operation = copy_operation(*copy, std::move(context));
        },
        handle, copy);
}

CUDAMOD_API cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                 size_t count, const CUDA_MEMSET_NODE_PARAMS_v1* fill,
                                 CUcontext context) {
    return locked_call(
        "cuGraphAddMemsetNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_MEMSET, nodes, nullptr, count,
                     [&] { return operation_of(fill, context); });
        },
        node, graph, nodes, count, fill, context);
}

CUDAMOD_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1* fill) {
    return locked_call(
        "cuGraphMemsetNodeGetParams",
        [&] {
            require_pointer(fill, "the parameters");
            *fill = std::get<FillOperation>(node_with<FillOperation>(node)->operation).fill;
        },
        node, fill);
}

CUDAMOD_API cuGraphMemsetNodeSetParams(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS_v1* fill) {
    return locked_call(
        "cuGraphMemsetNodeSetParams",
        [&] {
            require_pointer(fill, "the parameters");
            const auto node = node_with<FillOperation>(handle);
            auto context = std::get<FillOperation>(node->operation).context;
            node->operation = fill_operation(*fill, std::move(context));
        },
        handle, fill);
}

CUDAMOD_API cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                   size_t count, CUDA_MEM_ALLOC_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphAddMemAllocNode",
        [&] {
            require_pointer(parameters, "the parameters");
            add_node(node, graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, nodes, nullptr, count, [&] {
                auto operation = allocate_operation(*parameters);
                parameters->dptr = operation.parameters.dptr;
                return operation;
            });
        },
        node, graph, nodes, count, parameters);
}

CUDAMOD_API cuGraphMemAllocNodeGetParams(CUgraphNode handle,
                                         CUDA_MEM_ALLOC_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphMemAllocNodeGetParams",
        [&] {
            require_pointer(parameters, "the parameters");
            const auto node = node_with<AllocateOperation>(handle);
            const auto& operation = std::get<AllocateOperation>(node->operation);
            *parameters = operation.parameters;
            parameters->accessDescs = operation.access.data();
        },
        handle, parameters);
}

CUDAMOD_API cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                  size_t count, CUdeviceptr address) {
    return locked_call(
        "cuGraphAddMemFreeNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_MEM_FREE, nodes, nullptr, count,
                     [&] { return free_operation(address); });
        },
        node, graph, nodes, count, address);
}

CUDAMOD_API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
    return locked_call(
        "cuGraphMemFreeNodeGetParams",
        [&] {
            require_pointer(address, "the address");
            *address = std::get<FreeOperation>(node_with<FreeOperation>(node)->operation).address;
        },
        node, static_cast<const void*>(address));
}

CUDAMOD_API cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                         void* value) {
    return locked_call(
        "cuDeviceGetGraphMemAttribute",
        [&] {
            require_pointer(value, "the value");
            const GraphMemoryUse use = graph_memory_use(device_at(device));
            auto& answer = *static_cast<cuuint64_t*>(value);
            switch (attribute) {
            case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
                answer = use.used;
                return;
            case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
                answer = use.used_high;
                return;
            case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
                answer = use.reserved;
                return;
            case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
                answer = use.reserved_high;
                return;
            }
            fail(CUDA_ERROR_INVALID_VALUE, "Graph memory attribute %d is unknown",
                 static_cast<int>(attribute));
        },
        device, static_cast<int>(attribute), value);
}

CUDAMOD_API cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                         void* value) {
    return locked_call(
        "cuDeviceSetGraphMemAttribute",
        [&] {
            require_pointer(value, "the value");
            const bool used = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
            if (!used && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
                fail(CUDA_ERROR_INVALID_VALUE, "Graph memory attribute %d cannot be set",
                     static_cast<int>(attribute));
            if (*static_cast<const cuuint64_t*>(value))
                fail(CUDA_ERROR_INVALID_VALUE, "A high-water mark can only be set to 0");
            reset_graph_memory_high(device_at(device), used);
        },
        device, static_cast<int>(attribute), value);
}

// What no launch holds is given back at once; there is nothing to trim.
CUDAMOD_API cuDeviceGraphMemTrim(CUdevice device) {
    return locked_call("cuDeviceGraphMemTrim", [&] { device_at(device); }, device);
}
