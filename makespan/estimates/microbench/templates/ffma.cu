// Latency and throughput of FFMA. Build and run: nvcc -arch=native -o ffma ffma.cu && ./ffma
// Prints rows of a table of measurements: test,key,ops_per_cycle,gap,latency
#ifndef __CUDACC_RTC__
#include <cstdio>
#include <cstdlib>
#endif

#define FMA(x) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b))

// One thread: a chain of $chain dependent multiply-adds; the second of two rounds counts, the first pays for misses.
extern "C" __global__ void ffma_latency(float a, float b, float *sink, long long *cycles) {
    float x = a;
    long long begin = 0, end = 0;
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {
        begin = clock64();
#pragma unroll
        for (int i = 0; i < $chain; ++i) FMA(x);
        end = clock64();
    }
    *sink = x;
    *cycles = end - begin;
}

// One block on one SM: $streams independent accumulators a thread, $rounds multiply-adds of each an iteration.
extern "C" __global__ void ffma_throughput(float a, float b, float *sink, long long *cycles, int loops) {
    float x[$streams];
#pragma unroll
    for (int s = 0; s < $streams; ++s) x[s] = a + s;
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < loops; ++i) {
#pragma unroll
        for (int r = 0; r < $rounds; ++r) {
#pragma unroll
            for (int s = 0; s < $streams; ++s) FMA(x[s]);
        }
    }
    __syncthreads();
    long long end = clock64();
    float sum = 0;
#pragma unroll
    for (int s = 0; s < $streams; ++s) sum += x[s];
    sink[threadIdx.x] = sum;
    if (threadIdx.x == 0) *cycles = end - begin;
}

#ifndef __CUDACC_RTC__ // the host
$host
int main() {
    const int threads = 1024, loops = 1000;
    float *sink = device<float>(threads);
    long long *cycles = device<long long>(1), latency, time;
    ffma_latency<<<1, 1>>>(1.0f, 0.5f, sink, cycles);
    check(cudaMemcpy(&latency, cycles, sizeof latency, cudaMemcpyDeviceToHost), "latency");
    ffma_throughput<<<1, threads>>>(1.0f, 0.5f, sink, cycles, loops);
    check(cudaMemcpy(&time, cycles, sizeof time, cudaMemcpyDeviceToHost), "throughput");
    printf("test,key,ops_per_cycle,gap,latency\n");
    printf("latency,FFMA,,,%.4f\n", double(latency) / $chain);
    printf("throughput,FMUL,%.4f,,\n", double(threads) * loops * $operations / time);
    return 0;
}
#endif
