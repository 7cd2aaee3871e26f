"""The pessimistic bound M^L + M^C, for any machine, strings and automata; for real multiprocessors, theorem 1S."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import starmap, zip_longest
from typing import NamedTuple

from makespan.model.feature import BARRIERS, DELAYS, PROGRAMS, SCHEDULER, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import Program
from makespan.proof.bounds.phases import PhaseSegment, segments_of
from makespan.proof.bounds.theorem_1s import bound as bound_of_multiprocessor

KNOWS = PROGRAMS | TIMES | BARRIERS | DELAYS | SCHEDULER
"""Without what is of real multiprocessors: those have theorem 1S."""


def pessimistic(instance: Instance) -> int:
    """Return an upper bound, in cycles, on every work-conserving schedule, and on those of warps that run ahead.

    Let z be the warp that finishes last, and cover the cycles from each issue of z on for as long as its latency is at
    most. In a cycle that is not covered z waits for a class X all of whose ports are held, or `issue width`
    instructions of *other* warps are issued. Of the ports of X, the others hold one for `interval` cycles with each of
    their instructions, and z itself, in cycles that are not covered, for `interval - latency` at most. So z waits for X
    at most floor((interval N_X + own) / capacity) cycles, and not at all for a class that it does not use or whose
    ports cannot all be held at the same time; and for an issue slot at most floor(N / issue width) cycles, where N
    counts instructions of the others whose ports z does not wait for in the same cycle.

    Nothing here says that a warp waits out a latency, or that an interval is as long as it may be:
    `makespan.model.result` names the anomalies that the bound therefore outlasts.

    With partitions, resources or warps that run ahead it is the bound of theorem 1S, which does the same there.

    Source: Berezovskyi, Bletsas and Andersson, ECRTS 2012 (M = M^L + M^C); generalised to different
    warps as the maximum over z, to automata by the most that any path holds, and to intervals, latencies and an
    issue width (docs/theory.md, 2).
    """
    return bound_of_multiprocessor(instance) if instance.is_multiprocessor else _plain(instance)


@requires(KNOWS, "the bound M^L + M^C")
def _plain(instance: Instance) -> int:
    machine = instance.machine
    if instance.has_barriers:
        return _with_barriers(instance)
    latencies = {unit.name: unit.latency.most for unit in machine.units}
    return max(
        group.program.heaviest(latencies) + waiting(machine, rivals, instance.warps - 1)
        for group, rivals in zip(instance.groups, rivals_by_group(instance), strict=True)
    )


class Rivals(NamedTuple):
    """The warps besides z that use a class, their instructions of it, those of z, and whether z waits for it."""

    users: int
    work: int
    own: int
    matters: bool


def rivals_by_group(instance: Instance) -> list[dict[str, Rivals]]:
    """Return the rivals of z by class, for every group to which z may belong."""
    most = [{name: group.program.most(name) for name in instance.machine.capacities} for group in instance.groups]
    counted = list(zip(instance.groups, most, strict=True))
    users = {name: sum(group.warps for group, own in counted if own[name]) for name in instance.machine.capacities}
    work = {name: sum(group.warps * own[name] for group, own in counted) for name in users}
    return [{name: Rivals(users[name] - (n > 0), work[name] - n, n, n > 0) for name, n in own.items()} for own in most]


def waiting(machine: Machine, rivals: Mapping[str, Rivals], others: int) -> int:
    """Return the most cycles for which z can wait, given its rivals by class and how many warps there are besides it.

    An instruction that takes an issue slot from z in a cycle does not in the same cycle hold a port that z waits for.
    So of a class that has no more ports than there are issue slots, z is worse off when it waits for ports, and only
    what these leave over takes slots.
    """
    total, slots = 0, 0
    width = machine.issue_width
    for unit in machine.units:
        users, work, own, matters = rivals[unit.name]
        if not matters or not can_hold_all(unit, users):
            slots += work
            continue
        held = _port_cycles(unit, work, own)
        total += held // unit.capacity
        slots += work if width is not None and unit.capacity > width else min(work, held % unit.capacity)
    return total if width is None or others < width else total + slots // width


def cycles_without_port(unit: UnitClass, users: int, work: int, own: int) -> int:
    """Cycles for which all ports can be held against a warp with `own` instructions, by it and `users` others."""
    return _port_cycles(unit, work, own) // unit.capacity if can_hold_all(unit, users) else 0


def can_hold_all(unit: UnitClass, users: int) -> bool:
    """Return whether the warps, and one that waits for a port, can hold all ports at the same time.

    A warp that goes on before its latency has passed issues in every cycle, and holds `interval` ports.
    """
    return users * unit.interval + unit.interval - 1 >= unit.capacity


def _port_cycles(unit: UnitClass, work: int, own: int) -> int:
    """Return the port cycles of the others' instructions, and of z's own where their latency does not cover them."""
    return unit.interval * work + max(0, unit.interval - unit.latency.most) * own


@requires(KNOWS, "the bound for any units")
def any_units(instance: Instance) -> int:
    """Return an upper bound, in cycles, that holds however units of the machine's throughputs are built.

    A class of p ports with interval q may really have kp ports with interval kq, or take kp instructions in each frame
    of kq cycles, for any k. All X-instructions together then keep a warp waiting for X for at most floor(q N_X / p)
    cycles, and the issue width for at most floor(N / width). Proof in docs/machines.md.
    """
    machine = instance.machine
    counts = {name: sum(g.warps * g.program.most(name) for g in instance.groups) for name in machine.capacities}
    total = _alone(instance) + sum(unit.interval * counts[unit.name] // unit.capacity for unit in machine.units)
    if machine.issue_width is not None:
        total += sum(group.warps * group.program.most() for group in instance.groups) // machine.issue_width
    return total


def _alone(instance: Instance) -> int:
    """Return the most cycles in which latencies of one warp pass or, with barriers, of a chain of warps."""
    longest = {unit.name: unit.latency.most for unit in instance.machine.units}
    chain = Chain.of(instance)
    if chain is None:
        return sum(group.warps * group.program.heaviest(longest) for group in instance.groups)
    return chain.sum(longest, max)


@dataclass(frozen=True, slots=True)
class Chain:
    """The warps that keep each other waiting at barriers: z since its last one, before it who came to that one last."""

    cut: tuple[tuple[Program, tuple[PhaseSegment, ...]], ...]

    @classmethod
    def of(cls, instance: Instance) -> "Chain | None":
        """Return the chain of an instance; None if there are too many phases."""
        segments = [(group.program, segments_of(group.program)) for group in instance.groups]
        cut = tuple((program, own) for program, own in segments if own is not None)
        return cls(cut) if len(cut) == len(segments) else None

    def sum(self, weights: Mapping[str, int], choose: Callable[..., int]) -> int:
        """Return the most (`max`) or least (`min`) weight of classes that the chain may execute."""

        def by_phase(program: Program, own: Iterable[PhaseSegment]) -> list[int]:
            return [each.extreme(program, lambda at: weights.get(program.places[at].unit, 0), choose) for each in own]

        return sum(map(choose, zip_longest(*starmap(by_phase, self.cut), fillvalue=0)))

    def rivals(self, instance: Instance) -> dict[str, Rivals]:
        """Return the rivals of the chain by class; its own instructions are counted by their least number."""

        def of(name: str) -> Rivals:
            users = sum(group.warps for group in instance.groups if name in group.program.units)
            work = sum(group.warps * group.program.most(name) for group in instance.groups)
            own = self.sum({name: 1}, min)
            return Rivals(max(0, users - 1), work - own, own, users > 0)

        return {name: of(name) for name in instance.machine.capacities}


def _with_barriers(instance: Instance) -> int:
    """Return the same along a chain of warps.

    In every cycle that no latency of the chain covers its warp waits for ports or an issue slot; it never waits at a
    barrier. In phase k it executes at most the most, and of X at least the least, that any warp executes there; all
    other instructions are others'.
    """
    machine = instance.machine
    chain = Chain.of(instance)
    if chain is None:  # too many phases: in each cycle a latency passes or a port is held
        longest = {unit.name: max(unit.interval, unit.latency.most) for unit in machine.units}
        return sum(group.warps * group.program.heaviest(longest) for group in instance.groups)
    return _alone(instance) + waiting(machine, chain.rivals(instance), instance.warps - 1)
