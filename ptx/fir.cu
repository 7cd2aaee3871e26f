// fir: finite impulse response filter with 16 taps,
//      y[i] = sum over k = 0..15 of h[k] * x[i + k].
//
// One output sample per thread. The loop has a constant bound and is kept as
// a loop on purpose; the asm comment repeats the bound in the PTX.
//
// Launch:  one thread per output, 256 threads per block, n / 256 blocks for n
//          outputs; n is a multiple of 256.
//          h holds 16 floats, x holds n + 15 floats, y holds n floats.
// Compile: nvcc -O3 -arch=compute_75 -ptx fir.cu -o fir.ptx

#define TAPS 16

extern "C" __global__ void fir(const float *__restrict__ x,
                               const float *__restrict__ h,
                               float *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;

#pragma unroll 1
    for (int k = 0; k < TAPS; ++k) {
        asm volatile("// makespan: loop 16");
        sum += h[k] * x[i + k];
    }
    y[i] = sum;
}
