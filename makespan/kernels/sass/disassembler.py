"""From a cubin to a `SassModule`: words and attributes from the file itself, texts from nvdisasm; neither needs a GPU.

The file is not trusted. It is checked before nvdisasm sees it, and nvdisasm runs as a process of its own within limits
on time, memory and output. A text belongs to a word by its order, so both must tell the same number of instructions at
the same addresses.

Source: CUDA Binary Utilities, "nvdisasm", JSON schema of CUDA 13; `cuobjdump -elf` of CUDA 13.5 for what the values of
attributes hold. Kernels with more than 4 KiB of parameters have other records of them (KPARAM_INFO_V2).
"""

import json
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from makespan.host import tool
from makespan.host.errors import InputError, UnsupportedError
from makespan.host.text_file import read_bytes
from makespan.kernels.sass import elf, lines
from makespan.kernels.sass.cubin import cubins
from makespan.kernels.sass.elf import Attribute, Elf, Section, Symbol
from makespan.kernels.sass.lines import SectionLines
from makespan.kernels.sass.module import (
    INSTRUCTION_BYTES,
    Address,
    KernelResources,
    SassInstruction,
    SassKernel,
    SassModule,
    SassParameter,
)

MAX_INSTRUCTIONS = 2**17
MAX_OUTPUT_BYTES = 32 * 2**20
RESERVED_SHARED_BYTES = 1024
"""Shared memory of every block that the system reserves.

Source: CUDA C++ Programming Guide, technical specifications of compute capability 9.0; `ptxas -v`, which leaves them
out, beside the sizes of sections.
"""

_IMAGE, _OUTPUT = "image.cubin", "output.json"
_GUARD = re.compile(r"@(!?U?P(?:[0-9]|T))")
_OPCODE = re.compile(r"[A-Z][A-Z0-9_]*(?:\.[\w.&|?]+)?", re.ASCII)
_RELEASE = re.compile(r"V[0-9][0-9.]{0,20}")
_MESSAGE_WIDTH = 200

_PARAMETER_BANK, _PARAMETER, _LARGE_PARAMETER = 0x0A, 0x17, 0x45
_MOST_THREADS, _REQUIRED_THREADS, _FRAME, _STACK = 0x05, 0x10, 0x11, 0x12
_REGISTERS, _BRANCH_TARGETS, _BARRIERS = 0x2F, 0x34, 0x4C


def read(path: Path, *, arch: str | None = None) -> SassModule:
    """Return the kernels of a cubin, or of a file that has some, such as a fat binary or an executable.

    Args:
        arch: which of several architectures in the file, such as `sm_86`.

    Raises:
        InputError: a file that cannot be read, is damaged, or for which there is no tool.
        UnsupportedError: code that cannot be read: relocatable, or older than sm_70.
    """
    data, file = read_bytes(path, "file of machine code", elf.MAX_BYTES), tool.printable(str(path))
    if not elf.is_cubin(data):
        parts = [disassemble(image, file, file) for image in cubins(data, file, arch)]
        return SassModule(file, tuple(kernel for part in parts for kernel in part.kernels))
    sm = elf.read_elf(data, file).sm
    if arch is not None and arch.rstrip("af") != f"sm_{sm}":
        raise InputError(f"{file}: this cubin is for sm_{sm}, not for {arch:.40}")
    return disassemble(data, file, file)


