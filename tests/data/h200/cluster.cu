extern "C" __global__ void __cluster_dims__(2,1,1) cluster(int* out){
  __shared__ int s; unsigned r=__clusterRelativeBlockRank(), n=__clusterSizeInBlocks(); if(threadIdx.x==0) s=100+r; __cluster_barrier_arrive(); __cluster_barrier_wait();
  int* peer=(int*)__cluster_map_shared_rank(&s,(r+1)%n); if(threadIdx.x==0) out[blockIdx.x]=*peer; __cluster_barrier_arrive(); __cluster_barrier_wait(); }
extern "C" __global__ void __cluster_dims__(4,1,1) __launch_bounds__(128,2) cluster_lb(int* out){ out[blockIdx.x*blockDim.x+threadIdx.x]=threadIdx.x; }
