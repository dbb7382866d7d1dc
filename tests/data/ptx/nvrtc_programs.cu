// Whole small programs for NVRTC: `python compile_nvrtc.py`.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned char u8;

#define KERNEL extern "C" __global__ void

// Scans 256 elements a block; the sum of all blocks before comes from looking back at their flags.
// state: 0 nothing, 1 the block's own sum, 2 the sum up to the block.
KERNEL nvrtc_scan_look_back(const long long* in, long long* out, volatile int* state,
                            volatile long long* own, volatile long long* total, u32* ticket) {
    __shared__ u32 block;
    __shared__ long long warps[8], before;
    if (threadIdx.x == 0)
        block = atomicAdd(ticket, 1);
    __syncthreads();
    const u32 b = block, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long value = in[b * 256 + threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        const long long other = __shfl_up_sync(~0u, value, step);
        if (lane >= step)
            value += other;
    }
    if (lane == 31)
        warps[warp] = value;
    __syncthreads();
    for (u32 w = 0; w < warp; ++w)
        value += warps[w];
    if (threadIdx.x == 255) {
        own[b] = value;
        __threadfence();
        state[b] = 1;
        long long sum = 0;
        for (int at = (int)b - 1; at >= 0; --at) {
            int seen;
            while ((seen = state[at]) == 0)
                ;
            __threadfence();
            sum += seen == 2 ? total[at] : own[at];
            if (seen == 2)
                break;
        }
        total[b] = sum + value;
        __threadfence();
        state[b] = 2;
        before = sum;
    }
    __syncthreads();
    out[b * 256 + threadIdx.x] = value + before;
}

// Sorts 512 keys with their values, four bits at a time.
KERNEL nvrtc_radix_sort(u32* keys, u32* values) {
    __shared__ u32 key[512], value[512], counts[16][16], place[16][16];
    const u32 t = threadIdx.x, lane = t % 32, warp = t / 32;
    key[t] = keys[t];
    value[t] = values[t];
    for (u32 shift = 0; shift < 32; shift += 4) {
        __syncthreads();
        const u32 k = key[t], v = value[t], digit = k >> shift & 15;
        const u32 same = __match_any_sync(~0u, digit), rank = __popc(same & ((1u << lane) - 1));
        if (t < 256)
            counts[t / 16][t % 16] = 0;
        __syncthreads();
        if (rank == 0)
            counts[digit][warp] = __popc(same);
        __syncthreads();
        if (t < 256) {
            u32 sum = 0;
            for (u32 n = 0; n < t; ++n)
                sum += counts[n / 16][n % 16];
            place[t / 16][t % 16] = sum;
        }
        __syncthreads();
        key[place[digit][warp] + rank] = k;
        value[place[digit][warp] + rank] = v;
    }
    __syncthreads();
    keys[t] = key[t];
    values[t] = value[t];
}

__device__ void quicksort(float* values, int low, int high) {
    if (low >= high)
        return;
    const float pivot = values[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (values[i] < pivot)
            ++i;
        while (values[j] > pivot)
            --j;
        if (i <= j) {
            const float kept = values[i];
            values[i++] = values[j];
            values[j--] = kept;
        }
    }
    quicksort(values, low, j);
    quicksort(values, i, high);
}

// Each thread sorts its own row by recursion.
KERNEL nvrtc_quicksort(float* rows, int length) {
    quicksort(rows + (size_t)length * (blockIdx.x * blockDim.x + threadIdx.x), 0, length - 1);
}

