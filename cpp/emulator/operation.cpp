#include "emulator/operation.h"

#include "emulator/call.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/event.h"
#include "emulator/graph_memory.h"
#include "emulator/library.h"
#include "emulator/memory.h"
#include "emulator/null_launch.h"
#include "emulator/recorder.h"
#include "emulator/recording.h"
#include "emulator/settings.h"
#include "emulator/stream.h"
#include "emulator/stream_check.h"

#include <algorithm>
#include <cstring>

namespace cudamod::emulator {
namespace {

/// One side of a box: its first byte's address and the distances of its rows and slices.
struct Box {
    std::uint64_t address;
    std::size_t pitch, slice, bytes;
    bool device; ///< device-accessible memory for certain
};

struct Side {
    CUmemorytype type;
    CUdeviceptr device;
    const void* host;
    std::size_t x, y, z, pitch, height;
    const char* name;
};

Box box_of(const Side& side, const CUDA_MEMCPY3D& copy) {
    const std::size_t pitch = side.pitch ? side.pitch : copy.WidthInBytes + side.x;
    const std::size_t height = side.height ? side.height : copy.Height + side.y;
    if (pitch < copy.WidthInBytes + side.x || height < copy.Height + side.y) {
        fail(CUDA_ERROR_INVALID_VALUE, "The %s of %zu rows of %zu bytes does not hold the copy",
             side.name, height, pitch);
    }
    const std::size_t slice = pitch * height;
    const std::size_t first = side.z * slice + side.y * pitch + side.x;
    const std::size_t bytes =
        (copy.Depth - 1) * slice + (copy.Height - 1) * pitch + copy.WidthInBytes;
    switch (side.type) {
    case CU_MEMORYTYPE_HOST:
        if (!side.host) fail(CUDA_ERROR_INVALID_VALUE, "The %s must not be NULL", side.name);
        return {reinterpret_cast<std::uintptr_t>(side.host) + first, pitch, slice, bytes, false};
    case CU_MEMORYTYPE_DEVICE:
        return {side.device + first, pitch, slice, bytes, true};
    case CU_MEMORYTYPE_UNIFIED:
        return {side.device + first, pitch, slice, bytes, false};
    default:
        fail(CUDA_ERROR_NOT_SUPPORTED, "The %s is an array, which is not emulated", side.name);
    }
}

Box destination_of(const CUDA_MEMCPY3D& copy) {
    return box_of({copy.dstMemoryType, copy.dstDevice, copy.dstHost, copy.dstXInBytes, copy.dstY,
                   copy.dstZ, copy.dstPitch, copy.dstHeight, "destination"},
                  copy);
}

Box source_of(const CUDA_MEMCPY3D& copy) {
    return box_of({copy.srcMemoryType, copy.srcDevice, copy.srcHost, copy.srcXInBytes, copy.srcY,
                   copy.srcZ, copy.srcPitch, copy.srcHeight, "source"},
                  copy);
}

Span span_of(const Box& box) {
    return box.device ? device_span(box.address, box.bytes) : any_span(box.address, box.bytes);
}

/// As span_of() will want it; memory of an allocation node need not be there yet.
void require_memory(const Box& box) {
    if (const auto memory = graph_memory_at(box.address)) {
        if (memory->end() - box.address >= box.bytes) return;
    }
    span_of(box);
}

/// Work on memory that may have gone since the graph was made: then the context has a fault.
template <class Work>
void guarded(const std::shared_ptr<Context>& context, const Work& work) {
    try {
        work();
    } catch (const Failure&) {
        std::lock_guard lock(driver_mutex());
        record_fault(*context, CUDA_ERROR_ILLEGAL_ADDRESS,
                     "A node of a graph touches memory that is not allocated");
    }
}

void copy_box(const CUDA_MEMCPY3D& copy) {
    const Box to = destination_of(copy), from = source_of(copy);
    const Span to_span = span_of(to), from_span = span_of(from);
    for (std::size_t z = 0; z < copy.Depth; ++z) {
        for (std::size_t y = 0; y < copy.Height; ++y) {
            std::byte* const target = to_span.host + z * to.slice + y * to.pitch;
            const std::byte* const source = from_span.host + z * from.slice + y * from.pitch;
            std::memmove(target, source, copy.WidthInBytes);
            note_copied(to_span.allocation.get(), target, from_span.allocation.get(), source,
                        copy.WidthInBytes);
        }
    }
}

std::size_t fill_bytes(const CUDA_MEMSET_NODE_PARAMS_v1& fill) {
    return (fill.height - 1) * (fill.height > 1 ? fill.pitch : 0) + fill.width * fill.elementSize;
}

void fill_rectangle(const CUDA_MEMSET_NODE_PARAMS_v1& fill) {
    const Span span = device_span(fill.dst, fill_bytes(fill));
    for (std::size_t y = 0; y < fill.height; ++y) {
        for (std::size_t x = 0; x < fill.width; ++x)
            std::memcpy(span.host + y * fill.pitch + x * fill.elementSize, &fill.value,
                        fill.elementSize);
        note_written(span.allocation.get(), span.host + y * fill.pitch,
                     fill.width * fill.elementSize);
    }
}

struct Submission {
    const std::shared_ptr<Stream>& stream;

