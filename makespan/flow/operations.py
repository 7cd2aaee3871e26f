"""How a machine serves the instructions of a kernel, whatever the language."""

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from makespan.errors import InputError, MissingInput
from makespan.flow.graph import Flow
from makespan.machine import GivenRange, Machine, Operation
from makespan.program import Timing
from makespan.wording import BY_OPERATION, GIVEN_LATENCY, UNVERIFIED_LATENCIES, cycles


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
        missing: the latencies that have to be given before there can be a program; where there are any, no timings are.
    """

    flow: Flow
    machine: Machine
    given: Mapping[str, GivenRange]
    units: tuple[str | None, ...]
    operations: tuple[str, ...] = ()
    table: Mapping[str, Operation] = field(default_factory=dict)
    timings: tuple[Timing, ...] = ()
    results: frozenset[int] = frozenset()
    missing: tuple[MissingInput, ...] = field(default=(), kw_only=True)

    def about_operations(self, used: Set[str], awaited: Set[str]) -> Iterator[str]:
        """The operations that a kernel uses, the latencies of those that are awaited, and which of them are given."""
        rows = [operation for name, operation in self.table.items() if name in used]
        shown = (f"{row.name} {row.unit}{f' {_cycles(row)}' * (row.name in awaited)}" for row in rows)
        yield f"{BY_OPERATION} of machine {self.machine.name!r}, with class and any of the cycles: {', '.join(shown)}"
        doubtful = [row for row in rows if row.name in awaited and row.name not in self.given and not row.is_verified]
        if doubtful:
            listed = ", ".join(f"{row.name} {_cycles(row)}" for row in doubtful)
            yield f"{UNVERIFIED_LATENCIES}{listed}; the file of the machine has a source or reason for each"
        own = {operation.name: operation for operation in self.machine.operations}
        for row in rows:
            if row.name in self.given and row.name in awaited:
                below = ", less than the machine says" if row.least < own[row.name].least else ""
                says = f"{self.given[row.name]}{below}; the machine says {_cycles(own[row.name])}"
                yield f"{GIVEN_LATENCY}{row.name} takes {says}"


def served(
    flow: Flow,
    machine: Machine,
    table: Mapping[str, Operation],
    needed: Sequence[str | None],
) -> tuple[Operation | None, ...]:
    """What serves each instruction of a kernel.

    Args:
        table: the operations of the machine by name, with the latencies that are given (`machine.timed`).
        needed: by instruction, its operation; None for one that needs no unit.

    Raises:
        InputError: operations that the machine lacks.
    """
    _refuse_untimed(flow, machine, table, needed)
    return tuple(None if name is None else table[name] for name in needed)


def missing_latencies(
    flow: Flow, machine: Machine, rows: Sequence[Operation | None], awaited: Container[int]
) -> tuple[MissingInput, ...]:
    """The latencies for which nobody knows an upper end, as inputs that are missing: no bound rests on one of them.

    Args:
        rows: what serves each instruction.
        awaited: the numbers of the instructions whose results somebody may wait for.
    """
    found: dict[str, MissingInput] = {}
    for number, row in enumerate(rows):
        if row is not None and row.most is None and number in awaited and row.name not in found:
            place = flow.effects[number].source or flow.at(flow.code[number].line)
            what = (
                f"the latency of operation {row.name}, first used at {place}, of which machine {machine.name!r} knows"
                f" only that it is {cycles(row.least)} or more"
            )
            found[row.name] = MissingInput("latencies", f"{row.name}=..N", what)
    return tuple(found.values())


def _cycles(operation: Operation) -> str:
    if operation.most is None:
        return f"{operation.least} or more"
    return str(operation.least) if operation.least == operation.most else f"{operation.least}..{operation.most}"


def _refuse_untimed(flow: Flow, machine: Machine, table: Mapping[str, Operation], needed: Sequence[str | None]) -> None:
    """Every operation that a kernel needs is timed; those that the machine lacks are asked for at once."""
    lacking = {name: at for at, name in reversed(list(enumerate(needed))) if name is not None and name not in table}
    if not lacking:
        return
    names = sorted(lacking, key=lambda name: lacking[name])
    at = lacking[names[0]]
    raise InputError(
        f"{flow.kernel.file}:{flow.code[at].line}: `{flow.code[at]}` is an operation {names[0]}, which machine"
        f" {machine.name!r} does not time; add {', '.join(f'[operations.{name}]' for name in names)} to its file"
    )
