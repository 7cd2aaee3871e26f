"""`makespan estimate --method kleimenov-popova`: the time of a launch from dependences, waves and bandwidths."""

from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples, stack
from makespan.cli.output import TEXT
from makespan.cli.parameters import OneOf, choice
from makespan.estimates.commands.question import (
    LaunchOptions,
    described_gpu,
    gpu_options,
    kernel_options,
    report_options,
    resource_options,
    show,
)
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.kleimenov_popova import HitRates, PtxModel

NOT_CONVERGED = 3

cache_options = stack(
    click.option("--l1pct", type=float, help="part of all accesses that hit L1, 0..1 (kleimenov-popova)"),
    click.option("--l2pct", type=float, help="part of all accesses that hit L2, 0..1 (kleimenov-popova)"),
    click.option("--worst-case-cache", is_flag=True, help="no access hits a cache: l1pct and l2pct are 0"),
)


@click.command(
    "kleimenov-popova",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method kleimenov-popova ptx/vecadd.ptx --block 128 --grid 80 --gpu measured.toml \\",
        "    --worst-case-cache",
    ),
)
@click.argument("source")
@kernel_options
@gpu_options
@cache_options
@resource_options
@click.option(
    "--loop",
    "rule",
    type=OneOf(["unroll2", "exact"]),
    default="unroll2",
    show_default=True,
    help="loops as published, from two iterations; or iteration by iteration",
)
@click.option("--eps", type=float, default=1e-6, show_default=True, help="cycles at which a fixed point is found")
@click.option("--as-printed", is_flag=True, help="the fixed points as the paper prints them, without corrections")
@choice("--sync-unit", "warps threads", "what the size of a block means in the cost of a barrier")
@click.option("--measured", type=float, metavar="SECONDS", help="a measured time, for the relative error")
@click.option(
    "--expr",
    "with_expressions",
    is_flag=True,
    help="the time of a thread and of its loops, by lat",
)
@report_options
def command(
    gpu: str,
    settings: tuple[str, ...],
    with_expressions: bool,
    explain: bool,
    output: str,
    **options: Any,
) -> int:
    """Estimate a launch by dependences, waves and bandwidth fixed points (Kleimenov and Popova, 2021).

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu). l1pct and l2pct must be given, or --worst-case-cache.
    Exit code 3: a fixed point did not converge.
    """
    from makespan.estimates.question import kleimenov_popova

    asked = LaunchOptions.taken(options)
    rates = hit_rates(options.pop("l1pct"), options.pop("l2pct"), options.pop("worst_case_cache"))
    card = described_gpu(gpu, settings, "kleimenov_popova")
    found, model, result = kleimenov_popova(asked.question(card), card, rates, **options)
    expressions = _expressions(model) if with_expressions else {}
    if output == TEXT and expressions:
        click.echo("\n".join(f"{name} = {text}" for name, text in expressions.items()))
    show(found, explain=explain, output=output, **({"expressions": expressions} if with_expressions else {}))
    return 0 if result.is_converged else NOT_CONVERGED


def hit_rates(l1pct: float | None, l2pct: float | None, worst_case_cache: bool) -> "HitRates":
    """Return the hit rates that the options give.

    Raises:
        InputError: nothing, too much, or parts out of range.
    """
    from makespan.estimates.kleimenov_popova import WORST_CASE_CACHE, HitRates

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


def _expressions(model: "PtxModel") -> dict[str, str]:
    from makespan.estimates.kleimenov_popova.thread_time import LoopRule, unrolled_times

    found: dict[str, str] = {}
    for thread in model.threads:
        which = "" if len(model.threads) == 1 else f"[warp {thread.warps[0]}]"
        found[f"time{which}(lat)"] = str(thread.time.cycles)
        if model.rule is LoopRule.UNROLL2:
            found |= {
                f"T2_{label}{which}(lat)": str(cycles)
                for label, cycles in unrolled_times(thread.steps, model.timing).items()
            }
    return found
