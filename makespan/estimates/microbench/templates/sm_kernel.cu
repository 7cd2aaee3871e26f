
extern "C" __global__ void $name(Argument given)
{
    __shared__ volatile unsigned words[32 * 32]; // each holds its own address
    unsigned base = (unsigned)__cvta_generic_to_shared((const void *)words), warp = threadIdx.x / 32;
    for (unsigned i = threadIdx.x; i < 32 * 32; i += blockDim.x)
        words[i] = base + 4 * i;
    __syncthreads();
    if (!(given.mask >> warp & 1))
        return;
    u64 start = 0, stop = 0, memory = (u64)given.spread << 32 | base;
    unsigned result = 0;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass)
        asm volatile("{\n"
                     ".reg .b32 seed, zero, rounds, result;\n"
                     ".reg .b64 memory, start, stop, notes;\n"
                     "mov.u64 memory, %3;\n"
                     "mov.u32 seed, %4;\n"
                     "mov.u32 zero, %5;\n"
                     "mov.u64 notes, %6;\n"
                     "mov.u32 rounds, %8;\n"
                     "bar.sync 1, %7;\n"
$body
                     "mov.u64 %0, start;\n"
                     "mov.u64 %1, stop;\n"
                     "mov.u32 %2, result;\n"
                     "}"
                     : "=l"(start), "=l"(stop), "=r"(result)
                     : "l"(memory), "r"(given.seed), "r"(given.zero), "l"(given.notes + warp * NOTES), "r"(given.threads),
                       "r"(given.rounds)
                     : "memory");
    given.out[threadIdx.x] = result;
    given.clocks[2 * warp] = start;
    given.clocks[2 * warp + 1] = stop;
}