KERNEL nvrtc_histogram(const u8* in, u64* bins, int n) {
    __shared__ u32 own[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        own[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[in[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        atomicAdd(&bins[b], (u64)own[b]);
}

// Five points of 16 x 16 tiles with their borders.
KERNEL nvrtc_stencil_2d(const float* in, float* out, int width, int height) {
    __shared__ float tile[18][18];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int ty = threadIdx.y; ty < 18; ty += 16) {
        for (int tx = threadIdx.x; tx < 18; tx += 16) {
            const int gx = min(max((int)blockIdx.x * 16 + tx - 1, 0), width - 1);
            const int gy = min(max((int)blockIdx.y * 16 + ty - 1, 0), height - 1);
            tile[ty][tx] = in[gy * width + gx];
        }
    }
    __syncthreads();
    if (x >= width || y >= height)
        return;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    out[y * width + x] = 0.5f * tile[ty][tx] + 0.125f * (tile[ty - 1][tx] + tile[ty + 1][tx] +
                                                         tile[ty][tx - 1] + tile[ty][tx + 1]);
}

KERNEL nvrtc_stencil_3d(const double* in, double* out, int3 size) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
              z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z)
        return;
    const auto at = [&](int i, int j, int k) {
        const bool inside = i >= 0 && j >= 0 && k >= 0 && i < size.x && j < size.y && k < size.z;
        return inside ? in[((size_t)k * size.y + j) * size.x + i] : 0.0;
    };
    out[((size_t)z * size.y + y) * size.x + x] = at(x - 1, y, z) + at(x + 1, y, z) +
                                                 at(x, y - 1, z) + at(x, y + 1, z) +
                                                 at(x, y, z - 1) + at(x, y, z + 1) -
                                                 6.0 * at(x, y, z);
}

// 256 points a block, radix 2, in place.
KERNEL nvrtc_fft(const float2* in, float2* out) {
    __shared__ float2 point[256];
    const u32 t = threadIdx.x; // of 128
    in += blockIdx.x * 256;
    out += blockIdx.x * 256;
    for (u32 i = t; i < 256; i += 128)
        point[__brev(i) >> 24] = in[i];
    for (u32 half = 1; half < 256; half *= 2) {
        __syncthreads();
        const u32 k = t % half, i = (t - k) * 2 + k;
        float s, c;
        sincospif(-(float)k / half, &s, &c);
        const float2 a = point[i], b = point[i + half];
        const float2 turned = {b.x * c - b.y * s, b.x * s + b.y * c};
        point[i] = {a.x + turned.x, a.y + turned.y};
        point[i + half] = {a.x - turned.x, a.y - turned.y};
    }
    __syncthreads();
    for (u32 i = t; i < 256; i += 128)
        out[i] = point[i];
}

KERNEL nvrtc_transpose(const double2* in, double2* out, int width, int height) {
    __shared__ double2 tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = in[(size_t)y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width)
        out[(size_t)y * height + x] = tile[threadIdx.x][threadIdx.y];
}

// Sum, least and greatest in one pass over the data.
KERNEL nvrtc_reduce(const double* in, double* sum, int* least, int* most, int n) {
    double part = 0;
    int low = 2147483647, high = -2147483647 - 1;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        part += in[i];
        low = min(low, __double2int_rd(in[i]));
        high = max(high, __double2int_ru(in[i]));
    }
    for (int step = 16; step; step /= 2)
        part += __shfl_down_sync(~0u, part, step);
    low = __reduce_min_sync(~0u, low);
    high = __reduce_max_sync(~0u, high);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(sum, part);
        atomicMin(least, low);
        atomicMax(most, high);
    }
}

struct Atomics {
    int add, sub, low, high;
    u32 ulow, uhigh, both, any, odd, up, down, last;
    u64 add64, low64, high64, both64, any64, odd64;
    float real;
    double twice;
    __half2 half;
    __nv_bfloat162 brain;
    u32 greatest; // of floats, by compare and swap
    unsigned short small;
};

