"""Worked examples, laws and refusals of the model of Hong and Kim; the numbers come from paper, by hand."""

import math
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from makespan.estimates.estimate import Origin
from makespan.estimates.hong_kim import (
    Bound,
    Case,
    HongKimGPU,
    HongKimKernel,
    HongKimResult,
    estimate,
)
from makespan.estimates.hong_kim.launch import estimate_launch, of_gpu
from makespan.estimates.hong_kim.model import (
    CompModel,
    RealNumber,
    comp_cycles,
    cycles_to_seconds,
    operations_per_cycle,
)
from makespan.host.errors import InputError
from makespan.model.machine import gpus
from makespan.model.machine.occupancy import SmLimits
from tests.estimates.hong_kim.cross_check import cross_check

EXAMPLE = HongKimGPU(
    name="example",
    limits=SmLimits(32, blocks=8),
    sms=16,
    issue_cycles=4,
    freq_ghz=1,
    mem_bw_gbs=80,
    mem_ld=420,
    departure_del_coal=4,
    departure_del_uncoal=10,
)
"""The GPU of the worked example of Hong and Kim, ISCA 2009."""

MATRIX = HongKimKernel(
    threads_per_block=128,
    blocks=80,
    comp_insts=27,
    uncoal_mem_insts=6,
    synch_insts=6,
    uncoal_per_mw=32,
    load_bytes_per_warp=128,
    active_blocks_per_sm=5,
)
"""Tiled matrix multiplication: three iterations of 9 computations, 2 accesses and 2 barriers."""


def symbols(found: HongKimResult, names: str) -> list[object]:
    return [found[name] for name in names.split()]


def kernel(**changes: Any) -> HongKimKernel:
    return replace(MATRIX, **changes)


