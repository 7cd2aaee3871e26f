// Memory latency and departure delays of one compute unit, for the model of Hong and Kim (ISCA 2009); written by makespan.
//
// `makespan measure memory --run -o samples.csv` builds and times these kernels on an OpenCL device. Elsewhere: take
// the time of each launch from its event. A row of samples.csv is pattern,requests,seconds: for latency, one work-item
// and the steps; else one work-group of W wavefronts of $warp_size work-items, and $loads W requests.
//
// x: `latency` follows x[i] = i + h through more memory than every cache holds; for the others any floats,
// h at least the work-items of the launch, $loads h elements, $spread times as many for `uncoalesced`.

__kernel void latency(__global const volatile uint *x, uint h, uint steps, __global uint *out)
{
    uint at = 0, sum = 0;
    for (uint i = 0; i < steps; ++i) {
$latency
    }
    *out = at + sum;
}

$departures