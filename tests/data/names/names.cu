// Kernels whose names need C++ to be told apart. Built by tests/data/make.sh.
namespace ns {
template <class T, int N>
__global__ void axpy(T a, const T* x, T* y, unsigned long n) {
    if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x] + N;
}
namespace {
__global__ void hidden(int* p) { *p = 1; }
} // namespace
struct Pair {
    int a, b;
};
template <class T>
__global__ void scale(T* p) { p[0] = T(); }
template __global__ void axpy<float, 4>(float, const float*, float*, unsigned long);
template __global__ void axpy<double, 4>(double, const double*, double*, unsigned long);
template __global__ void axpy<double, 8>(double, const double*, double*, unsigned long);
template __global__ void scale<Pair>(Pair*);
__device__ int counter = 7;
} // namespace ns

namespace {
__global__ void secret(int* p) { *p = 2; }
} // namespace
static __global__ void internal(int* p) { *p = 3; }
__global__ void over(int* p) { *p = 4; }
__global__ void over(float* p) { *p = 5; }
__global__ void over(unsigned n, const unsigned long long* p, int* q) { *q = n + *p; }
namespace ns {
__global__ void over(int* p) { *p = 6; }
} // namespace ns
extern "C" __global__ void plain(int* p) { *p = 7 + ns::counter; }

void use(int* p) {
    ns::hidden<<<1, 1>>>(p);
    secret<<<1, 1>>>(p);
    internal<<<1, 1>>>(p);
}
