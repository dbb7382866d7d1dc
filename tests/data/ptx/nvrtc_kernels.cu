// Kernels for NVRTC: `python compile_nvrtc.py`.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void nvrtc_wmma_f16(const __half* a, const __half* b, float* c, int n) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    const int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(left, a + row * n + k, n);
        wmma::load_matrix_sync(right, b + column * n + k, n); // b is transposed
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i)
        sum.x[i] *= 0.5f;
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void nvrtc_wmma_s8(const signed char* a, const signed char* b, int* c) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 32, 8, 16, int> sum;
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::load_matrix_sync(sum, c, 8, wmma::mem_row_major);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

extern "C" __global__ void nvrtc_wmma_f64(const double* a, const double* b, double* c) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::fill_fragment(sum, 0.0);
    for (int k = 0; k < 16; k += 4) {
        wmma::load_matrix_sync(left, a + k, 16);
        wmma::load_matrix_sync(right, b + 8 * k, 8);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_col_major);
}

extern "C" __global__ void nvrtc_fp8(const float* in, unsigned char* e4m3, unsigned char* e5m2,
                                     float* back, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __nv_fp8_e4m3 narrow(in[i]);
    const __nv_fp8_e5m2 wide(in[i]);
    e4m3[i] = narrow.__x;
    e5m2[i] = wide.__x;
    back[i] = float(narrow) + float(wide);
}

extern "C" __global__ void nvrtc_bf16(const __nv_bfloat162* x, const __nv_bfloat162* y,
                                      __nv_bfloat162* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __hmax2(__hfma2(x[i], y[i], x[i]), __hneg2(y[i]));
}

extern "C" __global__ void nvrtc_half_reduce(const __half2* x, float* out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float2 pair = __half22float2(__hmul2(x[i], x[i]));
        sum += pair.x + pair.y;
    }
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

extern "C" __global__ void nvrtc_float_math(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = x[i];
    out[i] = sinf(v) * cosf(3 * v) + expf(-fabsf(v)) + logf(1 + v * v) + powf(fabsf(v), 0.3f) +
             tanhf(v) + fmodf(v, 0.7f) + rsqrtf(1 + v * v);
}

// Blelloch's exclusive scan.
extern "C" __global__ void nvrtc_scan(int* values) {
    __shared__ int shared[512];
    const int t = threadIdx.x;
    shared[2 * t] = values[2 * t];
    shared[2 * t + 1] = values[2 * t + 1];
    int offset = 1;
    for (int d = 256; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) shared[offset * (2 * t + 2) - 1] += shared[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) shared[511] = 0;
    for (int d = 1; d < 512; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            const int low = offset * (2 * t + 1) - 1, high = offset * (2 * t + 2) - 1;
            const int left = shared[low];
            shared[low] = shared[high];
            shared[high] += left;
        }
    }
    __syncthreads();
    values[2 * t] = shared[2 * t];
    values[2 * t + 1] = shared[2 * t + 1];
}
