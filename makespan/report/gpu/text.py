"""A result for a whole GPU as text for a terminal."""

from collections.abc import Iterable, Iterator

from makespan.model.gpu import GpuInstance, GpuResult, LastDispatch
from makespan.model.machine import WarpAssignment
from makespan.model.result import Status
from makespan.model.wording import count_words, cycle_words
from makespan.report.gpu.document import GpuClock
from makespan.report.lines import WIDTH, assumption_lines, number_lines, wrap_line
from makespan.report.result.text import interval_text

_COUNTINGS = {
    "all": "whatever an SM executes counts as a wait of each of its blocks",
    "partitions": "whatever a partition executes counts as a wait of each block with warps there, and what partitions"
    " share as one of each block of the SM",
    "one-by-one": "all that passes on an SM is added up, as if its instructions came one by one",
    "pairs": "as all, but of two instructions of different classes that could go together one counts (theorem E)",
}

WITHOUT_WITNESS = "no schedule is shorter; none was found, as runs take too long before they repeat"


def gpu_report(
    result: GpuResult,
    remarks: Iterable[str] = (),
    *,
    name: str | None = None,
    clock: GpuClock | None = None,
    width: int = WIDTH,
) -> str:
    """Return the whole report: the verdict, then the `remarks`, and then all that supports the verdict.

    Args:
        name: the name of the GPU.
    """
    subject = f"{name}: {result.instance}" if name else str(result.instance)
    time = [] if clock is None else wrap_line(f"in time: {clock.time(result.bounds)} at {clock}", width)
    told = (*result.assumptions, *((clock.assumption,) if clock else ()))
    return "\n".join(
        [
            str(result),
            *remarks,
            *wrap_line(subject, width),
            *number_lines(list(_bound_rows(result)), width),
            *time,
            f"found in {result.seconds:.2f} s",
            *(line for sentence in explain_bound(result) for line in wrap_line(sentence, width)),
            *assumption_lines(told, width),
        ]
    )


def _bound_rows(result: GpuResult) -> Iterator[tuple[str, str, str]]:
    plain = result.without_lapses
    of_what = "whole GPU without lapses" if plain is not None else "whole GPU"
    shown = f"a replayed schedule of the {of_what}{f': {result.policy}' if result.policy else ''}"
    yield "at least", str(result.bounds.lower), shown if result.witness is not None else WITHOUT_WITNESS
    yield "at most", str(result.bounds.upper), f"proven by {_evidence_words(result)}"
    if plain is not None:
        yield "without lapses", interval_text(plain.bounds), f"proven by {_evidence_words(plain)}"
    if result.best_case is not None:
        kind = "" if plain is None else ", with lapses or without"
        yield "best case", interval_text(result.best_case), f"the shortest schedule of the whole GPU{kind}"


def picture_subtitle(result: GpuResult) -> str:
    """Return the line below the title of a picture of the witness. The witness of a bounded result is no worst case."""
    if result.status is Status.EXACT:
        return str(result.instance)
    lower, upper = cycle_words(result.bounds.lower), result.bounds.upper
    said = f"a schedule of {lower}; at most {upper} are proven"
    if result.without_lapses is not None:
        said = f"a schedule without lapses of {lower}; at most {upper} are proven with them"
    return f"{said}: {result.instance}"


def describe_waves(gpu: GpuInstance) -> str:
    """Return one line about how often the blocks of the only grid fill the GPU.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CL"), 8),)
    >>> describe_waves(GpuInstance.of(block, 4096, Machine.of({"C": 1, "L": 1}), sms=46, resident=6))
    '46 SMs with 6 blocks each hold 276 at a time: 4096 blocks are 14.9 waves'
    """
    each = gpu.fitting(gpu.grid)
    hold = f"{count_words(gpu.sms, 'SM')} with {count_words(each, 'block')} each hold {gpu.sms * each} at a time"
    if gpu.is_one_wave:
        launched = f"all {gpu.blocks} blocks are" if gpu.blocks > 1 else "the only block is"
        return f"{hold}: {launched} there from the beginning"
    tenths = -(-10 * gpu.blocks // gpu.slots)
    count = f"{tenths // 10}.{tenths % 10}" if gpu.blocks % gpu.slots else str(gpu.blocks // gpu.slots)
    return f"{hold}: {gpu.blocks} blocks are {count} waves"


def explain_bound(result: GpuResult) -> Iterator[str]:
    """Yield the terms that the bound adds up, one sentence each."""
    gpu, last = result.instance, result.last_dispatch
    if len(gpu.grids) == 1:
        yield describe_waves(gpu)
    if last is not None:
        yield from _explain_theorem(gpu, last)
    if len(result.sms) > 1:
        fewest, most = _blocks_of_result(result, -1), _blocks_of_result(result, 0)
        yield f"an SM has {fewest} to {most} of them; the bound is the largest of all these"
    if (plain := result.without_lapses) is not None:
        yield (
            "lapses of schedulers and late lines are in the bound, and not in the schedule; without them the bound is"
            f" {cycle_words(plain.bounds.upper)}"
        )


def _evidence_words(result: GpuResult) -> str:
    """Return the evidence of the upper bound. In one wave it is that of the worst SM."""
    worst = max(range(len(result.sms)), key=lambda number: result.sms[number].bounds.upper, default=None)
    if worst is None:
        return result.upper_evidence
    blocks = count_words(_blocks_of_result(result, worst), "block")
    return f"{result.sms[worst].upper_evidence}, as of one SM with {blocks}"


def _blocks_of_result(result: GpuResult, number: int) -> int:
    return result.sms[number].instance.warps // result.instance.grid.warps


def _explain_theorem(gpu: GpuInstance, last: LastDispatch) -> Iterator[str]:
    latest = last.block * last.charged // last.scale
    if not last.charged:
        yield f"what a block waits for takes at most {cycle_words(last.tail)} with its own instructions"
    else:
        full = "there is no room for some of them on any SM"
        if len(gpu.grids) == 1:
            most = -(-last.block * gpu.slots // last.scale)
            full = f"all {gpu.slots} slots are taken, by each block for at most {cycle_words(most)} on average"
        waits = ["DRAM is busy"] * bool(last.dram) + ["lines come for the first time"] * bool(last.windows)
        aside = f", those aside in which {' or '.join(waits)}" if waits else ""
        yield f"as long as blocks are left, {full}; so the last one gets its room in cycle {latest} or before{aside}"
        yield f"from then on what is left on its SM takes at most {cycle_words(last.tail)}"
    if spared := latest - last.dispatched:
        yield f"{cycle_words(spared)} less together: what its SM has executed before is not left after"
    yield f"counted by {last.counting}: {_COUNTINGS[last.counting]}"
    if last.windows:
        late = cycle_words(last.windows)
        yield f"before the last block gets its room, lines of code and constants that stay are late for at most {late}"
    if last.dram:
        busy = cycle_words(last.dram)
        yield f"DRAM is busy in at most {busy}, which are added once, whoever waits for it (theorem V)"
    is_free = len(gpu.grids) == 1 and gpu.machine.partitions > 1 and gpu.machine.assignment is WarpAssignment.ANY
    if is_free and gpu.sm(1).identical:
        yield f"warps in any of {gpu.machine.partitions} partitions: --assignment modulo is sharper, where that is so"
