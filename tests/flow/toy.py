"""An invented language of twelve instructions, which shows what control flow asks of a language and nothing more.

put R N        R = N                          hop L          on at label L
grow R N       R = R + N                      hop L if P     the same for lanes whose P is 1
tell P R N     P = 1 if R < N else 0          rest           the warp ends
who R          R = number of the lane         meet           all warps of the block wait for each other
where R        R = number of the thread       weave          as meet, but each lane arrives for itself
work, fetch    need a unit, C and L           pray           nobody knows
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from makespan.kernels.flow import (
    UNIFORM,
    Barrier,
    BasicBlock,
    Computation,
    ControlTransfer,
    Effect,
    Flow,
    GivenBound,
    Guard,
    InstructionSet,
    KernelSignature,
    KernelWarps,
    LaneSpread,
    LaneSpreads,
    Launch,
    LoopMark,
    ParameterValue,
    SourceOperand,
    Surroundings,
    ThreadRegisters,
    TimedCode,
)
from makespan.kernels.flow.arithmetic import truth_bit
from makespan.model.machine import PAPER

TOY = InstructionSet(
    ThreadRegisters(
        thread=("$x", "$y", "$z"),
        block_size=("$width", "$height", "$depth"),
        block=("$bx", "$by", "$bz"),
        grid_size=("$gx", "$gy", "$gz"),
        lane="$lane",
        lane_masks={},
    ),
    ends="rest",
    aligned_barrier="meet",
)
DRUM = KernelSignature("drum")
UNITS = {"work": "C", "fetch": "L", "meet": "C", "weave": "C"}
READS = {"who": "$lane", "where": "$x"}


@dataclass(frozen=True)
class Instruction:
    line: int
    opcode: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.opcode, *self.operands))


@dataclass(frozen=True)
class Kernel:
    name: str
    file: str
    line: int
    source: str
    labels: frozenset[str]


@dataclass(frozen=True)
class Semantics:
    code: tuple[Instruction, ...]
    instruction_set: InstructionSet = TOY
    signature: KernelSignature = DRUM

    def computation(self, number: int, parameters: Mapping[str, ParameterValue]) -> Computation | None:
        match self.code[number]:
            case Instruction(_, "put", (to, value)):
                return Computation((to,), (), lambda: (int(value),))
            case Instruction(_, "grow", (to, value)):
                return Computation((to,), (SourceOperand(to, None, 2**32 - 1),), lambda a: (a + int(value),))
            case Instruction(_, "tell", (to, register, value)):
                source = SourceOperand(register, None, 2**32 - 1)
                return Computation((to,), (source,), lambda a: (truth_bit(a < int(value)),))
            case Instruction(_, "who" | "where" as opcode, (to,)):
                return Computation((to,), (SourceOperand(READS[opcode], None, 2**32 - 1),), lambda a: (a,))
            case _:
                return None

    def spread(self, number: int, spreads: LaneSpreads, around: Surroundings) -> LaneSpread | None:
        match self.code[number]:
            case Instruction(_, "put"):
                return UNIFORM
            case Instruction(_, "who" | "where" as opcode):
                return around.specials.get(READS[opcode])
            case Instruction(_, "grow" | "tell", (*_, register, _)):
                found = spreads.get(register)
                return UNIFORM if found is not None and not found.varying else None
            case _:
                return None

    def step(self, number: int) -> tuple[str, int] | None:
        instruction = self.code[number]
        return (instruction.operands[0], int(instruction.operands[1])) if instruction.opcode == "grow" else None

    def refusal(self, number: int, threads: int | None) -> str | None:
        return "is answered by nobody" if self.code[number].opcode == "pray" else None

    def marks(self) -> Iterator[LoopMark]:
        return iter(())


def flow(text: str) -> Flow:
    """The control flow of a kernel: one instruction a line, perhaps behind `LABEL:`."""
    code: list[Instruction] = []
    labels: dict[int, str] = {}
    for line, words in enumerate(map(str.split, text.strip().splitlines()), 1):
        if words and words[0].endswith(":"):
            labels[len(code)] = words.pop(0)[:-1]
        if words:
            code.append(Instruction(line, words[0], tuple(words[1:])))
    jumps = {number for number, instruction in enumerate(code) if instruction.opcode in ("hop", "rest")}
    firsts = sorted({0, *labels, *(number + 1 for number in jumps)} - {len(code)})
    block_at = {first: number for number, first in enumerate(firsts)}
    at_label = {label: block_at[number] for number, label in labels.items()}
    blocks = []
    for number, (first, stop) in enumerate(zip(firsts, [*firsts[1:], len(code)], strict=True)):
        last = code[stop - 1]
        successors: tuple[int, ...] = (number + 1,)
        if last.opcode == "rest":
            successors = (len(firsts),)
        elif last.opcode == "hop":
            taken = at_label[last.operands[0]]
            successors = (taken, number + 1) if "if" in last.operands else (taken,)
        blocks.append(BasicBlock(first, stop, labels.get(first), code[first].line, successors))
    kernel = Kernel("drum", "drum.toy", 1, "drum.toy", frozenset(at_label))
    return Flow(kernel, code, [_effect(instruction) for instruction in code], tuple(blocks), Semantics(tuple(code)))


def _effect(instruction: Instruction) -> Effect:
    match instruction.opcode, instruction.operands:
        case "put", (to, _):
            return Effect(writes=(to,))
        case "grow", (to, _):
            return Effect(writes=(to,), reads=(to,))
        case "tell", (to, register, _):
            return Effect(writes=(to,), reads=(register,))
        case "who" | "where" as opcode, (to,):
            return Effect(writes=(to,), reads=(READS[opcode],))
        case "hop", (target,):
            return Effect(transfer=ControlTransfer.DIRECT, target=target)
        case "hop", (target, "if", predicate):
            return Effect(reads=(predicate,), guard=Guard(predicate), transfer=ControlTransfer.DIRECT, target=target)
        case "rest", ():
            return Effect(transfer=ControlTransfer.DIRECT, target="rest")
        case "meet", ():
            return Effect(barrier=Barrier.ALIGNED)
        case "weave", ():
            return Effect(barrier=Barrier.BY_LANE)
        case _:
            return Effect()


def warps(text: str, launch: Launch | None = None, *bounds: GivenBound) -> KernelWarps:
    """The warps of a kernel, with nothing to remark."""
    found = flow(text)
    units = tuple(UNITS.get(instruction.opcode) for instruction in found.code)
    return KernelWarps(TimedCode(found, PAPER, {}, units), launch or Launch(), bounds)
