"""Latency and throughput of FFMA for any CUDA GPU: a pair of kernels in CUDA C++ and in PTX.

PTX says neither which registers nor which control codes the machine code has, so these measure test A alone.
"""

CHAIN = 128
"""Dependent multiply-adds between two clock reads."""
STREAMS = 8
"""Independent accumulators of a thread in the throughput kernel."""
ROUNDS = 64
"""Multiply-adds of each accumulator in an iteration."""


def sources() -> dict[str, str]:
    """Names of files and their contents."""
    return {"ffma.cu": _cuda(), "ffma.ptx": _ptx()}


def _cuda() -> str:
    return f"""\
// Latency and throughput of FFMA. Build and run: nvcc -arch=native -o ffma ffma.cu && ./ffma
// Prints rows of a table of measurements: test,key,ops_per_cycle,gap,latency
#include <cstdio>
#include <cuda_runtime.h>

#define FMA(x) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b))

// One thread: a chain of {CHAIN} dependent multiply-adds; the second of two rounds counts, the first pays for misses.
extern "C" __global__ void ffma_latency(float a, float b, float *sink, long long *cycles) {{
    float x = a;
    long long begin = 0, end = 0;
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {{
        begin = clock64();
#pragma unroll
        for (int i = 0; i < {CHAIN}; ++i) FMA(x);
        end = clock64();
    }}
    *sink = x;
    *cycles = end - begin;
}}

// One block on one SM: {STREAMS} independent accumulators a thread, {ROUNDS} multiply-adds of each an iteration.
extern "C" __global__ void ffma_throughput(float a, float b, float *sink, long long *cycles, int loops) {{
    float x[{STREAMS}];
#pragma unroll
    for (int s = 0; s < {STREAMS}; ++s) x[s] = a + s;
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < loops; ++i) {{
#pragma unroll
        for (int r = 0; r < {ROUNDS}; ++r) {{
#pragma unroll
            for (int s = 0; s < {STREAMS}; ++s) FMA(x[s]);
        }}
    }}
    __syncthreads();
    long long end = clock64();
    float sum = 0;
#pragma unroll
    for (int s = 0; s < {STREAMS}; ++s) sum += x[s];
    sink[threadIdx.x] = sum;
    if (threadIdx.x == 0) *cycles = end - begin;
}}

static int failed(cudaError_t error) {{
    if (error != cudaSuccess) fprintf(stderr, "%s\\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}}

int main() {{
    const int threads = 1024, loops = 1000;
    float *sink;
    long long *cycles, latency, time;
    if (failed(cudaMalloc(&sink, threads * sizeof *sink)) || failed(cudaMalloc(&cycles, sizeof *cycles))) return 1;
    ffma_latency<<<1, 1>>>(1.0f, 0.5f, sink, cycles);
    if (failed(cudaMemcpy(&latency, cycles, sizeof latency, cudaMemcpyDeviceToHost))) return 1;
    ffma_throughput<<<1, threads>>>(1.0f, 0.5f, sink, cycles, loops);
    if (failed(cudaMemcpy(&time, cycles, sizeof time, cudaMemcpyDeviceToHost))) return 1;
    printf("test,key,ops_per_cycle,gap,latency\\n");
    printf("latency,FFMA,,,%.4f\\n", double(latency) / {CHAIN});
    printf("throughput,FMUL,%.4f,,\\n", double(threads) * loops * {STREAMS * ROUNDS} / time);
    return 0;
}}
"""


def _ptx() -> str:
    chain = "\n".join(["    fma.rn.f32 %f1, %f1, %f2, %f3;"] * CHAIN)
    streams = "\n".join(
        f"    fma.rn.f32 %f{4 + stream}, %f{4 + stream}, %f2, %f3;" for _ in range(ROUNDS) for stream in range(STREAMS)
    )
    start = "\n".join(f"    mov.f32 %f{4 + stream}, %f2;" for stream in range(STREAMS))
    total = "\n".join(f"    add.f32 %f1, %f1, %f{4 + stream};" for stream in range(STREAMS))
    return f"""\
// The kernels of ffma.cu by hand: cycles per multiply-add are the difference of two clock reads over their number.
.version 6.4
.target sm_75
.address_size 64

.visible .entry ffma_latency(.param .f32 a, .param .f32 b, .param .u64 sink, .param .u64 cycles)
{{
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;
    .reg .b32 %r<2>;
    .reg .pred %p;
    ld.param.f32 %f2, [a];
    ld.param.f32 %f3, [b];
    ld.param.u64 %rd1, [sink];
    ld.param.u64 %rd2, [cycles];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.f32 %f1, %f2;
    mov.u32 %r1, 2;
ROUND:
    mov.u64 %rd3, %clock64;
{chain}
    mov.u64 %rd4, %clock64;
    sub.s32 %r1, %r1, 1;
    setp.ne.s32 %p, %r1, 0;
    @%p bra ROUND;
    sub.s64 %rd5, %rd4, %rd3;
    st.global.f32 [%rd1], %f1;
    st.global.u64 [%rd2], %rd5;
    ret;
}}

.visible .entry ffma_throughput(
    .param .f32 a, .param .f32 b, .param .u64 sink, .param .u64 cycles, .param .u32 loops)
{{
    .reg .f32 %f<{4 + STREAMS}>;
    .reg .b64 %rd<8>;
    .reg .b32 %r<3>;
    .reg .pred %p<2>;
    ld.param.f32 %f2, [a];
    ld.param.f32 %f3, [b];
    ld.param.u64 %rd1, [sink];
    ld.param.u64 %rd2, [cycles];
    ld.param.u32 %r1, [loops];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
{start}
    bar.sync 0;
    mov.u64 %rd3, %clock64;
LOOP:
{streams}
    sub.s32 %r1, %r1, 1;
    setp.ne.s32 %p0, %r1, 0;
    @%p0 bra LOOP;
    bar.sync 0;
    mov.u64 %rd4, %clock64;
    sub.s64 %rd5, %rd4, %rd3;
    mov.f32 %f1, 0f00000000;
{total}
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd6, %r2, 4;
    add.s64 %rd7, %rd1, %rd6;
    st.global.f32 [%rd7], %f1;
    setp.ne.s32 %p1, %r2, 0;
    @%p1 bra DONE;
    st.global.u64 [%rd2], %rd5;
DONE:
    ret;
}}
"""
