"""`makespan microbench latency`: latencies and issue delays of instructions, latencies and bandwidths of memory."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.microbench.measured import emit_or_fit, options
from makespan.errors import InputError
from makespan.machine.values import shown

if TYPE_CHECKING:
    from makespan.estimators.gpu import Gpu
    from makespan.estimators.parameter import Parameter


@click.command("latency")
@options
@click.option("--lengths", default="64,192", show_default=True, metavar="N,...", help="instructions of a chain")
@click.option("--ptx-target", default="sm_75", show_default=True, metavar="sm_NN", help="of --emit ptx")
def command(lengths: str, ptx_target: str, **given: Any) -> None:
    """Measure latencies, issue delays and memory for kleimenov-popova: write the programs, or fit their samples.

    Samples are CSV: measure,name,count,cycles (or seconds) with measures latency, delay, memory and bandwidth. What
    cannot be measured so, as moves and branches, must be given.
    """

    def sources(language: Any) -> dict[str, str]:
        from makespan.estimators.kleimenov_popova.microbench.sources import latency_source

        return latency_source(language, lengths=_numbers(lengths), target=ptx_target)

    emit_or_fit(**given, sources=sources, figures=_figures)


def _figures(file: Path, gpu: "Gpu", force: bool) -> "tuple[Parameter, ...]":
    from makespan.estimators.kleimenov_popova.microbench.fit import fitted
    from makespan.estimators.kleimenov_popova.microbench.samples import read_samples

    return fitted(read_samples(file), gpu, f"latency, {shown(file.name)}", force=force)


def _numbers(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) <= 4 for word in words):
        raise InputError(f"--lengths {text[:60]!r}: give whole numbers of up to four digits, such as 64,192")
    return tuple(map(int, words))