def disassemble(data: bytes, file: str, source: str) -> SassModule:
    """Return the kernels of a cubin in memory.

    Args:
        file: to which addresses belong, for messages.
        source: the file that the user gave.

    Raises:
        InputError: no cubin, a damaged one, no nvdisasm, or one that does not understand it.
        UnsupportedError: code that cannot be read.
    """
    image = elf.read_elf(data, file)
    texts = tuple(section for section in image.sections if section.name.startswith(".text."))
    if any(section.data.nbytes != section.size or section.size % INSTRUCTION_BYTES for section in texts):
        raise InputError(f"{file}: this cubin is damaged: instructions are {INSTRUCTION_BYTES} bytes long")
    if sum(section.size for section in texts) > MAX_INSTRUCTIONS * INSTRUCTION_BYTES:
        raise UnsupportedError(
            f"{file}: more than {MAX_INSTRUCTIONS} instructions; extract what matters with cuobjdump"
        )
    functions = defaultdict(list)
    for symbol in image.symbols:
        if symbol.is_function:
            functions[symbol.section].append(symbol)
    entries = [(_entry(image, section, functions[section.number]), section) for section in texts]
    kernels = [(entry, section) for entry, section in entries if entry is not None]
    if not kernels:
        return SassModule(file, ())
    found = _CubinContents(
        image, _disassembly(data, image), _origin(image, source), functions, dict(_of_kernels(image))
    )
    return SassModule(file, tuple(_kernel(found, entry, section) for entry, section in kernels))


def _entry(image: Elf, section: Section, functions: Iterable[Symbol]) -> Symbol | None:
    found = [symbol for symbol in functions if symbol.is_kernel]
    if not found:
        return None
    if len(found) > 1 or found[0].name != section.name.removeprefix(".text.") or found[0].value:
        raise UnsupportedError(f"{image.file}: section {section.name:.60} is not that of one kernel, from its start")
    return found[0]


# Texts


class _DisassembledText(NamedTuple):
    """An instruction as nvdisasm prints it."""

    guard: str | None
    opcode: str
    operands: tuple[str, ...]


class _Disassembly(NamedTuple):
    """The words of nvdisasm: the instructions by section, and who made the file."""

    texts: Mapping[str, tuple[_DisassembledText, ...]]
    compiler: str | None


def _disassembly(data: bytes, image: Elf) -> _Disassembly:
    said = _nvdisasm(data, image.file)
    try:
        about, functions = said
        version = about["SM"]["version"]
        if version["major"] * 10 + version["minor"] != image.sm:  # another decoding would give other texts
            raise InputError(f"{image.file}: nvdisasm takes this cubin for another architecture than sm_{image.sm}")
        texts: dict[str, tuple[_DisassembledText, ...]] = {}
        for function in functions:
            name, found = function["function-name"], tuple(map(_text, function["sass-instructions"]))
            if name in texts or function["start"] != 0 or function["length"] != len(found) * INSTRUCTION_BYTES:
                raise InputError(f"{image.file}: nvdisasm does not tell the addresses of {name[:60]!r}")
            texts[name] = found
        note = about.get(".note.nv.tkinfo", {})
        release = _RELEASE.search(note.get("tki_toolVersion", ""))
        compiler = f"{note['tki_toolName']:.20} {release[0]}" if release else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # the output of a tool is input from outside
        what = f"nvdisasm says something that is not understood ({type(error).__name__})"
        raise InputError(f"{image.file}: {what}; {elf.INSTALL} brings one that is") from None
    return _Disassembly(texts, tool.printable(compiler) if compiler else None)


def _nvdisasm(data: bytes, file: str) -> Any:
    program = tool.find("nvdisasm")
    if program is None:
        raise InputError(f"{file}: no nvdisasm to read machine code with: {elf.INSTALL} (no GPU needed)")
    with tool.folder_with(_IMAGE, data) as folder:
        code, said = tool.run(
            (str(program), "-json", _IMAGE),
            folder,
            output=_OUTPUT,
            most_bytes=MAX_OUTPUT_BYTES,
            late=f"{file}: nvdisasm was stopped at its time limit of {tool.SECONDS:g} s",
        )
        if code:
            what = tool.printable(said.split("\n")[0].replace(_IMAGE, file).strip())[:_MESSAGE_WIDTH]
            raise InputError(f"{file}: nvdisasm says: {what or f'nothing, but it ended with code {code}'}")
        output = tool.head(folder / _OUTPUT, MAX_OUTPUT_BYTES) or b""
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        raise InputError(
            f"{file}: nvdisasm says something that is no JSON; {elf.INSTALL} brings one that does"
        ) from None


