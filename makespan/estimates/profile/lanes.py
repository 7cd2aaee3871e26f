"""What the lanes of a warp add to an address: base + a known offset of each lane + a multiple of a power of two.

A `Spaced` value is U + offset, where the offset of every thread of the block is known, and U is the same for all
lanes of a warp, may change from warp to warp and from iteration to iteration, and is a multiple of 2^zeros. So
`base + (blockIdx.x * blockDim.x + threadIdx.x) * 4` has the offsets 0, 4, 8, ... and, for 256 threads, a U that is a
multiple of 256. Where lanes meet that wrote a register on different ways, it is forgotten; so is what a loop wrote that
lanes leave in different iterations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.profile.probes import ALIGNMENT, Probed
from makespan.kernels.flow import Launch, closure, reconvergences, reverse_postorder
from makespan.kernels.ptx import PtxAccess, PtxInstruction, literal, names_in, register_accesses, width

ALL_ZERO = 64
_MOST = 2**48  # of an offset; beyond it, sums might wrap around
_MAX_ROUNDS = 200  # of the fixed point; nothing is known beyond
_POINTER_ZEROS = ALIGNMENT.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Spaced:
    """A value of all threads of a block; `zeros` is 64 where U is 0."""

    offset: NDArray[np.int64]
    zeros: int = 0

    @property
    def is_known(self) -> bool:
        """Return whether the value itself is known."""
        return self.zeros >= ALL_ZERO

    def equals(self, other: "Spaced") -> bool:
        """Return whether both values are the same."""
        return self.zeros == other.zeros and bool((self.offset == other.offset).all())


LaneState = dict[str, Spaced]


def lane_offsets(found: Probed, launch: Launch, uniform: frozenset[int], warp_size: int) -> dict[int, Spaced]:
    """Return the addresses whose offsets between lanes are known, by number of the access without probes."""
    return _Analysis(found, launch, uniform, warp_size).solve()


class _Analysis:
    """The fixed point over the blocks."""

    def __init__(self, found: Probed, launch: Launch, uniform: frozenset[int], warp_size: int) -> None:
        self.found, self.flow = found, found.flow
        self.accesses = register_accesses(found.flow.kernel)
        self.first = np.arange(prod(launch.block or ())) // warp_size * warp_size
        self.mixed = _mixed_registers(found, uniform, self.accesses)
        self.entering: dict[int, LaneState] = {0: {}}
        self.constant = np.zeros(prod(launch.block or ()), np.int64)
        self.specials = _specials(launch)

    def solve(self) -> dict[int, Spaced]:
        ranked = reverse_postorder(self.flow)
        for _ in range(_MAX_ROUNDS):
            changed = False
            for block in ranked:
                state = self._after(block)
                for after in self.flow.blocks[block].successors:
                    changed |= after != self.flow.exit and self._enter(after, state)
            if not changed:
                return self._addresses()
        return {}  # no fixed point in time: no offset is known

    def _addresses(self) -> dict[int, Spaced]:
        addresses: dict[int, Spaced] = {}
        names = {probe.address: number for number, probe in self.found.probes.items()}
        for block in self.entering:
            state = self._after(block)
            span = self.flow.blocks[block]
            written = {name for at in range(span.first, span.stop) for name in self.accesses[at].writes}
            addresses |= {number: state[name] for name, number in names.items() if name in written and name in state}
        return addresses

    def _enter(self, block: int, state: LaneState) -> bool:
        old = self.entering.get(block)
        if old is None:
            new = {name: v for name, v in state.items() if v.is_known or name not in self.mixed.get(block, ())}
            self.entering[block] = new
            return True
        new = {}
        for name in old.keys() & state.keys():
            joined = self._joined(old[name], state[name], is_mixed=name in self.mixed.get(block, ()))
            if joined is not None:
                new[name] = joined
        self.entering[block] = new
        return len(new) != len(old) or not all(new[name].equals(old[name]) for name in new)

    def _joined(self, one: Spaced, other: Spaced, *, is_mixed: bool) -> Spaced | None:
        """Return a value that covers both, if the lanes of a warp agree on which of the two they have."""
        if one is other or one.equals(other):
            return one if one.is_known or not is_mixed else None
        if is_mixed:
            return None
        difference = other.offset - one.offset
        if (difference != difference[self.first]).any():  # U must be the same for all lanes of a warp
            return None
        return Spaced(one.offset, min(one.zeros, other.zeros, _zeros(difference)))

    def _after(self, block: int) -> LaneState:
        state = dict(self.entering.get(block, {}))
        span = self.flow.blocks[block]
        for number in range(span.first, span.stop):
            access = self.accesses[number]
            if access.writes:
                result = self._result(self.flow.code[number], access, state)
                for name in access.writes:
                    state.pop(name, None)
                if result is not None and len(access.writes) == 1:
                    state[access.writes[0]] = result
        return state

    def _result(self, instruction: PtxInstruction, access: PtxAccess, state: LaneState) -> Spaced | None:
        if instruction.guard is not None or instruction.operands[0].startswith("{"):
            return None
        if instruction.name == "ld":
            return self._loaded(instruction, access, state)
        kind = instruction.opcode.rpartition(".")[2]
        third = _product_kind(kind) if ".wide." in instruction.opcode else kind
        sources = enumerate(instruction.operands[1:])
        values = [self._operand(text, third if at == 2 else kind, access, state) for at, text in sources]
        if any(value is None for value in values) or not values:
            return None
        known = [value for value in values if value is not None]
        rule = _RULES.get(instruction.name)
        found = None if rule is None else rule(self, instruction, known)
        if found is None and all(self._is_uniform(value) for value in known):
            found = Spaced(self.constant)
        return found if found is not None and bool((abs(found.offset) < _MOST).all()) else None

    def _loaded(self, instruction: PtxInstruction, access: PtxAccess, state: LaneState) -> Spaced | None:
        """Return a loaded value: a load from one address gives all lanes the same, and a pointer is aligned."""
        names = names_in("".join(instruction.operands[1:]))
        if instruction.opcode.startswith("ld.param") and self.flow.kernel.is_entry:
            name = next(iter(names), "")
            known = self.found.parameters.get(name)
            if name in self.found.pointers:
                return Spaced(self.constant, _POINTER_ZEROS)
            if known is None:
                return Spaced(self.constant)
            signed = known.value - (known.value >> (known.bits - 1) << known.bits)
            return Spaced(self.constant + signed, ALL_ZERO) if abs(signed) < _MOST else Spaced(self.constant)
        sources = [state.get(access.own(name)) for name in names]
        if instruction.opcode.startswith(("ld.global", "ld.const", "ld.shared")):
            return Spaced(self.constant) if all(s is not None and self._is_uniform(s) for s in sources) else None
        return None

    def _is_uniform(self, value: Spaced) -> bool:
        return not (value.offset != value.offset[self.first]).any()

    def _operand(self, text: str, kind: str, access: PtxAccess, state: LaneState) -> Spaced | None:
        if text in self.specials:
            return self.read(self.specials[text], kind)
        if text in _UNIFORM:
            return Spaced(self.constant)
        number = literal(text, kind) if _has_width(kind) else None
        if number is not None:
            w = width(kind)
            signed = number - (number >> (w - 1) << w) if w > 1 else number  # two's complement
            return Spaced(self.constant + signed, ALL_ZERO) if abs(signed) < _MOST else None
        value = state.get(access.own(text))
        return None if value is None else self.read(value, kind)

    def read(self, value: Spaced, kind: str) -> Spaced | None:
        """Return the value that an instruction on numbers of a kind sees, which may have wrapped around.

        A sum of the unknown U and a small offset is taken not to wrap around at 32 bits, as an index that does is
        an error; at fewer bits nothing is known of it.
        """
        bits = width(kind) if _has_width(kind) and kind[0] in "bus" else 64
        if bits == 64:
            return value
        if value.is_known:
            low = value.offset & (1 << bits) - 1
            return Spaced(low - (low >> bits - 1 << bits) if kind[0] == "s" else low, ALL_ZERO)
        is_small = bits == 32 and bool((abs(value.offset) < 1 << 31).all())
        return Spaced(value.offset, min(value.zeros, bits)) if is_small or self._is_uniform(value) else None

    def product(self, a: Spaced, b: Spaced) -> Spaced | None:
        """Return the product: of a known number, or of two values that are the same in a warp."""
        for one, other in ((a, b), (b, a)):
            if one.is_known and self._is_uniform(one) and bool((one.offset == one.offset[0]).all()):
                factor = int(one.offset[0])
                zeros = ALL_ZERO if other.is_known or not factor else other.zeros + _zeros(np.array([factor]))
                return Spaced(other.offset * factor, min(zeros, ALL_ZERO))
        if a.is_known and b.is_known:
            return Spaced(a.offset * b.offset, ALL_ZERO)
        if self._is_uniform(a) and self._is_uniform(b):
            zeros = min(a.zeros, _zeros(a.offset)) + min(b.zeros, _zeros(b.offset))
            return Spaced(self.constant, min(zeros, ALL_ZERO - 1))
        return None


def _mixed_registers(found: Probed, uniform: frozenset[int], access_of: tuple[PtxAccess, ...]) -> dict[int, set[str]]:
    """Return for each block the registers that lanes which meet there may have written differently.

    Lanes that leave a loop in different iterations part at its exit, one side of which leads through the loop again, so
    that both sides share what comes behind.
    """
    flow = found.flow
    parting = [b for b in range(flow.exit) if len(set(flow.blocks[b].successors)) > 1 and b not in uniform]
    points = reconvergences(flow)[0].points if parting else {}

    def written(blocks: frozenset[int]) -> set[str]:
        spans = (flow.blocks[block] for block in blocks)
        return {name for span in spans for at in range(span.first, span.stop) for name in access_of[at].writes}

    mixed: dict[int, set[str]] = {}
    for block in parting:
        point = points[block]
        sides = [closure(flow, [after], point) for after in flow.blocks[block].successors]
        region = frozenset[int]().union(*sides)
        for join in ((sides[0] & sides[-1]) | {point}) - {flow.exit}:
            mixed.setdefault(join, set()).update(written(region))
    return mixed


_UNIFORM = frozenset(f"%{name}.{axis}" for name in ("ctaid", "nctaid", "ntid") for axis in "xyz")


def _specials(launch: Launch) -> LaneState:
    x, y, z = launch.block or (1, 1, 1)
    number = np.arange(x * y * z)
    found = {"%tid.x": number % x, "%tid.y": number // x % y, "%tid.z": number // (x * y), "%laneid": number % 32}
    sizes = (("%ntid", launch.block), ("%nctaid", launch.grid))
    found |= {
        f"{name}.{axis}": np.full(len(number), size)
        for name, extent in sizes
        if extent
        for axis, size in zip("xyz", extent, strict=True)
    }
    state = {name: Spaced(values.astype(np.int64), ALL_ZERO) for name, values in found.items()}
    state |= {
        f"%ctaid.{axis}": Spaced(np.zeros(len(number), np.int64), ALL_ZERO)
        for axis, size in zip("xyz", launch.grid or (), strict=False)
        if size == 1
    }
    return state


def _zeros(values: NDArray[np.int64]) -> int:
    """Return how many of the lowest bits are 0 in all values."""
    bits = int(np.bitwise_or.reduce(np.abs(values)))
    return (bits & -bits).bit_length() - 1 if bits else ALL_ZERO


def _has_width(kind: str) -> bool:
    return kind[:1] in "busf" and kind[1:] in ("8", "16", "32", "64")


def _product_kind(kind: str) -> str:
    return f"{kind[0]}{2 * width(kind)}" if _has_width(kind) else kind


def _copy(analysis: _Analysis, instruction: PtxInstruction, values: list[Spaced]) -> Spaced | None:
    parts = instruction.opcode.split(".")
    if len(values) != 1 or "sat" in parts or parts[-1][:1] not in "bus" or parts[1][:1] not in "bus":
        return None
    return analysis.read(values[0], parts[-2]) if instruction.name == "cvt" else values[0]


def _sum(_: _Analysis, instruction: PtxInstruction, values: list[Spaced]) -> Spaced | None:
    if len(values) != 2 or not _is_integer(instruction):
        return None
    sign = -1 if instruction.name == "sub" else 1
    return Spaced(values[0].offset + sign * values[1].offset, min(values[0].zeros, values[1].zeros))


def _times(analysis: _Analysis, instruction: PtxInstruction, values: list[Spaced]) -> Spaced | None:
    is_sum = instruction.name.startswith("mad")
    if len(values) != 2 + is_sum or not _is_integer(instruction) or ".hi." in instruction.opcode:
        return None
    product = analysis.product(*values[:2])
    if product is None or not is_sum:
        return product
    return Spaced(product.offset + values[2].offset, min(product.zeros, values[2].zeros))


def _shift_left(analysis: _Analysis, _: PtxInstruction, values: list[Spaced]) -> Spaced | None:
    if len(values) != 2:
        return None
    by = values[1]
    if not by.is_known or bool(((by.offset < 0) | (by.offset > 31)).any()):
        return None
    return analysis.product(values[0], Spaced(1 << by.offset, ALL_ZERO))  # a shift is a product with a power of two


def _on_known_numbers(
    apply: Callable[[Any, Any], Any],
) -> Callable[[_Analysis, PtxInstruction, list[Spaced]], Spaced | None]:

    def rule(_: _Analysis, instruction: PtxInstruction, values: list[Spaced]) -> Spaced | None:
        if len(values) != 2 or not all(v.is_known and bool((v.offset >= 0).all()) for v in values):
            return None
        if instruction.name in ("div", "rem") and not values[1].offset.all():
            return None
        return Spaced(apply(values[0].offset, values[1].offset), ALL_ZERO)

    return rule


def _is_integer(instruction: PtxInstruction) -> bool:
    words = instruction.opcode.split(".")
    return words[-1][:1] in "us" and "cc" not in words and "sat" not in words


_RULES: Mapping[str, Callable[[_Analysis, PtxInstruction, list[Spaced]], Spaced | None]] = {
    "mov": _copy,
    "cvt": _copy,
    "add": _sum,
    "sub": _sum,
    "mul": _times,
    "mul24": _times,
    "mad": _times,
    "mad24": _times,
    "shl": _shift_left,
    "shr": _on_known_numbers(lambda a, b: a >> np.minimum(b, 63)),
    "and": _on_known_numbers(np.bitwise_and),
    "or": _on_known_numbers(np.bitwise_or),
    "xor": _on_known_numbers(np.bitwise_xor),
    "div": _on_known_numbers(lambda a, b: a // b),
    "rem": _on_known_numbers(lambda a, b: a % b),
    "min": _on_known_numbers(np.minimum),
    "max": _on_known_numbers(np.maximum),
}
