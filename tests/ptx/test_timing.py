"""What the instructions of a kernel await and how long they take, against the text of the kernel."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from makespan import Limits, solve
from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels import flow, ptx
from makespan.kernels.ptx import Dependences
from makespan.kernels.question import KernelQuestion
from makespan.model.conditions import conditions
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass, given_latencies
from makespan.model.program import BARRIER, InstructionTiming, Program
from makespan.model.result import Bounds
from makespan.model.strings import parse_string
from tests.oracle import brute_force
from tests.ptx.texts import SAMPLES, kernel
from tests.ptx.timed_machine import TIMED

MOST = given_latencies(["global=..40", "atomic=30..50"])
BOUNDS = {
    "matmul_tiled": ["$L__BB0_3=3"],
    "nbody": ["$L__BB0_3=3", "$L__BB0_6=2"],
    "nearest_point": ["$L__BB0_2=3"],
    "nearest_point_paper": ["Loop=3"],
    "spmv_csr": ["$L__BB0_3=3"],
}


def program(body: str, **options: object) -> Program:
    return ptx.program(kernel(body), **{"machine": TIMED, "latencies": MOST, **options})  # type: ignore[arg-type]


def waits(made: Program) -> list[tuple[int, ...]]:
    """For every place of a chain the places before it whose results it is the first to await."""
    found: list[tuple[int, ...]] = []
    pending: dict[int, set[int]] = {}
    for at, timing in enumerate(made.timings):
        found.append(tuple(sorted({setter for token in timing.awaits for setter in pending.pop(token, ())})))
        for token in timing.sets:
            pending.setdefault(token, set()).add(at)
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # read after write, write after write, and what is read twice is there the second time
        ("ld.u32 %r1, [%rd1]; add.s32 %r2, %r1, 1; add.s32 %r3, %r1, 2;", [(), (0,), ()]),
        ("ld.u32 %r1, [%rd1]; mov.u32 %r1, 3;", [(), (0,)]),
        ("ld.u32 %r1, [%r2]; mov.u32 %r2, 3;", [(), ()]),
        ("ld.v2.u32 {%r1, %r2}, [%rd1]; add.s32 %r3, %r2, 1; add.s32 %r4, %r1, 1;", [(), (0,), ()]),
        ("setp.eq.s32 %p1|%p2, %r1, 0; @!%p2 add.s32 %r2, %r2, 1; @%p1 add.s32 %r2, %r2, 1;", [(), (0,), (1,)]),
        ("selp.b32 %r1, 1, 2, %p1; st.u32 [%rd1], %r1;", [(), (0,)]),
        # accesses are in order by themselves; a fence awaits them, and accesses behind it the fence
        ("st.u32 [%rd1], %r1; ld.u32 %r2, [%rd1];", [(), ()]),
        (
            "st.u32 [%rd1], %r1; red.add.u32 [%rd2], 1; membar.gl; add.s32 %r4, %r4, 1; ld.u32 %r2, [%rd2];",
            [(), (), (0, 1), (), (2,)],
        ),
        ("ld.param.u32 %r1, [p]; fence.acq_rel.gpu; ld.param.u32 %r2, [p];", [(), (), ()]),
        ("st.u32 [%rd1], %r1; st.release.gpu.u32 [%rd2], 1;", [(), (0,)]),
        ("ld.acquire.gpu.u32 %r1, [%rd2]; ld.u32 %r2, [%rd1];", [(), (0,)]),
        ("atom.add.u32 %r1, [%rd1], 1; add.s32 %r2, %r1, 1;", [(), (0,)]),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16; ld.u32 %r2, [%rd1]; cp.async.wait_all;", [(), (), (0,)]),
        # what no register shows
        ("add.cc.u32 %r1, %r2, %r3; addc.u32 %r4, %r5, %r6;", [(), (0,)]),
    ],
)
def test_an_instruction_awaits_what_it_needs(body: str, expected: list[tuple[int, ...]]) -> None:
    assert waits(program(f"{body}\nret;"))[: len(expected)] == expected


def test_what_is_called_waits_for_the_call() -> None:
    called = kernel("call f;\nret;", ".func f() { mov.u32 %r1, 1;\nret; }")
    assert waits(ptx.program(called, machine=TIMED)) == [(), (0,), (), (2,)]


def test_lanes_that_part_wait_for_the_branch_and_for_what_the_other_side_wrote() -> None:
    made = program(
        "setp.eq.s32 %p1, %r1, 0;\n@%p1 bra E;\nld.u32 %r2, [%rd1];\nbra J;\nE: mov.u32 %r2, 1;\n"
        "J: add.s32 %r3, %r2, 1;\nret;"
    )
    # setp 7, bra 5, the load 40, mov 3 as it writes what is loaded, add 1, and ret 5
    assert brute_force(Instance.of(made, 1, TIMED)).upper == 7 + 5 + 40 + 3 + 1 + 5


def test_a_barrier_of_the_block_awaits_its_operands_and_no_load() -> None:
    made = program("ld.u32 %r1, [%rd1];\nbar.sync 0;\nbar.sync %r1;\nmov.u32 %r2, 1;\nret;")
    assert [place.unit for place in made.places] == ["L", BARRIER, BARRIER, "C", "B"]
    assert waits(made)[:4] == [(), (), (0,), ()]


def test_a_kernel_is_what_the_notation_says() -> None:
    body = (
        "ld.u32 %r1, [%rd1];\nld.u32 %r2, [%rd1+4];\nmul.lo.s32 %r1, %r1, %r2;\nst.u32 [%rd1], %r1;\nadd.s32 %r4, 1, 2;"
    )
    said = parse_string("L()@4..5L()@4..5C(1,2)@5L(3)@1C()@3B()@1..2", TIMED)
    latencies = given_latencies(["global=4..5", "branch=1..2"])
    made = program(f"{body}\nret;", latencies=latencies)
    assert brute_force(Instance.of(made, 2, TIMED)) == brute_force(Instance.of(said, 2, TIMED))


REGISTER = re.compile(r"[%$][a-z]+[0-9]+\b|\b[pq]\b")
NO_RESULT = ("st", "bra", "ret", "bar", "red")


def scan(texts: list[str], latencies: list[int]) -> list[int]:
    """When a warp alone issues these instructions, and when it ends, as their text says."""
    there: dict[str, int] = {}
    now, found = -1, []
    for text, latency in zip(texts, latencies, strict=True):
        opcode = text.split(" ")[1] if text.startswith("@") else text.split(" ")[0]
        name = opcode.partition(".")[0].rstrip(";")
        mentioned = [*REGISTER.findall(text), "way"]
        if name == "bar":
            now = max([now, *(there.get(register, 0) - 1 for register in mentioned)])
            found.append(now + 1)
            continue
        now = max([now + 1, *(there.get(register, 0) for register in mentioned)])
        found.append(now)
        operands = text.partition(f"{opcode} ")[2]
        target = operands.partition("}")[0] if operands.startswith("{") else operands.partition(",")[0]
        for register in () if name in NO_RESULT else REGISTER.findall(target):
            there[register] = now + latency
        if name in ("bra", "ret"):
            there["way"] = now + latency
    return [*found, max([now + 1, *there.values()])]


def alone(made: Program, path: list[int], latencies: list[int]) -> list[int]:
    """The same as the tokens of the program say."""
    there: dict[int, int] = {}
    first, found = 0, []
    for place, latency in zip(path, latencies, strict=True):
        timing = made.timings[place]
        now = max([first, *(there.get(token, 0) for token in timing.awaits)])
        found.append(now)
        first = now + timing.stall
        for token in timing.sets:
            there[token] = max(there.get(token, 0), now + latency)
    return [*found, max([first, *there.values()])]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_tokens_are_the_registers_of_the_text(path: Path) -> None:
    bounds = flow.loop_bounds(BOUNDS.get(path.stem, ()))
    made = ptx.program(ptx.read(path).kernel(), machine=TIMED, latencies=MOST, loop_bounds=bounds)
    chance = random.Random(path.stem)
    compared = 0
    for _ in range(30):
        walked = [chance.choice(made.starts)]
        while (after := chance.choice(made.places[walked[-1]].successors)) != made.end:
            walked.append(after)
        if any(" (or line" in made.origins[place].text for place in walked):
            continue
        latencies = [chance.randint(*made.timings[place].latency) for place in walked]
        assert alone(made, walked, latencies) == scan([made.origins[place].text for place in walked], latencies)
        compared += 1
    assert compared


def test_a_guarded_instruction_may_do_nothing_and_a_branch_is_decided_in_any_case() -> None:
    made = program("@%p1 ld.u32 %r1, [%rd1];\n@%p1 exit;\nret;")
    assert [timing.latency for timing in made.timings] == [(1, 40), (1, 5), (1, 5)]
    fixed = program("@%p1 add.s32 %r1, %r1, 1;\nret;", latencies=given_latencies(["branch=3"]))
    assert [timing.latency for timing in fixed.timings] == [(1, 3), (3, 3)]


def test_blocking_awaits_whatever_stands_before() -> None:
    made = program("ld.u32 %r1, [%rd1];\nmov.u32 %r2, 1;\nret;", dependences=Dependences.BLOCKING)
    assert [timing.awaits for timing in made.timings] == [(), (0,), (0,)]
    assert [timing.latency for timing in made.timings] == [(20, 40), (3, 3), (1, 5)]


def test_a_machine_of_classes_blocks_unless_it_is_asked_for_registers() -> None:
    slow = Machine("slow", (UnitClass("C", 1, latency=Latency(2, 2)), UnitClass("L", 1, latency=Latency(3, 4))))
    body = "ld.u32 %r1, [%rd1];\nld.u32 %r2, [%rd1];\nadd.s32 %r3, %r1, %r2;\nret;"
    assert program(body, machine=slow, latencies=None).letters == "LLC"
    ahead = program(body, machine=slow, latencies=None, dependences=Dependences.REGISTERS)
    assert ahead.timings == parse_string("L()L()C(1,2)", slow).timings
    assert "with stall on use" in conditions(ahead.assumptions)
    assert "with stall on use" not in conditions(program(body, machine=slow, latencies=None).assumptions)


def test_an_instruction_without_unit_breaks_no_chain() -> None:
    body, asked = "ld.u32 %r1, [%rd1];\nsetp.eq.s32 %p1, %r1, 0;\n@%p1 exit;\nst.u32 [%rd1], 1;\nret;", "registers"
    with pytest.raises(UnsupportedError, match=r"k.ptx:7: `@%p1 exit;` needs no unit here.*--classes FILE"):
        program(body, machine=PAPER, latencies=None, dependences=Dependences(asked))
    assert program(body, machine=PAPER, latencies=None, dependences=Dependences(asked), classes={"exit": "C"}).timings


def test_what_the_machine_does_not_tell_is_asked_for() -> None:
    message = (
        r"^k.ptx: .* global, first used at line 5, .* 'timed' .* 20 cycles or more .*; .* \(latencies atomic=\.\.N\)$"
    )
    with pytest.raises(InputError, match=message):
        program("ld.u32 %r1, [%rd1];\nred.add.u32 [%rd1], 1;\nret;", latencies=None)
    with pytest.raises(
        InputError, match=r"k.ptx:5: `tex.* is an operation texture, which machine 'timed' does not time"
    ):
        program("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}];\nret;")
    bare = replace(TIMED, operations=tuple(row for row in TIMED.operations if row.name == "branch"))
    with pytest.raises(
        InputError, match=r"k.ptx:5: .* operation int, .*; add \[operations.int\], \[operations.global\] to"
    ):
        program("add.s32 %r2, %r2, 1;\nld.u32 %r1, [%rd1];\nadd.s32 %r2, %r2, 1;\nret;", machine=bare, latencies=None)
    with pytest.raises(InputError, match="leave out --profile, --classes and --unknown"):
        program("ret;", profile="modern")
    with pytest.raises(InputError, match=r"machine 'paper' does not time the operation global; it times classes"):
        program("ret;", machine=PAPER)


def test_a_verdict_says_what_was_given() -> None:
    body = "ld.u32 %r1, [%rd1];\nadd.f32 %f1, %f2, %f3;\nret;"
    assert conditions(program(body).assumptions) == (
        "for the PTX as written", "with stall on use", "if global takes at most 40 cycles",
    )  # fmt: skip
    less = program(body, latencies=given_latencies(["global=8..9", "fp32=4"]), dependences=Dependences.BLOCKING)
    assert conditions(less.assumptions) == (
        "for the PTX as written", "with every result waited for",
        "if fp32 takes 4 cycles and global 8..9, less than the machine says",
    )  # fmt: skip


def test_a_verdict_names_latencies_that_nobody_has_confirmed_where_it_rests_on_them() -> None:
    rows = (replace(row, is_verified=row.name not in ("fp32", "sfu")) for row in TIMED.operations)
    doubtful, body = replace(TIMED, operations=tuple(rows)), "ld.u32 %r1, [%rd1];\nadd.f32 %f1, %f2, %f3;\nret;"
    said = "with unverified latencies (fp32)"
    assert said in conditions(program(body, machine=doubtful).assumptions)
    for plain in program(body), program(body, machine=doubtful, latencies=given_latencies(["global=9", "fp32=4"])):
        assert said not in conditions(plain.assumptions)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("global", "a latency is given as global=400"),
        ("global=4..", "a latency is given as global=400"),
        ("global=..0", r"latency of global: 1..100000 cycles, not 0"),
        ("global=100001", r"latency of global: 1..100000 cycles"),
        ("global=9..8", r"latency of global: 9..8 is no range"),
        ("globe=9", "unknown operation 'globe'; did you mean 'global'[?] known: fp32"),
    ],
)
def test_a_latency_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        given_latencies([text])


def test_a_latency_is_given_once_and_not_below_what_the_machine_says_by_accident() -> None:
    with pytest.raises(InputError, match="the latency of global is given twice"):
        given_latencies(["global=4", "global=5"])
    with pytest.raises(InputError, match=r"global takes 20 cycles at least, and at most 9 are given; say global=9 to"):
        program("ret;", latencies=given_latencies(["global=..9"]))


def test_an_instruction_that_awaits_too_much_is_refused() -> None:
    loads = "\n".join(f"ld.u32 %r{number}, [%rd1];" for number in range(70))
    sources = ", ".join(f"%r{number}" for number in range(70))
    with pytest.raises(UnsupportedError, match=r"awaits or sets 70 results, and the limit is 64"):
        program(f"{loads}\nst.u32 [%rd1], {{{sources}}};\nret;")


def test_a_vector_is_one_result_however_long() -> None:
    targets = ", ".join(f"%r{number}" for number in range(70))
    made = program(f"ld.u32 {{{targets}}}, [%rd1];\nst.u32 [%rd1], {{{targets}}};\nret;")
    assert made.timings[:2] == (InstructionTiming(1, (20, 40), (0,)), InstructionTiming(1, (20, 40), (), (0,)))


def test_a_question_has_programs_for_the_machine_that_it_is_asked_on() -> None:
    path = next(path for path in SAMPLES if path.stem == "vecadd")
    question = KernelQuestion(path, warps=2, latencies=MOST)
    assert question.instance(TIMED).runs_ahead
    assert not KernelQuestion(path, warps=2).instance().runs_ahead
    blocking = replace(question, dependences=Dependences.BLOCKING).instance(TIMED)
    assert blocking.groups[0].program.end == question.instance(TIMED).groups[0].program.end
    with pytest.raises(InputError, match=r"dependences of a kernel are ptx\.Dependences"):
        replace(question, dependences="registers")  # type: ignore[arg-type]


@pytest.mark.parametrize("dependences", Dependences)
@pytest.mark.parametrize(
    "body",
    [
        "ld.u32 %r1, [%rd1];\nld.u32 %r2, [%rd1+4];\nadd.s32 %r1, %r1, %r2;\nst.u32 [%rd1], %r1;\nret;",
        "setp.eq.s32 %p1, %r9, 0;\n@%p1 bra E;\nld.u32 %r2, [%rd1];\nE: add.s32 %r2, %r2, 1;\nret;",
        "ld.u32 %r1, [%rd1];\nbar.sync 0;\nadd.s32 %r3, %r1, 1;\nst.u32 [%rd1], %r3;\nmembar.gl;\nret;",
    ],
)
def test_what_is_proven_of_a_kernel_is_what_its_schedules_take(body: str, dependences: Dependences) -> None:
    brief = given_latencies(["global=2..4", "branch=1..2", "predicate=2", "int=2", "fence=2"])
    instance = Instance.of(program(body, latencies=brief, dependences=dependences), 2, TIMED)
    truth = brute_force(instance).upper
    assert solve(instance, limits=Limits(20)).bounds == Bounds(truth, truth)
