"""Instructions to measure: chains in which each waits for the one before, and streams in which none waits for another.

A chain of n takes n latencies, a stream of n takes n issue delays, each with something that does not depend on n. The
first instruction waits for the first reading of the clock, and the second reading for the last instruction, so that no
assembler can move them apart.

Source: the technique of J. Meng et al. and of Z. Jia et al., Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking, 2018, to which the paper refers for latencies.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.microbench.samples import DELAY, LATENCY

STREAMS = 32  # registers of a stream, and so the distance of two instructions on the same register

LENGTHS = (64, 192)  # instructions of a chain or stream: multiples of `STREAMS`
FORMS = (LATENCY, DELAY)  # what a chain tells, and what a stream tells
_NEVER = "0x5bd1e995"  # a result that does not occur, which no assembler knows
_T, _V = "mov.b32 {x}, t;", "mov.b32 v, {x};"


@dataclass(frozen=True, slots=True)
class Link:
    """One or several instructions of a class that compute a register from itself.

    Args:
        register: its type; a chain begins with `{x}` made from the 32-bit number `t` by `begin`.
        steps: `{x}` is the register, `a` and `b` others of its type, `p` a predicate of its own.
        fold: puts 32 bits that depend on all of `{x}` into `v`.
    """

    register: str
    steps: tuple[str, ...]
    begin: str = _T
    fold: str = _V
    forms: tuple[str, ...] = FORMS


_WIDE = ("mov.b64 {x}, {{t, t}};", "mov.b64 {{v, w}}, {x}; xor.b32 v, v, w;")
_SINGLE = ("cvt.rn.f32.u32 {x}, t;", _V)
_DOUBLE = ("cvt.rn.f64.u32 {x}, t;", "cvt.rzi.u32.f64 v, {x};")
_POINTER = ("and.b32 v, t, 24; cvt.u64.u32 {x}, v; add.s64 {x}, {x}, memory;", "cvt.u32.u64 v, {x};")
_OFFSET = ("and.b32 {x}, t, 124;", _V)

# What is measured; all else must be given: an assembler removes copies (mov) and empty branches (bra).
LINKS: Mapping[InstructionKind, Link] = MappingProxyType(
    {
        InstructionKind.F16: Link("b32", ("fma.rn.f16x2 {x}, {x}, a, b;",)),
        InstructionKind.F32: Link("f32", ("fma.rn.f32 {x}, {x}, a, b;",), *_SINGLE),
        InstructionKind.F64: Link("f64", ("fma.rn.f64 {x}, {x}, a, b;",), *_DOUBLE),
        InstructionKind.I32: Link("b32", ("add.s32 {x}, {x}, a;", "xor.b32 {x}, {x}, b;")),
        InstructionKind.I32_MUL: Link("b32", ("mad.lo.s32 {x}, {x}, a, b;",)),
        InstructionKind.I64: Link("b64", ("add.s64 {x}, {x}, a;", "xor.b64 {x}, {x}, b;"), *_WIDE),
        InstructionKind.I64_MUL: Link("b64", ("mad.lo.s64 {x}, {x}, a, b;",), *_WIDE),
        InstructionKind.INT_DIV: Link("b32", ("div.s32 {x}, a, {x};",)),
        InstructionKind.F32_DIV: Link("f32", ("div.rn.f32 {x}, a, {x};",), *_SINGLE),
        InstructionKind.SHIFT: Link("b32", ("shf.l.wrap.b32 {x}, {x}, a, b;",)),
        InstructionKind.SETP: Link("b32", ("setp.lt.s32 {p}, {x}, a;", "selp.b32 {x}, b, a, {p};")),
        InstructionKind.CVT: Link("b32", ("cvt.rn.f32.s32 {x}, {x};", "cvt.rzi.s32.f32 {x}, {x};")),
        InstructionKind.SFU: Link("f32", ("ex2.approx.ftz.f32 {x}, {x};",), *_SINGLE),
        InstructionKind.SHARED: Link("b32", ("ld.volatile.shared.u32 {x}, [{x}];",), *_OFFSET),
        InstructionKind.GLOBAL: Link("b64", ("ld.global.u64 {x}, [{x}];",), *_POINTER, forms=(DELAY,)),
        InstructionKind.WARP: Link("b32", ("shfl.sync.idx.b32 {x}, {x}, {x}, 31, -1;",)),
        InstructionKind.BAR: Link("b32", ("bar.sync 0;",), forms=(DELAY,)),
    }
)


def kernels() -> Iterator[tuple[str, InstructionKind, int]]:
    """Yield form, class and number of instructions of every kernel."""
    for kind, link in LINKS.items():
        yield from ((form, kind, length) for form in link.forms for length in LENGTHS)


def chain_text(form: str, link: Link, length: int, *, in_rounds: bool = False) -> list[str]:
    """Return the PTX between two clock reads, `start` and `stop`; it needs registers seed, zero, memory and result.

    The caller passes 0 in `zero`. Lanes differ: an assembler knows what uniform is. For loads, it passes in `memory`
    the address of four 64-bit words that hold their own addresses, and has 32 shared words that hold their own offsets,
    at shared address 0.

    Args:
        in_rounds: repeat it as often as a register `rounds` says, in a loop, across whose end no instruction is moved:
            else assemblers put those on the same register close together, to need fewer registers.
    """
    names = ["x"] if form == LATENCY else [f"x{number}" for number in range(STREAMS)]
    lines = [
        f".reg .{link.register} {', '.join(['a', 'b', *names])};",
        ".reg .b32 t, v, w, r;",
        f".reg .pred q, {', '.join(f'p{name}' for name in names)};",
        "mov.u64 start, %clock64;",
        "cvt.u32.u64 t, start;",
        "and.b32 t, t, zero;",  # makes 0 of the clock, and ties what follows to its reading
        "mov.u32 v, %laneid;",  # lanes differ, so that no uniform instruction takes the place
        "add.u32 t, t, v;",
        "add.u32 t, t, seed;",
        link.begin.format(x="a"),
        "add.u32 t, t, seed;",
        link.begin.format(x="b"),
    ]
    for name in names:
        lines += ["add.u32 t, t, seed;", link.begin.format(x=name)]
    steps = _repeat_steps(link.steps, names, length)
    lines += _loop_lines(steps) if in_rounds else steps
    lines.append("mov.u32 r, 0;")
    for name in names:
        lines += [link.fold.format(x=name), "xor.b32 r, r, v;"]
    return [
        *lines,
        "mov.u32 result, r;",
        "mov.u64 stop, start;",
        f"setp.ne.u32 q, r, {_NEVER};",  # always true: the second reading waits for the result
        "@q mov.u64 stop, %clock64;",
    ]


def _loop_lines(steps: Iterator[str]) -> Iterator[str]:
    yield from (".reg .b32 left;", "mov.u32 left, rounds;", "again:", '.pragma "nounroll";')
    yield from steps
    yield from ("sub.u32 left, left, 1;", "setp.ne.u32 q, left, 0;", "@q bra again;")


def _repeat_steps(steps: tuple[str, ...], names: list[str], length: int) -> Iterator[str]:
    """Yield `length` instructions: a chain step by step, a stream one step on every register before the next step."""
    left = length
    while left:
        for step in steps:
            for name in names[:left]:
                yield step.format(x=name, p=f"p{name}")
                left -= 1
