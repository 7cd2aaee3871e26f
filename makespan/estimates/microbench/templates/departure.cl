// $comment
__kernel void $name(__global const volatile float *x, ulong h, __global float *out)
{
    size_t i = get_global_id(0);
$loads
    out[i] = $sum;
}
