// Latencies and issue delays of instructions, for the model of Kleimenov and Popova (2021); written by makespan.
// latency_opencl.py builds and times these kernels.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
$kernels
