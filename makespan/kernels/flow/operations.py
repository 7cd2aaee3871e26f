"""The service of instructions by a machine, in every language."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from makespan.host.errors import InputError, MissingInput
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import WARP_LANES
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.lapses import PlaceLapses
from makespan.model.machine import FETCHES, GivenRange, Machine, TimedOperation, timed_operations
from makespan.model.program import Access, InstructionTiming
from makespan.model.wording import cycle_words

SERVED_BY_DRAM = frozenset({"global", "local", "atomic", "texture"})
"""The operations that DRAM may have to serve: what they access is in the memory that all SMs share."""

SECTOR = 32
"""Bytes of a sector, the unit in which L2 asks DRAM; an aligned access of a lane lies in one.

Source: NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory": 32-byte transactions.
"""


def dram_access(operation: str, per_lane: int | None, *, is_awaited: bool, words: int = 1) -> Access | None:
    """Return what an instruction asks of DRAM; None for an operation that DRAM never serves.

    Args:
        per_lane: bytes that DRAM moves at most for one lane in one place; None where it is not known.
        words: in how many places the data of one lane can lie. Local memory is interleaved by words of 32 bits, so an
            access to it, or to a generic address, touches a sector for each word.

    Source: NVIDIA, CUDA C++ Programming Guide, "Device Memory Accesses", Local Memory: consecutive 32-bit words are
    accessed by consecutive thread IDs.

    >>> dram_access("global", 32, is_awaited=True), dram_access("local", 32, is_awaited=True, words=4).moved
    (Access(operation='global', moved=1024, is_awaited=True), 4096)
    """
    if operation not in SERVED_BY_DRAM:
        return None
    return Access(operation, None if per_lane is None else per_lane * words * WARP_LANES, is_awaited)


@dataclass(frozen=True)
class TimedCode:
    """The instructions of a kernel on a machine.

    Args:
        units: by instruction, the letter of the unit class that serves it; None if it needs none. Of a barrier of
            warps that run ahead, the letter and `BARRIER` if it is served before its warp has come to it.
        given: latencies of operations, instead of those of the machine.
        operations: by instruction; empty where the machine times none.
        table: the operations of the machine by name, with the latencies that are given.
        timings: by instruction, of warps that run ahead; none for warps that block. Tokens are any numbers from 0.
        results: the tokens that a warp waits for at its end.
        accesses: by instruction, what it asks of DRAM; empty where the machine times no operations.
        lapses: by instruction; empty where nothing is known of them.
        missing: the latencies that have to be given before there can be a program; where there are any, no timings are.
        warm: whether code and constants are in their caches from a launch before, so that no line comes for the first
            time.
    """

    flow: Flow
    machine: Machine
    given: Mapping[str, GivenRange]
    units: tuple[str | None, ...]
    operations: tuple[str, ...] = ()
    table: Mapping[str, TimedOperation] = field(default_factory=dict)
    timings: tuple[InstructionTiming, ...] = ()
    results: frozenset[int] = frozenset()
    accesses: tuple[Access | None, ...] = ()
    lapses: tuple[PlaceLapses, ...] = ()
    missing: tuple[MissingInput, ...] = field(default=(), kw_only=True)
    warm: bool = field(default=False, kw_only=True)

    def remarks(self, numbers: Sequence[int], branches: bool) -> Iterator[Assumption]:  # noqa: ARG002
        """Yield what a program supposes, whatever its paths.

        Args:
            numbers: the instructions that may be executed.
            branches: whether there are branches among them.
        """
        yield from ()

    def about_operations(self, used: Set[str], awaited: Set[str]) -> Iterator[Assumption]:
        """Yield the operations of a kernel, with the latencies that are awaited, and which of these are given."""
        rows = [operation for name, operation in self.table.items() if name in used]
        shown = (f"{row.name} {row.unit}{f' {_cycles(row)}' * (row.name in awaited)}" for row in rows)
        yield assumptions.operations(self.machine.name, ", ".join(shown))
        doubtful = [row for row in rows if row.name in awaited and row.name not in self.given and not row.is_verified]
        if doubtful:
            yield assumptions.unverified_latencies({row.name: _cycles(row) for row in doubtful})
        own = timed_operations(self.machine, {})
        for row in rows:
            if row.name in self.given and row.name in awaited:
                is_below, says = row.least < own[row.name].least, _cycles(own[row.name])
                yield assumptions.latency(row.name, str(self.given[row.name]), says, is_below=is_below)


def serving_operations(
    flow: Flow,
    machine: Machine,
    table: Mapping[str, TimedOperation],
    needed: Sequence[str | None],
) -> tuple[TimedOperation | None, ...]:
    """Return the operation of the machine that serves each instruction of a kernel.

    Args:
        table: the operations of the machine by name, with the latencies that are given (`machine.timed_operations`).
        needed: by instruction, its operation; None for one that needs no unit.

    Raises:
        InputError: operations that the machine lacks.
    """
    lacking = {name: at for at, name in reversed(list(enumerate(needed))) if name is not None and name not in table}
    if lacking:
        names = sorted(lacking, key=lambda name: lacking[name])  # in the order of the text
        at = lacking[names[0]]
        raise InputError(
            f"{flow.kernel.file}:{flow.code[at].line}: `{flow.code[at]}` is an operation {names[0]}, which machine"
            f" {machine.name!r} does not time; add {', '.join(f'[operations.{name}]' for name in names)} to its file"
        )
    return tuple(None if name is None else table[name] for name in needed)


def missing_latencies(
    flow: Flow, machine: Machine, rows: Sequence[TimedOperation | None], awaited: Container[int]
) -> tuple[MissingInput, ...]:
    """Return the latencies without a known upper end as inputs that are missing: no bound can rest on them.

    Args:
        rows: what serves each instruction.
        awaited: the numbers of the instructions whose results may be awaited.
    """
    found: dict[str, MissingInput] = {}
    for number, row in enumerate(rows):
        if row is not None and row.most is None and number in awaited and row.name not in found:
            place = flow.effects[number].source or flow.at(flow.code[number].line)
            what = (
                f"the latency of operation {row.name}, first used at {place}, of which machine {machine.name!r} knows"
                f" only that it is {cycle_words(row.least)} or more"
            )
            found[row.name] = MissingInput("latencies", f"{row.name}=..N", what)
    return tuple(found.values())


def missing_fetches(
    machine: Machine,
    given: Mapping[str, GivenRange],
    used: Collection[str],
    leaving: Collection[str] = (),
    *,
    warm: bool = False,
) -> tuple[MissingInput, ...]:
    """Return the first fetches of lines whose upper ends are not given as inputs that are missing.

    Args:
        used: those of `FETCHES` of whose lines the kernel needs any.
        leaving: those of `FETCHES` of whose lines some stay in no cache of the SM, so that they may come from far away
            at each use, in warm caches, too.
        warm: whether what stays is there from a launch before.
    """
    found = []
    for name in machine.fetches:
        if name in given or name not in used or (warm and name not in leaving):
            continue
        what = f"{FETCHES[name]}, of which machine {machine.name!r} knows no upper end"
        instead = () if name in leaving else (("warm", ""),)
        found.append(MissingInput("latencies", f"{name}=..N", what, instead))
    return tuple(found)


def _cycles(operation: TimedOperation) -> str:
    if operation.most is None:
        return f"{operation.least} or more"
    return str(operation.least) if operation.least == operation.most else f"{operation.least}..{operation.most}"
