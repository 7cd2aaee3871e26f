"""What a cubin says comes out of it whole; texts, words and attributes agree with the tools of CUDA."""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from makespan.host import tool
from makespan.host.errors import InputError
from makespan.kernels.sass import Address, KernelResources, SassInstruction, SassModule, SassParameter, disassembler
from makespan.kernels.sass.disassembler import disassemble
from makespan.kernels.sass.elf import Elf, Section, Symbol, read_elf
from tests.sass.test_fuzz import nops

PTX = """.version 8.1
.target sm_75
.address_size 64
.func (.reg .u32 r) helper(.reg .u32 a)
{ .reg .u32 %t; mul.lo.u32 %t, a, a; add.u32 r, %t, 7; ret; }
.visible .entry switch(.param .u64 p, .param .u32 n, .param .align 4 .b8 big[17000]) .reqntid 64,2,1
{
 .reg .u32 %r<20>; .reg .u64 %rd<9>; .reg .pred %p<4>; .shared .align 4 .b8 table[96];
 ld.param.u64 %rd1,[p]; ld.param.u32 %r1,[n];
 $ts: .branchtargets $a,$b,$c,$d,$e;
 .loc 1 7 0
 mov.u32 %r3,%tid.x;
 xor.b32 %r4, %r3, %r1;
 setp.gt.u32 %p1,%r4,4; @%p1 bra $z;
 brx.idx %r4, $ts;
$a: mul.lo.u32 %r3,%r3,%r3; bra $z;
 .loc 2 300 3
$b: st.shared.u32 [table+8],%r3; bra $z;
$c: call (%r3),helper,(%r3); bra $z;
$d: ld.global.u32 %r3,[%rd1+16]; bra $z;
$e: add.u32 %r3,%r3,77; xor.b32 %r3,%r3,5; bar.sync 1; ld.shared.u32 %r3,[table+4];
 .loc 1 5 3
$z: st.global.u32 [%rd1],%r3; ret;
}
.visible .entry plain(.param .u64 p) .maxntid 128,2,1
{ .reg .u64 %rd<3>;
 .loc 2 12 1
 ld.param.u64 %rd1,[p]; st.global.u32 [%rd1],3; ret; }
.file 1 "src/switch.cu"
.file 2 "/include/store.h"
"""
ARCHITECTURES = 86, 120


def made(ptx: str, sm: int, folder: Path) -> bytes:
    ptxas = tool.find("ptxas")
    if ptxas is None or tool.find("nvdisasm") is None:
        pytest.skip("ptxas and nvdisasm are not installed")
    (folder / "k.ptx").write_text(ptx)
    command = (str(ptxas), "-lineinfo", f"-arch=sm_{sm}", "k.ptx", "-o", f"k.{sm}.cubin")
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / f"k.{sm}.cubin").read_bytes()


@cache
def module(sm: int, folder: Path) -> SassModule:
    return disassemble(made(PTX, sm, folder), "k.cubin", "k.cu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cubins")


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_a_cubin_tells_parameters_and_resources(sm: int, folder: Path) -> None:
    found = module(sm, folder)
    plain, switch = found.kernel("plain"), found.kernel("switch")
    assert (plain.first_parameter, switch.first_parameter) == ((0x380, 0x380) if sm == 120 else (0x160, 0x1A80))
    assert plain.parameters == (SassParameter(0, 8),)
    assert switch.parameters == (SassParameter(0, 8), SassParameter(8, 4), SassParameter(12, 17000))
    registers = plain.resources.registers
    assert plain.resources == KernelResources(registers, most_threads=256)
    registers = switch.resources.registers
    assert switch.resources == KernelResources(registers, 96, 0, 2, None, (64, 2, 1))
    assert switch.sm == sm
    assert (switch.compilation or "").startswith("compiled by ptxas V")


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_a_jump_table_and_a_call_are_addresses_of_instructions(sm: int, folder: Path) -> None:
    kernel = module(sm, folder).kernel("switch")
    (branch,) = (instruction for instruction in kernel.code if instruction.name == "BRX")
    assert set(kernel.jumps) == {branch.address}
    assert len(kernel.jumps[branch.address]) == 5
    calls = [instruction for instruction in kernel.code if instruction.name in {"CALL", "RET"}]
    targets = {int(call.operands[-1], 16) for call in calls} | set(kernel.jumps[branch.address])
    assert [call.name for call in calls] == ["CALL", "RET"]
    assert targets <= {int(instruction.address) for instruction in kernel.code}


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_padding_is_left_out(sm: int, folder: Path) -> None:
    plain = module(sm, folder).kernel("plain").code
    assert str(plain[-1]) == "EXIT;"
    assert "NOP" not in {instruction.name for instruction in plain}
    assert [instruction.address for instruction in plain] == list(range(0, 16 * len(plain), 16))


def test_without_nvdisasm_there_is_a_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(PTX, 86, folder)
    monkeypatch.setattr(tool, "find", lambda name: None)
    with pytest.raises(InputError, match=r"k.cubin: no nvdisasm .* pip install 'makespan\[sass\]'"):
        disassemble(data, "k.cubin", "k.cubin")


