"""The question of a bundle, read strictly: the machine, and the programs of its warps."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise, repeat
from typing import Any

from makespan.host.errors import InputError
from makespan.model.instance import MAX_WARPS, Group, Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import (
    MAX_CAPACITY,
    MAX_ISSUE_WIDTH,
    Latency,
    Machine,
    PortResource,
    SchedulerPromise,
    UnitClass,
    UnitQueue,
    Use,
    WarpAssignment,
    class_name,
)
from makespan.model.machine.values import MAX_PARTITIONS, MAX_RESOURCES
from makespan.model.program import (
    BARRIER,
    MAX_CYCLES_OF_PLACE,
    MAX_LINES_OF_PLACE,
    MAX_PLACES,
    MAX_TOKENS_OF_PLACE,
    InstructionTiming,
    Program,
    ProgramPlace,
)
from makespan.verify import fields, machine_form
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork

MOST_PLACES = 2_000_000
_LARGEST_TOKEN = 10**9
_OF_CLASS = ("capacity", "interval", "latency")
_OF_SOME = ("scheduler", "partitions", "assignment", "shared", "resources", "uses", "queues")


def instance(value: object) -> Instance:
    """Return the question in `value`.

    Raises:
        Refused: a key or type is wrong, something is none of the values, or there is too much of it.
    """
    some = ["order"] if "order" in fields.entries(value) else []
    parts = fields.table(value, "instance", "machine", "blocks", "groups", *some)
    written = fields.items(parts["groups"], "groups", most=MAX_WARPS)
    room = ProofSteps(MOST_PLACES)
    blocks = fields.whole(parts["blocks"], "blocks", 1, MAX_WARPS)
    with refuse_invalid():
        served = machine(parts["machine"])
        crews = groups(written, room, served)
        check_queues(served, [group.program for group in crews])
        if "order" not in parts:
            return Instance(crews, served, blocks)
        if not machine_form.numbers_matter(served):
            fields.bad("an order is given, but the numbers of warps have no effect on this machine")
        launched = runs(parts["order"], [group.warps // blocks for group in crews])
        return Instance(crews, served, blocks, tuple(group for group, warps in launched for _ in range(warps)))


def runs(value: object, crews: Sequence[int]) -> list[tuple[int, int]]:
    """Return the order in which the warps of a block are launched: pairs of a group and how many of its warps follow.

    Args:
        value: as the document has it.
        crews: of every group the warps that a block has.

    Raises:
        Refused: a key or type is wrong, the warps are not those of a block, or the order says nothing.
    """
    found: list[tuple[int, int]] = []
    left = list(crews)
    for entry in fields.items(value, "order", most=MAX_WARPS):
        group, warps = fields.items(entry, "order", 2, 2)
        group = fields.whole(group, "order", 0, len(crews) - 1)
        warps = fields.whole(warps, "order", 1, MAX_WARPS)
        if found and found[-1][0] == group:
            fields.bad("order: a group follows itself")
        left[group] -= warps
        found.append((group, warps))
    if any(left):
        fields.bad("order: the warps are not those of a block")
    if len(found) == len(crews) and found == sorted(found):
        fields.bad("order: it says no more than that the groups follow one another")
    return found


@contextmanager
def refuse_invalid() -> Iterator[None]:
    """Turn errors of the values that are built inside, and of programs with too many places, into refusals."""
    try:
        yield
    except InputError as error:
        raise Refused(f"not a bundle: {error}") from None
    except TooMuchWork:
        raise Refused(f"the instance is too large for this checker: over {MOST_PLACES} places") from None


def groups(written: Sequence[object], room: ProofSteps, served: Machine) -> tuple[Group, ...]:
    """Return programs that the machine serves, each with its warps; `room` counts places."""
    room.spend(sum(map(_size, written)))
    return tuple(_group(one, {BARRIER, *served.capacities}, room) for one in written)


def machine(value: object) -> Machine:
    """Return the machine in `value`; keys that not every machine has may be left out, but may not say nothing."""
    said = [key for key in _OF_SOME if key in fields.entries(value)]
    parts = fields.table(value, "machine", "name", *_OF_CLASS, "issue_width", *said)
    names = list(map(class_name, fields.entries(parts["capacity"])))
    listed = fields.items(parts["shared"], "shared") if "shared" in said else []
    shared = [fields.text(name, "shared") for name in listed]
    resources, units = _resources(parts, shared), _units(parts, names, shared)
    if shared != [name for name in (*names, *(resource.name for resource in resources)) if name in shared]:
        fields.bad("shared does not name classes and resources in their order")
    width = parts["issue_width"]
    partitions, assignment = _partitions(parts)
    return Machine(
        fields.text(parts["name"], "machine name"),
        units,
        None if width is None else fields.whole(width, "issue_width", 1, MAX_ISSUE_WIDTH),
        scheduler=_promise(parts["scheduler"]) if "scheduler" in said else SchedulerPromise.ANY,
        partitions=partitions,
        assignment=assignment,
        resources=resources,
        queues=_queues(parts["queues"], names) if "queues" in said else (),
    )


def check_queues(machine: Machine, programs: Sequence[Program]) -> None:
    """Refuse a machine whose queues do not count because no program states its lapses, be they none."""
    # else a bound without queues would pass for one of the machine that the bundle shows
    if machine.queues and not any(program.lapses for program in programs):
        fields.bad("the machine has queues, but no program states its lapses")


def _queues(value: object, classes: list[str]) -> tuple[UnitQueue, ...]:
    found = list[UnitQueue]()
    for name, queue in fields.entries(value).items():
        listed, places, blocks = fields.items(queue, "queue", 3, 3)
        units = tuple(fields.text(unit, "class") for unit in fields.items(listed, "classes of a queue"))
        if type(blocks) is not bool:
            fields.bad("a queue does not say whether it blocks")
        found.append(UnitQueue(name, units, fields.whole(places, "places", 1, MAX_CAPACITY), blocks))
    queued = [unit for queue in found for unit in queue.units]
    # several queues of one class would leave open which one an instruction goes through
    if not found or len(set(queued)) != len(queued) or not set(queued) <= set(classes):
        fields.bad("queues are not an object of different classes")
    return tuple(found)


def _units(parts: dict[str, Any], names: list[str], shared: list[str]) -> tuple[UnitClass, ...]:
    capacities, intervals, latencies = (fields.table(parts[key], key, *names) for key in _OF_CLASS)
    uses = _uses(parts, names)
    units = []
    for name in names:
        least, most = (fields.whole(side, "latency") for side in fields.items(latencies[name], "latency", 2, 2))
        capacity, interval = (fields.whole(capacities[name], "capacity"), fields.whole(intervals[name], "interval"))
        units.append(UnitClass(name, capacity, interval, Latency(least, most), name in shared, uses.get(name, ())))
    return tuple(units)


def _promise(value: object) -> SchedulerPromise:
    if value != SchedulerPromise.FAIR:
        fields.bad(f"the promise of the scheduler is not known: {value!r:.40}")
    return SchedulerPromise.FAIR


def _partitions(parts: dict[str, Any]) -> tuple[int, WarpAssignment]:
    if "partitions" not in parts and "assignment" not in parts:
        return 1, WarpAssignment.ANY
    parts = fields.table({key: parts[key] for key in parts if key in _OF_SOME[1:3]}, "machine", *_OF_SOME[1:3])
    if parts["assignment"] not in tuple(WarpAssignment):
        fields.bad(f"the assignment is not known: {parts['assignment']!r:.40}")
    return fields.whole(parts["partitions"], "partitions", 2, MAX_PARTITIONS), WarpAssignment(parts["assignment"])


def _resources(parts: dict[str, Any], shared: list[str]) -> tuple[PortResource, ...]:
    if "resources" not in parts:
        return ()
    named = fields.entries(parts["resources"])
    if not 1 <= len(named) <= MAX_RESOURCES:
        fields.bad(f"resources are not an object of 1..{MAX_RESOURCES} names")
    return tuple(
        PortResource(name, fields.whole(capacity, "capacity", 1, MAX_CAPACITY), name in shared)
        for name, capacity in named.items()
    )


def _uses(parts: dict[str, Any], classes: list[str]) -> dict[str, tuple[Use, ...]]:
    if "uses" not in parts:
        return {}
    by_class = fields.entries(parts["uses"])
    if not by_class or not by_class.keys() <= set(classes):
        fields.bad("uses are not an object of classes")
    return {name: tuple(map(_use, fields.items(uses, "uses", most=MAX_RESOURCES))) for name, uses in by_class.items()}


def _use(value: object) -> Use:
    resources, least, most = fields.items(value, "use", 3, 3)
    names = (fields.text(name, "resource") for name in fields.items(resources, "resources", most=MAX_RESOURCES))
    return Use(tuple(names), fields.whole(least, "interval"), fields.whole(most, "interval"))


def _size(value: object) -> int:
    group = fields.entries(value)
    program = group.get("string", group.get("places"))
    return len(program) if isinstance(program, (str, list)) else 0


def _group(value: object, served: Set[str], room: ProofSteps) -> Group:
    some = ["lapses"] if "lapses" in fields.entries(value) else []
    if "string" in fields.entries(value):
        parts = fields.table(value, "group", "warps", "string", *some)
        string = fields.text(parts["string"], "string")
        if missing := sorted(set(string) - served):
            fields.bad(f"the machine has no units of class {', '.join(missing):.40}")
        program = Program.chain(string)  # only now: a string of a class that is not served makes no places
    else:
        parts = fields.table(value, "group", "warps", "starts", "places", *some, later="timings")
        places = fields.items(parts["places"], "places", most=MAX_PLACES)
        timings = fields.items(parts["timings"], "timings", 0, len(places))
        if "timings" in fields.entries(value) and not timings:
            fields.bad("timings are given, but none")
        starts = fields.wholes(parts["starts"], "starts")
        program = Program(tuple(map(_place, places)), starts, timings=tuple(map(_timing, timings)))
        if len(set(program.starts)) != len(program.starts):
            fields.bad(f"starts {program.starts} name a place twice")
    if some:
        program = replace(program, lapses=tuple(_lapses(parts["lapses"], program.end, room)))
    return Group(program, fields.whole(parts["warps"], "warps", 1, MAX_WARPS))


def _lapses(value: object, places: int, room: ProofSteps) -> Iterator[PlaceLapses]:
    """Yield the lapses of every place; `room` counts the lines that they need."""
    parts = fields.table(value, "lapses", "lines", "places")
    lines = [_line(line) for line in fields.items(parts["lines"], "lines", 0)]
    if any(before >= after for before, after in pairwise(lines)):
        fields.bad("lines are not in their order")
    left, last, needed = places, None, set[int]()
    for entry in fields.items(parts["places"], "lapses", most=places):
        count, row = fields.items(entry, "lapses", 2, 2)
        if row == last:
            fields.bad("lapses: a row follows itself")
        credit, fence, misses, chosen = fields.items(row, "lapses of a place", 4, 4)
        numbers = [
            fields.whole(number, "line", 0, len(lines) - 1)
            for number in fields.items(chosen, "lines of a place", 0, MAX_LINES_OF_PLACE)
        ]
        found = PlaceLapses(
            fields.whole(credit, "credit", 0, MAX_CYCLES_OF_PLACE),
            fields.whole(fence, "fence", 0, MAX_CYCLES_OF_PLACE),
            fields.whole(misses, "misses", 0, MAX_CYCLES_OF_PLACE),
            tuple(lines[number] for number in numbers),
        )
        left, last = left - fields.whole(count, "repeat", 1, left), row
        needed.update(numbers)
        room.spend(count * len(numbers))
        yield from repeat(found, count)
    if left or needed != set(range(len(lines))):
        fields.bad("lapses are not those of all places, or a line is needed by none")


def _line(value: object) -> CacheLine:
    name, window = fields.items(value, "line", 2, 2)
    if not fields.text(name, "line").isprintable():
        fields.bad("the name of a line has characters that cannot be printed")
    return CacheLine(name, fields.whole(window, "window", 0, MAX_CYCLES_OF_PLACE))


def _place(value: object) -> ProgramPlace:
    unit, successors = fields.items(value, "place", 2, 2)
    return ProgramPlace(fields.text(unit, "unit"), fields.wholes(successors, "successors"))


def _timing(value: object) -> InstructionTiming:
    stall, latency, sets, awaits = fields.items(value, "timing", 4, 4)
    least, most = fields.items(latency, "latency", 2, 2)
    tokens = (
        fields.wholes(fields.items(row, "tokens", 0, MAX_TOKENS_OF_PLACE), "tokens", _LARGEST_TOKEN, 0)
        for row in (sets, awaits)
    )
    return InstructionTiming(
        fields.whole(stall, "stall"), (fields.whole(least, "latency"), fields.whole(most, "latency")), *tokens
    )
