// Operations per cycle of a compute unit, for the model of Hong and Kim (ISCA 2009) on other GPUs; written by makespan.
//
// `makespan measure throughput --run -o samples.csv` builds and times these kernels on an OpenCL device. Elsewhere:
// launch with rounds = $rounds; a row of samples.csv is operation,operations,global_size,seconds with $operations
// operations of each work-item, four times as many in the kernels on vectors of four.
$kernels