# Lines


@pytest.mark.parametrize("sm", [86, 120])
def test_lines_are_those_of_nvdisasm(sm: int, folder: Path) -> None:
    found = module(sm, folder)
    of_ptx, of_source = (printed_lines(folder / f"k.{sm}.cubin", flag) for flag in ("-gp", "-g"))
    for kernel in found.kernels:
        for instruction in kernel.code:
            place = kernel.name, int(instruction.address)
            assert (instruction.ptx and instruction.ptx.line) == of_ptx[place][1]
            assert tuple(instruction.source or ("", 0)) == of_source[place]
            assert instruction.ptx is None or instruction.ptx.file == "PTX of k.cu"
    assert {line[0] for line in of_source.values()} >= {"src/switch.cu", "/include/store.h"}


def test_the_text_of_the_ptx_has_its_lines(folder: Path) -> None:
    kernel = module(86, folder).kernel("switch")
    told = (kernel.ptx_text or "").split("\n")
    for line, kept in zip(PTX.split("\n"), told, strict=False):
        assert kept.strip() == ("" if line.strip().startswith((".loc", ".file")) else line.strip())
    for instruction in kernel.code:
        if instruction.name == "BRX" and instruction.ptx is not None:
            assert told[instruction.ptx.line - 1].strip() == "brx.idx %r4, $ts;"


def printed_lines(path: Path, flag: str) -> dict[tuple[str, int], tuple[str, int]]:
    """The line of every instruction, by kernel and address, as a listing shows it."""
    command = (str(tool.find("nvdisasm")), "-c", flag, str(path))
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kernel, line, found = "", ("", 0), {}
    for text in listing.splitlines():
        if begin := re.match(r"\.text\.(\S+):", text):
            kernel = begin[1]
        elif told := re.search(r'//## File "(.*?)", line (\d+)', text):
            line = told[1], int(told[2])
        elif instruction := re.match(r"\s*/\*([0-9a-f]{4,})\*/", text):
            found[kernel, int(instruction[1], 16)] = line
    return found


# Texts


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"opcode": "EXIT"}, (None, "EXIT", ())),
        ({"predicate": "@!UP3", "opcode": "BRA.U", "operands": "UP0,0x90"}, ("!UP3", "BRA.U", ("UP0", "0x90"))),
        ({"opcode": "IMAD", "operands": "R6.reuse, R7.reuse,-R2"}, (None, "IMAD", ("R6", "R7", "-R2"))),
        ({"opcode": "LDG.E", "operands": "R2,desc[UR6][R2.64+0x4]"}, (None, "LDG.E", ("R2", "desc[UR6][R2.64+0x4]"))),
        ({"opcode": "DEPBAR.LE", "operands": "SB0,0x0,{5,4}"}, (None, "DEPBAR.LE", ("SB0", "0x0", "{5,4}"))),
        # as V13.5.37 says it; the listing of the same words has P2R R63, PR, RZ, 0x2 and R2P PR, R0, 0x7f
        ({"predicate": "PR", "opcode": "P2R", "operands": "R63,RZ,0x2"}, (None, "P2R", ("R63", "PR", "RZ", "0x2"))),
        ({"predicate": "PR", "opcode": "P2R", "operands": "R3,@P0,RZ,0x2"}, ("P0", "P2R", ("R3", "PR", "RZ", "0x2"))),
        ({"opcode": "R2P", "operands": "R0,0x7f"}, (None, "R2P", ("PR", "R0", "0x7f"))),
        ({"predicate": "@!P0", "opcode": "R2P", "operands": "PR,R0,0x7f"}, ("!P0", "R2P", ("PR", "R0", "0x7f"))),
    ],
)
def test_texts_are_as_listings_show_them(said: dict[str, str], text: tuple[object, ...]) -> None:
    assert disassembler._text(said) == text


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([], "nvdisasm says something that is not understood (ValueError)"),
        (({"SM": {"version": {"major": 7, "minor": 5}}}, []), "nvdisasm takes this cubin for another architecture"),
        (
            ({"SM": {"version": {"major": 8, "minor": 6}}}, []),
            "nvdisasm tells 0 instructions of reduction, the file has",
        ),
        (
            lambda functions: functions[0]["sass-instructions"].__setitem__(2, {"opcode": "EXIT", "predicate": "@P6"}),
            "nvdisasm tells another predicate than the word at 0x20 of reduction",
        ),
        (
            lambda functions: functions[0]["sass-instructions"].__setitem__(2, {"opcode": "exit"}),
            "nvdisasm says something that is not understood (ValueError)",
        ),
        (
            lambda functions: functions[0]["sass-instructions"].pop(),
            "nvdisasm does not tell the addresses of 'reduction'",
        ),
        (lambda functions: functions.append(functions[0]), "nvdisasm does not tell the addresses of 'reduction'"),
    ],
)
def test_what_nvdisasm_says_is_checked(said: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(data: bytes, file: str) -> Any:
        if not callable(said):
            return said
        about, functions = nops(data, file)
        said(functions)
        return about, functions

    monkeypatch.setattr(disassembler, "_nvdisasm", told)
    with pytest.raises(InputError) as refusal:
        disassembler.read(Path(__file__).parents[2] / "ptx" / "reduction.sm_86.cubin")
    assert f"reduction.sm_86.cubin: {message}" in str(refusal.value)


# Padding, functions, constants


def code(*texts: str) -> tuple[SassInstruction, ...]:
    """Instructions such as `@P0 BRA 0x10`, one after the other."""
    found = []
    for number, text in enumerate(texts):
        guard, _, rest = text.rpartition("@")[2].partition(" ") if text.startswith("@") else ("", "", text)
        opcode, _, operands = rest.partition(" ")
        split = tuple(operands.split(",")) if operands else ()
        found.append(SassInstruction(Address(16 * number), opcode, split, guard or None))
    return tuple(found)


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (("MOV R1,R2", "EXIT", "BRA 0x20", "NOP", "NOP"), 2),
        (("MOV R1,R2", "EXIT", "NOP"), 2),
        (("MOV R1,R2", "BRA 0x0", "BRA 0x20"), 2),
        (("MOV R1,R2", "RET.REL.NODEC R2,0x0", "BRA 0x20", "NOP"), 2),
        (("@P0 EXIT", "BRA 0x10", "NOP"), 3),  # the warp may come to the branch
        (("BRA P0,0x0", "BRA 0x10", "NOP"), 3),  # a second predicate
        (("BRA 0x10", "BRA 0x10", "NOP"), 3),  # an endless loop of the kernel
        (("MOV R2,0x30", "EXIT", "BRA 0x20", "NOP"), 4),  # perhaps where a register leads
        (("BRX R2,-0x10", "EXIT", "BRA 0x20", "NOP"), 4),  # where a table leads
        (("MOV R1,R2", "NOP", "NOP"), 3),
        (("NOP",), 1),
        ((), 0),
    ],
)
def test_padding_is_what_nothing_leads_to(texts: tuple[str, ...], kept: int) -> None:
    jumps = [(0x10, 0x30)] if texts[:1] == ("BRX R2,-0x10",) else []
    whole = code(*texts)
    assert disassembler._without_padding(whole, jumps) == whole[:kept]


