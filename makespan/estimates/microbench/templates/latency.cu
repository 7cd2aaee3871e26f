// Latencies and issue delays of instructions, latencies and bandwidths of memory, for the model of Kleimenov and
// Popova (2021); written by makespan.
//
//     nvcc -O3 -arch=native -o latency latency.cu
//     ./latency > latency.csv
//     makespan measure latency --fit latency.csv --gpu GPU --gpu-out my.toml
//
// One warp runs each kernel; its second pass is timed, when its instructions are in the cache.
#ifndef __CUDACC_RTC__
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#endif

typedef unsigned long long u64;
constexpr int REPEATS = $repeats;
constexpr size_t LINE = 4096 + 128; // bytes between two steps of a walk through memory

struct Argument {
    u64 *clocks;
    unsigned *out;
    const void *memory;
    unsigned seed, zero;
};
$kernels

$walk
// Every thread reads 16 bytes again and again; neighbouring threads `apart` elements of 16 bytes from each other.
#define READ(NAME, CACHE)                                                                                              \
    extern "C" __global__ void read_##NAME(u64 *clocks, unsigned *out, const uint4 *data, size_t elements,             \
                                           size_t apart, unsigned rounds)                                              \
    {                                                                                                                  \
        size_t threads = (size_t)gridDim.x * blockDim.x, i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;            \
        unsigned sum = 0;                                                                                              \
        __syncthreads();                                                                                               \
        u64 start = clock64();                                                                                         \
        _Pragma("unroll 4") for (unsigned round = 0; round < rounds; ++round) {                                        \
            uint4 v;                                                                                                   \
            const uint4 *at = data + (i + round * threads) * apart % elements;                                         \
            asm volatile("ld.global." #CACHE ".v4.u32 {%0,%1,%2,%3}, [%4];"                                            \
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));                                      \
            sum ^= v.x ^ v.y ^ v.z ^ v.w;                                                                              \
        }                                                                                                              \
        out[i] = sum;                                                                                                  \
        u64 stop = clock64();                                                                                          \
        atomicMax(clocks + blockIdx.x, stop - start);                                                                  \
    }
READ(ca, ca)
READ(cg, cg)

#ifndef __CUDACC_RTC__ // the host
$host
static void row(const char *measure, const char *name, double count, double cycles)
{
    std::printf("%s,%s,%.0f,%.0f\n", measure, name, count, cycles);
}

static void instructions(u64 *clocks, unsigned *out)
{
    struct Test {
        const char *measure, *name;
        int count;
        void (*kernel)(Argument);
    };
    const Test tests[] = {
$tests
    };
    char *memory = device<char>(LINE);
    u64 words[4]; // each holds its own address
    for (int i = 0; i < 4; ++i)
        words[i] = (u64)memory + i * sizeof(u64);
    check(cudaMemcpy(memory, words, sizeof words, cudaMemcpyHostToDevice), "cudaMemcpy");
    for (const Test &test : tests)
        for (int repeat = 0; repeat < REPEATS; ++repeat) {
            test.kernel<<<1, 32>>>(Argument{clocks, out, memory, 5, 0});
            check(cudaDeviceSynchronize(), test.name);
            u64 both[2];
            check(cudaMemcpy(both, clocks, sizeof both, cudaMemcpyDeviceToHost), "cudaMemcpy");
            row(test.measure, test.name, test.count, (double)(both[1] - both[0]));
        }
}

$ring
static void bandwidth(const char *name, bool first_cache, size_t bytes, size_t apart, int blocks, u64 *clocks)
{
    constexpr int THREADS = 1024;
    uint4 *data = device<uint4>(bytes / sizeof(uint4));
    unsigned *out = device<unsigned>(blocks * THREADS);
    auto kernel = first_cache ? read_ca : read_cg;
    for (unsigned rounds : {64u, 64u, 256u})
        for (int repeat = 0; repeat < REPEATS; ++repeat) {
            check(cudaMemset(clocks, 0, sizeof(u64) * blocks), "cudaMemset");
            kernel<<<blocks, THREADS>>>(clocks, out, data, bytes / sizeof(uint4), apart, rounds);
            check(cudaDeviceSynchronize(), name);
            std::vector<u64> took(blocks);
            check(cudaMemcpy(took.data(), clocks, sizeof(u64) * blocks, cudaMemcpyDeviceToHost), "cudaMemcpy");
            double moved = (double)rounds * blocks * THREADS * sizeof(uint4);
            row("bandwidth", name, moved, (double)*std::max_element(took.begin(), took.end()));
        }
    check(cudaFree(data), "cudaFree");
    check(cudaFree(out), "cudaFree");
}

int main()
{
    int sms = 0, last_cache = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "device");
    check(cudaDeviceGetAttribute(&last_cache, cudaDevAttrL2CacheSize, 0), "device");
    u64 *clocks = device<u64>(sms + 2);
    unsigned *out = device<unsigned>(32);
    std::printf("measure,name,count,cycles\n");
    instructions(clocks, out);
    size_t large = 4 * (size_t)last_cache;
    latency("L1", true, 8 << 10, 128, 1, clocks, LINE);
    latency("L2", false, 512 << 10, LINE, 1, clocks, LINE);
    latency("DRAM", false, large, LINE, 1, clocks, large);
    latency("uncoal", false, large, LINE, 32, clocks, large);
    bandwidth("L1", true, 16 << 10, 1, 1, clocks);
    bandwidth("L2", false, std::max<size_t>(last_cache / 4, 1 << 20), 1, sms, clocks);
    bandwidth("DRAM", false, 2 * large, 1, sms, clocks);
    bandwidth("uncoal", false, 2 * large, 16 + 1, sms, clocks);
    return 0;
}
#endif
