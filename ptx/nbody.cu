// nbody: gravitational acceleration of every body, all pairs.
//
// One thread per body; the loop runs over all n bodies. A softening term
// keeps the force of a body on itself at zero. The loop is left to the
// compiler, which unrolls it by four and adds a remainder loop; each copy of
// the body carries the bound, so both loops share the budget of 64.
//
// Reference: L. Nyland, M. Harris, J. Prins, "Fast N-Body Simulation with
//            CUDA", GPU Gems 3, chapter 31 (without the shared-memory tiles).
// Launch:  one thread per body, 64 threads per block; at most 64 bodies, the
//          number of threads equals n. body: x, y, z, mass; acc: x, y, z, 0.
// Compile: nvcc -O3 -arch=compute_75 -ptx nbody.cu -o nbody.ptx

#define SOFTENING 1e-6f

extern "C" __global__ void nbody(const float4 *__restrict__ body,
                                 float4 *__restrict__ acc, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 p = body[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;

    for (int j = 0; j < n; ++j) {
        asm volatile("// makespan: loop 64");
        float4 o = body[j];
        float dx = o.x - p.x;
        float dy = o.y - p.y;
        float dz = o.z - p.z;
        float inv = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
        float s = o.w * inv * inv * inv;
        ax += dx * s;
        ay += dy * s;
        az += dz * s;
    }
    acc[i] = make_float4(ax, ay, az, 0.0f);
}
