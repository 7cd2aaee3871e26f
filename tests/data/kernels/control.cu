// control: kernels whose warps diverge in every way that C++ knows, for the tests of the interpreter.
//
// Launch:  32 threads per block unless a kernel says otherwise; in and out hold one entry per thread.
// Compile: nvcc -O3 -arch=compute_75 -ptx control.cu -o control.ptx

// A switch, which the compiler makes a tree of comparisons of.
extern "C" __global__ void choose(const int *in, int *out)
{
    int i = threadIdx.x, v = in[i];
    switch (v) {
    case 0: v = v * 7 + 1; break;
    case 1: v = v ^ in[(i + 1) & 31]; break;
    case 2: v = __popc(in[(i + 2) & 31]); break;
    case 3: v = in[(i + 3) & 31] / 3; break;
    case 4: v = -in[(i + 4) & 31] % 5;  // and on into the next
    case 5: v += 100; break;
    case 6: v = __clz(v + in[(i + 5) & 31]); break;
    case 7: v = in[(i + 6) & 31] << 3; break;
    default: v = -1;
    }
    out[i] = v;
}

// Steps of Collatz to 1, by a loop with break and continue; at most 200.
extern "C" __global__ void collatz(const int *in, int *out)
{
    int v = in[threadIdx.x], steps = 0;
#pragma unroll 1
    for (int k = 0; k < 200; ++k) {
        if (v == 1)
            break;
        ++steps;
        if (v % 2 == 0) {
            v /= 2;
            continue;
        }
        v = 3 * v + 1;
        if (v > 100000)
            steps += 1000;
    }
    out[threadIdx.x] = steps;
}

static __device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

// Recursion: every lane calls as deeply as its value says.
extern "C" __global__ void recurse(const int *in, int *out)
{
    out[threadIdx.x] = fibonacci(in[threadIdx.x]);
}

// Insertion sort of eight values in local memory; two nested loops of different lengths in every lane.
extern "C" __global__ void sort_locally(const int *in, int *out)
{
    int values[8];
#pragma unroll 1
    for (int k = 0; k < 8; ++k)
        values[k] = in[8 * threadIdx.x + k];
#pragma unroll 1
    for (int k = 1; k < 8; ++k) {
        int v = values[k], j = k;
#pragma unroll 1
        while (j > 0 && values[j - 1] > v) {
            values[j] = values[j - 1];
            --j;
        }
        values[j] = v;
    }
#pragma unroll 1
    for (int k = 0; k < 8; ++k)
        out[8 * threadIdx.x + k] = values[k];
}

// Places of the odd values in a list without gaps; 128 threads, one list per warp, shared counts per block.
extern "C" __global__ void compact(const int *in, int *out, int *count)
{
    __shared__ int counts[4];
    int i = threadIdx.x, warp = i / 32, lane = i & 31;
    unsigned odd = __ballot_sync(0xffffffffu, in[i] & 1);
    if (lane == 0)
        counts[warp] = __popc(odd);
    __syncthreads();
    int before = 0;
    for (int k = 0; k < warp; ++k)
        before += counts[k];
    if (in[i] & 1)
        out[before + __popc(odd & ((1u << lane) - 1))] = in[i];
    if (i == 127)
        *count = before + counts[warp];
}

// A loop with two entries and jumps out of its middle: no nest of structured loops says this.
extern "C" __global__ void tangled(const int *in, int *out)
{
    int v = in[threadIdx.x], steps = 0;
    if (v & 1)
        goto inside;
#pragma unroll 1
    while (steps < 40) {
        v = v * 5 + 3;
        if ((v & 7) == 6)
            goto done;
inside:
        v = (v >> 1) + steps;
        ++steps;
        if (v % 11 == 0)
            break;
    }
    v += 1000;
done:
    out[threadIdx.x] = v * 100 + steps;
}

struct Pair { double sum; long long product; };

static __device__ __noinline__ Pair combine(Pair a, float b, short c)
{
    Pair r;
    r.sum = a.sum / 3.0 + b * b;
    r.product = a.product * c - (long long)b;
    return r;
}

// Structures and small types as arguments, doubles, 64-bit integers, conversions.
extern "C" __global__ void convert(const float *in, double *sums, long long *products)
{
    float b = in[threadIdx.x];
    Pair p = {b, (long long)(b * 1e6f)};
    for (int k = 0; k < 3; ++k)
        p = combine(p, b + k, (short)(b * 1000.0f));
    sums[threadIdx.x] = p.sum + sqrt(fabs(p.sum)) - floor(p.sum) * 0.5 + (double)(unsigned char)(int)b;
    products[threadIdx.x] = p.product / 7 + p.product % 1000 + __mul64hi(p.product, 0x123456789abcdefLL) + (p.product >> 5);
}
