// Each lane follows its own addresses; the walk goes on where the first, untimed one ended.
#define WALK(NAME, CACHE)                                                                                              \
    extern "C" __global__ void walk_##NAME(u64 *clocks, u64 *out, const u64 *starts, unsigned steps)                   \
    {                                                                                                                  \
        u64 at = starts[threadIdx.x], start = 0, stop = 0;                                                             \
        for (int pass = 0; pass < 2; ++pass) {                                                                         \
            start = clock64();                                                                                         \
            _Pragma("unroll 1") for (unsigned i = 0; i < steps; ++i)                                                   \
                asm volatile("ld.global." #CACHE ".u64 %0, [%0];" : "+l"(at) : : "memory");                            \
            out[threadIdx.x] = at;                                                                                     \
            stop = clock64();                                                                                          \
        }                                                                                                              \
        clocks[0] = start;                                                                                             \
        clocks[1] = stop;                                                                                              \
    }
WALK(ca, ca)
WALK(cg, cg)
