// mandelbrot: escape-time iteration count of one pixel per thread.
//
// z = z * z + c until |z| > 2, at most 64 times. The number of iterations
// depends on the pixel: neighbouring threads leave the loop at different
// times, and a warp runs as long as its slowest thread.
//
// Launch:  16 x 16 threads per block, (w / 16) x (h / 16) blocks; the image
//          is exactly as large as the grid. (x0, y0) is its corner, step the
//          distance of two pixels; count holds one int per pixel.
// Compile: nvcc -O3 -arch=compute_75 -ptx mandelbrot.cu -o mandelbrot.ptx

#define LIMIT 64

extern "C" __global__ void mandelbrot(int *__restrict__ count, float x0,
                                      float y0, float step)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    float cx = x0 + px * step;
    float cy = y0 + py * step;
    float x = 0.0f, y = 0.0f;
    int k;

#pragma unroll 1
    for (k = 0; k < LIMIT; ++k) {
        asm volatile("// makespan: loop 64");
        float xx = x * x, yy = y * y;
        if (xx + yy > 4.0f)
            break;
        y = 2.0f * x * y + cy;
        x = xx - yy + cx;
    }
    count[py * (gridDim.x * blockDim.x) + px] = k;
}
