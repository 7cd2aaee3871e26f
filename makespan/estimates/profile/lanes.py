"""The distances between the addresses of the lanes of a warp, where the launch does not tell the addresses themselves.

The kernel is computed for all threads of a block and, side by side, for several random values of everything that is
unknown but the same for all lanes of a warp: parameters, numbers of blocks, loop counters, data at one address. An
address whose distances between lanes are the same for all these values is U + offset, where the offset of every thread
is known, and U is a multiple of the power of two that divides all differences that were seen. So
`base + (blockIdx.x * blockDim.x + threadIdx.x) * 4` has the offsets 0, 4, 8, ... and, for 256 threads, a U that is a
multiple of 256. Where lanes meet that wrote a register on different ways, it is forgotten; so is what a loop wrote that
lanes leave in different iterations.

Source: S. Gulwani and G. C. Necula, Discovering Affine Equalities Using Random Interpretation, POPL 2003.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.profile.probes import Probed
from makespan.kernels.flow import (
    UNIFORM,
    WARP_LANES,
    Launch,
    Partings,
    Surroundings,
    influential_registers,
    live_registers,
    loop_nest,
    reverse_postorder,
    special_spreads,
)

ALL_ZERO = 64
_SAMPLES = 16  # so that by chance alone a U looks twice as aligned as it is once in 2^15
_LEAST_BITS, _MOST_BITS = 3, 20  # of unknown values: small ones show what compares with them, and none wraps around
_MAX_ROUNDS = 20  # of the fixed point, on average over the blocks; nothing is known beyond
_MAX_WORK = 1_000_000  # blocks and registers behind branches; beyond it, no distance is known

ThreadValues = NDArray[np.uint64]  # by sample and thread, in one row


@dataclass(frozen=True, slots=True)
class Spaced:
    """A value of all threads of a block: U + offset; `zeros` is 64 where U is 0."""

    offset: NDArray[np.int64]
    zeros: int = 0


def lane_offsets(found: Probed, launch: Launch, uniform: frozenset[int], warp_size: int) -> dict[int, Spaced]:
    """Return the addresses whose offsets between lanes are known, by number of the access without probes.

    Args:
        uniform: the blocks at whose end no lanes part.
    """
    return _SampledBlock(found, launch, uniform, warp_size).solve()


class _SampledBlock:
    """The fixed point of the values of the threads of a block over the blocks of the flow."""

    def __init__(self, found: Probed, launch: Launch, uniform: frozenset[int], warp_size: int) -> None:
        self.found, self.flow, self.launch, self.uniform = found, found.flow, launch, uniform
        self.threads = prod(launch.block or ())
        self.warp = np.arange(self.threads) // warp_size
        self.first = self.warp * warp_size
        semantics = self.flow.semantics
        self.matter = influential_registers(self.flow, besides=[probe.address for probe in found.probes.values()])
        self.live = live_registers(self.flow, self.matter)
        numbers = [n for n, effect in enumerate(self.flow.effects) if not self.matter.isdisjoint(effect.writes)]
        self.computations = {number: semantics.computation(number, found.parameters) for number in numbers}
        self.around = Surroundings(special_spreads(semantics.instruction_set.registers, launch), found.parameters)
        self.random = np.random.default_rng(0)
        self.drawn: dict[object, ThreadValues] = {}
        self.zeros: dict[tuple[int, str], int] = {}
        self.entering: dict[int, dict[str, Any]] = {0: self._specials()}

    def solve(self) -> dict[int, Spaced]:
        """Return the addresses whose distances between lanes are known."""
        partings = Partings.of(self.flow, loop_nest(self.flow), self.matter, _MAX_WORK)
        mixed: dict[int, set[str]] = {}
        for block in range(self.flow.exit):
            if self.flow.has_sides(block) and block not in self.uniform and partings.work_left >= 0:
                for join, names in partings.written(block).items():
                    mixed.setdefault(join, set()).update(names)
        if partings.work_left < 0:
            return {}
        rank = {block: at for at, block in enumerate(reverse_postorder(self.flow))}
        waiting, rounds = {0}, 0
        while waiting:  # registers are only forgotten, and their alignment only falls, so this ends
            block = min(waiting, key=rank.__getitem__)
            waiting.remove(block)
            values = self._after(block)
            for after in self.flow.blocks[block].successors:
                if after != self.flow.exit and self._enter(after, values, mixed.get(after, set())):
                    waiting.add(after)
            rounds += 1
            if rounds > _MAX_ROUNDS * len(rank):
                return {}  # no fixed point in time: no distance is known
        spaced: dict[int, Spaced] = {}
        for block in self.entering:
            values = self._after(block)
            found = ((n, self._spaced(values.get(probe.address))) for n, probe in self.found.by_block[block])
            spaced.update((number, one) for number, one in found if one is not None)
        return spaced

    def _specials(self) -> dict[str, Any]:
        registers, number = self.flow.semantics.instruction_set.registers, np.arange(self.threads, dtype=np.uint64)
        place: Any = registers.place  # of all threads at once
        own = {registers.lane: number % WARP_LANES, **place(number, self.launch.block)}
        axes = zip(registers.block, self.launch.grid or (), strict=False)
        alone = {name: 0 for name, size in axes if size == 1}
        return {name: np.tile(each, _SAMPLES) for name, each in own.items()} | registers.sizes(self.launch) | alone

    def _draw(self, key: object, zeros: int = 0) -> ThreadValues:
        """Return random multiples of 2^zeros, one for each sample and warp, and always the same for a key."""
        if key not in self.drawn:
            most = 1 << np.resize(np.arange(_LEAST_BITS, _MOST_BITS + 1), (_SAMPLES, 1))
            numbers = self.random.integers(1, most, (_SAMPLES, int(self.warp[-1]) + 1), dtype=np.uint64)
            numbers[0] = 1 << _MOST_BITS  # aligned to whatever matters, so that the first sample tells the offsets
            self.drawn[key] = numbers[:, self.warp].reshape(-1)
        return self.drawn[key] << np.uint64(zeros)

    def _after(self, block: int) -> dict[str, Any]:
        state = dict(self.entering[block])
        for number in self.flow.numbers(block):
            if number in self.computations:
                effect, computation = self.flow.effects[number], self.computations[number]
                results = dict(zip(computation.results, computation.apply(state), strict=False)) if computation else {}
                is_whole = effect.guard is None and not effect.is_partial
                drawn = is_whole and all(value is None for value in results.values()) and self._is_alike(number, state)
                for name in effect.writes:
                    value = results.get(name) if is_whole else None
                    state.pop(name, None)
                    if value is not None or drawn:
                        state[name] = self._draw((number, name)) if drawn else value
        return state

    def _is_alike(self, number: int, state: dict[str, Any]) -> bool:
        """Return whether an instruction that is not computed gives all lanes the same, such as a load of a pointer."""
        reads = self.flow.effects[number].reads
        spreads = {name: UNIFORM for name in reads if name in state and self._is_uniform(state[name])}
        found = self.flow.semantics.spread(number, spreads, self.around)
        return found is not None and not found.varying

    def _enter(self, block: int, state: dict[str, Any], mixed: set[str]) -> bool:
        """Bring values to a block, and return whether that changed what enters it."""
        old = self.entering.get(block)
        new = {}
        for name in self.live[block] & state.keys():
            value = state[name]
            before = value if old is None else old.get(name)
            if before is value and name in mixed and not self._is_known(value):
                continue  # lanes that meet here may have any of the values
            if before is None or before is value:
                new.update({} if before is None else {name: value})
                continue
            rest = np.asarray(value, np.uint64) - np.asarray(before, np.uint64)
            zeros = _zeros(rest)
            if zeros >= self.zeros.get((block, name), ALL_ZERO):
                new[name] = before
            elif name not in mixed and self._is_uniform(rest):  # either value, and all in between
                self.zeros[block, name] = zeros
                new[name] = before + self._draw((block, name), zeros)
        self.entering[block] = new
        return old is None or new.keys() != old.keys() or any(new[name] is not old[name] for name in new)

    def _rows(self, value: Any) -> NDArray[np.int64]:
        return (
            np.broadcast_to(np.asarray(value, np.uint64), _SAMPLES * self.threads).reshape(_SAMPLES, -1).view(np.int64)
        )

    def _is_uniform(self, value: Any) -> bool:
        rows = self._rows(value)
        return bool((rows == rows[:, self.first]).all())

    def _is_known(self, value: Any) -> bool:
        rows = self._rows(value)
        return bool((rows == rows[0]).all())

    def _spaced(self, value: Any) -> Spaced | None:
        if value is None:
            return None
        rows = self._rows(value)
        rest = rows - rows[0]
        return Spaced(rows[0], _zeros(rest)) if bool((rest == rest[:, self.first]).all()) else None


def _zeros(values: NDArray[Any]) -> int:
    """Return how many of the lowest bits are 0 in all values."""
    bits = int(np.bitwise_or.reduce(values.view(np.uint64), axis=None))
    return (bits & -bits).bit_length() - 1 if bits else ALL_ZERO
