// sha256_round: the first eight rounds of the SHA-256 compression function.
//
// Each thread takes one state (eight words a..h) and eight message words,
// both stored as a structure of arrays, runs the rounds unrolled and writes
// the new state back. Integer work only: rotations, logic, additions.
//
// Reference: FIPS PUB 180-4, section 6.2.2, step 3.
// Launch:  one thread per state, 128 threads per block, stride threads in
//          all. state and w hold 8 * stride words each; word k of item i is
//          at [k * stride + i].
// Compile: nvcc -O3 -arch=compute_75 -ptx sha256_round.cu -o sha256_round.ptx

static __device__ __forceinline__ unsigned rotr(unsigned x, int n)
{
    return (x >> n) | (x << (32 - n));
}

// One round; instead of moving the eight variables, the callers rename them.
#define ROUND(a, b, c, d, e, f, g, h, k, w)                               \
    do {                                                                  \
        unsigned s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);             \
        unsigned ch = (e & f) ^ (~e & g);                                 \
        unsigned t1 = h + s1 + ch + (k) + (w);                            \
        unsigned s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);             \
        unsigned maj = (a & b) ^ (a & c) ^ (b & c);                       \
        d += t1;                                                          \
        h = t1 + s0 + maj;                                                \
    } while (0)

extern "C" __global__ void sha256_round(unsigned *__restrict__ state,
                                        const unsigned *__restrict__ w,
                                        int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned *s = state + i;
    const unsigned *m = w + i;

    unsigned a = s[0];
    unsigned b = s[stride];
    unsigned c = s[2 * stride];
    unsigned d = s[3 * stride];
    unsigned e = s[4 * stride];
    unsigned f = s[5 * stride];
    unsigned g = s[6 * stride];
    unsigned h = s[7 * stride];

    ROUND(a, b, c, d, e, f, g, h, 0x428a2f98u, m[0]);
    ROUND(h, a, b, c, d, e, f, g, 0x71374491u, m[stride]);
    ROUND(g, h, a, b, c, d, e, f, 0xb5c0fbcfu, m[2 * stride]);
    ROUND(f, g, h, a, b, c, d, e, 0xe9b5dba5u, m[3 * stride]);
    ROUND(e, f, g, h, a, b, c, d, 0x3956c25bu, m[4 * stride]);
    ROUND(d, e, f, g, h, a, b, c, 0x59f111f1u, m[5 * stride]);
    ROUND(c, d, e, f, g, h, a, b, 0x923f82a4u, m[6 * stride]);
    ROUND(b, c, d, e, f, g, h, a, 0xab1c5ed5u, m[7 * stride]);

    // After eight rounds the names are back in their first places.
    s[0] = a;
    s[stride] = b;
    s[2 * stride] = c;
    s[3 * stride] = d;
    s[4 * stride] = e;
    s[5 * stride] = f;
    s[6 * stride] = g;
    s[7 * stride] = h;
}
