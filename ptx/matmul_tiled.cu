// matmul_tiled: C = A * B for square row-major n x n matrices of floats.
//
// Each block computes one 16 x 16 tile of C. It walks along the tiles of A
// (left to right) and B (top to bottom), staging each pair in shared memory;
// one barrier after the loads and one before the tiles are overwritten.
//
// Reference: the shared-memory matrix multiplication of the CUDA C++
//            Programming Guide.
// Launch:  16 x 16 threads per block, (n / 16) x (n / 16) blocks; n is a
//          multiple of 16 and at most 128, so at most 8 tile steps.
//          a, b and c hold n * n floats each.
// Compile: nvcc -O3 -arch=compute_75 -ptx matmul_tiled.cu -o matmul_tiled.ptx

#define TILE 16

extern "C" __global__ void matmul_tiled(const float *__restrict__ a,
                                        const float *__restrict__ b,
                                        float *__restrict__ c, int n)
{
    __shared__ float ta[TILE][TILE];
    __shared__ float tb[TILE][TILE];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    float sum = 0.0f;

#pragma unroll 1
    for (int t = 0; t < n; t += TILE) {
        asm volatile("// makespan: loop 8");
        ta[ty][tx] = a[row * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + col];
        __syncthreads();                  // both tiles are complete

#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += ta[ty][k] * tb[k][tx];
        __syncthreads();                  // nobody reads the tiles any more
    }
    c[row * n + col] = sum;
}
