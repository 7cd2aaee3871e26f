"""What a launch asks of DRAM: never less than a run does, and what the verdict says of it."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from makespan import InputError, KernelQuestion, Launch, Program
from makespan.kernels import dram, ptx
from makespan.kernels.gpu_question import SharedLaunch, gpu_instance, of_kernels
from makespan.kernels.question import launch_kernel
from makespan.model.assumptions import AssumptionKind
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import given_intervals, given_latencies, gpus, narrow_intervals
from makespan.model.program import BARRIER, Access, InstructionTiming, ProgramPlace, merge_groups
from makespan.model.simulate import POLICIES, Choices, run
from makespan.proof.bounds.theorem_g import theorem_g

ROOT = Path(__file__).parents[1]
CARD = gpus.find_gpu("rtx-3070")
SHORT = ["global=..90", "local=..70", "atomic=..80"]
LOAD, STORE = Access("global", 1024, True), Access("global", 2048, False)
WORDS = {"ld.global": 1024, "LDG.": 1024, "ld.local": 1024, "atom.global": 2048}
KERNELS = ("vecadd", "matmul_tiled", "reduction", "saxpy_unrolled", "stencil", "spmv_csr")


def asked(name: str, latencies: list[str], blocks: int = 1, **more: Any) -> KernelQuestion:
    launch = Launch((64, 1, 1), (blocks, 1, 1))
    given = given_latencies(latencies)
    return KernelQuestion(ROOT / "ptx" / name, launch=launch, blocks_per_sm=1, latencies=given, **more)


# Bytes in flight


def flying(instance: Instance, policy: str, seed: int) -> Iterator[tuple[Program, int]]:
    """Of every warp of a run, the bytes of loads whose results are not there yet, at most; loads by their text."""
    schedule = run(instance, policy, Choices(latency="random", path="random", interval="random", seed=seed))
    programs, done = tuple(instance.programs()), [0] * instance.warps
    stays: list[list[tuple[int, int, int]]] = [[] for _ in programs]
    for op in schedule.ops(instance):
        text = programs[op.warp].origins[op.place].text
        latency = schedule.latencies[op.warp][done[op.warp]]
        done[op.warp] += 1
        stays[op.warp] += [(op.cycle, op.cycle + latency, size) for word, size in WORDS.items() if word in text]
    for program, own in zip(programs, stays, strict=True):
        yield program, max((sum(size for a, b, size in own if a <= cycle < b) for cycle, *_ in own), default=0)


@pytest.mark.parametrize("name", [*(f"{kernel}.ptx" for kernel in KERNELS), "reduction.sm_86.cubin"])
def test_no_run_has_more_in_flight_than_is_counted(name: str) -> None:
    (instance,) = launch_kernel(asked(name, SHORT, warm=name.endswith(".cubin"))).instances(CARD.machine)
    draw, most = random.Random(name), 0
    for _ in range(6):
        for program, seen in flying(instance, draw.choice(sorted(POLICIES)), draw.randrange(2**32)):
            assert seen <= dram.bytes_in_flight(program)
            most = max(most, seen)
    assert most > 0


def test_what_is_counted_is_in_flight_in_some_run() -> None:
    (instance,) = launch_kernel(asked("vecadd.ptx", SHORT)).instances(CARD.machine)
    seen = [pair for seed in range(3) for pair in flying(instance, "gto", seed)]
    assert max(flown for _, flown in seen) == dram.bytes_in_flight(seen[0][0]) == 2 * 1024


ACCESSES = (None, LOAD, LOAD, LOAD._replace(moved=4096), STORE, Access("texture", None, True))


def random_program(draw: random.Random) -> Program:
    """A small automaton whose warps run ahead, with accesses and barriers anywhere."""
    size = draw.randint(2, 10)
    places, timings, accesses = [], [], []
    for at in range(size):
        after = {at + 1} | ({draw.randint(at + 1, size)} if draw.random() < 0.6 else set())
        awaits = tuple(sorted(draw.sample(range(3), draw.choice((0, 0, 1, 2)))))
        is_barrier = at > 0 and draw.random() < 0.1
        sets = () if is_barrier else tuple(sorted(draw.sample(range(3), draw.choice((0, 1, 1, 2)))))
        places.append(ProgramPlace(BARRIER if is_barrier else "L", tuple(sorted(after))))
        timings.append(
            InstructionTiming(0, (0, 0), (), awaits) if is_barrier else InstructionTiming(1, (1, 9), sets, awaits)
        )
        accesses.append(None if is_barrier else draw.choice(ACCESSES))
    return Program(tuple(places), timings=tuple(timings), accesses=tuple(accesses))


def paths(program: Program, at: int) -> Iterator[tuple[int, ...]]:
    if at == program.end:
        yield ()
        return
    for after in program.places[at].successors:
        yield from ((at, *rest) for rest in paths(program, after))


def on_path(program: Program, path: tuple[int, ...]) -> int:
    """Bytes in flight along one path, one access after the other: it is there once any of what it set was awaited."""
    pending: list[int] = []
    most = 0
    for at in path:
        awaited = set(program.timings[at].awaits)
        pending = [one for one in pending if not awaited & set(program.timings[one].sets)]
        access = program.accesses[at]
        pending += [at] * (access is not None and access.is_awaited)
        most = max(most, sum((program.accesses[one] or LOAD).moved or 0 for one in pending))
    return most


def test_what_is_in_flight_is_no_less_than_on_any_path_and_exact_on_one() -> None:
    draw = random.Random(1)
    for _ in range(1500):
        program = random_program(draw)
        each = [on_path(program, path) for path in paths(program, 0)]
        assert dram.bytes_in_flight(program) >= max(each)
        if program.is_chain:
            assert dram.bytes_in_flight(program) == each[0]


def test_a_warp_that_blocks_has_one_access_in_flight() -> None:
    (blocking,) = launch_kernel(asked("vecadd.ptx", SHORT, dependences=ptx.Dependences.BLOCKING)).instances(
        CARD.machine
    )
    assert {dram.bytes_in_flight(program) for program in blocking.programs()} == {2048}  # a store is waited for, too
    assert dram.bytes_in_flight(replace(Program.chain("LLL"), accesses=(LOAD, LOAD, STORE))) == 1024
    assert dram.bytes_in_flight(Program.chain("LLL")) == 0


# Bytes that are moved


def test_what_is_moved_is_that_of_the_heaviest_path() -> None:
    draw = random.Random(2)
    for _ in range(200):
        program = random_program(draw)
        known = tuple(one and one._replace(moved=one.moved or 0) for one in program.accesses)
        program = replace(program, accesses=known)
        each = (
            sum((program.accesses[at] or Access("", 0, True)).moved or 0 for at in path) for path in paths(program, 0)
        )
        assert dram.bytes_moved(program) == max(each)
    assert dram.bytes_moved(Program.chain("LL")) == 0


@pytest.mark.parametrize(
    ("instruction", "moved", "is_awaited"),
    [
        ("ld.global.f32 %f1, [%rd1];", 1024, True),
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", 1024, True),
        ("ld.global.L2::128B.f32 %f1, [%rd1];", 4096, True),
        ("ld.local.f32 %f1, [%rd1];", 1024, True),
        ("ld.f32 %f1, [%rd1];", 1024, True),
        ("st.global.f32 [%rd1], %f1;", 2048, False),
        ("atom.global.add.u32 %r1, [%rd1], 1;", 2048, True),
        ("red.global.add.u32 [%rd1], 1;", 2048, False),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16;", 1024, True),
        ("prefetch.global.L2 [%rd1];", 4096, False),
        ("discard.global.L2 [%rd1], 128;", None, False),
    ],
)
def test_an_access_moves_a_sector_for_each_lane(instruction: str, moved: int | None, is_awaited: bool) -> None:
    text = f".version 8.0\n.target sm_86\n.entry k() {{\n{instruction}\nmov.u32 %r2, 1;\nret; }}"
    given = given_latencies(SHORT)
    program = ptx.program(ptx.parse(text, "k.ptx").kernel(), machine=CARD.machine, latencies=given)
    (access,) = (one for one in program.accesses if one is not None)
    assert access[1:] == (moved, is_awaited)
    if moved is None:
        with pytest.raises(InputError, match=r"k\.ptx:4: `discard.*nobody says how much DRAM moves for it"):
            dram.bytes_moved(program)
    else:
        assert dram.bytes_moved(program) == moved


def test_what_stays_in_the_sm_asks_nothing_of_dram() -> None:
    text = ".version 8.0\n.target sm_86\n.entry k() { ld.shared.f32 %f1, [%r1]; ld.param.u32 %r1, [p]; ret; }"
    assert ptx.program(ptx.parse(text, "k.ptx").kernel(), machine=CARD.machine).accesses == ()


def test_machine_code_says_what_is_awaited() -> None:
    """Warp 0 of the reduction stores the sum, the other one does not."""
    (instance,) = launch_kernel(asked("reduction.sm_86.cubin", SHORT, warm=True)).instances(CARD.machine)
    loads, store = {"LDG": (1024, True)}, {"STG": (2048, False)}
    for program, expected in zip(instance.programs(), (loads | store, loads), strict=True):
        rows = zip(program.origins, program.accesses, strict=True)
        assert {origin.text.split(".")[0]: access[1:] for origin, access in rows if access} == expected


def test_equal_programs_ask_for_what_any_of_them_does() -> None:
    plain = Program.chain("LC")
    one, other = replace(plain, accesses=(LOAD, None)), replace(plain, accesses=(STORE, LOAD))
    ((both, warps),) = merge_groups([(plain, 1), (one, 2), (other, 3)])
    assert (warps, both.accesses) == (6, (Access("global", 2048, True), LOAD))
    unknown = Access("texture", None, True)
    assert Access.worst([LOAD, unknown]) == Access("global", None, True)
    with pytest.raises(InputError, match="2 places but 1 accesses"):
        replace(plain, accesses=(LOAD,))


# Little's law


def told(gpu: GpuInstance) -> str:
    said = list(conditions(gpu.assumptions))
    said.remove("although lapses are left out")  # of PTX nothing is known of them
    return "; ".join(said)


def test_a_latency_in_which_dram_cannot_move_what_may_be_in_flight_is_doubted() -> None:
    """46 SMs with 48 warps, each with two loads of 1024 bytes: at 448 GB/s and 1.725 GHz that takes 17411.7 cycles."""
    question = replace(asked("vecadd.ptx", ["global=..900"], 65536), launch=Launch((256, 1, 1), (65536, 1, 1)))
    gpu = gpu_instance(replace(question, blocks_per_sm=6), CARD)
    need = 46 * 48 * 2 * 1024 * Fraction(1_725_000_000, 448_000_000_000)
    assert 17411 < need < 17412
    assert "if global takes at most 900 cycles; although DRAM may need 17412 cycles for what can be in flight" in told(
        gpu
    )
    for cycles, is_doubted in ((17411, True), (17412, False)):
        given = given_latencies([f"global=..{cycles}"])
        there = told(gpu_instance(replace(question, blocks_per_sm=6, latencies=given), CARD))
        assert ("although" in there) == is_doubted
    (note,) = [str(note) for note in gpu.assumptions if note.kind is AssumptionKind.DRAM_NEED]
    assert "the latency of global 900 holds only if less is in flight" in note
    assert "loads of 276 blocks at a time touch 4521984 bytes at most" in note


@pytest.mark.parametrize(("blocks", "sms", "at_once"), [(3, 46, 3), (1000, 46, 46), (1000, 7, 7)])
def test_as_many_blocks_count_as_are_there_together(blocks: int, sms: int, at_once: int) -> None:
    gpu = gpu_instance(asked("vecadd.ptx", ["global=..39"], blocks), CARD, sms=sms)
    (note,) = [str(note) for note in gpu.assumptions if note.kind is AssumptionKind.DRAM_NEED]
    assert f"touch {at_once * 2 * 2 * 1024} bytes" in note


def test_what_nobody_knows_of_a_gpu_is_said_and_no_caveat() -> None:
    data = {key: datum for key, datum in CARD.data.items() if key != "mem_bw_gbs"}
    gpu = gpu_instance(asked("vecadd.ptx", ["global=..90"], 1000), replace(CARD, data=data))
    assert "nobody says whether DRAM serves what is in flight: mem_bw_gbs of rtx-3070 is not known" in map(
        str, gpu.assumptions
    )
    assert "DRAM" not in told(gpu)
    somewhere = gpu_instance(asked("vecadd.ptx", ["global=..90"], 1000), sms=46, machine=CARD.machine)
    assert not any("in flight" in str(note) for note in somewhere.assumptions)


# +dram


def test_dram_is_busy_with_all_that_a_launch_moves() -> None:
    """Two loads and a store of each of two warps of each block, and all of L2."""
    for share, text in ((Fraction(1), ""), (Fraction(4, 5), "@0.8")):
        gpu = gpu_instance(asked("vecadd.ptx", [f"global=..450+dram{text}"], 1000), CARD)
        total = 1000 * 2 * (1024 + 1024 + 2048) + 4 * 2**20
        assert gpu.dram == int(total * Fraction(1_725, 448_000) / share)
        assert f"{total} bytes keep it busy for at most {gpu.dram} cycles" in "".join(map(str, gpu.assumptions))
        assert "global takes at most 450 cycles besides those in which DRAM is busy" in told(gpu)
        assert "although" not in told(gpu)
    assert "if DRAM moves at least 358.4 GB/s, 80 % of its peak, as long as an access waits for it" in told(gpu)
    plain = gpu_instance(asked("vecadd.ptx", ["global=..450"], 1000), CARD)
    assert plain.dram == 0
    assert [program for program, _ in plain.grid.block] == [program for program, _ in gpu.grid.block]


def test_a_launch_takes_as_long_as_dram_needs_for_what_it_surely_moves() -> None:
    """Three arrays of 64 MiB, which do not fit into L2, at 224 GB/s: 899 microseconds."""
    launch = Launch((256, 1, 1), (65536, 1, 1), {"3": 2**24})
    slow = replace(CARD, data={**CARD.data, "mem_bw_gbs": replace(CARD.data["mem_bw_gbs"], value=224)})
    least = Fraction(3 * 4 * 2**24, 224 * 10**9)
    machine = narrow_intervals(CARD.machine, given_intervals(["memory=..2"]))
    uppers = {}
    for text in ("global=..100", "global=..100+dram"):
        known = replace(asked("vecadd.ptx", [text]), launch=launch, blocks_per_sm=6)
        gpu = gpu_instance(known, slow, machine=machine)
        uppers[text] = theorem_g(gpu).upper / CARD.hertz("base_clock_ghz")
    assert uppers["global=..100"] < least < uppers["global=..100+dram"]


def test_launches_that_are_there_together_move_what_they_move_together() -> None:
    both = [
        launch_kernel(asked("vecadd.ptx", [text], blocks))
        for text, blocks in (("global=..450+dram", 7), ("global=..900", 9))
    ]
    shared = [SharedLaunch(name, kernel, {"slots": 1}) for name, kernel in zip("ab", both, strict=True)]
    gpu = of_kernels(shared, CARD.machine, sms=46, card=CARD, room={"slots": 4})
    assert gpu.dram == int((16 * 2 * 4096 + 4 * 2**20) * Fraction(1_725, 448_000))
    halves = [replace(shared[1], kernel=launch_kernel(asked("vecadd.ptx", ["global=..450+dram@0.5"], 9))), shared[0]]
    assert of_kernels(halves, CARD.machine, sms=46, card=CARD, room={"slots": 4}).dram == int(
        2 * (16 * 2 * 4096 + 4 * 2**20) * Fraction(1_725, 448_000)
    )


@pytest.mark.parametrize(
    ("card", "sms", "message"),
    [
        (
            None,
            46,
            r"latency of global: \.\.450\+dram depends on what a launch asks of DRAM; say on which GPU, with gpu",
        ),
        (CARD, 45, "nobody says what the other 1 SMs of rtx-3070 ask of it; ask about all 46 SMs, or give global=..N"),
        ("mem_bw_gbs", 46, r"mem_bw_gbs \[GB/s\] is not known"),
        ("clock_ghz", 46, r"clock_ghz \[GHz\] is not known"),
        ("l2_bytes", 46, r"l2_bytes \[B\] is not known"),
    ],
)
def test_without_what_dram_moves_it_is_refused(card: Any, sms: int, message: str) -> None:
    if isinstance(card, str):
        card = replace(CARD, data={key: datum for key, datum in CARD.data.items() if key != card})
    with pytest.raises(InputError, match=message):
        gpu_instance(asked("vecadd.ptx", ["global=..450+dram"], 100), card, sms=sms)


@pytest.mark.parametrize("bandwidth", [1e-5, 448, 10**9])
@pytest.mark.parametrize("share", ["", "@0.8", "@0.000001"])
def test_what_is_supposed_of_dram_is_in_the_verdict_whatever_the_numbers_are(bandwidth: float, share: str) -> None:
    card = gpus.with_settings(CARD, [f"mem_bw_gbs={bandwidth}"], "--set")
    gpu = gpu_instance(asked("vecadd.ptx", [f"global=..450+dram{share}"], 100), card)
    assert "as long as an access waits for it" in told(gpu)


def test_a_larger_clock_than_counted_is_refused() -> None:
    dram.check_clock(CARD, CARD.hertz("clock_ghz"))
    dram.check_clock(None, Fraction(10**12))
    dram.check_clock(CARD, None)
    with pytest.raises(InputError, match=r"largest clock of rtx-3070, 1\.725 GHz: give no larger clock"):
        dram.check_clock(CARD, CARD.hertz("clock_ghz") + 1)


def test_local_memory_counts_a_sector_for_each_word() -> None:
    """Words of 32 bits of a lane lie apart there, and a generic address may be of local memory."""
    for opcode, sectors in (("ld.local.v4.f32", 4), ("ld.local.u32", 1), ("ld.v2.b64", 4), ("ld.global.v4.f32", 1)):
        vector = "{%f1, %f2, %f3, %f4}" if "v4" in opcode else "{%d1, %d2}" if "v2" in opcode else "%r1"
        text = f".version 8.0 .target sm_86 .entry k() {{ {opcode} {vector}, [%rd1]; ret; }}"
        found = ptx.program(
            ptx.parse(text, "k.ptx").kernel(),
            machine=CARD.machine,
            latencies=given_latencies(["global=..900", "local=..900"]),
        )
        (moved,) = [access.moved for access in found.accesses if access is not None]
        assert moved == sectors * 32 * 32, opcode


def test_launches_that_are_there_together_have_in_flight_what_they_have_together() -> None:
    given = ["global=..39"]
    one = told(gpu_instance(replace(asked("vecadd.ptx", given, 92), blocks_per_sm=2), CARD))
    launches = [SharedLaunch(name, launch_kernel(asked("vecadd.ptx", given, 46)), {"slots": 1}) for name in "ab"]
    both = told(of_kernels(launches, CARD.machine, sms=46, card=CARD, room={"slots": 2}))
    need = re.compile(r"although DRAM may need (\d+) cycles")
    assert [int(found[1]) for found in map(need.search, (one, both)) if found] == [int(need.findall(one)[0])] * 2
