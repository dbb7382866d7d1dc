// Kernels for clang's NVPTX backend, without CUDA's headers:
// clang++-14 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -O2 -S clang_kernels.cu
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __device__ __attribute__((device))

__device__ static inline int tid() { return __nvvm_read_ptx_sreg_tid_x(); }
__device__ static inline int thread() {
    return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + tid();
}
__device__ static inline void barrier() { __syncthreads(); }

__constant__ float weights[9] = {0.0625f, 0.125f, 0.0625f, 0.125f, 0.25f,
                                 0.125f,  0.0625f, 0.125f, 0.0625f};

extern "C" __global__ void clang_convolution(const float* in, float* out, int width, int height) {
    const int i = thread(), x = i % width, y = i / width;
    if (y >= height) return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            const int u = x + dx, v = y + dy;
            if (u >= 0 && u < width && v >= 0 && v < height)
                sum += weights[(dy + 1) * 3 + dx + 1] * in[v * width + u];
        }
    }
    out[i] = sum;
}

extern "C" __global__ void clang_transpose(const int* in, int* out, int width) {
    __shared__ int tile[16][17];
    const int x = tid() % 16, y = tid() / 16;
    const int bx = __nvvm_read_ptx_sreg_ctaid_x() * 16, by = __nvvm_read_ptx_sreg_ctaid_y() * 16;
    tile[y][x] = in[(by + y) * width + bx + x];
    barrier();
    out[(bx + y) * width + by + x] = tile[x][y];
}

extern "C" __global__ void clang_bitonic_sort(unsigned* values, int count) {
    __shared__ unsigned shared[256];
    const int t = tid();
    shared[t] = values[t];
    for (int size = 2; size <= count; size *= 2) {
        for (int step = size / 2; step > 0; step /= 2) {
            barrier();
            const int other = t ^ step;
            if (other > t) {
                const bool up = (t & size) == 0;
                const unsigned a = shared[t], b = shared[other];
                if ((a > b) == up) shared[t] = b, shared[other] = a;
            }
        }
    }
    barrier();
    values[t] = shared[t];
}

extern "C" __global__ void clang_matmul(const double* a, const double* b, double* c, int n) {
    __shared__ double left[8][8], right[8][8];
    const int x = tid() % 8, y = tid() / 8;
    const int row = __nvvm_read_ptx_sreg_ctaid_y() * 8 + y,
              column = __nvvm_read_ptx_sreg_ctaid_x() * 8 + x;
    double sum = 0;
    for (int k = 0; k < n; k += 8) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        barrier();
        for (int m = 0; m < 8; ++m)
            sum += left[y][m] * right[m][x];
        barrier();
    }
    c[row * n + column] = sum;
}

// Collatz lengths: divergent loops, 64-bit integers, division by a power of two.
extern "C" __global__ void clang_collatz(unsigned* lengths, int count) {
    const int i = thread();
    if (i >= count) return;
    unsigned long long x = i + 1;
    unsigned steps = 0;
    while (x != 1) {
        x = x % 2 == 0 ? x / 2 : 3 * x + 1;
        ++steps;
    }
    lengths[i] = steps;
}

struct Body {
    float x, y, z, mass;
};

extern "C" __global__ void clang_nbody(const Body* bodies, Body* forces, int count) {
    const int i = thread();
    if (i >= count) return;
    Body force = {0, 0, 0, bodies[i].mass};
    for (int j = 0; j < count; ++j) {
        const float dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y,
                    dz = bodies[j].z - bodies[i].z;
        const float square = dx * dx + dy * dy + dz * dz + 0.01f;
        const float scale = bodies[j].mass / (square * __nvvm_sqrt_rn_f(square));
        force.x += dx * scale, force.y += dy * scale, force.z += dz * scale;
    }
    forces[i] = force;
}

// Recursion and a function that is not inlined.
__device__ __attribute__((noinline)) int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void clang_ackermann(int* out) {
    const int i = thread();
    out[i] = ackermann(i / 4, i % 4);
}

// A switch over many cases and a table of function pointers.
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ int negate(int x) { return -x; }
extern "C" __global__ void clang_dispatch(const int* kinds, int* values, int count) {
    int (*const table[])(int) = {twice, square, negate};
    const int i = thread();
    if (i >= count) return;
    int x = values[i];
    switch (kinds[i]) {
    case 0: x += 3; break;
    case 1: x ^= 0x55; break;
    case 2: x = x * 7 - 1; break;
    case 3: x >>= 2; break;
    case 4: x = ~x; break;
    case 5: x = x % 11; break;
    default: x = table[kinds[i] % 3](x);
    }
    values[i] = x;
}
