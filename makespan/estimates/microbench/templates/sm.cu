// One multiprocessor for a machine file: latencies, intervals, partitions, and whether a ready warp is ever left out;
// written by makespan.
//
//     nvcc -O3 -arch=native -o sm sm.cu
//     ./sm > sm.csv                        # on an idle GPU with fixed clocks; lines that begin with # say which GPU
//     makespan measure sm --fit sm.csv --machine BASE -o my.toml
//
// One block runs each kernel; its second pass is timed, when its instructions are in the cache. Of the warps of the
// block those in a mask work: warps 0, $apart, 2 * $apart, ... are taken for those of one partition; the pairs check it.
#ifndef __CUDACC_RTC__
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#endif

typedef unsigned long long u64;
constexpr int REPEATS = $repeats, APART = $apart, PAIRED = $paired, NOTES = $steps_logged, MOST_LOGGED = $most_logged;
constexpr int STREAMS = $streams; // registers of a stream, and so instructions of a round
constexpr int WORKER = $worker; // the warp that executes items which may let schedulers lapse
constexpr size_t LINE = 4096 + 128; // bytes between two steps of a walk through memory

__constant__ unsigned constants[$constants / 4];

struct Argument {
    u64 *clocks;
    unsigned *out, *notes;
    unsigned mask, threads, spread, rounds, seed, zero;
};
$kernels

$walk
extern "C" __global__ void numbers(unsigned *out)
{
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(out[threadIdx.x]));
}

#ifndef __CUDACC_RTC__ // the host
$host
static void row(const char *measure, const char *name, double count, double cycles)
{
    std::printf("%s,%s,-,1,%.0f,%.0f\n", measure, name, count, cycles);
}

$ring
struct Test {
    const char *measure, *name, *with;
    int count;
    void (*kernel)(Argument);
};

static u64 *clocks;
static unsigned *out, *notes;
static u64 both[64]; // when each warp of the last kernel began and ended

// So many warps, `apart` from each other, beginning with the first one.
static unsigned chosen(int warps, int apart)
{
    unsigned mask = 0;
    for (int warp = 0; warp < warps; ++warp)
        mask |= 1u << warp * apart;
    return mask;
}

