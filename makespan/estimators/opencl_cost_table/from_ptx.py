"""PTX kernels by the rows of a cost table: what a thread executes, counted by its profile."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from makespan.estimators.opencl_cost_table.access import Access
from makespan.estimators.opencl_cost_table.counting import BASE, DIVISION_BY_LITERAL, ROWS, Counts
from makespan.estimators.opencl_cost_table.prediction import Work
from makespan.estimators.opencl_cost_table.ptx_access import read_classes
from makespan.estimators.profile import KernelProfile, profile
from makespan.estimators.profile.launched import Launched
from makespan.estimators.profile.opcodes import DEVICE, MemoryAccess, memory_access
from makespan.flow import GivenBound, Launch
from makespan.ptx import Instruction, Kernel

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
    kernel: Kernel,
    launch: Launch,
    *,
    interval_bytes: int,
    loop_bounds: Sequence[GivenBound] = (),
    bytes_in: int | None = None,
    bytes_out: int | None = None,
) -> Work:
    """The launch of a kernel in rows of the cost table; a block is a work-group, and a thread a work-item.

    Counts are means over the warps of the launch, rounded up. Source of the mapping: the rows of Pöppl 2014 have no
    multiply-add, so one is a product and a sum; a reciprocal is a division; a shift to the left is a product.

    Raises:
        InputError: no block or grid, a loop without bound, an opcode that no table knows.
    """
    found = profile(kernel, launch, loop_bounds=loop_bounds)
    launched = Launched.of(kernel, launch)
    items = launched.threads * launched.blocks
    counted = _Counting(launched.flow.code, found, read_classes(launched, interval_bytes))
    return Work(
        counted.counts(),
        items,
        group=launched.threads,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        notes=tuple(counted.notes(found.notes)),
    )


@dataclass(frozen=True, slots=True)
class _Counting:
    code: Sequence[Instruction]
    profile: KernelProfile
    classes: dict[int, Access]

    def counts(self) -> Counts:
        exact: Counter[str] = Counter()
        for row, executions in self._rows():
            exact[row] += executions  # type: ignore[assignment]
        rounded = {row: ceil(round(number, 9)) for row, number in exact.items()}
        rows = {row: rounded[row] for row in ROWS if rounded.get(row)}
        return Counts({BASE: 1, **rows}, min(rounded.get(DIVISION_BY_LITERAL, 0), rows.get("INT_DIV", 0)))

    def notes(self, assumed: Sequence[str]) -> Iterator[str]:
        yield from assumed
        free = {i.name for i, executions in self._executed() if not self._is_priced(i) and i.name not in _FREE}
        if free:
            yield f"these instructions have no row, and are taken as free: {', '.join(sorted(free))}"
        lines = [i.line for number, (i, _) in enumerate(self._all()) if self._is_unknown(number, i)]
        if lines:
            yield f"reads whose addresses are not known count as complex: lines {', '.join(map(str, lines))}"

    def _all(self) -> Iterator[tuple[Instruction, float]]:
        """Every instruction, with the executions of a warp."""
        yield from zip(self.code, (instruction.executions for instruction in self.profile.instructions), strict=True)

    def _executed(self) -> Iterator[tuple[Instruction, float]]:
        return ((instruction, often) for instruction, often in self._all() if often)

    def _rows(self) -> Iterator[tuple[str, float]]:
        """Rows of each instruction, with the executions. The first store that no loop repeats belongs to the base."""
        is_stored = False
        for number, (instruction, often) in enumerate(self._all()):
            access = memory_access(instruction)
            if access is None:
                for row in _arithmetic(instruction):
                    yield row, often
                continue
            kind = self._access(number, access)
            times = often * _elements(instruction)
            if kind == Access.WRITE and not is_stored and 0 < often <= 1:
                is_stored, times = True, times - often
            if kind is not None:
                yield kind, times

    def _access(self, number: int, access: MemoryAccess) -> str | None:
        if access.space == "shared":
            return Access.LOCAL
        if access.space == "const":
            return Access.CONSTANT
        if access.space == "local":
            return Access.CONTINUOUS
        if access.space not in DEVICE:
            return None
        return self.classes.get(number, Access.COMPLEX) if access.is_load else Access.WRITE

    def _is_priced(self, instruction: Instruction) -> bool:
        return memory_access(instruction) is not None or any(_arithmetic(instruction))

    def _is_unknown(self, number: int, instruction: Instruction) -> bool:
        access = memory_access(instruction)
        is_read = access is not None and access.is_load and access.space in ("global", "generic")
        return is_read and number not in self.classes and self.profile.instructions[number].executions > 0


def _arithmetic(instruction: Instruction) -> Iterator[str]:
    """The rows of an instruction that is no access; none for moves, comparisons, branches and conversions."""
    kind = _TYPES.get(instruction.opcode.rpartition(".")[2])
    if kind is None or instruction.name not in _PARTS:
        return
    for part in _PARTS[instruction.name]:
        yield f"{kind}_{part}"
    if kind == "INT" and instruction.name in ("div", "rem") and _is_number(instruction.operands[2]):
        yield DIVISION_BY_LITERAL


def _elements(instruction: Instruction) -> int:
    return next((_VECTOR[part] for part in instruction.opcode.split(".") if part in _VECTOR), 1)


def _is_number(operand: str) -> bool:
    return operand.lstrip("-")[:1].isdigit()
