"""Automata: no sequence that the lanes of a warp can make is missing."""

import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import GivenBound, Launch, graph, loop_bounds
from makespan.kernels.flow.automaton import Automaton, AutomatonBuilder, Branching
from makespan.kernels.flow.graph import Flow, reconvergences
from makespan.kernels.flow.loop_info import LoopInfo
from makespan.kernels.flow.loops import BoundBasis, LoopBound, LoopNest, loop_nest
from makespan.kernels.flow.walk import BoundedFlow
from makespan.kernels.ptx import PtxKernel, flow, loops, program, programs, read, scalar_type
from makespan.kernels.ptx.effects import is_barrier
from makespan.kernels.ptx.isa import Classes, units_of
from makespan.model.assumptions import AssumptionKind
from makespan.model.instance import Instance
from makespan.model.program import BARRIER, Program
from tests.flow import simt
from tests.oracle import brute_force
from tests.ptx.texts import SAMPLES, kernel
from tests.ptx_interpreter import CASES, Case, Trace, parsed

LONGEST = 16


def tails(count: int) -> st.SearchStrategy[str]:
    label = st.integers(0, count - 1).map("L{}".format)
    return st.one_of(
        st.just("add a, a, 1;"),
        st.builds("bra {};".format, label),
        st.builds("@p bra {};".format, label),
        st.builds("@p bra {};".format, label),
        st.builds("@p bra {};".format, label),
        st.builds("{}brx.idx a, T{};".format, st.sampled_from(["", "", "@p "]), st.integers(0, 1)),
        st.just("@p exit;"),
        st.just("ret;"),
    )


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    count = draw(st.integers(2, 8))
    lines = [f"L{number}: add a,a,1;\n{draw(tails(count))}" for number in range(count)]
    for number in range(2):
        targets = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=6))
        lines.append(f"T{number}: .branchtargets {', '.join(f'L{target}' for target in targets)};")
    return flow(kernel("\n".join(lines)))


def walk(found: Flow, chance: random.Random) -> list[int] | None:
    path = [0]
    while path[-1] != found.exit:
        if len(path) > LONGEST:
            return None
        path.append(chance.choice(found.blocks[path[-1]].successors))
    return path


def repeats(nested: LoopNest, paths: Sequence[Sequence[int]]) -> list[set[int]]:
    """How often each loop was repeated, for every time that a path entered it."""
    found: list[set[int]] = [set() for _ in nested.loops]
    for path in paths:
        for number, loop in enumerate(nested.loops):
            count: int | None = None
            for before, block in zip([-1, *path], path, strict=False):
                if block == loop.header:
                    count = count + 1 if before in loop.blocks and count is not None else 0
                elif block not in loop.blocks and count is not None:
                    found[number].add(count)
                    count = None
    return found


def terrain(found: Flow, nested: LoopNest, paths: Sequence[Sequence[int]], *, exact: bool) -> BoundedFlow:
    """The tightest bounds that these paths keep."""
    infos = []
    for loop, counts in zip(nested.loops, repeats(nested, paths), strict=True):
        most = max(counts, default=0) + loop.is_bottom_tested
        bound = LoopBound(most, exact and len(counts) == 1, "test", BoundBasis.USER)
        infos.append(LoopInfo(found.name(loop.header), found.blocks[loop.header].line, None, bound, loop.depth))
    return BoundedFlow(found, nested, tuple(infos))


def automaton(ground: BoundedFlow, letters: Sequence[str], most_places: int = 2000) -> Automaton:
    rules = [Branching(ground, rule) for rule in reconvergences(ground.flow)]
    made = AutomatonBuilder(ground, letters, most_places=most_places).automaton(rules)
    assert made is not None
    return made


@settings(max_examples=100, deadline=None)
@given(flows(), st.integers(1, 5), st.booleans(), st.randoms(use_true_random=False))
def test_whatever_lanes_do_is_accepted(found: Flow, lanes: int, exact: bool, chance: random.Random) -> None:
    try:
        nested = loop_nest(found)
        reconvergences(found)
    except UnsupportedError:
        assume(False)
    paths = [path for _ in range(4 * lanes) if (path := walk(found, chance)) is not None][:lanes]
    assume(paths)
    letters = [f"i{number}" for number in range(len(found.code))]
    try:
        made = automaton(terrain(found, nested, paths, exact=exact), letters)
    except UnsupportedError:
        assume(False)
    full = simt.graph(found)
    rules = [full, simt.without_guarded_ends(found), simt.without_early_ends(found, simt.reached(full, 0))]
    for edges in rules:
        for _ in range(4):
            blocks = simt.execute(found, edges, paths, lambda below: chance.randrange(below))
            word = [
                letters[at] for block in blocks for at in range(found.blocks[block].first, found.blocks[block].stop)
            ]
            assert simt.accepts(made, word), (word, paths)


