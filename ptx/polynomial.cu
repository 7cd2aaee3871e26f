// polynomial: evaluate one polynomial of degree 7 per thread by Horner's rule.
//
// Every thread has its own coefficients, stored as a structure of arrays:
// coefficient k of polynomial i is c[k * stride + i]. Straight-line code:
// nine loads, seven fused multiply-adds that depend on each other, one store.
//
// Reference: W. G. Horner, Phil. Trans. R. Soc. 109, 1819.
// Launch:  one thread per polynomial, 128 threads per block, stride / 128
//          blocks; stride, the number of polynomials, is a multiple of 128.
//          x and y hold stride floats, c holds 8 * stride floats.
// Compile: nvcc -O3 -arch=compute_75 -ptx polynomial.cu -o polynomial.ptx

extern "C" __global__ void polynomial(const float *__restrict__ x,
                                      const float *__restrict__ c,
                                      float *__restrict__ y, int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float t = x[i];

    float r = c[7 * stride + i];
    r = r * t + c[6 * stride + i];
    r = r * t + c[5 * stride + i];
    r = r * t + c[4 * stride + i];
    r = r * t + c[3 * stride + i];
    r = r * t + c[2 * stride + i];
    r = r * t + c[stride + i];
    r = r * t + c[i];
    y[i] = r;
}
