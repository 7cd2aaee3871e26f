// Launch times of empty kernels, for the model of Kleimenov and Popova (2021); written by makespan.
//
//     nvcc -O3 -arch=native -o launch launch.cu
//     ./launch > empty_kernels.csv
//     makespan measure launch --fit empty_kernels.csv --gpu GPU --gpu-out my.toml
//
// For blocks of every number of warps, grids of several sizes; the time is from the launch until the grid has ended.
#ifndef __CUDACC_RTC__
#include <chrono>
#include <cstdio>
#include <cstdlib>
#endif

constexpr int WARP_SIZE = $warp_size, MAX_WARPS = $max_warps, REPEATS = $repeats, LAUNCHES = 200;
constexpr int GRIDS[] = {$grids};

extern "C" __global__ void empty()
{
}

#ifndef __CUDACC_RTC__ // the host
$host
int main()
{
    std::printf("blocks,warps_per_block,seconds\n");
    for (int warps = 1; warps <= MAX_WARPS; ++warps)
        for (int blocks : GRIDS)
            for (int repeat = 0; repeat <= REPEATS; ++repeat) {
                auto start = std::chrono::steady_clock::now();
                for (int launch = 0; launch < LAUNCHES; ++launch) {
                    empty<<<blocks, warps * WARP_SIZE>>>();
                    check(cudaDeviceSynchronize(), "launch");
                }
                std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
                if (repeat) // the first run warms up
                    std::printf("%d,%d,%.9g\n", blocks, warps, took.count() / LAUNCHES);
            }
    return 0;
}
#endif
