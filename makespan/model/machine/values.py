"""A machine as a value: the classes of execution units of one streaming multiprocessor."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from reprlib import Repr
from types import MappingProxyType
from typing import NamedTuple

from makespan.host.errors import InputError, did_you_mean
from makespan.model.assumptions import Assumption
from makespan.model.feature import SCHEDULER, Feature
from makespan.model.machine.known_lapses import KnownLapses, UnitQueue

MAX_CAPACITY = 1024
MAX_INTERVAL = 1024
MAX_LATENCY = 100_000
MAX_NAME = 80
MAX_SMS = 4096
MAX_ISSUE_WIDTH = 1024
MAX_PARTITIONS = 64
MAX_RESOURCES = 64
MAX_TEXT = 500
_MOST_BITS = 64
_MAX_WARPS = 65_536
_RESOURCE = re.compile(r"[a-z][a-z0-9-]{0,31}")
_CAPABILITY = re.compile(r"([1-9][0-9]?)\.([0-9])", re.ASCII)

DELAY = "~"
"""The class of a place that is a cycle of delay. It is never contended and needs no issue slot (docs/model.md)."""


class _ShortRepr(Repr):
    """A `repr` for values from outside, cut to one line. Python refuses to print very long integers."""

    def repr_int(self, x: int, level: int) -> str:  # Python limits the digits that it prints
        return super().repr_int(x, level) if x.bit_length() <= _MOST_BITS else f"a number of {x.bit_length()} bits"


shown = _ShortRepr().repr


def check_whole(value: object, what: str, most: int) -> None:
    """Accept a whole number in 1..`most`. A truth value is not accepted.

    Raises:
        InputError: anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number, not {shown(value)}")
    if not 1 <= value <= most:
        raise InputError(f"{what} must be 1..{most}, not {shown(value)}")


def printable(given: object, what: str) -> str:
    """Return the text if it can be shown on a terminal.

    Raises:
        InputError: no text, an empty or long one, or one with letters that do not print.
    """
    if not isinstance(given, str):
        raise InputError(f"{what} must be a text, not {shown(given)}")
    if not given.isprintable() or not 1 <= len(given) <= MAX_TEXT:
        raise InputError(f"{what} must be 1..{MAX_TEXT} printable characters on one line, not {shown(given)}")
    return given


def capability(text: str) -> int:
    """Return a compute capability as architectures write it, such as 86 for "8.6".

    Raises:
        InputError: another text.

    >>> capability("8.6"), capability("12.0")
    (86, 120)
    """
    match = _CAPABILITY.fullmatch(text)
    if match is None:
        raise InputError(f"a compute capability is written like '8.6', not {shown(text)}")
    return int(match[1] + match[2])


def class_name(value: str) -> str:
    """Return the name of a class of units if it is one that users may give.

    Raises:
        InputError: anything but one capital letter.
    """
    if not (len(value) == 1 and "A" <= value <= "Z"):
        raise InputError(f"a unit class is one capital letter A-Z, not {shown(value)}")
    return value


def resource_name(value: object, what: str = "a resource") -> str:
    """Return the name of a resource, or of `what`, if it is one that users may give.

    Raises:
        InputError: anything but a small letter, then up to 31 small letters, digits and hyphens.
    """
    if not isinstance(value, str) or not _RESOURCE.fullmatch(value):
        raise InputError(f"{what} is named by small letters, digits and hyphens, not {shown(value)}")
    return value