HEAVY = {"comp_insts": 10_000, "coal_mem_insts": 10, "uncoal_mem_insts": 0, "synch_insts": 0}
FEW = {"threads_per_block": 64, "blocks": 16, "active_blocks_per_sm": 1, "comp_insts": 100}
MANY = {"threads_per_block": 256, "blocks": 48, "active_blocks_per_sm": 3, "comp_insts": 120}
COALESCED = {"uncoal_mem_insts": 0, "coal_mem_insts": 6}
WORKED: dict[str, tuple[dict[str, int], Case, Bound, str]] = {
    # changes of MATRIX, the case, its bound, and the symbols
    "uncoalesced, as in the paper": (
        {}, Case.MEMORY, Bound.MEMORY,
        "N=20 rep=1 Departure_delay=320 Mem_L=730 MWP_without_BW_full=73/32 BW_per_warp=64/365 MWP_peak_BW=1825/64"
        " MWP=73/32 CWP_full=376/11 CWP=20 Comp_cycles=132 Mem_cycles=4380 exec=614851/16 Synch_cost=12300"
        " issue_bound=2640",
    ),
    "all coalesced": (
        COALESCED, Case.MEMORY, Bound.MEMORY,
        "Mem_L=420 MWP_without_BW_full=105 MWP=525/32 MWP_peak_BW=525/32 CWP_full=221/11 CWP=20 exec=54575/16"
        " Synch_cost=1848.75",
    ),
    "half coalesced": (
        {"uncoal_mem_insts": 3, "coal_mem_insts": 3}, Case.MEMORY, Bound.MEMORY,
        "Mem_L=575 Departure_delay=162 Mem_cycles=3450 MWP=575/162 exec=1579183/81 Synch_cost=12390",
    ),
    "few warps": (
        {**FEW, **COALESCED, "synch_insts": 0}, Case.FEW_WARPS, Bound.LATENCY, "N=2 MWP=2 CWP=2 exec=9044/3",
    ),
    "computation": (
        {**MANY, **COALESCED, "synch_insts": 0}, Case.COMPUTATION, Bound.COMPUTE,
        "N=24 MWP=24 CWP=6 exec=12516 issue_bound=12096",
    ),
    "more computation than memory": (
        HEAVY, Case.MEMORY, Bound.COMPUTE,
        "Comp_cycles=40040 Mem_cycles=4200 MWP=525/32 exec=534453/8 issue_bound=800800",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKED)
def test_hong_kim_isca09_worked_examples_are_exact(name: str) -> None:
    changes, case, bound, said = WORKED[name]
    found = estimate(replace(EXAMPLE, mem_bw_gbs=160 if case is Case.COMPUTATION else 80), kernel(**changes))
    expected = {key: Fraction(value) for key, value in (each.split("=") for each in said.split())}
    assert {key: found[key] for key in expected} == expected
    assert (found.case, found.bound, found.below_issue_bound) == (case, bound, changes == HEAVY)


def test_hong_kim_isca09_worked_examples_are_near_what_is_printed() -> None:
    found = estimate(EXAMPLE, MATRIX)
    assert found.total_cycles == Fraction(811651, 16)
    assert abs(found.total_cycles - 50738) / 50738 < 3e-4  # as printed, from MWP rounded to 2.28
    assert float(found["CPI"]) == pytest.approx(58.224526515, rel=1e-9)
    assert float(found["BW_per_warp"]) == pytest.approx(0.175342466, abs=1e-9)
    assert float(estimate(EXAMPLE, kernel(**COALESCED)).total_cycles) == 5259.6875
    half = estimate(EXAMPLE, kernel(uncoal_mem_insts=3, coal_mem_insts=3)).total_cycles
    assert float(half) == pytest.approx(31886.086419753, rel=1e-12)


def test_hong_kim_case_2_can_fall_below_what_an_sm_issues() -> None:
    found = estimate(EXAMPLE, kernel(**HEAVY))
    assert float(found["CWP"]) == pytest.approx(1.104895105, abs=1e-9)
    assert any("66806.625 cycles, less than the 800800" in warning for warning in found.warnings)
    bounded = estimate(EXAMPLE, kernel(**HEAVY), variant="issue-bounded")
    assert bounded["exec"] == 800800
    assert bounded["published exec"] == Fraction(534453, 8)


def test_ostapenko_slides_seconds_of_the_predicted_cycles() -> None:
    seconds = cycles_to_seconds(Fraction(2347008), Fraction(9, 10))
    assert float(seconds) == pytest.approx(0.00260778667, abs=1e-11)
    assert float(abs(seconds - Fraction("0.0028")) / Fraction("0.0028")) == pytest.approx(0.0686475, abs=3e-7)
    assert float(cycles_to_seconds(Fraction(2347008), Fraction("0.88"))) == pytest.approx(2.667055e-3, abs=1e-9)


def test_ostapenko_slides_throughput_of_an_operation() -> None:
    rate = operations_per_cycle(
        global_size=2**20, operations=1000, seconds=2.3642135642e-3, clock_mhz=880, compute_units=24
    )
    assert float(rate) == pytest.approx(21.0, abs=1e-8)


def norms(throughput: Mapping[str, RealNumber]) -> dict[str, int]:
    """The costs relative to the fastest operation: the slides' round(best / throughput)."""
    return {name: round(Fraction(max(throughput.values())) / Fraction(rate)) for name, rate in throughput.items()}


def test_ostapenko_slides_norms_of_the_hd_6970() -> None:
    table = of_gpu(gpus.find_gpu("hd6970")).throughput
    assert norms(table) == {
        "f32_add": 2, "f32_sub": 2, "f32_mul": 2, "f32_div": 20, "sin": 40, "native_sin": 20,
        "f32_add4": 1, "f32_sub4": 1, "f32_mul4": 1, "f32_div4": 20,
    }  # fmt: skip


def test_ostapenko_slides_inner_iteration_of_the_test_kernel() -> None:
    amd = of_gpu(gpus.find_gpu("hd6970"))
    inner = HongKimKernel(
        threads_per_block=64, blocks=24, comp_insts=4, operations={"f32_mul": 1, "f32_add": 2, "f32_div": 1}
    )
    assert float(comp_cycles(amd, inner)) == pytest.approx(41.004329, abs=1e-6)
    assert sum(count * norms(amd.throughput)[name] for name, count in inner.operations.items()) * 64 / 40 == 41.6
    assert comp_cycles(amd, inner, "uniform") == 16
    models: tuple[tuple[CompModel | None, float], ...] = ((None, 41.004329), ("uniform", 16))
    for model, cycles in models:
        shown = estimate_launch(gpus.find_gpu("hd6970"), replace(inner, active_blocks_per_sm=1), comp_model=model)
        assert {one.name: one.value for one in shown.quantities}["Comp_cycles"] == pytest.approx(cycles, abs=1e-6)
    assert comp_cycles(amd, replace(inner, comp_insts=5)) == comp_cycles(amd, inner) + 4  # the conversion of j


@pytest.mark.parametrize(
    ("counts", "case", "values"),
    [
        ((71, 6, 0), Case.MEMORY, {"MWP": 2.28125, "CWP_full": 15.2208, "CPI": 24.97}),  # Sepia
        ((137, 7, 0), Case.MEMORY, {"MWP": 2.28125, "CWP_full": 9.8715, "CPI": 15.59}),  # Black-Scholes
        ((111, 30, 0), Case.MEMORY, {"MWP": 2.28125, "CPI": 68.09}),  # Linear
        ((10871, 0, 819), Case.COMPUTATION, {"MWP": 11.6667, "CWP": 8.3563, "CPI": 4.0015}),  # SVM
    ],
)
def test_hong_kim_isca09_kernels_on_the_quadro_fx5600(
    counts: tuple[int, int, int], case: Case, values: dict[str, float]
) -> None:
    given: dict[str, Any] = dict(zip(("comp_insts", "uncoal_mem_insts", "coal_mem_insts"), counts, strict=True))
    kernel = HongKimKernel(threads_per_block=256, blocks=48, active_blocks_per_sm=3, **given)
    found = estimate(of_gpu(gpus.find_gpu("quadro-fx5600")), kernel)
    assert found["N"] == 24
    assert found.case is case
    for name, value in values.items():
        assert float(found[name]) == pytest.approx(value, rel=3e-4 if name == "CPI" else 1e-5), name


def test_what_was_copied_from_a_relative_is_a_warning() -> None:
    said = estimate_launch(gpus.find_gpu("8800gt"), replace(MATRIX, active_blocks_per_sm=None)).warnings
    assert any(warning.startswith("hong_kim.mem_ld is assumed") for warning in said)


# launches


def test_fractions_in_give_fractions_out() -> None:
    third = Fraction(1, 3)
    found = estimate(replace(EXAMPLE, mem_ld=420 + third), kernel(comp_insts=third, synch_insts=third))
    assert found["Mem_L"] == third + 730
    assert found["Synch_cost"] == found["Departure_delay"] * (found["MWP"] - 1) * third * 5


def test_decimals_are_what_they_say() -> None:
    assert estimate(replace(EXAMPLE, freq_ghz=0.1), MATRIX) == estimate(
        replace(EXAMPLE, freq_ghz=Fraction(1, 10)), MATRIX
    )


def test_kernel_without_memory_accesses_is_compute_only() -> None:
    bare = HongKimGPU(limits=SmLimits(32, blocks=8, warps=24), sms=16, issue_cycles=4, freq_ghz=1, mem_bw_gbs=80)
    found = estimate(bare, HongKimKernel(threads_per_block=128, blocks=96, comp_insts=10, synch_insts=2))
    assert (found.case, found.bound) == (Case.COMPUTE_ONLY, Bound.COMPUTE_ONLY)
    assert found.symbols.keys().isdisjoint({"MWP", "CWP", "Mem_L", "Comp_p"})
    assert symbols(found, "N exec Synch_cost") == [24, 4 * 10 * 24, 0]


def test_grid_limits_the_resident_blocks_and_sms() -> None:
    few = estimate(EXAMPLE, kernel(active_blocks_per_sm=None, blocks=5))
    assert symbols(few, "active_blocks active_sms fitting_blocks_per_sm rep") == [1, 5, 8, 1]
    some = estimate(EXAMPLE, kernel(active_blocks_per_sm=None, blocks=40))
    assert symbols(some, "active_blocks active_sms rep") == [3, 16, Fraction(40, 48)]


def test_registers_and_shared_memory_limit_the_resident_blocks() -> None:
    quadro = of_gpu(gpus.find_gpu("quadro-fx5600"))
    by_registers = kernel(active_blocks_per_sm=None, blocks=10_000, regs_per_thread=18)
    assert estimate(quadro, by_registers)["active_blocks"] == 8192 // (128 * 18)
    assert estimate(quadro, replace(by_registers, smem_per_block=5000))["active_blocks"] == 16384 // 5120


def test_whole_waves_on_request() -> None:
    assert estimate(EXAMPLE, kernel(blocks=100))["rep"] == Fraction(5, 4)
    assert estimate(EXAMPLE, kernel(blocks=100), rep="ceil")["rep"] == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"active_blocks_per_sm": 9, "blocks": 1000}, "9 active blocks per SM were given, but only 8 fit"),
        ({"active_blocks_per_sm": 6}, "but the grid supplies at most 5 to an SM"),
        ({"active_blocks_per_sm": None, "blocks": 17}, "the grid is 0.531 of a wave"),
        ({"load_bytes_per_warp": 4096, "coal_mem_insts": 9, "uncoal_mem_insts": 0}, "MWP is 0.513"),
        ({"uncoal_mem_insts": 0.25}, "a thread makes 0.25 accesses to device memory"),
    ],
)
def test_what_is_doubtful_is_a_warning(changes: dict[str, Any], said: str) -> None:
    assert any(said in warning for warning in estimate(EXAMPLE, kernel(**changes)).warnings)


