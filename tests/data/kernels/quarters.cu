// Every fourth warp, beginning with the first one, multiplies and adds; the others do not.
extern "C" __global__ void quarters(const float *in, float *out)
{
    float x = in[threadIdx.x], y[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        y[i] = x + i;
    if (threadIdx.x / 32 % 4 == 0) {
#pragma unroll 1
        for (int turn = 0; turn < 32; turn++) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                y[i] = y[i] * x + 1.0f;
        }
    }
#pragma unroll
    for (int i = 1; i < 8; i++)
        y[0] += y[i];
    out[threadIdx.x] = y[0];
}
