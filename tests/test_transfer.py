"""Loop bounds of PTX hold for the machine code that was compiled from it, in every execution; what is doubtful is not
transferred."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from makespan.cli import run
from makespan.host.errors import InputError
from makespan.kernels import ptx, sass
from makespan.kernels.flow import Flow, GivenBound, LoopInfo, loop_nest
from makespan.kernels.question import KernelQuestion, LaunchedKernel
from makespan.model.conditions import conditions
from makespan.model.machine import PAPER
from tests import ptx_interpreter, sass_interpreter
from tests.ptx_interpreter.values import Array

PTX = Path(__file__).parent / "sass" / "loops.ptx"
TEXT = PTX.read_text()


@pytest.fixture(scope="module")
def module() -> sass.SassModule:
    return sass.disassemble(sass.assemble_ptx(TEXT, "loops.ptx", "sm_86"), "loops.cubin", "loops.cubin")


def loops(module: sass.SassModule, name: str, **bounds: int) -> tuple[LoopInfo, ...]:
    """The loops of a kernel by address, under bounds by label of the PTX."""
    known = tuple(GivenBound(label, most) for label, most in bounds.items())
    return LaunchedKernel(KernelQuestion(module, loop_bounds=known), module, module.kernel(name)).loops


def maxima(infos: Iterable[LoopInfo]) -> list[int | None]:
    return [None if info.bound is None else info.bound.maximum for info in infos]


def test_a_loop_has_the_bound_of_the_ptx_loop_whose_tests_it_passes(module: sass.SassModule) -> None:
    assert maxima(loops(module, "rows", ROW=5, ENTRY=7)) == [5, 7]
    assert maxima(loops(module, "search", NEXT=9)) == [9]
    (info,) = loops(module, "search", NEXT=9)
    assert info.bound is not None
    assert not info.bound.exact
    assert info.origin == "PTX line 12"
    assert info.bound.source == (
        "transferred by the compiler's line table from PTX line 12: NEXT at most 9 iterations (command line)"
    )


def test_a_verdict_says_that_it_leans_on_a_transferred_bound(module: sass.SassModule) -> None:
    (info,) = loops(module, "search", NEXT=9)
    for key, is_transferred in (("NEXT", True), (info.label, False)):
        question = KernelQuestion(module, loop_bounds=(GivenBound(key, 9),))
        ((program, _),) = LaunchedKernel(question, module, module.kernel("search")).programs(PAPER)
        assert ("with loop bounds transferred from PTX" in conditions(program.assumptions)) is is_transferred


def test_without_a_bound_the_label_in_the_ptx_is_asked_for(module: sass.SassModule) -> None:
    (info,) = loops(module, "search")
    assert info.hint == (
        f"{info.label}: it is a copy of PTX loop NEXT (PTX line 12), whose bound nobody knows:"
        " give --loop-bound 'NEXT=N'"
    )


def test_loops_that_became_one_run_as_often_as_both_together(module: sass.SassModule) -> None:
    assert maxima(loops(module, "merged", OUTER=5, INNER=7)) == [35]
    (info,) = loops(module, "merged", OUTER=500, INNER=700)
    assert info.bound is None
    assert "a bound above 65536" in str(info.hint)


def test_a_loop_without_a_test_of_its_own_may_have_become_any(module: sass.SassModule) -> None:
    (info,) = loops(module, "elusive", AROUND=5, INSIDE=7)
    assert info.bound is None
    assert "can go around without a test of its own" in str(info.hint)


def test_a_loop_that_stands_for_one_instruction_is_no_copy(module: sass.SassModule) -> None:
    around, tries = loops(module, "tries", ADD=5)
    assert maxima([around, tries]) == [5, None]
    assert tries.hint == f"{tries.label}: no line of it is that of a test of a PTX loop"


def test_a_line_that_holds_more_than_a_test_is_no_evidence(module: sass.SassModule) -> None:
    assert maxima(loops(module, "line", ADD=5)) == [None, None]


def test_bounds_for_machine_code_win_and_may_be_told_by_line(module: sass.SassModule) -> None:
    (label,) = [info.label for info in loops(module, "search")]
    known = (GivenBound(label, 4), GivenBound("line:12", 9))
    kernel = LaunchedKernel(KernelQuestion(module, loop_bounds=known), module, module.kernel("search"))
    (info,) = kernel.loops
    assert maxima([info]) == [4]
    assert maxima(kernel.loops) == [4]
    assert [other.maximum for other in info.others] == [9]


def test_a_bound_for_no_loop_and_one_that_the_ptx_contradicts_are_refused(module: sass.SassModule) -> None:
    with pytest.raises(InputError, match=r"command line: no loop NOWHERE in kernel search; its loops are: 0x"):
        loops(module, "search", NOWHERE=3)
    with pytest.raises(InputError, match="loop ROW runs its body before it tests, so its bound is at least 1"):
        loops(module, "rows", ROW=0, ENTRY=2)


def test_without_ptx_or_with_strange_one_nothing_is_told(module: sass.SassModule) -> None:
    for text, hint in ((None, "None"), ("strange", "the PTX that it was compiled from does not tell more: PTX of")):
        kernel = replace(module.kernel("search"), ptx_text=text)
        (info,) = loops(replace(module, kernels=(kernel,)), "search")
        assert info.bound is None
        assert str(info.hint).startswith(hint)


def test_the_template_tells_of_address_ptx_line_and_bound(capsys: pytest.CaptureFixture[str]) -> None:
    file = "ptx/spmv_csr.ptx"
    assert run(["strings", file, "--bounds-template", "--arch", "sm_86"]) == 0
    told = capsys.readouterr().out
    assert f"# machine code of {file}:0x170, PTX line 60, depth 1, at most 32 iterations (transferred by" in told
    assert f"$L__BB0_3 at most 32 iterations (comment at PTX of {file}:63))\n0x170,32\n" in told


# ---- against executions


def most_repeats(issues: Iterable[tuple[int, Array]], head: int, members: frozenset[int]) -> int:
    """How often a lane that executes these places, lanes of a warp together, comes back to the head of a loop."""
    inside, repeats, most = np.zeros(32, bool), np.zeros(32, int), 0
    for place, lanes in issues:
        if place == head:
            repeats[lanes & inside] += 1
            repeats[lanes & ~inside] = 0
            inside |= lanes
            most = max(most, int(repeats.max()))
        elif place not in members:
            inside &= ~lanes
    return most


def _loops_of(flow: Flow, places: Mapping[int, int]) -> dict[str, tuple[int, frozenset[int], bool]]:
    """Head and instructions of each loop, and whether only its latches leave it; by name."""
    found = {}
    for loop in loop_nest(flow).loops:
        members = frozenset(places[number] for block in loop.blocks for number in flow.numbers(block))
        head = next(number for number in range(flow.blocks[loop.header].first, len(flow.code)))
        found[flow.name(loop.header)] = (places[head], members, loop.is_bottom_tested)
    return found


@pytest.mark.parametrize("name", ["search", "rows", "merged"])
@pytest.mark.parametrize("seed", range(3))
def test_transferred_bounds_hold_in_every_execution(module: sass.SassModule, name: str, seed: int) -> None:
    memory = np.random.default_rng(seed).integers(0, 30, 64).astype(np.uint32)
    outs = [np.zeros(64, np.uint32) for _ in range(2)]
    kernel = module.kernel(name)
    code, source = sass.flow(kernel), ptx.flow(ptx.parse(TEXT, "loops.ptx").kernel(name))
    written = ptx_interpreter.run(TEXT, name, arguments=[memory.copy(), outs[0]])
    done = sass_interpreter.run(kernel, arguments=[memory.copy(), outs[1]])
    assert np.array_equal(outs[0], outs[1])
    known = {}
    for label, (head, members, bottom) in _loops_of(source, dict(enumerate(range(len(source.code))))).items():
        issues = [(issue.index, _lanes(issue.active)) for issue in written.warps[0]]
        known[label] = most_repeats(issues, head, members) + bottom
    bounds = {info.label: info.bound for info in loops(module, name, **known)}
    addresses = {number: int(instruction.address) for number, instruction in enumerate(code.code)}
    for label, (head, members, bottom) in _loops_of(code, addresses).items():
        issues = [(issue.address, _lanes(issue.active)) for issue in done.warps[0]]
        bound = bounds[label]
        assert bound is not None
        assert most_repeats(issues, head, members) <= bound.maximum - bottom


def _lanes(active: "int | Array") -> Array:
    return (active >> np.arange(32) & 1).astype(bool) if isinstance(active, int) else active
