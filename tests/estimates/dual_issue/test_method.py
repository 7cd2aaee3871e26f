"""The four tests on virtual devices: everything hidden is found, and what noise hides is not guessed."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import inf, nan
from random import Random
from typing import Any

import pytest

from makespan.estimates.dual_issue.arbiter import Bubbles
from makespan.estimates.dual_issue.bank_relation import (
    PATENT_LIMIT,
    BankResult,
    Threshold,
    all_pairs,
    auto_limit,
    banks,
    classify,
    destination_for,
)
from makespan.estimates.dual_issue.code_meaning import CodeResult, codes, interpret
from makespan.estimates.dual_issue.device import (
    IssueInstruction,
    IssueProgram,
    IssueRun,
    Opcode,
    check_timed,
    check_unrolled,
)
from makespan.estimates.dual_issue.method import characterise
from makespan.estimates.dual_issue.pattern_ranking import Codes, best, codes_for, layout, patterns
from makespan.estimates.dual_issue.registers import GK110_BANKS, ZERO, BankFunction
from makespan.estimates.dual_issue.timing import (
    clock_program,
    latency,
    pair_latency,
    reference,
    throughput,
    time_program,
)
from makespan.estimates.dual_issue.truth import GK110_GAPS, Truth
from makespan.estimates.dual_issue.virtual import VirtualSm
from makespan.host.errors import InputError, MeasurementError
from tests.estimates.dual_issue.truths import GK110_CODES, field_gaps, meshed_efficiency, random_truth

F, M = Opcode.FFMA, Opcode.FMUL
A, B, C = 4, 6, 8


def noisy(noise: float, seed: int) -> VirtualSm:
    return VirtualSm(Truth(noise=noise), seed)


@pytest.fixture(scope="module")
def gk110_codes() -> CodeResult:
    return codes(VirtualSm())


def test_n12_f_latency_is_9_and_with_stall_n_the_longer_of_9_and_n_plus_1() -> None:
    device = VirtualSm()
    assert latency(device) == pair_latency(device) == 9
    for stall in range(21):
        assert latency(device, code=0x20 + stall) == max(9, stall + 1)


@pytest.mark.parametrize("cycles", [1, 4, 9, 23])
def test_any_latency_is_found_in_both_ways(cycles: int) -> None:
    for seed in range(5):
        device = VirtualSm(Truth(latency=cycles))
        assert latency(device, seed=seed) == pair_latency(device, seed=seed) == cycles


def test_the_first_iteration_would_measure_cache_misses() -> None:
    program = clock_program([IssueInstruction(F, B, (A,) * 3), IssueInstruction(F, C, (B,) * 3)])
    cold, warm = (VirtualSm().run(program, 1, loops).clock_samples for loops in (1, 2))
    assert cold[1] - cold[0] > warm[1] - warm[0]


def test_n2_p_the_limit_tells_r1_r0_from_r2_r0() -> None:
    assert f"{66.40 / 66.67:.3%}" == "99.595%"
    assert f"{62.06 / 66.67:.3%}" == "93.085%"
    assert 66.40 / 66.67 > PATENT_LIMIT > 62.06 / 66.67
    found = banks(VirtualSm(), range(3), Threshold.PATENT)
    assert found.classes == ((0, 2), (1,))


@pytest.mark.parametrize("threshold", Threshold)
def test_n3_banks_of_32_registers_from_496_pairs(threshold: Threshold) -> None:
    found = banks(VirtualSm(), range(32), threshold)
    assert found.runs == 496
    assert [len(members) for members in found.classes] == [8] * 4
    assert found.function == BankFunction((0, 2)) == GK110_BANKS
    assert found.slowdown == pytest.approx(0.0698, abs=1e-4)
    assert not found.violations


def true_classes(truth: Truth, registers: range) -> set[tuple[int, ...]]:
    classes: dict[int, list[int]] = {}
    for register in registers:
        classes.setdefault(truth.banks[register], []).append(register)
    return set(map(tuple, classes.values()))


@pytest.mark.parametrize("fast", [False, True], ids=["all pairs", "fast"])
def test_n4_200_of_200_random_maps_of_24_registers_into_1_to_8_banks(fast: bool) -> None:
    recovered = 0
    for seed in range(200):
        draw = Random(seed)
        count = draw.randint(1, 8)
        truth = Truth(banks=tuple(draw.randrange(count) for _ in range(ZERO)))
        found = banks(VirtualSm(truth), range(24), fast=fast)
        recovered += set(found.classes) == true_classes(truth, range(24))
        assert found.runs <= (24 * count if fast else 276)
    assert recovered == 200


@pytest.mark.parametrize(("count", "pairs"), [(8, 28), (32, 496), (63, 1953), (255, 32385)])
def test_n10_p_pair_counts(count: int, pairs: int) -> None:
    assert len(all_pairs(range(count))) == pairs == count * (count - 1) // 2


def test_all_255_registers_are_compared_with_rz_as_the_destination() -> None:
    assert destination_for(range(255)) == ZERO
    assert destination_for(range(254)) == 254
    found = banks(VirtualSm(), range(255), fast=True)
    assert found.function == GK110_BANKS
    assert found.runs <= 255 * 4


@pytest.mark.parametrize("noise", [0.0002, 0.0005, 0.005])
def test_auto_is_right_in_50_of_50_runs_up_to_half_a_percent_of_noise(noise: float) -> None:
    assert all(banks(noisy(noise, seed), range(32)).function == GK110_BANKS for seed in range(50))


def test_the_limit_of_the_patent_is_right_at_0_02_percent_of_noise() -> None:
    found = [banks(noisy(0.0002, seed), range(32), Threshold.PATENT).function for seed in range(50)]
    assert found == [GK110_BANKS] * 50


@pytest.mark.parametrize("fast", [False, True], ids=["all pairs", "fast"])
def test_the_limit_of_the_patent_fails_at_0_05_percent_and_says_so(fast: bool) -> None:
    for seed in range(50):
        with pytest.raises(MeasurementError, match=r"unresolved: without conflicts|not bank-like"):
            banks(noisy(0.0005, seed), range(32), Threshold.PATENT, fast=fast)


def banks_or_none(device: VirtualSm, registers: range) -> BankResult | None:
    """The banks, or None if the method says that it cannot tell."""
    try:
        return banks(device, registers)
    except MeasurementError:
        return None


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_more_noise_is_unresolved_and_never_guessed(noise: float) -> None:
    found = [banks_or_none(noisy(noise, seed), range(32)) for seed in range(50)]
    assert all(result is None or result.function == GK110_BANKS for result in found)
    assert found.count(None) >= 45


def test_a_relation_that_is_none_of_banks_names_the_triple() -> None:
    shares = dict.fromkeys(combinations(range(4), 2), 1.0) | {(0, 1): 0.9, (1, 2): 0.9}
    found = classify(shares, 0.95)
    assert found.violations == ((0, 1, 2),)
    with pytest.raises(MeasurementError, match="R0 conflicts with R1 and R1 with R2, but R0 not with R2: noisy or not"):
        found.required()


class Altered:
    """An SM whose every run is changed by a function."""

    def __init__(self, change: Callable[[IssueProgram, IssueRun], IssueRun]) -> None:
        self.device, self.change = VirtualSm(Truth(banks=tuple(range(ZERO)))), change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def run(self, program: IssueProgram, warps: int, loops: int) -> IssueRun:
        return self.change(program, self.device.run(program, warps, loops))


def test_conflicts_of_two_costs_are_not_taken_for_one() -> None:
    """The largest gap would call the cheaper ones free of conflicts."""

    def two_costs(program: IssueProgram, run: IssueRun) -> IssueRun:
        a, b = program.body[0].sources
        return run if a % 4 != b % 4 or a == b else IssueRun(run.cycles * (1.01 if a % 4 == 0 else 1.3), ())

    with pytest.raises(MeasurementError, match="6 of 120 pairs lie between conflict and none"):
        banks(Altered(two_costs), range(16))


@pytest.mark.parametrize("value", [nan, inf])
def test_devices_that_return_no_numbers_are_failed_measurements(value: float) -> None:
    with pytest.raises(MeasurementError, match="no measurement"):
        reference(Altered(lambda _, run: IssueRun(value, run.clock_samples)))
    with pytest.raises(MeasurementError, match="no measurement"):
        latency(Altered(lambda _, run: IssueRun(run.cycles, tuple(value for _ in run.clock_samples))))


def test_no_conflicts_at_all_are_no_conflicts() -> None:
    truth = Truth(banks=tuple(range(ZERO)))
    assert len(banks(VirtualSm(truth), range(6)).classes) == 6
    assert banks(VirtualSm(truth), range(6)).slowdown is None
    with pytest.raises(MeasurementError, match="either no two registers conflict, or noise hides"):
        banks(VirtualSm(replace(truth, noise=0.002)), range(12))


def test_the_automatic_limit_is_in_the_middle_of_the_largest_gap() -> None:
    assert auto_limit([1.0, 0.99, 0.93, 0.92], 0.001) == pytest.approx(0.96)
    assert auto_limit([1.0, 0.99, 0.93, 0.92], None) == pytest.approx(0.96)
    with pytest.raises(MeasurementError, match="below 3 times the noise"):
        auto_limit([1.0, 0.99, 0.93, 0.92], 0.021)


@pytest.mark.parametrize("count", [0, 1, 256])
def test_registers_are_2_to_255(count: int) -> None:
    with pytest.raises(InputError, match=rf"2\.\.255 can be compared, not {count}"):
        banks(VirtualSm(), range(count))


def test_registers_differ_and_exist() -> None:
    for registers in ([1, 1], [0, 255], [-1, 2]):
        with pytest.raises(InputError, match="registers are different"):
            banks(VirtualSm(), registers)


def test_n5_fz_classes_and_fields_of_the_control_codes(gk110_codes: CodeResult) -> None:
    found = gk110_codes
    assert found.gaps == GK110_GAPS
    assert found.dual == (0x04,)
    assert (len(found.immediate), len(found.delayed)) == (40, 215)
    fields = {
        field.base: (field.shift, field.width, field.slope, field.last, field.saturation)
        for field in found.fields
        if field.start == 1
    }
    wide = dict.fromkeys((0x20, 0x40, 0x60, 0xE0), (0, 5, 1, 20, 32))
    narrow = dict.fromkeys((0x80, 0x90, 0xA0, 0xB0, 0xC0, 0xD0), (0, 4, 2, 10, 32))
    assert fields == wide | narrow
    assert found.latency[0x34] == 21
    assert found.throughput[0x34] == pytest.approx(4 * 128 / 21, rel=0.005)


@pytest.mark.parametrize("noise", [0.0002, 0.005, 0.01])
def test_codes_are_found_through_noise(noise: float, gk110_codes: CodeResult) -> None:
    found = codes(noisy(noise, 3))
    shapes = [
        [(field.base, field.width, field.slope, field.last) for field in one.fields] for one in (found, gk110_codes)
    ]
    assert shapes[0] == shapes[1]
    assert (found.dual, found.immediate) == (gk110_codes.dual, gk110_codes.immediate)


def test_noise_that_hides_single_cycles_is_unresolved() -> None:
    with pytest.raises(MeasurementError, match="too much to tell single cycles apart"):
        codes(noisy(0.05, 0))
    gaps = [1.0] * 256
    gaps[7] = 0.5
    with pytest.raises(MeasurementError, match=r"0x07 has a gap of 0\.50 cycles, neither 0 nor 1"):
        interpret(gaps, [1.0] * 256, [9.0] * 256)


@pytest.mark.parametrize("dual", [0x40, 0x43, 0x5F])
def test_a_code_that_opens_dual_issues_may_stand_in_a_stall_field(dual: int) -> None:
    gaps = field_gaps(shift=0, width=5, slope=2, dual=dual)
    found = interpret(gaps, [1.0] * 256, [9.0] * 256)
    assert [field.base for field in found.fields] == list(range(0, 256, 32))
    assert {(field.start, field.slope) for field in found.fields} == {(1, 2)}
    assert found.dual == (dual,)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 50), marks=pytest.mark.soak)])
def test_random_devices_are_recovered(seeds: range) -> None:
    for seed in seeds:
        truth = random_truth(seed)
        found = characterise(VirtualSm(truth, seed), range(24), name="random", origin="a test", is_virtual=True)
        assert found.banks is not None
        assert found.codes is not None
        assert found.latency == truth.latency
        assert set(found.banks.classes) == true_classes(truth, range(24))
        assert found.codes.gaps == truth.gaps
        assert [truth.gaps[code] for code in found.codes.dual] == [0]
        check_field(found.codes, truth)
        for result in found.patterns:
            assert result.efficiency == pytest.approx(
                0.9726 * meshed_efficiency(result.pattern, truth.bubbles), rel=0.005
            )


def check_field(found: CodeResult, truth: Truth) -> None:
    """One field, whatever the other bits are: it explains every delayed code, and nothing else is delayed."""
    shapes = {(field.shift, field.width, field.slope) for field in found.fields}
    assert len(shapes) == 1
    for field in found.fields:
        for step, code in enumerate(field.codes):
            assert truth.gaps[code] in (0, field.start + field.slope * step)
    explained = {code for field in found.fields for code in field.codes}
    assert set(found.delayed) <= explained


@pytest.mark.parametrize("seed", range(5))
def test_random_devices_with_noise_are_recovered_or_refused_with_a_reason(seed: int) -> None:
    truth = random_truth(seed)
    for noise in (0.0005, 0.03):
        found = banks_or_none(VirtualSm(replace(truth, noise=noise), seed), range(24))
        assert found is None or set(found.classes) == true_classes(truth, range(24))


def test_n6_p_the_best_pattern_is_1221(gk110_codes: CodeResult) -> None:
    device = VirtualSm()
    found = patterns(device, banks(device, range(32)), codes_for(gk110_codes))
    assert [result.pattern for result in best(found)] == [(1, 2, 2, 1)]
    assert 0.969 <= found[0].efficiency <= 0.977
    assert found[0].ops_per_cycle == pytest.approx(186.35, rel=0.005)  # Z


def test_n6_without_bubbles_no_pattern_is_the_best() -> None:
    device = VirtualSm(Truth(bubbles=Bubbles()))
    found = patterns(device, banks(device, range(8)), GK110_CODES)
    assert len(best(found)) == 6


def test_single_issue_code_for_ffmas_that_issue_alone(gk110_codes: CodeResult) -> None:
    assert codes_for(gk110_codes) == GK110_CODES
    assert codes_for(gk110_codes, single_code=True) == Codes(0x04, 0x05, 0x20)
    device = VirtualSm()
    (found,) = patterns(device, banks(device, range(8)), Codes(0x04, 0x05, 0x20), only=[(1, 2, 2, 1)])
    assert found.efficiency == pytest.approx(0.9726, abs=1e-3)


def test_a_device_without_dual_issue_is_refused() -> None:
    truth = Truth(gaps=tuple(max(gap, 1) for gap in GK110_GAPS))
    found = codes(VirtualSm(truth))
    with pytest.raises(MeasurementError, match="device has no dual issue"):
        codes_for(found)
    with pytest.raises(MeasurementError, match="device has no dual issue"):
        characterise(VirtualSm(truth), range(8), name="x", origin="x", is_virtual=True)


def test_the_free_slot_issues_with_the_last_single_ffma() -> None:
    ffmas = [IssueInstruction(F, 10 + at, (0, 1, 4)) for at in range(6)]
    block = layout((1, 2, 2, 1), GK110_CODES, ffmas)
    assert [one.code for one in block] == [0x05, 0x04, 0x05, 0x04, 0x05, 0x04, 0x05]
    assert block[-1].opcode is Opcode.NOP
    middle = layout((1, 2, 1, 2), GK110_CODES, ffmas)
    assert [one.opcode for one in middle].index(Opcode.NOP) == 4
    assert middle[3].code == 0x04
    assert all(len(layout(pattern, GK110_CODES, ffmas)) == 7 for pattern in ((1, 1, 2, 2), (2, 2, 1, 1)))


def test_a_pattern_that_does_not_fill_a_block_is_refused() -> None:
    with pytest.raises(InputError, match="leaves 3 of 7 slots free"):
        layout((2, 2), GK110_CODES, [IssueInstruction(F, 10 + at, (0, 1, 4)) for at in range(4)])


def test_only_single_issues_reach_two_thirds() -> None:
    device = VirtualSm()
    (found,) = patterns(device, banks(device, range(8)), GK110_CODES, only=[(1, 1, 1, 1)])
    assert found.efficiency == pytest.approx(0.6641, abs=1e-3)


CLEAN = (IssueInstruction(F, B, (A,) * 3), IssueInstruction(F, C, (B,) * 3))
STRANGER = IssueInstruction(F, C, (A,) * 3)


@pytest.mark.parametrize(
    ("program", "warps", "loops", "message"),
    [
        (clock_program(CLEAN), 1, 3, "exactly 2 times, not 3"),
        (clock_program(CLEAN), 5, 2, "5 warps on 4 schedulers"),
        (IssueProgram(CLEAN), 1, 2, "at least twice inside of the loop"),
        (
            IssueProgram((IssueInstruction(Opcode.S2R, 0), *CLEAN, IssueInstruction(Opcode.S2R, 1))),
            1,
            2,
            "3 cycles between two clock",
        ),
        (clock_program((IssueInstruction(F, C, (0, 2, 4)),)), 1, 2, "may share a bank"),
        (IssueProgram(clock_program(CLEAN).body * 60), 1, 2, "instruction cache"),
        (clock_program((CLEAN[0], STRANGER)), 1, 2, "that is no latency"),
    ],
)
def test_p_rules_of_loops_with_clock_reads(program: IssueProgram, warps: int, loops: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_timed(VirtualSm().sm, program, warps, loops, dependent=(CLEAN[0], program.body[-2]))


def test_p_loop_control_needs_more_than_199_unrolled_instructions() -> None:
    check_unrolled(200)
    with pytest.raises(InputError, match="unroll at least 200"):
        check_unrolled(199)
    with pytest.raises(InputError, match="unroll at least 200"):
        throughput(VirtualSm(), IssueInstruction(M, 4, (1, 0)), unroll=100)


def test_reference_measures_the_noise() -> None:
    assert reference(VirtualSm()).noise == 0
    assert reference(noisy(0.004, 1)).noise == pytest.approx(0.004, rel=0.4)


def test_clock_samples_of_a_pair_are_as_many_cycles_apart_as_counted_by_hand() -> None:
    """The first read, 14 fillers, the writer, 9 cycles to the reader, and the second read one cycle later."""
    assert time_program(VirtualSm(), CLEAN) == 1 + 14 + 9 + 1
    assert time_program(VirtualSm(), (CLEAN[0], STRANGER)) == 1 + 14 + 1 + 1
