#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/graph_node.h"

#include <algorithm>

namespace cudamod::emulator {
namespace {

template <class Parameters>
LaunchRequest request_from(const Parameters& parameters) {
    LaunchRequest request;
    request.function = parameters.func;
    request.grid = {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ};
    request.block = {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ};
    request.dynamic_shared = parameters.sharedMemBytes;
    request.parameters = parameters.kernelParams;
    request.extra = parameters.extra;
    return request;
}

} // namespace

Operation operation_of(const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    require_pointer(parameters, "the parameters");
    return kernel_operation(request_from(*parameters), current_context());
}

Operation operation_of(const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    require_pointer(parameters, "the parameters");
    if (!parameters->func == !parameters->kern)
        fail(CUDA_ERROR_INVALID_VALUE, "Either func or kern must be given");
    LaunchRequest request = request_from(*parameters);
    if (parameters->kern) request.function = reinterpret_cast<CUfunction>(parameters->kern);
    const auto context = parameters->ctx ? find_context(parameters->ctx) : current_context();
    require_healthy(*context);
    auto operation = kernel_operation(request, context);
    operation.by_kernel = parameters->kern != nullptr;
    return operation;
}

Operation with_attributes(const KernelOperation& operation,
                          std::vector<CUlaunchAttribute> attributes) {
    std::vector<void*> pointers;
    LaunchRequest request = request_of(operation, pointers);
    request.attributes = attributes.data();
    request.attribute_count = static_cast<unsigned>(attributes.size());
    auto changed = kernel_operation(request, operation.launch.function->module->context);
    changed.by_kernel = operation.by_kernel;
    return changed;
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

template <class Parameters>
void get_kernel(CUgraphNode handle, Parameters* parameters) {
    require_pointer(parameters, "the parameters");
    const auto node = node_with<KernelOperation>(handle);
    const auto& operation = std::get<KernelOperation>(node->operation);
    const LaunchRequest request = request_of(operation, node->pointers);
    *parameters = {};
    parameters->func = request.function;
    parameters->gridDimX = request.grid[0];
    parameters->gridDimY = request.grid[1];
    parameters->gridDimZ = request.grid[2];
    parameters->blockDimX = request.block[0];
    parameters->blockDimY = request.block[1];
    parameters->blockDimZ = request.block[2];
    parameters->sharedMemBytes = request.dynamic_shared;
    parameters->kernelParams = node->pointers.empty() ? nullptr : node->pointers.data();
    if constexpr (requires { parameters->kern; }) {
        if (operation.by_kernel) {
            parameters->func = nullptr;
            parameters->kern = reinterpret_cast<CUkernel>(request.function);
        }
        parameters->ctx = operation.launch.function->module->context->handle;
    }
}

} // namespace

CUDAMOD_API cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphAddKernelNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_KERNEL, nodes, nullptr, count,
                     [&] { return operation_of(parameters); });
        },
        node, graph, nodes, count, parameters);
}

CUDAMOD_API cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* nodes,
                                    size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return locked_call(
        "cuGraphAddKernelNode",
        [&] {
            add_node(node, graph, CU_GRAPH_NODE_TYPE_KERNEL, nodes, nullptr, count,
                     [&] { return operation_of(parameters); });
        },
        node, graph, nodes, count, parameters);
}

CUDAMOD_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphKernelNodeGetParams", [&] { get_kernel(node, parameters); }, node, parameters);
}

CUDAMOD_API cuGraphKernelNodeGetParams_v2(CUgraphNode node,
                                          CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return locked_call(
        "cuGraphKernelNodeGetParams", [&] { get_kernel(node, parameters); }, node, parameters);
}

CUDAMOD_API cuGraphKernelNodeSetParams(CUgraphNode node,
                                       const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return locked_call(
        "cuGraphKernelNodeSetParams", [&] { set_operation(node, operation_of(parameters)); }, node,
        parameters);
}

CUDAMOD_API cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return locked_call(
        "cuGraphKernelNodeSetParams", [&] { set_operation(node, operation_of(parameters)); }, node,
        parameters);
}

CUDAMOD_API cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    return locked_call(
        "cuGraphKernelNodeCopyAttributes",
        [&] {
            const auto target = node_with<KernelOperation>(to);
            const auto source = node_with<KernelOperation>(from);
            target->operation =
                with_attributes(std::get<KernelOperation>(target->operation),
                                std::get<KernelOperation>(source->operation).attributes);
        },
        to, from);
}

CUDAMOD_API cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUlaunchAttributeID id,
                                          CUlaunchAttributeValue* value) {
    return locked_call(
        "cuGraphKernelNodeGetAttribute",
        [&] {
            require_pointer(value, "the value");
            const auto node = node_with<KernelOperation>(handle);
            *value = {};
            for (const auto& attribute : std::get<KernelOperation>(node->operation).attributes) {
                if (attribute.id == id) *value = attribute.value;
            }
        },
        handle, static_cast<int>(id), value);
}

CUDAMOD_API cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUlaunchAttributeID id,
                                          const CUlaunchAttributeValue* value) {
    return locked_call(
        "cuGraphKernelNodeSetAttribute",
        [&] {
            require_pointer(value, "the value");
            const auto node = node_with<KernelOperation>(handle);
            const auto& operation = std::get<KernelOperation>(node->operation);
            auto attributes = operation.attributes;
            std::erase_if(attributes, [&](const auto& old) { return old.id == id; });
            CUlaunchAttribute attribute{};
            attribute.id = id;
            attribute.value = *value;
            attributes.push_back(attribute);
            node->operation = with_attributes(operation, std::move(attributes));
        },
        handle, static_cast<int>(id), value);
}
