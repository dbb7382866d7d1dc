// nvcc 13.0 -std=c++17 -arch=sm_N -cubin features.cu. The .abi7 images: ptxas 12.9 on the PTX with its version
// set back to 8.8 and without .blocksareclusters.
__device__ float zeros[1000];
__device__ int five = 5;
__constant__ float weights[10];
__constant__ int three = 3;
__managed__ int managed = 4;
struct Large {
    char bytes[5000];
};
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(96, 2, 4) bounds(int* p) { *p = 1; }
extern "C" __global__ void __block_size__((64, 2, 1), (2, 1, 1)) cluster(int* p) { *p = 1; }
#else
extern "C" __global__ void __launch_bounds__(96, 2) bounds(int* p) { *p = 1; }
#endif
extern "C" __global__ void barriers() { asm volatile("bar.sync 5;"); }
extern "C" __global__ void large(Large b, int* p, char c) { *p = b.bytes[*p] + c; }
extern "C" __global__ void local(int* p) {
    int a[100];
    for (int i = 0; i < 100; i++) a[i] = p[i];
    for (int i = 0; i < 100; i++) p[i] = a[p[i + 100]];
}
extern "C" __global__ void shared(int* p) {
    __shared__ int s[100];
    s[threadIdx.x] = *p;
    __syncthreads();
    *p = s[*p] + five + managed + three + weights[*p] + zeros[*p];
}