// Cycles from the first start to the last end of the warps in a mask.
static double timed(const Test &test, unsigned mask, unsigned spread = 1)
{
    int working = 0, last = 0;
    for (int warp = 0; warp < 32; ++warp)
        if (mask >> warp & 1)
            ++working, last = warp;
    unsigned rounds = test.count / STREAMS;
    test.kernel<<<1, 32 * std::max(last + 1, PAIRED)>>>(
        Argument{clocks, out, notes, mask, 32u * working, spread, rounds, 5, 0});
    check(cudaGetLastError(), test.name);
    check(cudaDeviceSynchronize(), test.name);
    u64 start = ~0ull, stop = 0;
    check(cudaMemcpy(both, clocks, sizeof both, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int warp = 0; warp < 32; ++warp)
        if (mask >> warp & 1)
            start = std::min(start, both[2 * warp]), stop = std::max(stop, both[2 * warp + 1]);
    return (double)(stop - start);
}

static void print(const Test &test, const char *with, int warps, double cycles)
{
    std::printf("%s,%s,%s,%d,%d,%.0f\n", test.measure, test.name, with, warps, test.count, cycles);
}

// What a worker costs: its own time, or that of two warps of its partition or of another one. These have work for longer.
static void lapse(const Test &test)
{
    Test longest = test;
    longest.count = $longest;
    unsigned rounds = 256 + 8 * (unsigned)timed(longest, 1u << WORKER) / STREAMS;
    int first = !std::strcmp(test.with, "own") ? WORKER : !std::strcmp(test.with, "same") ? 0 : 1;
    unsigned mask = 1u << first | 1u << WORKER | (first < WORKER) << (first + APART);
    double cycles = timed(test, mask, rounds);
    if (first < WORKER && std::max(both[2 * first + 1], both[2 * (first + APART) + 1]) <= both[2 * WORKER + 1])
        std::fprintf(stderr, "%s of %s: not measured, as the scheduler prefers others to the worker\n", test.name, test.with);
    else
        print(test, test.with, first < WORKER ? 3 : 1, cycles);
}

// The longest time between two readings of the clock, in the first and in the second execution of a launch.
static void line(const Test &test, int warps)
{
    timed(test, chosen(warps, 1));
    std::vector<unsigned> found(32 * NOTES);
    check(cudaMemcpy(found.data(), notes, found.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int execution = 0; execution < 2; ++execution) {
        unsigned most = 0;
        for (int warp = 0; warp < warps; ++warp)
            most = std::max(most, found[warp * NOTES + execution]);
        print(test, execution ? "again" : "first", warps, most);
    }
}

static void measure(const Test &test)
{
    if (!std::strcmp(test.measure, "lapse"))
        return lapse(test);
    if (!std::strcmp(test.measure, "line"))
        return line(test, 1), line(test, APART);
    if (!std::strcmp(test.measure, "queue"))
        return print(test, "one", 1, timed(test, 1)), print(test, "all", APART, timed(test, chosen(APART, 1)));
    bool is_chain = !std::strcmp(test.measure, "chain");
    if (!std::strcmp(test.name, "shared"))
        for (int words : {$conflicts}) {
            char with[16];
            std::snprintf(with, sizeof with, "%d", words);
            int warps = is_chain ? 1 : 2 * APART;
            print(test, with, warps, timed(test, chosen(warps, 1), words));
        }
    else if (is_chain)
        print(test, test.with, 1, timed(test, 1));
    else {
        for (int warps : {$one_warps})
            print(test, "one", warps, timed(test, chosen(warps, APART)));
        for (int warps : {$all_warps})
            print(test, "all", warps, timed(test, chosen(warps, 1)));
    }
}

static void pairs(Test test)
{
    test.measure = "pair";
    for (int a = 0; a < PAIRED; ++a)
        for (int b = a + 1; b < PAIRED; ++b) {
            char with[16];
            std::snprintf(with, sizeof with, "%d-%d", a, b);
            print(test, with, 2, timed(test, 1u << a | 1u << b));
        }
}

// When each warp of one partition read the clock, counted from one cycle before the first reading of all.
static void log(const Test &test, int warps, int run)
{
    timed(test, chosen(warps, APART));
    std::vector<unsigned> found(32 * NOTES);
    check(cudaMemcpy(found.data(), notes, found.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "cudaMemcpy");
    unsigned first = found[0];
    for (int warp = 1; warp < warps; ++warp)
        if ((int)(found[warp * APART * NOTES] - first) < 0)
            first = found[warp * APART * NOTES];
    for (int warp = 0; warp < warps; ++warp)
        for (int step = 0; step < NOTES; ++step)
            std::printf("log,%s,%d.%d,%d,%d,%u\n", test.name, run, warp, warps, step + 1,
                        found[warp * APART * NOTES + step] - first + 1);
}

int main()
{
    const Test tests[] = {
$tests
    };
    const Test logged = {"log", "clock", "-", NOTES, log_clock};
    cudaDeviceProp gpu;
    int driver = 0, runtime = 0, clock = 0, memory_clock = 0, last_cache = 0;
    check(cudaGetDeviceProperties(&gpu, 0), "device");
    check(cudaDriverGetVersion(&driver), "driver");
    check(cudaRuntimeGetVersion(&runtime), "runtime");
    check(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0), "device");
    check(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0), "device");
    check(cudaDeviceGetAttribute(&last_cache, cudaDevAttrL2CacheSize, 0), "device");
    clocks = device<u64>(64);
    out = device<unsigned>(1024);
    notes = device<unsigned>(32 * NOTES);
    std::printf("# gpu: %s\n# capability: %d.%d\n# driver: CUDA %d\n# runtime: CUDA %d\n", gpu.name, gpu.major, gpu.minor,
                driver, runtime);
    std::printf("# clocks: at most %d kHz, memory %d kHz\n# warpids:", clock, memory_clock);
    numbers<<<1, 32 * PAIRED>>>(out);
    std::vector<unsigned> numbered(32 * PAIRED);
    check(cudaMemcpy(numbered.data(), out, numbered.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int warp = 0; warp < PAIRED; ++warp)
        std::printf(" %u", numbered[32 * warp]);
    std::printf("\nmeasure,name,with,warps,count,cycles\n");
    for (int repeat = 0; repeat < REPEATS; ++repeat)
        for (const Test &test : tests) {
            measure(test);
            if (!std::strcmp(test.measure, "stream") && !std::strcmp(test.name, "fp32") && test.count == $longest)
                pairs(test);
        }
    for (int warps = 1; warps <= MOST_LOGGED; ++warps)
        for (int run = 0; run < REPEATS; ++run)
            log(logged, warps, run);
    size_t large = 4 * (size_t)last_cache;
    latency("L1", true, 8 << 10, 128, 1, clocks, LINE);
    latency("L2", false, 512 << 10, LINE, 1, clocks, LINE);
    latency("DRAM", false, large, LINE, 1, clocks, large);
    return 0;
}
#endif
