"""A warp alone: T of theorem 1S, the most cycles that its own stalls, results and ports take (docs/theory.md, 14).

Alone a warp is a max-plus system: it issues when the stall before is over, what it awaits is there, and ports of pools
with a single port, which it holds itself, are free. A state is (arrival, when each token is there, when each pool with
one port is free again). A place maps it by maxima and constants, so where paths join the maximum of their states is
exact. Each term of the system is one inequality: no label of a place is less than the label before it and a constant.

How its own instructions meet at several ports, or at one of several resources, is no wait here: it counts as hits.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat, zip_longest
from typing import NamedTuple

from makespan.model.machine import Machine
from makespan.model.program import BARRIER, Program
from makespan.verify.machine_form import issue_holds, place_timings, pool_capacities
from makespan.verify.paths import PhaseRegion, keep_latest
from makespan.verify.refusal import ProofSteps


class _Arrival(NamedTuple):
    """The cycles in which a warp comes to a place, each token is there, and each pool with one port is free again."""

    cycle: int
    pending: dict[int, int]
    held: dict[str, int]


class _ClassPorts(NamedTuple):
    """The ports of an instruction that matter to a warp alone.

    Args:
        needed: the pools with one port that every instruction of the class takes a port of.
        kept: the pools with one port that it may hold, each with the most cycles.
        every: all pools, each with the most cycles.
    """

    needed: list[str]
    kept: dict[str, int]
    every: dict[str, int]


def longest_alone(program: Program, machine: Machine, work: ProofSteps) -> int:
    """Return T(z): the most cycles that a warp without barriers takes if it is alone, on any path."""
    whole = PhaseRegion(program.starts, range(program.end))
    (cycles,) = TimesAlone(machine, [program], [[whole]], work).of_phases(0)
    return cycles


class TimesAlone:
    """The times that warps of some programs take alone, cut into phases; every step takes from `work`."""

    def __init__(
        self, machine: Machine, programs: Sequence[Program], cut: Sequence[Sequence[PhaseRegion]], work: ProofSteps
    ) -> None:
        self._programs, self._cut, self._work = programs, cut, work
        units = {unit.name: unit for unit in machine.units}
        self._timings = [place_timings(program, units, longest=True) for program in programs]
        capacity = pool_capacities(machine)
        self._ports: dict[str, _ClassPorts] = {}
        for unit, holds in issue_holds(machine).items():
            every = {name: hold.most for hold in holds for name in hold.pools}
            kept = {name: most for name, most in every.items() if capacity[name] == 1}
            self._ports[unit] = _ClassPorts(
                [h.pools[0] for h in holds if h.gate <= {*kept} and len(h.gate) == 1], kept, every
            )

    def of_phases(self, group: int) -> list[int]:
        """Return T_k: for every phase the longest time until a warp comes to the next barrier, or ends."""
        # Ports that any warp may still hold when a later phase begins are waited for in full, so that all hits come
        # later and are due to instructions of the phase itself.
        cut = self._cut[group]
        left = self._residuals(group) if len(cut) > 1 and self._programs[group].timings else {}
        return [
            self._of_phase(group, *of) for of in zip(cut, chain([{}], repeat(left)), self._still_held(), strict=False)
        ]

    def _still_held(self) -> Iterator[dict[str, int]]:
        """Yield c_k: for every phase, by pool, how long after its beginning an older instruction may hold a port."""
        found: dict[str, int] = {}
        for phases in zip_longest(*self._cut):
            yield found.copy()
            for program, phase in zip(self._programs, phases, strict=True):
                for at in phase.inside if phase else ():
                    stall = program.timings[at].stall if program.timings else 1  # a latency may be as short as that
                    every = self._ports[program.places[at].unit].every
                    self._work.spend(len(every))
                    keep_latest(found, {name: most - stall for name, most in every.items()})

    def _residuals(self, group: int) -> dict[int, dict[int, int]]:
        """Return rho: for every place behind a barrier, how long each token may be pending when a warp comes there."""
        program = self._programs[group]
        found: dict[int, dict[int, int]] = {start: {} for start in program.starts}
        entered: dict[int, dict[int, int]] = {}
        for at, (place, timing) in enumerate(zip(program.places, program.timings, strict=True)):
            after = {token: cycles - timing.stall for token, cycles in found[at].items() if token not in timing.awaits}
            keep_latest(after, dict.fromkeys(timing.sets, timing.latency[1] - timing.stall))
            for target in place.successors:
                self._work.spend(1 + len(after))
                keep_latest(found.setdefault(target, {}), after)
                if place.unit == BARRIER:
                    keep_latest(entered.setdefault(target, {}), after)
        return entered

    def _of_phase(
        self, group: int, phase: PhaseRegion, left: Mapping[int, dict[int, int]], still_held: Mapping[str, int]
    ) -> int:
        """Return the time alone in one phase."""
        program = self._programs[group]
        states: dict[int, _Arrival] = {}
        longest = 0
        for begin in phase.begins:
            states[begin] = _Arrival(0, dict(left.get(begin, {})), {})
            longest = max(longest, self._ready(group, begin, states[begin]))
        for at in phase.inside:
            state = self._issued(group, at, states.pop(at), still_held)
            successors = program.places[at].successors
            for number, target in enumerate(successors, start=1):
                if target == program.end or program.places[target].unit == BARRIER:
                    longest = max(longest, self._ready(group, target, state))  # at a barrier the phase is over
                elif target not in states and number == len(successors):
                    states[target] = state  # no other path needs these dictionaries
                else:
                    states[target] = self._joined(states.get(target, _Arrival(0, {}, {})), state)
        return longest

    def _issued(self, group: int, at: int, state: _Arrival, still_held: Mapping[str, int]) -> _Arrival:
        """Return the state behind a place, at whose instruction a warp is in this state."""
        timing, ports = self._timings[group][at], self._ports[self._programs[group].places[at].unit]
        self._work.spend(1 + len(ports.every))
        older = [still_held.get(name, 0) for name in ports.every]
        results = [state.pending.get(token, 0) for token in timing.awaits]
        issue = max(state.cycle, *older, *results, *(state.held.get(name, 0) for name in ports.needed))
        keep_latest(state.held, {name: issue + most for name, most in ports.kept.items()})
        keep_latest(state.pending, dict.fromkeys(timing.sets, issue + timing.latency[1]))
        return state._replace(cycle=issue + timing.stall)

    def _joined(self, one: _Arrival, other: _Arrival) -> _Arrival:
        self._work.spend(len(other.pending) + len(other.held))
        keep_latest(one.pending, other.pending)
        keep_latest(one.held, other.held)
        return one._replace(cycle=max(one.cycle, other.cycle))

    def _ready(self, group: int, at: int, state: _Arrival) -> int:
        """Return when a warp that comes to a barrier, or the end, waits there for no token any more."""
        timings, is_end = self._programs[group].timings, at == self._programs[group].end
        awaits = state.pending if is_end else timings[at].awaits if timings else ()
        self._work.spend(1 + len(awaits))
        return max((state.cycle, *(state.pending.get(token, 0) for token in awaits)))