KERNEL nvrtc_atomics(Atomics* a, Atomics* block_total) {
    __shared__ Atomics own;
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        own = *block_total;
    __syncthreads();
    Atomics* const all[2] = {a, &own};
    for (Atomics* to : all) {
        atomicAdd(&to->add, t);
        atomicSub(&to->sub, t);
        atomicMin(&to->low, t - 100);
        atomicMax(&to->high, t - 100);
        atomicMin(&to->ulow, (u32)t * 7 + 3);
        atomicMax(&to->uhigh, (u32)t * 7 + 3);
        atomicAnd(&to->both, ~(1u << t % 32) | 0xff);
        atomicOr(&to->any, 1u << t % 20);
        atomicXor(&to->odd, 0x9e3779b9u * t);
        atomicInc(&to->up, 9);
        atomicDec(&to->down, 9);
        atomicAdd(&to->add64, (u64)t << 33);
        atomicMin((long long*)&to->low64, -(long long)t * 5000000000);
        atomicMax(&to->high64, (u64)t * 5000000000);
        atomicAnd(&to->both64, ~(u64(1) << t % 64) | 0xf0);
        atomicOr(&to->any64, u64(1) << t % 50);
        atomicXor(&to->odd64, 0x9e3779b97f4a7c15u * (u64)t);
        atomicAdd(&to->real, 0.5f);
        atomicAdd(&to->twice, 0.25);
        atomicAdd(&to->half, __floats2half2_rn(1.0f, -0.5f));
        if (to == a) // in shared memory CUDA's header guesses first what is there
            atomicAdd(&to->brain, __floats2bfloat162_rn(0.5f, 1.0f));
        atomicExch(&to->last, 77);
        const float mine = __sinf(t) + 2;
        u32 old = atomicOr(&to->greatest, 0);
        while (__uint_as_float(old) < mine) {
            const u32 assumed = old;
            old = atomicCAS(&to->greatest, assumed, __float_as_uint(mine));
            if (old == assumed)
                break;
        }
        unsigned short small = 0, seen;
        while ((seen = atomicCAS(&to->small, small, (unsigned short)(small + 1))) != small)
            small = seen;
    }
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1)
        *block_total = own;
}

__device__ void copy_16_bytes(void* to, const void* from) {
    const u32 shared = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from));
}

// 32 x 32 tiles of the product; the next ones are copied while these are multiplied.
KERNEL nvrtc_matmul_async(const float* a, const float* b, float* c, int n) {
    __shared__ alignas(16) float left[2][32][32], right[2][32][32];
    const int row = blockIdx.y * 32, column = blockIdx.x * 32, t = threadIdx.x; // of 256
    const auto fetch = [&](int stage, int k) {
        copy_16_bytes(&left[stage][t / 8][t % 8 * 4], a + (row + t / 8) * n + k + t % 8 * 4);
        copy_16_bytes(&right[stage][t / 8][t % 8 * 4], b + (k + t / 8) * n + column + t % 8 * 4);
        asm volatile("cp.async.commit_group;");
    };
    float sum[4] = {};
    fetch(0, 0);
    for (int k = 0; k < n; k += 32) {
        const int stage = k / 32 % 2;
        if (k + 32 < n) {
            fetch(stage ^ 1, k + 32);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        for (int i = 0; i < 32; ++i) {
            for (int j = 0; j < 4; ++j)
                sum[j] += left[stage][t / 32 * 4 + j][i] * right[stage][i][t % 32];
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j)
        c[(row + t / 32 * 4 + j) * n + column + t % 32] = sum[j];
}

// One warp: 16 x 16 times 16 x 8; b is transposed.
KERNEL nvrtc_mma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    const int g = threadIdx.x / 4, p = threadIdx.x % 4;
    const auto pair = [](const __nv_bfloat16* at) { return *(const u32*)at; };
    const u32 a0 = pair(a + g * 16 + p * 2), a1 = pair(a + (g + 8) * 16 + p * 2);
    const u32 a2 = pair(a + g * 16 + p * 2 + 8), a3 = pair(a + (g + 8) * 16 + p * 2 + 8);
    const u32 b0 = pair(b + g * 16 + p * 2), b1 = pair(b + g * 16 + p * 2 + 8);
    float d[4];
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(1.0f));
    for (int i = 0; i < 4; ++i)
        c[(g + i / 2 * 8) * 8 + p * 2 + i % 2] = d[i];
}

