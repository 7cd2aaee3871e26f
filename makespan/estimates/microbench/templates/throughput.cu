// Operations per cycle of an SM, for the model of Hong and Kim (ISCA 2009) on other GPUs; written by makespan.
//
//     nvcc -O3 -arch=native -o throughput throughput.cu
//     ./throughput > samples.csv
//     makespan measure throughput --fit samples.csv --gpu GPU
//
// Every thread applies one operation $operations times; the operands come from outside, so that nothing is folded.
#ifndef __CUDACC_RTC__
#include <cstdio>
#include <cstdlib>
#endif

constexpr int ROUNDS = $rounds, REPEATS = $repeats, THREADS = 256, BLOCKS_PER_SM = 32;
$kernels

#ifndef __CUDACC_RTC__ // the host
$host
int main()
{
    struct Test {
        const char *name;
        void (*kernel)(float *, float, float, int);
        int components;
    };
    const Test tests[] = {
$tests
    };
    int sms = 0;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "device");
    int blocks = BLOCKS_PER_SM * sms;
    float *out = device<float>(blocks * THREADS);
    std::printf("operation,operations,global_size,seconds\n");
    for (const Test &test : tests)
        for (int repeat = 0; repeat <= REPEATS; ++repeat) {
            double took = seconds([&] { test.kernel<<<blocks, THREADS>>>(out, 0.5f, 1.0001f, ROUNDS); });
            if (repeat) // the first run warms up
                std::printf("%s,%d,%d,%.9g\n", test.name, $operations * test.components, blocks * THREADS, took);
        }
    return 0;
}
#endif
