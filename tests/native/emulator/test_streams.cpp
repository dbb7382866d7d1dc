/// Streams of the emulated driver from many threads, without Python in between: for the sanitizers.
#include "check.h"

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 8, kStreams = 8, kTurns = 12;

constexpr char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry add_to(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    ld.global.u32 %r1, [%rd1];
    ld.global.u32 %r2, [%rd2];
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry bad()
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 16;
    st.global.u32 [%rd1], 1;
    ret;
}
)";

CUfunction kernel_of(CUlibrary library, const char* name) {
    CUkernel kernel = nullptr;
    CHECK_EQ(cuLibraryGetKernel(&kernel, library, name), CUDA_SUCCESS);
    return reinterpret_cast<CUfunction>(kernel);
}

void add(CUfunction kernel, CUdeviceptr to, CUdeviceptr from, unsigned blocks, CUstream stream) {
    void* parameters[] = {&to, &from};
    CHECK_EQ(cuLaunchKernel(kernel, blocks, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
             CUDA_SUCCESS);
}

void count(void* counter) {
    ++*static_cast<std::atomic<int>*>(counter);
}

/// One chain through all of the thread's streams, with memory that comes and goes beside it.
void work(CUcontext context, CUfunction kernel, CUdeviceptr one, int number) {
    CHECK_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    std::vector<CUstream> streams(kStreams);
    for (CUstream& stream : streams)
        CHECK_EQ(cuStreamCreate(&stream, static_cast<unsigned>(number % 2)), CUDA_SUCCESS);
    CUevent event = nullptr;
    CHECK_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    CUdeviceptr sum = 0, scratch = 0;
    void* pinned = nullptr;
    CHECK_EQ(cuMemAlloc(&sum, 4), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocHost(&pinned, 4), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD32Async(sum, 0, 1, streams[0]), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(event, streams[0]), CUDA_SUCCESS);
    std::atomic<int> calls{0};
    for (int turn = 0; turn < kTurns; ++turn) {
        for (CUstream stream : streams) {
            CHECK_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
            add(kernel, sum, one, 1, stream);
            CHECK_EQ(cuMemAllocAsync(&scratch, 256, stream), CUDA_SUCCESS);
            CHECK_EQ(cuMemsetD8Async(scratch, 1, 256, stream), CUDA_SUCCESS);
            CHECK_EQ(cuMemFreeAsync(scratch, stream), CUDA_SUCCESS);
            CHECK_EQ(cuMemcpyDtoHAsync(pinned, sum, 4, stream), CUDA_SUCCESS);
            CHECK_EQ(cuLaunchHostFunc(stream, count, &calls), CUDA_SUCCESS);
            CHECK_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
            cuEventQuery(event);
        }
        if (turn % 3 == 0) CHECK_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
        if (turn % 5 == number % 5) CHECK_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    }
    std::uint32_t found = 0;
    CHECK_EQ(cuMemcpyDtoHAsync(&found, sum, 4, streams.back()), CUDA_SUCCESS);
    CHECK_EQ(found, std::uint32_t{kStreams * kTurns});
    for (CUstream stream : streams)
        CHECK_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_EQ(*static_cast<std::uint32_t*>(pinned), found);
    CHECK_EQ(calls.load(), kStreams * kTurns);
    CHECK_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree(sum), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy(event), CUDA_SUCCESS);
}

void streams_of_many_threads(CUcontext context, CUfunction kernel) {
    CUdeviceptr one = 0;
    CHECK_EQ(cuMemAlloc(&one, 4), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD32(one, 1, 1), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number)
        threads.emplace_back([=] { work(context, kernel, one, number); });
    for (std::thread& thread : threads)
        thread.join();
    CHECK_EQ(cuMemFree(one), CUDA_SUCCESS);
}

/// Contexts that end, or fail, while others enqueue into them: every call answers something.
void contexts_that_end(CUfunction good, CUfunction bad) {
    for (int turn = 0; turn < 10; ++turn) {
        CUcontext context = nullptr;
        CUstream stream = nullptr;
        CHECK_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
        CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        CUdeviceptr memory = 0;
        CHECK_EQ(cuMemAlloc(&memory, 8), CUDA_SUCCESS);
        std::thread other([=] {
            cuCtxSetCurrent(context);
            CUdeviceptr to = memory, from = memory + 4;
            void* parameters[] = {&to, &from};
            for (int n = 0; n < 50; ++n) {
                cuLaunchKernel(n == 25 && turn % 2 ? bad : good, 4, 1, 1, 1, 1, 1, 0, stream,
                               parameters, nullptr);
                cuMemsetD8Async(memory, 1, 8, stream);
            }
            cuStreamSynchronize(stream);
        });
        if (turn % 3) std::this_thread::yield();
        cuCtxDestroy(context);
        other.join();
    }
}

} // namespace

int main() {
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CUlibrary library = nullptr;
    CHECK_EQ(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
             CUDA_SUCCESS);
    const CUfunction good = kernel_of(library, "add_to"), bad = kernel_of(library, "bad");
    streams_of_many_threads(context, good);
    contexts_that_end(good, bad);
    CHECK_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
    return check::failures() != 0;
}
