"""How long a path of operations takes, counted in one window from the moment at which the first of them is ready.

In every tick of the window an operation of the path runs, or its launch is under way, or it waits for what runs on its
resource. So what others can run there in so long a window counts once for the whole path, not once for every operation
of it, and nothing counts that the path itself excludes: what comes before or after it in the same activation.

Proof: docs/schedulability_theory.md, theorem 8.
"""

from collections.abc import Sequence

from makespan.deadlines import busy
from makespan.deadlines.ahead import PathStages, stage_waits
from makespan.deadlines.arrivals import StepBudget
from makespan.deadlines.known import KnownBounds
from makespan.deadlines.operations import TaskOperation, urgency
from makespan.deadlines.waits import ResourceTime, least_length


class PathWindows:
    """Lengths of windows, as far as bounds are `known` so far; each grows with them."""

    def __init__(self, known: KnownBounds, horizon: int) -> None:
        self.known, self.graph, self.horizon = known, known.graph, horizon
        self.needs: dict[tuple[int, ...], tuple[str, ...]] = {}
        self.busy: dict[tuple[int, ...], int] = {}
        self.lengths: dict[tuple[int, ...], tuple[tuple[int, ...], int | None]] = {}

    def at_least(self, path: tuple[int, ...]) -> int | None:
        """Return a bound from below on `length`, as far as it is known; None where that has none."""
        if path in self.lengths:
            return self.lengths[path][1]
        operations = [self.graph.operations[number] for number in path]
        return sum(operation.wcet for operation in operations) + sum(operation.gap for operation in operations[1:])

    def length(self, path: tuple[int, ...], steps: StepBudget) -> int | None:
        """From when the first operation of a path is ready until the end of the last, at most; None without a bound.

        It is computed anew only where the bounds of a family have changed that has to do with it.

        Raises:
            OutOfStepsError: it takes longer than allowed.
        """
        operations = [self.graph.operations[number] for number in path]
        if path not in self.needs:
            self.needs[path] = self._needs(_by_resource(operations))
        state = tuple(map(self.known.version.__getitem__, self.needs[path]))
        before = self.lengths.get(path)
        if before is None or before[0] != state:
            least = 1 if before is None else before[1]
            before = self.lengths[path] = state, None if least is None else self._length(operations, least, steps)
        return before[1]

    def _needs(self, stages: Sequence[PathStages]) -> tuple[str, ...]:
        """Return the families, by their heads, whose bounds matter."""
        graph, found = self.graph, {self.graph.family[stages[0].first.task.name]}
        for there in stages:
            place = there.place
            # what is less urgent may come so often that it blocks each of several operations, but one only once
            is_ranked = graph.is_ranked(place) and (not graph.is_server(place) or len(there.operations) == 1)
            for task in graph.residents[place]:
                if not is_ranked or urgency(task) >= there.rank:
                    found.add(graph.family[task.name])
        return tuple(found)

    def _length(self, path: Sequence[TaskOperation], least: int, steps: StepBudget) -> int | None:
        stages = _by_resource(path)
        alone, fixed = sum(operation.wcet for operation in path), sum(operation.gap for operation in path[1:])
        ways = [self._way(there, len(path)) for there in stages]
        known, others = [[way for way in some if way is not None] for some in (ways, ways[1:])]
        found = None
        if len(known) == len(ways):
            found = least_length(fixed, known, self.horizon, steps, least)
        key = tuple(operation.number for operation in path)
        if len(others) < len(ways) - 1 or (found is not None and found <= self.busy.get(key, fixed + alone)):
            return found
        more = busy.busy_window_length(self.known, stages[0], fixed, others, self.horizon, steps)
        self.busy[key] = self.horizon + 1 if more is None else more
        return min((length for length in (found, more) if length is not None), default=None)

    def _way(self, stages: PathStages, count: int) -> ResourceTime | None:
        """On one resource; None where nothing bounds it."""
        spans = None if count == 1 else self._spans(stages.operations)
        found = tuple(stage_waits(self.known, stages))
        if spans is None and not found:
            return None
        return ResourceTime(sum(operation.wcet for operation in stages.operations), spans, found)

    def _spans(self, stages: Sequence[TaskOperation]) -> int | None:
        """What the operations take one by one."""
        found = 0
        for operation in stages:
            span = self.known.span[operation.number]
            if span is None:
                return None
            found += span
        return found


def _by_resource(path: Sequence[TaskOperation]) -> tuple[PathStages, ...]:
    """Return the operations on each resource, first those on that of the first."""
    places: dict[str, list[TaskOperation]] = {}
    for operation in path:
        places.setdefault(operation.place, []).append(operation)
    return tuple(
        PathStages(place, there, path[0], min(urgency(operation.task) for operation in there))
        for place, there in places.items()
    )
