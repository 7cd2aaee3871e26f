"""Properties of the model of Kleimenov and Popova on random inputs, against closed forms and independent oracles."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import pytest

from makespan import Instance, Machine, Program, solve
from makespan.estimates.kleimenov_popova import (
    GpuParameters,
    HitRates,
    KernelModel,
    Levels,
    Rules,
    Thread,
    estimate,
    fixpoint,
)
from makespan.estimates.kleimenov_popova.device import Timing
from makespan.estimates.kleimenov_popova.from_ptx import to_singles
from makespan.estimates.kleimenov_popova.piecewise import LinearPiece, PiecewiseLinear
from makespan.estimates.kleimenov_popova.thread_time import (
    LoopRule,
    Repeat,
    Sequence,
    Single,
    thread_time,
    unrolled_times,
)
from makespan.estimates.profile.launched import Launched
from makespan.kernels.flow import Launch
from makespan.model.machine.occupancy import SmLimits
from makespan.model.machine.values import Latency, UnitClass
from tests.estimates.kleimenov_popova.inputs import kernel, of_threads, straight

RANDOM_INPUTS = 4000
FINE = Rules(eps=1e-9)
RULES: tuple[LoopRule, ...] = ("unroll2", "exact")
Lines = tuple[tuple[float, float], ...]


def lines(choose: random.Random) -> Lines:
    """Intercepts and slopes of a convex time function; now and then nothing waits for memory."""
    if choose.random() < 0.1:
        return ((choose.uniform(10, 1000), 0.0),)
    return tuple((choose.uniform(0, 2000), choose.uniform(0.1, 20)) for _ in range(choose.randint(1, 3)))


def highest(some: Lines) -> Callable[[float], float]:
    return lambda lat: max(a + b * lat for a, b in some)


# fixed points


def test_fixed_points_equal_the_closed_form_and_come_from_below() -> None:
    choose = random.Random(1)
    for _ in range(RANDOM_INPUTS):
        time, seen = highest(lines(choose)), list[float]()

        def watched(lat: float, time: Callable[[float], float] = time, seen: list[float] = seen) -> float:
            seen.append(time(lat))
            return seen[-1]

        unloaded, need = choose.uniform(20, 800), choose.uniform(0, 20000)
        found = fixpoint(watched, need, 1, unloaded, FINE)
        closed = max(time(unloaded), need)
        assert found.is_converged
        assert abs(found.time - closed) <= 1e-6 * closed
        assert all(a <= b * (1 + 1e-12) for a, b in pairwise(seen))
        assert seen[-1] <= closed * (1 + 1e-12)
        assert found.latency >= unloaded


@dataclass(frozen=True)
class Drawn:
    """A random GPU and a random kernel."""

    sms: int
    processing_blocks: int
    latency: Levels
    bandwidth: Levels
    threads: int
    warps_per_sm: int
    blocks: int
    lines: tuple[Lines, ...]
    delay: float
    mem: float
    uncoal: float
    hits: HitRates
    syncs: float

    @classmethod
    def by(cls, choose: random.Random) -> "Drawn":
        return cls(
            sms=choose.randint(1, 6),
            processing_blocks=choose.choice([1, 2, 4]),
            latency=Levels(*sorted(choose.uniform(20, 900) for _ in range(4))),
            bandwidth=Levels(*(10 ** choose.uniform(-1.5, 3) for _ in range(4))),
            threads=choose.choice([1, 20, 33, 64, 96, 128]),
            warps_per_sm=choose.randint(4, 64),
            blocks=choose.randint(1, 24),
            lines=tuple(lines(choose) for _ in range(3)),
            delay=choose.uniform(1, 60),
            mem=choose.choice([0, 4, 16, 100]),
            uncoal=choose.random(),
            hits=HitRates(*choose.choice([(0, 0), (0.5, 0.25), (0.1, 0.9), (1, 0)])),
            syncs=choose.choice([0, 0, 3]),
        )

    @property
    def device(self) -> GpuParameters:
        limits = SmLimits(warp_size=32, warps=self.warps_per_sm, blocks=16, block_threads=1024)
        return GpuParameters(self.sms, self.processing_blocks, 1.0, self.latency, self.bandwidth, limits)

    @property
    def kernel(self) -> KernelModel:
        times = [highest(some) for some in self.lines]

        def thread(number: int) -> Thread:
            time = times[number // 32 % len(times)]
            return Thread(time, self.delay, self.mem, self.mem * self.uncoal, self.hits, self.syncs)

        return of_threads(self.threads, self.blocks, thread)

    def cycles(self) -> float:
        return estimate(self.device, self.kernel, rules=FINE).cycles


def closed_form(device: GpuParameters, kernel: KernelModel) -> float:
    """The sum over waves of the largest of the unloaded time and what each bandwidth needs, written out plainly."""
    w_block = -(-kernel.threads_per_block // 32)
    per_sm = min(16, device.limits.warps // w_block if device.limits.warps else 16)
    barrier = (device.latency.uncoal - device.latency.dram) / 28 * (w_block - 1)
    total = 0.0
    for first in range(0, kernel.blocks, per_sm * device.sms):
        blocks = range(min(per_sm * device.sms, kernel.blocks - first))
        dealt = [[*kernel.warps] * len(blocks[sm :: device.sms]) for sm in range(device.sms)]
        longest, of_gpu = 0.0, [0.0] * 4
        for warps in dealt:
            moved = sum(warp.all_bytes for warp in warps)
            by_level = [sum(warp.bytes[level] for warp in warps) for level in range(4)]
            of_gpu = [a + b for a, b in zip(of_gpu, by_level, strict=True)]
            lat = 0.0
            if moved:
                *parts, apart = (each / moved for each in by_level)
                mean = sum(part * latency for part, latency in zip(parts, device.latency, strict=False))
                lat = (1 - apart) * mean + apart * device.latency.uncoal
            longest = max(longest, by_level[0] / device.bandwidth.l1)
            for at in range(device.processing_blocks):
                mine = warps[at :: device.processing_blocks]
                times = [warp.time(lat) + warp.syncs * barrier for warp in mine]
                longest = max([longest, *times, sum(warp.delay for warp in mine)])
        total += max(longest, *(need / band for need, band in zip(of_gpu[1:], device.bandwidth[1:], strict=True)))
    return total


def test_five_hundred_random_models_equal_the_closed_form() -> None:
    choose = random.Random(2)
    most = 0
    for _ in range(500):
        drawn = Drawn.by(choose)
        found, closed = estimate(drawn.device, drawn.kernel, rules=FINE), closed_form(drawn.device, drawn.kernel)
        assert found.is_converged
        assert abs(found.cycles - closed) <= 1e-6 * closed, drawn
        assert found.cycles <= closed * (1 + 1e-9), drawn
        most = max(most, *(wave.iterations for wave in found.waves))
    assert most > 20  # the iteration had something to do


def test_time_never_falls_with_worse_parameters() -> None:
    """Less bandwidth, more latency, delay, barriers or blocks. A longer lat_DRAM alone makes barriers cheaper."""
    choose = random.Random(3)
    for _ in range(150):
        drawn = Drawn.by(choose)
        before = drawn.cycles()
        level, factor = choose.randrange(4), choose.uniform(1, 3)
        scarcer = (value / (factor if at == level else 1) for at, value in enumerate(drawn.bandwidth))
        longer = (value * (factor if at >= level else 1) for at, value in enumerate(drawn.latency))
        for worse in (
            replace(drawn, bandwidth=Levels(*scarcer)),
            replace(drawn, latency=Levels(*longer)),
            replace(drawn, delay=drawn.delay * factor),
            replace(drawn, syncs=drawn.syncs + 1),
            replace(drawn, blocks=drawn.blocks + 1),
        ):
            assert worse.cycles() >= before * (1 - 1e-6), (drawn, worse)


# thread time

KINDS = ("f32", "f64", "global", "sfu")


def random_timing(choose: random.Random) -> Timing:
    delays = {kind: float(choose.choice([1, 2, 4, 32])) for kind in KINDS}
    return Timing({kind: float(choose.randint(1, 60)) for kind in KINDS if kind != "global"}, delays)


def random_sequence(choose: random.Random, most: int = 10) -> Sequence:
    registers = [f"r{number}" for number in range(4)]
    return straight(
        *(
            (
                choose.choice(KINDS),
                " ".join(choose.sample(registers, choose.randint(0, 2))),
                choose.choice(["", *registers]),
            )
            for _ in range(choose.randint(1, most))
        )
    )


def longest_path(steps: list[tuple[str, list[str], list[str]]], timing: Timing, lat: float) -> float:
    """The longest path through issue order and dependences, by relaxing edges until nothing changes."""
    latency = {**timing.latencies, "global": lat}
    edges: list[tuple[int, int, float]] = []
    for at, (kind, reads, _) in enumerate(steps):
        edges.append((at, at + 1, timing.delays[kind]))
        for register in reads:
            writers = [before for before in range(at) if register in steps[before][2]]
            if writers:
                edges.append((writers[-1], at, latency[steps[writers[-1]][0]]))
    reached = [0.0] * (len(steps) + 1)
    changed = True
    while changed:
        changed = False
        for begin, end, weight in edges:
            if reached[begin] + weight > reached[end]:
                reached[end], changed = reached[begin] + weight, True
    return reached[-1]


def test_thread_time_is_the_longest_path_on_random_sequences() -> None:
    choose = random.Random(4)
    for _ in range(RANDOM_INPUTS):
        timing, sequence = random_timing(choose), random_sequence(choose)
        found = thread_time(sequence, timing)
        plain = [(s.kind, list(s.reads), list(s.writes)) for s in sequence.steps if isinstance(s, Single)]
        for lat in (0, choose.randint(1, 99), 1000):
            assert found.cycles(lat) == longest_path(plain, timing, lat)
        assert found.cycles.is_convex
        assert found.delay == sum(timing.delays[kind] for kind, _, _ in plain)


OPCODES = {
    "add.f32 {d}, {a}, {b};": ("f32", "%f"),
    "fma.rn.f32 {d}, {a}, {b}, {a};": ("f32", "%f"),
    "mul.f64 {d}, {a}, {b};": ("f64", "%fd"),
    "ex2.approx.f32 {d}, {a};": ("sfu", "%f"),
    "ld.global.f32 {d}, [{address}+4];": ("global", "%f"),
    "@%p1 add.f32 {d}, {a}, {b};": ("f32", "%f"),
    "st.global.f32 [{address}], {d};": ("global", "%f"),
}


def test_thread_time_is_the_longest_path_on_random_straight_line_ptx() -> None:
    choose = random.Random(5)
    for _ in range(150):
        timing, texts, kinds = random_timing(choose), list[str](), list[str]()
        for _ in range(choose.randint(1, 12)):
            text, (kind, prefix) = choose.choice(list(OPCODES.items()))
            d, a, b = (f"{prefix}{choose.randint(0, 3)}" for _ in range(3))
            texts.append(text.format(d=d, a=a, b=b, address=f"%rd{choose.randint(0, 1)}"))
            kinds.append(kind)
        steps = []
        for text, kind in zip(texts, kinds, strict=True):
            mentioned = re.findall(r"%[a-z]+[0-9]+", text)
            is_store = "st." in text
            guard = 1 if text.startswith("@") else 0
            written = [] if is_store else [mentioned[guard]]
            steps.append((kind, [name for at, name in enumerate(mentioned) if is_store or at != guard], written))
        found = Launched(kernel("\n".join(texts)), Launch())
        time = thread_time(Sequence(to_singles(found)), timing).cycles
        for lat in (0, 7, 500):
            assert time(lat) == longest_path(steps, timing, lat), texts


def plain_time(
    steps: Sequence, timing: Timing, lat: Fraction, rule: LoopRule, time: Fraction, ready: dict[str, Fraction]
) -> Fraction:
    """The recurrence at one latency, in numbers; changes `ready`."""
    for step in steps.steps:
        if isinstance(step, Single):
            issue = max(time, *(ready.get(register, Fraction(0)) for register in step.reads), Fraction(0))
            time = issue + Fraction(timing.delays[step.kind])
            latency = lat if step.kind == "global" else Fraction(timing.latencies[step.kind])
            ready |= dict.fromkeys(step.writes, issue + latency)
        elif step.trips and rule == "unroll2":
            left: dict[str, Fraction] = {}
            two = plain_time(Sequence(step.body.steps * 2), timing, lat, rule, Fraction(0), left)
            time += two / 2 * step.trips
            ready |= {register: time + max(Fraction(0), at - two) for register, at in left.items()}
        elif step.trips:
            passed = [time]
            for _ in range(min(step.trips, 64)):
                passed.append(plain_time(step.body, timing, lat, rule, passed[-1], ready))
            more = (passed[-1] - passed[-17]) / 16 * (step.trips - 64) if step.trips > 64 else Fraction(0)
            time = passed[-1] + more
            written = {register for single in step.body.executions(with_back_edges=True) for register in single.writes}
            ready |= {register: ready[register] + more for register in written if register in ready}
    return time


def test_loops_are_non_decreasing_in_lat_and_equal_the_recurrence_in_numbers() -> None:
    choose = random.Random(6)
    for _ in range(25):
        timing = random_timing(choose)
        inner = Repeat("INNER", random_sequence(choose, 4), choose.choice([0, 1, 2, 3, 70]))
        body = Sequence((*random_sequence(choose, 3).steps, inner, *random_sequence(choose, 3).steps))
        whole = Sequence((Repeat("LOOP", body, choose.choice([0, 1, 2, 5, 9])), *random_sequence(choose, 3).steps))
        for rule in RULES:
            cycles = thread_time(whole, timing, rule).cycles
            values = [cycles(lat) for lat in range(0, 1200, 60)]
            assert values == sorted(values)
            plain = [plain_time(whole, timing, Fraction(lat), rule, Fraction(0), {}) for lat in range(0, 1200, 60)]
            if plain == sorted(plain):
                assert values == plain
            else:  # where the recurrence falls, its running maximum counts
                assert all(one >= other for one, other in zip(values, plain, strict=True))
        twice = thread_time(Sequence(body.steps * 2), timing).cycles
        assert unrolled_times(whole, timing)["LOOP"].running_maximum() == twice


def test_exact_loops_are_extended_as_if_every_iteration_were_simulated() -> None:
    choose = random.Random(9)
    for _ in range(60):
        timing, body = random_timing(choose), random_sequence(choose, 6)
        trips = choose.randint(65, 120)
        found = thread_time(Sequence((Repeat("LOOP", body, trips),)), timing, "exact").cycles(100)
        assert found == thread_time(Sequence(body.steps * trips), timing).cycles(100)


def test_piecewise_linear_functions_are_added_compared_and_subtracted_exactly() -> None:
    choose = random.Random(7)

    def some() -> PiecewiseLinear:
        found = PiecewiseLinear((LinearPiece(0, choose.randint(-20, 20), choose.randint(-3, 3)),))
        for _ in range(choose.randint(0, 3)):
            other = PiecewiseLinear().plus_line(choose.randint(-20, 20), choose.randint(-3, 3))
            less = other.maximum(found)
            found = found.maximum(other) if choose.random() < 0.6 else found.plus(less, -Fraction(1, 2))
        return found

    for _ in range(400):
        one, other = some(), some()
        added, larger, rising = one.plus(other, 3), one.maximum(other), one.running_maximum()
        for lat in (Fraction(n, 3) for n in range(0, 90, 7)):
            assert added(lat) == one(lat) + 3 * other(lat)
            assert larger(lat) == max(one(lat), other(lat))
            assert rising(lat) == max(one(lat), *(one(start) for start in one.starts if start <= lat))
            assert one.numeric()(float(lat)) == pytest.approx(float(one(lat)))


# against the exact solver


def check_below_the_solver(letters: str, warps: int, machine: Machine, timing: Timing) -> tuple[int, int]:
    """The time of a processing block is at most the shortest schedule of makespan; both in cycles."""
    steps = straight(*((letter, "r", "r") for letter in letters))
    time = thread_time(steps, timing)
    processing_block = max(time.cycles(0), warps * time.delay)
    result = solve(Instance.of(Program.chain(letters), warps, machine), best_case=True)
    assert result.best_case is not None
    assert processing_block <= result.best_case.lower <= result.bounds.lower
    return int(processing_block), result.bounds.lower


def test_estimate_of_a_processing_block_is_below_every_schedule_of_makespan() -> None:
    """One class with an interval, and two classes that share one issue slot per cycle."""
    choose = random.Random(8)
    gaps = []
    for _ in range(12):
        warps = choose.randint(1, 3)
        interval, latency = choose.randint(1, 3), choose.randint(3, 6)
        one = Machine("one", (UnitClass("C", 1, interval, Latency(latency, latency)),))
        timing = Timing({"C": float(latency)}, {"C": float(interval)})
        gaps.append(check_below_the_solver("C" * choose.randint(1, 4), warps, one, timing))
        long, short = choose.randint(1, 3), choose.randint(1, 5)
        units = (UnitClass("C", 1, 1, Latency(short, short)), UnitClass("L", 1, 1, Latency(long, long)))
        both = Timing({"C": float(short), "L": float(long)}, {"C": 1.0, "L": 1.0})
        letters = "".join(choose.choice("CL") for _ in range(choose.randint(1, 5)))
        gaps.append(check_below_the_solver(letters, warps, Machine("two", units, issue_width=1), both))
    assert any(estimate < exact for estimate, exact in gaps)
    assert all(estimate <= exact for estimate, exact in gaps)
