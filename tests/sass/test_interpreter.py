"""The interpreter of machine code: what it computes is what the interpreter of PTX computes, and where lanes meet."""

from pathlib import Path

import numpy as np
import pytest

from makespan.kernels.sass import SassKernel
from tests import ptx_interpreter, sass_interpreter
from tests.ptx_interpreter.values import Array
from tests.sass.listing import kernel_of, listed
from tests.sass_interpreter import KernelFault, UnsupportedInstruction
from tests.sass_interpreter.machine import Order
from tests.sass_random import SLOTS

DATA = Path(__file__).parent / "data"
LISTINGS = sorted(DATA.glob("*.sass"))
ORDERS: tuple[Order, ...] = ("nested", "any", "interleaved")


def kernel_in(path: Path) -> SassKernel:
    return kernel_of(path.read_text(), path.name)


def inputs(n: int) -> Array:
    return np.random.default_rng(n).integers(0, 64, 64, dtype=np.uint32)


def stored_by_ptx(text: str, n: int) -> Array:
    out = np.zeros((64, SLOTS), np.uint32)
    ptx_interpreter.run(text, "k", block=(64, 1, 1), arguments=[inputs(n), out, n])
    return out


def stored(kernel: SassKernel, n: int, order: Order = "nested", seed: int = 0) -> Array:
    out = np.zeros((64, SLOTS), np.uint32)
    sass_interpreter.run(kernel, block=(64, 1, 1), arguments=[inputs(n), out, n], order=order, seed=seed)
    return out


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: path.stem)
def test_compiled_kernel_stores_what_its_ptx_does_in_any_order_of_lanes(path: Path) -> None:
    kernel = kernel_in(path)
    n = len(path.stem) % 5 + 2
    expected = stored_by_ptx((DATA / f"{path.stem.partition('.')[0]}.ptx").read_text(), n)
    for order in ORDERS:
        assert np.array_equal(stored(kernel, n, order, seed=len(kernel.code)), expected)


def test_listings_are_kept_as_they_are() -> None:
    assert {path.stem.partition(".")[2] for path in LISTINGS} >= {"75", "80", "86", "90", "100", "120"}
    for path in LISTINGS:
        assert listed(kernel_in(path)) == path.read_text()


# ---- where lanes go


def _kernel(*instructions: str, parameters: str = "") -> SassKernel:
    lines = [f"{16 * k:#x} {'0' * 32} 0 {text}" for k, text in enumerate(instructions)]
    return kernel_of("\n".join([f"k 86 0x160 8 {parameters}".strip(), *lines]))


HALF = 0xFFFF
FULL = 0xFFFFFFFF


def _issued(kernel: SassKernel, seed: int = 0, order: Order = "nested") -> list[tuple[int, int]]:
    return [(issue.address, issue.active) for issue in sass_interpreter.run(kernel, seed=seed, order=order).warps[0]]


def test_lanes_meet_at_their_barrier_and_go_on_together() -> None:
    kernel = _kernel(
        "S2R R0, SR_TID.X;", "ISETP.LT.AND P0, PT, R0, 0x10, PT;", "BSSY B0, 0x60;", "@P0 BRA 0x50;",
        "IADD3 R0, R0, 0x1, RZ;", "BSYNC B0;", "EXIT;",
    )  # fmt: skip
    wanted = {
        (*(((at, FULL)) for at in (0, 16, 32, 48)), (64, FULL - HALF), (80, FULL - HALF), (80, HALF), (96, FULL)),
        (*(((at, FULL)) for at in (0, 16, 32, 48)), (80, HALF), (64, FULL - HALF), (80, FULL - HALF), (96, FULL)),
    }
    assert {tuple(_issued(kernel, seed)) for seed in range(8)} == wanted


def test_lanes_that_no_barrier_brings_together_run_alone_to_the_end() -> None:
    kernel = _kernel("S2R R0, SR_TID.X;", "IADD3 R0, R0, -0x8, RZ;", "ISETP.GT.AND P0, PT, R0, RZ, PT;",
                     "@P0 BRA 0x10;", "EXIT;")  # fmt: skip
    assert [at for at, _ in _issued(kernel)].count(0x40) == 4


def test_who_breaks_out_of_a_barrier_is_not_awaited() -> None:
    kernel = _kernel(
        "S2R R0, SR_TID.X;", "ISETP.LT.AND P0, PT, R0, 0x10, PT;", "BSSY B0, 0x60;", "@P0 BREAK B0;",
        "@P0 BRA 0x70;", "BSYNC B0;", "EXIT;", "NOP;", "EXIT;",
    )  # fmt: skip
    for order in ORDERS:
        issued = _issued(kernel, 1, order)
        assert sorted(issued[5:]) == [(80, FULL - HALF), (96, FULL - HALF), (112, HALF), (128, HALF)]


def test_who_has_ended_is_not_awaited() -> None:
    kernel = _kernel("S2R R0, SR_TID.X;", "ISETP.LT.AND P0, PT, R0, 0x10, PT;", "BSSY B0, 0x60;", "@P0 BRA 0x70;",
                     "NOP;", "BSYNC B0;", "EXIT;", "EXIT;")  # fmt: skip
    assert sorted(_issued(kernel)[4:]) == [(64, FULL - HALF), (80, FULL - HALF), (96, FULL - HALF), (112, HALF)]


