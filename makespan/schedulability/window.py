"""How long a path of operations takes, counted in one window from the moment at which the first of them is ready.

In every tick of the window an operation of the path runs, or its launch is under way, or it waits for what runs on its
resource. So what others can run there in so long a window counts once for the whole path, not once for every operation
of it, and nothing counts that the path itself excludes: what comes before or after it in the same activation.

Proof: docs/schedulability_theory.md, theorem 8.
"""

from collections.abc import Sequence

from makespan.schedulability import busy
from makespan.schedulability.ahead import Stages, waits
from makespan.schedulability.arrivals import Steps
from makespan.schedulability.known import Known
from makespan.schedulability.operations import Operation
from makespan.schedulability.waits import Way, least_length


class Windows:
    """Lengths of windows, as far as bounds are `known` so far; each grows with them."""

    def __init__(self, known: Known, horizon: int) -> None:
        self.known, self.graph, self.horizon = known, known.graph, horizon
        self.needs: dict[tuple[int, ...], tuple[str, ...]] = {}
        self.lengths: dict[tuple[int, ...], tuple[tuple[int, ...], int | None]] = {}

    def length(self, path: tuple[int, ...], steps: Steps) -> int | None:
        """From when the first operation of a path is ready until the end of the last, at most; None without a bound.

        It is computed anew only where the bounds of a family have changed that has to do with it.

        Raises:
            OutOfStepsError: it takes longer than allowed.
        """
        operations = [self.graph.operations[number] for number in path]
        if path not in self.needs:
            beside = [task for place in {o.place for o in operations} for task in self.graph.residents[place]]
            self.needs[path] = tuple({self.graph.family[task.name] for task in (operations[0].task, *beside)})
        state = tuple(self.known.version[head] for head in self.needs[path])
        before = self.lengths.get(path)
        if before is None or before[0] != state:
            before = self.lengths[path] = state, self._length(operations, steps)
        return before[1]

    def _length(self, path: Sequence[Operation], steps: Steps) -> int | None:
        places: dict[str, list[Operation]] = {}
        for operation in path:
            places.setdefault(operation.place, []).append(operation)
        stages = {place: Stages(place, there, path[0]) for place, there in places.items()}
        fixed = sum(operation.gap for operation in path[1:])
        ways = {place: way for place, there in stages.items() if (way := self._way(there, len(path))) is not None}
        found = None
        if len(ways) == len(places):
            found = least_length(fixed, tuple(ways.values()), self.horizon, steps)
        first = path[0].place
        others = [way for place, way in ways.items() if place != first]
        is_least = found == fixed + sum(operation.wcet for operation in path)
        if is_least or len(others) < len(places) - 1:
            return found
        more = busy.length(self.known, stages[first], fixed, others, self.horizon, steps)
        return min((length for length in (found, more) if length is not None), default=None)

    def _way(self, stages: Stages, count: int) -> Way | None:
        """On one resource; None where nothing bounds it."""
        spans = None if count == 1 else self._spans(stages.operations)
        found = tuple(waits(self.known, stages))
        if spans is None and not found:
            return None
        return Way(sum(operation.wcet for operation in stages.operations), spans, found)

    def _spans(self, stages: Sequence[Operation]) -> int | None:
        """What the operations take one by one."""
        found = 0
        for operation in stages:
            span = self.known.span[operation.number]
            if span is None:
                return None
            found += span
        return found
