"""What machine code tells control flow."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.kernels.flow import UNIFORM, LaneSpread, Launch, Surroundings
from makespan.kernels.flow.arithmetic import look_up
from makespan.kernels.flow.inference import infer_iterations
from makespan.kernels.flow.loops import loop_nest
from makespan.kernels.flow.spread import special_spreads
from makespan.kernels.sass import Address, KernelResources, SassKernel, SassParameter
from makespan.kernels.sass.effects import register_access, register_accesses
from makespan.kernels.sass.evaluate import computation
from makespan.kernels.sass.graph import flow
from makespan.kernels.sass.operands import constant_place, machine_code
from makespan.kernels.sass.semantics import SassSemantics
from tests.sass.test_evaluate import instruction, programs

M = 2**32 - 1


@pytest.mark.parametrize(
    ("sm", "block", "grid"),
    [
        (75, "c[0x0][0x0]", "c[0x0][0xc]"),
        (86, "c[0x0][0x0]", "c[0x0][0xc]"),
        (90, "c[0x0][0x0]", "c[0x0][0xc]"),
        (100, "c[0x0][0x360]", "c[0x0][0x370]"),
        (120, "c[0x0][0x360]", "c[0x0][0x370]"),
    ],
)
def test_sizes_of_block_and_grid_lie_below_the_parameters(sm: int, block: str, grid: str) -> None:
    registers = machine_code(sm).registers
    assert (registers.block_size[0], registers.grid_size[0]) == (block, grid)


def test_a_place_in_constants_is_told_only_where_no_register_has_a_say() -> None:
    texts = ["c[0x0][0x160]", "c[0x0][RZ]", "c[0x0][URZ]", "c[0x2][R4]", "c[0x0][R4+0x8]", "cx[UR4][0x160]", "R4"]
    assert [constant_place(text) for text in texts] == [(0, 0x160), (0, 0), (0, 0), None, None, None, None]


def kernel(*lines: str, **said: Any) -> SassKernel:
    code = tuple(replace(instruction(line), address=Address(16 * number)) for number, line in enumerate(lines))
    given: dict[str, Any] = {"resources": KernelResources(8), "first_parameter": 0x160} | said
    return SassKernel("k", "k.cubin", "k.cubin", 86, code, **given)


def semantics(*lines: str, **said: Any) -> SassSemantics:
    found = kernel(*lines, **said)
    return SassSemantics(found, found.code, register_accesses(found))


PARAMETERS = (
    SassParameter(0, 8),
    SassParameter(8, 4, "k_param_1"),
    SassParameter(12, 2, "small"),
    SassParameter(16, 12, "three"),
    SassParameter(28, 4, "scale", is_float=True),
)


def test_parameters_are_known_by_the_words_in_which_they_lie() -> None:
    said = semantics("LDC.64 R0,c[0x0][0x160]", "LDC.U16 R2,c[0x0][0x16c]", "LDC R3,c[0x0][0x168]",
                     "LDC R4,c[0x0][0x170]", "LDC R5,c[0x2][0x0]", "LDC R6,c[0x3][0x0]", parameters=PARAMETERS,
                     constants={2: b"\1\2\0\0", 3: b"\1\2\0\0"})  # fmt: skip
    launch = Launch(parameters={"0": 2**40 + 7, "param_1": 0.5, "small": -1, "scale": 2})
    fitted = said.signature.fit(launch)
    assert fitted.parameters == {"0": 2**40 + 7, "k_param_1": 0.5, "small": -1, "scale": 2}
    assert said.signature.fit(fitted) == fitted
    known = said.signature.known(launch)
    assert known["scale"] == (0x40000000, 32, ("c[0x0][0x17c]", "c[0x0][0x17d]", "c[0x0][0x17e]", "c[0x0][0x17f]"))
    computed = [said.computation(number, known) for number in range(6)]
    values = [found.apply({}) if found else None for found in computed]
    assert values == [(7, 256), (0xFFFF,), (0x3F000000,), (None,), (0x201,), (None,)]


@pytest.mark.parametrize(
    ("parameters", "block", "message"),
    [
        (
            {"n": 1},
            None,
            "parameters n: no such parameter of kernel k; give the position, or the name in the"
            " PTX: 0 is the one at byte 0, 1 is k_param_1",
        ),
        ({"5": 1}, None, "parameters 5: no such parameter"),
        ({"small": 65536}, None, "parameters small=65536: a parameter of 2 bytes holds -32768..65535"),
        ({"small": 0.5}, None, "parameters small=0.5: expected a whole number for a parameter of 2 bytes"),
        ({"1": 1e60}, None, "parameters k_param_1=1e+60: too large for a parameter of 4 bytes"),
        ({"three": 1}, None, "parameters three: a parameter of 12 bytes holds more than a number"),
        ({"1": 5, "param_1": 6}, None, "two values for parameter k_param_1: 5 and 6"),
        ({}, (64, 1, 1), "block 64x1x1: kernel k requires 32x1x1"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(parameters: Any, block: Any, message: str) -> None:
    said = semantics("EXIT", parameters=PARAMETERS, resources=KernelResources(8, block=(32, 1, 1)))
    with pytest.raises(InputError, match=re.escape(message)):
        said.signature.fit(Launch(block=block, parameters=parameters))


def test_a_block_fits_what_the_compiler_says() -> None:
    said = semantics("EXIT", resources=KernelResources(8, most_threads=64))
    assert said.signature.fit(Launch(block=(8, 8, 1))).block == (8, 8, 1)
    with pytest.raises(InputError, match="allows at most 64 threads in a block, so that it would not start"):
        said.signature.fit(Launch(block=(65, 1, 1)))
    assert semantics("EXIT", resources=KernelResources(8, block=(32, 2, 1))).signature.fit(Launch()).block == (32, 2, 1)


@pytest.mark.parametrize(
    ("line", "threads", "reason"),
    [
        ("BAR.SYNC.DEFER_BLOCKING 0x0", None, None),
        ("BAR.SYNC.DEFER_BLOCKING R4", None, None),
        ("BAR.RED.POPC.DEFER_BLOCKING 0x0,P0", None, None),
        ("BAR.SYNC 0x1,0x80", 128, None),
        ("BAR.SYNC 0x1,0x80", None, "waits for some threads of the block"),
        ("BAR.SYNC 0x1,R4", 128, "waits for some threads of the block"),
        ("BAR.ARV 0x1,0x80", 128, "only arrives and does not wait"),
        ("@P0 BAR.SYNC 0x0", None, "has a guard"),
        ("FADD R0,R1,R2", None, None),
    ],
)
def test_barriers_that_no_program_can_express_are_refused(line: str, threads: int | None, reason: str | None) -> None:
    found = semantics(line).refusal(0, threads)
    assert found is None if reason is None else found is not None and found.startswith(reason)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("IADD3 R4,R4,0x4,RZ", ("R4", 4)),
        ("UIADD3 UR4,UR4,-0x4,URZ", ("UR4", -4)),
        ("VIADD R4,R4,0x1", ("R4", 1)),
        ("IADD3 R4,R5,0x4,RZ", None),
        ("IADD3 R4,R4,0x4,R5", ("R4", 4)),
        ("IADD3 R4,R4,R5,RZ", None),
        ("IMAD R4,R4,0x4,RZ", None),
    ],
)
def test_counters_are_told(line: str, step: tuple[str, int] | None) -> None:
    assert semantics(line).step(0) == step


def test_computations_keep_to_the_registers_that_an_instruction_reads_and_writes() -> None:
    for program in programs():
        for line in program:
            if line.startswith(("sm_", "given", "load", "store", "USHF.L.U64")):
                continue
            one = instruction(line)
            within = SassKernel("k", "k.cubin", "k.cubin", int(program[0][3:]), (one,), KernelResources(8))
            said, found = register_access(one, within), computation(one)
            assert found is not None
            assert {name for name in found.results if name} <= set(said.writes), line
            assert {source.register for source in found.sources if source.register} <= set(said.reads), line


TID, ROW = LaneSpread(31, 0), LaneSpread(31 << 5, 5)


@pytest.mark.parametrize(
    ("line", "spreads", "expected"),
    [
        ("IMAD.MOV.U32 R0,RZ,RZ,R1", {"R1": TID}, TID),
        ("IMAD.IADD R0,R1,0x1,R2", {"R1": TID, "R2": LaneSpread(0, 5)}, TID),
        ("IMAD.SHL.U32 R0,R1,0x4,RZ", {"R1": TID}, LaneSpread(31 << 2, 2)),
        ("IMAD R0,R1,0x3,RZ", {"R1": TID}, LaneSpread(M, 0)),
        ("IADD3 R0,R1,R2,R3", {"R1": TID, "R2": UNIFORM, "R3": UNIFORM}, LaneSpread(M, 0)),
        ("IADD3 R0,R1,0x20,RZ", {"R1": TID}, TID),
        ("LEA R0,R1,R2,0x5", {"R1": TID, "R2": LaneSpread(0, 10)}, ROW),
        ("SHF.R.U32.HI R0,RZ,0x5,R1", {"R1": ROW}, TID),
        ("SHF.R.U32.HI R0,RZ,0x5,R1", {"R1": TID}, UNIFORM),
        ("SHF.L.U32 R0,R1,0x5,RZ", {"R1": TID}, ROW),
        ("LOP3.LUT R0,R1,0xffffffe0,RZ,0xc0,!PT", {"R1": TID}, LaneSpread(0, 5)),
        ("LOP3.LUT R0,R1,0x3,RZ,0xc0,!PT", {"R1": TID}, LaneSpread(3, 0)),
        ("LOP3.LUT R0,R1,0x3,R2,0xea,!PT", {"R1": TID, "R2": UNIFORM}, LaneSpread(3, 0)),
        ("ISETP.GE.AND P0,PT,R1,0x20,PT", {"R1": TID}, UNIFORM),
        ("ISETP.GE.AND P0,PT,R1,0x21,PT", {"R1": TID}, None),
        ("ISETP.GT.AND P0,PT,R1,0x1f,PT", {"R1": TID}, UNIFORM),
        ("ISETP.GT.AND P0,PT,R1,0x20,PT", {"R1": TID}, None),
        ("ISETP.LT.AND P0,PT,R2,R1,PT", {"R1": TID, "R2": LaneSpread(0, 5)}, None),
        ("ISETP.GT.AND P0,PT,R2,R1,PT", {"R1": TID, "R2": LaneSpread(0, 5)}, UNIFORM),
        ("ISETP.GE.AND P0,PT,R1,R2,PT", {"R1": TID, "R2": LaneSpread(0, 4)}, None),
        ("ISETP.GE.AND P0,PT,R1,R2,PT", {"R1": ROW, "R2": LaneSpread(0, 9)}, None),
        ("ISETP.GE.AND P0,PT,R1,R2,PT", {"R1": ROW, "R2": LaneSpread(0, 10)}, UNIFORM),
        ("ISETP.GE.AND P0,PT,R1,0x20,P1", {"R1": TID}, None),
        ("ISETP.GE.AND P0,PT,R1,c[0x0][0x168],PT", {"R1": TID}, UNIFORM),
        ("ISETP.GE.AND P0,PT,R1,c[0x0][0x16c],PT", {"R1": TID}, None),
        ("S2R R0,SR_TID.X", {}, TID),
        ("S2R R0,SR_TID.Y", {}, UNIFORM),
        ("S2R R0,SR_CTAID.X", {}, UNIFORM),
        ("S2R R0,SR_CLOCKLO", {}, None),
        ("CS2R R4,SRZ", {}, UNIFORM),
        ("R2UR UR4,R1", {"R1": TID}, UNIFORM),
        ("FADD R0,R1,R2", {"R1": UNIFORM, "R2": UNIFORM}, UNIFORM),
        ("FADD R0,R1,R2", {"R1": UNIFORM, "R2": TID}, None),
        ("FADD R0,R1,R2", {"R1": UNIFORM}, None),
        ("LDG.E R0,[R2.64]", {"R2": UNIFORM, "R3": UNIFORM}, UNIFORM),
        ("LDG.E R0,[R2.64]", {"R2": UNIFORM}, None),
        ("LDG.E.STRONG.SYS R0,[R2.64]", {"R2": UNIFORM, "R3": UNIFORM}, None),
        ("LDL R0,[R2]", {"R2": UNIFORM}, None),
        ("LDC R0,c[0x3][R2]", {"R2": UNIFORM}, UNIFORM),
        ("LDC R0,c[0x3][R2]", {"R2": TID}, None),
        ("SHFL.IDX PT,R0,R1,R2,0x1f", {"R1": UNIFORM, "R2": UNIFORM}, None),
        ("IADD3 R0,P0,R1,0x20,RZ", {"R1": TID}, None),
    ],
)
def test_lanes_differ_in_some_bits(line: str, spreads: dict[str, LaneSpread], expected: LaneSpread | None) -> None:
    said = semantics(line, parameters=PARAMETERS)
    launch = Launch(block=(256, 1, 1), parameters={"1": 64, "small": 33})
    specials = special_spreads(said.instruction_set.registers, launch)
    assert specials["SR_TID.X"] == TID
    assert said.spread(0, spreads, Surroundings(specials, said.signature.known(launch))) == expected


WORDS = st.integers(0, M)


@given(st.integers(0, 7).flatmap(lambda bits: st.tuples(st.integers(0, 255), st.just(bits))), st.data())
def test_logic_differs_in_no_other_bit(table_and_mask: tuple[int, int], data: st.DataObject) -> None:
    table, which = table_and_mask
    masks = [data.draw(WORDS) if which >> at & 1 else 0 for at in range(3)]
    constant = data.draw(WORDS) if not masks[2] else None
    third = "R3" if constant is None else hex(constant)
    line = f"LOP3.LUT R0,R1,R2,{third},{table:#x},!PT"
    spreads = {f"R{at + 1}": LaneSpread(mask, 0) for at, mask in enumerate(masks)}
    found = semantics(line).spread(0, spreads, Surroundings({}, {}))
    assert found is not None
    base = [data.draw(WORDS) for _ in range(3)]
    other = [value ^ data.draw(WORDS) & mask for value, mask in zip(base, masks, strict=True)]
    if constant is not None:
        base[2] = other[2] = constant
    results = [look_up(a, b, c, table) for a, b, c in (base, other)]
    assert (results[0] ^ results[1]) & ~found.varying == 0
    assert all(result % 2**found.zeros == 0 for result in results)


UNROLLED = (
    "MOV R0,c[0x0][0x168]", "ISETP.LT.AND P0,PT,R0,0x1,PT", "@P0 EXIT", "LOP3.LUT R1,R0,0x3,RZ,0xc0,!PT",
    "IADD3 R2,R0,-R1,RZ", "ISETP.GE.U32.AND P0,PT,R0,0x4,PT", "@!P0 BRA 0xa0", "IADD3 R2,R2,-0x4,RZ",
    "ISETP.NE.AND P0,PT,R2,RZ,PT", "@P0 BRA 0x70", "ISETP.NE.AND P0,PT,R1,RZ,PT", "@!P0 EXIT", "IADD3 R1,R1,-0x1,RZ",
    "ISETP.NE.AND P0,PT,R1,RZ,PT", "@P0 BRA 0xc0", "EXIT",
)  # fmt: skip


@pytest.mark.parametrize(("n", "expected"), [(63, [15, 3]), (64, [16, 1]), (3, [1, 3]), (0, [1, 1])])
def test_loops_that_a_compiler_unrolled_are_bounded_by_a_parameter(n: int, expected: list[int]) -> None:
    found = flow(kernel(*UNROLLED, parameters=PARAMETERS))
    proven = infer_iterations(found, loop_nest(found), Launch(parameters={"1": n}))
    assert [(one.least, one.most) for one in proven.values()] == [(count, count) for count in expected]
    assert all(one.source == f"inferred: k_param_1={n}" for one in proven.values())
    assert set(infer_iterations(found, loop_nest(found), Launch())) <= {0, 1}


def test_threads_that_stride_over_data_are_told_apart() -> None:
    """From the number of the thread to 1000 in steps of the block: 8 passes for the first 104 threads, else 7."""
    lines = ("S2R R0,SR_TID.X", "IADD3 R0,R0,c[0x0][0x0],RZ", "ISETP.GE.AND P0,PT,R0,0x3e8,PT", "@!P0 BRA 0x10", "EXIT")
    found = flow(kernel(*lines))
    (proven,) = infer_iterations(found, loop_nest(found), Launch(block=(128, 1, 1))).values()
    assert (proven.least, proven.most) == (7, 8)
    assert proven.source == "inferred: block 128x1x1"
