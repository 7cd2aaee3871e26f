"""The conditions under which a number holds: those that follow from the instance, and those that a bundle states.

A bundle states the assumptions of its result as values. Those that the instance decides are checked here, by rules of
this checker: what its scheduler promises, to which partition a warp belongs, whether schedulers lapse, and whether
anybody states latencies. All others are the word of the bundle, which cannot be checked; each can only be about what
its kind can be about.
"""

from collections.abc import Iterable, Sequence

from makespan.model.assumptions import Assumption, AssumptionKind, quote_name
from makespan.model.conditions import conditions, is_well_formed
from makespan.model.instance import Instance
from makespan.model.machine import Machine, SchedulerPromise, WarpAssignment
from makespan.verify import fields
from makespan.verify.machine_form import class_holds, has_lapses, queued_units
from makespan.verify.refusal import Refused

_MOST = 10_000
LATENCIES = frozenset(
    {AssumptionKind.MACHINE, AssumptionKind.ONE_CYCLE, AssumptionKind.UNIT_LATENCY, AssumptionKind.UNSTATED_LATENCY}
)
"""The kinds that say who states latencies; one of them stands in every result."""
_PROMISES = frozenset({AssumptionKind.FAIR, AssumptionKind.MODULO})
_DECIDED = (  # by the instance
    LATENCIES - {AssumptionKind.MACHINE} | _PROMISES | {AssumptionKind.LAPSES, AssumptionKind.QUEUES}
)


def assumptions(value: object) -> tuple[Assumption, ...]:
    """Return the assumptions in `value`.

    Raises:
        Refused: a key or type is wrong, or an assumption is about what its kind cannot be about.
    """
    return tuple(map(_assumption, fields.items(value, "assumptions", 0, _MOST)))


def _assumption(value: object) -> Assumption:
    has_about = isinstance(value, dict) and "about" in value
    parts = fields.table(value, "assumption", "kind", "text", *["about"] * has_about)
    about = [fields.text(said, "about") for said in fields.items(parts.get("about", []), "about", 0, _MOST)]
    kind, text = fields.text(parts["kind"], "kind"), fields.text(parts["text"], "assumption")
    if kind not in set(AssumptionKind):
        raise Refused(f"unknown kind of assumption: {kind!r:.40}")
    if not all(said.isprintable() for said in (text, *about)):
        raise Refused("an assumption has characters that cannot be printed")
    found = Assumption(AssumptionKind(kind), text, tuple(about))
    if not is_well_formed(found):
        raise Refused(f"an assumption of the kind {kind} cannot be about {', '.join(about) or 'nothing'!r:.80}")
    return found


def check(
    said: Iterable[Assumption],
    machine: Machine,
    instances: Iterable[Instance],
    *,
    dram: int = 0,
    is_whole_gpu: bool = False,
) -> None:
    """Hold the assumptions of a result against what its instances decide.

    Args:
        said: the assumptions.
        machine: of all instances.
        instances: a single one, or one for the block of each grid of a whole GPU.
        dram: cycles in which DRAM may be busy, which suppose how much it moves.
        is_whole_gpu: whether their blocks do not begin together on an SM by itself, so that no theorem counts queues.

    Raises:
        Refused: the result leaves out a condition of its instance, or states one that the instance does not have.
    """
    notes = tuple(said)
    promised = {(note.kind, note.about) for note in notes if note.kind in _PROMISES}
    if promised != _promises(machine):
        raise Refused("assumptions: what the scheduler promises does not follow from the instance")
    if any(note.kind is AssumptionKind.DRAM_RATE for note in notes) is not bool(dram):
        raise Refused("assumptions: what is said of DRAM does not follow from the instance")
    asked = tuple(instances)
    _check_lapses(notes, asked, is_whole_gpu=is_whole_gpu)
    _check_latencies(notes, machine, asked)


def _check_lapses(notes: Sequence[Assumption], several: Sequence[Instance], *, is_whole_gpu: bool) -> None:
    if any(note.kind is AssumptionKind.LAPSES for note in notes) is not any(map(has_lapses, several)):
        raise Refused("assumptions: what is said of lapses does not follow from the instance")
    left_out = {name for instance in several if is_whole_gpu or instance.has_barriers for name in _queues(instance)}
    if {name for note in notes if note.kind is AssumptionKind.QUEUES for name in note.about} != left_out:
        raise Refused("assumptions: what is said of queues that are left out does not follow from the instance")


def _queues(instance: Instance) -> set[str]:
    """Return the names of the queues through which some instruction goes, as a verdict shows them."""
    units = queued_units(instance)
    return {quote_name(queue.name) for queue in instance.machine.queues if not units.isdisjoint(queue.units)}


def _check_latencies(notes: Sequence[Assumption], machine: Machine, several: Sequence[Instance]) -> None:
    untimed = [note for note in notes if note.kind is AssumptionKind.UNTIMED]
    stated = {note.kind for note in notes} & LATENCIES
    decided = {_latencies(instance) for instance in several}
    is_said_elsewhere = _is_by_operation(notes, several) or bool(untimed)
    if stated != decided and not (is_said_elsewhere and stated and stated <= decided | {AssumptionKind.MACHINE}):
        raise Refused("assumptions: what is said of latencies does not follow from the instance")
    if not all(_class_names(note) <= set(machine.capacities) for note in untimed):
        raise Refused("assumptions: a class whose latency nobody knows is not one of the machine")


def _class_names(untimed: Assumption) -> set[str]:
    return set(untimed.about[0].rpartition("(")[2].rstrip(")").split(", "))


def _is_by_operation(said: Iterable[Assumption], instances: Iterable[Instance]) -> bool:
    has_timings = all(group.program.timings for instance in instances for group in instance.groups)
    return has_timings and any(note.kind is AssumptionKind.OPERATIONS for note in said)


def of_instance(said: Iterable[Assumption]) -> tuple[str, ...]:
    """Return the conditions that the instance decides, which `check` has held against it."""
    return conditions(note for note in said if note.kind in _DECIDED)


def of_bundle(said: Iterable[Assumption]) -> tuple[str, ...]:
    """Return the conditions that are the word of the bundle."""
    return conditions(note for note in said if note.kind not in _DECIDED)


def _promises(machine: Machine) -> set[tuple[AssumptionKind, tuple[str, ...]]]:
    found: set[tuple[AssumptionKind, tuple[str, ...]]] = set()
    if machine.scheduler is SchedulerPromise.FAIR:
        found.add((AssumptionKind.FAIR, ()))
    if machine.partitions > 1 and machine.assignment is WarpAssignment.MODULO:
        found.add((AssumptionKind.MODULO, (str(machine.partitions),)))
    return found


def _latencies(instance: Instance) -> AssumptionKind:
    """Return whether the machine or the instructions state latencies, or neither."""
    units = {unit.name: (unit.latency.least, unit.latency.most) for unit in instance.machine.units}
    if any(latency != (1, 1) for latency in units.values()):
        return AssumptionKind.MACHINE
    for group in instance.groups:
        for place, timing in zip(group.program.places, group.program.timings, strict=False):
            if place.unit in units and tuple(timing.latency) != (1, 1):
                return AssumptionKind.UNSTATED_LATENCY
    is_brief = all(hold.most == 1 for unit in instance.machine.units for hold in class_holds(unit))
    return AssumptionKind.ONE_CYCLE if is_brief else AssumptionKind.UNIT_LATENCY
