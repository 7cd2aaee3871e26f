"""Where a routine goes: labels by scope, successors of instructions, and where diverged lanes meet again.

Instructions are numbered in text order; the end of the routine is the number behind the last.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from makespan.kernels.ptx.module import Brace, Declaration, Directive, PtxInstruction, PtxKernel, PtxLabel
from tests.ptx_interpreter.faults import UnsupportedInstruction

LEAVES = ("ret", "exit", "trap")
_LIST = re.compile(r"\.(branchtargets|calltargets) (.*?) ?;?$")


@dataclass(slots=True)
class Scope:
    """A `{ }` block: what it declares, and the block around it."""

    outer: "Scope | None"
    labels: dict[str, int] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declarations: list[Declaration] = field(default_factory=list)

    def label(self, name: str) -> int | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.outer
        return None

    def list(self, name: str) -> tuple[str, ...]:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.lists:
                return scope.lists[name]
            scope = scope.outer
        raise UnsupportedInstruction(f"no list of targets {name}")


@dataclass(frozen=True, slots=True)
class Routine:
    """A kernel or function with its control flow.

    Args:
        scopes: by instruction, the block that it stands in; the first declares the body.
        labels: name, line and instruction of every label, in text order.
        targets: by instruction, where its jumps lead: of a `brx.idx` the list, of a `bra` one place.
        meets: by instruction, the first instruction that all ways from here pass: its immediate post-dominator.
    """

    kernel: PtxKernel
    instructions: tuple[PtxInstruction, ...]
    scopes: tuple[Scope, ...]
    all_scopes: tuple[Scope, ...]
    labels: tuple[tuple[str, int, int], ...]
    targets: dict[int, tuple[int, ...]]
    meets: tuple[int, ...]

    @property
    def end(self) -> int:
        return len(self.instructions)

    @property
    def outermost(self) -> Scope:
        """The body itself."""
        return self.all_scopes[0]


def routine(kernel: PtxKernel) -> Routine:
    instructions = kernel.instructions
    scopes, every, labels = _scopes(kernel)
    targets = {
        number: _targets(instruction, scopes[number], kernel)
        for number, instruction in enumerate(instructions)
        if instruction.name in ("bra", "brx")
    }
    successors = [_successors(number, instruction, targets) for number, instruction in enumerate(instructions)]
    meets = meeting_points([*successors, ()])
    return Routine(kernel, instructions, tuple(scopes), tuple(every), tuple(labels), targets, meets)


def _scopes(kernel: PtxKernel) -> tuple[list[Scope], list[Scope], list[tuple[str, int, int]]]:
    current = Scope(None)
    every: list[Scope] = [current]
    of_instruction: list[Scope] = []
    labels: list[tuple[str, int, int]] = []
    last = ""
    for statement in kernel.statements:
        match statement:
            case Brace(opens=True):
                current = Scope(current)
                every.append(current)
            case Brace():
                assert current.outer is not None
                current = current.outer
            case PtxLabel(name=name, line=line):
                last = name
                current.labels[name] = len(of_instruction)
                labels.append((name, line, len(of_instruction)))
            case Declaration():
                current.declarations.append(statement)
            case Directive(text=text) if found := _LIST.match(text):
                current.lists[last] = tuple(name.strip() for name in found[2].split(","))
            case PtxInstruction():
                of_instruction.append(current)
            case _:
                pass
    return of_instruction, every, labels


def _targets(instruction: PtxInstruction, scope: Scope, kernel: PtxKernel) -> tuple[int, ...]:
    if instruction.name == "brx":
        names = scope.list(instruction.operands[1])
    else:
        names = instruction.operands[:1]
    found = tuple(scope.label(name) for name in names)
    if None in found:
        raise UnsupportedInstruction(f"{kernel.file}:{instruction.line}: {instruction}: no such label")
    return tuple(number for number in found if number is not None)


def _successors(number: int, instruction: PtxInstruction, targets: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Where a lane may be after this instruction; -1 stands for having left the routine."""
    always = instruction.guard is None
    if instruction.name in ("bra", "brx"):
        return targets[number] if always else (*targets[number], number + 1)
    if instruction.name in LEAVES:
        return (-1,) if always else (-1, number + 1)
    return (number + 1,)


def meeting_points(successors: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The immediate post-dominator of every node but the last, which is the end; -1 and no successor mean the end too.

    Post-dominators of a node: itself, and what post-dominates all successors; iterated from "all" to the greatest
    solution. Sets are integers, bit i for node i. A node from which no way leads to the end meets only there.

    Source: Muchnick, "Advanced Compiler Design and Implementation", 1997, section 7.3, on the reversed graph.
    """
    end = len(successors) - 1
    ways = [[end if s < 0 else s for s in after] for after in successors]
    leads = _leads_to(ways, end)
    everything = (1 << (end + 1)) - 1
    after: list[int] = [everything] * end + [1 << end]
    changed = True
    while changed:
        changed = False
        for node in reversed(range(end)):
            common = everything
            for way in ways[node]:
                if way in leads:
                    common &= after[way]
            found = common | 1 << node
            if found != after[node]:
                after[node], changed = found, True
    sizes = [found.bit_count() for found in after]
    return tuple(
        ways[node][0] if len(ways[node]) == 1 else _nearest(node, after, sizes, end) if node in leads else end
        for node in range(end)
    )


def _leads_to(ways: list[list[int]], end: int) -> set[int]:
    before: list[list[int]] = [[] for _ in ways]
    for node, after in enumerate(ways):
        for way in after:
            before[way].append(node)
    found, stack = {end}, [end]
    while stack:
        for node in before[stack.pop()]:
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


def _nearest(node: int, after: list[int], sizes: list[int], end: int) -> int:
    """Of the post-dominators of a node, which form a chain, the one with all others behind it."""
    others = after[node] & ~(1 << node)
    wanted = sizes[node] - 1
    while others:
        low = others & -others
        candidate = low.bit_length() - 1
        if sizes[candidate] == wanted and after[candidate] == after[node] & ~(1 << node):
            return candidate
        others ^= low
    return end
