"""A kernel that is launched on a GPU, as the models for launches are asked about it, and what they answer."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from makespan.estimates import kleimenov_popova as model
from makespan.estimates.estimate import Estimate
from makespan.estimates.hong_kim.launch import coalescing, estimate_profile
from makespan.estimates.kleimenov_popova.explained import explained_estimate
from makespan.estimates.kleimenov_popova.thread_time import LoopRule
from makespan.estimates.kleimenov_popova.waves import WORST_CASE_CACHE, SyncUnit
from makespan.estimates.profile import Coalescing, KernelProfile, Resources, profile
from makespan.host.errors import InputError
from makespan.kernels.flow import GivenBound, Launch
from makespan.kernels.ptx import PtxKernel
from makespan.kernels.question import LaunchedKernel
from makespan.model.machine.gpus import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchQuestion:
    """A kernel that is launched on a GPU.

    Args:
        gpu: None where only `profile` is asked for.
        resources: what is known of registers and shared memory, as `profile` takes it.
    """

    kernel: PtxKernel
    launch: Launch
    gpu: Gpu | None
    loop_bounds: tuple[GivenBound, ...]
    resources: Mapping[str, int | Resources | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls, found: LaunchedKernel, gpu: Gpu | None, resources: Mapping[str, int | Resources | None]
    ) -> "LaunchQuestion":
        """Return the question about one SM as a question about a GPU.

        Raises:
            InputError: machine code.
        """
        if not isinstance(found.kernel, PtxKernel):
            raise InputError(
                f"{found.kernel.file}: estimates are made of PTX: give the PTX or the source, and no sm_NN"
            )
        return cls(
            kernel=found.kernel, launch=found.launch, gpu=gpu, loop_bounds=found.loop_bounds, resources=resources
        )

    def profile(self, coalescing: Coalescing | None = None) -> KernelProfile:
        """Return the profile of the launch; a `coalescing` of None is the usual rule, segments of 128 bytes."""
        warp = {} if self.gpu is None else {"warp_size": self.gpu.whole("warp_size")}
        rest: dict[str, Any] = {**self.resources, **warp}
        return profile(self.kernel, self.launch, coalescing=coalescing, loop_bounds=self.loop_bounds, **rest)


def hong_kim(question: LaunchQuestion, gpu: Gpu, active_blocks: int | None = None, **variant: Any) -> Estimate:
    """Return the estimate by memory and computation warp parallelism (Hong and Kim).

    Args:
        active_blocks: resident blocks of an SM; None for as many as fit.
        variant: as `estimate_launch` takes it.

    Raises:
        InputError: numbers of the GPU that are not known, each with how to get it; or see `LaunchQuestion.profile`.
    """
    return estimate_profile(gpu, question.profile(coalescing(gpu)), active_blocks=active_blocks, **variant)


def kleimenov_popova(
    question: LaunchQuestion,
    gpu: Gpu,
    rates: model.HitRates,
    *,
    rule: LoopRule = "unroll2",
    eps: float = 1e-6,
    as_printed: bool = False,
    sync_unit: SyncUnit = "warps",
    measured: float | None = None,
) -> tuple[Estimate, model.PtxModel, model.StaticFixpointResult]:
    """Return the estimate by bandwidth fixed points (Kleimenov and Popova), its kernel model and its result.

    Raises:
        InputError: numbers of the GPU that are not known, each with how to get it; or see `from_ptx`.
    """
    rules = model.Rules.as_printed(eps) if as_printed else model.Rules(eps)
    about: dict[str, Any] = {"loop_bounds": question.loop_bounds, **question.resources}
    made = model.from_ptx(question.kernel, question.launch, gpu, rates, rule=rule, **about)
    result = model.estimate(made.device, made.kernel, rules=rules, sync_unit=sync_unit, measured_s=measured)
    return explained_estimate(gpu, made, rates, result), made, result


def cycles_by_method(question: Callable[[], LaunchQuestion], gpu: Gpu) -> dict[str, float | None]:
    """Return the cycles of the launch by each method; None where the method lacks an input."""
    methods: dict[str, Callable[[], Estimate]] = {
        "hong-kim": lambda: hong_kim(question(), gpu),
        "kleimenov-popova": lambda: kleimenov_popova(question(), gpu, WORST_CASE_CACHE)[0],
    }
    found: dict[str, float | None] = dict.fromkeys(methods)
    for name, method in methods.items():
        with suppress(InputError):
            found[name] = method().cycles
    return found
