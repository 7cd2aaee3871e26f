"""What keeps a warp from its next instruction besides others: its own stalls, results and ports, for the checker."""

from collections.abc import Mapping

from makespan.model.machine import Machine, UnitClass
from makespan.model.program import InstructionTiming, Program
from makespan.verify.refusal import StepBudget


def most(program: Program, units: Mapping[str, UnitClass], work: StepBudget) -> list[int]:
    """Return the most cycles from the issue at each place until its warp is ready for whatever follows.

    A result that is `latency` cycles away when its instruction is issued comes nearer by each stall on the way. Whoever
    awaits its token has it at his issue, so behind him nobody waits for it any more.
    """
    if not program.timings:
        return [units[place.unit].latency.most for place in program.places]
    found = [timing.stall for timing in program.timings]
    awaited = {token for timing in program.timings for token in timing.awaits}
    for setter, timing in enumerate(program.timings):
        for token in awaited.intersection(timing.sets):
            away, at = {setter: timing.latency[1]}, setter
            while away:
                at = min(away)
                cycles = away.pop(at)
                work.spend(len(program.places[at].successors) + len(away))
                for after in program.places[at].successors:
                    if after == program.end:
                        continue
                    if token in program.timings[after].awaits:
                        found[at] = max(found[at], cycles)
                    elif (left := cycles - program.timings[at].stall) > 0:
                        away[after] = max(left, away.get(after, 0))
    return found


def least(program: Program, units: Mapping[str, UnitClass]) -> list[int]:
    """Return the fewest: the stall, and the latency of an instruction whose result everything behind it needs."""
    if not program.timings:
        return [units[place.unit].latency.least for place in program.places]
    found = []
    for timing, (_, successors) in zip(program.timings, program.places, strict=True):
        awaits = [program.timings[after].awaits for after in successors if after < program.end]
        needed = all(not set(timing.sets).isdisjoint(tokens) for tokens in awaits)
        found.append(max(timing.stall, timing.latency[0]) if needed else timing.stall)
    return found


def alone(program: Program, machine: Machine, work: StepBudget) -> int:
    """Return the most cycles that a warp takes if nobody else is there, on any path and at any latencies.

    Each place is issued when the latest of some earlier times has come, a constant after an earlier issue; so the
    latest that any path to it has seen of every token, and of every single port, says when at the latest. How its own
    instructions meet at several ports, or at one of several resources, does not count here.
    """
    units = {unit.name: unit for unit in machine.units}
    single = {ports.name for ports in machine.ports if ports.capacity == 1}
    timings = program.timings or [InstructionTiming(units[place.unit].latency.most) for place in program.places]
    comes = [0] * (program.end + 1)
    seen: list[dict[str | int, int]] = [{} for _ in comes]
    over = 0
    for at, place in enumerate(program.places):
        unit, timing, latest = units[place.unit], timings[at], seen[at]
        held = [((unit.name,), unit.interval), *((use.resources, use.most) for use in unit.uses)]
        needed: list[str | int] = [names[0] for names, _ in held if len(names) == 1]
        issue = max([comes[at], *(latest.get(key, 0) for key in [*needed, *timing.awaits])])
        ready = issue + timing.latency[1]
        over = max(over, ready if timing.sets else 0, issue + timing.stall)  # nobody waits for what sets no token
        for name, cycles in ((name, cycles) for names, cycles in held for name in names if name in single):
            latest[name] = max(latest.get(name, 0), issue + cycles)
        for token in timing.sets:
            latest[token] = max(latest.get(token, 0), ready)
        for after in place.successors:
            work.spend(len(latest) + 1)
            comes[after] = max(comes[after], issue + timing.stall)
            for key, cycle in latest.items():
                seen[after][key] = max(seen[after].get(key, 0), cycle)
    return over
