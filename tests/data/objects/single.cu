// A whole program in one object. Built by tests/data/make.sh.
__global__ void single(int* p) { *p = 1; }
