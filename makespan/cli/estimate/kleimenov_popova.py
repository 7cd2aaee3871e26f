"""`makespan estimate --method kleimenov-popova`: the time of a launch from dependences, waves and bandwidths."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.estimate.options import kernel_options, report_options, resource_options
from makespan.cli.source import read_module, telling_how_to_keep
from makespan.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from makespan.estimators import Estimate
    from makespan.estimators.kleimenov_popova import HitRates, PtxModel, StaticFixpointResult
    from makespan.estimators.kleimenov_popova.thread_time import Expression
    from makespan.ptx import Kernel

NOT_CONVERGED = 3


@click.command("kleimenov-popova")
@click.argument("source")
@kernel_options
@click.option("--gpu", required=True, metavar="NAME|FILE.toml", help="a shipped GPU or a description")
@click.option("--set", "settings", multiple=True, metavar="KEY=N", help="a figure of the GPU, as in lat_uncoal=680")
@click.option("--l1pct", type=float, help="part of all accesses that hit L1, 0..1")
@click.option("--l2pct", type=float, help="part of all accesses that hit L2, 0..1")
@click.option("--worst-case-cache", is_flag=True, help="no access hits a cache: l1pct and l2pct are 0")
@resource_options
@click.option(
    "--loop",
    "rule",
    type=click.Choice(["unroll2", "exact"]),
    default="unroll2",
    show_default=True,
    help="loops as published, from two iterations; or iteration by iteration",
)
@click.option("--eps", type=float, default=1e-6, show_default=True, help="cycles at which a fixed point is found")
@click.option("--as-printed", is_flag=True, help="the fixed points as the paper prints them, without corrections")
@click.option(
    "--sync-unit",
    type=click.Choice(["warps", "threads"]),
    default="warps",
    show_default=True,
    help="what the size of a block means in the cost of a barrier",
)
@click.option("--measured", type=float, metavar="SECONDS", help="a measured time, for the relative error")
@click.option("--expr", "with_expressions", is_flag=True, help="the time of a thread as an expression")
@report_options
def command(
    source: str,
    kernel: str | None,
    arch: str | None,
    keep_ptx: Path | None,
    measured: float | None,
    with_expressions: bool,
    explain: bool,
    output: str,
    **options: Any,
) -> int:
    """Estimate a launch by dependences, waves and bandwidth fixed points (Kleimenov and Popova, 2021).

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu). l1pct and l2pct must be given, or --worst-case-cache.
    Exit code 3: a fixed point did not converge.
    """
    from makespan.report import estimate as report

    module = read_module(source, arch=arch, keep_ptx=keep_ptx)
    with telling_how_to_keep(module):
        found, model, result = _estimate(module.kernel(kernel), module.kernels, measured=measured, **options)
    several = _expressions(model) if with_expressions else []
    if output == "json":
        document = report.document(found)
        if with_expressions:
            document["expressions"] = {each.name: each.text for each in several}
        click.echo(json.dumps(document))
    else:
        if several:
            click.echo("\n".join(f"{each.name} = {each.text}" for each in several))
        click.echo(report.text(found, explain=explain))
    return 0 if result.is_converged else NOT_CONVERGED


def _estimate(
    kernel: "Kernel",
    kernels: "Sequence[Kernel]",
    *,
    block: str | None,
    grid: str | None,
    param: tuple[str, ...],
    loop_bounds: tuple[str, ...],
    gpu: str,
    settings: tuple[str, ...],
    regs: int | None,
    ptxas: Path | None,
    smem: int,
    rule: str,
    eps: float,
    as_printed: bool,
    sync_unit: str,
    measured: float | None,
    **hits: Any,
) -> "tuple[Estimate, PtxModel, StaticFixpointResult]":
    from makespan import ptx
    from makespan.estimators import gpu as gpus
    from makespan.estimators import kleimenov_popova as model
    from makespan.estimators.kleimenov_popova.explained import explained
    from makespan.estimators.profile import read_resources
    from makespan.estimators.settings import with_settings

    rates = hit_rates(**hits)
    rules = model.Rules.as_printed(eps) if as_printed else model.Rules(eps)
    launch = ptx.launch(block, grid, param)
    described = with_settings(gpus.find(gpu), settings, "--set", model="kleimenov_popova")
    device = model.device_of(described, kernel, launch)
    made = model.from_ptx(
        kernel,
        launch,
        described,
        device,
        rates,
        rule=model.LoopRule(rule),
        loop_bounds=ptx.bounds_for(kernel, ptx.loop_bounds(loop_bounds), kernels),
        resources=None if ptxas is None else read_resources(ptxas, kernel.name),
        registers=regs,
        dynamic_shared_bytes=smem,
    )
    result = model.estimate(device, made.kernel, rules=rules, sync_unit=model.SyncUnit(sync_unit), measured_s=measured)
    return explained(described, device, made, rates, result), made, result


def hit_rates(l1pct: float | None, l2pct: float | None, worst_case_cache: bool) -> "HitRates":
    """What the options say of the caches.

    Raises:
        InputError: nothing, too much, or parts out of range.
    """
    from makespan.estimators.kleimenov_popova import WORST_CASE_CACHE, HitRates

    if worst_case_cache:
        if (l1pct, l2pct) != (None, None):
            raise InputError("--worst-case-cache means that no access hits: no --l1pct or --l2pct beside it")
        return WORST_CASE_CACHE
    if l1pct is None or l2pct is None:
        missing = " and ".join(name for name, value in (("--l1pct", l1pct), ("--l2pct", l2pct)) if value is None)
        raise InputError(
            f"{missing} not given: the part of all accesses that hit the cache, 0..1, which a profiler measures on"
            " similar launches; or --worst-case-cache for none"
        )
    return HitRates(l1pct, l2pct).checked()


def _expressions(model: "PtxModel") -> "list[Expression]":
    """The time of each main thread: by `lat` in numbers, and in names where the loop rule allows it."""
    from makespan.estimators.kleimenov_popova import LoopRule, expressions
    from makespan.estimators.kleimenov_popova.thread_time import Expression

    found = []
    for thread in model.threads:
        which = "" if len(model.threads) == 1 else f"[warp {thread.warps[0]}]"
        found.append(Expression(f"time{which}(lat)", str(thread.time.cycles), None))
        if model.rule is LoopRule.UNROLL2:
            several = expressions(thread.steps, model.timing)
            found += [each._replace(name=f"{each.name}{which}") for each in several]
    return found