def test_unknown_registers_are_a_warning_where_they_could_matter() -> None:
    quadro, free = of_gpu(gpus.find_gpu("quadro-fx5600")), kernel(active_blocks_per_sm=None)
    assert any("the registers of a thread are not known" in said for said in estimate(quadro, free).warnings)
    assert not estimate(quadro, replace(free, regs_per_thread=10)).warnings
    assert not estimate(EXAMPLE, free).warnings


def test_mwp_below_one_takes_nothing_off() -> None:
    starved = kernel(load_bytes_per_warp=4096, coal_mem_insts=9, uncoal_mem_insts=0)
    found = estimate(EXAMPLE, starved)
    assert found["MWP"] == found["MWP_peak_BW"] == Fraction(525, 1024)
    assert found["exec"] == found["Mem_cycles"] * 20 / Fraction(525, 1024)
    assert found["Synch_cost"] == 0


def test_case_1_is_decided_before_rounding_to_n() -> None:
    """MWP_without_BW_full and CWP_full are exactly N, then a hair below it."""
    few = HongKimKernel(
        threads_per_block=32, blocks=3, active_blocks_per_sm=3, comp_insts=Fraction(13), coal_mem_insts=1
    )
    gpu = replace(EXAMPLE, sms=1, mem_bw_gbs=10**6, mem_ld=112, departure_del_coal=Fraction(112, 3))
    assert estimate(gpu, few)["CWP_full"] == 3
    assert estimate(gpu, few).case is Case.FEW_WARPS
    assert estimate(replace(gpu, departure_del_coal=Fraction(112, 3) + Fraction(1, 10**15)), few).case is Case.MEMORY
    assert estimate(gpu, replace(few, comp_insts=13 + Fraction(1, 10**15))).case is Case.COMPUTATION


