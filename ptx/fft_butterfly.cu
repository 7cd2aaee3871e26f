// fft_butterfly: one radix-4 decimation-in-time butterfly per thread.
//
// Thread i reads the points i, i + q, i + 2q, i + 3q (q = number of threads),
// multiplies the last three by their twiddle factors w, w^2, w^3 and writes
// the four sums back in place. w = tw[i]; its powers are computed.
// Straight-line code, forward transform (factor -i).
//
// Reference: J. W. Cooley and J. W. Tukey, Math. Comp. 19, 1965.
// Launch:  q threads in all, 64 threads per block, q a multiple of 64.
//          data holds 4 * q complex numbers, tw holds q (as float2: re, im).
// Compile: nvcc -O3 -arch=compute_75 -ptx fft_butterfly.cu -o fft_butterfly.ptx

static __device__ __forceinline__ float2 add(float2 a, float2 b)
{
    return make_float2(a.x + b.x, a.y + b.y);
}

static __device__ __forceinline__ float2 sub(float2 a, float2 b)
{
    return make_float2(a.x - b.x, a.y - b.y);
}

static __device__ __forceinline__ float2 mul(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

extern "C" __global__ void fft_butterfly(float2 *__restrict__ data,
                                         const float2 *__restrict__ tw)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int q = gridDim.x * blockDim.x;

    float2 w1 = tw[i];
    float2 w2 = mul(w1, w1);
    float2 w3 = mul(w2, w1);

    float2 a = data[i];
    float2 b = mul(data[i + q], w1);
    float2 c = mul(data[i + 2 * q], w2);
    float2 d = mul(data[i + 3 * q], w3);

    float2 s0 = add(a, c), s1 = sub(a, c);
    float2 s2 = add(b, d), s3 = sub(b, d);
    float2 r3 = make_float2(s3.y, -s3.x);         // -i * s3

    data[i]         = add(s0, s2);
    data[i + q]     = add(s1, r3);
    data[i + 2 * q] = sub(s0, s2);
    data[i + 3 * q] = sub(s1, r3);
}
