"""The published numbers, and that the tests of registers, codes and patterns find them in the shipped table.

The names of tests carry the source of their numbers: P from the patent, Z from text and tables of Zhang et al. (PPoPP
2017), F read from its figures (+-0.1 unit, bars +-5 Gflop/s). N1..N13 are the numbers that an implementation has to
reproduce; N8 is of scheduling words, which this one does not write.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, pairwise
from random import Random

import pytest

from makespan.estimates.dual_issue import K20, BankFunction, Characteristics, SmDescription, Threshold, find
from makespan.estimates.dual_issue.control_codes import CODES, interpret
from makespan.estimates.dual_issue.ffma_bound import peak_gflops
from makespan.estimates.dual_issue.measurements import PATTERNS
from makespan.estimates.dual_issue.register_banks import (
    PATENT_LIMIT,
    BankResult,
    Pair,
    auto_limit,
    find_banks,
    function_of,
)
from makespan.estimates.microbench.programs import ffma_source
from makespan.host.errors import MeasurementError

GK110_BANKS = BankFunction((0, 2))
PEAK = peak_gflops(lanes=192, sms=13, clock_ghz=0.706)
CLEAN = 127.50 / 128
CYCLES = 40_000
BASE_EFFICIENCY = 0.9726
"""Our calibration: the best published bar over the peak."""


@pytest.fixture(scope="module")
def gk110() -> Characteristics:
    return find(K20)


def test_n1_pz_single_issue_alone_is_two_thirds_of_the_peak() -> None:
    sm = SmDescription()
    assert (sm.lanes, sm.theory) == (192, 128)
    assert f"{sm.theory / sm.lanes:.2%}" == "66.67%"


def test_n7_z_the_best_before() -> None:
    assert f"{132 / 192:.2%}" == "68.75%"


def test_n13_p_peak_of_a_tesla_k20() -> None:
    assert pytest.approx(3524.352, abs=5e-4) == PEAK
    assert f"{0.97 * PEAK:.1f}" == "3418.6"


# ---- registers


def test_n11_z_the_table_of_conflicts_and_the_best_rates() -> None:
    conflicts = {127.50: 66.40, 119.18: 62.07, 119.17: 62.06, 94.52: 49.23}  # none, 2-way FFMA and FMUL, 3-way
    best = {127.52: 66.42, 186.35: 97.06, 186.50: 97.14}  # single; dual FFMA and FMUL; dual FADD
    assert [100 * rate / 192 for rate in conflicts] == pytest.approx(list(conflicts.values()), abs=0.008)
    assert [round(100 * rate / 192, 2) for rate in best] == list(best.values())


def test_n11_extra_cycles_of_a_conflict_are_those_of_the_table() -> None:
    two, three = 127.50 / 119.18 - 1, 127.50 / 94.52 - 1
    assert two == pytest.approx(0.06981037, abs=5e-9)
    assert three == pytest.approx(0.34892086, abs=5e-9)
    assert three / two == pytest.approx(5.00, abs=0.005)


def shares(bank: Callable[[int], int], count: int, noise: float = 0.0, seed: int = 0) -> dict[Pair, float]:
    """The throughput of every pair of registers as a share of theory, as a noisy clock would measure it."""
    draw = Random(seed)
    return {
        (a, b): (119.17 if bank(a) == bank(b) else 127.50) / 128 / (1 + draw.gauss(0, noise))
        for a, b in combinations(range(count), 2)
    }


def banks_or_none(noise: float, seed: int, threshold: Threshold = Threshold.AUTO) -> BankResult | None:
    """The banks of 32 registers of GK110, or None if the method says that it cannot tell."""
    try:
        return find_banks(shares(GK110_BANKS, 32, noise, seed), CLEAN, threshold)
    except MeasurementError:
        return None


def test_n2_p_the_limit_tells_r1_r0_from_r2_r0() -> None:
    assert f"{66.40 / 66.67:.3%}" == "99.595%"
    assert f"{62.06 / 66.67:.3%}" == "93.085%"
    assert 66.40 / 66.67 > PATENT_LIMIT > 62.06 / 66.67
    assert find_banks(shares(GK110_BANKS, 3), CLEAN, Threshold.PATENT).classes == ((0, 2), (1,))


@pytest.mark.parametrize("threshold", Threshold)
def test_n3_z_banks_of_32_registers_from_496_pairs(threshold: Threshold) -> None:
    found = find(K20, threshold=threshold).banks
    assert found is not None
    assert found.runs == 496
    assert [list(members) for members in found.classes] == [
        [0, 2, 8, 10, 16, 18, 24, 26],
        [1, 3, 9, 11, 17, 19, 25, 27],
        [4, 6, 12, 14, 20, 22, 28, 30],
        [5, 7, 13, 15, 21, 23, 29, 31],
    ]
    assert found.function == GK110_BANKS
    assert str(found.function) == "(r & 1) | ((r >> 2) & 1) << 1"
    assert found.slowdown == pytest.approx(127.50 / 119.17 - 1)


def test_n4_200_of_200_random_maps_of_24_registers_into_1_to_8_banks() -> None:
    for seed in range(200):
        draw = Random(seed)
        bank = [draw.randrange(draw.randint(1, 8)) for _ in range(24)]
        classes = {number: tuple(r for r in range(24) if bank[r] == number) for number in set(bank)}
        assert set(find_banks(shares(bank.__getitem__, 24), CLEAN).classes) == set(classes.values())


@pytest.mark.parametrize(("count", "pairs"), [(8, 28), (32, 496), (63, 1953), (255, 32385)])
def test_n10_p_pair_counts(count: int, pairs: int) -> None:
    assert len(shares(GK110_BANKS, count)) == pairs == count * (count - 1) // 2


@pytest.mark.parametrize("noise", [0.0002, 0.0005, 0.005])
def test_auto_is_right_in_50_of_50_runs_up_to_half_a_percent_of_noise(noise: float) -> None:
    found = [banks_or_none(noise, seed) for seed in range(50)]
    assert [result and result.function for result in found] == [GK110_BANKS] * 50


def test_the_limit_of_the_patent_is_right_at_0_02_percent_of_noise_and_fails_at_0_05() -> None:
    fine = [banks_or_none(0.0002, seed, Threshold.PATENT) for seed in range(50)]
    assert [result and result.function for result in fine] == [GK110_BANKS] * 50
    assert [banks_or_none(0.0005, seed, Threshold.PATENT) for seed in range(50)].count(None) >= 49


@pytest.mark.parametrize("threshold", Threshold)
@pytest.mark.parametrize("noise", [0.0005, 0.01, 0.03])
def test_more_noise_is_unresolved_and_never_guessed(noise: float, threshold: Threshold) -> None:
    found = [banks_or_none(noise, seed, threshold) for seed in range(50)]
    assert all(result is None or result.function == GK110_BANKS for result in found)
    assert noise < 0.01 or found == [None] * 50


def test_a_relation_that_is_none_of_banks_names_the_triple() -> None:
    relation = dict.fromkeys(combinations(range(4), 2), 1.0) | {(0, 1): 0.9, (1, 2): 0.9}
    with pytest.raises(MeasurementError, match="R0 conflicts with R1 and R1 with R2, but R0 not with R2: noisy or not"):
        find_banks(relation, 1.0)


def test_no_conflicts_at_all_are_no_conflicts() -> None:
    found = find_banks(shares(lambda register: register, 6), CLEAN)
    assert (len(found.classes), found.slowdown) == (6, None)
    with pytest.raises(MeasurementError, match="either no two registers conflict, or noise hides"):
        find_banks(shares(lambda register: register, 12, noise=0.002), CLEAN)


def test_the_automatic_limit_is_in_the_middle_of_the_largest_gap() -> None:
    assert auto_limit([1.0, 0.99, 0.93, 0.92]) == pytest.approx(0.96)
    with pytest.raises(MeasurementError, match="below 3 times the noise"):
        auto_limit([1.0, 0.96, 0.92, 0.86, 0.80])


def test_the_fewest_bits_that_tell_banks_apart_are_taken_and_none_if_none_do() -> None:
    assert function_of([range(8)]) == BankFunction(())
    assert function_of([range(4), range(4, 8)]) == BankFunction((2,))
    assert function_of([[0, 3], [1, 2]]) is None  # an XOR of two bits


def ways(registers: Iterable[int]) -> int:
    """The most registers that one bank of GK110 has to read."""
    return max(Counter(map(GK110_BANKS, set(registers))).values())


def test_n9_z_the_operand_cache_keeps_the_sources_of_the_cycle_before() -> None:
    """Figure 7b: two FFMAs of a pair and four banks; only what the cycle before has read makes the second pair fit."""
    sources = [(150, 147, 31), (150, 146, 27), (149, 146, 6), (148, 147, 7), (149, 147, 2), (148, 146, 3)]
    cycles = [sources[:1], sources[1:3], sources[3:5], sources[5:]]
    needed = [frozenset(register for one in cycle for register in one) for cycle in cycles]
    assert [ways(now) for now in needed] == [1, 2, 2, 1]
    assert [ways(now - before) for before, now in pairwise([frozenset(), *needed])] == [1, 1, 1, 1]


def test_p_loop_control_needs_more_than_199_unrolled_instructions() -> None:
    """The margin of the limit is half a percent, and loop control is one instruction."""
    assert 1 / 199 > 1 - PATENT_LIMIT == pytest.approx(1 / 200)
    streams, *_, rounds = sorted(map(int, re.findall(r"(?:s|r) < (\d+)", ffma_source()["ffma.cu"])))
    assert streams * rounds >= 200


# ---- control codes


def gk110_gap(code: int) -> int:
    """F, Z: cycles from an instruction with this code to the next; between the digitised points a straight line."""
    if code < 0x20:
        return {0x00: 16, 0x04: 0}.get(code, 1)
    step, slope, last = (code & 15, 2, 10) if 0x80 <= code < 0xE0 else (code & 31, 1, 20)
    return 1 + slope * step if step <= last else 32


SAMPLES = {
    0x00: (31.9, 16.0), 0x20: (127.5, 9.0), 0x23: (126.0, 8.9), 0x24: (101.2, 9.5), 0x25: (84.4, 10.6),
    0x26: (72.5, 11.4), 0x27: (63.5, 11.4), 0x28: (56.4, 10.4), 0x29: (50.7, 11.1), 0x2A: (43.5, 11.4),
    0x2B: (37.5, 12.3), 0x2C: (34.7, 13.2), 0x2D: (36.4, 14.2), 0x2E: (34.0, 15.1), 0x2F: (31.9, 16.0),
    0x30: (30.0, 17.5), 0x31: (28.3, 19.9), 0x32: (26.8, 22.1), 0x33: (25.5, 24.0), 0x34: (24.0, 26.6),
    **dict.fromkeys(range(53, 64), (16.0, 32.0)),
    0x81: (127.4, 8.9), 0x82: (101.1, 9.5), 0x83: (72.5, 10.7), 0x84: (56.4, 10.0), 0x85: (44.5, 11.4),
    0x87: (34.0, 15.1), 0x88: (30.0, 17.6), 0x8A: (24.1, 26.7), **dict.fromkeys(range(139, 144), (16.0, 32.0)),
}  # fmt: skip
"""F: code to operations per cycle and latency, where a law fits."""
NO_LAW = {0x04: (16.2, 38.6), **dict.fromkeys((0x05, 0x06, 0x07), (83.6, 9.0))}
DIPS = {0x2A, 0x2B, 0x2C, 0x85}
"""The figure has dips where the stall is 10 to 12 cycles; the law has none."""


def test_n5_fz_classes_and_fields_of_the_control_codes(gk110: Characteristics) -> None:
    found = gk110.codes
    assert found is not None
    assert found.gaps == tuple(map(gk110_gap, range(CODES)))
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


def test_n12_f_latency_is_9_and_with_stall_n_the_longer_of_9_and_n_plus_1(gk110: Characteristics) -> None:
    assert gk110.codes is not None
    assert gk110.latency == 9
    assert gk110.codes.latency[0x20:0x35] == tuple(max(9, stall + 1) for stall in range(21))


def test_f_throughput_and_latency_of_control_codes_follow_a_law(gk110: Characteristics) -> None:
    assert gk110.codes is not None
    rates = dict(enumerate(zip(gk110.codes.throughput, gk110.codes.latency, strict=True)))
    for code, (rate, latency) in rates.items():
        gap = gk110_gap(code)
        expected = NO_LAW.get(code) or (min(127.5, 4 * 128 / gap), max(9, gap))
        assert (rate, latency) == pytest.approx(expected, abs=0.051)
    for code, (rate, latency) in SAMPLES.items():
        law = min(127.5, 4 * 128 / gk110_gap(code))
        assert (law == pytest.approx(rate, rel=0.03)) == (code not in DIPS)
        assert law == pytest.approx(rate, rel=0.14)
        assert rates[code][1] == pytest.approx(latency, rel=0.22)


def gaps(shift: int, width: int, slope: int, dual: int, gate: int = 0) -> tuple[int, ...]:
    """A table with one stall field, in the codes that have the bits of `gate`, and one code that opens a dual issue."""
    table = [1 + slope * (code >> shift & (1 << width) - 1) * (code & gate == gate) for code in range(CODES)]
    table[dual] = 0
    return tuple(table)


@pytest.mark.parametrize("dual", [0x40, 0x43, 0x5F])
def test_a_code_that_opens_dual_issues_may_stand_in_a_stall_field(dual: int) -> None:
    found = interpret(gaps(shift=0, width=5, slope=2, dual=dual), [1.0] * 256, [9.0] * 256)
    assert [field.base for field in found.fields] == list(range(0, 256, 32))
    assert {(field.start, field.slope) for field in found.fields} == {(1, 2)}
    assert found.dual == (dual,)


def test_random_stall_fields_are_found_through_noise() -> None:
    """One field of 3 to 5 bits at bit 0 to 3, of slope 1 or 2, behind a bit that turns it on; any code opens a pair."""
    for seed in range(50):
        draw = Random(seed)
        shift, width, slope = draw.randrange(4), draw.randint(3, 5), draw.randint(1, 2)
        gate = 1 << draw.choice([bit for bit in range(8) if not shift <= bit < shift + width])
        dual = draw.choice([code for code in range(CODES) if code != 0x20])
        true = gaps(shift, width, slope, dual, gate)
        found = interpret([gap + draw.uniform(-0.1, 0.1) for gap in true], [1.0] * 256, [9.0] * 256)
        assert {(field.shift, field.width, field.slope) for field in found.fields} == {(shift, width, slope)}
        for field in found.fields:
            for step, code in enumerate(field.codes):
                assert true[code] == 0 or true[code] == pytest.approx(field.start + slope * step, abs=0.25)
        assert found.dual == (dual,)
        assert set(found.delayed) <= {code for field in found.fields for code in field.codes}


@pytest.mark.parametrize("count", [8, 32, 255])
def test_codes_that_all_open_dual_issues_are_no_stall_field(count: int) -> None:
    found = interpret([int(code >= count) for code in range(256)], [127.5] * 256, [9.0] * 256)
    assert len(found.dual) == count
    assert not found.fields


def test_a_gap_between_0_and_1_is_unresolved() -> None:
    with pytest.raises(MeasurementError, match=r"0x07 has a gap of 0\.50 cycles, neither 0 nor 1"):
        interpret([0.5 if code == 7 else 1.0 for code in range(256)], [1.0] * 256, [9.0] * 256)


# ---- patterns

BARS = {"1-1-2-2": 1702, "1-2-1-2": 1515, "1-2-2-1": 3428, "2-1-1-2": 1601, "2-1-2-1": 2786, "2-2-1-1": 2786}
"""F: in Gflop/s on a Tesla K20, +-5."""
TABLE = {
    "1-1-2-2": (1.0000, 2, 0.8000, 0.5000, 48.6, 48.3),
    "1-2-1-2": (1.0000, 1, 1.0000, 0.5000, 48.6, 43.0),
    "1-2-2-1": (1.0000, 2, 0.8000, 1.0000, 97.3, 97.3),
    "2-1-1-2": (1.0000, 2, 0.8000, 0.4445, 43.2, 45.4),
    "2-1-2-1": (1.0000, 1, 1.0000, 0.8000, 77.8, 79.0),
    "2-2-1-1": (1.0000, 2, 0.8000, 0.8000, 77.8, 79.0),
}
"""Efficiency with a fixed winner, and cycles lost; round-robin; fixed with bubbles 1/4, and times 0.9726; F."""
FULL, BUBBLES = (0, 0), (1, 4)
"""Issue cycles that a block loses if it starts or ends with a dual issue: our calibration, which no source explains."""


def mesh(pattern: str, *, rotates: bool = False, bubbles: tuple[int, int] = FULL) -> tuple[float, list[int]]:
    """The efficiency of two schedulers that share 32 lanes and execute one pattern, and the cycles that each lost.

    If both want the shared lanes, one of them loses the cycle: always the second one, or the winner of last time.
    """
    slots = [*map(int, pattern.split("-"))]
    slots += [0] * (bubbles[0] * (slots[0] == 2) + bubbles[1] * (slots[-1] == 2))
    at, lost, executed, loser = [0, 0], [0, 0], 0, 1
    for _ in range(CYCLES):
        now = [slots[place % len(slots)] for place in at]
        waits = loser if now == [2, 2] else None
        for scheduler, issued in enumerate(now):
            if scheduler == waits:
                lost[scheduler] += 1
            else:
                executed += issued
                at[scheduler] += 1
        loser = 1 - loser if rotates and waits is not None else loser
    return executed / (3 * CYCLES), lost  # a group of lanes for each scheduler, and the shared one


@pytest.mark.parametrize("pattern", TABLE)
def test_n6_table_of_meshing_schedulers(pattern: str) -> None:
    fixed, lost, robin, bubbled, scaled, _ = TABLE[pattern]
    efficiency, cycles = mesh(pattern)
    assert efficiency == pytest.approx(fixed, abs=1e-3)
    assert cycles == [0, lost]  # P: one to two
    assert mesh(pattern, rotates=True)[0] == pytest.approx(robin, abs=1e-3)
    assert mesh(pattern, bubbles=BUBBLES)[0] == pytest.approx(bubbled, abs=1e-3)
    assert 100 * BASE_EFFICIENCY * bubbled == pytest.approx(scaled, abs=0.06)


@pytest.mark.parametrize("rotates", [False, True])
@pytest.mark.parametrize("pattern", ["1-1-1-1", "2-2-2-2"])
def test_n6_only_single_or_only_dual_issues_reach_two_thirds(pattern: str, rotates: bool) -> None:
    assert mesh(pattern, rotates=rotates)[0] == pytest.approx(0.6667, abs=1e-3)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("bubbles", [FULL, BUBBLES, (3, 2)])
def test_a_fixed_winner_has_a_closed_form(pattern: str, bubbles: tuple[int, int]) -> None:
    lost = bubbles[0] * pattern.startswith("2") + bubbles[1] * pattern.endswith("2")
    assert mesh(pattern, bubbles=bubbles)[0] == pytest.approx(2 * 6 / (3 * (4 + lost)), rel=0.005)


def test_f_published_bars_and_how_far_the_calibration_is_off() -> None:
    assert {pattern: 100 * bar / PEAK for pattern, bar in BARS.items()} == pytest.approx(
        {pattern: row[5] for pattern, row in TABLE.items()}, abs=0.06
    )
    off = {pattern: abs(row[4] - row[5]) for pattern, row in TABLE.items()}
    assert max(off.values()) == off["1-2-1-2"] == pytest.approx(5.7, abs=0.15)


def test_n6_p_the_best_pattern_is_1221(gk110: Characteristics) -> None:
    assert list(PATTERNS) == list(TABLE)
    assert [result.pattern for result in gk110.best] == ["1-2-2-1"]
    assert str(gk110.best[0]) == "1-2-2-1 97.06%"
    assert 0.969 <= gk110.best[0].efficiency <= 0.977
    assert gk110.sustained == 186.35  # Z
    reached: Mapping[str, float] = {result.pattern: result.efficiency for result in gk110.patterns}
    assert list(reached) == sorted(BARS, key=lambda pattern: (-BARS[pattern], pattern))
    assert reached == pytest.approx({pattern: bar / PEAK for pattern, bar in BARS.items()}, abs=0.0025)
