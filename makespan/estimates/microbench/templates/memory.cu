// Memory latency and departure delays of one SM, for the model of Hong and Kim (ISCA 2009); written by makespan.
//
//     nvcc -O3 -arch=native -o memory memory.cu
//     ./memory > samples.csv                # one block on one SM, cycles of its clock
//     ./memory whole-gpu > samples.csv      # a block on every SM, seconds
//     makespan measure memory --fit samples.csv --gpu GPU [--method whole-gpu]
//
// Every load goes past the first cache (.cv), and the last one is overwritten before each run.
#ifndef __CUDACC_RTC__
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#endif

constexpr int LOADS = $loads;
constexpr int WARPS[] = {$warps};
constexpr unsigned STEPS[] = {$steps};
constexpr int WARP_SIZE = $warp_size, REPEATS = $repeats, SPREAD = $spread, CACHES = $caches;

__device__ __forceinline__ float load(const float *address)
{
    float value;
    asm volatile("ld.global.cv.f32 %0, [%1];" : "=f"(value) : "l"(address) : "memory");
    return value;
}

__device__ __forceinline__ unsigned load(const unsigned *address)
{
    unsigned value;
    asm volatile("ld.global.cv.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

// Where the loads of one step after another meet the latency; h is the distance in elements.
extern "C" __global__ void latency(const unsigned *x, unsigned h, unsigned steps, unsigned *out, long long *clocks)
{
    unsigned at = 0, sum = 0;
    long long start = clock64();
#pragma unroll 1
    for (unsigned i = 0; i < steps; ++i) {
$latency
    }
    *(volatile unsigned *)out = at + sum;
    clocks[0] = start;
    clocks[1] = clock64();
}

$departures
extern "C" __global__ void link(unsigned *x, size_t elements, unsigned h)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < elements; i += gridDim.x * (size_t)blockDim.x)
        x[i] = (unsigned)((i + h) % elements);
}

#ifndef __CUDACC_RTC__ // the host
$host
struct Device {
    int sms, cache, threads;
    char *flush;
    float *out;
    long long *clocks;

    size_t flush_bytes() const { return (size_t)CACHES * std::max(cache, 1 << 20); }
};

// Cycles from the first start to the last end of the threads of one block, or seconds of the whole launch.
template <typename Launch> static double timed(const Device &gpu, size_t threads, bool in_seconds, Launch launch)
{
    check(cudaMemset(gpu.flush, 1, gpu.flush_bytes()), "cudaMemset");
    double took = seconds(launch);
    if (in_seconds)
        return took;
    std::vector<long long> clocks(2 * threads);
    check(cudaMemcpy(clocks.data(), gpu.clocks, clocks.size() * sizeof(long long), cudaMemcpyDefault), "cudaMemcpy");
    long long start = clocks[0], end = clocks[1];
    for (size_t i = 0; i < threads; ++i) {
        start = std::min(start, clocks[2 * i]);
        end = std::max(end, clocks[2 * i + 1]);
    }
    return (double)(end - start);
}

static void measure_latency(const Device &gpu, bool in_seconds)
{
    unsigned most = *std::max_element(STEPS, STEPS + sizeof STEPS / sizeof *STEPS);
    unsigned h = (unsigned)(gpu.flush_bytes() / sizeof(unsigned) / most / 64) * 64 + 32;
    size_t elements = (size_t)h * most;
    unsigned *x = device<unsigned>(elements);
    for (int repeat = 0; repeat < REPEATS; ++repeat)
        for (unsigned steps : STEPS) {
            link<<<gpu.sms, 256>>>(x, elements, h);
            double time = timed(gpu, 1, in_seconds, [&] { latency<<<1, 1>>>(x, h, steps, (unsigned *)gpu.out, gpu.clocks); });
            std::printf("latency,%u,%.9g\n", steps, time);
        }
    cudaFree(x);
}

template <typename Kernel>
static void measure_departures(const Device &gpu, const char *name, Kernel kernel, int blocks, bool in_seconds)
{
    size_t most = (size_t)blocks * gpu.threads;
    float *x = device<float>(LOADS * most * SPREAD);
    for (int repeat = 0; repeat < REPEATS; ++repeat)
        for (int warps : WARPS) {
            int threads = warps * WARP_SIZE;
            if (threads > gpu.threads) {
                std::fprintf(stderr, "%d warps do not fit into a block: left out\n", warps);
                continue;
            }
            double time = timed(gpu, threads, in_seconds, [&] { kernel<<<blocks, threads>>>(x, most, gpu.out, gpu.clocks); });
            std::printf("%s,%lld,%.9g\n", name, (long long)blocks * warps * LOADS, time);
        }
    cudaFree(x);
}

int main(int count, char **arguments)
{
    bool whole = count > 1 && !std::strcmp(arguments[1], "whole-gpu");
    if (count > 2 || (count == 2 && !whole)) {
        std::fprintf(stderr, "usage: %s [whole-gpu]\n", arguments[0]);
        return 2;
    }
    Device gpu{};
    check(cudaDeviceGetAttribute(&gpu.sms, cudaDevAttrMultiProcessorCount, 0), "device");
    check(cudaDeviceGetAttribute(&gpu.cache, cudaDevAttrL2CacheSize, 0), "device");
    check(cudaDeviceGetAttribute(&gpu.threads, cudaDevAttrMaxThreadsPerBlock, 0), "device");
    gpu.flush = device<char>(gpu.flush_bytes());
    gpu.out = device<float>((size_t)gpu.sms * gpu.threads);
    gpu.clocks = device<long long>(2 * (size_t)gpu.sms * gpu.threads);
    std::printf("pattern,requests,%s\n", whole ? "seconds" : "cycles");
    measure_latency(gpu, whole);
    measure_departures(gpu, "coalesced", coalesced, whole ? gpu.sms : 1, whole);
    measure_departures(gpu, "uncoalesced", uncoalesced, whole ? gpu.sms : 1, whole);
    return 0;
}
#endif