// 16 x 32 times 32 x 8 of signed by unsigned bytes, by ldmatrix; b is transposed.
KERNEL nvrtc_mma_int8(const u32* a, const u32* b, int* c) {
    __shared__ alignas(16) u32 left[16][8], right[8][8];
    const u32 t = threadIdx.x;
    for (u32 i = t; i < 128; i += 32)
        left[i / 8][i % 8] = a[i];
    for (u32 i = t; i < 64; i += 32)
        right[i / 8][i % 8] = b[i];
    __syncwarp();
    u32 x[4], y[2];
    const u32 row = (u32)__cvta_generic_to_shared(&left[t % 16][t / 16 * 4]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(row));
    const u32 column = (u32)__cvta_generic_to_shared(&right[t % 8][t / 8 % 2 * 4]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(column));
    int d[4];
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%10,%10,%10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(-7));
    const u32 g = t / 4, p = t % 4;
    for (int i = 0; i < 4; ++i)
        c[(g + i / 2 * 8) * 8 + p * 2 + i % 2] = d[i];
}

__device__ float2 warp_softmax_sum(float most, float sum) {
    for (int step = 16; step; step /= 2) {
        const float other = __shfl_xor_sync(~0u, most, step),
                    other_sum = __shfl_xor_sync(~0u, sum, step);
        const float both = fmaxf(most, other);
        sum = sum * expf(most - both) + other_sum * expf(other - both);
        most = both;
    }
    return {most, sum};
}

// A warp for each row; maximum and sum in one pass.
KERNEL nvrtc_softmax(const float* in, float* out, int columns) {
    in += (size_t)blockIdx.x * columns;
    out += (size_t)blockIdx.x * columns;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 32) {
        const float value = in[i], both = fmaxf(most, value);
        sum = sum * expf(most - both) + expf(value - both);
        most = both;
    }
    const float2 whole = warp_softmax_sum(most, sum);
    for (int i = threadIdx.x; i < columns; i += 32)
        out[i] = expf(in[i] - whole.x) / whole.y;
}

// Half precision in and out, statistics in single; a block of 128 for each row.
KERNEL nvrtc_layernorm(const __half2* in, const float2* scale, __half2* out, int pairs, float eps) {
    __shared__ float2 warps[4];
    in += (size_t)blockIdx.x * pairs;
    out += (size_t)blockIdx.x * pairs;
    float2 sum = {0, 0};
    for (int i = threadIdx.x; i < pairs; i += 128) {
        const float2 x = __half22float2(in[i]);
        sum.x += x.x + x.y;
        sum.y += x.x * x.x + x.y * x.y;
    }
    for (int step = 16; step; step /= 2) {
        sum.x += __shfl_xor_sync(~0u, sum.x, step);
        sum.y += __shfl_xor_sync(~0u, sum.y, step);
    }
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = {0, 0};
    for (int w = 0; w < 4; ++w)
        sum = {sum.x + warps[w].x, sum.y + warps[w].y};
    const float mean = sum.x / (2 * pairs), spread = sum.y / (2 * pairs) - mean * mean;
    const float factor = rsqrtf(spread + eps);
    for (int i = threadIdx.x; i < pairs; i += 128) {
        const float2 x = __half22float2(in[i]), s = scale[i];
        out[i] = __floats2half2_rn((x.x - mean) * factor * s.x, (x.y - mean) * factor * s.y);
    }
}

// Philox 4x32-10: counter {thread, 0, 0, 0}, key {seed, 0}.
KERNEL nvrtc_philox(uint4* out, u32 seed) {
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 c = {t, 0, 0, 0};
    u32 k0 = seed, k1 = 0;
    for (int round = 0; round < 10; ++round) {
        const u32 h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
        const u32 h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = {h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[t] = c;
}

// Normal numbers of two uniform ones.
KERNEL nvrtc_box_muller(const float2* in, float2* out, int n) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n)
        return;
    float s, c;
    sincosf(6.2831853f * in[t].y, &s, &c);
    const float length = sqrtf(-2.0f * logf(in[t].x));
    out[t] = {length * c, length * s};
}