_ALL_PREDICATES = {"P2R": 1, "R2P": 0}
"""The position of `PR` among the operands of instructions that read or write all predicates."""


def _text(said: Mapping[str, Any]) -> _DisassembledText:
    opcode, predicate = said["opcode"], said.get("predicate")
    operands = [operand.replace(".reuse", "") for operand in _split_operands(said.get("operands", ""))]
    place = _ALL_PREDICATES.get(opcode.partition(".")[0])
    if place is not None:  # nvdisasm takes PR for the guard: both may be in the place of the other, and PR be missing
        guards = [text for text in (predicate, *operands) if text and text.startswith("@")]
        operands = [operand for operand in operands if operand not in {"PR", *guards}]
        operands.insert(place, "PR")
        predicate = guards[0] if guards else None
    guard = None if predicate is None else _GUARD.fullmatch(predicate)
    if not _OPCODE.fullmatch(opcode) or (guard is None) is not (predicate is None):
        raise ValueError(opcode)
    return _DisassembledText(guard[1] if guard else None, opcode, tuple(operands))


def _split_operands(operands: str) -> Iterator[str]:
    """Yield the operands, which commas outside of brackets separate.

    >>> list(_split_operands("SB0,0x0,{5,4,3}"))
    ['SB0', '0x0', '{5,4,3}']
    """
    depth, begin, text = 0, 0, "".join(operands.split())
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    if text:
        yield text[begin:]


# Kernels


class _CodeOrigin(NamedTuple):
    """The origin of the code: the file of the user, the PTX and its name, and the tables of lines."""

    source: str
    ptx: str
    ptx_text: str | None
    ptx_lines: Mapping[int, Sequence[lines.LineRow]]
    source_lines: Mapping[int, Sequence[lines.LineRow]]


def _origin(image: Elf, source: str) -> _CodeOrigin:
    text = image.section(lines.PTX_TEXT)
    name = source if source.endswith(".ptx") else f"PTX of {source}"
    # a zero ends every line; what was a comment, `.loc` or `.file` is an empty one, so that lines keep their numbers
    ptx = None if text is None else bytes(text.data).replace(b"\0", b"\n").decode("utf-8", "replace")
    tables = (lines.line_table(image, name) for name in (lines.PTX_LINES, lines.SOURCE_LINES))
    return _CodeOrigin(source, name, ptx, *tables)


class _CubinContents(NamedTuple):
    """A file as a whole: its functions by section, and attributes by number and symbol."""

    image: Elf
    listing: _Disassembly
    origin: _CodeOrigin
    functions: Mapping[int, Sequence[Symbol]]
    of_kernels: Mapping[tuple[int, int], int]


