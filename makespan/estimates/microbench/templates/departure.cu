// $comment
extern "C" __global__ void $name(const float *x, size_t h, float *out, long long *clocks)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    __syncthreads();
    long long start = clock64();
$loads
    *(volatile float *)(out + i) = $sum;
    clocks[2 * i] = start;
    clocks[2 * i + 1] = clock64();
}
