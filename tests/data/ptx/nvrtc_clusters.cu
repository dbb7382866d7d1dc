// Programs of clusters, mbarriers and bulk copies for NVRTC: `python compile_nvrtc.py`.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __global__ void

// 1,024 bins, 256 in the shared memory of each block of a cluster of 4.
KERNEL __cluster_dims__(4, 1, 1) nvrtc_cluster_histogram(const u32* in, u32* out, int n) {
    __shared__ u32 bins[256];
    cg::cluster_group cluster = cg::this_cluster();
    bins[threadIdx.x] = 0;
    cluster.sync();
    for (int i = (int)cluster.thread_rank(); i < n; i += (int)cluster.num_threads()) {
        u32* const owner = cluster.map_shared_rank(bins, in[i] / 256);
        atomicAdd(owner + in[i] % 256, 1);
    }
    cluster.sync();
    out[cluster.block_rank() * 256 + threadIdx.x] = bins[threadIdx.x];
}

// Each block hands its row on to the next of its cluster, round and round.
KERNEL nvrtc_cluster_ring(float* rows, int turns) {
    __shared__ float row[2][64];
    cg::cluster_group cluster = cg::this_cluster();
    const u32 rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
    float* const own = rows + (size_t)blockIdx.x * 64 + threadIdx.x;
    row[0][threadIdx.x] = *own;
    cluster.sync();
    for (int turn = 0; turn < turns; ++turn) {
        *cluster.map_shared_rank(&row[(turn + 1) % 2][threadIdx.x], next) =
            row[turn % 2][threadIdx.x] * 2 + rank;
        cluster.sync();
    }
    *own = row[turns % 2][threadIdx.x];
}

__device__ u32 shared_address(const void* at) {
    return (u32)__cvta_generic_to_shared(at);
}

__device__ void wait(u64* barrier, u32 phase) {
    asm volatile("{\n.reg .pred p;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(
                     shared_address(barrier)),
                 "r"(phase));
}

// Dot product of tiles of 256 floats: bulk copies fill three stages while others are summed.
KERNEL nvrtc_pipeline(const float* a, const float* b, float* out, int tiles) {
    __shared__ alignas(128) float stage[3][2][256];
    __shared__ u64 full[3], empty[3];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 3; ++s) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(full + s)));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(
                shared_address(empty + s)));
        }
        asm volatile("fence.proxy.async.shared::cta;");
    }
    __syncthreads();
    if (threadIdx.x >= 128) { // the producer
        if (threadIdx.x != 128)
            return;
        for (int tile = 0; tile < tiles; ++tile) {
            const int s = tile % 3;
            if (tile >= 3)
                wait(empty + s, tile / 3 % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(
                shared_address(full + s)));
            for (int which = 0; which < 2; ++which) {
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                             "[%0], [%1], 1024, [%2];" ::"r"(shared_address(stage[s][which])),
                             "l"((which ? b : a) + (size_t)tile * 256),
                             "r"(shared_address(full + s))
                             : "memory");
            }
        }
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        const int s = tile % 3;
        wait(full + s, tile / 3 % 2);
        for (int i = (int)threadIdx.x; i < 256; i += 128)
            sum += stage[s][0][i] * stage[s][1][i];
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(empty + s)));
    }
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0)
        atomicAdd(out, sum);
}
