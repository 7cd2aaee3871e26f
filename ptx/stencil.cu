// stencil: one Jacobi sweep of the 5-point stencil for Laplace's equation,
//          out(x, y) = (north + south + west + east) / 4.
//
// Boundary points keep their value: the guard skips them.
//
// Launch:  16 x 16 threads per block, ceil(w / 16) x ceil(h / 16) blocks.
//          in and out are row-major and hold w * h floats each.
// Compile: nvcc -O3 -arch=compute_75 -ptx stencil.cu -o stencil.ptx

extern "C" __global__ void stencil(const float *__restrict__ in,
                                   float *__restrict__ out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x > 0 && x < w - 1 && y > 0 && y < h - 1) {
        int i = y * w + x;
        out[i] = 0.25f * (in[i - w] + in[i + w] + in[i - 1] + in[i + 1]);
    }
}