def test_case_2_by_computation_begins_where_it_exceeds_memory() -> None:
    many = HongKimKernel(threads_per_block=32, blocks=8, active_blocks_per_sm=8, comp_insts=104, coal_mem_insts=1)
    gpu = replace(EXAMPLE, sms=1, mem_bw_gbs=10**6)
    equal, more = estimate(gpu, many), estimate(gpu, replace(many, comp_insts=104 + Fraction(1, 10**15)))
    assert equal["Comp_cycles"] == equal["Mem_cycles"] == 420
    assert (equal.case, more.case, more.bound) == (Case.COMPUTATION, Case.MEMORY, Bound.COMPUTE)


def test_the_estimate_shows_every_quantity_and_its_origin() -> None:
    found = estimate_launch(gpus.find_gpu("isca09-example"), MATRIX, notes={"comp_insts": "counted by hand"})
    by_name = {quantity.name: quantity for quantity in found.quantities}
    assert found.cycles == 50728.1875
    assert found.seconds == pytest.approx(50728.1875e-9)
    assert [(term.name, term.value) for term in found.terms] == [("execution", 38428.1875), ("synchronisation", 12300)]
    assert by_name["comp_insts"].note == "counted by hand"
    assert by_name["mem_ld"].origin is Origin.GPU
    for name in (
        "N", "rep", "Mem_L_Uncoal", "Mem_L_Coal", "Weight_uncoal", "Mem_L", "Departure_delay", "MWP_without_BW_full",
        "MWP_without_BW", "BW_per_warp", "MWP_peak_BW", "MWP", "Mem_cycles", "Comp_cycles", "CWP_full", "CWP", "Comp_p",
        "case", "bound", "issue_bound", "below_issue_bound", "exec", "Synch_cost", "CPI", "coal_per_mw",
    ):  # fmt: skip
        assert name in by_name
    assert "although it moves a segment for each transaction" in by_name["BW_per_warp"].note


