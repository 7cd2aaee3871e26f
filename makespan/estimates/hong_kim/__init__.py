"""Kernel time from memory and computation warp parallelism, with measured parameters, and a port to AMD GPUs.

>>> from makespan.model.machine.occupancy import SmLimits
>>> gpu = HongKimGPU(limits=SmLimits(32), sms=16, issue_cycles=4, freq_ghz=1, mem_bw_gbs=80, mem_ld=420,
...     departure_del_uncoal=10)
>>> kernel = HongKimKernel(threads_per_block=128, blocks=80, comp_insts=27, uncoal_mem_insts=6, synch_insts=6,
...     active_blocks_per_sm=5)
>>> float(estimate(gpu, kernel).total_cycles)
50728.1875
"""

from makespan.estimates.hong_kim.model import Bound, Case, HongKimGPU, HongKimKernel, HongKimResult, estimate

__all__ = ["Bound", "Case", "HongKimGPU", "HongKimKernel", "HongKimResult", "estimate"]
