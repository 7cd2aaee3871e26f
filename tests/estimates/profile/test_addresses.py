"""Transactions of warps, and the distances between the addresses of their lanes."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.estimates.profile import Coalescing, KernelProfile, MemoryOperation, Rule, profile
from makespan.estimates.profile.accesses import transactions
from makespan.estimates.profile.exact import UndecidedError, exact_counts
from makespan.estimates.profile.lanes import Spaced, lane_offsets
from makespan.estimates.profile.probes import insert_probes
from makespan.host.errors import UnsupportedError
from makespan.kernels import ptx
from makespan.kernels.flow import GivenBound, Launch
from makespan.kernels.flow.uniformity import uniform_branches
from tests.estimates.profile.oracle import TrueAccess, executed, half_warps, segments, truth_of
from tests.ptx_interpreter import CASES, Case, KernelFault
from tests.ptx_random import random_module

CC10, WIDE, SECTORS = Coalescing(Rule.CC10), Coalescing(), Coalescing(Rule.SEGMENTS, 32)


def served(addresses: list[int], lane_bytes: int, rule: Coalescing, lanes: int = 32) -> tuple[int, bool]:
    """The transactions of one warp, of which only the first lanes are active."""
    padded = np.zeros((1, lanes), np.int64)
    padded[0, : len(addresses)] = addresses
    found = transactions(padded, (np.arange(lanes) < len(addresses))[None, :], lane_bytes, rule)
    return int(found.served[0]), bool(found.coalesced[0])


# ---- the rules, by hand


@pytest.mark.parametrize(
    ("addresses", "lane_bytes", "cc10", "wide", "sectors"),
    [
        ([4 * k for k in range(32)], 4, (2, True), (1, True), (4, True)),
        ([64 + 4 * k for k in range(32)], 4, (2, True), (2, False), (4, True)),
        ([4 + 4 * k for k in range(32)], 4, (32, False), (2, False), (5, False)),
        ([8 * k for k in range(32)], 8, (2, True), (2, True), (8, True)),
        ([16 * k for k in range(32)], 16, (2, True), (4, True), (16, True)),
        ([132 * k for k in range(32)], 4, (32, False), (32, False), (32, False)),
        ([8 * k for k in range(32)], 4, (32, False), (2, False), (8, False)),
        ([0] * 32, 4, (32, False), (1, True), (1, True)),
        ([4 * (31 - k) for k in range(32)], 4, (32, False), (1, True), (4, True)),
        (list(range(32)), 1, (32, False), (1, True), (1, True)),
        ([126 + 256 * k for k in range(32)], 4, (32, False), (64, False), (64, False)),
        ([4 * k for k in range(9)], 4, (1, True), (1, True), (2, True)),
        ([4 * k for k in range(16)] + [64 + 4 * k for k in range(1, 17)], 4, (17, False), (2, False), (5, False)),
        ([0], 4, (1, True), (1, True), (1, True)),
        ([], 4, (0, True), (0, True), (0, True)),
    ],
)
def test_rules_by_hand(
    addresses: list[int], lane_bytes: int, cc10: tuple[int, bool], wide: tuple[int, bool], sectors: tuple[int, bool]
) -> None:
    found = [served(addresses, lane_bytes, rule) for rule in (CC10, WIDE, SECTORS)]
    assert found == [cc10, wide, sectors]


def test_wavefronts_of_64_lanes() -> None:
    assert served([4 * k for k in range(64)], 4, WIDE, lanes=64) == (2, True)
    assert served([132 * k for k in range(64)], 4, WIDE, lanes=64) == (64, False)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 40)), min_size=32, max_size=32),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([32, 64, 128]),
    st.booleans(),
)
def test_transactions_are_those_counted_byte_by_byte(
    lanes: list[tuple[bool, int]], lane_bytes: int, segment_bytes: int, in_order: bool
) -> None:
    numbers = range(32) if in_order else [number for _, number in lanes]
    here = {k: number * lane_bytes for k, (number, (on, _)) in enumerate(zip(numbers, lanes, strict=True)) if on}
    access = TrueAccess(0, ((0, 0, 0), 0), here)
    addresses = np.array([[here.get(k, 10**9) for k in range(32)]])
    active = np.array([[k in here for k in range(32)]])
    found = transactions(addresses, active, lane_bytes, Coalescing(Rule.SEGMENTS, segment_bytes))
    count = segments(access, lane_bytes, segment_bytes)
    assert (found.served[0], found.coalesced[0]) == (count, count <= math.ceil(32 * lane_bytes / segment_bytes))
    found = transactions(addresses, active, lane_bytes, CC10)
    assert (found.served[0], found.coalesced[0]) == half_warps(access, lane_bytes)


# ---- distances between lanes


def offsets_of(module: ptx.PtxModule, name: str, launch: Launch) -> dict[int, Spaced]:
    found = ptx.flow(module.kernel(name))
    launch = ptx.fit_launch(launch, found.kernel)
    return lane_offsets(insert_probes(found, launch), launch, uniform_branches(found, launch), 32)


def check(offsets: dict[int, Spaced], accesses: tuple[TrueAccess, ...]) -> int:
    """Every true address is that of a common base; the number of executions that were checked."""
    checked = 0
    for access in accesses:
        spaced = offsets.get(access.index)
        if spaced is not None:
            first = access.warp[1] * 32
            bases = {address - int(spaced.offset[first + lane]) for lane, address in access.addresses.items()}
            assert len(bases) == 1, (access, spaced)
            assert bases.pop() % 2 ** min(spaced.zeros, 8) == 0, (access, spaced)  # pointers are aligned to 256 bytes
            checked += 1
    return checked


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_claimed_distances_are_those_of_the_true_addresses(case: Case) -> None:
    if not case.is_here:
        pytest.skip("the corpus is not beside this checkout")
    check(offsets_of(ptx.read(case.path), case.kernel, Launch(case.block, case.grid)), truth_of(case).accesses)


def test_claims_are_made_for_most_kernels_without_any_parameter() -> None:
    here = (case for case in CASES if case.is_here)
    claims = (offsets_of(ptx.read(case.path), case.kernel, Launch(case.block, case.grid)) for case in here)
    assert sum(map(bool, claims)) >= 25


def test_random_kernels_have_the_distances_that_are_claimed() -> None:
    checked = 0
    for seed in (28, 29, 32, 35, 40, 50, 53, 59):  # quick ones with an access that is reached
        module = ptx.parse(random_module(seed), "random.ptx")
        data = np.zeros(48, np.uint32)
        try:
            offsets = offsets_of(module, "k", Launch((48, 1, 1), (2, 1, 1)))
            if not offsets:
                continue
            truth = executed(module, "k", (48, 1, 1), (2, 1, 1), [data], max_instructions=20_000)
        except (UnsupportedError, KernelFault):
            continue
        checked += check(offsets, truth.accesses)
    assert checked >= 40


TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{
    .reg .u32 %r<20>; .reg .pred %p<4>; .reg .u64 %a<9>; .reg .f32 %f<4>; .reg .u16 %h<4>;
    ld.param.u64 %a0, [data];
    cvta.to.global.u64 %a0, %a0;
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    BODY
    mul.wide.u32 %a1, %r9, 4;
    add.s64 %a2, %a0, %a1;
    ld.global.f32 %f0, [%a2+OFFSET];
    ret;
}
"""


