// A relocatable object: `helper` is the linker's. Built by tests/data/make.sh.
extern __device__ int helper(int);
extern "C" __global__ void part(int* p) { *p = helper(*p); }
