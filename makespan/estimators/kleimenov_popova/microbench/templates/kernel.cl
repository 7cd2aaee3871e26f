
__kernel void $name(__global $type *out, $type a, $type b, int rounds)
{
    $type $values;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
$steps
    }
    out[get_global_id(0)] = $sum;
}