def _kernel(file: _CubinContents, entry: Symbol, section: Section) -> SassKernel:
    image, listing, origin = file.image, file.listing, file.origin
    words = [low | high << 64 for low, high in struct.iter_unpack("<QQ", section.data)]
    texts = listing.texts.get(entry.name, ())
    if len(words) != len(texts):
        raise InputError(
            f"{image.file}: nvdisasm tells {len(texts)} instructions of {entry.name:.60}, the file has {len(words)}"
        )
    for number, (word, text) in enumerate(zip(words, texts, strict=True)):
        if (text.guard or "PT").replace("U", "") != _guard(word):  # a check that texts and words belong together
            at = Address(number * INSTRUCTION_BYTES)
            raise InputError(
                f"{image.file}: nvdisasm tells another predicate than the word at {at} of {entry.name:.60}"
            )
    for place in image.relocations(section):  # the word is not final; texts such as 32@lo(0x38) say so
        number = place.offset // INSTRUCTION_BYTES
        if not any("@" in operand or operand == place.symbol.name for operand in texts[number].operands):
            where = f"{Address(number * INSTRUCTION_BYTES)} of {entry.name:.60}"
            raise UnsupportedError(f"{image.file}: the instruction at {where} is finished only when it is loaded")
    functions = _functions(file.functions[section.number])
    of_ptx = SectionLines(origin.ptx_lines.get(section.number, ()), origin.ptx)
    of_source = SectionLines(origin.source_lines.get(section.number, ()))
    code = tuple(
        SassInstruction(
            at,
            text.opcode,
            _operands_with_address(text, functions),
            text.guard,
            word,
            ptx=of_ptx[at],
            source=of_source[at],
        )
        for at, word, text in zip(map(Address, range(0, section.size, INSTRUCTION_BYTES)), words, texts, strict=True)
    )
    attributes = tuple(image.attributes(f".nv.info.{entry.name}"))
    first, parameters = _parameters(image, attributes)
    jumps = dict(_jumps(image, attributes, section.size))
    made = listing.compiler
    return SassKernel(
        name=entry.name,
        file=image.file,
        source=origin.source,
        sm=image.sm,
        code=_without_padding(code, jumps.values()),
        resources=_resources(file, entry, section, attributes),
        parameters=parameters,
        first_parameter=first,
        constants=_constants(image, entry.name),
        jumps=jumps,
        ptx_text=origin.ptx_text,
        compilation=f"compiled by {made} for sm_{image.sm}" if made else None,
        alignment=max(section.alignment, INSTRUCTION_BYTES),
        padded_bytes=section.size,
    )


def _guard(word: int) -> str:
    """Return the predicate of an instruction; a uniform one reads as its twin.

    Source: CuAssembler, user guide: bits 12 to 14 are its number, 7 being PT, and bit 15 negates it.
    """
    number = word >> 12 & 7
    return f"{'!' if word >> 15 & 1 else ''}P{'T' if number == 7 else number}"


def _functions(symbols: Sequence[Symbol]) -> dict[str, int]:
    several = Counter(symbol.name for symbol in symbols)
    return {symbol.name: symbol.value for symbol in symbols if several[symbol.name] == 1}


def _operands_with_address(text: _DisassembledText, functions: Mapping[str, int]) -> tuple[str, ...]:
    *others, last = text.operands or ("",)
    if text.opcode.startswith(("CALL.REL", "RET.REL")) and last in functions:
        return (*others, str(Address(functions[last])))
    return text.operands


def _without_padding(
    code: tuple[SassInstruction, ...], jumps: Iterable[tuple[int, ...]]
) -> tuple[SassInstruction, ...]:
    end = len(code)
    while end and code[end - 1].opcode == "NOP" and code[end - 1].guard is None:
        end -= 1
    if end and _always_leaves(code[end - 1]) and code[end - 1].operands == (str(code[end - 1].address),):
        end -= 1
    behind = {str(instruction.address) for instruction in code[end:]}
    named = {operand for instruction in code[:end] for operand in instruction.operands}
    named.update(str(Address(target)) for targets in jumps for target in targets)
    # no way leads from the code into the padding
    return code[:end] if end and _always_leaves(code[end - 1]) and not behind & named else code


_OPERANDS_OF_LEAVING = {"EXIT": 0, "KILL": 0, "BRA": 1, "RET": 2}
"""The number of operands of each without a predicate; a further operand would be one."""


def _always_leaves(instruction: SassInstruction) -> bool:
    return instruction.guard is None and _OPERANDS_OF_LEAVING.get(instruction.name) == len(instruction.operands)


# What the compiler says


def _numbers(image: Elf, attribute: Attribute, count: int) -> tuple[int, ...]:
    if len(attribute.value) != count * 4:
        raise InputError(f"{image.file}: this cubin is damaged: attribute {attribute.number:#x} has another size")
    return struct.unpack(f"<{count}I", attribute.value)


