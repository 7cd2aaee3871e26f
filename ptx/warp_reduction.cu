// warp_reduction: sum of 32 floats per warp with shuffles.
//
// Five halving steps, fully unrolled; no shared memory, no barrier. Lane 0
// writes the sum of its warp.
//
// Reference: J. Luitjens, "Faster Parallel Reductions on Kepler", NVIDIA
//            Technical Blog, 2014.
// Launch:  any multiple of 32 threads per block, all lanes active; the total
//          number of threads equals n. in holds n floats, out holds n / 32.
// Compile: nvcc -O3 -arch=compute_75 -ptx warp_reduction.cu -o warp_reduction.ptx

extern "C" __global__ void warp_reduction(const float *__restrict__ in,
                                          float *__restrict__ out)
{
    const unsigned full = 0xffffffffu;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];

    v += __shfl_down_sync(full, v, 16);
    v += __shfl_down_sync(full, v, 8);
    v += __shfl_down_sync(full, v, 4);
    v += __shfl_down_sync(full, v, 2);
    v += __shfl_down_sync(full, v, 1);

    if ((threadIdx.x & 31) == 0)
        out[i >> 5] = v;
}
