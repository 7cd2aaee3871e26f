"""The worst case against the pessimistic bound M^L + M^C, over the number of warps and one quantity of the machine.

A point that was not computed stays unknown: nothing is interpolated, and every number has its evidence.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from makespan.host.errors import InputError
from makespan.model.assumptions import Assumption, AssumptionKind
from makespan.model.conditions import together
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.result import Bounds, Result, Status
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.portfolio import fastest_known

NOT_COMPUTED = "not computed"
_LATENCIES = frozenset({AssumptionKind.ONE_CYCLE, AssumptionKind.UNIT_LATENCY, AssumptionKind.UNSTATED_LATENCY})
"""The conditions about missing latencies. They may differ from point to point, because an axis may vary latencies."""


class MachineQuantity(StrEnum):
    """A quantity of a machine that can be varied. All but the issue width belong to one class."""

    CAPACITY = "capacity"
    INTERVAL = "interval"
    LATENCY = "latency"
    ISSUE_WIDTH = "issue-width"


@dataclass(frozen=True, slots=True)
class MachineAxis:
    """A quantity of the machine and its rising values. `unit` is the class, or None for the issue width."""

    quantity: MachineQuantity
    values: tuple[int, ...]
    unit: str | None = None

    def __post_init__(self) -> None:
        if not self.values or list(self.values) != sorted(set(self.values)):
            raise InputError(f"the values of {self.name} must rise")
        if (self.unit is None) != (self.quantity is MachineQuantity.ISSUE_WIDTH):
            raise InputError("the issue width is of no class, and everything else is of one")

    @property
    def name(self) -> str:
        """Return the name as options have it: `issue-width`, `L.latency`, or `L` for a capacity."""
        if self.unit is None:
            return str(self.quantity)
        return self.unit if self.quantity is MachineQuantity.CAPACITY else f"{self.unit}.{self.quantity}"

    @property
    def label(self) -> str:
        """Return the name in words, with its unit."""
        return {
            MachineQuantity.CAPACITY: f"capacity of {self.unit} (ports)",
            MachineQuantity.INTERVAL: f"interval of {self.unit} (cycles)",
            MachineQuantity.LATENCY: f"latency of {self.unit} (cycles)",
            MachineQuantity.ISSUE_WIDTH: "issue width (instructions per cycle)",
        }[self.quantity]

    def machine(self, base: Machine, value: int) -> Machine:
        """Return `base` with this value. It keeps its caveats, and its name says what was changed.

        Raises:
            InputError: `base` has no such class, or no machine can have this value.
        """
        if self.unit is not None and self.unit not in base.capacities:
            known = ", ".join(base.capacities)
            raise InputError(f"{self.name}: machine {base.name!r} has no units of class {self.unit}; it has {known}")
        name = f"{base.name} with {self.name}={value}"
        if self.unit is None:
            return replace(base, name=name, issue_width=value)
        units = tuple(self._changed(unit, value) if unit.name == self.unit else unit for unit in base.units)
        return replace(base, name=name, units=units)

    def _changed(self, unit: UnitClass, value: int) -> UnitClass:
        if self.quantity is MachineQuantity.LATENCY:
            return replace(unit, latency=Latency(value, value))
        if self.quantity is MachineQuantity.INTERVAL:
            return replace(unit, interval=value)
        return replace(unit, capacity=value)


@dataclass(frozen=True, slots=True)
class BestCase:
    """The proven interval of the shortest schedule, in cycles, and the evidence of its two sides.

    `least-possible` is the work that no schedule avoids, `schedule` one that was replayed; `search` and `phases` are
    what an engine proved of the whole or of the parts between barriers.
    """

    bounds: Bounds
    lower_evidence: str
    upper_evidence: str

    @classmethod
    def of(cls, result: Result) -> "BestCase | None":
        """Return the best case of a result. None means that it was not asked for."""
        if result.best_case is None:
            return None
        asked = result.without_lapses or result  # with lapses a schedule without them is the shortest that is known
        best, searched = result.best_case, "phases" if asked.phases else "search"
        known = fastest_known(asked.instance, asked.witness, Limits())
        is_work = asked is not result or best.lower == known.lower
        lower = "least-possible" if is_work else searched
        return cls(best, lower, "schedule" if best.upper == known.upper else searched)


@dataclass(frozen=True, slots=True)
class PointResult:
    """The proven numbers of one point, in cycles, as in `Result`."""

    worst: Bounds
    upper_evidence: str
    pessimistic: int
    best_case: BestCase | None
    engine: str
    seconds: float
    assumptions: tuple[Assumption, ...]

    @classmethod
    def of(cls, result: Result) -> "PointResult":
        """Return the numbers of a result, without its schedule."""
        return cls(
            result.bounds,
            result.upper_evidence,
            result.pessimistic,
            BestCase.of(result),
            result.backend,
            result.seconds,
            result.assumptions,
        )

    @property
    def excess(self) -> tuple[float, float]:
        """Return how far M^L + M^C is above the worst case, in percent of it: proven at least, and at most."""
        return self.worst.exceeded_by(self.pessimistic)


@dataclass(frozen=True, slots=True)
class ComparisonPoint:
    """One instance of a comparison. `value` is that of the axis, and `found` is None until it is computed."""

    instance: Instance
    value: int | None = None
    found: PointResult | None = None

    @property
    def warps(self) -> int:
        """Return the number of warps of all blocks."""
        return self.instance.warps

    @property
    def status(self) -> str:
        """Return `exact`, `bounded` or `not computed`."""
        return NOT_COMPUTED if self.found is None else str(self.found.worst.status)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Points for rising numbers of warps and, with an axis, for each value of it.

    Args:
        name: the source of the program.
        machine: the machine before anything was varied.
        interrupted: whether the user stopped the work. Points may also be missing because of a limit.
    """

    name: str
    machine: Machine
    axis: MachineAxis | None
    points: tuple[ComparisonPoint, ...]
    interrupted: bool = False

    def __post_init__(self) -> None:
        if not self.points:
            raise InputError("a comparison needs at least one number of warps")

    @property
    def found(self) -> tuple[PointResult, ...]:
        """Return the results of the points that were computed."""
        return tuple(point.found for point in self.points if point.found is not None)

    @property
    def warps(self) -> tuple[int, ...]:
        """Return the numbers of warps, rising."""
        return tuple(sorted({point.warps for point in self.points}))

    @property
    def all_exact(self) -> bool:
        """Return whether every point is computed and exact."""
        return all(point.status == Status.EXACT for point in self.points)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Return the assumptions that all computed points share, in the order of the first point."""
        each = [found.assumptions for found in self.found]
        return tuple(note for note in each[0] if all(note in notes for notes in each)) if each else ()

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the conditions of all points, computed or not.

        A condition about latencies of one cycle is among them only if it holds for all points.
        """
        instances = [point.instance for point in self.points]
        each = [replace(one, machine=replace(one.machine, name=self.machine.name)).assumptions for one in instances]
        has = [{note.kind for note in notes} & _LATENCIES for notes in each]
        common = has[0].intersection(*has)
        if not common and all(kinds & {AssumptionKind.ONE_CYCLE, AssumptionKind.UNIT_LATENCY} for kinds in has):
            common = {AssumptionKind.UNIT_LATENCY}  # where each instruction takes one cycle, each latency is one, too
        return together([note for note in notes if note.kind not in _LATENCIES - common] for notes in each)


