#include "emulator/context.h"

#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/device.h"
#include "emulator/objects.h"
#include "emulator/scheduler.h"
#include "emulator/stream.h"
#include "emulator/teardown.h"

#include <atomic>

namespace cudamod::emulator {
namespace {

std::atomic<unsigned long long> next_context_id{1};

constexpr std::size_t kDefaultLimits[kLimits] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0, 0, 0};

constexpr unsigned kKnownFlags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                                 CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE |
                                 CU_CTX_SYNC_MEMOPS;

} // namespace

Objects& objects() {
    static Objects* const all = new Objects;
    return *all;
}

std::shared_ptr<Context> make_context(Device& device) {
    auto context = std::make_shared<Context>();
    context->device = &device;
    context->handle = objects().contexts.insert(context);
    activate(*context);
    return context;
}

std::shared_ptr<Context> make_primary_context(Device& device) {
    auto context = make_context(device);
    context->primary = true;
    context->active = false;
    return context;
}

void activate(Context& context) {
    context.id = next_context_id++;
    context.active = true;
    clear_fault(context);
    context.peers.clear();
    std::copy(std::begin(kDefaultLimits), std::end(kDefaultLimits), context.limits.begin());
}

void require_context_flags(unsigned flags) {
    if (flags & ~kKnownFlags)
        fail(CUDA_ERROR_INVALID_VALUE, "Context flags 0x%x are unknown", flags & ~kKnownFlags);
}

std::vector<std::shared_ptr<Context>>& context_stack() {
    thread_local std::vector<std::shared_ptr<Context>> stack;
    return stack;
}

std::uint64_t thread_number() {
    static std::atomic<std::uint64_t> next{1};
    thread_local const std::uint64_t number = next++;
    return number;
}

std::shared_ptr<Context> try_current_context() {
    const auto& stack = context_stack();
    return stack.empty() ? nullptr : stack.back();
}

void require_healthy(const Context& context) {
    if (!context.active)
        fail(CUDA_ERROR_CONTEXT_IS_DESTROYED,
             "The context was destroyed or its primary context released");
    if (context.fault.status != CUDA_SUCCESS) {
        fail(context.fault.status, "The context is unusable since: %s",
             context.fault.message.c_str());
    }
}

std::shared_ptr<Context> current_context() {
    auto context = try_current_context();
    if (!context) fail(CUDA_ERROR_INVALID_CONTEXT, "No context is current on this thread");
    require_healthy(*context);
    return context;
}

void record_fault(Context& context, CUresult status, std::string message) {
    if (context.fault.status == CUDA_SUCCESS) context.fault = {status, std::move(message)};
    context.faulted = true;
}

void clear_fault(Context& context) {
    context.fault = {};
    context.faulted = false;
}

std::shared_ptr<Context> find_context(CUcontext handle) {
    auto context = objects().contexts.find(handle);
    if (!context)
        fail(CUDA_ERROR_INVALID_CONTEXT, "Handle %p names no live context",
             static_cast<void*>(handle));
    return context;
}

void drain(const std::shared_ptr<Context>& context) {
    scheduler().wait_for(*context);
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void create(CUcontext* handle, unsigned flags, CUdevice ordinal, unsigned api_version) {
    require_pointer(handle, "the context");
    require_context_flags(flags);
    auto context = make_context(device_at(ordinal));
    context->flags = flags;
    context->api_version = api_version;
    context_stack().push_back(context);
    *handle = context->handle;
}

/// The current context whatever its state, for calls that answer even after a fault.
std::shared_ptr<Context> present_context() {
    auto context = try_current_context();
    if (!context) fail(CUDA_ERROR_INVALID_CONTEXT, "No context is current on this thread");
    return context;
}

std::shared_ptr<Context> given_or_current(CUcontext handle) {
    if (!handle) return current_context();
    auto context = find_context(handle);
    require_healthy(*context);
    return context;
}

void synchronize(CUcontext handle) {
    std::unique_lock lock(driver_mutex());
    const auto context = given_or_current(handle);
    require_not_capturing(*context);
    lock.unlock();
    drain(context);
    lock.lock();
    require_healthy(*context);
}

} // namespace

CUDAMOD_API cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
    return locked_call(
        "cuCtxCreate", [&] { create(context, flags, device, 3020); }, context, flags, device);
}

