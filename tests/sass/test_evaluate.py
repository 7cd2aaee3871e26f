"""What instructions of machine code compute."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from makespan.kernels.sass import Address, SassInstruction
from makespan.kernels.sass.evaluate import computation

M = 2**32
WORDS = st.one_of(st.sampled_from([0, 1, 31, 32, 33, 2**31 - 1, 2**31, M - 1]), st.integers(0, M - 1))
LANES = 3


def instruction(text: str) -> SassInstruction:
    guard, _, rest = text.rpartition("@")[2].partition(" ") if text.startswith("@") else ("", "", text)
    opcode, _, operands = rest.partition(" ")
    return SassInstruction(Address(0), opcode, tuple(operands.split(",")) if operands else (), guard or None)


def run(text: str, **registers: Any) -> dict[str, Any]:
    """The registers that one instruction makes known, given others: R4=5."""
    found = computation(instruction(text))
    assert found is not None, f"{text} has no computation"
    results = zip(found.results, found.apply(registers), strict=True)
    return {name: value for name, value in results if name is not None}


def programs() -> Iterator[list[str]]:
    text = (Path(__file__).parent / "straight_lines.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for number, line in enumerate(lines):
        if line.startswith("sm_"):
            stop = next((k for k in range(number + 1, len(lines)) if lines[k].startswith("sm_")), len(lines))
            yield lines[number:stop]


@pytest.mark.parametrize("program", list(programs()), ids=lambda lines: lines[0])
@pytest.mark.parametrize("thread", [*range(LANES), None])
def test_machine_code_computes_what_its_ptx_does(program: list[str], thread: int | None) -> None:
    state: dict[str, Any] = {"SR_TID.X": np.arange(LANES, dtype=np.uint64) if thread is None else thread}
    known: dict[tuple[int, int], int] = {}
    compared = 0
    for line in program[1:]:
        word, name, *rest = line.split(" ")
        values = [int(text, 16) for text in rest] if word in ("given", "load", "store") else []
        here = np.array(values, np.uint64) if thread is None else values[thread] if len(values) == LANES else 0
        match word:
            case "given":
                known |= {(0, int(name[7:-1], 16) + at): values[0] >> 8 * at & 255 for at in range(4)}
            case "load":
                state[name] = here
            case "store":
                assert name in state
                assert np.all(state[name] == here), line
                compared += 1
            case _:
                found = computation(instruction(line), known)
                assert found is not None, line
                assert not line.startswith("@")
                for register, value in zip(found.results, found.apply(state), strict=True):
                    state.pop(register or "", None)
                    if register is not None and value is not None:
                        state[register] = value
    assert compared >= 5


@given(WORDS, WORDS, WORDS, st.booleans(), st.booleans())
@example(M - 1, M - 1, M - 1, True, False)
def test_sums_carry(a: int, b: int, c: int, p: bool, q: bool) -> None:
    total = a + b + c
    expected = {"R0": total % M, "P0": int(total >= M), "P1": int(total >= 2 * M)}
    assert run("IADD3 R0,P0,P1,R1,R2,R3", R1=a, R2=b, R3=c) == expected
    assert run("UIADD3 UR0,UP0,UP1,UR1,UR2,UR3", UR1=a, UR2=b, UR3=c)["UP1"] == int(total >= 2 * M)
    assert run("IADD3 R0,R1,-R2,RZ", R1=a, R2=b) == {"R0": (a - b) % M}
    assert run("IADD3 R0,P0,R1,-R2,RZ", R1=a, R2=b)["P0"] == int(a >= b)  # no borrow
    more = a + (M - 1 - b) + c + p + (not q)
    expected = {"R0": more % M, "P0": int(more >= M)}
    assert run("IADD3.X R0,P0,R1,~R2,R3,P2,!P3", R1=a, R2=b, R3=c, P2=int(p), P3=int(q)) == expected


@given(WORDS, WORDS, WORDS, WORDS, st.integers(0, 31), st.booleans())
def test_addresses_are_scaled(a: int, b: int, high: int, more: int, by: int, p: bool) -> None:
    low = (a << by) % M + b
    assert run(f"LEA R0,P0,R1,R2,{by:#x}", R1=a, R2=b) == {"R0": low % M, "P0": int(low >= M)}
    whole = (((high << 32 | a) << by) + (more << 32 | b)) % 2**64
    carry = int(low >= M)
    assert run(f"LEA.HI.X R0,R1,R2,R3,{by:#x},P0", R1=a, R2=more, R3=high, P0=carry)["R0"] == whole >> 32
    signed = a - M if a >> 31 else a
    extended = ((signed << by) + (more << 32 | b)) % 2**64
    assert run(f"LEA.HI.X.SX32 R0,R1,R2,{by:#x},P0", R1=a, R2=more, P0=carry)["R0"] == extended >> 32


@given(WORDS, WORDS, WORDS, WORDS)
@example(M - 1, M - 1, M - 1, M - 1)
def test_products_have_64_bits(a: int, b: int, low: int, high: int) -> None:
    c, x, y = high << 32 | low, a - M if a >> 31 else a, b - M if b >> 31 else b
    given_ = {"R2": a, "R3": b, "R4": low, "R5": high}
    wide = run("IMAD.WIDE.U32 R0,P0,R2,R3,R4", **given_)
    assert wide == {"R0": (a * b + c) % M, "R1": (a * b + c) // M % M, "P0": (a * b + c) >> 64}
    assert run("IMAD.WIDE R0,R2,R3,R4", **given_)["R1"] == ((x * y + c) >> 32) % M
    assert run("IMAD.HI.U32 R0,R2,R3,R4", **given_)["R0"] == ((a * b + c) >> 32) % M
    assert run("IMAD.IADD R0,R2,0x1,-R3", **given_)["R0"] == (a - b) % M


@given(WORDS, WORDS, WORDS, WORDS)
def test_comparisons_of_64_bits_go_on_from_the_lower_half(a: int, b: int, c: int, d: int) -> None:
    below = run("ISETP.LT.U32.AND P0,PT,R0,R1,PT", R0=a, R1=b)["P0"]
    found = run("ISETP.LT.U32.AND.EX P0,P1,R2,R3,PT,P0", R2=c, R3=d, P0=below)
    less = int((c << 32 | a) < (d << 32 | b))
    assert found == {"P0": less, "P1": 1 - less}


@pytest.mark.parametrize("kind", ["U32", "S32", "U64", "S64"])
@given(WORDS, WORDS, st.one_of(st.integers(0, 70), WORDS))
def test_shifts_take_64_bits_apart(kind: str, low: int, high: int, by: int) -> None:
    w, whole = int(kind[1:]), high << 32 | low
    number = whole - 2**64 if kind[0] == "S" and high >> 31 else whole
    for wraps, amount in (("", min(by, w)), (".W", by % w)):
        left, right = (whole << amount) % 2**64, (number >> amount) % 2**64
        for part, modifier in ((0, ""), (32, ".HI")):
            given_ = {"R1": low, "R2": by, "R3": high}
            assert run(f"SHF.L{wraps}.{kind}{modifier} R0,R1,R2,R3", **given_) == {"R0": left >> part & (M - 1)}
            assert run(f"SHF.R{wraps}.{kind}{modifier} R0,R1,R2,R3", **given_) == {"R0": right >> part & (M - 1)}


def test_what_is_not_known_has_no_say() -> None:
    assert run("ISETP.GE.OR P0,PT,R3,0x1,P1", R3=5) == {"P0": 1}
    assert run("ISETP.GE.OR P0,PT,R3,0x1,P1", R3=0) == {"P0": None}
    assert run("ISETP.GE.AND P0,PT,R3,0x1,P1", P1=0) == {"P0": 0}
    assert run("PLOP3.LUT P0,P1,P2,P3,PT,0x80,0xf8", P2=0) == {"P0": 0, "P1": None}
    assert run("PLOP3.LUT P0,P1,P2,!P3,PT,0x80,0xf8", P3=1) == {"P0": 0, "P1": None}
    assert run("SEL R0,R1,R2,P0", R1=4, R2=4) == {"R0": 4}
    assert run("VOTE.ALL P0,P1", P1=np.array([1, 0], np.uint64)) == {"P0": None}
    assert run("VOTE.ANY R9,P0,P1", P1=1) == {"R9": None, "P0": 1}
    assert run("R2UR UR4,R5", R5=np.array([7, 7], np.uint64)) == {"UR4": 7}
    assert run("R2UR UR4,R5", R5=np.array([7, 8], np.uint64)) == {"UR4": None}


@pytest.mark.parametrize(
    ("text", "registers", "expected"),
    [
        ("LOP3.LUT P0,RZ,R0,0x1f,RZ,0xc0,!PT", {"R0": 64}, {"P0": 0}),
        ("LOP3.LUT P0,R1,R0,~R2,RZ,0x30,!PT", {"R0": 12, "R2": 10}, {"P0": 1, "R1": 8}),
        ("PRMT R0,R1,0x9710,R2", {"R1": 0x8283, "R2": 0xFF000000}, {"R0": 0xFFFF8283}),
        ("SGXT R0,R1,0x8", {"R1": 0x1280}, {"R0": 0xFFFFFF80}),
        ("HFMA2.MMA R7,-RZ,RZ,0,5.9604644775390625e-08", {}, {"R7": 1}),
        ("HFMA2 R7,-RZ,RZ,1,-2", {}, {"R7": 0x3C00C000}),
        ("FLO.U32.SH R0,R1", {"R1": 0}, {"R0": None}),
        ("FLO.U32 R0,R1", {"R1": 0}, {"R0": M - 1}),
        ("CS2R R4,SRZ", {}, {"R4": 0, "R5": 0}),
        ("CS2R.32 R4,SRZ", {}, {"R4": 0}),
        ("MOV.64 R2,UR8", {"UR8": 1, "UR9": 2}, {"R2": 1, "R3": 2}),
        ("LDC.64 R2,c[0x0][RZ]", {"c[0x0][0x0]": 8, "c[0x0][0x4]": 9}, {"R2": 8, "R3": 9}),
        ("VABSDIFF.U32 R0,R1,R2,0x2", {"R1": 3, "R2": 10}, {"R0": 9}),
        ("IMNMX.U64 PT,PT,R0,R2,R4,PT,!PT", {"R2": 0, "R3": 1, "R4": 9, "R5": 0}, {"R0": 9, "R1": 0}),
    ],
)
def test_single_instructions(text: str, registers: dict[str, int], expected: dict[str, int | None]) -> None:
    assert run(text, **registers) == expected


@pytest.mark.parametrize(
    "text",
    ["FADD R0,R1,R2", "IADD3.X R0,R1,-R2,RZ,P0,!PT", "LDC R0,c[0x0][R4]", "LDC.U16 R0,c[0x0][0x162]", "S2R R0",
     "LOP3.LUT.PAND P0,RZ,R0,R1,RZ,0xc0,PT", "IMAD.WIDE R0,P0,R2,R3,R4", "LEA R0,R1,R2,R3", "IADD3 R0,|R1|,R2,RZ",
     "HFMA2 R7,R1,RZ,0,1", "HFMA2 R7,-RZ,RZ,0,0.1", "IMNMX R0,R1,R2,PT,P0", "CS2R R4,SR_CLOCKLO", "R2UR.X UR4,R5",
     "SHF.L.R.U32 R0,R1,R2,R3", "ISETP.GE.AND P0,PT,R0.H1,R1,PT", "PLOP3.LUT P0,PT,P0,P1,PT,0x180,0x0", "MOV R1,R2,0x3",
     "IADD3", "VOTE.EQ P0,P1", "IADD3 R0,0x123456789,R1,RZ"],
)  # fmt: skip
def test_what_is_not_sure_has_no_computation(text: str) -> None:
    assert computation(instruction(text)) is None


def test_a_part_of_a_constant_is_known_where_its_bytes_are() -> None:
    found = computation(instruction("LDC.S16 R0,c[0x0][0x162]"), {(0, 0x162): 0xFE, (0, 0x163): 0xFF})
    assert found is not None
    assert found.apply({}) == (M - 2,)
