"""`makespan estimate --method hong-kim`: the time of a launch from memory and computation warp parallelism."""

import json
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.estimate.options import kernel_options, report_options
from makespan.cli.source import read_module, telling_how_to_keep
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators import Estimate
    from makespan.estimators.gpu import Gpu


@click.command("hong-kim")
@click.argument("source", required=False)
@click.option("--counts", metavar="comp=N,coal=N,...", help="dynamic counts of one thread, in place of SOURCE")
@click.option("--ops", metavar="f32_mul=N,...", help="those of comp that a table of throughputs charges differently")
@click.option("--gpu", required=True, metavar="NAME|FILE.toml", help="a shipped GPU or a description")
@click.option("--set", "settings", multiple=True, metavar="KEY=N", help="a figure of the GPU, such as mem_ld=420")
@kernel_options
@click.option("--regs", type=click.IntRange(0, 4096), help="registers of a thread, as ptxas -v says")
@click.option("--ptxas", type=click.Path(path_type=Path), metavar="FILE", help="output of ptxas -v, for registers")
@click.option("--smem", type=click.IntRange(0, 2**31), help="bytes of shared memory of a block beside those declared")
@click.option("--active-blocks", type=click.IntRange(1, 4096), help="resident blocks of an SM, whatever fits")
@click.option(
    "--variant",
    type=click.Choice(["isca09", "issue-bounded"]),
    default="isca09",
    show_default=True,
    help="as published, or at least the time to issue all instructions",
)
@click.option(
    "--rep",
    type=click.Choice(["real", "ceil"]),
    default="real",
    show_default=True,
    help="fillings of an SM: a real number as published, or whole waves",
)
@click.option(
    "--comp-model",
    type=click.Choice(["uniform", "throughput"]),
    help="all instructions alike, or by the table of throughputs [default: the table if it has one of --ops]",
)
@report_options
def command(output: str, explain: bool, source: str | None, counts: str | None, **options: Any) -> None:
    """Estimate a launch by memory and computation warp parallelism (Hong and Kim, ISCA 2009).

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu); without one, --counts says what a thread executes.
    """
    from makespan.report import estimate as report

    if (source is None) == (counts is None):
        raise InputError("give either SOURCE or --counts, such as comp=27,uncoal=6,coal=0,synch=6")
    found = _of_source(source, **options) if source is not None else _of_counts(str(counts), **options)
    click.echo(json.dumps(report.document(found)) if output == "json" else report.text(found, explain=explain))


def _of_counts(
    counts: str,
    *,
    ops: str | None,
    gpu: str,
    settings: tuple[str, ...],
    block: str | None,
    grid: str | None,
    regs: int | None,
    smem: int | None,
    active_blocks: int | None,
    variant: Any,
    rep: Any,
    comp_model: Any,
    **of_source: Any,
) -> "Estimate":
    from makespan import ptx
    from makespan.estimators.hong_kim import HongKimKernel, given
    from makespan.estimators.hong_kim.explained import estimate_launch
    from makespan.estimators.hong_kim.figures import of_gpu

    if any(of_source.values()):
        said = next(name for name, value in of_source.items() if value).replace("_", "-").removesuffix("s")
        raise InputError(f"--{said} is for a kernel file; --counts says what a thread executes")
    launch = ptx.launch(block, grid)
    if launch.block is None or launch.grid is None:
        raise InputError(f"--{'grid' if launch.block else 'block'} is missing: how large is the launch?")
    described = _gpu(gpu, settings)
    found = given.counts(counts, "--counts", tuple(given.COUNTS))
    rates = tuple(of_gpu(described).throughput)
    kernel = HongKimKernel(
        threads_per_block=prod(launch.block),
        blocks=prod(launch.grid),
        comp_insts=found.pop("comp", 0),
        **{given.COUNTS[name]: count for name, count in found.items()},
        operations=given.counts(ops, "--ops", rates) if ops else {},
        regs_per_thread=regs,
        smem_per_block=smem,
        active_blocks_per_sm=active_blocks,
    )
    return estimate_launch(described, kernel, variant=variant, rep=rep, comp_model=comp_model)


def _of_source(
    source: str,
    *,
    kernel: str | None,
    arch: str | None,
    keep_ptx: Path | None,
    ops: str | None,
    gpu: str,
    settings: tuple[str, ...],
    block: str | None,
    grid: str | None,
    param: tuple[str, ...],
    loop_bounds: tuple[str, ...],
    regs: int | None,
    ptxas: Path | None,
    smem: int | None,
    active_blocks: int | None,
    variant: Any,
    rep: Any,
    comp_model: Any,
) -> "Estimate":
    from makespan import ptx
    from makespan.estimators import Origin
    from makespan.estimators.hong_kim.counts import coalescing, count
    from makespan.estimators.hong_kim.explained import estimate_launch
    from makespan.estimators.profile import profile, read_resources

    if ops is not None:
        raise InputError("--ops is for --counts; the operations of a kernel file are counted")
    launch = ptx.launch(block, grid, param)
    described = _gpu(gpu, settings)
    module = read_module(source, arch=arch, keep_ptx=keep_ptx)
    chosen = module.kernel(kernel)
    with telling_how_to_keep(module):
        profiled = profile(
            chosen,
            launch,
            coalescing=coalescing(described),
            warp_size=described.whole("warp_size"),
            loop_bounds=ptx.bounds_for(chosen, ptx.loop_bounds(loop_bounds), module.kernels),
            resources=None if ptxas is None else read_resources(ptxas, chosen.name),
            registers=regs,
            dynamic_shared_bytes=smem or 0,
        )
    counted = count(profiled, active_blocks_per_sm=active_blocks)
    return estimate_launch(
        described,
        counted.kernel,
        variant=variant,
        rep=rep,
        comp_model=comp_model,
        origin=Origin.DERIVED,
        notes=counted.notes,
        warnings=profiled.notes,
    )


def _gpu(name: str, settings: tuple[str, ...]) -> "Gpu":
    from makespan.estimators import gpu as gpus
    from makespan.estimators.settings import with_settings

    return with_settings(gpus.find(name), settings, "--set", model="hong_kim")
