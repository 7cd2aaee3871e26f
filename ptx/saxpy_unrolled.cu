// saxpy_unrolled: y[i] = alpha * x[i] + y[i], four elements per thread.
//
// The four elements of a thread lie blockDim.x apart, so that every access of
// a warp is coalesced. There is no guard: the kernel is straight-line code.
//
// Reference: SAXPY of the level-1 BLAS (Lawson et al., ACM TOMS 5(3), 1979).
// Launch:  256 threads per block, n / 1024 blocks; n is a multiple of 1024.
//          x and y hold n floats each.
// Compile: nvcc -O3 -arch=compute_75 -ptx saxpy_unrolled.cu -o saxpy_unrolled.ptx

extern "C" __global__ void saxpy_unrolled(float alpha,
                                          const float *__restrict__ x,
                                          float *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x * 4 + threadIdx.x;
    int s = blockDim.x;

    // All loads first, so that they can be in flight together.
    float x0 = x[i], x1 = x[i + s], x2 = x[i + 2 * s], x3 = x[i + 3 * s];
    float y0 = y[i], y1 = y[i + s], y2 = y[i + 2 * s], y3 = y[i + 3 * s];

    y[i]         = alpha * x0 + y0;
    y[i + s]     = alpha * x1 + y1;
    y[i + 2 * s] = alpha * x2 + y2;
    y[i + 3 * s] = alpha * x3 + y3;
}
