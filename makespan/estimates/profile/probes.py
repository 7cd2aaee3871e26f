"""A kernel whose memory accesses leave their addresses behind, and its pointers with addresses that stand for them.

Before every access, an instruction puts its address into a register of its own, so that the value there is that at the
access, whatever follows. Pointers that the launch does not tell get addresses far apart, aligned as those of
`cudaMalloc` are; they decide no branch, or else they stay unknown.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from makespan.estimates.profile.opcodes import MemoryAccess, memory_access
from makespan.kernels.flow import Launch, ParameterValue, influential_registers
from makespan.kernels.ptx import (
    Declaration,
    PtxFlow,
    PtxInstruction,
    Statement,
    flow,
    known_parameters,
    names_in,
    register_accesses,
    scalar_type,
)

ALIGNMENT = 256  # bytes to which an allocation of device memory, and so a pointer that is not known, is aligned

_PROBE, _GUARD = "%probe_address_", "%probe_guard_"
_ADDRESS = re.compile(r"\[([A-Za-z_$%][A-Za-z0-9_$]*)?\+?(-?[0-9]+|-?0[xX][0-9A-Fa-f]+)?\]")
_FOLLOWED = {"mov": (1,), "cvta": (1,), "add": (1, 2), "sub": (1,), "mad": (3,)}


@dataclass(frozen=True, slots=True)
class AddressProbe:
    """A register that holds the address of an access, and one that holds its guard, if it has any."""

    access: MemoryAccess
    address: str
    guard: str | None
    is_negated: bool


@dataclass(frozen=True)
class Probed:
    """A kernel with probes.

    Args:
        flow: of the kernel with probes; its blocks are those of the kernel without.
        original: by number of an instruction, the one of the kernel without probes; None for what a probe added.
        probes: by number of an instruction of the kernel without probes.
        parameters: those that are known, and those that stand for pointers.
        pointers: the parameters that stand for pointers.
    """

    flow: PtxFlow
    original: tuple[int | None, ...]
    probes: Mapping[int, AddressProbe]
    parameters: Mapping[str, ParameterValue]
    pointers: frozenset[str]

    @cached_property
    def by_block(self) -> dict[int, list[tuple[int, AddressProbe]]]:
        """Return the probes of each block in order, with the numbers of their instructions without probes."""
        found: dict[int, list[tuple[int, AddressProbe]]] = {}
        for block, span in enumerate(self.flow.blocks):
            numbers = [number for number in self.original[span.first : span.stop] if number in self.probes]
            found[block] = [(number, self.probes[number]) for number in numbers if number is not None]
        return found


def insert_probes(found: PtxFlow, launch: Launch) -> Probed:
    """Return the kernel of a plain flow with probes."""
    statements: list[Statement] = []
    original: list[int | None] = []
    probes: dict[int, AddressProbe] = {}
    symbols = _symbols(found)
    numbers = count()
    for statement in found.kernel.statements:
        if isinstance(statement, PtxInstruction):
            number = next(numbers)
            for before in _insert(statement, number, symbols, probes):
                statements.append(before)
                original.append(None)
            statement = _plainer(statement, symbols)
            original.append(number)
        statements.append(statement)
    with_probes = flow(replace(found.kernel, body=tuple(statements)))
    known = known_parameters(found.kernel, launch)
    pointers = _pointers(with_probes, probes, known)
    stand_ins = {
        name: ParameterValue((at + 1) << (24 if bits == 32 else 40), bits) for at, (name, bits) in enumerate(pointers)
    }
    return Probed(with_probes, tuple(original), probes, {**known, **stand_ins}, frozenset(stand_ins))


def _insert(
    instruction: PtxInstruction, number: int, symbols: Mapping[str, int], probes: dict[int, AddressProbe]
) -> Iterator[PtxInstruction]:
    """Yield what puts the address and the guard of an access into its probe, and note the probe."""
    access = memory_access(instruction)
    match = None if access is None or access.space == "param" else _ADDRESS.fullmatch(access.address)
    if access is None or match is None:
        return
    base, offset = str(symbols.get(match[1], match[1] or 0)), match[2] or "0"
    address, guard, plain = f"{_PROBE}{number}", None, (instruction.guard or "").lstrip("!")
    yield PtxInstruction("add.u64", (address, base, offset), None, instruction.line)
    if plain:
        guard = f"{_GUARD}{number}"
        yield PtxInstruction("mov.pred", (guard, plain), None, instruction.line)
    probes[number] = AddressProbe(access, address, guard, (instruction.guard or "").startswith("!"))


def _plainer(instruction: PtxInstruction, symbols: Mapping[str, int]) -> PtxInstruction:
    """Return an equal instruction for the analysis, which knows no conversion of addresses and no variables."""
    if instruction.name == "cvta":
        kind = instruction.opcode.rpartition(".")[2]
        instruction = replace(instruction, opcode=f"mov.{kind}")
    if instruction.name != "mov" or not instruction.operands:
        return instruction
    to, *sources = instruction.operands
    return replace(instruction, operands=(to, *(str(symbols.get(text, text)) for text in sources)))


def _symbols(found: PtxFlow) -> dict[str, int]:
    declared = [s for s in (*found.kernel.variables, *found.kernel.statements) if isinstance(s, Declaration)]
    names = [name for d in declared if not d.is_register and d.space != ".param" for name, _ in d.names]
    # far apart, so that no two variables share a segment
    return {name: (at + 1) << 16 for at, name in enumerate(dict.fromkeys(names))}


def _pointers(
    found: PtxFlow, probes: Mapping[int, AddressProbe], known: Mapping[str, ParameterValue]
) -> list[tuple[str, int]]:
    """Return the unknown parameters to which indices are added to make an address, with their bits."""
    access_of = register_accesses(found.kernel)
    deciding = influential_registers(found, lambda number: not _reads_memory(found.code[number]))
    writers: dict[str, list[int]] = {}
    unfit = set(known)
    for number, (instruction, access) in enumerate(zip(found.code, access_of, strict=True)):
        for name in access.writes:
            writers.setdefault(name, []).append(number)
        if not deciding.isdisjoint(access.writes):  # a stand-in for it would decide a branch
            unfit.update(_parameters(instruction))
    waiting = [probe.address for probe in probes.values()]
    seen, pointers = set[str](), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            for number in writers.get(name, ()):
                instruction = found.code[number]
                pointers.update(_parameters(instruction))
                operands = instruction.operands
                places = (at for at in _FOLLOWED.get(instruction.name, ()) if at < len(operands))
                waiting += [access_of[number].own(name) for at in places for name in names_in(operands[at])]
    types = {name: scalar_type(each) for each in found.kernel.parameters or () for name, _ in each.names}
    bits = {name: kind[1] for name, kind in types.items() if kind is not None and name in pointers - unfit}
    return [(name, wide) for name, wide in bits.items() if wide in (32, 64)]  # narrower parameters hold no pointer


def _parameters(instruction: PtxInstruction) -> tuple[str, ...]:
    return names_in("".join(instruction.operands[1:])) if instruction.opcode.startswith("ld.param") else ()


def _reads_memory(instruction: PtxInstruction) -> bool:
    """Return whether the result does not tell what the address was."""
    access = memory_access(instruction)
    return access is not None and access.space != "param"
