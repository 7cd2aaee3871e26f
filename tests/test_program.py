"""Programs: strings and automata that a warp can execute."""

from collections.abc import Iterator

import pytest
from hypothesis import given

from makespan.host.errors import InputError
from makespan.model.assumptions import caveat
from makespan.model.program import InstructionOrigin, Program, ProgramPlace
from tests.strategies import automata, letters


def paths(program: Program) -> Iterator[str]:
    """The instruction string of every path."""
    ways: list[tuple[tuple[int, ...], str]] = [((start,), program.places[start].unit) for start in program.starts]
    while ways:
        way, string = ways.pop()
        for after in program.places[way[-1]].successors:
            if after == program.end:
                yield string
            else:
                ways.append(((*way, after), string + program.places[after].unit))


@given(letters("CLS"))
def test_a_chain_is_its_string(string: str) -> None:
    program = Program.chain(string)
    assert program.letters == str(program) == string
    assert program.units == set(string)
    assert program.end == program.most() == len(string)
    assert program.most("C") == string.count("C")
    assert list(paths(program)) == [string]


@given(automata("CLS"))
def test_most_is_the_maximum_over_all_paths(program: Program) -> None:
    strings = list(paths(program))
    assert program.most() == max(map(len, strings))
    for unit in "CLS":
        assert program.most(unit) == max(string.count(unit) for string in strings)


def test_a_choice_has_no_string() -> None:
    program = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))))
    assert program.letters is None
    assert not program.is_chain
    assert str(program) == "automaton of 2 places"


def test_a_place_that_may_be_skipped_at_the_start_is_a_choice() -> None:
    assert not Program((ProgramPlace("C", (1,)), ProgramPlace("L", (2,))), starts=(0, 1)).is_chain


def test_a_long_string_is_shortened_in_messages() -> None:
    assert str(Program.chain("C" * 61)) == "C" * 40 + "..." + "C" * 10 + " (61 letters)"
    assert str(Program.chain("C" * 60)) == "C" * 60


def test_where_a_program_comes_from_makes_no_difference_to_what_it_is() -> None:
    assert Program.chain("C", origins=[InstructionOrigin("k.ptx", 3)], assumptions=[caveat("a")]) == Program.chain("C")


@pytest.mark.parametrize(
    ("places", "starts", "message"),
    [
        ((), (0,), "needs at least one instruction"),
        ((ProgramPlace("C", ()),), (0,), r"place 0 has successors \(\); they must lie in 1..1"),
        ((ProgramPlace("C", (0,)),), (0,), r"place 0 has successors \(0,\)"),
        ((ProgramPlace("C", (2,)),), (0,), r"place 0 has successors \(2,\)"),
        ((ProgramPlace("C", (1, 1)),), (0,), r"place 0 has successors \(1, 1\)"),
        ((ProgramPlace("C", (1,)),), (), r"starts \(\) must be places 0..0"),
        ((ProgramPlace("C", (1,)),), (1,), r"starts \(1,\) must be places 0..0"),
        ((ProgramPlace("C", (2,)), ProgramPlace("C", (2,))), (0,), "place 1 is reached by no path"),
    ],
)
def test_an_automaton_goes_forward_from_a_start_to_the_end(
    places: tuple[ProgramPlace, ...], starts: tuple[int, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Program(places, starts)


def test_origins_belong_to_places() -> None:
    with pytest.raises(InputError, match="2 places but 1 origins"):
        Program.chain("CL", origins=[InstructionOrigin("k.ptx", 3)])
