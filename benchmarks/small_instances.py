"""Random small instances of every kind, and others made from them that a bound has to outlast."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks import closed_form, crosscheck, fair_scheduler, multiprocessors
from makespan import Instance, Program
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import InstructionTiming
from makespan.model.result import Anomaly, robust_anomalies
from makespan.proof.bounds import phases

Drawer = Callable[[random.Random], Instance]


def _general(draw: random.Random) -> Instance:
    return next(crosscheck.general_instances(draw))


def _fair(draw: random.Random) -> Instance:
    return fair_scheduler.drawn(draw, *draw.choice(fair_scheduler.SIZES))


def _fair_multiprocessor(draw: random.Random) -> Instance:
    drawn = multiprocessors.instance(draw)
    return replace(drawn, machine=replace(drawn.machine, scheduler=SchedulerPromise.FAIR))


def _running_ahead(draw: random.Random) -> Instance:
    """One partition and no resource."""
    while True:
        drawn = multiprocessors.instance(draw)
        if drawn.runs_ahead:
            units = tuple(replace(unit, shared=False, uses=()) for unit in drawn.machine.units)
            return replace(drawn, machine=replace(drawn.machine, units=units, partitions=1, resources=()))


def _between_barriers(draw: random.Random) -> Instance:
    """A multiprocessor on which phases are instances of their own."""
    while True:
        drawn = multiprocessors.instance(draw)
        if drawn.has_barriers and phases(drawn) is not None:
            return drawn


def _with_thresholds(draw: random.Random) -> Instance:
    """Where pairs have thresholds: single ports that are held for longer than a cycle, beside one issue slot."""
    units = tuple(
        UnitClass(name, 1, draw.choice((1, 2, 3, 4)), Latency(least, least + draw.choice((0, 0, 1))))
        for name, least in (("C", draw.randint(1, 4)), ("L", draw.randint(1, 6)), ("S", draw.randint(1, 3)))
    )
    shared = replace(units[2], interval=1, shared=draw.random() < 0.5)
    chosen = Machine("thresholds", (*units[:2], shared), draw.choice((1, 1, None)), partitions=draw.choice((1, 2)))
    warps = draw.randint(2, 4)

    def program() -> Program:
        ahead, classes = draw.random() < 0.6, "CCLLS" if draw.random() < 0.5 else "CL"
        return multiprocessors.program(draw, classes, 8 - warps, barriers=False, runs_ahead=ahead)

    kinds = [program() for _ in range(draw.choice((1, 1, 2)))]
    return Instance.merged([(draw.choice(kinds), 1) for _ in range(warps)], chosen)


KINDS: dict[str, Drawer] = {
    **{name: partial(closed_form.instance, kind=kind) for name, kind in closed_form.KINDS.items()},
    "general": _general,
    "running ahead": _running_ahead,
    "between barriers": _between_barriers,
    "thresholds": _with_thresholds,
    "fair": _fair,
    "fair multiprocessor": _fair_multiprocessor,
}
"""Those of `benchmarks.closed_form`; what `benchmarks.crosscheck` draws; warps that run ahead on one partition, and in
phases; what theorem E with thresholds is for; and fair schedulers of one issue slot, and of whole multiprocessors."""


def improved(draw: random.Random, instance: Instance) -> Instance:
    """The same with random anomalies of those that the pessimistic bound outlasts."""
    against, machine = robust_anomalies(instance), instance.machine
    units = []
    for unit in machine.units:
        uses = tuple(replace(use, least=1, most=draw.randint(1, use.most)) for use in unit.uses)
        interval, ports = draw.randint(1, unit.interval), unit.capacity + draw.choice((0, 0, 1))
        units.append(replace(unit, capacity=ports, interval=interval, latency=_shorter(draw, unit), uses=uses))
    resources = tuple(replace(one, capacity=one.capacity + draw.choice((0, 0, 1))) for one in machine.resources)
    width = machine.issue_width and draw.choice((machine.issue_width, machine.issue_width + 1, None))
    better = replace(machine, units=tuple(units), resources=resources, issue_width=width)
    fewer = instance.blocks == 1 and Anomaly.FEWER_WARPS in against
    least = dict.fromkeys(instance.groups, 0) | {draw.choice(instance.groups): 1}
    crew = [
        (
            _earlier(draw, group.program, better) if Anomaly.RUN_AHEAD in against else group.program,
            draw.randint(least[group], group.warps) if fewer and draw.random() < 0.5 else group.warps,
        )
        for group in instance.groups
    ]
    left, launched = [warps for _, warps in crew], list[tuple[Program, int]]()
    for number, group in sorted(zip(instance.number_of_warp(), instance.group_of_warp(), strict=True)):
        if number < instance.warps // instance.blocks and left[group]:  # blocks are alike
            left[group] -= instance.blocks
            launched.append((crew[group][0], instance.blocks))
    return Instance.merged(launched, better, blocks=instance.blocks)


def _shorter(draw: random.Random, unit: UnitClass) -> Latency:
    most = draw.randint(1, unit.latency.most)
    return Latency(draw.choice((most, draw.randint(1, most))), most)


def _earlier(draw: random.Random, program: Program, machine: Machine) -> Program:
    """Shorter stalls and fewer waits; a warp that blocks may wait for what it needs instead, if it meets no barrier."""
    if program.timings:
        return replace(program, timings=tuple(_earlier_timing(draw, timing) for timing in program.timings))
    if program.has_barriers or draw.random() < 0.5:
        return program
    latencies = {unit.name: unit.latency for unit in machine.units}
    timings = []
    for at, place in enumerate(program.places):
        latency = latencies[place.unit]
        awaits = tuple(token for token in range(max(0, at - 2), at) if draw.random() < 0.7)
        timings.append(InstructionTiming(draw.randint(1, latency.most), (latency.least, latency.most), (at,), awaits))
    return replace(program, timings=tuple(timings))


def _earlier_timing(draw: random.Random, timing: InstructionTiming) -> InstructionTiming:
    if not timing.stall:
        return timing  # a barrier
    awaits = tuple(token for token in timing.awaits if draw.random() < 0.8)
    least = draw.randint(1, timing.latency[1])
    return InstructionTiming(
        draw.randint(1, timing.stall), (least, draw.randint(least, timing.latency[1])), timing.sets, awaits
    )


def rebuilt(draw: random.Random, machine: Machine) -> Machine:
    """Another machine of the same throughputs: of some classes more ports, that are held for longer."""
    times = [draw.choice((1, 2, 3)) for _ in machine.units]
    rows = zip(machine.units, times, strict=True)
    return replace(machine, units=tuple(replace(u, capacity=u.capacity * n, interval=u.interval * n) for u, n in rows))