# laws, on random inputs


def random_inputs(seed: int) -> tuple[HongKimGPU, HongKimKernel]:
    pick = random.Random(seed)
    gpu = HongKimGPU(
        limits=SmLimits(pick.choice((32, 64)), blocks=16),
        sms=pick.randint(1, 64),
        issue_cycles=pick.choice((1, 2, 4)),
        freq_ghz=Fraction(pick.randint(50, 300), 100),
        mem_bw_gbs=Fraction(pick.randint(10, 30_000), 10),
        mem_ld=pick.randint(50, 1500),
        departure_del_coal=pick.randint(1, 60),
        departure_del_uncoal=pick.randint(1, 120),
    )
    kernel = HongKimKernel(
        threads_per_block=pick.randint(1, 1024),
        blocks=pick.randint(1, 5000),
        comp_insts=int(10 ** pick.uniform(0, 4)),
        coal_mem_insts=pick.choice((0, pick.randint(0, 50))),
        uncoal_mem_insts=pick.choice((0, pick.randint(0, 20))),
        synch_insts=pick.randint(0, 20),
        uncoal_per_mw=Fraction(pick.randint(10, 320), 10),
        load_bytes_per_warp=pick.choice((32, 64, 128, 256, 512)),
        active_blocks_per_sm=pick.randint(1, 16),
    )
    return gpu, kernel


@cache
def random_estimates() -> list[tuple[HongKimGPU, HongKimKernel, HongKimResult]]:
    """What every law looks at: 1,500 random inputs and their estimates."""
    return [(*given, estimate(*given)) for given in map(random_inputs, range(1500))]


def test_every_case_occurs_among_the_random_inputs() -> None:
    assert {(found.case, found.bound) for _, _, found in random_estimates()} == {
        (Case.FEW_WARPS, Bound.LATENCY),
        (Case.MEMORY, Bound.MEMORY),
        (Case.MEMORY, Bound.COMPUTE),
        (Case.COMPUTATION, Bound.COMPUTE),
        (Case.COMPUTE_ONLY, Bound.COMPUTE_ONLY),
    }


