"""PTX kernels by the rows of a cost table: what a thread executes, and the class of each read by its addresses."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.opencl_cost_table.prediction import LaunchWork
from makespan.estimates.opencl_cost_table.table import BASE, DIVISION_BY_LITERAL, ROWS, AccessKind, RowCounts
from makespan.estimates.profile import profile
from makespan.estimates.profile.exact import GroupExecution, follow
from makespan.estimates.profile.launched import Launched
from makespan.estimates.profile.opcodes import DEVICE, MemoryAccess, memory_access
from makespan.estimates.profile.probes import AddressProbe, Probed, insert_probes
from makespan.kernels.flow import AbstractState, GivenBound, Launch, PreparedCode, ThreadGroup, TooLongError
from makespan.kernels.ptx import PtxInstruction, PtxKernel

MAX_STEPS = 4_000_000
_AXES = "xyz"


class ReadVisit(NamedTuple):
    """One execution of a read by many threads, by its addresses in bytes.

    Args:
        distance: of the address from that of an array that is read in the order of the threads; None if it varies.
    """

    least: int
    most: int
    distance: int | None

    def __or__(self, other: "ReadVisit") -> "ReadVisit":
        """Return both as one execution of the same step by different threads."""
        distance = self.distance if self.distance == other.distance else None
        return ReadVisit(min(self.least, other.least), max(self.most, other.most), distance)


@dataclass(frozen=True, slots=True)
class _SeenReads:
    """The reads of a launch: by number of a read and of its execution what was seen, and those of unknown address."""

    launch: Launch
    probes: Mapping[int, AddressProbe]
    visits: dict[int, dict[int, ReadVisit]] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)


def read_classes(launched: Launched, interval_bytes: int) -> dict[int, AccessKind]:
    """Return the class of each global read, by its number in the kernel; one that is not there has no known addresses.

    A loop runs within a thread, so an address that changes from iteration to iteration and is the same for all threads
    is constant, and one that follows the number of the thread in each iteration is continuous.
    """
    if not launched.flow.is_plain:
        return {}
    found = insert_probes(launched.flow, launched.launch)
    reads = {n: p for n, p in found.probes.items() if p.access.is_load and p.access.space in ("global", "generic")}
    registers = [name for probe in reads.values() for name in (probe.address, probe.guard) if name]
    seen = _SeenReads(launched.launch, reads)

    def following(code: PreparedCode, group: ThreadGroup, steps: int) -> _ReadingExecution:
        return _ReadingExecution(code, group, steps, found, seen)

    try:
        for _ in follow(found, launched.launch, registers, MAX_STEPS, following):
            pass
    except TooLongError:
        return {}
    known = ((number, list(visits.values())) for number, visits in seen.visits.items() if number not in seen.unknown)
    return {number: _class(visits, reads[number].access.lane_bytes, interval_bytes) for number, visits in known}


def _class(visits: list[ReadVisit], lane_bytes: int, interval_bytes: int) -> AccessKind:
    if all(visit.least == visit.most for visit in visits):
        return AccessKind.CONSTANT
    span = max(visit.most for visit in visits) - min(visit.least for visit in visits) + lane_bytes
    if span <= interval_bytes:
        return AccessKind.INTERVAL
    return AccessKind.CONTINUOUS if all(visit.distance is not None for visit in visits) else AccessKind.COMPLEX


class _ReadingExecution(GroupExecution):
    """An execution that notes the addresses of reads."""

    def __init__(self, code: PreparedCode, group: ThreadGroup, steps: int, found: Probed, seen: _SeenReads) -> None:
        super().__init__(code, group, steps)
        self.found, self.seen, self.visits = found, seen, Counter[int]()
        self.order = _order(group, seen.launch)

    def look(self, block: int, mask: Any, onward: Sequence[AbstractState]) -> None:
        for number, probe in self.found.by_block[block]:
            if number in self.seen.probes:
                self._spend(4)  # looking at an access costs steps, too
                self._note(number, probe, np.broadcast_to(mask, self.order.shape), onward[0].state)

    def _note(self, number: int, probe: AddressProbe, active: NDArray[np.bool_], state: Mapping[str, Any]) -> None:
        self.visits[number] += 1
        value, guard = state.get(probe.address), state.get(probe.guard or "")
        if value is None:
            self.seen.unknown.add(number)
            return
        if guard is not None:
            active = active & (np.asarray(guard) & 1 == (0 if probe.is_negated else 1))
        if not active.any():
            return
        addresses = np.broadcast_to(np.asarray(value, np.uint64).astype(np.int64), self.order.shape)[active]
        distances = addresses - probe.access.lane_bytes * self.order[active]  # all equal: in the order of the threads
        same = bool((distances == distances[0]).all())
        visit = ReadVisit(int(addresses.min()), int(addresses.max()), int(distances[0]) if same else None)
        visits, at = self.seen.visits.setdefault(number, {}), self.visits[number]
        visits[at] = visits[at] | visit if at in visits else visit


def _order(group: ThreadGroup, launch: Launch) -> NDArray[np.int64]:
    """Return the number of every thread in its grid, x fastest; a block whose number does not matter counts as 0."""
    order, step = np.zeros(group.size, np.int64), 1
    for axis, block, grid in zip(_AXES, launch.block or (), launch.grid or (), strict=True):
        within, before = (
            np.asarray(group.state.get(f"{name}.{axis}", 0)).astype(np.int64) for name in ("%tid", "%ctaid")
        )
        order = order + step * (before * block + within)
        step *= block * grid
    return order


# The rows of an instruction that is no access, without the type.
_PARTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "addc"), ("ADD",)),
    **dict.fromkeys(("sub", "subc"), ("SUB",)),
    **dict.fromkeys(("mul", "mul24", "shl"), ("MUL",)),
    **dict.fromkeys(("mad", "mad24", "madc", "fma"), ("MUL", "ADD")),
    **dict.fromkeys(("div", "rem", "rcp"), ("DIV",)),
}
_TYPES = {"f32": "FLOAT", "f64": "DOUBLE", **{f"{sign}{bits}": "INT" for sign in "sub" for bits in (16, 32, 64)}}
_FREE = frozenset({"mov", "cvta", "cvt", "setp", "selp", "bra", "ret", "exit", "call", "brx"})


def work(
    kernel: PtxKernel,
    launch: Launch,
    *,
    interval_bytes: int,
    loop_bounds: Sequence[GivenBound] = (),
    bytes_in: int | None = None,
    bytes_out: int | None = None,
) -> LaunchWork:
    """Return the launch of a kernel in rows of the cost table; a block is a work-group, and a thread a work-item.

    Counts are means over the warps of the launch, rounded up. Source of the mapping: the rows of Pöppl 2014 have no
    multiply-add, so one is a product and a sum; a reciprocal is a division; a shift to the left is a product.

    Raises:
        InputError: no block or grid, a loop without bound, an opcode that no table knows.
    """
    found = profile(kernel, launch, loop_bounds=loop_bounds)
    launched = Launched.of(kernel, launch)
    classes = read_classes(launched, interval_bytes)
    often = [instruction.executions for instruction in found.instructions]
    executed = [(n, i, often[n]) for n, i in enumerate(launched.flow.code) if often[n]]
    rows = Counter[str]()
    for row, times in _rows(executed, classes):
        rows[row] += times  # type: ignore[assignment]
    # means are floats: 3.0000000001 must not become 4
    rounded = {row: ceil(round(number, 9)) for row, number in rows.items()}
    known = {row: rounded[row] for row in ROWS if rounded.get(row)}
    return LaunchWork(
        RowCounts({BASE: 1, **known}, min(rounded.get(DIVISION_BY_LITERAL, 0), known.get("INT_DIV", 0))),
        launched.threads * launched.blocks,
        group=launched.threads,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        notes=(*found.notes, *_doubts(executed, classes)),
    )


_Executed = Sequence[tuple[int, PtxInstruction, float]]  # the number of an instruction, and its executions by a warp


def _rows(executed: _Executed, classes: Mapping[int, AccessKind]) -> Iterator[tuple[str, float]]:
    """Yield the rows of each instruction with the executions; the base pays for the first store outside loops."""
    is_stored = False
    for number, instruction, often in executed:
        access = memory_access(instruction)
        if access is None:
            yield from ((row, often) for row in _arithmetic(instruction))
        elif kind := _access_kind(access, classes.get(number, AccessKind.COMPLEX)):
            times = often * access.elements
            if kind == AccessKind.WRITE and not is_stored and often <= 1:
                is_stored, times = True, times - often
            yield kind, times


def _doubts(executed: _Executed, classes: Mapping[int, AccessKind]) -> Iterator[str]:
    accesses = {number: memory_access(instruction) for number, instruction, _ in executed}
    free = {i.name for n, i, _ in executed if accesses[n] is None and not any(_arithmetic(i))} - _FREE
    if free:
        yield f"these instructions have no row, and are taken as free: {', '.join(sorted(free))}"
    reads = {n for n, each in accesses.items() if each and each.is_load and each.space in ("global", "generic")}
    if lines := [str(i.line) for n, i, _ in executed if n in reads and n not in classes]:
        yield f"reads whose addresses are not known count as complex: lines {', '.join(lines)}"


def _access_kind(access: MemoryAccess, of_read: AccessKind) -> AccessKind | None:
    kinds = {"shared": AccessKind.LOCAL, "const": AccessKind.CONSTANT, "local": AccessKind.CONTINUOUS}
    if access.space in kinds:
        return kinds[access.space]
    if access.space not in DEVICE:
        return None
    return of_read if access.is_load else AccessKind.WRITE


def _arithmetic(instruction: PtxInstruction) -> Iterator[str]:
    """Yield the rows of an instruction that is no access; none for moves, comparisons, branches and conversions."""
    kind = _TYPES.get(instruction.opcode.rpartition(".")[2])
    if kind is None or instruction.name not in _PARTS:
        return
    yield from (f"{kind}_{part}" for part in _PARTS[instruction.name])
    if kind == "INT" and instruction.name in ("div", "rem") and instruction.operands[2].lstrip("-")[:1].isdigit():
        yield DIVISION_BY_LITERAL
