// spmv_csr: y = A * x for a sparse matrix in compressed sparse row format.
//
// One thread per row ("scalar" kernel). The number of iterations is the
// number of non-zeros of the row and only known from the data; the bound is
// an assumption about the matrix: no row has more than 32 non-zeros.
//
// Reference: N. Bell, M. Garland, "Implementing sparse matrix-vector
//            multiplication on throughput-oriented processors", SC 2009.
// Launch:  one thread per row, 128 threads per block, ceil(rows / 128)
//          blocks. row_ptr holds rows + 1 ints; col and val hold one entry
//          per non-zero; y holds rows floats.
// Compile: nvcc -O3 -arch=compute_75 -ptx spmv_csr.cu -o spmv_csr.ptx

extern "C" __global__ void spmv_csr(const int *__restrict__ row_ptr,
                                    const int *__restrict__ col,
                                    const float *__restrict__ val,
                                    const float *__restrict__ x,
                                    float *__restrict__ y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;

    float sum = 0.0f;
    int end = row_ptr[r + 1];
#pragma unroll 1
    for (int j = row_ptr[r]; j < end; ++j) {
        asm volatile("// makespan: loop 32");
        sum += val[j] * x[col[j]];
    }
    y[r] = sum;
}
