"""`makespan estimate --compare`: every method that can say something, beside what is proven and simulated."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli import INTERRUPTED
from makespan.cli.estimate import METHODS
from makespan.cli.estimate.options import resource_options
from makespan.cli.parameters import Seconds
from makespan.cli.source import (
    KERNEL_FORMATS,
    KernelOptions,
    instances,
    launched,
    program_options,
    read_module,
    source_options,
    telling_how_to_keep,
)
from makespan.errors import InputError
from makespan.result import Status
from makespan.stopwatch import within

if TYPE_CHECKING:
    from makespan.estimators import Estimate
    from makespan.estimators.gpu import Gpu
    from makespan.estimators.profile import Coalescing, KernelProfile, Resources
    from makespan.instance import Instance
    from makespan.ptx import GivenBound, Kernel, Launch
    from makespan.report.policy_gap import PolicyGap

EXACT, BOUNDED = 0, 3
FFMA_REGISTERS = 32


@click.command("compare")
@source_options
@click.option(
    "--gpu", required=True, metavar="NAME|FILE.toml", help="a shipped GPU or a description, for the estimates"
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=N", help="a figure of the GPU, as in hong_kim.mem_ld=420"
)
@resource_options
@click.option("--active-blocks", type=click.IntRange(1, 4096), help="resident blocks of an SM, for hong-kim")
@click.option("--l1pct", type=float, help="part of all accesses that hit L1, 0..1, for kleimenov-popova")
@click.option("--l2pct", type=float, help="part of all accesses that hit L2, 0..1, for kleimenov-popova")
@click.option("--worst-case-cache", is_flag=True, help="no access hits a cache: l1pct and l2pct are 0")
@click.option("--table", metavar="NAME|FILE.json", help="a cost table, for opencl-cost-table")
@click.option("--ffma-device", metavar="vgk110|FILE.csv", help="a virtual SM or measurements, for dual-issue")
@click.option("--time-limit", type=Seconds(), default=60.0, show_default=True, help="to prove worst and best case")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    gpu: str,
    settings: tuple[str, ...],
    time_limit: float,
    output: str,
    regs: int | None,
    ptxas: Path | None,
    smem: int,
    active_blocks: int | None,
    l1pct: float | None,
    l2pct: float | None,
    worst_case_cache: bool,
    table: str | None,
    ffma_device: str | None,
    **source: Any,
) -> int:
    """All methods that can say something of a kernel, beside best case, policies and worst case of one SM.

    What is proven and what is estimated stand apart. An estimate is not a bound. SOURCE is a kernel (.ptx, .cu) with
    --block and --grid; --machine or --capacity and --blocks-per-sm say what SM the proof is about. A method that lacks
    something says what. Exit code 3: the worst case is bounded, but not exact.
    """
    from makespan.estimators import gpu as gpus
    from makespan.estimators.settings import with_settings
    from makespan.report import estimates as report

    described = with_settings(gpus.find(gpu), settings, "--set")
    asked = _asked(source, described, regs, ptxas, smem)
    methods: Mapping[str, Callable[[], Estimate]] = {
        "hong-kim": lambda: _hong_kim(asked, active_blocks),
        "kleimenov-popova": lambda: _kleimenov_popova(asked, l1pct, l2pct, worst_case_cache),
        "opencl-cost-table": lambda: _opencl_cost_table(asked, table),
        "dual-issue": lambda: _dual_issue(asked, ffma_device),
    }
    found, missing = _answers(methods)
    with within(time_limit) as reading:
        (question,) = instances(**source)
    gap, said = _proven(question.instance, reading.left)
    said_of_gpu = f"GPU {described.name}"
    compared = report.Estimates(f"{asked.kernel.name}, {asked.launch}", said_of_gpu, gap, said, found, missing)
    click.echo(json.dumps(report.document(compared)) if output == "json" else report.report(compared))
    if gap.result.interrupted:
        return INTERRUPTED
    return EXACT if gap.result.status is Status.EXACT else BOUNDED


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all methods are asked about."""

    kernel: "Kernel"
    launch: "Launch"
    loop_bounds: "tuple[GivenBound, ...]"
    gpu: "Gpu"
    registers: int | None
    resources: "Resources | None"
    dynamic_shared_bytes: int

    def profile(self, coalescing: "Coalescing | None") -> "KernelProfile":
        """What the launch executes; None for the usual coalescing."""
        from makespan.estimators.profile import profile

        return profile(
            self.kernel,
            self.launch,
            coalescing=coalescing,
            warp_size=self.gpu.whole("warp_size"),
            loop_bounds=self.loop_bounds,
            resources=self.resources,
            registers=self.registers,
            dynamic_shared_bytes=self.dynamic_shared_bytes,
        )


