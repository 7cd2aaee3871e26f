"""From a kernel to the instruction string of one path, and every reason to refuse."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import GivenBound, Launch, TraceStep, loop_bounds, parse_takes, read_trace
from makespan.kernels.ptx import PtxKernel, parse, program, read
from makespan.model.conditions import conditions
from makespan.model.program import InstructionOrigin, Program
from tests.ptx.texts import SAMPLES, kernel

TOP = "L: setp.ne.s32 p,a,4;\n@p bra E;\nld.u32 a,[b];\nbra L;\nE: ret;"
BOTTOM = "L: ld.u32 a,[b];\n@p bra L;\nret;"
CHOICE = "@p bra E;\nld.u32 a,[b];\nE: add.s32 a,a,1;\n@!q bra F;\nld.u32 a,[b];\nF: ret;"
BREAK = "L: ld.u32 a,[b];\n@q bra E;\nadd.s32 a,a,1;\n@p bra L;\nE: ret;"


def sample(name: str) -> PtxKernel:
    return read(next(path for path in SAMPLES if path.stem == name)).kernel()


def letters(body: str, *bounds: str, take: dict[str, str] | None = None) -> str | None:
    return program(kernel(body), loop_bounds=loop_bounds(bounds), take=take, paths="single").letters


def steps(*texts: str) -> list[TraceStep]:
    pairs = (text.split() for text in texts)
    return [TraceStep(key, ["taken", "fall"].index(side), f"t:{n}") for n, (key, side) in enumerate(pairs, 1)]


def refusal(body: str, *bounds: str, take: dict[str, str] | None = None, trace: list[TraceStep] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        program(kernel(body), loop_bounds=loop_bounds(bounds), take=take, trace=trace, paths="single")
    return str(caught.value)


def test_the_loop_of_the_paper_runs_its_test_once_more_than_its_body() -> None:
    once = program(sample("nearest_point_paper"), loop_bounds=loop_bounds(["Loop==1"]), take={"If": "fall"})
    assert once.letters == "LLLLLCCCCCCCCCLLCCCCCCCCCCCC"
    never = program(sample("nearest_point_paper"), loop_bounds=loop_bounds(["Loop==0"]))
    assert never.letters == "LLLLLCCCCCCCCC"


def test_a_straight_kernel_needs_no_help_and_says_what_it_assumes() -> None:
    found = program(kernel("ld.param.u32 a,[p];\n@p add.s32 a,a,1;\nst.u32 [b],a;\nret;"))
    assert found == Program.chain("LCL")
    assert found.origins[1] == InstructionOrigin("k.ptx", 6, "@p add.s32 a, a, 1;")
    assert tuple(map(str, found.assumptions)) == (
        "profile paper: unit classes C, L",
        "the hardware executes the PTX as it is written, although ptxas expands, unrolls and drops instructions",
        "guarded instructions are issued whatever their predicate (1 of them)",
    )


def test_unconditional_branches_are_followed() -> None:
    assert letters("bra B;\nA: ld.u32 a,[b];\nexit;\nB: add.s32 a,a,1;\nbra.uni A;\nbra A;") == "CCCL"


@pytest.mark.parametrize(("bound", "expected"), [("L==1", "LC"), ("L==3", "LCLCLC")])
def test_an_exact_bound_of_a_loop_tested_at_its_bottom_counts_bodies(bound: str, expected: str) -> None:
    assert letters(BOTTOM, bound) == expected


@pytest.mark.parametrize(("bound", "expected"), [("L==0", "CC"), ("L==1", "CCLCCC"), ("L==2", "CCLCCCLCCC")])
def test_an_exact_bound_of_a_loop_tested_at_its_top_counts_bodies(bound: str, expected: str) -> None:
    assert letters(TOP, bound) == expected


def test_the_first_block_may_be_a_loop() -> None:
    assert letters("L: @p bra L;", "L==3") == "CCC"


def test_a_maximum_leaves_a_choice_and_names_the_remedies() -> None:
    assert refusal(BOTTOM, "L=3") == (
        "k.ptx: 1 branch leaves a choice in kernel k, and one path is asked for; fix it, or take all paths with --paths"
        " automaton:\n"
        "  line 6: @p bra L   (loop L, at most 3 iterations (command line), may end early:"
        " --loop-bound 'L==3' if it never does, or --take 'L=taken')"
    )
    assert "--take 'E=fall'" in refusal(TOP, "L=3")


def test_the_remedies_for_a_maximum_work() -> None:
    assert letters(BOTTOM, "L==3") == letters(BOTTOM, "L=3", take={"L": "taken"}) == "LCLCLC"
    assert letters(TOP, "L==2") == letters(TOP, "L=2", take={"E": "fall"}) == "CCLCCCLCCC"


def test_a_maximum_may_be_left_early() -> None:
    assert letters(BOTTOM, "L=3", take={"L": "fall"}) == "LC"
    assert letters(TOP, "L=3", take={"E": "taken"}) == "CC"


def test_with_take_other_loops_run_to_their_maximum() -> None:
    found = program(kernel(f"@q bra L;\n{BOTTOM}"), loop_bounds=loop_bounds(["L=2"]), take={":5": "fall"})
    assert found.letters == "CLCLC"
    assert "loop L: at most 2 iterations (command line), run to this maximum unless take leaves it earlier" in map(
        str, found.assumptions
    )
    assert "this path only, not a worst case over inputs: :5=fall" in map(str, found.assumptions)


def test_open_choices_are_listed_all_at_once() -> None:
    message = refusal(CHOICE)
    assert message.splitlines()[1:] == [
        "  line 5: @p bra E   (--take 'E=taken' or '=fall')",
        "  line 8: @!q bra F   (--take 'F=taken' or '=fall')",
    ]
    assert message.startswith("k.ptx: 2 branches leave a choice")
    with pytest.raises(UnsupportedError):
        program(kernel(CHOICE), paths="single")


def test_take_decides_by_label_or_by_line() -> None:
    assert letters(CHOICE, take={"E": "taken", "F": "taken"}) == "CCC"
    assert letters(CHOICE, take={"E": "fall", ":8": "taken"}) == "CLCC"
    assert letters(CHOICE, take={"E": "fall", "F": "fall"}) == "CLCCL"
    assert "1 branch leaves" in refusal(CHOICE, take={"E": "fall"})


def test_a_label_decides_all_its_branches_and_a_line_wins_over_it() -> None:
    body = "@p bra E;\nld.u32 a,[b];\n@q bra E;\nld.u32 a,[b];\nE: ret;"
    assert letters(body, take={"E": "fall"}) == "CLCL"
    assert letters(body, take={"E": "fall", ":7": "taken"}) == "CLC"
    assert "(--take ':5=taken' or '=fall')" in refusal(body)


def test_branches_that_take_has_made_unreachable_are_not_open() -> None:
    body = "@p bra E;\n@q bra F;\nF: ld.u32 a,[b];\nE: ret;"
    assert letters(body, take={"E": "taken"}) == "C"


def test_a_branch_to_the_next_instruction_is_no_choice() -> None:
    assert letters("@p bra E;\nE: ld.u32 a,[b];") == "CL"


def test_a_guarded_end_is_a_branch() -> None:
    body = "@p exit;\nld.u32 a,[b];\n@q trap;\nret;"
    assert "line 5: @p exit   (--take ':5=taken' or '=fall')" in refusal(body)
    assert letters(body, take={":5": "fall", ":7": "taken"}) == "LC"
    assert letters(body, take={"exit": "fall"}) == "LC"
    assert (
        refusal("@p exit;", take={":5": "taken"})
        == "k.ptx:3: k: a warp executes nothing that needs a unit, so this takes 0 cycles and there is nothing to solve"
    )


@pytest.mark.parametrize(
    ("take", "message"),
    [
        ({"X": "taken"}, "take: no conditional branch X in kernel k; there are: E or :5, F or :8"),
        ({"E": "yes"}, "take E: 'yes' is neither taken nor fall"),
    ],
)
def test_take_that_fits_nothing_is_refused(take: dict[str, str], message: str) -> None:
    assert refusal(CHOICE, take=take) == message


def test_take_is_read() -> None:
    assert parse_takes(["$L1=taken", ":34=fall", "$L1=taken"]) == {"$L1": "taken", ":34": "fall"}
    for text, message in [("L", "--take L: give LABEL=taken"), ("L=no", "give LABEL=taken"), ("=fall", "give LABEL")]:
        with pytest.raises(InputError, match=message):
            parse_takes([text])
    with pytest.raises(InputError, match="--take L: both taken and fall"):
        parse_takes(["L=taken", "L=fall"])


def test_take_against_an_exact_bound_is_refused() -> None:
    assert refusal(BOTTOM, "L==3", take={"L": "fall"}) == (
        "k.ptx:6: `@p bra L;` leaves loop L too early: it makes exactly 3 iterations (command line)"
    )


def test_a_loop_with_a_break_leaves_the_break_open_even_when_its_bound_is_exact() -> None:
    message = refusal(BREAK, "L==3")
    assert "line 6: @q bra E   (--take 'E=taken' or '=fall')" in message
    assert "line 8: @p bra L   (--take 'L=taken' or '=fall')" in message


def test_a_loop_with_a_break_runs_until_its_bound_forces_it_out() -> None:
    assert letters(BREAK, "L=1", take={"E": "fall"}) == "LCCC" * 2
    assert letters(BREAK, "L=1", take={"L": "taken"}) == "LCCC" * 2
    assert letters(BREAK, "L=5", take={"E": "taken"}) == "LC"


def test_a_loop_that_cannot_be_left_is_refused() -> None:
    assert refusal("L: add.s32 a,a,1;\nbra L;", "L=2") == (
        "k.ptx:6: `bra L;` begins loop L once more than its bound allows, at most 2 iterations (command line),"
        " and no other way leads out"
    )


def test_the_only_way_out_of_two_loops_is_taken_when_both_are_spent() -> None:
    body = "O: add.s32 a,a,1;\nI: ld.u32 a,[b];\n@p exit;\n@q bra I;\nbra O;"
    assert letters(body, "O=1", "I=1", take={"exit": "fall"}) == "C" + "LC" * 2 + "C" + "C" + "LC" + "L"
    assert letters(body, "O=0", "I=0", take={"exit": "fall"}) == "CL"


def test_a_bound_overrules_a_preferred_continue_and_all_that_follows_must_be_decided() -> None:
    body = "L: add.s32 a,a,1;\n@q bra L;\nld.u32 a,[b];\n@p bra F;\nld.u32 a,[b];\nF: bra.uni G;\nG: @r bra L;\nret;"
    assert letters(body, "L=2", take={":6": "taken", "F": "fall"}) == "CC" + "CC" + "LCLC" + "C"
    assert "1 branch leaves a choice" in refusal(body, "L=2", take={":6": "taken"})


def test_bounds_that_no_side_keeps_are_refused() -> None:
    body = "O: add.s32 a,a,1;\nI: add.s32 a,a,1;\n@q bra N;\n@p bra I;\nret;\nN: bra O;"
    assert refusal(body, "O==3", "I=0", take={"N": "fall", "I": "taken"}) == (
        "k.ptx:8: neither side of `@p bra I;` keeps the loop bounds: loop I at most 0 iterations (command line),"
        " loop O exactly 3 iterations (command line)"
    )


def test_all_loops_without_a_bound_are_listed_in_one_line() -> None:
    assert refusal("L: @p bra L;\nM: @p bra M;\nN: @p bra N;\nret;", "M==1") == (
        "k.ptx: kernel k: 2 inputs are missing: a bound for the loop L (k.ptx:5) (loop_bounds 'L=N'); a bound for the"
        " loop N (k.ptx:7) (loop_bounds 'N=N'); 'makespan strings k.ptx --bounds-template' prints a file"
        " of bounds to fill in"
    )


def test_a_loop_that_take_avoids_needs_no_bound() -> None:
    assert letters(f"@q bra E2;\n{BOTTOM}\nE2: add.s32 a,a,1;", take={"E2": "taken"}) == "CC"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("call.uni (r), f, (p);", "k.ptx:5: `call.uni (r), f, (p);` calls what has no body in this file; have"),
        (
            ".reg .u64 %f<2>;\ncall %f1, (p), t;",
            "k.ptx:6: `call %f1, (p), t;` calls what a register points to, which is not followed; call the function",
        ),
        ("bar.arrive 0, 64;", "k.ptx:5: `bar.arrive 0, 64;` only arrives and does not wait"),
        ("barrier.cta.arrive 0, 64;", "only arrives"),
        ("barrier.cluster.arrive;", "waits for other blocks of a cluster"),
        ("barrier.cluster.wait;", "waits for other blocks of a cluster"),
        ("bar.sync 0, 64;", "waits for some threads of the block; only if it is for all, --block says so"),
        ("bar.red.popc.u32 a, 0, 64, p;", "waits for some threads"),
        ("@p bar.sync 0;", "has a guard"),
    ],
)
@pytest.mark.parametrize("paths", ["automaton", "single"])
def test_what_is_not_supported_is_refused_by_name_and_line(
    body: str, message: str, paths: Literal["automaton", "single"]
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        program(kernel(f"{body}\nadd.s32 a,a,1;"), paths=paths)
    assert message in str(caught.value)
    if paths == "single":
        with pytest.raises(UnsupportedError):
            program(kernel(f"{body}\nadd.s32 a,a,1;"), trace=[])


@pytest.mark.parametrize(
    "barrier",
    ["bar.sync 0;", "bar.cta.sync 0;", "barrier.sync 1;", "barrier.cta.sync.aligned 0;", "bar.red.and.pred q, 0, p;"],
)
@pytest.mark.parametrize("paths", ["automaton", "single"])
def test_barriers_of_all_threads_of_the_block_are_places(barrier: str, paths: Literal["automaton", "single"]) -> None:
    assert program(kernel(f"ld.u32 a,[b];\n{barrier}\nadd.s32 a,a,1;"), paths=paths).letters == "L|C"


@pytest.mark.parametrize(("threads", "count"), [(64, 64), (33, 64)])
def test_a_barrier_may_count_all_threads(threads: int, count: int) -> None:
    k = kernel(f"bar.sync 0, {count};\nadd.s32 a,a,1;")
    assert program(k, launch=Launch(block=(threads, 1, 1))).letters == "|C"
    with pytest.raises(UnsupportedError, match="some threads"):
        program(k, launch=Launch(block=(128, 1, 1)))


def test_a_barrier_that_lanes_may_come_to_one_by_one_is_refused() -> None:
    body = "@p bra E;\nbarrier.sync 0;\nE: add.s32 a,a,1;"
    with pytest.raises(UnsupportedError, match=r"k.ptx:6: lanes that part at line 5 may come to `barrier.sync 0;`"):
        program(kernel(body))
    assert program(kernel(body.replace("bra", "bra.uni"))).most() == 2
    assert program(kernel(body.replace("barrier", "bar"))).most() == 2


def test_one_path_does_not_follow_an_indirect_branch() -> None:
    body = "brx.idx a, t;\nt: .branchtargets L, M, N;\nL: M: N: add.s32 a,a,1;"
    with pytest.raises(
        UnsupportedError, match=r"k.ptx:5: `brx.idx a, t;` is an indirect branch, which one path cannot"
    ):
        program(kernel(body), trace=[])


def test_barriers_of_a_warp_and_memory_fences_are_instructions() -> None:
    assert letters("bar.warp.sync m;\nmembar.gl;\nfence.acq_rel.gpu;\nret;") == "LL"


def test_a_barrier_that_is_not_reached_does_not_matter() -> None:
    assert letters("@p bra E;\nbar.sync 0;\nE: add.s32 a,a,1;", take={"E": "taken"}) == "CC"


def test_kernels_without_instructions_are_refused() -> None:
    assert refusal("") == "k.ptx:3: k has no instruction"
    assert refusal("ret;").startswith("k.ptx:3: k: a warp executes nothing that needs a unit, so this takes 0 cycles")
    declared = parse(".extern .func f;", "k.ptx").functions[0]
    with pytest.raises(InputError, match=r"k.ptx:1: f has no instruction"):
        program(declared)


def test_a_path_past_the_limit_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.kernels.flow.walk.MAX_PLACES", 100_000)
    body = "".join(f"L{n}: add.s32 a,a,1;\n" for n in range(3)) + "".join(f"@p bra L{n};\n" for n in (2, 1, 0))
    message = refusal(body, "L0==65536", "L1==65536", "L2==65536")
    assert message.startswith(
        "k.ptx: the path through k exceeds the limit of 100000 instructions; lower the loop bounds"
    )
    assert "L0 exactly 65536 iterations, L1 exactly 65536 iterations" in message


def test_the_limit_of_a_path_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.kernels.flow.walk.MAX_PLACES", 11)
    assert letters(BOTTOM, "L==5") == "LC" * 5  # and the ret
    assert "exceeds the limit of 11 instructions" in refusal(BOTTOM, "L==6")


def test_profile_classes_and_unknown_are_used_and_told() -> None:
    k = kernel("add.f64 a,b,c;\nzork a;\nnanosleep.u32 5;\nret;")
    found = program(k, profile="fermi", classes={"nanosleep": "S"}, unknown="L")
    assert found.letters == "DLS"
    assert str(found.assumptions[0]) == "profile fermi: unit classes C, L, S, D"
    assert tuple(map(str, found.assumptions[2:])) == (
        "own unit classes: nanosleep=S",
        "opcodes that no table knows count as L: zork",
    )
    assert conditions(found.assumptions)[1:] == (
        "with unit classes as given (nanosleep=S)",
        "with unknown opcodes as class L (zork)",
    )
    with pytest.raises(InputError, match=r"k.ptx:6:1: unknown opcode 'zork'"):
        program(k)


def test_a_trace_decides_every_branch_and_needs_no_bounds() -> None:
    k = kernel(f"@q bra E2;\n{BOTTOM}\nE2: ret;")
    found = program(k, trace=steps("E2 fall", "L taken", ":7 fall"))
    assert found.letters == "CLCLC"
    assert "this path only, not a worst case over inputs: a trace of 3 branches, from t:1" in map(
        str, found.assumptions
    )


@pytest.mark.parametrize(
    ("trace", "bounds", "message"),
    [
        (steps("M taken"), [], "t:1: the path comes to line 6: `@p bra L;`, not to a branch M"),
        (steps("L taken"), [], "k.ptx: the trace ends after 1 steps, before line 6: `@p bra L;`"),
        (steps("L fall", "L fall", "L fall"), [], "t:2: the warp has ended, but 2 steps are left over"),
        (
            steps("L taken", "L taken"),
            ["L=2"],
            "t:2: L taken contradicts a loop bound at line 6: `@p bra L;`: loop L at most 2 iterations (command line)",
        ),
        (steps("L fall"), ["L==2"], "t:1: L fall contradicts a loop bound"),
    ],
)
def test_a_trace_that_does_not_fit_is_refused(trace: list[TraceStep], bounds: list[str], message: str) -> None:
    assert message in refusal(BOTTOM, *bounds, trace=trace)


def test_take_and_trace_exclude_each_other() -> None:
    assert refusal(BOTTOM, take={"L": "fall"}, trace=[]) == "give either take or trace, not both"


def test_a_trace_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("# run 7\n$L1 taken\n\n  :34\tfall # left\n")
    assert read_trace(path) == (TraceStep("$L1", 0, f"{path}:2"), TraceStep(":34", 1, f"{path}:4"))
    path.write_text("$L1 taken\n$L1\n")
    with pytest.raises(InputError, match=r"t.txt:2: expected `LABEL taken` or `LABEL fall`, got '\$L1'"):
        read_trace(path)
    with pytest.raises(InputError, match="cannot read the trace"):
        read_trace(tmp_path / "none")


@dataclass(frozen=True)
class Nested:
    """A loop for the test below: its bound, where it tests, and what it runs."""

    top: bool
    count: int
    body: tuple["Nested | str", ...]


BODIES = st.recursive(
    st.lists(st.sampled_from("CL"), max_size=3).map(tuple),
    lambda inner: st.lists(
        st.sampled_from("CL") | st.builds(Nested, st.booleans(), st.integers(1, 3), inner), max_size=3
    ).map(tuple),
    max_leaves=5,
)


class Writer:
    """Writes nested loops as PTX, and what they execute as letters and as a trace."""

    def __init__(self) -> None:
        self.bounds: list[tuple[str, int]] = []

    def write(self, body: tuple[Nested | str, ...]) -> tuple[str, str, list[str]]:
        parts = [self.loop(part) if isinstance(part, Nested) else self.plain(part) for part in body]
        return "".join(p[0] for p in parts), "".join(p[1] for p in parts), [s for p in parts for s in p[2]]

    def plain(self, letter: str) -> tuple[str, str, list[str]]:
        return ("add.s32 a,a,1;\n" if letter == "C" else "ld.u32 a,[b];\n"), letter, []

    def loop(self, loop: Nested) -> tuple[str, str, list[str]]:
        n = len(self.bounds)
        self.bounds.append((f"L{n}", loop.count))
        text, run, trace = self.write(loop.body)
        if not loop.top:
            again = [*trace, f"L{n} taken"] * (loop.count - 1)
            return f"L{n}:\n{text}@p bra L{n};\n", (run + "C") * loop.count, [*again, *trace, f"L{n} fall"]
        test = f"L{n}: setp.ne.s32 p,a,b;\n@p bra E{n};\n"
        round_trip = [f"E{n} fall", *trace] * loop.count
        return f"{test}{text}bra L{n};\nE{n}:\n", ("CC" + run + "C") * loop.count + "CC", [*round_trip, f"E{n} taken"]


@given(BODIES)
def test_exact_bounds_maxima_and_traces_tell_the_same_nested_loops(body: tuple[Nested | str, ...]) -> None:
    writer = Writer()
    text, expected, trace = writer.write(body)
    k = kernel(f"add.s32 a,a,1;\n@q exit;\n{text}ret;")
    exact = [GivenBound(label, count, exact=True) for label, count in writer.bounds]
    most = [GivenBound(label, count) for label, count in writer.bounds]
    take = {"exit": "fall"}
    assert program(k, loop_bounds=exact, take=take).letters == "C" + expected
    assert program(k, loop_bounds=most, take=take).letters == "C" + expected
    assert program(k, trace=steps("exit fall", *trace)).letters == "C" + expected
    assert program(k, trace=steps("exit fall", *trace), loop_bounds=exact).letters == "C" + expected


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_every_sample_is_a_program_or_says_why_not(path: Path) -> None:
    for k in read(path).kernels:
        try:
            assert program(k, loop_bounds=[GivenBound("Loop", 3)] if "paper" in path.stem else []).most()
        except InputError as error:
            assert str(error).startswith(f"{path}:")  # noqa: PT017 - both outcomes are right
