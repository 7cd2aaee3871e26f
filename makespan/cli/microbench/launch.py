"""`makespan microbench launch`: launch times of empty kernels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.microbench.measured import emit_or_fit, options
from makespan.machine.values import shown

if TYPE_CHECKING:
    from makespan.estimators.gpu import Gpu
    from makespan.estimators.parameter import Parameter


@click.command("launch")
@options
@click.option("--warp-size", type=click.IntRange(1, 1024), default=32, show_default=True, help="of --emit")
@click.option("--max-warps", type=click.IntRange(1, 64), default=32, show_default=True, help="of a block, of --emit")
def command(warp_size: int, max_warps: int, **given: Any) -> None:
    """Measure launch times for kleimenov-popova: write the programs, or fit a line for each size of the block.

    Samples are CSV: blocks,warps_per_block,seconds.
    """

    def sources(language: Any) -> dict[str, str]:
        from makespan.estimators.kleimenov_popova.microbench.sources import launch_source

        return launch_source(language, warp_size=warp_size, max_warps=max_warps)

    emit_or_fit(**given, sources=sources, figures=_figures)


def _figures(file: Path, gpu: "Gpu", force: bool) -> "tuple[Parameter, ...]":
    from makespan.estimators.kleimenov_popova.microbench.fit import launch_figures
    from makespan.estimators.kleimenov_popova.microbench.samples import read_launches

    del gpu
    return launch_figures(read_launches(file), f"launch, {shown(file.name)}", force=force)
