"""Theorem G, and the least that a whole GPU takes, against the definition and by hand."""

from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import pytest
from hypothesis import given, settings

from makespan.model.gpu import GpuInstance, Grid, LastDispatch
from makespan.model.machine import PAPER, Latency, Machine, UnitClass, WarpAssignment
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import gpu_run
from makespan.model.strings import parse_string
from makespan.proof.bounds import best_case, theorem_g
from makespan.proof.bounds.pairing import Pairing
from makespan.proof.bounds.theorem_1s import bound
from makespan.verify import lower_bounds
from tests.oracle import brute_force_gpu
from tests.strategies import gpus, shared_gpus

theorem_1s = import_module("makespan.proof.bounds.theorem_1s")

SLOW = Machine("slow", (UnitClass("C", 2, 1, Latency(3, 3)),))
HELD = Machine("held", (UnitClass("L", 1, 3),))
QUARTERS = Machine("quarters", (UnitClass("C", 1),), partitions=4, assignment=WarpAssignment.MODULO)
FREELY = replace(QUARTERS, partitions=2, assignment=WarpAssignment.ANY)
HALVES = replace(QUARTERS, units=(UnitClass("C", 1), UnitClass("L", 1, shared=True)), partitions=2)
MIXED = Machine("mixed", (UnitClass("C", 1), UnitClass("L", 1, 3)))


