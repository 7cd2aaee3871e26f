"""What control bits say of a kernel, against recurrences and runs of their own that know nothing of tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host import tool
from makespan.host.errors import InputError, MissingInputsError, UnsupportedError
from makespan.kernels import kernel_file
from makespan.kernels.flow import Launch, missing_fetches
from makespan.kernels.sass import Address, SassInstruction, SassKernel, SassModule, program, programs, warps
from makespan.model.conditions import conditions
from makespan.model.instance import Instance
from makespan.model.machine import (
    FETCHES,
    OPERATIONS,
    PAPER,
    KnownLapses,
    LineCache,
    Machine,
    TimedOperation,
    UnitClass,
    given_latencies,
)
from makespan.model.program import BARRIER, InstructionTiming
from makespan.model.result import Bounds
from makespan.proof.bounds.theorem_1s import bound
from makespan.proof.engines import solve
from tests.oracle import brute_force
from tests.sass.coded import coded

BRIEF = {"global": 3, "shared": 2, "special": 2, "branch": 1, "barrier": 2, "fence": 4, "operands": 2}
CYCLES = {"global": 90, "shared": 33, "special": 50, "branch": 8, "barrier": 40, "fence": 60, "operands": 12}
CYCLES |= {"atomic": 80, "sfu": 29, "shuffle": 41, "convert": 14}
STEERS = {"EXIT", "BRA", "BAR"}
LATE = "with operands read as late as results"
BEHIND = "with operands read behind later instructions"
OPERATION = {"LDG": "global", "LDS": "shared", "STS": "shared", "S2R": "special", "EXIT": "branch", "MEMBAR": "fence"}
OPERATION |= {
    "S2UR": "special",
    "STG": "global",
    "RED": "atomic",
    "MUFU": "sfu",
    "SHFL": "shuffle",
    "I2F": "convert",
    "I2FP": "convert",
}


SMALL_CACHE = LineCache(64, 4, 2, 79)


def machine(most: dict[str, int], least: int = 1) -> Machine:
    """One class for all, an instruction a cycle."""
    rows = tuple(TimedOperation(name, "C", min(least, most.get(name, least)), most.get(name)) for name in OPERATIONS)
    return Machine("timed", (UnitClass("C", 1),), issue_width=1, operations=rows)


def timings(text: str, least: int = 1) -> tuple[InstructionTiming, ...]:
    return program(coded(text), machine=machine(CYCLES, least)).timings


def fields(word: int) -> tuple[int, dict[str, int], int]:
    """Stall, the counters that go up, and the mask of those that are awaited: bits 105..121 of a word."""
    ups = {what: word >> at & 7 for what, at in (("write", 110), ("read", 113)) if word >> at & 7 != 7}
    return word >> 105 & 15, ups, word >> 116 & 63


def most(instruction: SassInstruction, what: str, cycles: dict[str, int]) -> int:
    """Until a result is there, or operands have been read."""
    result = cycles[OPERATION[instruction.name]]
    return result if what == "write" else min(result, cycles["operands"])


def alone(kernel: SassKernel, cycles: dict[str, int]) -> int:
    """When a warp alone ends at the latest, from issue to issue, all of its words in order."""
    now, goes_on, down = 0, 0, [0] * 6
    for instruction in kernel.code:
        stall, ups, mask = fields(instruction.word)
        now = max([now, goes_on, *(down[counter] for counter in range(6) if mask >> counter & 1)])
        for what, counter in ups.items():
            down[counter] = max(down[counter], now + most(instruction, what, cycles))
        goes_on = now + cycles[{"BAR": "barrier"}.get(instruction.name, "branch")] * (instruction.name in STEERS)
        now += stall
    return max(now, goes_on, *down)


VECTOR_ADD = """
B------:R-:W-:-:S02 MOV R1, c[0x0][0x28]
B------:R-:W0:-:S04 S2R R6, SR_CTAID.X
B------:R-:W0:-:S02 S2R R3, SR_TID.X
B0-----:R-:W-:Y:S05 IMAD R6, R6, c[0x0][0x0], R3
B------:R-:W-:Y:S13 ISETP.GE.AND P0, PT, R6, c[0x0][0x178], PT
B------:R-:W-:-:S05 @P0 EXIT
B------:R-:W-:-:S01 MOV R7, 0x4
B------:R-:W-:Y:S04 IMAD.WIDE R4, R6, R7, c[0x0][0x168]
B------:R-:W-:-:S02 IMAD.WIDE R2, R6, R7, c[0x0][0x160]
B------:R-:W2:-:S04 LDG.E.CONSTANT R4, [R4.64]
B------:R-:W2:-:S01 LDG.E.CONSTANT R3, [R2.64]
B------:R-:W-:-:S01 IMAD.WIDE R6, R6, R7, c[0x0][0x170]
B--2---:R-:W-:Y:S05 FADD R9, R4, R3
B------:R-:W-:-:S01 STG.E [R6.64], R9
B------:R-:W-:-:S05 EXIT
"""


def test_a_warp_alone_takes_what_control_bits_and_latencies_add_up_to() -> None:
    kernel = coded(VECTOR_ADD)
    made = program(kernel, machine=machine(CYCLES))
    by_hand = 2 + 4 + 50 + 5 + 13 + 8 + 1 + 4 + 2 + 4 + 90 + 5 + 1 + 8
    assert alone(kernel, CYCLES) == by_hand == bound(Instance.of(made, 1, machine(CYCLES)))


SAMPLES = "fft_butterfly histogram polynomial saxpy_unrolled sha256_round stencil vecadd warp_reduction"
LOOPS = {"bitonic": {}, "fir": {}, "matmul_tiled": {"3": 64}, "nearest_point": {"5": 9}, "reduction": {}}
"""With the parameters that decide how often they run."""

needs_tools = pytest.mark.skipif(
    tool.find("ptxas") is None or tool.find("nvdisasm") is None, reason="the tools for machine code are not installed"
)


def sample(name: str) -> SassKernel:
    module = kernel_file.read(Path(__file__).parents[2] / "ptx" / f"{name}.ptx", arch="sm_86")
    assert isinstance(module, SassModule)
    return module.kernel()


@needs_tools
@pytest.mark.parametrize("name", SAMPLES.split())
def test_a_warp_alone_takes_the_critical_path_of_a_sample_kernel(name: str) -> None:
    kernel, timed = sample(name), machine(CYCLES)
    assert bound(Instance.of(program(kernel, machine=timed), 1, timed)) == alone(kernel, CYCLES)


@needs_tools
@pytest.mark.parametrize("name", LOOPS)
def test_a_warp_alone_takes_the_critical_path_of_a_sample_with_loops(name: str) -> None:
    kernel, timed = sample(name), machine(CYCLES)
    launch = Launch((16, 16, 1) if name == "matmul_tiled" else (256, 1, 1), None, LOOPS[name])
    made, _ = programs(kernel, launch=launch, machine=timed)[-1]  # warps that none of its branches parts
    assert all(len(place.successors) == 1 for place in made.places)
    issued = [origin.line for origin, place in zip(made.origins, made.places, strict=True) if place.unit != BARRIER]
    at = {instruction.address: instruction for instruction in kernel.code}
    unrolled = replace(kernel, code=tuple(at[Address(address)] for address in issued))
    assert len(issued) > len(kernel.code)
    longest = alone(unrolled, CYCLES)
    assert solve(Instance.of(made, 1, timed)).bounds == Bounds(longest, longest)


def test_what_goes_without_a_counter_needs_no_latency() -> None:
    """Nobody waits for a store, and nobody asks how long it takes."""
    store = "B------:R-:W-:-:S04 STG.E [R2.64], R0\nB------:R-:W-:-:S05 EXIT"
    made = program(coded(store), machine=machine({"branch": 8}))
    assert made.timings == (InstructionTiming(4, (1, 1)), InstructionTiming(5, (1, 8), (0,)))
    with pytest.raises(
        InputError,
        match=r"^listed\.cubin: kernel listed: 1 input is missing: the latency of operation global, first used at 0x0,"
        r" of which machine 'timed' knows only that it is 1 cycle or more \(latencies global=\.\.N\)$",
    ):
        program(
            coded("B------:R-:W1:-:S04 LDG.E R0, [R2.64]\nB------:R-:W-:-:S05 EXIT"), machine=machine({"branch": 8})
        )


EXIT = "B------:R-:W-:-:S05 EXIT"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # a result takes its least at least; where nothing may be done, and where operands are read, one cycle
        ("B------:R-:W0:-:S02 LDG.E R0, [R2.64]", [InstructionTiming(2, (20, 90), (0,))]),
        ("B------:R-:W0:-:S02 @P0 LDG.E R0, [R2.64]", [InstructionTiming(2, (1, 90), (0,))]),
        ("B------:R3:W-:-:S02 STS [R2], R1", [InstructionTiming(2, (1, 12), (0,))]),
        ("B------:R3:W3:-:S02 LDG.E R0, [R2.64]", [InstructionTiming(2, (20, 90), (0,))]),
        # nobody says how long these are
        ("B------:R-:W-:Y:S00 MOV R0, R1", [InstructionTiming(1, (1, 46), (0,))]),
        ("B------:R-:W-:-:S12 MOV R0, R1", [InstructionTiming(1, (1, 12), (0,))]),
        ("B------:R-:W-:Y:S01 MOV R0, R1", [InstructionTiming(1, (1, 2), (0,))]),
        # and of these the compiler does
        ("B------:R-:W-:Y:S12 MOV R0, R1", [InstructionTiming(12)]),
        ("B------:R-:W-:-:S11 MOV R0, R1", [InstructionTiming(11)]),
        ("B------:R-:W-:-:S01 MOV R0, R1", [InstructionTiming(1)]),
        # a branch that may not be taken holds up as well
        ("B------:R-:W-:-:S05 @P0 EXIT", [InstructionTiming(5, (1, 8), (0,))]),
        ("B------:R-:W-:-:S06 MEMBAR.SC.GPU", [InstructionTiming(6, (1, 60), (0,))]),
        (
            "B------:R-:W-:-:S06 BAR.SYNC 0x0",
            [InstructionTiming(6, (1, 40), (0,)), InstructionTiming(0, (0, 0), (), (0,))],
        ),
    ],
)
def test_what_an_instruction_sets(lines: str, expected: Sequence[InstructionTiming]) -> None:
    assert timings(f"{lines}\n{EXIT}", 20)[: len(expected)] == tuple(expected)


@pytest.mark.parametrize(
    ("line", "awaited"),
    [
        ("B0-----:R-:W-:-:S01 MOV R0, R1", {0}),
        ("B-1-3--:R-:W-:-:S01 MOV R0, R1", {1, 3}),
        ("B------:R-:W-:-:S01 DEPBAR.LE SB3, 0x0", {3}),
        ("B0-----:R-:W-:-:S01 DEPBAR.LE SB3, 0x0, {1,2}", {0, 1, 2, 3}),
        ("B------:R-:W-:-:S01 DEPBAR {2,0}", {0, 2}),
        ("B------:R-:W-:-:S01 BAR.SYNC 0x0", set()),
    ],
)
def test_what_an_instruction_awaits(line: str, awaited: set[int]) -> None:
    loads = [f"B------:R-:W{counter}:-:S02 LDG.E R{counter}, [R8.64]" for counter in range(4)]
    waits_for_all = "B0123--:R-:W-:-:S01 MOV R9, R9"
    made = timings("\n".join([*loads, line, waits_for_all, EXIT]))
    assert {made[:4].index(setter) for setter in made[:4] if set(setter.sets) & set(made[4].awaits)} == awaited


def test_a_fence_waits_for_accesses_and_holds_its_warp_up() -> None:
    store, load, fence, plain, _ = timings(
        "B------:R-:W-:-:S01 STG.E [R2.64], R0\nB------:R-:W1:-:S02 LDG.E R4, [R2.64]\n"
        f"B------:R-:W-:-:S06 MEMBAR.SC.GPU\nB-1----:R-:W-:-:S01 MOV R0, R4\n{EXIT}"
    )
    assert set(store.sets) & set(load.sets) == set(fence.awaits) != set()
    assert (store.latency, load.latency, fence.latency) == ((1, 90), (1, 90), (1, 60))
    assert set(fence.sets) <= set(plain.awaits)


def test_a_store_behind_the_last_fence_is_not_waited_for() -> None:
    _, store, _ = timings(f"B------:R-:W-:-:S06 MEMBAR.SC.GPU\nB------:R-:W-:-:S01 STG.E [R2.64], R0\n{EXIT}")
    assert store.sets == ()


def test_lanes_come_together_no_earlier_than_the_register_that_says_where() -> None:
    begin, _, meet, _ = timings(
        f"B------:R-:W-:-:S01 BSSY B0, 0x30\nB------:R-:W-:-:S01 MOV R0, R1\nB------:R-:W-:-:S05 BSYNC B0\n{EXIT}"
    )
    assert begin.sets == meet.awaits
    assert begin.latency == meet.latency == (1, 8)
    assert meet.sets


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("B------:R-:W-:-:S04 DEPBAR.LE SB0, 0x1", "waits for some of its counter, and nobody says which of them come"),
        ("B------:R-:W-:-:S04 DEPBAR.LE SB7, 0x0", "waits for what nobody has written down"),
        ("B------:R-:W0:-:S04 LDGDEPBAR", "its counter is up until the copies before it are done"),
        ("B------:R-:W0:Y:S00 S2R R0, SR_TID.X", "a stall of 0 beside a counter, of unknown length"),
    ],
)
def test_waiting_that_control_bits_do_not_say_is_refused(line: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"listed\.cubin:0x0: `[^`]*`: {message}.*; only a machine without"):
        timings(f"{line}\n{EXIT}")


def test_warm_caches_are_those_that_a_machine_knows() -> None:
    known = replace(machine(CYCLES), lapses=KnownLapses(code=LineCache(128, 8, 32, 86)))
    ends = coded("B------:R-:W-:-:S01 EXIT;")
    assert [warps(ends, machine=known, warm=said).code.warm for said in (True, False)] == [True, False]
    for cold in (machine(CYCLES), replace(known, lapses=KnownLapses(multiply=1)), PAPER):
        with pytest.raises(InputError, match="knows no cache of code or constants, so warm says nothing: leave it out"):
            warps(ends, machine=cold, warm=True)


@pytest.mark.parametrize(
    ("given", "leaving", "warm", "asked"),
    [
        ([], [], False, {"fetch=..N": True, "constant-miss=..N": True}),
        (["fetch=..600"], [], False, {"constant-miss=..N": True}),
        (["fetch=..600", "constant-miss=..9"], ["fetch"], False, {}),
        ([], [], True, {}),
        ([], ["fetch"], True, {"fetch=..N": False}),
        ([], ["constant-miss"], False, {"fetch=..N": True, "constant-miss=..N": False}),
    ],
)
def test_first_fetches_are_asked_for_unless_the_caches_are_warm(
    given: Sequence[str], leaving: Sequence[str], warm: bool, asked: dict[str, bool]
) -> None:
    known = replace(machine(CYCLES), lapses=KnownLapses(code=SMALL_CACHE, constants=SMALL_CACHE))
    found = missing_fetches(known, given_latencies(given), FETCHES, leaving, warm=warm)
    assert {each.blank: bool(each.instead) for each in found} == asked
    assert missing_fetches(known, {}, (), warm=warm) == ()


def test_what_is_asked_for_names_both_remedies() -> None:
    known = replace(machine(CYCLES), lapses=KnownLapses(code=SMALL_CACHE))
    (found,) = missing_fetches(known, {}, FETCHES)
    said = {"latencies": "--latency", "warm": "--warm"}.__getitem__
    assert str(MissingInputsError.of("k.cubin", [found], said)) == (
        "k.cubin: 1 input is missing: the first fetch of a line of code, of which machine 'timed' knows no upper end"
        " (--latency fetch=..N, or --warm)"
    )


def test_a_machine_without_operations_knows_loads_from_the_rest_and_no_control_bits() -> None:
    text = (
        "B------:R-:W0:-:S02 LDG.E R0, [R2.64]\nB0-----:R-:W-:-:S06 BAR.SYNC 0x0\nB------:R-:W-:-:S04 FADD R0, R0, R0"
    )
    made = program(coded(f"{text}\n{EXIT}"))
    assert made.letters == f"L{BARRIER}CC"
    assert not made.timings


def test_what_must_hold_is_said() -> None:
    text = VECTOR_ADD.replace("R-:W2:-:S04 LDG", "R1:W2:-:S04 LDG").replace(
        "B------:R-:W2:-:S01", "B-1----:R-:W2:-:S01"
    )
    given = given_latencies(["global=..80", "fp64=9"])
    made = program(coded(text), machine=machine(CYCLES), latencies=given)
    operations, latency, bits, held, late, compiled, _, guarded, constants, *_ = map(str, made.assumptions)
    assert operations == (
        "operations of machine 'timed', with class and any of the cycles: fp32 C, int C, int-multiply C, predicate C,"
        " special C 1..50, branch C 1..8, global C 1..80, operands C 1..12"
    )
    assert latency == "latency as given: global takes at most 80 cycles; the machine says 1..90"
    assert bits.startswith("control bits: a warp goes on when the stall of its last instruction has passed")
    assert held.startswith("a branch, barrier or fence holds its warp up")
    assert late.endswith("has read them when that is there, and not before")
    assert compiled == "the hardware executes the machine code as it is, for sm_86"
    assert not guarded.startswith("guarded")  # an exit is a branch
    assert constants
    assert LATE in conditions(made.assumptions)
    assert LATE not in conditions(program(coded(VECTOR_ADD), machine=machine(CYCLES)).assumptions)


def test_a_verdict_doubts_the_reading_of_operands_where_a_counter_waits_for_it() -> None:
    rows = (replace(row, is_verified=row.name != "operands") for row in machine(CYCLES).operations)
    doubtful = replace(machine(CYCLES), operations=tuple(rows))
    counted = f"B------:R1:W-:-:S04 STS [R2], R0\nB-1----:R-:W-:-:S02 MOV R0, R4\n{EXIT}"
    said = "with unverified latencies (operands)"
    assert said in conditions(program(coded(counted), machine=doubtful).assumptions)
    assert said not in conditions(program(coded(VECTOR_ADD), machine=doubtful).assumptions)


@pytest.mark.parametrize(
    ("lines", "carrier", "most"),
    [
        (["B------:R-:W-:-:S01 MOV R8, R9", "B-1----:R-:W-:-:S01 MOV R2, R9"], 1, 12 - 2),
        (
            [
                "B------:R-:W3:-:S02 S2R R8, SR_TID.X",
                "B------:R-:W-:-:S01 MOV R9, R9",
                "B-1----:R-:W-:-:S01 MOV R2, R9",
            ],
            2,
            12 - 2 - 2,
        ),
        (
            ["B------:R-:W-:-:S12 MOV R8, R9", "B------:R-:W-:-:S01 MOV R9, R9", "B-1----:R-:W-:-:S01 MOV R2, R9"],
            2,
            12 - 2 - 1,
        ),
        (["B-1----:R-:W-:-:S01 MOV R2, R9"], None, 90),
        (["B------:R-:W-:-:S01 DEPBAR.LE SB1, 0x0", "B------:R-:W-:-:S01 MOV R2, R9"], None, 90),
        ([], None, 90),
    ],
)
def test_a_later_instruction_sets_the_counter_for_operands(lines: list[str], carrier: int | None, most: int) -> None:
    """Before anybody awaits it, and one that sets nothing else, for what is left of the cycles behind the stalls."""
    made = program(
        coded("\n".join(["B------:R1:W0:-:S02 LDG.E R4, [R2.64]", *lines, EXIT])), machine=machine(CYCLES, 20)
    )
    load = made.timings[0]
    if carrier is None:
        assert load.latency == (20, most)
        assert LATE in conditions(made.assumptions)
        assert BEHIND not in conditions(made.assumptions)
        return
    bearer, last = made.timings[carrier], made.timings[len(lines)]
    assert (load.latency, len(load.sets)) == ((20, 90), 1)
    assert (bearer.latency, len(bearer.sets)) == ((1, most), 1)
    assert bearer.sets[0] in last.awaits
    assert load.sets[0] not in last.awaits
    assert LATE not in conditions(made.assumptions)
    assert BEHIND in conditions(made.assumptions)


def test_operands_that_have_been_read_before_a_later_instruction_need_no_caveat() -> None:
    made = program(
        coded(
            "B------:R1:W0:-:S02 LDG.E R4, [R2.64]\nB------:R-:W-:-:S09 MOV R8, R9\nB-1----:R-:W-:-:S01 MOV R2, R9\n"
            + EXIT
        ),
        machine=machine(CYCLES | {"operands": 3}),
    )
    assert made.timings[2].awaits == ()
    assert not {LATE, BEHIND} & set(conditions(made.assumptions))


def test_all_warps_of_a_block_run_the_program() -> None:
    ((made, warps),) = programs(coded(VECTOR_ADD), launch=Launch((96, 1, 1)), machine=machine(CYCLES))
    assert warps == 3
    assert made == program(coded(VECTOR_ADD), machine=machine(CYCLES))


def test_one_instruction_carries_one_counter_for_all_that_set_it() -> None:
    lines = """
    B------:R1:W0:-:S02 LDG.E R4, [R2.64]
    B------:R2:W0:-:S02 LDG.E R5, [R6.64]
    B------:R1:W0:-:S02 LDS R9, [R8]
    B------:R-:W-:-:S01 MOV R10, R11
    B------:R-:W-:-:S01 MOV R10, R11
    B0-----:R-:W-:-:S01 MOV R2, R4
    B-1----:R-:W-:-:S01 MOV R2, R4
    B--2---:R-:W-:-:S01 MOV R2, R4
    """
    made = program(coded(f"{lines.strip()}\n{EXIT}"), machine=machine(CYCLES | {"operands": 60}))
    one, other = made.timings[3:5]
    assert (one.latency, one.sets) == ((1, 60 - 6), made.timings[6].awaits)
    assert (other.latency, other.sets) == ((1, 60 - 5), made.timings[7].awaits)


@st.composite
def listings(draw: st.DrawFn, most: int) -> str:
    """A few instructions whose control bits are whatever they are; what sets a counter is seen two cycles later."""
    lines = []
    for _ in range(draw(st.integers(1, most))):
        mask = "".join(draw(st.sampled_from(("-", "-", str(counter)))) for counter in range(2)) + "----"
        pairs = [("-", "-"), ("-", "-"), ("-", "0"), ("-", "1"), ("0", "-"), ("1", "1"), ("0", "1"), ("1", "0")]
        read, write = draw(st.sampled_from(pairs))
        stall = draw(st.integers(1 if read == write == "-" else 2, 4))
        text = draw(st.sampled_from(["LDG.E R0, [R2.64]", "LDS R0, [R2]", "S2R R0, SR_TID.X"]))
        lines.append(f"B{mask}:R{read}:W{write}:-:S{stall:02} {text}")
    return "\n".join([*lines, EXIT])


def has_two_counters(kernel: SassKernel) -> bool:
    """Whether operands and result of some instruction count apart."""
    return any(len(set(fields(instruction.word)[1].values())) > 1 for instruction in kernel.code)


@settings(max_examples=60)
@given(listings(12))
def test_the_longest_time_alone_is_that_of_the_recurrence(text: str) -> None:
    kernel, timed = coded(text), machine(CYCLES)
    found = bound(Instance.of(program(kernel, machine=timed), 1, timed))
    truth = alone(kernel, CYCLES)
    assert found >= truth if has_two_counters(kernel) else found == truth


State = tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]
"""Of every warp: its next instruction, cycles until it may issue, and counts with the cycles until each goes down."""


def longest(kernel: SassKernel, warps: int, cycles: dict[str, int]) -> int:
    """The longest run of warps of which one issues in each cycle in which one can: counters go up and down."""
    end = len(kernel.code)
    states: set[State] = {((0, 0, ()),) * warps}
    took = 0
    while states:
        states = {after for state in states for after in _cycle(kernel, state, cycles)}
        took += 1
        states = {state for state in states if any(at < end or wait or counts for at, wait, counts in state)}
    return took


def _cycle(kernel: SassKernel, state: State, cycles: dict[str, int]) -> Iterator[State]:
    ready = []
    for warp, (at, wait, counts) in enumerate(state):
        if at < len(kernel.code) and not wait:
            mask = fields(kernel.code[at].word)[2]
            if not any(mask >> counter & 1 for counter, _ in counts):
                ready.append(warp)
    aged = tuple(
        (at, max(0, wait - 1), tuple(sorted((counter, left - 1) for counter, left in counts if left > 1)))
        for at, wait, counts in state
    )
    if not ready:
        yield aged
    for warp in ready:
        at, _, counts = aged[warp]
        instruction = kernel.code[at]
        stall, ups, _ = fields(instruction.word)
        for chosen in product(*(range(1, most(instruction, what, cycles) + 1) for what in ups)):
            up = ((counter, left - 1) for counter, left in zip(ups.values(), chosen, strict=True) if left > 1)
            yield (*aged[:warp], (at + 1, stall - 1, tuple(sorted((*counts, *up)))), *aged[warp + 1 :])


@settings(max_examples=40)
@given(listings(3))
def test_the_longest_run_of_two_warps_is_that_of_counters(text: str) -> None:
    """No run is longer than the bound, nor, where no caveat says so, than the longest run of the program."""
    kernel, timed = coded(text), machine(BRIEF)
    made = program(kernel, machine=timed)
    instance, truth = Instance.of(made, 2, timed), longest(kernel, 2, BRIEF)
    assert truth <= bound(instance)
    if not has_two_counters(kernel):
        assert truth == brute_force(instance).upper
        return
    said = conditions(made.assumptions)
    if LATE not in said:
        assert truth <= brute_force(instance).upper
    if not {LATE, BEHIND} & {*said}:
        assert truth == brute_force(instance).upper