def _asked(source: dict[str, Any], gpu: "Gpu", registers: int | None, ptxas: Path | None, smem: int) -> _Asked:
    """The kernel and its launch.

    Raises:
        InputError: no kernel, or a launch without block or grid.
    """
    from makespan.estimators.profile import read_resources

    path = source["source"]
    if path is None or (path != "-" and Path(path).suffix.removeprefix(".") not in KERNEL_FORMATS):
        raise InputError("a comparison of estimates needs a kernel: a .ptx or .cu file")
    if path == "-":
        raise InputError("a comparison reads its kernel twice: give a file instead of '-'")
    names = KernelOptions.__dataclass_fields__
    options = KernelOptions(**{name: value for name, value in source.items() if name in names})
    module = read_module(path, arch=options.arch, keep_ptx=options.keep_ptx)
    kernel = module.kernel(options.kernel)
    with telling_how_to_keep(module):
        launch = launched(options).for_kernel(kernel)
        bounds = program_options(module, kernel, options)["loop_bounds"]
    missing = [name for name, extent in (("--block", launch.block), ("--grid", launch.grid)) if extent is None]
    if missing:
        raise InputError(f"{' and '.join(missing)} not given: how large is the launch?")
    resources = None if ptxas is None else read_resources(ptxas, kernel.name)
    return _Asked(kernel, launch, bounds, gpu, registers, resources, smem)


def _answers(methods: "Mapping[str, Callable[[], Estimate]]") -> "tuple[dict[str, Estimate], dict[str, str]]":
    """The estimates, and what the methods without one lack."""
    found, missing = {}, {}
    for name in METHODS:
        try:
            found[name] = methods[name]()
        except InputError as error:
            missing[name] = str(error)
    return found, missing


def _hong_kim(asked: _Asked, active_blocks: int | None) -> "Estimate":
    from makespan.estimators import Origin
    from makespan.estimators.hong_kim.counts import coalescing, count
    from makespan.estimators.hong_kim.explained import estimate_launch

    profiled = asked.profile(coalescing(asked.gpu))
    counted = count(profiled, active_blocks_per_sm=active_blocks)
    return estimate_launch(
        asked.gpu, counted.kernel, origin=Origin.DERIVED, notes=counted.notes, warnings=profiled.notes
    )


def _kleimenov_popova(asked: _Asked, l1pct: float | None, l2pct: float | None, worst_case_cache: bool) -> "Estimate":
    from makespan.cli.estimate.kleimenov_popova import hit_rates
    from makespan.estimators import kleimenov_popova as model
    from makespan.estimators.kleimenov_popova.explained import explained

    rates = hit_rates(l1pct, l2pct, worst_case_cache)
    device = model.device_of(asked.gpu, asked.kernel, asked.launch)
    made = model.from_ptx(
        asked.kernel,
        asked.launch,
        asked.gpu,
        device,
        rates,
        loop_bounds=asked.loop_bounds,
        resources=asked.resources,
        registers=asked.registers,
        dynamic_shared_bytes=asked.dynamic_shared_bytes,
    )
    return explained(asked.gpu, device, made, rates, model.estimate(device, made.kernel))


def _opencl_cost_table(asked: _Asked, table: str | None) -> "Estimate":
    from makespan.estimators.opencl_cost_table.from_ptx import work
    from makespan.estimators.opencl_cost_table.prediction import estimate, predict
    from makespan.estimators.opencl_cost_table.table import find

    if table is None:
        raise InputError("--table is missing: a shipped cost table such as rmbp-gt650m, or a measured one")
    priced = find(table)
    found = work(
        asked.kernel,
        asked.launch,
        interval_bytes=priced.interval_bytes,
        loop_bounds=asked.loop_bounds,
        bytes_in=None,
        bytes_out=None,
    )
    return estimate(predict(priced, found, {}))


def _dual_issue(asked: _Asked, device: str | None) -> "Estimate":
    from makespan.cli.issue_device import measured
    from makespan.estimators.dual_issue import Work, estimate
    from makespan.estimators.dual_issue.arbiter import PATTERNS

    if device is None:
        raise InputError("--ffma-device is missing: measurements of dual issue (.csv), or the virtual SM vgk110")
    work = Work.of(asked.profile(None))
    is_table = device.endswith(".csv")
    found = measured(
        device=None if is_table else device,
        table=Path(device) if is_table else None,
        lanes=None,
        schedulers=None,
        threshold="auto",
        fast=not is_table,
        registers=FFMA_REGISTERS,
        only=PATTERNS,
    )
    sms, clock_ghz = asked.gpu.whole("sms"), asked.gpu.number("clock_ghz")
    return estimate(found, work, sms=sms, clock_ghz=clock_ghz, gpu=asked.gpu)


def _proven(instance: "Instance", seconds: float) -> "tuple[PolicyGap, str]":
    """Best case, a run of every policy, worst case; and how the runs were made."""
    from makespan.cli.solve import interruptible, progress
    from makespan.report import simulation
    from makespan.report.policy_gap import enclosing
    from makespan.simulate import run
    from makespan.simulate.choices import GROUP_SIZE, LATENCIES, PATHS, Choices
    from makespan.simulate.policies import POLICIES
    from makespan.solve import Limits, solve

    choices = Choices(LATENCIES[0], PATHS[0], 0, GROUP_SIZE)
    schedules = {policy: run(instance, policy, choices) for policy in POLICIES}
    limits = Limits(seconds, progress=progress())
    with interruptible(limits):
        result = solve(instance, best_case=True, limits=limits)
    return enclosing(result, schedules), simulation.settings(instance, choices)
