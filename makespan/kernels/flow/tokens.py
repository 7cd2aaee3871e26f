"""The tokens of an automaton whose warps run ahead, without those that make no difference.

A place awaits only what may be pending when a warp comes to it, and sets only what a place behind it may await. What
else counts at the end of the warp (it ends when its last result is there) is one token for all. Neither changes when
any warp can issue, or end. Places that have become equal are one, and tokens are numbered in the order of the places.
"""

from collections.abc import Iterator, Mapping, Sequence, Set

from makespan.host.errors import UnsupportedError
from makespan.kernels.flow.automaton import Automaton
from makespan.model.program import MAX_TOKENS_OF_PLACE, InstructionTiming, ProgramPlace

MOST_WORK = 20_000_000
"""Tokens that are looked at, over all places."""

UNREAD = -1
"""Stands for all results that are not awaited."""


def drop_needless_tokens(made: Automaton, results: Set[int]) -> Automaton:
    """Return the same warps with no more tokens than matter.

    Args:
        results: the tokens for which a warp waits at its end; the others are dropped if they are not awaited.

    Raises:
        UnsupportedError: too much work, or a place that needs too many tokens.
    """
    awaits = list(_awaits(made))
    sets = list(_sets(made, awaits, results))
    order = dict.fromkeys(token for at in range(len(made.places)) for token in (*sorted(awaits[at]), *sorted(sets[at])))
    numbers = {token: number for number, token in enumerate(order)}
    timings = [
        timing._replace(awaits=_number_tokens(awaits[at], numbers), sets=_number_tokens(sets[at], numbers))
        for at, timing in enumerate(made.timings)
    ]
    return _merge_equal_places(made, timings)


def _number_tokens(tokens: Set[int], numbers: Mapping[int, int]) -> tuple[int, ...]:
    if len(tokens) > MAX_TOKENS_OF_PLACE:
        raise UnsupportedError(
            f"an instruction awaits or sets {len(tokens)} results, and the limit is {MAX_TOKENS_OF_PLACE};"
            " --dependences blocking needs no more than one"
        )
    return tuple(sorted(numbers[token] for token in tokens))


class _TokenWaves:
    """Sets of tokens on their way from place to place; its last taker gets a set itself, others get copies."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[int]] = {}
        self._work = 0

    def take(self, place: int) -> set[int]:
        return self._waiting.pop(place, set())

    def give(self, tokens: set[int], targets: Sequence[int]) -> None:
        for number, target in enumerate(targets, start=1):
            if target in self._waiting:
                self._count(len(tokens))
                self._waiting[target] |= tokens
            elif number < len(targets):
                self._count(len(tokens))
                self._waiting[target] = set(tokens)
            else:
                self._waiting[target] = tokens

    def _count(self, tokens: int) -> None:
        self._work += tokens
        if self._work > MOST_WORK:
            raise UnsupportedError(
                "too many results are pending on too many paths: lower the loop bounds, fix one path with --take or"
                " --trace, or ask for --dependences blocking"
            )


def _awaits(made: Automaton) -> Iterator[set[int]]:
    """Yield for every place the tokens that it awaits and that an earlier place may have left pending."""
    waves = _TokenWaves()
    for at, (place, timing) in enumerate(zip(made.places, made.timings, strict=True)):
        pending = waves.take(at)
        awaited = {token for token in timing.awaits if token in pending}  # others were never set on any way here
        yield awaited
        pending -= awaited  # what was awaited is there, and need not be awaited again
        if timing.latency[1] > 1:  # a result after one cycle is there when the next instruction issues
            pending.update(timing.sets)
        waves.give(pending, place.successors)


def _sets(made: Automaton, awaits: Sequence[Set[int]], results: Set[int]) -> list[set[int]]:
    """Return for every place the tokens that it sets, `UNREAD` for results that no later place may await."""
    before: list[list[int]] = [[] for _ in range(len(made.places) + 1)]
    for at, place in enumerate(made.places):
        for after in place.successors:
            before[after].append(at)
    waves, found = _TokenWaves(), list[set[int]]()
    for at in range(len(made.places) - 1, -1, -1):
        live, timing = waves.take(at), made.timings[at]
        is_felt = timing.latency[1] > 1
        wanted = {token if token in live else UNREAD for token in timing.sets if token in live or token in results}
        found.append(wanted if is_felt else set())
        live |= awaits[at]
        waves.give(live, before[at])
    return found[::-1]


def _merge_equal_places(made: Automaton, timings: Sequence[InstructionTiming]) -> Automaton:
    end = len(made.places)
    numbers: dict[tuple[str, InstructionTiming, tuple[int, ...]], int] = {}
    behind: list[set[int]] = []
    became = {end: -1}
    for at in range(end - 1, -1, -1):  # backwards, so that successors are merged first
        unit, successors = made.places[at]
        key = unit, timings[at], tuple(sorted({became[after] for after in successors}))
        became[at] = numbers.setdefault(key, len(numbers))
        if len(behind) < len(numbers):  # a place that is like no later one
            behind.append(set())
        behind[became[at]].update(made.instructions[at])
    last = len(numbers) - 1
    places = tuple(ProgramPlace(unit, tuple(sorted(last - after for after in afters))) for unit, _, afters in numbers)[
        ::-1
    ]
    return made._replace(
        places=places,
        starts=tuple(sorted({last - became[start] for start in made.starts})),
        instructions=tuple(tuple(sorted(together)) for together in behind[::-1]),
        timings=tuple(timing for _, timing, _ in numbers)[::-1],
    )