KERNEL nvrtc_printf(int n, const char* unused) {
    if (threadIdx.x == 0 && blockIdx.x == 0)
        printf("%s %d %5.2f %llx %c%%\n", "values", n, n * 0.25, 0x123456789abcull * n, 'a' + n);
}

struct Node {
    int value;
    Node *left, *right;
};

__device__ int height(const Node* node) {
    return node ? 1 + max(height(node->left), height(node->right)) : 0;
}

__device__ int collect(Node* node, int* out, int count) {
    if (!node)
        return count;
    count = collect(node->left, out, count);
    out[count++] = node->value;
    count = collect(node->right, out, count);
    free(node);
    return count;
}

// A tree for each thread, on the heap of the device.
KERNEL nvrtc_tree(const int* in, int* out, int* heights, int n) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    Node* root = nullptr;
    for (int i = 0; i < n; ++i) {
        Node* const made = (Node*)malloc(sizeof(Node));
        *made = {in[t * n + i], nullptr, nullptr};
        Node** at = &root;
        while (*at)
            at = made->value < (*at)->value ? &(*at)->left : &(*at)->right;
        *at = made;
    }
    heights[t] = height(root);
    collect(root, out + t * n, 0);
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual float scaled(float by) const { return area() * by; }
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
    float radius;
    __device__ Disc(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
    __device__ float scaled(float by) const override { return -area() * by; }
};

__device__ float twice(float x) {
    return 2 * x;
}
__device__ float negated(float x) {
    return -x;
}
__device__ float (*const functions[])(float) = {twice, negated};

KERNEL nvrtc_virtual(float* out) {
    const int t = threadIdx.x;
    alignas(16) char place[sizeof(Disc)];
    const Shape* shape;
    if (t % 3 == 0)
        shape = new (place) Square(t);
    else
        shape = new (place) Disc(t);
    out[t] = functions[t % 2](shape->scaled(0.5f));
}

// Heat along a rod: all blocks meet after each step.
KERNEL nvrtc_grid_sync(float* one, float* two, int n, int steps) {
    const cg::grid_group grid = cg::this_grid();
    for (int step = 0; step < steps; ++step) {
        const float* const from = step % 2 ? two : one;
        float* const to = step % 2 ? one : two;
        for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size())
            to[i] = 0.25f * from[max(i - 1, 0)] + 0.5f * from[i] + 0.25f * from[min(i + 1, n - 1)];
        grid.sync();
    }
}

__constant__ u32 round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// SHA-256 of messages of 32 bytes: one block of 64 with the padding.
KERNEL nvrtc_sha256(const u32* in, u32* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    u32 w[64], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int i = 0; i < 8; ++i)
        w[i] = __byte_perm(in[t * 8 + i], 0, 0x0123);
    for (int i = 8; i < 16; ++i)
        w[i] = i == 8 ? 0x80000000u : i == 15 ? 256u : 0u;
    const auto turn = [](u32 x, int by) { return __funnelshift_r(x, x, by); };
#pragma unroll 1
    for (int i = 16; i < 64; ++i) {
        const u32 a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    u32 s[8];
    for (int i = 0; i < 8; ++i)
        s[i] = h[i];
#pragma unroll 1
    for (int i = 0; i < 64; ++i) {
        const u32 one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) +
                        ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constants[i] + w[i];
        const u32 two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                        ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j > 0; --j)
            s[j] = s[j - 1];
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; ++i)
        out[t * 8 + i] = __byte_perm(h[i] + s[i], 0, 0x0123);
}

// Products and remainders of 128 bits.
KERNEL nvrtc_wide_integers(const u64* a, const u64* b, u64* product, u64* remainder, int n) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n)
        return;
    const unsigned __int128 whole = (unsigned __int128)a[t] * b[t];
    product[2 * t] = (u64)whole;
    product[2 * t + 1] = (u64)(whole >> 64);
    u64 power = 1;
    for (u64 base = a[t] % 1000000007, e = b[t] % 1000; e; e >>= 1) {
        if (e & 1)
            power = power * base % 1000000007;
        base = base * base % 1000000007;
    }
    remainder[t] = power;
}