def plan_points(instances: Iterable[Instance], axis: MachineAxis | None) -> tuple[ComparisonPoint, ...]:
    """Return the points to compute, the fewest warps first: then a limit cuts off what takes longest.

    Raises:
        InputError: the machine has no such class, a value makes an instance too large, or warps that run ahead have
            latencies of their own.
    """
    several = sorted(instances, key=lambda instance: instance.warps)
    if (
        axis is not None
        and axis.quantity is MachineQuantity.LATENCY
        and any(instance.runs_ahead for instance in several)
    ):
        raise InputError(f"{axis.name}: these warps run ahead, and their instructions have latencies of their own")
    if axis is None:
        return tuple(ComparisonPoint(instance) for instance in several)
    return tuple(
        ComparisonPoint(replace(instance, machine=axis.machine(instance.machine, value)), value)
        for instance in several
        for value in axis.values
    )


def compute_points(
    points: Sequence[ComparisonPoint], *, seconds: float, whole: Limits, best_case: bool
) -> Iterator[ComparisonPoint]:
    """Yield all points in order, each solved within `seconds` and all together within `whole`.

    The point in which `whole` ends has what was proven by then; those after it are not computed.
    """
    for number, point in enumerate(points, start=1):
        # points after the limit stay unknown instead of being solved badly
        if whole.expired:
            yield point
            continue
        here = f"point {number} of {len(points)}: {_point_words(point)}"
        whole.progress(here)
        limits = Limits(
            min(seconds, whole.remaining), whole.memory_bytes, whole=whole, progress=_progress_after(here, whole)
        )
        result = solve(point.instance, best_case=best_case, limits=limits)
        yield replace(point, found=PointResult.of(result))


def _progress_after(here: str, whole: Limits) -> Callable[[str], None]:
    return lambda line: whole.progress(f"{here}: {line}")


def _point_words(point: ComparisonPoint) -> str:
    warps = f"{point.warps} warp{'s' * (point.warps != 1)}"
    return warps if point.value is None else f"{warps} on machine {point.instance.machine.name}"
