"""An instance as the packed search wants it: numbered places, and the layout of a state in a few words of 64 bits."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, combinations_with_replacement, product
from typing import NamedTuple

import numpy as np

from makespan.host.compiled import Ints, Words, ints
from makespan.model.feature import PROGRAMS
from makespan.model.instance import Group, Instance
from makespan.model.schedule import WarpMove
from makespan.proof.engines.search import remaining
from makespan.proof.engines.search import states_compiled_store as layout

KNOWS = PROGRAMS

MOST_WORDS = 16
"""States of more words are refused: there would be far too many states anyway."""

MOST_CELLS = 1 << 22
"""Entries of the largest scratch table."""

_MOST_DIGITS = 4
"""By so many digits states are sorted, which tells nearly all of them apart."""

MOST_LAYERS = 1 << 26
_MOST_SEGMENT_BITS = 20
_WORD_BITS = 64


def obstacle(instance: Instance) -> str | None:
    """Return why the instance cannot be searched; None if it can."""
    if beyond := instance.beyond(KNOWS):
        return f"it does not know {', '.join(beyond)}"
    words = _word_count(instance)
    if words > MOST_WORDS:
        return f"a state takes {words} words of 64 bits, more than {MOST_WORDS}"
    if (instructions := layers(instance)) > MOST_LAYERS:
        return f"{instructions} instructions in all, more than {MOST_LAYERS}"
    if (bits := _high_bits(instance)) > _MOST_SEGMENT_BITS:
        return f"up to 2^{bits} numbers of instructions left at a time, more than 2^{_MOST_SEGMENT_BITS}"
    _, options, most = sizes(instance)
    if options * (most + 1) * words > MOST_CELLS:
        return f"{options} choices for up to {most} warps in one cycle"
    return None


def sizes(instance: Instance) -> tuple[int, int, int]:
    """Return the most pairs and options of a state, and the most warps that use one option."""
    places = [place for group in instance.groups for place in group.program.places]
    pairs = min(instance.warps, len(places))
    degree = max(len(place.successors) for place in places)
    return pairs, pairs * degree, min(instance.warps, max(instance.machine.capacities.values()))


class _StateField(NamedTuple):
    """Part of a state: `bits` wide; for warp fields `end` is the number of instructions of the string, else 0."""

    bits: int
    base: int
    end: int


def _fields(instance: Instance) -> Iterator[_StateField]:
    """Yield every group in the shorter way: one field per warp, which only strings can have, or one per place."""
    base = 0
    for group in instance.groups:
        places, warps = group.program.end, group.warps
        if _by_warp(group):
            yield from (_StateField(places.bit_length(), base, places) for _ in range(warps))
        else:
            yield from (_StateField(warps.bit_length(), base + place, 0) for place in range(places))
        base += places


def _by_warp(group: Group) -> bool:
    places, warps = group.program.end, group.warps
    return group.program.is_chain and warps * places.bit_length() <= places * warps.bit_length()


def _low_bits(instance: Instance) -> int:
    """Return the bits of the value, which is at least 1, and at most one more than the instructions of all warps."""
    return (layers(instance) + 1).bit_length()


def _high_bits(instance: Instance) -> int:
    """Return the bits of the segment: enough to tell layers apart that are open at the same time."""
    largest: dict[str, int] = {}
    spread = 0
    for group in instance.groups:
        height = group.program.counts(None, max)
        for number, place in enumerate(group.program.places):
            fall = height[number] - min(height[successor] for successor in place.successors)
            largest[place.unit] = max(largest.get(place.unit, 0), fall)
        heights = [height[start] for start in group.program.starts]
        spread += group.warps * (max(heights) - min(heights))
    # a cycle lowers the layer by what its instructions fall by at most, so no open layer is further below
    most = sum(min(instance.warps, instance.machine.capacities[unit]) * fall for unit, fall in largest.items())
    return min(max(most, spread), layers(instance)).bit_length()


def layers(instance: Instance) -> int:
    """Return the most instructions of all warps together; as many cycles suffice."""
    return sum(group.warps * group.program.most() for group in instance.groups)


def _word_count(instance: Instance) -> int:
    bits = (
        _low_bits(instance)
        + _high_bits(instance)
        + sum(
            min(warps * places.bit_length(), places * warps.bit_length())
            if group.program.is_chain
            else places * warps.bit_length()
            for group in instance.groups
            for places, warps in [(group.program.end, group.warps)]
        )
    )
    if bits > _WORD_BITS * MOST_WORDS:  # before the fields are listed, of which there may be millions
        return -(-bits // _WORD_BITS)
    return _field_positions(instance)[-1][0] + 1


def _field_positions(instance: Instance) -> list[tuple[int, int]]:
    """Return word and shift of every field; no field lies in two words."""
    found, word, shift, room = [], 0, _low_bits(instance), _WORD_BITS - _high_bits(instance)
    for field in _fields(instance):
        if shift + field.bits > room:  # the rest of the word stays empty, so no carry leaves a field
            word, shift, room = word + 1, 0, _WORD_BITS
        found.append((word, shift))
        shift += field.bits
    return found


@dataclass(frozen=True, slots=True)
class Problem:
    """The instance as the inner loops want it; the codes of group g begin at `begin[g]`.

    `counters` says of each code whose warps are counted in which word of a state and from which bit on.
    """

    instance: Instance
    begin: tuple[int, ...]
    automaton: layout.PackedInstance
    words: int
    counters: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, instance: Instance) -> "Problem":
        """Number the places, and lay out the state."""
        begin = tuple(accumulate((group.program.end for group in instance.groups), initial=0))
        fields, placed = list(_fields(instance)), _field_positions(instance)
        rows = [
            [word, shift, (1 << one.bits) - 1, one.base, one.end]
            for one, (word, shift) in zip(fields, placed, strict=True)
        ]
        words, high = placed[-1][0] + 1, _WORD_BITS - _high_bits(instance)
        counters = {base: (word, shift) for word, shift, _, base, end in rows if not end}
        plain = _automaton(instance, begin)
        automaton = plain._replace(
            fields=np.array(rows),
            steps=_steps(plain, rows, counters, words, high),
            digits=_digits(rows),
            low=np.uint64(_low_bits(instance)),
            high=np.uint64(high),
        )
        return cls(instance, begin, automaton, words, counters)

    def starts(self) -> Iterator[Counter[int]]:
        """Return every state in which the warps can begin."""
        ways = (
            combinations_with_replacement([base + start for start in group.program.starts], group.warps)
            for base, group in zip(self.begin, self.instance.groups, strict=False)
        )
        return (Counter(chain.from_iterable(codes)) for codes in product(*ways))

    def words_of(self, state: Counter[int], value: int) -> Words:
        """Return a start, with its value."""
        words = [value, *[0] * (self.words - 1)]
        words[0] += (-self.layer(state) << int(self.automaton.high)) % (1 << _WORD_BITS)
        for code, count in state.items():
            if code in self.counters:  # the one start of a string is place 0, where fields of warps are 0 too
                word, shift = self.counters[code]
                words[word] |= count << shift
        return np.array(words, dtype=np.uint64)

    def layer(self, state: Counter[int]) -> int:
        """Return the most instructions that are left."""
        return sum(count * int(self.automaton.height[code]) for code, count in state.items())

    def place(self, code: int) -> tuple[int, int]:
        """Return group and place of a code."""
        group = int(np.searchsorted(self.begin, code, side="right")) - 1
        return group, code - self.begin[group]

    def moves(self, choice: layout.LeafChoice, number: int) -> list[WarpMove]:
        """Return the cycle that a leaf stands for."""
        moves = []
        for option in choice.options[:number].tolist():
            group, place = self.place(int(choice.pairs[option[layout.PAIR], layout.PAIR_CODE]))
            target, warps = option[layout.TARGET], option[layout.TAKE]
            successor = self.instance.groups[group].program.end if target < 0 else self.place(target)[1]
            if warps:
                moves.append(WarpMove(group, place, successor, warps))
        return moves

    def begun(self, size: int, choice: layout.LeafChoice) -> list[dict[int, int]]:
        """Return how many warps stand where, per group, in the state whose pairs are filled in."""
        begun: list[dict[int, int]] = [{} for _ in self.instance.groups]
        for code, warps, *_ in choice.pairs[:size].tolist():
            group, place = self.place(code)
            begun[group][place] = warps
        return begun


def _automaton(instance: Instance, begin: tuple[int, ...]) -> layout.PackedInstance:
    programs = [group.program for group in instance.groups]
    number = {unit: at for at, unit in enumerate(remaining.classes(instance))}
    edges = [
        [base + s if s < program.end else -1 for s in place.successors]
        for base, program in zip(begin, programs, strict=False)
        for place in program.places
    ]
    return layout.PackedInstance(
        unit=ints([number[place.unit] for program in programs for place in program.places]),
        sigma=ints([min(instance.warps, instance.machine.capacities[unit]) for unit in number]),
        first=ints(list(accumulate(map(len, edges), initial=0))),
        successors=ints([code for targets in edges for code in targets]),
        height=ints([h for program in programs for h in program.counts(None, max)[:-1]]),
        fields=ints([]),
        steps=np.zeros((0, 0), dtype=np.uint64),
        digits=np.zeros((0, 3), dtype=np.int64),
        low=np.uint64(0),
        high=np.uint64(0),
        warps=instance.warps,
    )


def _steps(
    automaton: layout.PackedInstance,
    fields: list[list[int]],
    counters: dict[int, tuple[int, int]],
    words: int,
    high: int,
) -> Words:
    """Return what one warp adds to a state, modulo 2^64: along every edge, then in its own field, which counts up."""
    codes = np.repeat(np.arange(len(automaton.unit)), np.diff(automaton.first)).tolist()
    steps = []
    for code, target in zip(codes, automaton.successors.tolist(), strict=True):
        fall = automaton.height[code] - (automaton.height[target] if target >= 0 else 0)
        # the segment has the layer with its sign changed, so it grows by what the layer falls by
        step = [int(fall) << high, *[0] * (words - 1)]
        for moved, sign in ((code, -1), (target, 1)):
            if moved in counters:
                word, shift = counters[moved]
                step[word] += sign << shift
        steps.append(step)
    for word, shift, *_ in fields:
        step = [1 << high, *[0] * (words - 1)]
        step[word] += 1 << shift
        steps.append(step)
    return np.array([[word % (1 << _WORD_BITS) for word in step] for step in steps], dtype=np.uint64).T.copy()


def _digits(fields: list[list[int]]) -> Ints:
    """Return word, shift and mask of the most significant digits of a state, the last digit first."""
    digits: list[list[int]] = []
    for word, shift, mask, *_ in reversed(fields):
        if (
            not digits
            or digits[-1][0] != word
            or digits[-1][1] + digits[-1][2].bit_length() - shift > layout.DIGIT_BITS
        ):
            if len(digits) == _MOST_DIGITS:
                break
            digits.append([word, shift, mask & ((1 << layout.DIGIT_BITS) - 1)])
        else:
            digits[-1][1:] = [shift, (1 << (digits[-1][1] + digits[-1][2].bit_length() - shift)) - 1]
    if len(digits) % 2:
        digits.append([digits[-1][0], digits[-1][1], 0])  # all alike: sorted is as before
    return np.array(digits[::-1], dtype=np.int64)
