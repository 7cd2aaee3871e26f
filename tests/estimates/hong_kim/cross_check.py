"""The model beside a simulation of the machine that it describes: one SM, a memory that takes requests one by one."""

from dataclasses import dataclass

from makespan.estimates.hong_kim.model import HongKimGPU, HongKimKernel, HongKimResult, estimate
from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.machine.occupancy import SmLimits
from makespan.model.simulate import Choices, replay, run

_WARP = 32
_PLENTY = 10**12
"""GB/s: only departures limit requests."""


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """Cycles by the model, and by one simulated run of the same machine."""

    result: HongKimResult
    simulated: int

    @property
    def relative_error(self) -> float:
        """Of the estimate, against the simulation."""
        return float(self.result["exec"]) / self.simulated - 1


def cross_check(
    *, warps: int, comp_insts: int, mem_insts: int, mem_l: int, departure: int, issue_cycles: int, policy: str = "lrr"
) -> CrossCheck:
    """Compare for warps that compute, access memory, and so on: `comp_insts` in all, evenly before each access.

    Every instruction, accesses included, holds the one issue port for `issue_cycles`; an access then holds the port of
    the memory for `departure` cycles, and its warp goes on after `mem_l`.

    Raises:
        InputError: `comp_insts` that cannot be spread evenly, or a number that the simulated machine cannot have.
    """
    if mem_insts < 1 or comp_insts % mem_insts:
        raise InputError(f"{comp_insts} comp_insts cannot be spread evenly over {mem_insts} mem_insts")
    gpu = HongKimGPU(
        limits=SmLimits(_WARP),
        sms=1,
        freq_ghz=1,
        mem_bw_gbs=_PLENTY,
        issue_cycles=issue_cycles,
        mem_ld=mem_l,
        departure_del_coal=departure,
    )
    kernel = HongKimKernel(
        threads_per_block=_WARP,
        blocks=warps,
        active_blocks_per_sm=warps,
        comp_insts=comp_insts,
        coal_mem_insts=mem_insts,
    )
    machine = Machine(
        "one SM of the model",
        (
            UnitClass("C", 1, issue_cycles, Latency(issue_cycles, issue_cycles)),
            UnitClass("L", 1, departure, Latency(mem_l, mem_l)),
        ),
    )
    string = ("C" * (comp_insts // mem_insts + 1) + "L") * mem_insts
    instance = Instance.of(string, warps, machine)
    return CrossCheck(estimate(gpu, kernel), replay(instance, run(instance, policy, Choices())))
