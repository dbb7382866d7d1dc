#include "launch/sequence.h"

#include "driver/log.h"
#include "driver/status.h"
#include "driver/table.h"
#include "handles/context.h"
#include "handles/destruction.h"

#include <cstring>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudamod::launch {

namespace {

CUDA_KERNEL_NODE_PARAMS parameters_of(const SequenceLaunch& launch, void** pointers,
                                      CUcontext context, Config::Native& native) {
    launch.config.copy_to(native, nullptr);
    CUDA_KERNEL_NODE_PARAMS parameters;
    std::memset(&parameters, 0, sizeof parameters);
    parameters.kern = launch.kernel.raw();
    parameters.ctx = context;
    parameters.gridDimX = native.config.gridDimX;
    parameters.gridDimY = native.config.gridDimY;
    parameters.gridDimZ = native.config.gridDimZ;
    parameters.blockDimX = native.config.blockDimX;
    parameters.blockDimY = native.config.blockDimY;
    parameters.blockDimZ = native.config.blockDimZ;
    parameters.sharedMemBytes = native.config.sharedMemBytes;
    parameters.kernelParams = pointers;
    return parameters;
}

/// Whether a kernel node can have the attribute: those that concern the launches around it are a
/// graph's edges instead.
bool fits_node(CUlaunchAttributeID id) {
    switch (static_cast<int>(id)) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return true;
    default:
        return false; // newer ones too: their launches keep them for certain
    }
}

bool fits_graph(const std::vector<SequenceLaunch>& launches) {
    for (const SequenceLaunch& launch : launches) {
        Config::Native native;
        launch.config.copy_to(native, nullptr);
        for (unsigned i = 0; i < native.config.numAttrs; ++i)
            if (!fits_node(native.config.attrs[i].id)) return false;
    }
    return true;
}

} // namespace

std::vector<std::size_t> order_of(const Dependencies& after) {
    std::vector<std::size_t> waiting(after.size()), order;
    std::vector<std::vector<std::size_t>> followers(after.size());
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < after.size(); ++i) {
        waiting[i] = after[i].size();
        for (std::size_t before : after[i])
            followers[before].push_back(i);
        if (!waiting[i]) ready.push(i);
    }
    while (!ready.empty()) {
        std::size_t next = ready.top();
        ready.pop();
        order.push_back(next);
        for (std::size_t follower : followers[next])
            if (!--waiting[follower]) ready.push(follower);
    }
    if (order.size() == after.size()) return order;
    std::string stuck;
    for (std::size_t i = 0; i < after.size(); ++i)
        if (waiting[i]) stuck += (stuck.empty() ? "" : ", ") + std::to_string(i);
    throw std::invalid_argument("LaunchSequence: after has a cycle: launches " + stuck +
                                " wait for each other");
}

Sequence::Sequence(const std::vector<SequenceLaunch>& launches, const Dependencies& after,
                   CUcontext context)
    : order_(order_of(after)), context_(context) {
    if (!fits_graph(launches)) return;
    try {
        build(launches, after);
    } catch (const driver::DriverError& error) {
        if (error.status != CUDA_ERROR_NOT_SUPPORTED && error.status != CUDA_ERROR_NOT_FOUND) throw;
        executable_.reset();
        graph_.reset();
    }
}

void Sequence::build(const std::vector<SequenceLaunch>& launches, const Dependencies& after) {
    handles::ContextScope scope(context_);
    handles::RelaxedCapture relaxed; // somebody's capture is none of this graph's business
    std::vector<handles::KernelHandle> kernels;
    for (const SequenceLaunch& launch : launches)
        kernels.push_back(launch.kernel.handle());
    graph_ = handles::create_graph(context_, std::move(kernels));
    nodes_.resize(launches.size());
    for (std::size_t position : order_) {
        const SequenceLaunch& launch = launches[position];
        std::vector<CUgraphNode> before;
        for (std::size_t earlier : after[position])
            before.push_back(nodes_[earlier]);
        auto subject = [&] {
            return "launch " + std::to_string(position) + ", kernel '" + launch.kernel.name() +
                   "', grid " + launch.config.shape().grid.text() + ", block " +
                   launch.config.shape().block.text();
        };
        Config::Native native;
        CUDA_KERNEL_NODE_PARAMS parameters =
            parameters_of(launch, launch.pointers, context_, native);
        driver::check(driver::table.cuGraphAddKernelNode(&nodes_[position], *graph_, before.data(),
                                                         before.size(), &parameters),
                      "cuGraphAddKernelNode", subject);
        for (unsigned i = 0; i < native.config.numAttrs; ++i)
            driver::check(
                driver::table.cuGraphKernelNodeSetAttribute(
                    nodes_[position], native.config.attrs[i].id, &native.config.attrs[i].value),
                "cuGraphKernelNodeSetAttribute", subject);
    }
    executable_ = handles::instantiate(graph_);
}

CUresult Sequence::patch(std::size_t position, const SequenceLaunch& launch,
                         void** pointers) const {
    Config::Native native;
    CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(launch, pointers, context_, native);
    return driver::table.cuGraphExecKernelNodeSetParams(*executable_, nodes_[position],
                                                        &parameters);
}

CUresult Sequence::replay(const handles::StreamBox& stream) const noexcept {
    DefaultStreamScope scope;
    if (stream.is_default)
        if (CUresult status = scope.enter(stream); status != CUDA_SUCCESS) return status;
    return driver::table.cuGraphLaunch(*executable_, stream.raw);
}

} // namespace cudamod::launch