CUDAMOD_API cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int affinities,
                           unsigned int flags, CUdevice device) {
    return locked_call(
        "cuCtxCreate",
        [&] {
            if (affinities)
                fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "Execution affinity is not emulated");
            create(context, flags, device, 3020);
        },
        context, affinity, affinities, flags, device);
}

CUDAMOD_API cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                           CUdevice device) {
    return locked_call(
        "cuCtxCreate",
        [&] {
            if (parameters && parameters->numExecAffinityParams) {
                fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "Execution affinity is not emulated");
            }
            if (parameters && parameters->cigParams)
                fail(CUDA_ERROR_NOT_SUPPORTED, "Contexts in graphics are not emulated");
            create(context, flags, device, 3020);
        },
        context, parameters, flags, device);
}

CUDAMOD_API cuCtxDestroy_v2(CUcontext handle) {
    return unlocked_call(
        "cuCtxDestroy",
        [&] {
            std::unique_lock lock(driver_mutex());
            auto context = find_context(handle);
            if (context->primary)
                fail(CUDA_ERROR_INVALID_CONTEXT, "A primary context is released, not destroyed");
            if (!context->active)
                fail(CUDA_ERROR_INVALID_CONTEXT, "The context is destroyed already");
            context->active = false; // other threads enqueue nothing more
            lock.unlock();
            drain(context);
            lock.lock();
            tear_down(*context);
            objects().contexts.erase(handle);
            auto& stack = context_stack();
            if (!stack.empty() && stack.back() == context) stack.pop_back();
        },
        handle);
}
CUDAMOD_API_ALIAS(cuCtxDestroy, cuCtxDestroy_v2);

CUDAMOD_API cuCtxPushCurrent_v2(CUcontext handle) {
    return locked_call(
        "cuCtxPushCurrent", [&] { context_stack().push_back(find_context(handle)); }, handle);
}
CUDAMOD_API_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

CUDAMOD_API cuCtxPopCurrent_v2(CUcontext* handle) {
    return locked_call(
        "cuCtxPopCurrent",
        [&] {
            const auto context = present_context();
            context_stack().pop_back();
            if (handle) *handle = context->handle;
        },
        handle);
}
CUDAMOD_API_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

CUDAMOD_API cuCtxSetCurrent(CUcontext handle) {
    return locked_call(
        "cuCtxSetCurrent",
        [&] {
            auto context = handle ? find_context(handle) : nullptr;
            if (!context_stack().empty()) context_stack().pop_back();
            if (context) context_stack().push_back(std::move(context));
        },
        handle);
}

CUDAMOD_API cuCtxGetCurrent(CUcontext* handle) {
    return locked_call(
        "cuCtxGetCurrent",
        [&] {
            require_pointer(handle, "the context");
            const auto context = try_current_context();
            *handle = context ? context->handle : nullptr;
        },
        handle);
}

CUDAMOD_API cuCtxGetDevice(CUdevice* device) {
    return locked_call(
        "cuCtxGetDevice",
        [&] {
            require_pointer(device, "the device");
            *device = current_context()->device->ordinal;
        },
        device);
}

CUDAMOD_API cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    return locked_call(
        "cuCtxGetDevice",
        [&] {
            require_pointer(device, "the device");
            *device = given_or_current(handle)->device->ordinal;
        },
        device, handle);
}

CUDAMOD_API cuCtxGetFlags(unsigned int* flags) {
    return locked_call(
        "cuCtxGetFlags",
        [&] {
            require_pointer(flags, "the flags");
            *flags = current_context()->flags;
        },
        flags);
}

CUDAMOD_API cuCtxSetFlags(unsigned int flags) {
    return locked_call(
        "cuCtxSetFlags",
        [&] {
            require_context_flags(flags);
            current_context()->flags = flags;
        },
        flags);
}

CUDAMOD_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
    return locked_call(
        "cuCtxGetId",
        [&] {
            require_pointer(id, "the id");
            *id = given_or_current(handle)->id;
        },
        handle, id);
}

CUDAMOD_API cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
    return locked_call(
        "cuCtxGetApiVersion",
        [&] {
            require_pointer(version, "the version");
            *version = given_or_current(handle)->api_version;
        },
        handle, version);
}

CUDAMOD_API cuCtxSynchronize() {
    return unlocked_call("cuCtxSynchronize", [&] { synchronize(nullptr); });
}

CUDAMOD_API cuCtxSynchronize_v2(CUcontext handle) {
    return unlocked_call("cuCtxSynchronize", [&] { synchronize(handle); }, handle);
}