def test_a_function_whose_name_is_not_unique_is_no_address() -> None:
    symbols = [Symbol(name, 0, 1, at, 0, True, False) for name, at in (("f", 0x10), ("g", 0x20), ("f", 0x30))]
    functions = disassembler._functions(symbols)
    call = disassembler._DisassembledText(None, "CALL.REL.NOINC", ("g",))
    assert disassembler._operands_with_address(call, functions) == ("0x20",)
    assert disassembler._operands_with_address(call._replace(operands=("f",)), functions) == ("f",)
    assert disassembler._operands_with_address(call._replace(opcode="MOV", operands=("R1", "g")), functions) == (
        "R1",
        "g",
    )


@pytest.mark.parametrize(("is_relocated", "known"), [(False, {2: b"\1\2\3\4"}), (True, {})])
def test_constants_that_somebody_may_write_are_not_known(is_relocated: bool, known: dict[int, bytes]) -> None:
    data = memoryview(b"\1\2\3\4")
    banks = [
        Section(f".nv.constant{bank}{of}", bank, 1, 0, 0, 0, 4, data) for bank, of in ((0, ".k"), (2, ".k"), (3, ""))
    ]
    entry = bytes(16)
    table = Section(".rel", 9, 9, 0, 0, 2, 16, memoryview(entry))
    symbol = Symbol("k", 0, 7, 0, 0, True, True)
    named = {section.name: [section] for section in banks}
    image = Elf("k", 86, tuple(banks), (symbol,), named, {2: [table]} if is_relocated else {})
    assert disassembler._constants(image, "k") == known


def test_a_word_that_is_not_final_is_refused_unless_its_text_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembler, "_nvdisasm", nops)
    data = bytearray((Path(__file__).parents[2] / "ptx" / "reduction.sm_86.cubin").read_bytes())
    image = read_elf(bytes(data), "k")
    table, code = image.section(".rel.debug_frame"), image.section(".text.reduction")
    assert table
    assert code
    headers = int.from_bytes(data[0x28:0x30], "little")
    at = headers + 64 * table.number + 44
    data[at : at + 4] = code.number.to_bytes(4, "little")
    with pytest.raises(
        InputError, match=r"^k: the instruction at 0x40 of reduction is finished only when it is loaded$"
    ):
        disassemble(bytes(data), "k", "k")


@pytest.mark.parametrize(("at", "value"), [(4, 8), (32, 0x278)])
def test_code_that_is_not_in_the_file_or_not_whole_is_refused(at: int, value: int) -> None:
    data = bytearray((Path(__file__).parents[2] / "ptx" / "reduction.sm_86.cubin").read_bytes())
    section = read_elf(bytes(data), "k").section(".text.reduction")
    assert section
    place = int.from_bytes(data[0x28:0x30], "little") + 64 * section.number + at
    data[place : place + 4] = value.to_bytes(4, "little")
    with pytest.raises(InputError, match=r"^k: this cubin is damaged: instructions are 16 bytes long$"):
        disassemble(bytes(data), "k", "k")
