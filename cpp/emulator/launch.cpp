#include "emulator/launch.h"

#include "emulator/address_space.h"
#include "emulator/call.h"
#include "emulator/capture.h"
#include "emulator/context.h"
#include "emulator/device.h"
#include "emulator/event.h"
#include "emulator/findings.h"
#include "emulator/kernel_memory.h"
#include "emulator/launch_watch.h"
#include "emulator/library.h"
#include "emulator/null_launch.h"
#include "emulator/objects.h"
#include "emulator/recorder.h"
#include "emulator/recording.h"
#include "emulator/settings.h"
#include "emulator/stream.h"
#include "emulator/workers.h"

#include <cstdio>
#include <cstring>

namespace cudamod::emulator {
namespace {

/// The context that a launch runs in, by the card's rules: a created stream's own; with a default
/// stream the current one. Where no context was current, launching into a created stream leaves
/// that stream's context current.
std::shared_ptr<Stream> stream_of(const LaunchRequest& request) {
    auto stream = find_stream(request.stream);
    if (!try_current_context()) context_stack().push_back(stream->context);
    return stream;
}

std::shared_ptr<Function> function_for(CUfunction handle, const std::shared_ptr<Context>& context) {
    if (const auto kernel = objects().kernels.find(reinterpret_cast<CUkernel>(handle))) {
        if (kernel->library->unloaded)
            fail(CUDA_ERROR_INVALID_HANDLE, "Kernel '%s' belongs to a library that was unloaded",
                 kernel->name.c_str());
        const auto view = view_kernel(*kernel, *context->device);
        return function_in(module_in(kernel->library, context), kernel->name, view);
    }
    auto function = find_function(handle);
    if (function->module->context != context) {
        fail(CUDA_ERROR_INVALID_HANDLE, "Function '%s' belongs to another context than the stream",
             function->view.kernel->name.c_str());
    }
    return function;
}

std::vector<std::byte> pack_buffer(void** extra, const KernelCode& kernel) {
    const void* buffer = nullptr;
    const std::size_t* bytes = nullptr;
    for (std::size_t index = 0; extra[index] != CU_LAUNCH_PARAM_END; index += 2) {
        if (extra[index] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[index + 1];
        else if (extra[index] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = static_cast<const std::size_t*>(extra[index + 1]);
        else
            fail(CUDA_ERROR_INVALID_VALUE, "Entry %zu of the extra launch options is unknown",
                 index);
    }
    if (!buffer || !bytes)
        fail(CUDA_ERROR_INVALID_VALUE, "The extra launch options need a buffer and its size");
    if (*bytes < kernel.parameter_bytes) {
        fail(CUDA_ERROR_INVALID_VALUE, "The parameter buffer has %zu bytes, kernel '%s' takes %u",
             *bytes, kernel.name.c_str(), kernel.parameter_bytes);
    }
    const auto* begin = static_cast<const std::byte*>(buffer);
    return {begin, begin + kernel.parameter_bytes};
}

std::vector<std::byte> pack_parameters(const LaunchRequest& request, const KernelCode& kernel) {
    if (request.parameters && request.extra)
        fail(CUDA_ERROR_INVALID_VALUE, "Parameters were given twice, as kernelParams and as extra");
    if (kernel.parameters.empty()) return {};
    if (request.extra) return pack_buffer(request.extra, kernel);
    if (!request.parameters)
        fail(CUDA_ERROR_INVALID_VALUE, "Kernel '%s' takes %zu parameters and none were given",
             kernel.name.c_str(), kernel.parameters.size());
    std::vector<std::byte> packed(kernel.parameter_bytes);
    for (std::size_t index = 0; index < kernel.parameters.size(); ++index) {
        const KernelParameter& parameter = kernel.parameters[index];
        if (!request.parameters[index])
            fail(CUDA_ERROR_INVALID_VALUE, "The pointer to parameter %zu of kernel '%s' is NULL",
                 index, kernel.name.c_str());
        std::memcpy(packed.data() + parameter.offset, request.parameters[index], parameter.size);
    }
    return packed;
}

CUresult status_of(ptx::FaultKind kind) {
    switch (kind) {
    case ptx::FaultKind::IllegalAddress:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::FaultKind::MisalignedAddress:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::FaultKind::Assert:
        return CUDA_ERROR_ASSERT;
    case ptx::FaultKind::IllegalInstruction:
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case ptx::FaultKind::InvalidAddressSpace:
        return CUDA_ERROR_INVALID_ADDRESS_SPACE;
    case ptx::FaultKind::Timeout:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    case ptx::FaultKind::StackOverflow:
        return CUDA_ERROR_HARDWARE_STACK_ERROR;
    default:
        return CUDA_ERROR_LAUNCH_FAILED;
    }
}

ptx::Dim3 dim3_of(const std::array<std::uint32_t, 3>& dimensions) {
    return {dimensions[0], dimensions[1], dimensions[2]};
}

void execute(const ValidLaunch& launch) {
    const Function& function = *launch.function;
    const Profile& profile = *function.view.device->profile;
    std::vector<std::uint64_t> addresses;
    for (const auto& variable : function.module->variables)
        addresses.push_back(variable->begin);

    ptx::Launch work;
    work.program = function.view.code->program.get();
    work.entry = *function.view.kernel->entry;
    work.grid = dim3_of(launch.grid);
    work.block = dim3_of(launch.block);
    work.cluster = dim3_of(launch.cluster);
    work.dynamic_shared_bytes = launch.dynamic_shared;
    work.cooperative = launch.cooperative;
    work.parameters = launch.parameters.data();
    work.parameter_bytes = launch.parameters.size();
    work.variable_addresses = addresses.data();
    work.multiprocessors =
        static_cast<std::uint32_t>(profile.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    work.shared_limit_bytes = static_cast<std::uint32_t>(
        profile.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    work.seed = settings().seed;
    work.threads = settings().threads;
    work.checks = findings::checks();
    work.found = findings::hear;
    work.start_thread = [](std::function<void()> job) { workers().start(std::move(job)); };
    LaunchWatch watch;
    work.watch = [&watch] { return watch.reason_to_end(); };
    KernelMemory memory(launch);
    const auto fault = ptx::execute(work, memory, [](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
    });
    if (!fault) return;
    if (!findings::by_check(fault->kind)) findings::add(*fault);
    std::lock_guard lock(driver_mutex());
    record_fault(*function.module->context, status_of(fault->kind), fault->message);
}

std::shared_ptr<Mark> mark_event(CUevent handle) {
    if (!handle) return nullptr;
    return begin_recording(*find_event(handle));
}

} // namespace

ValidLaunch validate_in(const LaunchRequest& request, const std::shared_ptr<Context>& context) {
    ValidLaunch launch;
    launch.function = function_for(request.function, context);
    const KernelView& view = launch.function->view;
    validate_shape(request, view, launch);
    launch.parameters = pack_parameters(request, *view.kernel);
    if (!view.kernel->entry) {
        fail(CUDA_ERROR_NOT_SUPPORTED, "Kernel '%s' %s; the emulated driver never executes SASS",
             view.kernel->name.c_str(),
             view.code->not_executable.empty() ? "has no PTX" : view.code->not_executable.c_str());
    }
    launch.function->loaded = true;
    return launch;
}

ValidLaunch validate(const LaunchRequest& request) {
    auto stream = stream_of(request);
    ValidLaunch launch = validate_in(request, stream->context);
    launch.stream = std::move(stream);
    return launch;
}

void push(ValidLaunch launch) {
    const auto stream = launch.stream;
    Work work;
    work.what = "kernel";
    work.task = [launch = std::move(launch)] { execute(launch); };
    stream->push(std::move(work));
}

void run(ValidLaunch launch) {
    const auto stream = launch.stream;
    push(std::move(launch));
    stream->make_room();
}

} // namespace cudamod::emulator

using namespace cudamod::emulator;

namespace {

void launch(const LaunchRequest& request) {
    if (attention.load(std::memory_order_relaxed) & kNullLaunch) {
        count_null_launch();
        return;
    }
    std::unique_lock lock(driver_mutex());
    ValidLaunch valid = validate(request);
    if (capture_launch(valid, request)) return;
    const auto programmatic = mark_event(valid.programmatic_event),
               completed = mark_event(valid.completion_event);
    const auto stream = valid.stream;
    if (attention.load(std::memory_order_relaxed) & kRecorder)
        recorder::write(valid, request.stream);
    push(std::move(valid));
    if (programmatic) reach_in(stream, programmatic);
    if (completed) reach_in(stream, completed);
    lock.unlock();
    stream->make_room();
}

std::string shape_text(const LaunchRequest& request) {
    char text[160];
    std::snprintf(text, sizeof text, "grid=(%u, %u, %u), block=(%u, %u, %u), shared=%u",
                  request.grid[0], request.grid[1], request.grid[2], request.block[0],
                  request.block[1], request.block[2], request.dynamic_shared);
    return text;
}

CUresult launch_call(const char* name, const LaunchRequest& request) {
    if (attention.load(std::memory_order_relaxed) & kJournal) [[unlikely]] {
        const std::string shape = shape_text(request);
        return unlocked_call(
            name, [&] { launch(request); }, request.function, Argument::verbatim(shape.c_str()),
            request.stream);
    }
    return unlocked_call(name, [&] { launch(request); });
}

} // namespace

CUDAMOD_API cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                           unsigned int block_z, unsigned int dynamic_shared, CUstream stream,
                           void** parameters, void** extra) {
    LaunchRequest request;
    request.function = function;
    request.grid = {grid_x, grid_y, grid_z};
    request.block = {block_x, block_y, block_z};
    request.dynamic_shared = dynamic_shared;
    request.stream = stream;
    request.parameters = parameters;
    request.extra = extra;
    return launch_call("cuLaunchKernel", request);
}

CUDAMOD_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                             void** extra) {
    if (!config)
        return unlocked_call("cuLaunchKernelEx",
                             [&] { require_pointer(config, "the configuration"); });
    LaunchRequest request;
    request.function = function;
    request.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    request.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    request.dynamic_shared = config->sharedMemBytes;
    request.stream = config->hStream;
    request.parameters = parameters;
    request.extra = extra;
    request.attributes = config->attrs;
    request.attribute_count = config->numAttrs;
    return launch_call("cuLaunchKernelEx", request);
}

CUDAMOD_API cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                      unsigned int grid_z, unsigned int block_x,
                                      unsigned int block_y, unsigned int block_z,
                                      unsigned int dynamic_shared, CUstream stream,
                                      void** parameters) {
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    LaunchRequest request;
    request.function = function;
    request.grid = {grid_x, grid_y, grid_z};
    request.block = {block_x, block_y, block_z};
    request.dynamic_shared = dynamic_shared;
    request.stream = stream;
    request.parameters = parameters;
    request.attributes = &cooperative;
    request.attribute_count = 1;
    return launch_call("cuLaunchCooperativeKernel", request);
}