def words(body: str, *bounds: str, after: str = "") -> set[str]:
    """All words of an automaton; `k0` is A, `k1` B, and so on."""
    k = kernel(body, after)
    names = {f"k{n}": chr(ord("A") + n) for n in range(26)}
    found = program(
        k, loop_bounds=loop_bounds(bounds), classes=names | {"bra": "-", "brx.idx": "-", "call": "-"}, unknown="-"
    )
    spelled: list[set[str]] = [set() for _ in found.places] + [{""}]
    for number in range(found.end - 1, -1, -1):
        unit, following = found.places[number]
        spelled[number] = {unit + word for place in following for word in spelled[place]}
    return {word for start in found.starts for word in spelled[start]}


def test_one_side_or_both_in_either_order() -> None:
    body = "k0;\n@p bra T;\nk1;\nbra J;\nT: k2;\nJ: k3;"
    assert words(body) == {"ABD", "ACD", "ABCD", "ACBD"}
    assert words(body.replace("@p bra", "@p bra.uni")) == {"ABD", "ACD"}


def test_an_if_without_else_runs_its_body_at_most_once() -> None:
    assert words("k0;\n@p bra J;\nk1;\nJ: k2;") == {"AC", "ABC"}


def test_a_loop_may_be_left_early_and_its_lanes_wait() -> None:
    assert words("L: k0;\n@p bra L;\nk1;", "L=3") == {"AB", "AAB", "AAAB"}
    assert words("L: k0;\n@p bra L;\nk1;", "L==3") == {"AAAB"}


def test_code_behind_a_break_runs_once_for_each_leaving_group_now_or_later() -> None:
    body = "k0;\nL: k1;\n@q bra B;\n@p bra L;\nbra E;\nB: k2;\nE: k3;"
    assert words(body, "L=1") == {"AB" + word + "D" for word in ("", "C", "B", "BC", "CB", "CBC", "BCC")}


def test_an_exact_bound_is_no_reason_to_stay_where_counts_may_differ() -> None:
    found = words("L: k0;\n@p bra L;\nk1;\n@q bra L;\nk2;", "L==2")
    assert {"AABC", "ABABC", "AABABC"} <= found


def test_an_exact_bound_with_exits_at_two_places_may_break_off_its_last_iteration() -> None:
    found = words("L: k0;\n@q bra.uni E;\nk1;\n@p bra.uni L;\nE: k2;", "L==2")
    assert found == {"ABABC", "ABAC", "ABABAC", "ABABABC"}


def test_lanes_that_end_early_are_waited_for_or_not() -> None:
    body = "k0;\n@q bra F;\nk1;\n@p exit;\nbra J;\nF: k2;\nJ: k3;"
    assert {"ABD", "ABCD", "ACBD", "ACD", "AB", "ABDCD", "ACDBD", "ACDB"} == words(body)


def test_a_block_that_sides_share_runs_once_for_each() -> None:
    body = "k0;\n@p bra A;\n@q bra S;\nbra E;\nA: k1;\n@r bra E;\nS: k2;\nE: k3;"
    found = words(body)
    assert {"ABCCD", "ACBCD", "ABD", "AD", "ACBD"} <= found
    assert max(word.count("C") for word in found) == 2


def test_an_indirect_branch_goes_any_ways_in_any_order() -> None:
    body = "k0;\nbrx.idx a, t;\nt: .branchtargets L, M, N;\nL: k1;\nbra E;\nM: k2;\nbra E;\nN: k3;\nE: k4;"
    assert words(body) == {f"A{''.join(ways)}E" for size in (1, 2, 3) for ways in permutations("BCD", size)}
    assert words(body.replace("idx", "idx.uni")) == {"ABE", "ACE", "ADE"}


def test_of_many_ways_as_many_as_there_are_run() -> None:
    body = "brx.idx a, t;\nt: .branchtargets L0, L1, L2, L3, L4;\n"
    found = words(body + "".join(f"L{n}: k{n};\nbra E;\n" for n in range(5)) + "E: k5;")
    assert {f"{''.join(ways)}F" for size in range(1, 6) for ways in permutations("ABCDE", size)} <= found
    assert max(map(len, found)) == 6


FUNCTION = ".func f(.param .b32 x) { k1;\n@p ret;\nk2;\nret; }\n"


def test_a_call_is_its_instruction_and_then_what_it_calls() -> None:
    assert words("k0;\ncall f, (a);\nk3;\ncall.uni f, (a);\nk4;", after=FUNCTION) == {
        f"A{one}D{other}E" for one in ("B", "BC") for other in ("B", "BC")
    }


