"""One question: these warps on this machine."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import groupby, islice, zip_longest
from typing import Concatenate, ParamSpec, TypeVar

from makespan.host.errors import InputError, UnsupportedError
from makespan.model import assumptions
from makespan.model.assumptions import Assumption, AssumptionKind
from makespan.model.feature import LAPSES, Feature, Features
from makespan.model.lowered import LoweredMachine
from makespan.model.machine import (
    DELAY,
    ONE_CYCLE,
    PAPER,
    Machine,
    SchedulerPromise,
    UnitClass,
    UnitQueue,
    WarpAssignment,
)
from makespan.model.machine.values import shown
from makespan.model.program import BARRIER, Program, merge_groups

MAX_WARPS = 65_536
MAX_WARP_INSTRUCTIONS = 5_000_000
MAX_CYCLES = 50_000_000
"""The most cycles of any schedule, which `Instance` bounds by stalls, latencies and intervals."""
_MOST_SHOWN = 4
_WITHOUT_PROMISE = 'leave the promise out: scheduler = "any" in the machine file'


@dataclass(frozen=True, slots=True)
class Group:
    """A number of identical warps. Equal warps are interchangeable, which every engine exploits."""

    program: Program
    warps: int

    def __post_init__(self) -> None:
        if isinstance(self.warps, bool) or not isinstance(self.warps, int) or self.warps < 1:
            raise InputError(f"the number of warps must be a whole number from 1, not {self.warps!r}")
        if self.warps > MAX_WARPS:
            raise InputError(f"{self.warps} warps exceed the limit of {MAX_WARPS}")


def drop_uncounted_queues(machine: Machine, programs: Collection[Program]) -> Machine:
    """Return the machine, without its queues if no lapses of any of these programs are known.

    A machine whose queues would keep an instruction waiting has an assumption that says so.
    """
    if not machine.queues or any(program.lapses for program in programs):
        return machine
    found = replace(machine, queues=())
    if all(program.units.isdisjoint(queue.units) for queue in machine.queues for program in programs):
        return found
    # a machine that is no GPU would leave them out without a word
    return replace(found, caveats=tuple(dict.fromkeys((*machine.caveats, assumptions.lapses_left_out()))))


@dataclass(frozen=True, slots=True)
class Instance:
    """Groups of warps, all different in their programs, that start together on one machine.

    Warps are listed by group, within a group by block, and within a block in the order of the launch. `number_of_warp`
    returns the number of each of them on the SM (docs/model.md, "The number of a warp").

    Args:
        groups: the warps of all blocks together.
        machine: what executes them. Its queues count only where lapses of some program are known, as those of machine
            code are; else the machine becomes the one without queues.
        blocks: the number of thread blocks, all alike, over which every group is spread evenly. A warp waits at a
            barrier for the unfinished warps of its block. Without barriers blocks make no difference, and any number
            becomes 1.
        order: the group number of each warp of a block, in the order of the launch. () means that the groups follow one
            another, and every order that says no more than that becomes (). Instances that differ only in an order that
            has no effect on their machine are equal.

    Raises:
        InputError: no warp, a class that the machine lacks, a program in two groups, a group that cannot be spread
            over the blocks, an order that is not one of the warps of a block, or sizes past the limits.
    """

    groups: tuple[Group, ...]
    machine: Machine = PAPER
    blocks: int = 1
    order: tuple[int, ...] = field(default=(), compare=False)
    effective_order: tuple[int, ...] = field(default=(), init=False, repr=False)
    """`order` if it has an effect, because the numbers of warps decide to which partitions they belong; else ()."""

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("an instance needs at least one warp")
        if len({group.program for group in self.groups}) != len(self.groups):  # engines count warps by program
            raise InputError("two groups have the same program: merge them into one")
        if isinstance(self.blocks, bool) or not isinstance(self.blocks, int) or not 1 <= self.blocks <= MAX_WARPS:
            raise InputError(f"the number of blocks must be a whole number 1..{MAX_WARPS}, not {self.blocks!r}")
        if uneven := [group.warps for group in self.groups if group.warps % self.blocks]:
            raise InputError(f"{uneven[0]} warps cannot be spread evenly over {self.blocks} blocks")
        if not isinstance(self.machine, Machine):
            raise InputError(
                f"a machine is a Machine, such as Machine.of({{'C': 1, 'L': 1}}), not {shown(self.machine)}"
            )
        known = self.machine.capacities
        if missing := sorted(set().union(*(group.program.units for group in self.groups)) - set(known)):
            have = ", ".join(f"{unit}={capacity}" for unit, capacity in known.items())
            raise InputError(f"machine {self.machine.name!r} ({have}) has no units of class {', '.join(missing)}")
        size = sum(group.warps * group.program.end for group in self.groups)
        if self.warps > MAX_WARPS or size > MAX_WARP_INSTRUCTIONS:
            raise InputError(
                f"{self.warps} warps with {size} instructions in all exceed the limits of"
                f" {MAX_WARPS} warps and {MAX_WARP_INSTRUCTIONS} warp-instructions"
            )
        # the size limits come first: the next check computes with all places
        self._check_cycles()
        if any(unit.name == DELAY and unit != UnitClass.of_delays(self.warps) for unit in self.machine.units):
            raise InputError(f"the class of delays needs a unit for each of {self.warps} warps")
        # from here on the values are made canonical, so that equal questions are equal values
        order = self._checked_order()
        if self.blocks > 1 and not self.has_barriers:
            order = (order or self._in_turn()) * self.blocks
            object.__setattr__(self, "blocks", 1)  # equal questions are equal values
        order = () if self.identical or order == self._in_turn() else order
        programs = [group.program for group in self.groups]
        object.__setattr__(self, "machine", drop_uncounted_queues(self.machine, programs))
        has_effect = self.machine.partitions > 1 and self.machine.assignment is WarpAssignment.MODULO
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "effective_order", order if has_effect else ())

    def _in_turn(self) -> tuple[int, ...]:
        return tuple(number for number, group in enumerate(self.groups) for _ in range(group.warps // self.blocks))

    def _checked_order(self) -> tuple[int, ...]:
        """Return the order that the constructor was given, after a check that it is one of the warps of a block.

        Raises:
            InputError: it is none.
        """
        order, crews = self.order, {n: group.warps // self.blocks for n, group in enumerate(self.groups)}
        is_order = isinstance(order, tuple) and all(type(group) is int for group in order)
        if not is_order or (order and Counter(order) != crews):
            has = ", ".join(f"{warps} of group {number}" for number, warps in islice(crews.items(), _MOST_SHOWN))
            more = ", ..." * (len(crews) > _MOST_SHOWN)
            raise InputError(
                f"an order names the group of each warp of a block, and a block has {has}{more}; it is not"
                f" {order!r:.60} (order=() stands for groups one after another)"
            )
        return order

    def _check_cycles(self) -> None:
        """Refuse an instance whose schedules are too long to be written down.

        Count stalls and latencies along the longest part of a path between two barriers, in every phase. A warp that
        could issue and does not meets a cycle in which some instruction takes a slot or holds a port. So by induction
        every instruction is issued, every result is there and every barrier opens no later than this sum up to there,
        and as many cycles as some instruction has held a port.
        """
        if self.machine.is_basic and not self.runs_ahead:
            return
        lowered, parts = LoweredMachine.of(self.machine), list[list[int]]()
        held = {unit: reservation.longest for unit, reservation in lowered.by_class.items()}
        for program in (group.program for group in self.groups):
            cycles = [max(timing.stall, timing.latency[1]) for timing in program.timings]
            parts.append(
                program.longest_parts(cycles or [lowered.latencies[place.unit][1] for place in program.places])
            )
        most = sum(max(phase) for phase in zip_longest(*parts, fillvalue=0))
        # in every cycle of a schedule some warp waits for its own latency, or else a port is held: both add up to a
        # limit
        most += sum(group.warps * group.program.heaviest(held) for group in self.groups)
        if most > MAX_CYCLES:
            raise InputError(
                f"schedules of up to {most} cycles exceed the limit of {MAX_CYCLES} cycles;"
                " ask about fewer warps, or shorter loops"
            )

    @classmethod
    def of(cls, program: Program | str, warps: int, machine: Machine = PAPER, *, blocks: int = 1) -> "Instance":
        """Return the instance of `warps` identical warps of one program or instruction string, in `blocks` blocks."""
        chosen = Program.chain(program) if isinstance(program, str) else program
        return cls((Group(chosen, warps),), machine, blocks)

    @classmethod
    def merged(
        cls, launched: Iterable[tuple[Program, int]], machine: Machine = PAPER, *, blocks: int = 1
    ) -> "Instance":
        """Return the warps of a launch, equal programs put together under all that they assume.

        Args:
            launched: the programs of the warps of a block in the order of the launch, each with the number of warps in
                a row that run it, summed over all blocks. The groups are in order of appearance.
            machine: the machine that executes them.
            blocks: the number of blocks over which each of these numbers of warps is spread evenly.

        Raises:
            InputError: a number of warps that cannot be spread over the blocks, or what no instance can be.

        >>> compute, load = Program.chain("CC"), Program.chain("L")
        >>> instance = Instance.merged([(compute, 1), (load, 2), (compute, 1)])
        >>> [group.warps for group in instance.groups], instance.order
        ([2, 2], (0, 1, 1, 0))
        """
        checked = [(group.program, group.warps) for group in (Group(program, warps) for program, warps in launched)]
        groups = merge_groups(checked)
        number = {program: number for number, (program, _) in enumerate(groups)}
        order: list[int] = []
        # only a program that occurs twice makes an order that the groups do not have
        if len(groups) < len(checked) and isinstance(blocks, int) and blocks > 0:  # else it is the order of the groups
            for group, run in groupby(checked, key=lambda each: number[each[0]]):
                each, left = divmod(sum(warps for _, warps in run), blocks)
                if left:
                    raise InputError(f"{each * blocks + left} warps cannot be spread evenly over {blocks} blocks")
                order += [group] * each
        return cls(tuple(Group(program, warps) for program, warps in groups), machine, blocks, tuple(order))

    @property
    def features(self) -> dict[Feature, str]:
        """Return the features of this instance beyond equal strings over C and L on a basic machine, with words."""
        found = self.machine.features
        # an issue width that never binds is no feature: whoever does not know it may still answer
        if self.issue_width is None:
            found.pop(Feature.ISSUE_WIDTH, None)
        units = set().union(*(group.program.units for group in self.groups))
        if others := sorted(units - {"C", "L"}):
            found[Feature.CLASSES] = f"classes besides C and L ({', '.join(others)})"
        if DELAY in units and self.machine.issue_width is not None:
            found[Feature.DELAYS] = Feature.DELAYS.value
        if not self.identical:
            found[Feature.GROUPS] = Feature.GROUPS.value
        if not all(group.program.is_chain for group in self.groups):
            found[Feature.CHOICES] = Feature.CHOICES.value
        if self.has_barriers:
            found[Feature.BARRIERS] = Feature.BARRIERS.value
        if self.runs_ahead:
            found[Feature.STALL_ON_USE] = Feature.STALL_ON_USE.value
        if any(group.program.has_lapses for group in self.groups):
            found[Feature.LAPSES] = Feature.LAPSES.value
        if self.used_queues:
            found[Feature.QUEUES] = Feature.QUEUES.value
        return found

    @property
    def is_multiprocessor(self) -> bool:
        """Return whether it has what the sub-partitions of a real SM bring, such as warps that run ahead."""
        return self.runs_ahead or self.machine.is_divided

    def beyond(self, known: Features) -> tuple[str, ...]:
        """Return words for the features that are not among the known ones; empty if all are known."""
        return tuple(words for feature, words in self.features.items() if feature not in known)

    def require(self, known: Features, who: str) -> None:
        """Refuse an instance with a feature that the caller, `who`, does not know and would misread.

        >>> Instance.of("CL", 2).require(frozenset(), "the table")

        Raises:
            UnsupportedError: the instance has another feature.
        """
        if beyond := self.beyond(known):
            # a bound for any scheduler holds for this one, so leaving the promise out is sound where that suffices
            remedy = "" if self.relaxed.beyond(known) else f"; {_WITHOUT_PROMISE}"
            raise UnsupportedError(f"{who} does not know {', '.join(beyond)}{remedy}")

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Return the assumptions under which the worst case of the instance is one of its source."""
        return self.assumed(start_together=True)

    def assumed(self, *, start_together: bool) -> tuple[Assumption, ...]:
        """Return the assumptions for blocks that start together, or for blocks that come to an SM one by one."""
        found = dict.fromkeys(self._of_machine(start_together=start_together))
        return tuple(found | dict.fromkeys(note for group in self.groups for note in group.program.assumptions))

    def _of_machine(self, *, start_together: bool) -> Iterator[Assumption]:
        machine = self.machine
        untimed, own = self._untimed, self._own_latencies()
        yield assumptions.machine(
            machine.name,
            ", ".join(map(str, machine.units)),
            machine.issue_width,
            is_basic=machine.is_basic,
            runs_ahead=self.runs_ahead,
            kind=AssumptionKind.MACHINE if untimed else self._latencies_of_nobody(own),
        )
        yield assumptions.execution(start_together=start_together)
        is_fair, lapses = machine.scheduler is SchedulerPromise.FAIR, self.has_lapses
        yield assumptions.scheduler(is_fair=is_fair, is_basic=machine.is_basic, lapses=lapses)
        yield from (note for note in machine.caveats if note.kind is AssumptionKind.CAVEAT)
        if untimed:
            yield assumptions.untimed_classes(machine.name, untimed)
        yield from (note for note in machine.caveats if note.kind is not AssumptionKind.CAVEAT)
        if any(unit.uses for unit in machine.units):
            held = ", ".join(f"{unit.name}+{use}" for unit in machine.units for use in unit.uses)
            yield assumptions.resources(", ".join(map(str, machine.resources)), held)
        if machine.partitions > 1:
            shared = [ports.name for ports in machine.ports if ports.shared]
            is_modulo = machine.assignment is WarpAssignment.MODULO
            yield assumptions.partitions(machine.partitions, shared, is_modulo=is_modulo)
        if self.runs_ahead:
            yield assumptions.stall()
        if own:
            yield assumptions.own_latencies(own)
        elif not machine.fixed_latencies and not self.by_operation:
            yield assumptions.any_latency()
        if self.has_barriers:
            yield assumptions.barriers(self.blocks if start_together else None)
        if lapses:
            yield assumptions.known_lapses("SM" if start_together else "GPU")
        # a machine that is no GPU, such as that of the paper, has no schedulers that lapse
        if machine.capabilities and not all(group.program.lapses for group in self.groups):
            yield assumptions.lapses_left_out()
        if self.used_queues and (self.has_barriers or not start_together):
            yield assumptions.queues_left_out([queue.name for queue in self.used_queues])

    def _latencies_of_nobody(self, own: str) -> AssumptionKind:
        if self.by_operation or any(unit.latency != ONE_CYCLE for unit in self.machine.units):
            return AssumptionKind.MACHINE
        if own:
            return AssumptionKind.UNSTATED_LATENCY
        held = max(reservation.longest for reservation in LoweredMachine.of(self.machine).by_class.values())
        return AssumptionKind.ONE_CYCLE if held == 1 else AssumptionKind.UNIT_LATENCY

    @property
    def _untimed(self) -> tuple[str, ...]:
        """Return the classes whose latency is not known and counts as one cycle here."""
        if not self.runs_ahead:
            return self.machine.untimed
        # a class whose instructions all state a latency of their own needs no latency of the class
        by_class = {unit for unit, _, is_own in self._latencies() if not is_own and not self.by_operation}
        return tuple(unit for unit in self.machine.untimed if unit in by_class)

    def _own_latencies(self) -> str:
        own = (
            []
            if self.by_operation
            else sorted((unit, *latency) for unit, latency, is_own in self._latencies() if is_own)
        )
        words = [f"{unit} {least}..{most}" if least < most else f"{unit} {least}" for unit, least, most in own]
        return ", ".join(words if len(words) <= _MOST_SHOWN else [*words[:_MOST_SHOWN], "..."])

    def _latencies(self) -> set[tuple[str, tuple[int, int], bool]]:
        """Return the class and latency range of every instruction, and whether the range differs from its class."""
        of_class = {unit.name: (unit.latency.least, unit.latency.most) for unit in self.machine.units}
        found: set[tuple[str, tuple[int, int], bool]] = set()
        for program in (group.program for group in self.groups):
            found |= {(unit, of_class[unit], False) for unit in program.units if not program.timings}
            for place, timing in zip(program.places, program.timings, strict=False):
                if place.unit != BARRIER:
                    found.add((place.unit, timing.latency, timing.latency != of_class[place.unit]))
        return found

    @property
    def has_lapses(self) -> bool:
        """Return whether schedulers may lapse, lines may be late, or instructions may wait in queues."""
        return bool(self.features.keys() & LAPSES)

    @property
    def without_lapses(self) -> "Instance":
        """Return the same warps on schedulers that never lapse, with all lines there, and without queues.

        Its schedules are schedules of this instance, so its lower bounds hold here. Its upper bounds may not.
        """
        if not self.has_lapses:
            return self
        groups = tuple(replace(group, program=group.program.lapsing(())) for group in self.groups)
        return replace(self, groups=groups, machine=replace(self.machine, queues=()))

    @property
    def used_queues(self) -> tuple[UnitQueue, ...]:
        """Return the queues through which some instruction goes."""
        units = frozenset[str]().union(*(group.program.units for group in self.groups))
        return tuple(queue for queue in self.machine.queues if not units.isdisjoint(queue.units))

    @property
    def counts_queues(self) -> bool:
        """Return whether its upper bounds count queues: where there are barriers, they leave them out."""
        return bool(self.used_queues) and not self.has_barriers

    @property
    def relaxed(self) -> "Instance":
        """Return the same warps under any scheduler.

        It has all schedules of this instance, so its upper bounds hold here.
        """
        if self.machine.scheduler is SchedulerPromise.ANY:
            return self
        return replace(self, machine=replace(self.machine, scheduler=SchedulerPromise.ANY))

    def __repr__(self) -> str:
        return f"Instance({self})"

    def __str__(self) -> str:
        """Return the warps and the machine on one line."""
        shown = [f"{group.warps} x {group.program}" for group in self.groups[:_MOST_SHOWN]]
        if others := sum(group.warps for group in self.groups[_MOST_SHOWN:]):
            shown.append(f"{others} x others")
        blocks = f" in {self.blocks} blocks" if self.blocks > 1 else ""
        return f"{' + '.join(shown)}{blocks} on machine {self.machine}"

    @property
    def warps(self) -> int:
        """Return all warps together."""
        return sum(group.warps for group in self.groups)

    @property
    def identical(self) -> bool:
        """Return whether all warps run the same program."""
        return len(self.groups) == 1

    @property
    def issue_width(self) -> int | None:
        """Return the issue width of the machine if it can bind. None means that there is no limit.

        The width cannot bind if it is no less than the warps of a partition, or than the ports of the classes that are
        used: in a cycle, each of them takes at most one instruction.

        >>> units = Machine.of({"C": 1, "L": 1}).units
        >>> [Instance.of("CL", 3, Machine("m", units, issue_width=width)).issue_width for width in (1, 2)]
        [1, None]
        """
        width = self.machine.issue_width
        used = set().union(*(group.program.units for group in self.groups)) - {DELAY}
        # partitions are filled evenly, so none has more warps than this
        warps = -(-self.warps // self.machine.partitions)
        if width is None or width >= min(warps, sum(self.machine.capacities[unit] for unit in used)):
            return None
        return width

    @property
    def fixed_latencies(self) -> bool:
        """Return whether the adversary has no latency to choose."""
        timings = (timing for group in self.groups for timing in group.program.timings)
        return self.machine.fixed_latencies and all(timing.latency[0] == timing.latency[1] for timing in timings)

    @property
    def runs_ahead(self) -> bool:
        """Return whether some warp waits for results only when it needs them."""
        return any(group.program.runs_ahead for group in self.groups)

    @property
    def by_operation(self) -> bool:
        """Return whether operations, and not classes, decide how long every instruction takes."""
        return all(
            any(note.kind is AssumptionKind.OPERATIONS for note in group.program.assumptions) for group in self.groups
        )

    @property
    def partition_of_warp(self) -> tuple[int, ...] | None:
        """Return the partition of every warp; None where the adversary chooses."""
        parts = self.machine.partitions
        if parts > 1 and self.machine.assignment is WarpAssignment.ANY:
            return None
        return tuple(number % parts for number in self.number_of_warp())

    def assignments(self) -> Iterator[tuple[int, ...]]:
        """Yield every way to spread the warps over the partitions, up to a renaming of partitions."""
        if (fixed := self.partition_of_warp) is not None:
            yield fixed
            return
        # evenly filled partitions have `least` or `least + 1` warps
        parts, least = self.machine.partitions, self.warps // self.machine.partitions

        def spread(chosen: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if len(chosen) == self.warps:
                yield chosen
                return
            larger = sum(size > least for size in sizes)
            # only the next unused partition is tried: the unused ones are alike
            for part in range(min(parts, max(chosen, default=-1) + 2)):
                # evenly: `warps % parts` of the partitions have one warp more than the others
                if sizes[part] < least or (sizes[part] == least and larger < self.warps % parts):
                    grown = (*sizes[:part], sizes[part] + 1, *sizes[part + 1 :])
                    yield from spread((*chosen, part), grown)

        yield from spread((), (0,) * parts)

    @property
    def has_barriers(self) -> bool:
        """Return whether some warp may wait at a barrier."""
        return any(group.program.has_barriers for group in self.groups)

    def block_of_warp(self) -> tuple[int, ...]:
        """Return the block number of every warp."""
        # every group is spread evenly over the blocks, block after block
        return tuple(warp * self.blocks // group.warps for group in self.groups for warp in range(group.warps))

    def number_of_warp(self) -> tuple[int, ...]:
        """Return the number of every warp on the SM: its place in its block, plus the warps of the blocks before it.

        >>> compute, load = Program.chain("C|C"), Program.chain("L|")
        >>> instance = Instance.merged([(compute, 2), (load, 2), (compute, 2)], blocks=2)
        >>> instance.number_of_warp()  # places 0 and 2 of both blocks run the first program, place 1 the second one
        (0, 2, 3, 5, 1, 4)
        """
        places: list[list[int]] = [[] for _ in self.groups]
        for place, group in enumerate(self.order or self._in_turn()):
            places[group].append(place)
        width = self.warps // self.blocks
        return tuple(block * width + place for own in places for block in range(self.blocks) for place in own)

    def group_of_warp(self) -> tuple[int, ...]:
        """Return the group number of every warp."""
        return tuple(number for number, group in enumerate(self.groups) for _ in range(group.warps))

    def programs(self) -> Iterator[Program]:
        """Yield the program of every warp, in order."""
        for group in self.groups:
            for _ in range(group.warps):
                yield group.program


_Answer = TypeVar("_Answer")
_Options = ParamSpec("_Options")
_AboutInstance = Callable[Concatenate[Instance, _Options], _Answer]


def requires(
    known: Features, who: str
) -> Callable[[_AboutInstance[_Options, _Answer]], _AboutInstance[_Options, _Answer]]:
    """Let a function refuse an instance, its first argument, that has a feature beyond these (`Instance.require`)."""

    def guard(function: _AboutInstance[_Options, _Answer]) -> _AboutInstance[_Options, _Answer]:
        @wraps(function)
        def guarded(instance: Instance, /, *args: _Options.args, **options: _Options.kwargs) -> _Answer:
            instance.require(known, who)
            return function(instance, *args, **options)

        return guarded

    return guard
