"""PTX kernels by the rows of a cost table: what a thread executes, and the class of each read by its addresses."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.opencl_cost_table.access import AccessKind
from makespan.estimates.opencl_cost_table.counting import BASE, DIVISION_BY_LITERAL, ROWS, RowCounts
from makespan.estimates.opencl_cost_table.prediction import LaunchWork
from makespan.estimates.profile import KernelProfile, profile
from makespan.estimates.profile.exact import GroupExecution, follow
from makespan.estimates.profile.launched import Launched
from makespan.estimates.profile.opcodes import DEVICE, MemoryAccess, memory_access
from makespan.estimates.profile.probes import AddressProbe, insert_probes
from makespan.kernels.flow import AbstractState, GivenBound, Launch, PreparedCode, ThreadGroup, TooLongError
from makespan.kernels.ptx import PtxInstruction, PtxKernel

MAX_STEPS = 4_000_000
_AXES = "xyz"


@dataclass(frozen=True, slots=True)
class Visit:
    """An execution of a read by many threads, with its addresses in bytes.

    Args:
        distance: of the address from that of an array that is read in the order of the threads; None if it varies.
    """

    least: int
    most: int
    distance: int | None

    def __or__(self, other: "Visit") -> "Visit":
        """Return both as one execution of the same step by different threads."""
        distance = self.distance if self.distance == other.distance else None
        return Visit(min(self.least, other.least), max(self.most, other.most), distance)


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
    seen: dict[int, dict[int, Visit]] = {}
    unknown: set[int] = set()

    def following(code: PreparedCode, group: ThreadGroup, steps: int) -> _AddressExecution:
        order = _order(group, launched.launch)
        by_block = {
            block: [(n, probe) for n, probe in probes if n in reads] for block, probes in found.by_block.items()
        }
        return _AddressExecution(code, group, steps, order, by_block, seen, unknown)

    try:
        for _ in follow(found, launched.launch, registers, MAX_STEPS, following):
            pass
    except TooLongError:
        return {}
    return {
        number: _class(list(visits.values()), reads[number].access.lane_bytes, interval_bytes)
        for number, visits in seen.items()
        if number not in unknown
    }


def _class(visits: list[Visit], lane_bytes: int, interval_bytes: int) -> AccessKind:
    if all(visit.least == visit.most for visit in visits):
        return AccessKind.CONSTANT
    span = max(visit.most for visit in visits) - min(visit.least for visit in visits) + lane_bytes
    if span <= interval_bytes:
        return AccessKind.INTERVAL
    return AccessKind.CONTINUOUS if all(visit.distance is not None for visit in visits) else AccessKind.COMPLEX


class _AddressExecution(GroupExecution):
    """An execution that notes the addresses of reads."""

    def __init__(
        self,
        code: PreparedCode,
        group: ThreadGroup,
        steps: int,
        order: NDArray[np.int64],
        reads: Mapping[int, list[tuple[int, AddressProbe]]],
        seen: dict[int, dict[int, Visit]],
        unknown: set[int],
    ) -> None:
        super().__init__(code, group, steps)
        self.order, self.reads, self.seen, self.unknown = order, reads, seen, unknown
        self.visits: dict[int, int] = {}

    def _block(self, block: int, front: AbstractState) -> Iterator[tuple[int, AbstractState]]:
        fronts = list(super()._block(block, front))
        for number, probe in self.reads.get(block, ()):
            self._spend(4)  # looking at an access costs steps, too
            self._note(number, probe, front.mask, fronts[0][1].state)
        return iter(fronts)

    def _note(self, number: int, probe: AddressProbe, mask: Any, state: Mapping[str, Any]) -> None:
        at = self.visits[number] = self.visits.get(number, -1) + 1
        value, guard = state.get(probe.address), state.get(probe.guard or "")
        if value is None:
            self.unknown.add(number)
            return
        active = np.broadcast_to(mask, self.order.shape)
        if guard is not None:
            active = active & (np.asarray(guard) & 1 == (0 if probe.is_negated else 1))
        if not active.any():
            return
        addresses = np.broadcast_to(np.asarray(value, np.uint64).astype(np.int64), self.order.shape)[active]
        distances = addresses - probe.access.lane_bytes * self.order[active]  # all equal: in the order of the threads
        same = bool((distances == distances[0]).all())
        visit = Visit(int(addresses.min()), int(addresses.max()), int(distances[0]) if same else None)
        visits = self.seen.setdefault(number, {})
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


_PARTS = {
    "add": ("ADD",),
    "addc": ("ADD",),
    "sub": ("SUB",),
    "subc": ("SUB",),
    "mul": ("MUL",),
    "mul24": ("MUL",),
    "mad": ("MUL", "ADD"),
    "mad24": ("MUL", "ADD"),
    "madc": ("MUL", "ADD"),
    "fma": ("MUL", "ADD"),
    "div": ("DIV",),
    "rem": ("DIV",),
    "rcp": ("DIV",),
    "shl": ("MUL",),
}
_TYPES = {"f32": "FLOAT", "f64": "DOUBLE", **{f"{sign}{bits}": "INT" for sign in "sub" for bits in (16, 32, 64)}}
_FREE = frozenset({"mov", "cvta", "cvt", "setp", "selp", "bra", "ret", "exit", "call", "brx"})
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}


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
    items = launched.threads * launched.blocks
    counted = _RowCounting(launched.flow.code, found, read_classes(launched, interval_bytes))
    return LaunchWork(
        counted.counts(),
        items,
        group=launched.threads,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        notes=tuple(counted.notes(found.notes)),
    )


@dataclass(frozen=True, slots=True)
class _RowCounting:
    code: Sequence[PtxInstruction]
    profile: KernelProfile
    classes: dict[int, AccessKind]

    def counts(self) -> RowCounts:
        exact: Counter[str] = Counter()
        for row, executions in self._rows():
            exact[row] += executions  # type: ignore[assignment]
        # means are floats: 3.0000000001 must not become 4
        rounded = {row: ceil(round(number, 9)) for row, number in exact.items()}
        rows = {row: rounded[row] for row in ROWS if rounded.get(row)}
        return RowCounts({BASE: 1, **rows}, min(rounded.get(DIVISION_BY_LITERAL, 0), rows.get("INT_DIV", 0)))

    def notes(self, assumed: Sequence[str]) -> Iterator[str]:
        yield from assumed
        free = {i.name for i, executions in self._executed() if not self._is_priced(i) and i.name not in _FREE}
        if free:
            yield f"these instructions have no row, and are taken as free: {', '.join(sorted(free))}"
        lines = [i.line for number, (i, _) in enumerate(self._all()) if self._is_unknown(number, i)]
        if lines:
            yield f"reads whose addresses are not known count as complex: lines {', '.join(map(str, lines))}"

    def _all(self) -> Iterator[tuple[PtxInstruction, float]]:
        yield from zip(self.code, (instruction.executions for instruction in self.profile.instructions), strict=True)

    def _executed(self) -> Iterator[tuple[PtxInstruction, float]]:
        return ((instruction, often) for instruction, often in self._all() if often)

    def _rows(self) -> Iterator[tuple[str, float]]:
        """Yield the rows of each instruction with the executions; the base pays for the first store outside loops."""
        is_stored = False
        for number, (instruction, often) in enumerate(self._all()):
            access = memory_access(instruction)
            if access is None:
                for row in _arithmetic(instruction):
                    yield row, often
                continue
            kind = self._access(number, access)
            times = often * _elements(instruction)
            if kind == AccessKind.WRITE and not is_stored and 0 < often <= 1:
                is_stored, times = True, times - often
            if kind is not None:
                yield kind, times

    def _access(self, number: int, access: MemoryAccess) -> str | None:
        if access.space == "shared":
            return AccessKind.LOCAL
        if access.space == "const":
            return AccessKind.CONSTANT
        if access.space == "local":
            return AccessKind.CONTINUOUS
        if access.space not in DEVICE:
            return None
        return self.classes.get(number, AccessKind.COMPLEX) if access.is_load else AccessKind.WRITE

    def _is_priced(self, instruction: PtxInstruction) -> bool:
        return memory_access(instruction) is not None or any(_arithmetic(instruction))

    def _is_unknown(self, number: int, instruction: PtxInstruction) -> bool:
        access = memory_access(instruction)
        is_read = access is not None and access.is_load and access.space in ("global", "generic")
        return is_read and number not in self.classes and self.profile.instructions[number].executions > 0


def _arithmetic(instruction: PtxInstruction) -> Iterator[str]:
    """Yield the rows of an instruction that is no access; none for moves, comparisons, branches and conversions."""
    kind = _TYPES.get(instruction.opcode.rpartition(".")[2])
    if kind is None or instruction.name not in _PARTS:
        return
    for part in _PARTS[instruction.name]:
        yield f"{kind}_{part}"
    if kind == "INT" and instruction.name in ("div", "rem") and _is_number(instruction.operands[2]):
        yield DIVISION_BY_LITERAL


def _elements(instruction: PtxInstruction) -> int:
    return next((_VECTOR[part] for part in instruction.opcode.split(".") if part in _VECTOR), 1)


def _is_number(operand: str) -> bool:
    return operand.lstrip("-")[:1].isdigit()