def published(gpu: HongKimGPU, kernel: HongKimKernel) -> tuple[float, float, float]:
    """Cycles of execution and synchronisation, and CPI, in floats as the equations are printed, given accesses."""
    uncoal, coal = float(kernel.uncoal_mem_insts), float(kernel.coal_mem_insts)
    per_request, del_uncoal = float(kernel.uncoal_per_mw or 0), float(gpu.departure_del_uncoal or 0)
    blocks, sms = kernel.active_blocks_per_sm or 0, min(gpu.sms, kernel.blocks)
    n = blocks * -(-kernel.threads_per_block // gpu.warp_size)
    rep = kernel.blocks / (blocks * sms)
    l_uncoal, l_coal = float(gpu.mem_ld or 0) + (per_request - 1) * del_uncoal, float(gpu.mem_ld or 0)
    mem_insts = uncoal + coal
    mem_l = (l_uncoal * uncoal + l_coal * coal) / mem_insts
    departure = (del_uncoal * per_request * uncoal + float(gpu.departure_del_coal or 0) * coal) / mem_insts
    bandwidth = float(gpu.mem_bw_gbs) * mem_l / (float(gpu.freq_ghz) * float(kernel.load_bytes_per_warp or 0) * sms)
    mwp = min(mem_l / departure, bandwidth, n)
    mem = l_uncoal * uncoal + l_coal * coal
    comp = float(gpu.issue_cycles or 0) * (float(kernel.comp_insts) + mem_insts)
    cwp = min((mem + comp) / comp, n)
    beside = comp / mem_insts * max(mwp - 1, 0)
    if mwp == n and cwp == n:
        cycles = mem + comp + beside
    elif cwp >= mwp or comp > mem:
        cycles = mem * n / mwp + beside
    else:
        cycles = mem_l + comp * n
    synch = departure * max(mwp - 1, 0) * float(kernel.synch_insts) * blocks * rep
    warps = kernel.threads_per_block / gpu.warp_size * (kernel.blocks / sms)
    return cycles * rep, synch, cycles * rep / ((float(kernel.comp_insts) + mem_insts) * warps)


def test_the_exact_model_is_the_published_one_on_random_inputs() -> None:
    for gpu, kernel, found in random_estimates():
        if kernel.mem_insts:
            ours = (float(found["exec"]), float(found["Synch_cost"]), float(found["CPI"]))
            assert ours == pytest.approx(published(gpu, kernel), rel=1e-9)


def test_identities_hold_on_random_inputs() -> None:
    for gpu, kernel, found in random_estimates():
        if kernel.mem_insts:
            assert found["Mem_cycles"] == found["Mem_L"] * found["mem_insts"]
            assert found["MWP_peak_BW"] == found["Mem_L"] / found["D_bw"]
            assert found["MWP"] == min(found["MWP_without_BW"], found["MWP_peak_BW"], Fraction(found["N"]))
        assert found.total_cycles == found["exec"] + found["Synch_cost"]
        assert estimate(gpu, kernel, variant="issue-bounded")["exec"] >= found["issue_bound"]


def test_cycles_do_not_fall_with_latency_or_barriers_on_random_inputs() -> None:
    for number, (gpu, kernel, found) in enumerate(random_estimates()):
        slower = estimate(replace(gpu, mem_ld=exact_sum(gpu.mem_ld, 1 + number % 97)), kernel)
        if slower.case is found.case:
            assert slower["exec"] >= found["exec"]
        waiting = estimate(gpu, replace(kernel, synch_insts=exact_sum(kernel.synch_insts, 1 + number % 5)))
        assert waiting.total_cycles >= found.total_cycles


def exact_sum(number: Any, more: int) -> Fraction:
    return Fraction(number) + more


def test_a_clock_twice_as_fast_with_its_memory_halves_the_seconds_on_random_inputs() -> None:
    for gpu, kernel, found in random_estimates():
        doubled = replace(gpu, freq_ghz=2 * Fraction(gpu.freq_ghz), mem_bw_gbs=2 * Fraction(gpu.mem_bw_gbs))
        fast = estimate(doubled, kernel)
        assert fast.total_cycles == found.total_cycles
        assert fast.seconds == found.seconds / 2


def test_more_bandwidth_never_costs_but_for_the_defect_of_case_2_on_random_inputs() -> None:
    """Within case 2, exec grows with MWP where Comp_p MWP MWP' > Mem_cycles N; it may jump where case 2 ends."""
    defects = 0
    for number, (gpu, kernel, found) in enumerate(random_estimates()):
        wide = estimate(replace(gpu, mem_bw_gbs=Fraction(gpu.mem_bw_gbs) * (2 + number % 3)), kernel)
        if not kernel.mem_insts:
            continue
        if wide.case is not found.case:
            assert found.case is Case.MEMORY
            continue
        product = found["Comp_p"] * found["MWP"] * wide["MWP"]
        if found.case is Case.MEMORY and product > found["Mem_cycles"] * found["N"]:
            defects += 1
            continue
        assert wide["exec"] <= found["exec"]
    assert defects > 10


# refusals

NAN, INFINITE = float("nan"), float("inf")
ONE_LINE = r"\A[^\n]+\Z"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"freq_ghz": NAN}, "freq_ghz must be finite, not nan"),
        ({"mem_ld": INFINITE}, "mem_ld must be finite, not inf"),
        ({"mem_ld": -1}, "mem_ld must be above 0, not -1"),
        ({"departure_del_coal": -4.5}, "departure_del_coal must be at least 0, not -4.5"),
        ({"freq_ghz": 0}, "freq_ghz must be above 0, not 0"),
        ({"mem_bw_gbs": 0}, "mem_bw_gbs must be above 0, not 0"),
        ({"sms": 0}, "sms must be at least 1"),
        ({"sms": 1.5}, "sms must be a whole number, not 1.5"),
        ({"issue_cycles": 0}, "issue_cycles must be above 0, not 0"),
        ({"mem_ld": "420"}, "mem_ld must be a number, not '420'"),
        ({"mem_ld": True}, "mem_ld must be a number, not True"),
        ({"mem_ld": 10**30}, "mem_ld must be within 1e-18..1e18"),
        ({"throughput": {"f32_add": 0}}, "throughput of f32_add must be above 0, not 0"),
        ({"uncoal_per_mw": 0}, "uncoal_per_mw must be at least 1, not 0"),
    ],
)
def test_a_gpu_that_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=ONE_LINE) as error:
        replace(EXAMPLE, **changes)
    assert said in str(error.value)