@pytest.mark.parametrize(
    ("instructions", "message"),
    [(["BRA 0x0;"], "did not end"), (["NOP;"], "there is no instruction"),
     (["LDG.E R0, [R2.64];", "EXIT;"], "0x0: .*no memory"),
     (["S2R R0, SR_TID.X;", "ISETP.LT.AND P0, PT, R0, 0x1, PT;", "@P0 BRA 0x50;", "BAR.SYNC 0x0;", "EXIT;",
       "BAR.SYNC 0x1;", "EXIT;"], "all lanes wait")],
)  # fmt: skip
def test_what_has_no_result_is_a_fault(instructions: list[str], message: str) -> None:
    with pytest.raises(KernelFault, match=message):
        sass_interpreter.run(_kernel(*instructions), max_instructions=100)


def test_unknown_instructions_are_refused_where_they_are_reached() -> None:
    sass_interpreter.run(_kernel("EXIT;", "TENSOR R0, R1;"))
    with pytest.raises(UnsupportedInstruction, match="TENSOR R0, R1"):
        sass_interpreter.run(_kernel("TENSOR R0, R1;"))


# ---- single instructions: values derived by hand


def _computed(*instructions: str) -> int:
    """What the instructions leave in R0 or P0."""
    out = np.zeros(1, np.uint32)
    store = ("ULDC.64 UR4, c[0x0][0x160];", "STG.E [UR4], R0;", "EXIT;")
    sass_interpreter.run(_kernel(*instructions, *store, parameters="0:8"), block=(1, 1, 1), arguments=[out])
    return int(out[0])


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        (["MOV R1, 0x7;", "IADD3 R0, P0, -R1, 0x7, RZ;", "SEL R0, RZ, 0x1, P0;"], 0),  # 7 - 7 carries
        (["MOV R1, 0x8;", "IADD3 R0, P0, -R1, 0x7, RZ;", "SEL R0, RZ, 0x1, P0;"], 1),  # 7 - 8 does not
        (["IADD3 R0, P0, -RZ, 0x7, RZ;", "SEL R0, RZ, 0x1, P0;"], 0),  # 7 - 0 carries, as the sum with all ones does
        (["MOV R1, 0x80000000;", "IADD3 R2, P0, R1, R1, RZ;", "IADD3.X R0, RZ, RZ, RZ, P0, !PT;"], 1),
        (["MOV R1, 0xffffffff;", "IMAD.WIDE R2, R1, 0x4, RZ;", "MOV R0, R3;"], 0xFFFFFFFF),
        (["MOV R1, 0xffffffff;", "IMAD.WIDE.U32 R2, R1, 0x4, RZ;", "MOV R0, R3;"], 3),
        (["MOV R1, 0xffffffff;", "MOV R3, 0x5;", "IMAD.HI.U32 R0, R1, 0x10, R2;"], 20),  # R2:R3 is the summand
        (["MOV R1, 0x80000001;", "LEA R0, P0, R1, 0x3, 0x1;"], 5),
        (["MOV R1, 0x80000001;", "LEA.HI R0, R1, 0x3, RZ, 0x1;"], 4),
        (["MOV R1, 0x80000001;", "LEA.HI.X.SX32 R0, R1, 0x3, 0x1, PT;"], 3),  # all ones + 3 + 1
        (["MOV R1, 0x80000001;", "SHF.R.S32.HI R0, RZ, 0x1f, R1;"], 0xFFFFFFFF),
        (["MOV R1, 0x80000001;", "SHF.L.W.U32.HI R0, R1, 0x21, R1;"], 3),  # turned by 33 mod 32
        (["MOV R1, 0x3;", "SHF.L.U32 R0, R1, 0x21, RZ;"], 0),
        (["MOV R1, 0xc;", "LOP3.LUT R0, R1, 0xa, RZ, 0xc0, !PT;"], 8),
        (["MOV R1, 0xc;", "LOP3.LUT R0, R1, 0xa, RZ, 0x3c, !PT;"], 6),
        (["MOV R1, 0x44332211;", "PRMT R0, R1, 0x4123, 0x88;"], 0x88223344),
        (["MOV R1, 0xffffffff;", "ISETP.LT.AND P0, PT, R1, 0x1, PT;", "SEL R0, 0x1, RZ, P0;"], 1),
        (["MOV R1, 0xffffffff;", "ISETP.LT.U32.AND P0, PT, R1, 0x1, PT;", "SEL R0, 0x1, RZ, P0;"], 0),
        (["ISETP.GE.U32.AND.EX P0, PT, RZ, RZ, PT, !PT;", "SEL R0, 0x1, RZ, P0;"], 0),  # equal: the lower half decides
        (["PLOP3.LUT P0, PT, PT, PT, PT, 0x8, 0x0;", "SEL R0, 0x1, RZ, P0;"], 0),
        (["PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x0;", "SEL R0, 0x1, RZ, P0;"], 1),
        (["HFMA2 R0, -RZ, RZ, 0, 9.5367431640625e-07;"], 16),
        (["MOV R1, 0x28;", "FLO.U32 R0, R1;"], 5),
        (["MOV R1, 0x7;", "VIMNMX R0, PT, PT, R1, 0x5, !PT;"], 7),
        (["MOV R1, 0x7;", "IMNMX R0, R1, -0x5, PT;"], 2**32 - 5),
        (["MOV R1, 0x4b000001;", "F2I.FTZ.U32.TRUNC.NTZ R0, R1;"], 0x800001),
        (["MOV R1, 0x1000001;", "I2F.U32.RP R0, R1;"], 0x4B800001),
        (["UMOV UR4, 0x5;", "UIADD3 UR4, UR4, -0x2, URZ;", "MOV R0, UR4;"], 3),
    ],
)
def test_instruction(instructions: list[str], expected: int) -> None:
    assert _computed(*instructions) == expected
