"""Theorem G with lapses and late lines, against all schedules of tiny GPUs and by hand."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from makespan.host.errors import UnsupportedError
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance, Grid, LastDispatch
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import KnownLapses, Latency, Machine, UnitClass, UnitQueue, WarpAssignment
from makespan.model.program import Program
from makespan.proof.bounds import theorem_g
from makespan.proof.bounds.lapses import LapseCosts
from tests.lapse_oracle import LapsingGpu

NO_LAPSES, CREDIT, MISS = PlaceLapses(), PlaceLapses(credit=1), PlaceLapses(misses=1)
FENCE = PlaceLapses(fence=3)
LATE = PlaceLapses(lines=(CacheLine("code 0", 3),))


def machine(partitions: int = 1, *units: UnitClass, expiry: int = 0) -> Machine:
    return Machine(
        "tiny",
        units or (UnitClass("C", 1),),
        1,
        partitions=partitions,
        assignment=WarpAssignment.MODULO if partitions > 1 else WarpAssignment.ANY,
        lapses=KnownLapses(expiry=expiry),
    )


def program(letters: str, *lapses: PlaceLapses) -> Program:
    return Program.chain(letters).lapsing((*lapses, *[NO_LAPSES] * (len(letters) - len(lapses))))


def gpu(
    block: dict[Program, int], blocks: int, of: Machine, *, sms: int = 1, resident: int = 1, dispatch: int = 0
) -> GpuInstance:
    return GpuInstance.of(block.items(), blocks, of, sms=sms, resident=resident, dispatch=dispatch)


def proofs(of: GpuInstance) -> list[LastDispatch]:
    return list(theorem_g._of_one_grid(of))


def upper(of: GpuInstance) -> int:
    return theorem_g.theorem_g(of).upper


WINDOWS = gpu({program("C", LATE): 3}, 3, machine(3))
"""The warps of a block have partitions of their own, whose windows come one after another."""
FENCES = [gpu({program("C||C", FENCE): 1, program("|C|C"): 1}, blocks, machine(2)) for blocks in (1, 2, 3)]
"""A fence stops both partitions at once, so a chain that goes from one to the other waits for it once."""
OWN = gpu({program("C", CREDIT): 1}, 3, machine(2))
"""A warp waits for lapses on its own credit."""
BESIDE = gpu({program("C", PlaceLapses(credit=4)): 1}, 4, machine(), resident=2)
AGAIN = gpu({program("C", MISS): 1}, 3, machine())
LAST = gpu({program("C", PlaceLapses(credit=2)): 1}, 9, machine(expiry=2), sms=3, resident=3)


@pytest.mark.parametrize(
    ("gpu", "longest", "expected"),
    [
        (WINDOWS, 12, 2 * 1 + 3 * 3 + 1 + 3),  # of three partitions before the last block comes, of one after it
        (FENCES[0], 6, 3 + 3),
        (FENCES[1], 12, 2 * (3 + 3)),
        (FENCES[2], 18, 3 * (3 + 3)),
        (OWN, 6, 3 * (1 + 1)),
        (BESIDE, 20, 3 * 10 // 2 + 10),  # A is 2 of ports and 2 * 4 of lapses; 2 blocks end
        (AGAIN, 6, 3 * (1 + 1)),
    ],
)
def test_by_hand(gpu: GpuInstance, longest: int, expected: int) -> None:
    assert (LapsingGpu(gpu).longest(), upper(gpu)) == (longest, expected)


def test_without_lapses_nothing_changes() -> None:
    for of in WINDOWS, *FENCES, OWN, BESIDE, AGAIN, LAST:
        plain = of.without_lapses
        assert of.has_lapses
        assert not plain.has_lapses
        known = theorem_g.theorem_g(plain)
        assert known == theorem_g.theorem_g(replace(plain, machine=replace(plain.machine, lapses=None)))
        assert known.windows == 0
        assert known.upper < upper(of)


def without_factor(of: "Callable[..., theorem_g._BlockLapses]") -> object:
    def wrong(block: object) -> theorem_g._BlockLapses:
        found = of(block)
        return found._replace(credits=found.credits // 2)  # of two resident blocks

    return wrong


@pytest.mark.parametrize(
    ("gpu", "where", "name", "wrong"),
    [
        (WINDOWS, theorem_g, "_windows_of_slot", lambda gpu, block: block.lapses.windows),  # C for all partitions
        (BESIDE, theorem_g._BlockLapses, "of", without_factor(theorem_g._BlockLapses.of)),  # R is left out
        (OWN, LapseCosts, "of", lambda sm, of=LapseCosts.of: replace(of(sm), credits=0)),  # the tail without lapses
        (AGAIN, LapseCosts, "of", lambda sm, of=LapseCosts.of: replace(of(sm), misses=0)),
        (FENCES[2], theorem_g, "heaviest_lapses", lambda program, weigh: 0),
        (OWN, theorem_g, "_lapses_of_partition", lambda gpu, block: 0),
    ],
)
def test_without_any_of_its_parts_it_is_too_small(
    monkeypatch: pytest.MonkeyPatch, gpu: GpuInstance, where: object, name: str, wrong: object
) -> None:
    longest = LapsingGpu(gpu).longest()
    assert min(proof.upper for proof in proofs(gpu)) >= longest
    monkeypatch.setattr(where, name, wrong)
    assert min(proof.upper for proof in proofs(gpu)) < longest


def random_gpu(draw: random.Random) -> GpuInstance:
    units = [
        UnitClass(name, draw.choice((1, 1, 2)), draw.choice((1, 1, 2)), Latency(latency, latency), draw.random() < 0.3)
        for name in "CL"[: draw.choice((1, 2))]
        for latency in [draw.choice((1, 1, 2))]
    ]
    partitions = draw.choice((1, 2, 3))
    if partitions == 1:
        units = [replace(unit, shared=False) for unit in units]
    sms, warps, resident = draw.choice(((1, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 2), (2, 1, 1), (1, 3, 1)))
    places = (NO_LAPSES, NO_LAPSES, CREDIT, CREDIT, MISS, PlaceLapses(fence=1), LATE)

    def drawn() -> Program:
        letters = "".join(draw.choice([unit.name for unit in units]) for _ in range(draw.choice((1, 2, 2))))
        if draw.random() < 0.3:
            letters = draw.choice((f"|{letters}", f"{letters[0]}|{letters[1:] or letters}"))
        return Program.chain(letters).lapsing(tuple(draw.choice(places) for _ in letters))

    block = {drawn(): 1 for _ in range(warps)}
    block |= {program: warps - len(block) + 1 for program in list(block)[:1]}
    chosen = machine(partitions, *units, expiry=draw.choice((0, 1, 2)))
    blocks = sms * resident + draw.choice((0, 1, 1, 2))
    return gpu(block, blocks, chosen, sms=sms, resident=resident, dispatch=draw.choice((0, 0, 1)))


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 400))])
def test_no_schedule_with_lapses_is_longer_than_any_way_to_count(seed: int) -> None:
    draw, longer = random.Random(seed), 0
    for _ in range(15):
        of = random_gpu(draw)
        longest = LapsingGpu(of).longest()
        assert longest <= min(proof.upper for proof in proofs(of)), of
        split = tuple(Grid(of.grid.block, count) for count in (of.blocks - 1, 1) if count)
        assert longest <= upper(replace(of, grids=split)), of
        longer += longest > upper(of.without_lapses)
    assert longer > 3  # so that the bound without lapses would be too small


def test_credit_that_expires_late_comes_on_top_of_the_last_link_only() -> None:
    early, late = (theorem_g.theorem_g(replace(LAST, machine=machine(expiry=cycles))) for cycles in (0, 7))
    assert (late.tail - early.tail, late.dispatched - early.dispatched) == (7, 0)


def test_partitions_count_lapses_of_their_own_warps_only() -> None:
    """R is 2 and there are 4 partitions: each has one warp of each block."""
    quarters = gpu({program("C", CREDIT): 4}, 9, machine(4), resident=2)
    by_counting = {proof.counting: proof.block for proof in proofs(quarters)}
    # T of 1, and 1 of the warp beside it and 1 of the one that comes; two warps with credit are there, and one comes
    assert by_counting["partitions"] == 1 + 1 + 1 + (2 + 1)
    assert by_counting["all"] == 2 * 4 + 2 * 4 * 1  # each of 8 warps counts a port and a lapse


def test_pairs_count_lapses_and_know_no_lines() -> None:
    lapsing = gpu(
        {program("CL", CREDIT): 2}, 9, replace(machine(1, UnitClass("C", 1), UnitClass("L", 1)), issue_width=None)
    )
    pairs, *_ = [proof for proof in proofs(lapsing) if proof.counting == "pairs"]
    plain, *_ = [proof for proof in proofs(lapsing.without_lapses) if proof.counting == "pairs"]
    assert (pairs.block - plain.block, pairs.scale) == (2 * plain.scale, plain.scale)
    for place in LATE, MISS:
        withheld = replace(lapsing, grids=(replace(lapsing.grid, block=((program("CL", place), 2),)),))
        assert "pairs" not in {proof.counting for proof in proofs(withheld)}


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"say in the table \[lapses\] .* \(expiry\)"):
        theorem_g.theorem_g(replace(OWN, machine=replace(OWN.machine, lapses=None)))
    # lines that are late leave no credit behind
    assert upper(replace(WINDOWS, machine=replace(WINDOWS.machine, lapses=None))) == upper(WINDOWS)


def test_queues_are_left_out_and_an_assumption_says_so() -> None:
    queued = replace(OWN, machine=replace(OWN.machine, queues=(UnitQueue("q", ("C",), 2, blocks=True),)))
    assert upper(queued) == upper(OWN)
    assert "although queues before q are left out" in conditions(queued.assumptions)
    alone = replace(queued, grids=(replace(queued.grid, blocks=1),))
    assert alone.has_lone_sms
    assert "although queues before q are left out" not in conditions(alone.assumptions)
