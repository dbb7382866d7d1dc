#pragma once

#include "emulator/api.h"
#include "emulator/launch.h"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace cudamod::emulator {

struct Context;
struct Event;
struct Graph;
struct GraphMemory;
struct Stream;

/// The typed pieces of work that a graph is made of, validated and owning what they use. What a
/// stream does outside of a graph is the same piece, or a form of it that no graph keeps.
struct KernelOperation {
    CUfunction function = nullptr; ///< as the caller named it: a function or a kernel
    bool by_kernel = false;        ///< it was named as a CUkernel
    ValidLaunch launch;            ///< without a stream
    std::vector<CUlaunchAttribute> attributes;
};
struct CopyOperation {
    CUDA_MEMCPY3D copy{};
    std::shared_ptr<Context> context;
};
struct FillOperation {
    CUDA_MEMSET_NODE_PARAMS_v1 fill{};
    std::shared_ptr<Context> context;
};
struct HostOperation {
    CUhostFn function = nullptr;
    void* data = nullptr;
};
struct ChildOperation {
    std::shared_ptr<Graph> graph; ///< the node's own
};
struct EmptyOperation {};
struct WaitOperation {
    std::shared_ptr<Event> event;
};
struct RecordOperation {
    std::shared_ptr<Event> event;
};
struct AllocateOperation {
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 parameters{};
    std::vector<CUmemAccessDesc> access;
    std::shared_ptr<GraphMemory> memory;
};
struct FreeOperation {
    CUdeviceptr address = 0;
};

using Operation =
    std::variant<KernelOperation, CopyOperation, FillOperation, HostOperation, ChildOperation,
                 EmptyOperation, WaitOperation, RecordOperation, AllocateOperation, FreeOperation>;

/// What CUDA calls a node with this operation.
CUgraphNodeType type_of(const Operation& operation);
const char* name_of(CUgraphNodeType type);

/// A kernel launch; fails like the launch itself. The context is the one that it will run in.
KernelOperation kernel_operation(const LaunchRequest& request,
                                 const std::shared_ptr<Context>& context);

/// The launch request that made the operation; the pointers are into `operation` and `pointers`.
LaunchRequest request_of(const KernelOperation& operation, std::vector<void*>& pointers);

/// A copy between device-accessible or host memory. Fails with CUDA_ERROR_INVALID_VALUE for memory
/// that is neither, CUDA_ERROR_NOT_SUPPORTED for arrays.
CopyOperation copy_operation(const CUDA_MEMCPY3D& copy, std::shared_ptr<Context> context);

/// The plain copy of `bytes` between two addresses.
CUDA_MEMCPY3D linear_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);

/// A rectangle of elements; fails with CUDA_ERROR_INVALID_VALUE.
FillOperation fill_operation(const CUDA_MEMSET_NODE_PARAMS_v1& fill,
                             std::shared_ptr<Context> context);

/// Memory of a graph, whose address it writes into the parameters. Fails with
/// CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED for memory of no device, or
/// CUDA_ERROR_OUT_OF_MEMORY.
AllocateOperation allocate_operation(const CUDA_MEM_ALLOC_NODE_PARAMS_v1& parameters);

/// The end of a graph's memory; fails with CUDA_ERROR_INVALID_VALUE for any other.
FreeOperation free_operation(CUdeviceptr address);

/// Enqueues the operation. The caller does not hold the driver's lock. A child graph is no
/// operation of a stream: its nodes are.
void submit(const Operation& operation, const std::shared_ptr<Stream>& stream);

} // namespace cudamod::emulator
