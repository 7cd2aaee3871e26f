// reduction: sum of 512 floats per block, in shared memory.
//
// Every thread adds two elements while loading; then the number of active
// threads halves in each of eight steps, with a barrier after each step.
//
// Reference: M. Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA
//            (sequential addressing, first add during load).
// Launch:  exactly 256 threads per block, n / 512 blocks; n is a multiple of
//          512. in holds n floats, out holds one float per block.
// Compile: nvcc -O3 -arch=compute_75 -ptx reduction.cu -o reduction.ptx

#define BLOCK 256

extern "C" __global__ void reduction(const float *__restrict__ in,
                                     float *__restrict__ out)
{
    __shared__ float part[BLOCK];

    int t = threadIdx.x;
    int i = blockIdx.x * (2 * BLOCK) + t;
    part[t] = in[i] + in[i + BLOCK];
    __syncthreads();

#pragma unroll 1
    for (int s = BLOCK / 2; s > 0; s >>= 1) {
        asm volatile("// makespan: loop 8");
        if (t < s)
            part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}
