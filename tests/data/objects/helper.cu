// A relocatable object without kernels. Built by tests/data/make.sh.
__device__ int helper(int x) { return x + 1; }