def access(body: str, block: tuple[int, int, int] = (64, 1, 1), offset: int = 0, **options: object) -> MemoryOperation:
    (found,) = profiled(body, block, offset, **options).device_memory  # type: ignore[arg-type]
    return found


def profiled(
    body: str, block: tuple[int, int, int], offset: int, *, follow: bool = False, **options: object
) -> KernelProfile:
    """Unless threads are to be followed, what can be said of addresses without doing so."""
    text = TEXT.replace("BODY", body).replace("OFFSET", str(offset))
    launch = Launch(block, (4, 7, 1), {"n": options.pop("n")} if "n" in options else {})  # type: ignore[dict-item]
    effect = exact_counts if follow else UndecidedError("not to be followed")
    with mock.patch("makespan.estimates.profile.counting.exact_counts", side_effect=effect):
        return profile(ptx.parse(text, "k.ptx").kernel(), launch, **options)  # type: ignore[arg-type]


ROW = "mad.lo.u32 %r9, %r3, %r4, %r1;"
PITCH = "mad.lo.u32 %r8, %r2, %r0, %r1; add.u32 %r9, %r8, 0;"


@pytest.mark.parametrize(
    ("body", "block", "offset", "expected"),
    [
        (ROW, (64, 1, 1), 0, (1, True, False)),
        (ROW, (64, 1, 1), 4, (2, False, False)),
        (ROW, (48, 1, 1), 0, (1, True, True)),
        ("mul.lo.u32 %r9, %r1, 33;", (64, 1, 1), 0, (32, False, False)),
        ("shl.b32 %r9, %r1, 1;", (64, 1, 1), 0, (2, False, False)),
        ("mov.u32 %r9, %r3;", (64, 1, 1), 0, (1, True, True)),
        ("shr.u32 %r9, %r1, 5;", (64, 1, 1), 0, (1, True, False)),
        ("and.b32 %r9, %r1, 15;", (64, 1, 1), 0, (1, True, False)),
        (PITCH, (32, 8, 1), 0, (1, True, True)),
        (PITCH, (16, 16, 1), 0, (32, False, False)),
        ("add.u32 %r9, %r1, %r0;", (64, 1, 1), 0, (1, True, True)),
        ("mul.lo.u32 %r9, %r1, %r0;", (64, 1, 1), 0, (32, False, False)),
        ("mov.u32 %r8, 63; sub.u32 %r9, %r8, %r1;", (64, 1, 1), 0, (1, True, False)),
        ("mov.u32 %r8, 64; sub.u32 %r9, %r8, %r1;", (64, 1, 1), 0, (2, False, False)),
        ("mov.u32 %r9, %r1; IF @%p0 bra E; add.u32 %r9, %r9, 64; E:", (64, 1, 1), 0, (32, False, False)),
        ("mov.u32 %r9, %r1; IF @%p0 bra.uni E; add.u32 %r9, %r9, 64; E:", (64, 1, 1), 0, (1, True, False)),
        ("mov.u32 %r9, %r1; IF @%p0 add.u32 %r9, %r9, 64;", (64, 1, 1), 0, (32, False, False)),
    ],
)
def test_addresses_of_lanes_without_parameters(
    body: str, block: tuple[int, int, int], offset: int, expected: tuple[float, bool, bool]
) -> None:
    found = access(body.replace("IF", "setp.lt.u32 %p0, %r1, %r0;"), block, offset)
    assert (found.transactions, found.coalesced, found.is_assumed) == expected


