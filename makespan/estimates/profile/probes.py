"""A kernel whose memory accesses leave their addresses behind, and its pointers with addresses that stand for them.

Before every access, an instruction puts its address into a register of its own, so that the value there is that at the
access, whatever follows. Pointers that the launch does not tell get addresses far apart, aligned as those of
`cudaMalloc` are; they decide no branch, or else they stay unknown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from makespan.estimates.profile.opcodes import MemoryAccess, memory_access
from makespan.kernels.flow import Launch, ParameterValue, influential_registers
from makespan.kernels.ptx import (
    Declaration,
    PtxAccess,
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
    number = 0
    for statement in found.kernel.statements:
        if isinstance(statement, PtxInstruction):
            access = memory_access(statement)
            made = None if access is None else _probe(statement, access, number, symbols)
            if made is not None:
                probes[number], before = made
                statements += before
                original += [None] * len(before)
            statements.append(_plainer(statement, symbols))
            original.append(number)
            number += 1
        else:
            statements.append(statement)
    with_probes = flow(replace(found.kernel, body=tuple(statements)))
    known = known_parameters(found.kernel, launch)
    pointers = _pointers(with_probes, probes, known)
    stand_ins = {
        name: ParameterValue((at + 1) << 24 if bits == 32 else (at + 1) << 40, bits) for at, (name, bits) in pointers
    }
    return Probed(with_probes, tuple(original), probes, {**known, **stand_ins}, frozenset(stand_ins))


def _probe(
    instruction: PtxInstruction, access: MemoryAccess, number: int, symbols: Mapping[str, int]
) -> tuple[AddressProbe, list[Statement]] | None:
    """Return the probe of an access, and the instructions that put the address and the guard into it."""
    match = _ADDRESS.fullmatch(access.address)
    if match is None or access.space == "param":
        return None
    base, offset = str(symbols.get(match[1], match[1] or 0)), match[2] or "0"
    address = f"{_PROBE}{number}"
    before: list[Statement] = [PtxInstruction("add.u64", (address, base, offset), None, instruction.line)]
    guard, plain = None, (instruction.guard or "").lstrip("!")
    if plain:
        guard = f"{_GUARD}{number}"
        before.append(PtxInstruction("mov.pred", (guard, plain), None, instruction.line))
    return AddressProbe(access, address, guard, (instruction.guard or "").startswith("!")), before


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
) -> list[tuple[int, tuple[str, int]]]:
    """Return the unknown parameters to which indices are added to make an address, with a number and their bits."""
    declared = {
        name: scalar_type(parameter) for parameter in found.kernel.parameters or () for name, _ in parameter.names
    }
    access_of = register_accesses(found.kernel)
    deciding = influential_registers(found, lambda number: not _reads_memory(found.code[number]))
    writers: dict[str, list[int]] = {}
    decisive = set[str]()
    for number, (instruction, access) in enumerate(zip(found.code, access_of, strict=True)):
        for name in access.writes:
            writers.setdefault(name, []).append(number)
        if not deciding.isdisjoint(access.writes):  # a stand-in for it would decide a branch
            decisive.update(_parameters(instruction))
    waiting = [probe.address for probe in probes.values()]
    seen, pointers = set[str](), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            for number in writers.get(name, ()):
                pointers.update(_parameters(found.code[number]))
                waiting += _sources(found.code[number], access_of[number])
    # narrower parameters hold no pointer
    wide = {name: kind[1] for name, kind in declared.items() if kind is not None and kind[1] in (32, 64)}
    return list(enumerate((name, bits) for name, bits in wide.items() if name in pointers - decisive - known.keys()))


def _parameters(instruction: PtxInstruction) -> tuple[str, ...]:
    if not instruction.opcode.startswith("ld.param"):
        return ()
    return names_in("".join(instruction.operands[1:]))


def _reads_memory(instruction: PtxInstruction) -> bool:
    """Return whether the result does not tell what the address was."""
    access = memory_access(instruction)
    return access is not None and access.space != "param"


def _sources(instruction: PtxInstruction, access: PtxAccess) -> list[str]:
    """Return the registers through which a pointer may have come."""
    texts = [instruction.operands[at] for at in _FOLLOWED.get(instruction.name, ()) if at < len(instruction.operands)]
    return [access.own(name) for text in texts for name in names_in(text)]
