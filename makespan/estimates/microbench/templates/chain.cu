
extern "C" __global__ void $name(Argument given)
{
    __shared__ volatile unsigned words[32];
    words[threadIdx.x] = 4 * threadIdx.x;
    __syncthreads();
    u64 start = 0, stop = 0;
    unsigned result = 0;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass)
        asm volatile("{\n"
                     ".reg .b32 seed, zero, result;\n"
                     ".reg .b64 memory, start, stop;\n"
                     "mov.u64 memory, %3;\n"
                     "mov.u32 seed, %4;\n"
                     "mov.u32 zero, %5;\n"
$body
                     "mov.u64 %0, start;\n"
                     "mov.u64 %1, stop;\n"
                     "mov.u32 %2, result;\n"
                     "}"
                     : "=l"(start), "=l"(stop), "=r"(result)
                     : "l"(given.memory), "r"(given.seed), "r"(given.zero)
                     : "memory");
    given.out[threadIdx.x] = result;
    given.clocks[0] = start;
    given.clocks[1] = stop;
}