@dataclass(frozen=True, slots=True)
class Latency:
    """A range of cycles from the issue of an instruction until its warp may issue the next one.

    If `least < most`, the adversary chooses for every executed instruction. A short latency can be the worse one.
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        check_whole(self.least, "a latency", MAX_LATENCY)
        check_whole(self.most, "a latency", MAX_LATENCY)
        if self.least > self.most:
            raise InputError(f"a range of latencies is [least, most], not [{self.least}, {self.most}]")

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}..{self.most}"


ONE_CYCLE = Latency(1, 1)


@dataclass(frozen=True, slots=True)
class PortResource:
    """A resource: ports that instructions of several classes hold besides those of their class.

    Args:
        name: a small letter, then small letters, digits and hyphens.
        capacity: how many warp-instructions can hold a port at the same time.
        shared: whether all partitions share these ports; else each partition has as many of its own.
    """

    name: str
    capacity: int
    shared: bool = False

    def __post_init__(self) -> None:
        resource_name(self.name)
        check_whole(self.capacity, f"capacity of {self.name}", MAX_CAPACITY)

    def __str__(self) -> str:
        return f"{self.name}={self.capacity}" + (" shared" if self.shared else "")


@dataclass(frozen=True, slots=True)
class Use:
    """A use of one port of one of these resources, which is held for `least`..`most` cycles from the issue on.

    The adversary chooses the resource and the cycles for every executed instruction. A port that is held for less time
    can be the worse choice.
    """

    resources: tuple[str, ...]
    least: int = 1
    most: int = 1

    def __post_init__(self) -> None:
        if not self.resources or len(set(self.resources)) != len(self.resources):
            raise InputError(f"an instruction uses one of different resources, not {shown(self.resources)}")
        check_whole(self.least, f"interval on {self.resources[0]}", MAX_INTERVAL)
        check_whole(self.most, f"interval on {self.resources[0]}", MAX_INTERVAL)
        if self.least > self.most:
            raise InputError(f"a range of intervals is [least, most], not [{self.least}, {self.most}]")

    @property
    def is_fixed(self) -> bool:
        """Return whether the use leaves the adversary no choice."""
        return len(self.resources) == 1 and self.least == self.most

    def __str__(self) -> str:
        cycles = str(self.least) if self.least == self.most else f"{self.least}..{self.most}"
        return f"{' or '.join(self.resources)}/{cycles}"


@dataclass(frozen=True, slots=True)
class UnitClass:
    """A class of units that serve the same instructions, with `capacity` ports.

    Args:
        name: one capital letter A-Z.
        capacity: the number of ports, each held by one warp-instruction at a time.
        interval: the cycles for which an instruction holds its port, from its issue on.
        latency: the cycles from its issue until its warp may go on.
        shared: whether all partitions share these ports; else each partition has as many of its own.
        uses: the resources that an instruction holds besides its port.
    """

    name: str
    capacity: int
    interval: int = 1
    latency: Latency = ONE_CYCLE
    shared: bool = False
    uses: tuple[Use, ...] = ()

    def __post_init__(self) -> None:
        if self.name != DELAY:
            class_name(self.name)
        check_whole(self.capacity, f"capacity of {self.name}", MAX_CAPACITY if self.name != DELAY else _MAX_WARPS)
        check_whole(self.interval, f"interval of {self.name}", MAX_INTERVAL)
        # a tuple would do in some places and fail in others, so it is refused at the door
        if not isinstance(self.latency, Latency):
            raise InputError(f"latency of {self.name} must be a Latency, not {shown(self.latency)}")

    @classmethod
    def of_delays(cls, warps: int) -> "UnitClass":
        """Return the class of delay places for this number of warps, with one unit for each."""
        return cls(DELAY, warps)

    def __str__(self) -> str:
        every = "" if self.interval == 1 else f"/{self.interval}"
        waits = "" if self.latency == ONE_CYCLE else f"@{self.latency}"
        return f"{self.name}={self.capacity}{every}{waits}" + "".join(f"+{use}" for use in self.uses)


OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "fp32": "32-bit floating-point add, multiply, multiply-add, compare, minimum",
        "int": "integer add, logic, shift, compare, select and move",
        "int-multiply": "integer multiply and multiply-add",
        "predicate": "what writes a predicate register, whatever it compares",
        "convert": "conversions between types",
        "bit-count": "counts of bits, leading zeros, reversal",
        "sfu": "reciprocal, square root, sine, exponential and so on",
        "fp16": "16-bit floating point, packed or not",
        "fp64": "64-bit floating point",
        "tensor": "matrix multiply-accumulate",
        "shuffle": "exchange of values between the lanes of a warp",
        "vote": "votes and matches over the lanes of a warp",
        "special": "reads of special registers, such as who a thread is",
        "branch": "branches, calls, returns and exits",
        "barrier": "barriers of the block and of the warp",
        "fence": "memory fences",
        "constant": "loads from constant memory, with an address for each lane",
        "parameter": "loads of parameters of the kernel, from one address for all lanes",
        "shared": "shared memory",
        "global": "global memory, and generic addresses",
        "local": "local memory",
        "atomic": "atomic operations on global memory",
        "texture": "textures and surfaces",
        "operands": "reading of operands that machine code counts, whatever the instruction",
        "sleep": "time asleep, which the launch decides and no machine knows: only a user can say how long it is",
    }
)
"""The operations that a machine can time. Instruction sets sort their opcodes under these names."""

OPERANDS = "operands"
"""The operation that tells until when an instruction of machine code has read its operands."""

SLEEP = "sleep"
"""The operation that a machine file may leave out: then the class of branches serves it."""


@dataclass(frozen=True, slots=True)
class TimedOperation:
    """An operation, such as `fp32`, with the class that serves it and its latency.

    Args:
        name: one of `OPERATIONS`.
        unit: the class of its instructions on this machine.
        least: the least cycles from the issue until the result is there.
        most: the most cycles. None means that no source knows them, so that no proof can rest on them.
        is_verified: whether a source confirms them. A verdict that rests on unconfirmed ones says so.
    """

    name: str
    unit: str
    least: int
    most: int | None
    is_verified: bool = True

    def __post_init__(self) -> None:
        if self.name not in OPERATIONS:
            near = did_you_mean(self.name, OPERATIONS)
            raise InputError(f"unknown operation {shown(self.name)}{near or ';'} known: {', '.join(OPERATIONS)}")
        class_name(self.unit)
        Latency(self.least, self.least if self.most is None else self.most)


class WarpAssignment(StrEnum):
    """The rule that assigns warps to partitions: warp w to partition w mod K, or evenly as the adversary chooses.

    Evenly means that the sizes of two partitions differ by at most one warp.
    """

    MODULO = "modulo"
    ANY = "any"


class Pool(NamedTuple):
    """The ports of a class or resource that serve the same warps: those of one partition, or of all (None)."""

    name: str
    partition: int | None
    capacity: int


class SchedulerPromise(StrEnum):
    """The promise of a scheduler besides work conservation (docs/model.md): none, or that it is fair.

    A *fair* scheduler issues no warp before another one that could issue in its stead, has been ready for longer, and
    whose last issue was longer ago (a warp that has never issued counts as longest ago).
    """

    ANY = "any"
    FAIR = "fair"


@dataclass(frozen=True)
class Machine:
    """One streaming multiprocessor: unit classes, resources, partitions, and what its scheduler promises.

    Args:
        name: the name in reports.
        units: the unit classes, all different.
        issue_width: the most warp-instructions issued per cycle, all classes together. None means no limit.
        caveats: the respects in which hardware of that name is known to differ. Every result lists them.
        scheduler: the promise of its scheduler.
        partitions: the number of schedulers, each with warps, units and an issue width of its own.
        assignment: the rule that assigns warps to partitions.
        resources: the resources that `UnitClass.uses` names.
        operations: the class and the latency of each operation. Empty means that none is timed.
        untimed: the classes of a GPU whose latency no source knows. One cycle stands for it.
        capabilities: the compute capabilities of its GPUs, as `capability` returns them. Empty means that they are not
            known.
        lapses: what is known of the lapses of its schedulers. None means that nothing is, and that none are counted.
        queues: the queues before its units, which may be shorter or missing.
    """

    name: str
    units: tuple[UnitClass, ...]
    issue_width: int | None = None
    caveats: tuple[Assumption, ...] = field(default=(), compare=False, repr=False)
    scheduler: SchedulerPromise = SchedulerPromise.ANY
    partitions: int = 1
    assignment: WarpAssignment = WarpAssignment.ANY
    resources: tuple[PortResource, ...] = ()
    operations: tuple[TimedOperation, ...] = field(default=(), compare=False, repr=False)
    untimed: tuple[str, ...] = field(default=(), compare=False, repr=False)
    capabilities: tuple[int, ...] = field(default=(), compare=False, repr=False)
    lapses: KnownLapses | None = field(default=None, compare=False, repr=False)
    queues: tuple[UnitQueue, ...] = ()

    def __post_init__(self) -> None:
        # a machine is checked once, where it is made: everything behind relies on it
        names = [unit.name for unit in self.units]
        if not names:
            raise InputError(f"machine {self.name!r} has no unit class; give at least one, such as C=1")
        if len(set(names)) != len(names):
            raise InputError(f"machine {self.name!r} names a unit class twice: {', '.join(names)}")
        if self.issue_width is not None:
            check_whole(self.issue_width, f"issue width of machine {self.name!r}", MAX_ISSUE_WIDTH)
        if not isinstance(self.scheduler, SchedulerPromise):
            raise InputError(
                f"scheduler of machine {self.name!r} must be a SchedulerPromise, not {shown(self.scheduler)}"
            )
        check_whole(self.partitions, f"partitions of machine {self.name!r}", MAX_PARTITIONS)
        if not isinstance(self.assignment, WarpAssignment):
            raise InputError(
                f"assignment of machine {self.name!r} must be an WarpAssignment, not {shown(self.assignment)}"
            )
        self._check_resources([resource.name for resource in self.resources])
        for operation in self.operations:
            if operation.unit not in names:
                raise InputError(f"machine {self.name!r} has no class {operation.unit}, which serves {operation.name}")
        queued = [unit for queue in self.queues for unit in queue.units]
        if len(set(queued)) < len(queued) or len({queue.name for queue in self.queues}) < len(self.queues):
            raise InputError(f"machine {self.name!r} has queues with different names and different classes")
        for queue in self.queues:
            if unknown := sorted(set(queue.units) - set(names)):
                raise InputError(f"machine {self.name!r} has no class {unknown[0]}, which goes through {queue.name}")

    def _check_resources(self, known: list[str]) -> None:
        if len(known) > MAX_RESOURCES or len(set(known)) != len(known):
            raise InputError(f"machine {self.name!r} has up to {MAX_RESOURCES} resources with different names")
        for unit in self.units:
            # an instruction holds one port of a pool at most: the replay and the proofs count on it
            used = [name for use in unit.uses for name in use.resources]
            if missing := sorted(set(used) - set(known)):
                raise InputError(f"machine {self.name!r} has no resource {missing[0]}, which class {unit.name} uses")
            if len(set(used)) != len(used):
                raise InputError(f"class {unit.name} of machine {self.name!r} uses a resource twice")

    @classmethod
    def of(cls, capacities: Mapping[str, int], name: str | None = None) -> "Machine":
        """Return a basic machine from capacities. Without a name it is `paper` if it is that machine, else `custom`.

        >>> Machine.of({"C": 2, "L": 1}).capacities
        {'C': 2, 'L': 1}
        """
        if name is None:
            name = "paper" if capacities == _PAPER else "custom"
        return cls(name, tuple(UnitClass(class_name(unit), capacity) for unit, capacity in capacities.items()))

    def __str__(self) -> str:
        width = () if self.issue_width is None else (f"issue width {self.issue_width}",)
        promise = () if self.scheduler is SchedulerPromise.ANY else (f"{self.scheduler} scheduler",)
        parts = () if self.partitions == 1 else (f"{self.partitions} partitions",)
        return f"{self.name} ({', '.join((*map(str, self.ports), *width, *parts, *promise))})"

    def is_alike(self, other: "Machine") -> bool:
        """Return whether nothing differs, what `==` leaves out included, as programs are made of it.

        >>> PAPER == replace(PAPER, untimed=("C",)), PAPER.is_alike(replace(PAPER, untimed=("C",)))
        (True, False)
        """
        return all(getattr(self, each.name) == getattr(other, each.name) for each in fields(self))

    @property
    def capacities(self) -> dict[str, int]:
        """Return the number of ports by class name, in the order of the machine."""
        return {unit.name: unit.capacity for unit in self.units}

    @property
    def is_divided(self) -> bool:
        """Return whether an instruction may need ports besides those of one pool for each class."""
        return self.partitions > 1 or any(unit.uses for unit in self.units)

    @property
    def fixed_latencies(self) -> bool:
        """Return whether the adversary has no latency to choose."""
        return all(unit.latency.least == unit.latency.most for unit in self.units)

    @property
    def fixed_uses(self) -> bool:
        """Return whether the adversary has no resource and no interval to choose."""
        return all(use.is_fixed for unit in self.units for use in unit.uses)

    def serving(self, units: Collection[str]) -> "Machine":
        """Return the part of this machine that serves these classes: themselves, their resources and their queues."""
        classes = tuple(unit for unit in self.units if unit.name in units)
        used = {name for unit in classes for use in unit.uses for name in use.resources}
        resources = tuple(resource for resource in self.resources if resource.name in used)
        # a queue stays one where only some of its classes are used
        queued = [queue._replace(units=tuple(unit for unit in queue.units if unit in units)) for queue in self.queues]
        queues = tuple(queue for queue in queued if queue.units)
        return replace(self, units=classes, resources=resources, operations=(), queues=queues)

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Return all ports: those of the classes in their order, then those of the resources, each by partition.

        >>> units = UnitClass("C", 1), UnitClass("L", 1, shared=True)
        >>> [(pool.name, pool.partition) for pool in Machine("halves", units, partitions=2).pools]
        [('C', 0), ('C', 1), ('L', None)]
        """
        private = range(self.partitions)
        return tuple(
            Pool(ports.name, partition, ports.capacity)
            for ports in self.ports
            for partition in ((None,) if ports.shared or self.partitions == 1 else private)
        )

    @cached_property
    def number_of_pool(self) -> tuple[Mapping[str, int], ...]:
        """Return, for every partition, the numbers in `pools` of the pools that serve its warps, by name."""
        return tuple(
            {pool.name: number for number, pool in enumerate(self.pools) if pool.partition in (None, partition)}
            for partition in range(self.partitions)
        )

    @property
    def ports(self) -> tuple[UnitClass | PortResource, ...]:
        """Return all that has ports: the classes in their order, then the resources."""
        return (*self.units, *self.resources)

    @property
    def features(self) -> dict[Feature, str]:
        """Return the features of this machine beyond a basic one, with words for each.

        >>> list(Machine("half", (UnitClass("C", 1, interval=2),), issue_width=1).features.values())
        ['an issue width of 1', 'intervals (C=2)']
        """
        found = {} if self.issue_width is None else {Feature.ISSUE_WIDTH: f"an issue width of {self.issue_width}"}
        if intervals := [f"{unit.name}={unit.interval}" for unit in self.units if unit.interval != 1]:
            found[Feature.INTERVALS] = f"intervals ({', '.join(intervals)})"
        if latencies := [f"{unit.name}={unit.latency}" for unit in self.units if unit.latency != ONE_CYCLE]:
            found[Feature.LATENCIES] = f"latencies ({', '.join(latencies)})"
        if self.scheduler is not SchedulerPromise.ANY:
            found[Feature.SCHEDULER] = f"a {self.scheduler} scheduler"
        if self.partitions > 1:
            found[Feature.PARTITIONS] = f"{self.partitions} partitions"
        if used := [f"{unit.name}+{use}" for unit in self.units for use in unit.uses]:
            found[Feature.RESOURCES] = f"resources besides the ports of classes ({', '.join(used)})"
        return found

    @property
    def fetches(self) -> tuple[str, ...]:
        """Return those of `FETCHES` whose lines lie in a cache that this machine knows."""
        return () if self.lapses is None else self.lapses.fetches

    @property
    def is_basic(self) -> bool:
        """Return whether every instruction takes one cycle in every respect and nothing limits issue but the ports."""
        # a promise of the scheduler removes schedules but changes no time
        return not set(self.features) - SCHEDULER


# the base case of the paper, under which its bound M^L + M^C was published
_PAPER = {"C": 1, "L": 1}
PAPER = Machine.of(_PAPER)
"""Source: Berezovskyi, Bletsas and Andersson, ECRTS 2012, base case: one core and one load/store unit."""


def check_name(name: object, what: str) -> None:
    """Accept a short printable name.

    Raises:
        InputError: anything else.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise InputError(f"the name of {what} must be 1..{MAX_NAME} printable characters, not {shown(name)}")