def test_a_guarded_call_may_be_passed_over() -> None:
    assert words("k0;\n@p call f, (a);\nk3;", after=FUNCTION) == {"AD", "ABD", "ABCD"}


def test_functions_call_functions_but_not_themselves() -> None:
    outer = FUNCTION + ".func g() { k3;\ncall f, (a);\n@p exit;\nk4; }\n"
    assert words("call g;\nk5;", after=outer) == {f"D{f}{end}" for f in ("B", "BC") for end in ("", "EF")}
    circle = ".func g() { call h; }\n.func h() { call g; }\n"
    with pytest.raises(UnsupportedError, match=r"k.ptx:8: `call g;` is recursive \(k calls g calls h calls g\)"):
        words("call g;", after=circle)


def test_loops_in_functions_are_bounded_by_their_labels_in_every_copy() -> None:
    after = ".func f() { L: k1;\n@p bra.uni L; }\n"
    assert words("call f;\nk0;\ncall f;", "L==2", after=after) == {"BBABB"}


def test_the_smallest_divergent_kernel_takes_seven_cycles() -> None:
    body = "@%p1 bra S;\nld.global.u32 a,[b];\nS: add.s32 a,a,1;\nld.global.u32 a,[b];\nadd.s32 a,a,1;\nret;"
    found = program(kernel(body))
    assert (found.end, found.least(), found.most()) == (5, 4, 5)
    assert brute_force(Instance.of(found, 2)).upper == 7
    assert brute_force(Instance.of("CLCLC", 2)).upper == 6


def test_equal_places_are_one_and_remember_their_lines() -> None:
    found = program(kernel("@p bra T;\nadd.s32 a,a,1;\nbra J;\nT: add.s32 a,a,2;\nbra J;\nJ: ld.u32 a,[b];\nret;"))
    assert found.end == 6
    assert [origin.text for origin in found.origins][-1] == "ld.u32 a, [b];"
    assert any("(or line 8)" in origin.text for origin in found.origins)


def test_take_leaves_out_sides_of_an_automaton() -> None:
    body = "@p bra A;\nadd.s32 a,a,1;\nA: @q bra B;\nld.u32 a,[b];\nB: ret;"
    found = program(kernel(body), take={"A": "taken"}, paths="automaton")
    assert (found.least(), found.most("L")) == (2, 1)
    assert "this path only, not a worst case over inputs: A=taken" in map(str, found.assumptions)
    with pytest.raises(InputError, match="a trace fixes one path"):
        program(kernel(body), trace=[], paths="automaton")


def test_what_is_assumed_of_lanes_is_said() -> None:
    (said,) = [
        str(line)
        for line in program(kernel("@p bra A;\nadd.s32 a,a,1;\nA: ret;")).assumptions
        if line.kind is AssumptionKind.LANES and "lanes part" in str(line)
    ]
    assert said.startswith("lanes part at line 5, run one side after the other in any order, and reconverge at the imm")


def test_warps_of_different_programs_are_groups() -> None:
    registers = ".reg .u32 %r<3>; .reg .pred %p<2>;"
    body = f"{registers} mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 5;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra A;\nret;\n"
    k = kernel(body + "A: ld.u32 %r1,[b];\nret;")
    found = programs(k, launch=Launch(block=(128, 1, 1)))
    assert [(made.letters, warps) for made, warps in found] == [("CCCCL", 1), ("CCCC", 3)]
    with pytest.raises(InputError, match="the number of warps is not known: give block"):
        programs(k, launch=Launch())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("@p bra E;\nL: add.s32 a,a,1;\nbra L;\nE: ret;", "k.ptx:6: from L on, kernel k never ends"),
        ("L: add.s32 a,a,1;\nbra L;", "k.ptx:3: no path through k keeps the loop bounds: loop L at most 2"),
        (
            "@p exit;\nadd.s32 a,a,1;",
            "k.ptx:3: k: a warp may end before any instruction needs a unit, which no program",
        ),
        (
            "O: add.s32 a,a,1;\nI: add.s32 a,a,1;\n@p bra O;\nM: add.s32 a,a,1;\n@q bra I;\nret;",
            "k.ptx:7: lanes that part at `@p bra O;` meet again at M in an inner loop, after some have repeated the"
            " outer loop O",
        ),
    ],
)
def test_flow_that_no_automaton_tells_is_refused(body: str, message: str) -> None:
    bounds = [GivenBound(loop.label, 2) for loop in loops(kernel(body))]
    with pytest.raises(InputError) as caught:
        program(kernel(body), loop_bounds=bounds)
    assert str(caught.value).startswith(message)