    void operator()(const KernelOperation& operation) const {
        ValidLaunch launch = operation.launch;
        if (attention.load(std::memory_order_relaxed) & kNullLaunch) {
            count_null_launch();
            return;
        }
        // The card runs on and computes garbage; strict refuses the whole graph before this.
        const auto library = launch.function->module->library.lock();
        if (launch.function->module->of_library && (!library || library->unloaded)) return;
        launch.stream = stream;
        if (attention.load(std::memory_order_relaxed) & kRecorder)
            recorder::write(launch, stream->handle);
        run(std::move(launch));
    }

    void operator()(const CopyOperation& operation) const {
        if (!operation.copy.WidthInBytes || !operation.copy.Height || !operation.copy.Depth) return;
        stream->enqueue([=] { guarded(operation.context, [&] { copy_box(operation.copy); }); },
                        "copy");
    }

    void operator()(const FillOperation& operation) const {
        stream->enqueue(
            [=] { guarded(operation.context, [&] { fill_rectangle(operation.fill); }); }, "fill");
    }

    void operator()(const HostOperation& operation) const {
        stream->enqueue_host([=] { operation.function(operation.data); });
    }

    void operator()(const ChildOperation&) const {}
    void operator()(const EmptyOperation&) const {}

    void operator()(const WaitOperation& operation) const {
        std::unique_lock lock(driver_mutex());
        const Recording recording = latest_recording(*operation.event);
        lock.unlock();
        await_in(stream, recording);
    }

    void operator()(const RecordOperation& operation) const {
        std::lock_guard lock(driver_mutex());
        reach_in(stream, begin_recording(*operation.event));
    }

    void operator()(const AllocateOperation& operation) const {
        operation.memory->provide();
        stream->enqueue(
            [memory = operation.memory->allocation] {
                std::memset(memory->host, 0xff, std::min(memory->bytes, settings().poison_bytes));
                note_use(memory.get(), memory->host, memory->bytes, true);
            },
            "allocation");
    }

    void operator()(const FreeOperation& operation) const {
        const auto context = stream->context;
        const auto free = [context, address = operation.address] {
            if (const auto memory = address_space().find(address))
                note_use(memory.get(), memory->host, memory->bytes, true);
            if (free_graph_memory(address)) return;
            std::lock_guard lock(driver_mutex());
            record_fault(*context, CUDA_ERROR_ILLEGAL_ADDRESS,
                         "A free node of a graph frees memory that is not allocated");
        };
        stream->enqueue(free, "free");
    }
};

} // namespace

CUgraphNodeType type_of(const Operation& operation) {
    // The alternatives stand in CUDA's order, which numbers semaphore nodes in between.
    const std::size_t index = operation.index();
    return static_cast<CUgraphNodeType>(index <= CU_GRAPH_NODE_TYPE_EVENT_RECORD
                                            ? index
                                            : index - CU_GRAPH_NODE_TYPE_EVENT_RECORD - 1 +
                                                  CU_GRAPH_NODE_TYPE_MEM_ALLOC);
}

const char* name_of(CUgraphNodeType type) {
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return "memset";
    case CU_GRAPH_NODE_TYPE_HOST:
        return "host";
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return "graph";
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return "empty";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return "event wait";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return "event record";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return "memory allocation";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return "memory free";
    default:
        return "other";
    }
}

