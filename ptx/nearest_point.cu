// nearest_point: index of the point (xs[j], ys[j]) nearest to a query point.
//
// One query per thread; a linear scan that keeps the smallest squared
// distance. With equal distances the lowest index wins.
//
// Reference: the example of K. Berezovskyi, K. Bletsas, B. Andersson,
//            "Makespan Computation for GPU Threads Running on a Single
//            Streaming Multiprocessor", ECRTS 2012.
// Launch:  one thread per query, 128 threads per block; the number of
//          queries is the number of threads. xs and ys hold n floats,
//          2 <= n <= 33; qx, qy and nearest hold one entry per thread.
// Compile: nvcc -O3 -arch=compute_75 -ptx nearest_point.cu -o nearest_point.ptx

extern "C" __global__ void nearest_point(const float *__restrict__ qx,
                                         const float *__restrict__ qy,
                                         const float *__restrict__ xs,
                                         const float *__restrict__ ys,
                                         int *__restrict__ nearest, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = qx[i], y = qy[i];

    // The first point is the nearest so far.
    float dx = x - xs[0], dy = y - ys[0];
    float best = dx * dx + dy * dy;
    int index = 0;

#pragma unroll 1
    for (int j = 1; j < n; ++j) {
        asm volatile("// makespan: loop 32");
        dx = x - xs[j];
        dy = y - ys[j];
        float d = dx * dx + dy * dy;
        if (d < best) {
            best = d;
            index = j;
        }
    }
    nearest[i] = index;
}