def gpu(
    string: str,
    warps: int,
    blocks: int,
    machine: Machine = PAPER,
    *,
    sms: int = 1,
    resident: int = 1,
    dispatch: int = 0,
) -> GpuInstance:
    block = [(parse_string(string, machine), warps)]
    return GpuInstance.of(block, blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


def proofs(gpu: GpuInstance) -> list[LastDispatch]:
    return list(theorem_g._of_one_grid(gpu))


def in_two_grids(gpu: GpuInstance) -> GpuInstance:
    """The same blocks, one of them in a grid of its own."""
    parts = (replace(gpu.grid, blocks=gpu.blocks - 1), replace(gpu.grid, blocks=1))
    return replace(gpu, grids=parts, room=(gpu.resident,))


@given(gpus(most_blocks=4))
@settings(max_examples=25)
def test_no_schedule_of_a_gpu_is_longer_or_shorter_than_its_bounds(gpu: GpuInstance) -> None:
    truth = brute_force_gpu(gpu)
    assert truth.upper <= theorem_g.theorem_g(gpu).upper == min(proof.upper for proof in proofs(gpu))
    assert best_case.least_possible_gpu(gpu) <= truth.lower
    if gpu.blocks > 1:
        split = in_two_grids(gpu)
        assert truth.upper <= theorem_g.theorem_g(split).upper
        assert best_case.least_possible_gpu(split) <= truth.lower


@given(shared_gpus(most_blocks=3))
@settings(max_examples=15)
def test_no_schedule_of_two_grids_is_longer_or_shorter_than_its_bounds(gpu: GpuInstance) -> None:
    truth = brute_force_gpu(gpu)
    assert truth.upper <= theorem_g.theorem_g(gpu).upper
    assert max(best_case.least_possible_gpu(gpu), lower_bounds.least_makespan_of_gpu(gpu)) <= truth.lower
    for found in gpu_run.longest_gpu_run(gpu), gpu_run.shortest_gpu_run(gpu):
        assert found is not None
        assert truth.lower <= found.schedule.makespan <= truth.upper


FREE = gpu("CC", 1, 9, SLOW, sms=2, resident=2)  # nobody ever waits: three blocks in a row, each 6 cycles
SERIAL = gpu("CL", 1, 4)
BEHIND = gpu("LLL", 1, 3, HELD)  # alone 7 cycles; then the next block finds the port held for 2 more
MEET = gpu("C|L", 2, 3)  # a block takes 4 cycles: the second C opens the barrier
SPREAD = gpu("C", 4, 4, QUARTERS, resident=2)  # 4 partitions, with one warp of each block
ANYWHERE = gpu("C", 2, 4, FREELY, resident=2)
TOGETHER = gpu("C", 2, 4, resident=2)
NEVER_FULL = gpu("LC", 2, 3, Machine.of({"C": 1, "L": 9}))
WAITING = gpu("C", 1, 3, resident=2, dispatch=2)


@pytest.mark.parametrize(
    ("gpu", "longest", "upper"),
    [
        (FREE, 18, 18),
        (SERIAL, 8, 8),
        (BEHIND, 25, 27),  # the last one counts 7 + 2, though nobody waits for it
        (MEET, 12, 12),
        (SPREAD, 4, 6),  # (B-1) A / R = 3 (1 + 1 + 1) / 2 = 4, and 2
        (ANYWHERE, 4, 6),  # the same: one warp is there, and the block meets the other chain once
        (TOGETHER, 8, 10),  # (B-1) A / R = 3 * 4 / 2 = 6, and 4
        (NEVER_FULL, 9, 9),  # L, of which pairs take nothing, and a C after the other
        (WAITING, 6, 8),  # 2 (2 + 2) / 2 = 4, and 2 + 2
    ],
)
def test_by_hand(gpu: GpuInstance, longest: int, upper: int) -> None:
    assert (brute_force_gpu(gpu).upper, theorem_g.theorem_g(gpu).upper) == (longest, upper)


_OF = theorem_g._GridBlock.of


@pytest.mark.parametrize(
    ("gpu", "where", "name", "wrong"),
    [
        (BEHIND, theorem_g._GridBlock, "of", lambda gpu, grid: replace(_OF(gpu, grid), held=0)),
        (SPREAD, theorem_g, "_crowding", lambda *of, **how: 0),
        (TOGETHER, theorem_g._Rates, "work", lambda self, weights: 0),
        (MEET, theorem_g._Rates, "work", lambda self, weights: 0),
        (WAITING, GpuInstance, "dispatch", 0),
        (FREE, theorem_1s, "alone", lambda *held, **longest: 5),
    ],
)
def test_without_any_of_its_parts_it_is_too_small(
    monkeypatch: pytest.MonkeyPatch, gpu: GpuInstance, where: object, name: str, wrong: object
) -> None:
    longest = brute_force_gpu(gpu).upper
    monkeypatch.setattr(where, name, wrong)
    assert min(proof.upper for proof in proofs(gpu)) < longest


@pytest.mark.parametrize(
    ("gpu", "ways"),
    [
        (gpu("CL", 2, 9), {"pairs"}),
        (gpu("CL", 2, 9, MIXED), set()),  # the proof of pairs has no port that is held over the seam of two blocks
        (gpu("CL|", 2, 9), set()),
        (gpu("C", 2, 9, FREELY), {"partitions"}),
        (gpu("C|C", 2, 9, FREELY), set()),  # it counts one phase only
    ],
)
def test_who_counts(gpu: GpuInstance, ways: set[str]) -> None:
    assert {proof.counting for proof in proofs(gpu)} == {"one-by-one", "all"} | ways


def test_pairs_are_of_classes_for_which_a_warp_can_wait() -> None:
    block = ((Program.chain("CC"), 2), (Program.chain("L"), 1))
    weights = [proof.weights for proof in proofs(GpuInstance.of(block, 9, PAPER, sms=1, resident=1)) if proof.weights]
    assert {one.classes for found in weights for one in found} == {("C",)}


def test_most_is_open_on_the_path_that_has_given_least_back() -> None:
    """A path begins with C, which takes half of L, or with L, all of which may then be open toward S."""
    program = Program((ProgramPlace("C", (1,)), ProgramPlace("L", (2,)), ProgramPlace("S", (3,))), (0, 1))
    masses = {"C": 1, "L": 2, "S": 2}
    pairing = Pairing.scan(program, masses, masses)
    assert pairing.reserves[1] == (0, 1)
    assert theorem_g._most_open(pairing) == 2


def test_pairs_count_half_where_every_letter_has_a_neighbour() -> None:
    four = gpu("CL" * 8, 4, 10**6 + 1, sms=5, resident=4)
    by_counting = {proof.counting: proof for proof in reversed(proofs(four))}
    assert by_counting["pairs"].block == 16 - 8 + 3 * 4 + 4 * 4 * 8  # A = c - m + beta + R sum of m
    assert by_counting["all"].block == 4 * 4 * 16
    proven = theorem_g.theorem_g(four)
    assert (proven.counting, proven.spared) == ("pairs", 2 * (148 - 12 - 16))  # R - 2 blocks keep beta and c alone
    assert proven.tail == 16 - 8 + 15 + 4 * 4 * 8
    assert proven.weights


@pytest.mark.parametrize(
    ("resident", "warps", "partitions"), [(2, 1, 2), (2, 2, 2), (3, 2, 2), (2, 4, 2), (4, 2, 2), (3, 3, 3)]
)
def test_a_block_meets_as_many_chains_of_its_partition_as_is_counted(
    resident: int, warps: int, partitions: int
) -> None:
    any_way = Machine("any", (UnitClass("C", 1),), partitions=partitions)
    modulo = replace(any_way, assignment=WarpAssignment.MODULO)
    free, fixed = (gpu("C", warps, 99, machine, resident=resident) for machine in (any_way, modulo))
    most = -(-resident * warps // partitions)
    met = [meetings(free, parts) for parts in free.sm(resident).assignments()]
    assert max(met) == theorem_g._meetings(free, most)
    (parts,) = fixed.sm(resident).assignments()
    crowding = theorem_g._crowding_as_numbered(fixed, [(1, warps)])
    assert crowding == max(parts.count(part) for part in parts) - 1 + meetings(fixed, parts)


def meetings(gpu: GpuInstance, parts: tuple[int, ...]) -> int:
    """How many chains of other slots the warps of a block meet at most, each chain in any partition of its slot."""
    slots = [slot for slot, _ in gpu.slots_of_warps(gpu.resident)]
    found = [[part for own, part in zip(slots, parts, strict=True) if own == slot] for slot in range(gpu.resident)]
    return max(
        sum(max(map(coming.count, there)) for other, there in enumerate(found) if other != slot)
        for slot, coming in enumerate(found)
    )


def test_of_shared_ports_a_partition_counts_nothing_more() -> None:
    """A warp alone takes 2 cycles, and counts L of the three others; C of one that is there, and of one that comes."""
    shared = gpu("CL", 2, 9, HALVES, resident=2)
    assert [proof.block for proof in proofs(shared) if proof.counting == "partitions"] == [2 + 3 + 1 + 1]


def test_another_block_costs_the_same_however_many_there_are() -> None:
    few, many = (proofs(gpu("CLC", 2, 40 * count + 1, sms=4, resident=10)) for count in (1, 10**17))
    for one, other in zip(few, many, strict=True):
        assert (one.block, one.scale, one.tail, one.spared) == (other.block, other.scale, other.tail, other.spared)
    assert many[0].dispatched == many[0].block * 40 * 10**17 // many[0].scale


def test_one_wave_is_dispatched_in_cycle_0() -> None:
    wave = gpu("CL", 2, 6, sms=3, resident=2, dispatch=5)
    proven = theorem_g.theorem_g(wave)
    assert (proven.charged, proven.dispatched, proven.tail) == (0, 0, 5 + bound(wave.sm(2)))
    both = theorem_g.theorem_g(in_two_grids(wave))
    assert (both.charged, both.dispatched) == (0, 0)


def test_too_many_phases_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theorem_1s, "MOST_WORK", 0)
    proven = theorem_g.theorem_g(MEET)
    assert (proven.counting, proven.dispatched, proven.tail) == ("one-by-one", 8, 4)
    assert theorem_g.theorem_g(in_two_grids(MEET)).upper == 12


def test_blocks_of_several_grids_weigh_what_they_take() -> None:
    small, large = Grid(((Program.chain("C"), 1),), 100, (1, 0)), Grid(((Program.chain("CC"), 1),), 10, (2, 1))
    both = GpuInstance((small, large), Machine.of({"C": 9}), 2, (4, 2))
    shares = theorem_g._shares(both)
    assert shares == [Fraction(1, 3), Fraction(2, 3)]  # D = (3, 2), and max(2/3, 1/2)
    assert theorem_g._most_together(both, shares, both.room) == Fraction(4, 3)  # 4 small ones
    proven = theorem_g.theorem_g(
        both
    )  # A = 1/3 (1 - 1/9) + 4/3 * 1/9, and 2/3 (2 - 2/9) + 4/3 * 2/9; one small one less
    assert Fraction(proven.block, proven.scale) == (99 * Fraction(12, 27) + 10 * Fraction(40, 27)) / 2
    assert (proven.counting, proven.charged, proven.dispatched, proven.spared) == ("all", 1, 29, 0)
    assert proven.tail == 2  # and 2/9 of two small ones beside the large one


@pytest.mark.parametrize(("resident", "sms"), [(1, 1), (3, 1), (1, 4), (3, 4)])
def test_the_least_is_attained_where_ports_or_slots_are_never_idle(resident: int, sms: int) -> None:
    busy = gpu("C", 1, 5, sms=sms, resident=resident)
    assert best_case.least_possible_gpu(busy) == brute_force_gpu(busy).lower
    slow = gpu("CC", 1, 5, SLOW, sms=sms, resident=min(resident, 2))
    assert best_case.least_possible_gpu(slow) == brute_force_gpu(slow).lower


@pytest.mark.parametrize(
    ("takes", "room", "shares"),
    [
        ((8, 8), 50, ("1/6", "1/6")),  # as of one grid of which 6 blocks fit
        ((4, 2), 6, ("1", "1/2")),  # where 4 do not fit more than 2 are taken, so 4 or more
        ((3, 2), 7, ("3/5", "2/5")),  # 5 = 3 + 2, and 3 do not fit
        ((0, 0), 7, ("1/8", "1/8")),  # nobody takes anything of it
        ((3, 0), 7, ("1/2", "1/8")),  # of the other resource an SM has 8, and a block takes 1
    ],
)
def test_a_block_of_several_grids_weighs_what_it_takes_where_another_does_not_fit(
    takes: tuple[int, ...], room: int, shares: tuple[str, ...]
) -> None:
    block = ((Program.chain("C"), 1),)
    grids = tuple(Grid(block, 99, (one, 1)) for one in takes)
    assert theorem_g._shares(GpuInstance(grids, PAPER, 2, (room, 8))) == list(map(Fraction, shares))


def test_the_warps_of_a_block_meet_the_chains_of_a_partition_as_long_as_there_is_room() -> None:
    """Ten chains in one partition leave room for two warps; and eleven for one, which leaves no chain to the other."""
    halves = Machine("halves", (UnitClass("C", 1),), 1, partitions=2)
    gpu = GpuInstance.of([(Program.chain("C"), 2)], 99, halves, sms=1, resident=12)
    assert theorem_g._meetings(gpu, 12) == 2 * 10