@pytest.mark.parametrize(
    ("body", "transactions"),
    [
        ("mul.lo.u32 %r8, %r1, 16; cvt.u8.u32 %h0, %r8; cvt.u32.u16 %r9, %h0;", 8),
        ("cvt.u16.u32 %h0, %r1; shl.b16 %h1, %h0, 12; cvt.u32.u16 %r9, %h1; shr.u32 %r9, %r9, 8;", 8),
        ("mul.lo.u32 %r8, %r1, 0x10000000; shr.u32 %r9, %r8, 26;", 2),
        ("mul.lo.u32 %r8, %r1, 0x10001; cvt.u16.u32 %h0, %r8; cvt.u32.u16 %r9, %h0;", 1),
        ("mad.lo.u32 %r8, %r1, 0x10001, %r0; cvt.u16.u32 %h0, %r8; cvt.u32.u16 %r9, %h0;", 1),
        ("cvt.u16.u32 %h0, %r3; cvt.u16.u32 %h1, %r4; mul.wide.u16 %r8, %h0, %h1; add.u32 %r9, %r8, %r1;", 1),
        ("mul.lo.u32 %r8, %r1, 16; cvt.sat.u8.u32 %h0, %r8; cvt.u32.u16 %r9, %h0;", 32),
        ("sub.u32 %r8, %r1, 8; and.b32 %r9, %r8, 63;", 2),
    ],
)
def test_numbers_of_few_bits_wrap_around(body: str, transactions: int) -> None:
    assert access(body).transactions == transactions


@pytest.mark.parametrize(
    "line",
    ["mov;", "mov.u32;", "mul.lo.u32 %r9, %r1;", "mad.lo.u32 %r9, %r1, %r2;", "shl.b32 %r9, %r1;", "add.u32 %r9;"],
)
def test_operands_that_are_missing_tell_nothing(line: str) -> None:
    assert access(f"mov.u32 %r9, %r1; {line}").transactions in (1, 32)


