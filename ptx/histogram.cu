// histogram: count byte values into 256 bins with global atomics.
//
// One byte per thread; one guard, one load, one atomic addition whose old
// value is not used (still atom.global.add in the PTX, not red).
//
// Launch:  one thread per byte, 256 threads per block, ceil(n / 256) blocks.
//          data holds n bytes; bins holds 256 counters, zeroed beforehand.
// Compile: nvcc -O3 -arch=compute_75 -ptx histogram.cu -o histogram.ptx

extern "C" __global__ void histogram(const unsigned char *__restrict__ data,
                                     unsigned *__restrict__ bins, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&bins[data[i]], 1u);
}
