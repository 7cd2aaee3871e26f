"""The smallest terms of a warp that moves or stays, against all of its moves one by one."""

import random

import pytest

from makespan.model.certificate import Potential, PotentialTable
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.verify import potential_terms
from makespan.verify.refusal import ProofSteps

CLASSES = ("C", "L", "S", "T")


def drawn(draw: random.Random) -> tuple[Instance, Potential, list[PotentialTable]]:
    """Up to three groups over four classes and delays; z is of one of them, and may be alone there."""
    programs = []
    for _ in range(draw.randint(1, 3)):
        end = draw.randint(1, 7)
        places = [
            ProgramPlace(draw.choice((*CLASSES, DELAY)), tuple(sorted({at + 1, draw.randint(at + 1, end)})))
            for at in range(end)
        ]
        programs.append((Program(tuple(places)), draw.choice((1, 1, 2))))
    warps = sum(warps for _, warps in programs)
    units = (*(UnitClass(name, 1) for name in CLASSES), UnitClass.of_delays(warps))
    instance = Instance.merged(programs, Machine("m", units))
    last = draw.randrange(len(instance.groups))

    def row(group: int) -> tuple[int, ...]:
        return tuple(draw.randint(-99, 99) for _ in range(instance.groups[group].program.end))

    tables = [PotentialTable(tuple(map(row, range(len(instance.groups)))), row(last), 0) for _ in range(3)]
    return instance, Potential(last, CLASSES, (1,) * 4, 0, tuple(tables), ()), tables


def least(
    instance: Instance, potential: Potential, before: PotentialTable, after: PotentialTable
) -> list[dict[tuple[str, str], int]]:
    """By the classes in which a move of another warp, and of z, begins and ends, or "stays"."""
    found: list[dict[tuple[str, str], int]] = [{}, {}]
    for number, group in enumerate(instance.groups):
        holds_z = number == potential.last_group
        places = group.program.places
        for others, first, then in (
            *[(True, before.others[number], after.others[number])] * (group.warps > holds_z),
            *[(False, before.last, after.last)] * holds_z,
        ):
            for p, (unit, successors) in enumerate(places):
                falls = {("stays", p): first[p] - then[p]} if unit != DELAY else {}
                for q in successors:
                    behind = (places[q].unit, then[q]) if q < len(places) else ("ends", 0)
                    falls[behind[0], q] = first[p] - behind[1]
                for (where, _), fall in falls.items():
                    own = found[not others]
                    own[unit, where] = min(own.get((unit, where), fall), fall)
    return found


@pytest.mark.parametrize("most", [potential_terms.MOST_REMEMBERED, 0], ids=["remembered", "forgotten"])
def test_least_terms_are_those_of_all_moves(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(potential_terms, "MOST_REMEMBERED", most)
    draw = random.Random(8)
    for _ in range(100):
        instance, potential, tables = drawn(draw)
        asked = potential_terms.Terms(instance, potential, tables, ProofSteps(10**6))
        numbers = {**asked.number, "stays": potential_terms.STAY, "ends": potential_terms.FINISH}
        for before, after in ((0, 1), (1, 1), (1, 2), (2, 0), (0, 1)):
            truth = least(instance, potential, tables[before], tables[after])
            for own, moves, found in zip(truth, (asked.others, asked.last), asked.least(before, after), strict=True):
                assert len(found) == len(own)
                assert {move: found[numbers[move[0]], numbers[move[1]]] for move in own} == own
                listed = sorted(move for some in moves.values() for move in some)
                assert listed == sorted(move for move in found if move[1] != potential_terms.STAY)
                assert all(move[0] == x for x, some in moves.items() for move in some)
                assert moves.keys() == set(asked.number.values())
            assert most or len(asked._columns) == 1