def test_rows_and_layers_of_a_block_of_three_dimensions() -> None:
    rows, layers = "mad.lo.u32 %r9, %r2, 8, %r1;", "mov.u32 %r9, %tid.z;"
    assert access(rows, (8, 2, 4), coalescing=SECTORS).transactions == 2
    assert access(layers, (8, 2, 4), coalescing=SECTORS).transactions == 1
    assert access("mul.lo.u32 %r9, %tid.z, 64;", (8, 2, 4), coalescing=SECTORS).transactions == 2


def test_guards_enable_lanes_and_blocks_that_are_alike_count_all() -> None:
    text = TEXT.replace("BODY", "mov.u32 %r9, %r1; setp.lt.u32 %p0, %r1, 7;").replace("OFFSET", "0")
    for guard, lanes, executions in (("@%p0", 7, 0.5), ("@!%p0", (25 + 32) / 2, 1)):
        kernel = ptx.parse(text.replace("ld.global", f"{guard} ld.global"), "k.ptx").kernel()
        (load,) = profile(kernel, Launch((64, 1, 1), (6, 1, 1))).device_memory
        assert (load.lanes, load.executions, load.transactions) == (lanes, executions, 1)


def test_a_pitch_that_is_given_makes_rows_known() -> None:
    assert access(PITCH, (16, 16, 1), n=16).transactions == 1
    assert access(PITCH, (16, 16, 1), n=1024).transactions == 2
    assert access(PITCH, (16, 16, 1), n=1024, coalescing=CC10).coalesced
    assert not access(PITCH, (16, 16, 1), n=1000, coalescing=CC10).coalesced
    assert access(PITCH, (8, 8, 1), n=1024, coalescing=CC10).transactions == 32


def test_notes_name_the_instruction_and_why() -> None:
    notes = profiled("mul.lo.u32 %r9, %r1, %r0;", (64, 1, 1), 0).notes
    assert any("line 18: `ld.global.f32 %f0, [%a2+0];` counts as uncoalesced, 32 transactions" in n for n in notes)
    notes = profiled("add.u32 %r9, %r1, %r0;", (64, 1, 1), 0).notes
    assert any("line 18" in note and "the base is assumed to be aligned" in note for note in notes)
    assert any("pointers are taken to be aligned to 256 bytes: data" in note for note in notes)


def test_a_counter_keeps_the_distances_and_its_step_the_alignment() -> None:
    loop = "mov.u32 %r9, %r1; L: add.u32 %r9, %r9, {}; setp.lt.u32 %p0, %r9, %r0; @%p0 bra.uni L;"
    aligned, shifted = access(loop.format(64), loop_bounds=BOUND), access(loop.format(1), loop_bounds=BOUND)
    assert (aligned.transactions, aligned.coalesced, aligned.is_assumed) == (1, True, False)
    assert (shifted.transactions, shifted.is_assumed) == (1, True)


def test_a_loop_that_lanes_leave_apart_makes_its_counter_unknown() -> None:
    loop = "mov.u32 %r9, %r1; L: add.u32 %r9, %r9, 64; setp.lt.u32 %p0, %r9, %r0; @%p0 bra L;"
    assert access(loop, loop_bounds=BOUND).transactions == 32


BOUND = [GivenBound("L", 5, exact=True)]


def test_local_memory_is_interleaved() -> None:
    text = """.version 8.0
.target sm_80
.visible .entry k()
{
    .local .align 4 .b8 stack[64]; .reg .u32 %r<3>; .reg .u64 %a<3>;
    mov.u64 %a0, stack;
    st.local.u32 [%a0+8], 5;
    ret;
}
"""
    (store,) = profile(ptx.parse(text, "k.ptx").kernel(), Launch((64, 1, 1), (2, 1, 1))).device_memory
    assert (store.transactions, store.coalesced, store.reason) == (1, True, "local memory lies interleaved by lane")


@pytest.mark.parametrize("load", ["and.b64 %a5, %a0, 15;", "ld.param.u64 %a4, [data]; and.b64 %a5, %a4, 15;"])
def test_a_pointer_that_decides_a_branch_stays_unknown(load: str) -> None:
    body = f"{load} setp.eq.u64 %p0, %a5, 0; @%p0 bra.uni E; mov.u32 %r9, 1; E: mov.u32 %r9, %r1;"
    found = profiled(body, (64, 1, 1), 0, follow=True)
    assert not found.is_exact
    assert not any("pointers" in note for note in found.notes)