def test_hostile_flow_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_BLOCKS", 500)
    ladder = "".join(f"@p bra T{n};\nld.u32 a,[b];\nT{n}: add.s32 a,a,1;\n" for n in range(250))
    with pytest.raises(UnsupportedError, match="has 501 basic blocks; divergent branches are followed in up to 500"):
        program(kernel(ladder))
    monkeypatch.setattr(AutomatonBuilder.__init__, "__kwdefaults__", {"most_places": 2000})
    deep = "".join(f"@p bra A{n};\nld.u32 a,[b];\n" for n in range(60))
    deep += "".join(f"bra J{n};\nA{n}: add.s32 a,a,1;\nJ{n}: ld.u32 a,[b];\n" for n in reversed(range(60)))
    with pytest.raises(UnsupportedError, match="the paths through k exceed 2000 places; lower the loop bounds"):
        program(kernel(deep))


HERE = [case for case in CASES if case.is_here]
ORDERS: tuple[Literal["taken-first", "fall-first", "random"], ...] = ("taken-first", "fall-first", "random")


def scalars(case: Case, kernel: PtxKernel) -> Launch:
    """The launch of a case, with the whole numbers among its arguments."""
    declared = [parameter for parameter in kernel.parameters or () if scalar_type(parameter)]
    given = zip(kernel.parameters or (), case.prepare().arguments, strict=False)
    known = {p.names[0][0]: value for p, value in given if isinstance(value, int) and p in declared}
    return Launch(case.block, case.grid, known)


def seen_bounds(kernel: PtxKernel, launch: Launch | None, traces: Sequence[Trace]) -> list[GivenBound]:
    """Bounds for the loops that have none, as these traces keep them."""
    counts = [trace.iterations(warp) for trace in traces for warp in range(len(trace.warps))]
    return [
        GivenBound(loop.label, max(1, *(count[loop.label] for count in counts)))
        for loop in loops(kernel, (), launch)
        if loop.bound is None
    ]


def check(case: Case) -> None:
    """Whatever the interpreter issues for a case, in any order of sides, is a word of its automata, launch or not."""
    module_kernel = parsed(case.path).kernel(case.kernel)
    traces = [case.run(order, seed=7) for order in ORDERS]
    for launch in (None, scalars(case, module_kernel)):
        check_traces(module_kernel, launch, traces)


def check_traces(module_kernel: PtxKernel, launch: Launch | None, traces: Sequence[Trace]) -> None:
    bounds = seen_bounds(module_kernel, launch, traces)
    units = {routine.name: letters(routine) for routine in (module_kernel, *module_kernel.functions) if routine.body}
    made: dict[int | None, Program] = {}
    for warp in range(len(traces[0].warps)):
        key = warp if launch else None
        if key not in made:
            made[key] = program(module_kernel, loop_bounds=bounds, launch=launch, warp=key)
        for trace in traces:
            word = [unit for issue in trace.warps[warp] if (unit := units[issue.routine][issue.index]) is not None]
            assert simt.accepts(made[key], word), (launch, warp, "".join(word))


def letters(routine: PtxKernel) -> list[str | None]:
    """The unit of every instruction of a kernel or function."""
    pairs = zip(routine.instructions, units_of(routine, Classes()), strict=True)
    return [BARRIER if is_barrier(instruction) else unit for instruction, unit in pairs]


@pytest.mark.parametrize("case", HERE, ids=[case.name for case in HERE])
def test_what_the_interpreter_executes_is_accepted(case: Case) -> None:
    check(case)


COMPILED = [case for case in HERE if case.path.with_suffix(".cu").is_file() and case.path.parent.name == "ptx"]
WAYS = [
    ("-O3", "-arch=compute_75"),
    ("-O3", "-arch=compute_80", "-lineinfo"),
    ("-O3", "-arch=compute_90"),
    ("-G", "-arch=compute_80"),
]


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
@pytest.mark.parametrize("flags", WAYS, ids=" ".join)
def test_what_the_interpreter_executes_of_fresh_code_is_accepted(flags: tuple[str, ...], tmp_path: Path) -> None:
    for case in COMPILED:
        made = tmp_path / case.path.name
        if not made.exists():
            subprocess.run(["nvcc", *flags, "-ptx", str(case.path.with_suffix(".cu")), "-o", str(made)], check=True)
        check(replace(case, path=made))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
@pytest.mark.parametrize("flags", [("-O3", "-lineinfo"), ("-G",)], ids=" ".join)
def test_code_that_nvcc_makes_now_becomes_an_automaton(flags: tuple[str, ...], tmp_path: Path) -> None:
    source, made = SAMPLES[0].parent / "reduction.cu", tmp_path / "reduction.ptx"
    subprocess.run(["nvcc", *flags, "-arch=compute_80", "-ptx", str(source), "-o", str(made)], check=True)
    found = program(read(made).kernel(), launch=Launch(block=(256, 1, 1)), warp=0)
    assert found.has_barriers
    assert not found.is_chain