def test_a_warp_without_threads_is_refused() -> None:
    with pytest.raises(InputError, match="warp_size must be at least 1, not 0"):
        SmLimits(0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"comp_insts": -1}, "comp_insts must be at least 0, not -1"),
        ({"uncoal_mem_insts": NAN}, "uncoal_mem_insts must be finite, not nan"),
        ({"synch_insts": INFINITE}, "synch_insts must be finite, not inf"),
        ({"threads_per_block": 0}, "threads_per_block must be at least 1"),
        ({"blocks": 0}, "blocks must be at least 1"),
        ({"blocks": -80}, "blocks must be at least 1 and at most 1e18, not -80"),
        ({"uncoal_per_mw": 0.5}, "uncoal_per_mw must be at least 1 where requests are uncoalesced, not 0.5"),
        ({"comp_insts": 0, "uncoal_mem_insts": 0}, "a kernel has instructions"),
        ({"load_bytes_per_warp": 0}, "load_bytes_per_warp must be above 0, not 0"),
        ({"active_blocks_per_sm": 0}, "active_blocks_per_sm must be at least 1"),
        ({"regs_per_thread": -1}, "regs_per_thread must be at least 0"),
        ({"operations": {"f32_add": 28}}, "operations: 28 are more than the 27 comp_insts"),
    ],
)
def test_a_kernel_that_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=ONE_LINE) as error:
        kernel(**changes)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("gpu", "given", "said"),
    [
        ({"limits": SmLimits(32, block_threads=64)}, {}, "128 threads per block: a block of this GPU has at most 64"),
        (
            {"limits": SmLimits(32, registers=8192)},
            {"regs_per_thread": 100, "active_blocks_per_sm": None},
            "GPU example: the block fits on no SM: it needs 12800 registers, an SM has 8192",
        ),
        (
            {"limits": SmLimits(32, shared_bytes=16384)},
            {"smem_per_block": 20000},
            "it needs 20000 bytes of shared memory, an SM has 16384",
        ),
        (
            {"departure_del_uncoal": 0},
            {},
            "the departure delay is 0 cycles (departure_del_coal 4, departure_del_uncoal 0)",
        ),
        (
            {"mem_ld": None},
            {},
            "mem_ld is not known; measure it with `makespan measure memory`, or give it",
        ),
        (
            {"departure_del_uncoal": None},
            {},
            "departure_del_uncoal is not known; measure it with `makespan measure memory`",
        ),
        ({"issue_cycles": None}, {}, "issue_cycles is not known; measure it with `makespan measure throughput`"),
        ({"limits": SmLimits(32)}, {"active_blocks_per_sm": None}, "no limit is, for blocks, warps"),
    ],
)
def test_a_launch_that_cannot_be_estimated_is_refused(gpu: dict[str, Any], given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=ONE_LINE) as error:
        estimate(replace(EXAMPLE, **gpu), kernel(**given))
    assert said in str(error.value)