// A sparse matrix by rows times a vector, a warp for each row.
KERNEL nvrtc_sparse(const int* rows, const int* columns, const float* values, const float* x,
                    float* y, int n) {
    const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= n)
        return;
    float sum = 0;
    for (int i = rows[row] + warp.thread_rank(); i < rows[row + 1]; i += 32)
        sum += values[i] * x[columns[i]];
    for (int step = 16; step; step /= 2)
        sum += warp.shfl_down(sum, step);
    if (warp.thread_rank() == 0)
        y[row] = sum;
}

// The place of the greatest: value and place packed into one word.
KERNEL nvrtc_argmax(const float* in, u64* best, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int bits = __float_as_int(in[i]);
        const u32 key = bits ^ (bits >> 31 | 0x80000000);
        atomicMax(best, (u64)key << 32 | (u32)~i);
    }
}

// The distance of two words of up to 64 letters, one diagonal of the table after the other.
KERNEL nvrtc_edit_distance(const char* a, const char* b, int n, int m, int* out) {
    __shared__ int table[3][66];
    const int t = threadIdx.x; // of 65: a row
    for (int d = 0; d <= n + m; ++d) {
        int *const now = table[d % 3], *const last = table[(d + 2) % 3],
            *const earlier = table[(d + 1) % 3];
        const int column = d - t;
        if (t <= n && column >= 0 && column <= m) {
            if (t == 0 || column == 0)
                now[t] = d;
            else
                now[t] = min(min(last[t], last[t - 1]) + 1,
                             earlier[t - 1] + (a[t - 1] != b[column - 1]));
        }
        __syncthreads();
    }
    if (t == n)
        *out = table[(n + m) % 3][n];
}

__device__ int root_of(volatile int* parent, int node) {
    while (parent[node] != node)
        node = parent[node];
    return node;
}

// The parts of a graph: each edge joins the trees of its ends.
KERNEL nvrtc_components(int* parent, const int2* edges, int n) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n)
        return;
    int a = edges[t].x, b = edges[t].y;
    for (;;) {
        a = root_of(parent, a);
        b = root_of(parent, b);
        if (a == b)
            return;
        const int high = max(a, b), low = min(a, b);
        if (atomicCAS(parent + high, high, low) == high)
            return;
    }
}

// Conway's game of life, 32 cells a word, on a torus.
KERNEL nvrtc_life(const u32* in, u32* out, int words, int height) {
    const int x = threadIdx.x, y = blockIdx.x;
    u32 ones = 0, twos = 0, fours = 0, self = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        const u32* row = in + (y + dy + height) % height * words;
        const u32 here = row[x], before = row[(x + words - 1) % words],
                  after = row[(x + 1) % words];
        const u32 left = __funnelshift_l(before, here, 1), right = __funnelshift_r(here, after, 1);
        if (dy == 0)
            self = here;
        const u32 cells[3] = {left, dy ? here : 0, right};
        for (u32 cell : cells) {
            const u32 carry = ones & cell;
            ones ^= cell;
            fours |= twos & carry;
            twos ^= carry;
        }
    }
    out[y * words + x] = twos & ~fours & (ones | self);
}

// Grey of pictures of four bytes a point, by dp4a.
KERNEL nvrtc_grey(const u32* in, u8* out, int n) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n)
        out[t] = (u8)((__dp4a(in[t], 0x001d964du, 128u)) >> 8);
}

// Adds a value to the count of each key, once for all threads of a warp with the same key.
KERNEL nvrtc_by_key(const int* keys, u32* counts, u32* leaders, int n) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n)
        return;
    const u32 here = __activemask(), same = __match_any_sync(here, keys[t]);
    if ((int)(threadIdx.x % 32) == __ffs(same) - 1) {
        atomicAdd(counts + keys[t], __popc(same));
        atomicAdd(leaders, 1);
    }
}