KernelOperation kernel_operation(const LaunchRequest& request,
                                 const std::shared_ptr<Context>& context) {
    KernelOperation operation;
    operation.launch = validate_in(request, context);
    operation.function = request.function;
    if (request.attribute_count) {
        operation.attributes.assign(request.attributes,
                                    request.attributes + request.attribute_count);
    }
    return operation;
}

LaunchRequest request_of(const KernelOperation& operation, std::vector<void*>& pointers) {
    const ValidLaunch& launch = operation.launch;
    pointers.clear();
    for (const KernelParameter& parameter : launch.function->view.kernel->parameters) {
        pointers.push_back(
            const_cast<std::byte*>(launch.parameters.data() + parameter.offset)); // read only
    }
    LaunchRequest request;
    request.function = operation.function;
    request.grid = launch.grid;
    request.block = launch.block;
    request.dynamic_shared = launch.dynamic_shared;
    request.parameters = pointers.data();
    request.attributes = operation.attributes.data();
    request.attribute_count = static_cast<unsigned>(operation.attributes.size());
    return request;
}

CopyOperation copy_operation(const CUDA_MEMCPY3D& copy, std::shared_ptr<Context> context) {
    if (copy.WidthInBytes && copy.Height && copy.Depth) {
        require_memory(destination_of(copy));
        require_memory(source_of(copy));
    }
    return {copy, std::move(context)};
}

CUDA_MEMCPY3D linear_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = to;
    copy.srcDevice = from;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

FillOperation fill_operation(const CUDA_MEMSET_NODE_PARAMS_v1& fill,
                             std::shared_ptr<Context> context) {
    const unsigned size = fill.elementSize;
    if (size != 1 && size != 2 && size != 4)
        fail(CUDA_ERROR_INVALID_VALUE, "An element has 1, 2 or 4 bytes, not %u", size);
    if (!fill.width || !fill.height)
        fail(CUDA_ERROR_INVALID_VALUE, "A fill of %zu x %zu elements", fill.width, fill.height);
    if (fill.width > SIZE_MAX / size || (fill.height > 1 && fill.pitch < fill.width * size)) {
        fail(CUDA_ERROR_INVALID_VALUE, "Rows of %zu elements do not fit a pitch of %zu bytes",
             fill.width, fill.pitch);
    }
    if (fill.dst % size || (fill.height > 1 && fill.pitch % size)) {
        fail(CUDA_ERROR_INVALID_VALUE, "Address 0x%llx or pitch %zu is no multiple of %u", fill.dst,
             fill.pitch, size);
    }
    require_memory({fill.dst, fill.pitch, 0, fill_bytes(fill), true});
    return {fill, std::move(context)};
}

AllocateOperation allocate_operation(const CUDA_MEM_ALLOC_NODE_PARAMS_v1& parameters) {
    const CUmemPoolProps& pool = parameters.poolProps;
    if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        fail(CUDA_ERROR_INVALID_VALUE, "Allocation type %d is not a pool's",
             static_cast<int>(pool.allocType));
    if (pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        fail(CUDA_ERROR_NOT_SUPPORTED, "A graph allocates memory of a device only");
    if (pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        fail(CUDA_ERROR_NOT_SUPPORTED, "A graph's memory is not for other processes");
    if (parameters.accessDescCount) require_pointer(parameters.accessDescs, "the access");
    AllocateOperation operation;
    operation.parameters = parameters;
    operation.access.assign(parameters.accessDescs,
                            parameters.accessDescs + parameters.accessDescCount);
    for (const CUmemAccessDesc& access : operation.access)
        device_at(access.location.id);
    operation.memory =
        std::make_shared<GraphMemory>(device_at(pool.location.id), parameters.bytesize);
    operation.parameters.dptr = operation.memory->allocation->begin;
    return operation;
}

FreeOperation free_operation(CUdeviceptr address) {
    const auto memory = graph_memory_at(address);
    if (!memory || memory->begin != address) {
        fail(CUDA_ERROR_INVALID_VALUE, "No memory of a graph begins at this address: %s",
             address_space().explain(address).c_str());
    }
    return {address};
}

void submit(const Operation& operation, const std::shared_ptr<Stream>& stream) {
    std::visit(Submission{stream}, operation);
}

} // namespace cudamod::emulator
