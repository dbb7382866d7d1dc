#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/context.h"
#include "emulator/event.h"
#include "emulator/graph_exec.h"
#include "emulator/graph_memory.h"
#include "emulator/library.h"
#include "emulator/settings.h"
#include "emulator/stream.h"
#include "emulator/stream_order.h"

#include <set>

using namespace cudamod::emulator;

namespace {

void require_runnable(const KernelOperation& operation) {
    const Module& module = *operation.launch.function->module;
    require_healthy(*module.context);
    if (settings().manner != Manner::strict || !module.of_library) return;
    const auto library = module.library.lock();
    if (!library || library->unloaded) {
        fail(CUDA_ERROR_INVALID_HANDLE,
             "The graph launches kernel '%s' of a library that was unloaded; the card would "
             "compute garbage without a word",
             operation.launch.function->view.kernel->name.c_str());
    }
}

/// Memory that an earlier launch of the graph left allocated: freed if that was asked for, else a
/// reason to refuse.
void settle_memory(const GraphExec& exec, const AllocateOperation& operation) {
    if (!operation.memory->present()) return;
    if (!(exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)) {
        fail(CUDA_ERROR_INVALID_VALUE,
             "%zu bytes at 0x%llx, which the graph's last launch allocated, were not freed",
             operation.parameters.bytesize, operation.parameters.dptr);
    }
    while (operation.memory->present())
        free_graph_memory(operation.parameters.dptr);
}

void launch(CUgraphExec exec_handle, CUstream stream_handle) {
    std::unique_lock lock(driver_mutex());
    const auto exec = find_exec(exec_handle);
    lock.unlock();
    std::lock_guard alone(exec->launching);
    lock.lock();
    const auto stream = find_stream(stream_handle);
    require_not_capturing(*stream);
    const auto steps = steps_of(exec->body);
    std::set<CUdeviceptr> freed;
    for (const auto& [operation, dependencies] : steps) {
        if (const auto* free = std::get_if<FreeOperation>(operation.get()))
            freed.insert(free->address);
    }
    for (const auto& [operation, dependencies] : steps) {
        if (const auto* kernel = std::get_if<KernelOperation>(operation.get()))
            require_runnable(*kernel);
        const auto* memory = std::get_if<AllocateOperation>(operation.get());
        if (memory && !freed.contains(memory->parameters.dptr)) settle_memory(*exec, *memory);
    }
    const auto before = exec->last;
    const auto end = exec->last = std::make_shared<Mark>();
    lock.unlock();
    stream->await(before);
    {
        NodeOrder order(*stream, steps.size());
        for (std::size_t step = 0; step < steps.size(); ++step) {
            order.enter(step, steps[step].dependencies);
            if (steps[step].operation) submit(*steps[step].operation, stream);
        }
    }
    stream->enqueue([references = exec->references] {}, "graph");
    reach_in(stream, end);
    stream->make_room();
}

} // namespace

CUDAMOD_API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return unlocked_call("cuGraphLaunch", [&] { launch(exec, stream); }, exec, stream);
}

CUDAMOD_API cuGraphUpload(CUgraphExec exec, CUstream handle) {
    return locked_call(
        "cuGraphUpload",
        [&] {
            find_exec(exec);
            require_not_capturing(*find_stream(handle));
        },
        exec, handle);
}
