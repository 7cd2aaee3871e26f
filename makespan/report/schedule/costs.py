"""The cost of a kernel in a schedule: cycles of all warps together, by instruction and by line of the source."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from makespan.model.instance import Instance
from makespan.model.program import InstructionOrigin
from makespan.report.schedule.activity import Bar, Wait, Why

if TYPE_CHECKING:
    from makespan.kernels import ptx, sass

_CostKey = TypeVar("_CostKey", bound=Hashable)


class Cost(NamedTuple):
    """The cost of an instruction: cycles of all warps together, divided as in `activity.Wait`. Each cycle counts once.

    Args:
        issued: the number of executions, each of which issues for one cycle.
        stalled: cycles after its issue before its warp may go on.
        result: cycles in which it waits for results.
        port: cycles in which it waits for a port of its class.
        resource: cycles in which it waits for a port of a resource.
        slot: cycles in which it waits for an issue slot.
        barrier: cycles in which it is a barrier and waits for other warps.
        awaited: cycles in which other instructions, or the end of a warp, wait for its result. They belong to those and
            are not part of `cycles`.
    """

    issued: int = 0
    stalled: int = 0
    result: int = 0
    port: int = 0
    resource: int = 0
    slot: int = 0
    barrier: int = 0
    awaited: int = 0

    @property
    def cycles(self) -> int:
        """Return the sum of all cycles of the instruction itself."""
        return sum(self[:-1])


def cost_by_key(
    instance: Instance, bars: Iterable[Bar], waits: Iterable[Wait], key: Callable[[InstructionOrigin], _CostKey]
) -> dict[_CostKey, Cost]:
    """Return the cost of every executed instruction of a schedule. Instructions with the same key are added up.

    The cycles of all costs add up to those of all warps until each has finished. A place that several instructions
    share counts for the first of them.

    Args:
        bars: the bars as in `activity`, of warps whose programs have origins.
        waits: the waits as in `activity`.
        key: a function that returns the key of an instruction.

    >>> from makespan import Schedule
    >>> from makespan.model.instance import Group
    >>> from makespan.model.program import Program
    >>> from makespan.report.schedule.activity import bars, waits
    >>> program = Program.chain("CL", origins=[InstructionOrigin("k.ptx", 3), InstructionOrigin("k.ptx", 4)])
    >>> instance = Instance.merged([(program, 2)])
    >>> schedule = Schedule.of_chains(instance, [(0,), (0, 1), (1,)])
    >>> issued = bars(instance, schedule)
    >>> found = cost_by_key(instance, issued, waits(instance, schedule, issued), lambda origin: origin.line)
    >>> found[3]
    Cost(issued=2, stalled=0, result=0, port=1, resource=0, slot=0, barrier=0, awaited=0)
    """
    keys = [[key(origin) for origin in group.program.origins] for group in instance.groups]
    of_warp: Sequence[Sequence[_CostKey]] = [keys[group] for group in instance.group_of_warp()]
    found: defaultdict[_CostKey, dict[str, int]] = defaultdict(lambda: dict.fromkeys(Cost._fields, 0))
    for bar in bars:
        found[of_warp[bar.warp][bar.place]]["issued"] += 1
    for wait in waits:
        found[of_warp[wait.warp][wait.place]][str(wait.why)] += wait.cycles
        # the waiting instruction pays for the cycles; the one that computes the result is only named
        if wait.why is Why.RESULT and isinstance(wait.cause, int):
            found[of_warp[wait.warp][wait.cause]]["awaited"] += wait.cycles
    return {each: Cost(**counts) for each, counts in found.items()}


_NUMBER = re.compile("[0-9]{1,9}")

SourceTexts = Mapping[str, Sequence[str]]
"""The lines of source files, by the names of the files."""


class TextLine(NamedTuple):
    """A line of a text: its place, such as `k.cu:7`, and its content; both are empty if they are not known."""

    place: str = ""
    text: str = ""


class InstructionCost(NamedTuple):
    """An instruction with its cost.

    Args:
        instruction: the instruction at its line of PTX, or at its address in machine code.
        control: its control bits; empty for PTX.
        ptx: the line of PTX from which machine code was assembled.
        source: the line of the source.
    """

    instruction: TextLine
    control: str
    ptx: TextLine
    source: TextLine
    cost: Cost


class SourceCost(NamedTuple):
    """A line of the source with its cost, and the rows of its instructions. `TextLine()` stands for no line."""

    source: TextLine
    cost: Cost
    instructions: tuple[int, ...]


class KernelCosts(NamedTuple):
    """The cost of every instruction that warps may execute, in the order of the text, and of every source line."""

    instructions: tuple[InstructionCost, ...]
    sources: tuple[SourceCost, ...]
    total: Cost


def kernel_costs(
    instance: Instance,
    bars: Iterable[Bar],
    waits: Iterable[Wait],
    kernel: "ptx.PtxKernel | sass.SassKernel | None" = None,
    texts: SourceTexts | None = None,
) -> KernelCosts | None:
    """Return the cost of every instruction beside its source. None means that no instruction has a line.

    Args:
        bars: the bars as in `cost_by_key`.
        waits: the waits as in `cost_by_key`.
        kernel: the kernel of the programs. Machine code has control bits and PTX lines.
        texts: the known lines of the source.
    """
    if not all(group.program.origins for group in instance.groups):
        return None
    known, beside = texts or {}, _machine_code_notes(kernel)
    by_origin = cost_by_key(instance, bars, waits, lambda origin: origin)
    origins = sorted({origin for group in instance.groups for origin in group.program.origins})
    rows = tuple(
        InstructionCost(
            TextLine(str(origin.line), origin.text),
            *beside.get(origin.line, ("", TextLine())),
            _source(origin, known),
            by_origin.get(origin, Cost()),
        )
        for origin in origins
    )
    return KernelCosts(rows, tuple(_by_source(rows)), _sum_costs(row.cost for row in rows))


def _by_source(rows: Sequence[InstructionCost]) -> list[SourceCost]:
    """Return the source lines, most cycles first; empty if no instruction has a line of the source."""
    of_source: defaultdict[TextLine, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        of_source[row.source].append(number)
    if of_source.keys() == {TextLine()}:  # no line at all
        return []
    found = (
        SourceCost(line, _sum_costs(rows[at].cost for at in those), tuple(those)) for line, those in of_source.items()
    )
    return sorted(found, key=lambda row: -row.cost.cycles)


def _machine_code_notes(kernel: "ptx.PtxKernel | sass.SassKernel | None") -> Mapping[int, tuple[str, TextLine]]:
    """Return the control bits and the PTX line of each instruction of machine code, by address."""
    from makespan.kernels import sass

    if not isinstance(kernel, sass.SassKernel):
        return {}
    lines = (kernel.ptx_text or "").split("\n")
    return {
        each.address: (
            str(each.control),
            TextLine() if each.ptx is None else TextLine(str(each.ptx.line), _text_at(lines, each.ptx.line)),
        )
        for each in kernel.code
    }


def _source(origin: InstructionOrigin, texts: SourceTexts) -> TextLine:
    file, _, line = origin.source.rpartition(":")
    return TextLine(origin.source, _text_at(texts.get(file, ()), int(line)) if _NUMBER.fullmatch(line) else "")


def _text_at(lines: Sequence[str], number: int) -> str:
    return " ".join(lines[number - 1].split()) if 0 < number <= len(lines) else ""


def _sum_costs(of: Iterable[Cost]) -> Cost:
    return Cost(*map(sum, zip(*of, strict=True)))