def _parameters(image: Elf, attributes: Iterable[Attribute]) -> tuple[int, tuple[SassParameter, ...]]:
    first, found = 0, {}
    for attribute in attributes:
        if attribute.number == _PARAMETER_BANK:
            first = _numbers(image, attribute, 2)[1] & 0xFFFF
        elif attribute.number in {_PARAMETER, _LARGE_PARAMETER}:
            _, place, size = _numbers(image, attribute, 3)
            size = size >> 18 if attribute.number == _PARAMETER else size & 0xFFFF
            found[place & 0xFFFF] = SassParameter(place >> 16, size)
    if sorted(found) != list(range(len(found))):  # a parameter without a record would shift the others
        raise InputError(f"{image.file}: this cubin is damaged: it does not tell all parameters")
    return first, tuple(found[number] for number in range(len(found)))


def _of_kernels(image: Elf) -> Iterator[tuple[tuple[int, int], int]]:
    for attribute in image.attributes(".nv.info"):
        if attribute.number in {_REGISTERS, _FRAME, _STACK}:
            symbol, value = _numbers(image, attribute, 2)
            yield (attribute.number, symbol), value


def _resources(
    file: _CubinContents, entry: Symbol, section: Section, attributes: Iterable[Attribute]
) -> KernelResources:
    image = file.image
    registers, *stack = (file.of_kernels.get((number, entry.number), 0) for number in (_REGISTERS, _FRAME, _STACK))
    if not registers:
        raise InputError(f"{image.file}: this cubin does not tell the registers of {entry.name:.60}")
    barriers, threads, block = section.flags >> 20 & 0x7F, None, None
    for attribute in attributes:
        if attribute.number == _BARRIERS and len(attribute.value) == 1:
            barriers = max(barriers, attribute.value[0])
        elif attribute.number == _MOST_THREADS:
            x, y, z = _numbers(image, attribute, 3)
            threads = x * y * z
        elif attribute.number == _REQUIRED_THREADS:
            x, y, z = _numbers(image, attribute, 3)
            block = (x, y, z)
    return KernelResources(
        registers=registers,
        shared_bytes=_shared_bytes(image, entry.name),
        local_bytes=max(stack),
        barriers=barriers,
        most_threads=threads,
        block=block,
    )


def _shared_bytes(image: Elf, name: str) -> int:
    """Return the shared memory of the kernel itself; from sm_90 on a section also counts a reserved part."""
    section = image.section(f".nv.shared.{name}")
    if section is None:
        return 0
    if image.sm < 90:
        return section.size
    if image.section(".nv.shared.reserved.0") is None or section.size < RESERVED_SHARED_BYTES:
        raise UnsupportedError(f"{image.file}: the file does not tell how much shared memory of {name:.60} is reserved")
    return section.size - RESERVED_SHARED_BYTES


def _constants(image: Elf, name: str) -> dict[int, bytes]:
    """Return the banks that no launch, host or driver writes: all but bank 0 and those with relocations."""
    found = {}
    for bank in range(1, 32):
        section = image.section(f".nv.constant{bank}.{name}")
        if section is not None and not any(image.relocations(section)):  # the loader changes words with relocations
            found[bank] = bytes(section.data)
    return found


def _jumps(image: Elf, attributes: Iterable[Attribute], size: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    for attribute in attributes:
        if attribute.number != _BRANCH_TARGETS:
            continue
        numbers = _numbers(image, attribute, len(attribute.value) // 4)
        at = 0
        while at < len(numbers):
            branch, count = numbers[at], numbers[at + 2] if at + 2 < len(numbers) else 0
            targets = numbers[at + 3 : at + 3 + count]
            if not 0 < count == len(targets) or any(place % INSTRUCTION_BYTES or place >= size for place in targets):
                raise InputError(f"{image.file}: this cubin is damaged: the branch at {branch:#x} leads nowhere")
            yield branch, targets
            at += 3 + count
