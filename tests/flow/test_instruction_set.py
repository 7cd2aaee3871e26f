"""The wall between languages and control flow: another language comes through it, and no word of PTX is behind it."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import makespan.kernels.flow
from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import (
    AskedBound,
    Flow,
    GivenBound,
    Launch,
    LoopInfo,
    branch_infos,
    loop_infos,
    loop_nest,
    uniform_branches,
)
from makespan.kernels.ptx.isa import opcodes
from makespan.model.program import BARRIER, Program
from tests.flow import toy

COUNTED = """
        put i 0
top:    grow i 1
        fetch
        tell p i 3
        hop top if p
"""
PARTED = """
        who w
        tell q w {}
        hop odd if q
        work
        hop join
odd:    fetch
join:   meet
        work
        rest
"""


def words(program: Program) -> set[str]:
    """All that a warp may issue, letter by letter."""
    spelled: list[set[str]] = [set() for _ in program.places] + [{""}]
    for number in reversed(range(program.end)):
        unit, following = program.places[number]
        spelled[number] = {unit + word for place in following for word in spelled[place]}
    return {word for start in program.starts for word in spelled[start]}


def test_a_loop_is_counted_a_branch_parts_lanes_and_a_barrier_is_a_place() -> None:
    found = toy.warps(COUNTED + PARTED.format(16)).program()
    assert words(found) == {f"LLL{sides}{BARRIER}C" for sides in ("C", "L", "CL", "LC")}
    assert "loop top: exactly 3 iterations (inferred: from the code alone)" in map(str, found.assumptions)
    assert any(str(note).startswith("lanes part at line 9, run one side after the other") for note in found.assumptions)
    assert (found.origins[0].text, found.origins[0].line) == ("fetch", 3)


def test_what_all_lanes_decide_alike_has_one_side() -> None:
    assert words(toy.warps(PARTED.format(32)).program()) == {f"L{BARRIER}C"}
    assert words(toy.warps(PARTED.format(0)).program()) == {f"C{BARRIER}C"}


def test_warps_that_the_launch_tells_apart_have_programs_of_their_own() -> None:
    text = PARTED.format(32).replace("who", "where")
    found = toy.warps(text, Launch(block=(96, 1, 1))).programs()
    assert [(words(program), count) for program, count in found] == [({f"L{BARRIER}C"}, 1), ({f"C{BARRIER}C"}, 2)]
    with pytest.raises(InputError, match="the number of warps is not known: give block"):
        toy.warps(text).programs()


def test_a_branch_is_uniform_that_goes_by_a_value_all_lanes_share() -> None:
    text = "top: grow i 1\ntell p i 3\nhop top if p\nwork\nrest"
    assert uniform_branches(toy.flow(text), Launch()) == frozenset()
    assert uniform_branches(toy.flow("put i 0\n" + text), Launch()) == {1}


def test_a_loop_that_nothing_bounds_asks_for_a_bound() -> None:
    text = "top: fetch\nhop top if p\nwork\nrest"
    with pytest.raises(
        InputError, match=r"^drum.toy: kernel drum: 1 input is missing: a bound for the loop top \(drum.toy:1\) \("
    ):
        toy.warps(text).program()
    assert words(toy.warps(text, None, GivenBound("top", 2)).program()) == {"LC", "LLC"}
    found = toy.flow(text)
    asked = AskedBound("top", "top (drum.toy:1)")
    assert loop_infos(found, loop_nest(found), (), Launch()) == (LoopInfo("top", 1, None, None, 1, asks=(asked,)),)
    (branch,) = branch_infos(found)
    assert branch == (2, "hop top if p", "top", "top")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pray\nrest", "drum.toy:1: `pray` is answered by nobody"),
        (
            "hop out if p\ntop: work\nhop top\nout: rest",
            "drum.toy:2: from top on, kernel drum never ends: no way leads to a rest",
        ),
        (
            "who w\ntell q w 9\nhop odd if q\nweave\nodd: work\nrest",
            "drum.toy:4: lanes that part at line 3 may come to `weave` one after another, and then run interleaved;"
            " use meet, which all lanes execute together",
        ),
    ],
)
def test_refusals_are_in_the_words_of_the_language(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        toy.warps(text, None, *[GivenBound("top", 2)] * ("top" in text)).program()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: {"blocks": found.blocks[1:]}, "drum: the blocks do not hold every instruction in order"),
        (lambda found: {"blocks": (found.blocks[0]._replace(successors=(9,)), *found.blocks[1:])}, "leads to nowhere"),
        (lambda found: {"blocks": (found.blocks[0]._replace(successors=()), *found.blocks[1:])}, "leads to nowhere"),
        (lambda found: {"effects": found.effects[1:]}, "drum: 3 effects of 4 instructions"),
    ],
)
def test_a_flow_that_is_none_is_refused(change: Callable[[Flow], dict[str, object]], message: str) -> None:
    found = toy.flow("top: fetch\nhop top if p\nwork\nrest")
    with pytest.raises(ValueError, match=message):
        replace(found, **change(found))  # type: ignore[arg-type]


EVERYDAY = {"abs", "add", "and", "barrier", "call", "exit", "match", "max", "min", "not", "or", "set"}
"""Words of English and Python that happen to be opcodes, too."""


@pytest.mark.parametrize(
    "path", sorted(Path(makespan.kernels.flow.__file__).parent.glob("*.py")), ids=lambda path: path.stem
)
def test_no_opcode_and_no_register_of_ptx_stands_in_the_theory(path: Path) -> None:
    text = path.read_text("utf-8")
    names = {opcode.partition(".")[0] for opcode in opcodes()} - EVERYDAY
    assert names & set(re.findall(r"(?<![A-Za-z0-9_])[a-z][a-z0-9_]*(?![A-Za-z0-9_])", text)) == set()
    assert set(re.findall(r"[a-z0-9]+(?:\.[a-z0-9_]+)+", text)) & set(opcodes()) == set()
    assert re.findall(r"%[a-z_]+\.?[xyz]?\b", text) == []
