// bitonic: every warp merges one bitonic sequence of 32 integers.
//
// The last phase of a bitonic sort: five compare-exchange steps at distances
// 16, 8, 4, 2, 1. Each lane holds one key and fetches its partner's key with
// a shuffle; the lower lane of a pair keeps the minimum. No shared memory, no
// barrier. The shuffle distance may vary at run time, so the loop is kept.
//
// Reference: K. E. Batcher, "Sorting networks and their applications",
//            AFIPS Spring Joint Computer Conference, 1968.
// Launch:  any multiple of 32 threads per block, all lanes active; key holds
//          one int per thread, each group of 32 a bitonic sequence.
// Compile: nvcc -O3 -arch=compute_75 -ptx bitonic.cu -o bitonic.ptx

extern "C" __global__ void bitonic(int *__restrict__ key)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    int v = key[i];

#pragma unroll 1
    for (int d = 16; d > 0; d >>= 1) {
        asm volatile("// makespan: loop 5");
        int o = __shfl_xor_sync(0xffffffffu, v, d);
        v = (lane & d) ? max(v, o) : min(v, o);
    }
    key[i] = v;
}