def test_the_throughput_model_needs_an_operation_to_charge_for() -> None:
    with pytest.raises(InputError, match="known: none; measure them with `makespan measure throughput`"):
        estimate(EXAMPLE, MATRIX, comp_model="throughput")


def test_a_departure_delay_that_no_request_needs_may_be_missing() -> None:
    without = replace(EXAMPLE, departure_del_coal=None)
    assert estimate(without, MATRIX) == estimate(EXAMPLE, MATRIX)


@pytest.mark.parametrize(("low", "high"), [(10**-18, 10**18), (1, 10**18), (10**-18, 1)])
def test_no_accepted_number_overflows(low: float, high: float) -> None:
    gpu = HongKimGPU(
        limits=SmLimits(32), sms=10**18, issue_cycles=high, freq_ghz=low, mem_bw_gbs=low, mem_ld=high,
        departure_del_coal=low, departure_del_uncoal=high,
    )  # fmt: skip
    extreme = HongKimKernel(
        threads_per_block=1, blocks=10**18, comp_insts=high, coal_mem_insts=high, uncoal_mem_insts=high,
        synch_insts=high, uncoal_per_mw=high, load_bytes_per_warp=high, active_blocks_per_sm=1,
    )  # fmt: skip
    assert math.isfinite(float(estimate(gpu, extreme).total_cycles))
    assert math.isfinite(float(estimate(gpu, extreme).seconds))


# beside the simulator


def test_one_warp_alone_takes_as_long_as_simulated() -> None:
    found = cross_check(warps=1, comp_insts=60, mem_insts=6, mem_l=420, departure=40, issue_cycles=4)
    assert found.simulated == found.result["exec"] == 6 * (11 * 4 + 420)


PAGE = (Path(__file__).parents[3] / "docs" / "hong_kim.md").read_text("utf-8")
COMPARED = re.findall(
    r"^\| (\d+) \| (\d+) \| (\d+) \| (case \d) \| (\d+) \| (\d+) \| (\N{MINUS SIGN}?\d+) % \|$", PAGE, re.MULTILINE
)


@pytest.mark.parametrize("row", COMPARED, ids=" ".join)
def test_the_page_reports_the_error_against_the_simulator(row: tuple[str, ...]) -> None:
    warps, comp_insts, departure = map(int, row[:3])
    found = cross_check(warps=warps, comp_insts=comp_insts, mem_insts=6, mem_l=420, departure=departure, issue_cycles=4)
    error = round(100 * found.relative_error)
    said = (str(found.result.case), str(round(found.result["exec"])), str(found.simulated), str(error))
    assert said == (*row[3:6], row[6].replace("\N{MINUS SIGN}", "-"))


def test_the_page_compares_all_cases() -> None:
    assert {row[3] for row in COMPARED} == {"case 1", "case 2", "case 3"}


def test_computations_that_cannot_be_spread_are_refused() -> None:
    with pytest.raises(InputError, match="7 comp_insts cannot be spread evenly over 6 mem_insts"):
        cross_check(warps=1, comp_insts=7, mem_insts=6, mem_l=420, departure=40, issue_cycles=4)
