"""Truth with lapses, slowly: all schedules of a tiny GPU of one grid, from the rules of docs/model.md and nothing else.

Warps block, their programs are strings, and warp w of an SM belongs to partition w mod K. In every cycle the adversary
may withhold warps, let partitions or the whole SM lapse, and else choose any maximal set of warps that issue.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

from makespan.model.gpu import GpuInstance
from makespan.model.lapses import PlaceLapses
from makespan.model.program import BARRIER, Program

WHOLE_SM = -1  # in the place of a partition: the whole SM


class OracleWarp(NamedTuple):
    """A warp; once it has finished, its place is the end and it waits no more."""

    place: int
    wait: int = 0
    miss: int = 0
    arrived: bool = False
    credit: int = 0
    fence: int = 0
    withheld: bool = False  # in this cycle


class OracleSm(NamedTuple):
    """An SM: the warps of each slot, ports that are held, credit of finished warps, and windows that have begun."""

    slots: tuple[tuple[OracleWarp, ...], ...]  # () for an empty slot
    held: tuple[tuple[str, int, int], ...] = ()  # class, partition, cycles that are left
    late: tuple[tuple[int, int], ...] = ()  # partition of a lapse, cycles that are left
    windows: tuple[tuple[int, str, int], ...] = ()  # partition, line, cycles that are left


@dataclass(frozen=True)
class LapsingGpu:
    """The GPU and the numbers that its rules need."""

    gpu: GpuInstance

    @property
    def programs(self) -> list[Program]:
        return [program for program, warps in self.gpu.grid.block for _ in range(warps)]

    @property
    def expiry(self) -> int:
        known = self.gpu.machine.lapses
        return 0 if known is None else known.expiry

    def longest(self) -> int:
        """Return the cycles of the longest schedule."""
        gpu, cycles = self.gpu, 0
        spreads = product(range(gpu.resident + 1), repeat=gpu.sms)
        placed = min(gpu.blocks, gpu.slots)
        states = {
            state
            for spread in spreads
            if sum(spread) == placed
            for state in self._dispatch([OracleSm(((),) * count) for count in spread], gpu.blocks)
        }
        while states:
            cycles += 1
            after: set[tuple[tuple[OracleSm, ...], int]] = set()
            for sms, left in states:
                for chosen in product(*(set(self._cycle(sm)) for sm in sms)):
                    after |= set(self._dispatch(list(chosen), left))
            states = {state for state in after if any(any(sm.slots) for sm in state[0])}
        return cycles

    def _dispatch(self, sms: list[OracleSm], left: int) -> Iterator[tuple[tuple[OracleSm, ...], int]]:
        empty = [(number, slot) for number, sm in enumerate(sms) for slot, warps in enumerate(sm.slots) if not warps]
        coming = min(left, len(empty))
        for chosen in combinations(empty, coming):
            for delays in product(range(self.gpu.dispatch + 1), repeat=coming):
                begun = [list(sm.slots) for sm in sms]
                for (number, slot), delay in zip(chosen, delays, strict=True):
                    warps = enumerate(self.programs)
                    begun[number][slot] = tuple(self._at(number, OracleWarp(0, delay)) for number, _ in warps)
                filled = (sm._replace(slots=tuple(slots)) for sm, slots in zip(sms, begun, strict=True))
                yield tuple(sorted(filled)), left - coming

    def _at(self, warp: int, state: OracleWarp) -> OracleWarp:
        """Return the warp with what the place to which it has come gives."""
        program = self.programs[warp]
        if state.place == program.end:
            return state._replace(miss=0)
        lapses = self._lapses(program, state.place)
        credit, fence = state.credit + lapses.credit, state.fence + lapses.fence
        return state._replace(miss=lapses.misses, credit=credit, fence=fence)

    def _lapses(self, program: Program, place: int) -> PlaceLapses:
        return program.lapses[place] if program.lapses else PlaceLapses()

    def _partition(self, slot: int, warp: int) -> int:
        return (slot * len(self.programs) + warp) % self.gpu.machine.partitions

    def _warps(self, sm: OracleSm) -> Iterator[tuple[int, int, OracleWarp, str]]:
        """Yield slot, number, warp and the class of its next instruction of each warp that stands before one."""
        for slot, warps in enumerate(sm.slots):
            for number, warp in enumerate(warps):
                program = self.programs[number]
                if warp.place < program.end and not warp.wait:
                    yield slot, number, warp, program.places[warp.place].unit

    def _set(self, sm: OracleSm, slot: int, number: int, warp: OracleWarp) -> OracleSm:
        warps = list(sm.slots[slot])
        warps[number] = warp
        return sm._replace(slots=(*sm.slots[:slot], tuple(warps), *sm.slots[slot + 1 :]))

    def _cycle(self, sm: OracleSm) -> Iterator[OracleSm]:
        if not any(sm.slots):
            yield self._pass(sm)
            return
        for ready in self._arrive(sm):
            yield from (self._pass(after) for after in self._lapse(ready, WHOLE_SM))
            for after, lapsing in self._partitions_lapse(ready):
                for kept in self._withhold(after, lapsing):
                    yield from map(self._pass, self._issue(kept, lapsing))

    def _arrive(self, sm: OracleSm) -> Iterator[OracleSm]:
        """Yield every state after warps have come to barriers, or are withheld, and barriers have opened."""
        for slot, warps in enumerate(sm.slots):
            unfinished = [n for n, warp in enumerate(warps) if warp.wait or warp.place < self.programs[n].end]
            if unfinished and all(warps[n].arrived for n in unfinished):
                for n in unfinished:
                    behind = self._at(n, warps[n]._replace(place=warps[n].place + 1, arrived=False))
                    sm = self._set(sm, slot, n, behind)
                yield from self._arrive(sm)
                return
        for slot, number, warp, unit in self._warps(sm):
            if unit == BARRIER and not warp.arrived and not warp.withheld:
                for kept in self._withheld(sm, slot, number):
                    yield from self._arrive(kept)
                yield from self._arrive(self._set(sm, slot, number, warp._replace(arrived=True, miss=0)))
                return
        yield sm

    def _withheld(self, sm: OracleSm, slot: int, number: int) -> Iterator[OracleSm]:
        """Yield every state in which a warp is withheld in this cycle."""
        warp, part = sm.slots[slot][number], self._partition(slot, number)
        if warp.miss:
            yield self._set(sm, slot, number, warp._replace(miss=warp.miss - 1, withheld=True))
        kept = self._set(sm, slot, number, warp._replace(withheld=True))
        begun = {(own, line): left for own, line, left in sm.windows}
        for line in self._lapses(self.programs[number], warp.place).lines:
            if begun.get((part, line.name), line.window):
                windows = {(part, line.name): line.window} | begun
                yield kept._replace(windows=tuple(sorted((*key, left) for key, left in windows.items())))

    def _lapse(self, sm: OracleSm, part: int) -> Iterator[OracleSm]:
        """Yield every state after a credit of a partition, or of the whole SM, has been spent."""
        for own, left in dict.fromkeys(sm.late):
            if own == part:
                rest = list(sm.late)
                rest.remove((own, left))
                yield sm._replace(late=tuple(rest))
        for slot, warps in enumerate(sm.slots):
            for number, warp in enumerate(warps):
                if part == WHOLE_SM and warp.fence:
                    yield self._set(sm, slot, number, warp._replace(fence=warp.fence - 1))
                elif part == self._partition(slot, number) and warp.credit:
                    yield self._set(sm, slot, number, warp._replace(credit=warp.credit - 1))

    def _partitions_lapse(self, sm: OracleSm) -> Iterator[tuple[OracleSm, frozenset[int]]]:
        found = {(sm, frozenset[int]())}
        for part in range(self.gpu.machine.partitions):
            found |= {(after, lapsing | {part}) for one, lapsing in found for after in self._lapse(one, part)}
        yield from found

    def _withhold(self, sm: OracleSm, lapsing: frozenset[int]) -> Iterator[OracleSm]:
        found = {sm}
        for slot, number, warp, unit in self._warps(sm):
            if unit != BARRIER and not warp.withheld and self._partition(slot, number) not in lapsing:
                found |= {kept for one in found for kept in self._withheld(one, slot, number)}
        yield from found

    def _issue(self, sm: OracleSm, lapsing: frozenset[int]) -> Iterator[OracleSm]:
        machine = self.gpu.machine
        ready = [
            (slot, number, unit, self._partition(slot, number))
            for slot, number, warp, unit in self._warps(sm)
            if unit != BARRIER and not warp.withheld and self._partition(slot, number) not in lapsing
        ]
        units = {unit.name: unit for unit in machine.units}

        def fits(chosen: Iterable[tuple[int, int, str, int]]) -> bool:
            taken = [(unit, 0 if units[unit].shared else part) for _, _, unit, part in chosen]
            taken += [(unit, part) for unit, part, _ in sm.held]
            slots = [part for _, _, _, part in chosen]
            width = machine.issue_width or len(ready)
            ports = all(taken.count(port) <= units[port[0]].capacity for port in taken)
            return ports and all(slots.count(part) <= width for part in slots)

        sets = [chosen for size in range(len(ready) + 1) for chosen in combinations(ready, size) if fits(chosen)]
        for chosen in sets:
            if any(fits((*chosen, one)) for one in ready if one not in chosen):
                continue
            ranges = (range(units[unit].latency.least, units[unit].latency.most + 1) for _, _, unit, _ in chosen)
            for latencies in product(*ranges):
                after = sm
                for (slot, number, unit, part), latency in zip(chosen, latencies, strict=True):
                    warp = sm.slots[slot][number]
                    gone = self._at(number, warp._replace(place=warp.place + 1, wait=latency))
                    held = (unit, 0 if units[unit].shared else part, units[unit].interval)
                    after = self._set(after, slot, number, gone)._replace(held=(*after.held, held))
                yield after

    def _pass(self, sm: OracleSm) -> OracleSm:
        """Return the state one cycle later, in which warps may have finished and blocks have ended."""
        late = [(part, left - 1) for part, left in sm.late if left > 1]
        slots = list[tuple[OracleWarp, ...]]()
        for slot, warps in enumerate(sm.slots):
            passed = list[OracleWarp]()
            for number, before in enumerate(warps):
                warp = before._replace(wait=max(0, before.wait - 1), withheld=False)
                if warp.place == self.programs[number].end and not warp.wait:
                    kinds = (self._partition(slot, number), warp.credit), (WHOLE_SM, warp.fence)
                    late += [(part, self.expiry) for part, count in kinds for _ in range(count) if self.expiry]
                    warp = OracleWarp(warp.place)
                passed.append(warp)
            has_ended = all(warp == OracleWarp(self.programs[number].end) for number, warp in enumerate(passed))
            slots.append(() if has_ended else tuple(passed))
        held = sorted((unit, part, left - 1) for unit, part, left in sm.held if left > 1)
        windows = tuple((part, line, max(0, left - 1)) for part, line, left in sm.windows)
        return OracleSm(tuple(slots), tuple(held), tuple(sorted(late)), windows)
