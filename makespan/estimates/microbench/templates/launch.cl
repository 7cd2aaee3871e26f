// An empty kernel, for the launch times of the model of Kleimenov and Popova (2021); written by makespan.
// launch_opencl.py times it, for work-groups of up to $max_warps wavefronts of $warp_size, in grids of $grids, $repeats times.
__kernel void empty(void)
{
}
