// vecadd: c[i] = a[i] + b[i].
//
// The "hello world" of CUDA: one guard, two loads, one store.
//
// Launch:  one thread per element, 256 threads per block, ceil(n / 256) blocks.
//          a, b and c hold n floats each.
// Compile: nvcc -O3 -arch=compute_75 -ptx vecadd.cu -o vecadd.ptx

extern "C" __global__ void vecadd(const float *__restrict__ a,
                                  const float *__restrict__ b,
                                  float *__restrict__ c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
