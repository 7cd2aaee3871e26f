"""The program that measures one multiprocessor: chains, streams, conflicts of banks, walks, pairs and logs of issue.

Chains and streams are those of `chains`; here instructions are named as the operations of machine files. What shows
lapses, queues and late lines is in `sm_lapses`.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, cycle
from types import MappingProxyType

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.microbench.chains import LINKS, STREAMS, Link, chain_text
from makespan.estimates.microbench.programs import REPEATS, fill_template, quoted_ptx
from makespan.estimates.microbench.samples import DELAY, LATENCY, SampleColumns
from makespan.hardware.sm_lapses import (
    CONSTANTS,
    GAPS,
    LOADS,
    MEASURED,
    READERS,
    WORKER,
    WORKERS,
    line_text,
    loads_text,
    worker_text,
)
from makespan.host.errors import InputError

COUNTS = (64, 192)
"""The numbers of instructions of chains and streams. A round of a stream has `STREAMS` of them."""
APART = 4
"""The number of partitions that is assumed: warps whose numbers are equal modulo it share one, unless pairs differ."""
ONE_WARPS, ALL_WARPS = (1, 2, 4, 6), (4, 8)
"""The numbers of warps that issue a stream, of one partition and of all. A block has no registers for more."""
PAIRED = 8
"""The number of warps of which every two are timed together."""
CONFLICTS = (1, 2, 4, 8, 16, 32)
"""The numbers of distinct words of a bank that the lanes of a load read."""
LOG_WARPS, LOG_STEPS = tuple(range(1, 9)), 24
"""A block has 32 warps, 8 of each of four partitions."""
CLOCK, ONE, ALL, NOBODY = "clock", "one", "all", "-"
"""The names of: the subject of a log; streams of one partition and of all; a missing reader."""

_NARROW: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fp32": ("fma.rn.f32 {x}, {x}, a, b;",),
        "int": ("lop3.b32 {x}, {x}, a, b, 0x6a;",),
        "int-multiply": ("mad.lo.s32 {x}, {x}, a, b;",),
        "bit-count": ("popc.b32 {x}, {x};",),
        "sfu": ("ex2.approx.ftz.f32 {x}, {x};",),
        "shuffle": ("shfl.sync.idx.b32 {x}, {x}, {x}, 31, -1;",),
    }
)
"""From a register of 32 bits to itself, whatever its type, so that every one can read every other."""
SHARED = Link(
    "b32",
    ("ld.volatile.shared.u32 {x}, [{x}];",),
    "mov.b64 {{v, w}}, memory; mov.u32 r, %laneid; rem.u32 r, r, w; mad.lo.u32 {x}, r, 128, v;",
)
"""Loads of words that hold their own addresses: so many words of one bank as the upper half of `memory` says."""
SINGLE: Mapping[str, Link] = MappingProxyType(
    {name: Link("b32", steps) for name, steps in _NARROW.items()} | {"fp64": LINKS[InstructionKind.F64]}
)
"""Operations that are measured as readers of themselves, and in streams."""
_INT = _NARROW["int"]
BETWEEN: Mapping[str, tuple[Link, ...]] = MappingProxyType(
    {
        "predicate": (LINKS[InstructionKind.SETP],),
        "convert": (
            Link("b32", ("cvt.rzi.s32.f32 {x}, {x};", *_INT)),
            Link("b32", ("cvt.rn.f32.s32 {x}, {x};", *_INT)),
        ),
    }
)
"""Operations of which no chain has one opcode alone, with an `int` between two of them.

A mean over two opcodes would hide the slower one. So 16-bit floating point is not measured: for compute capability 8.0
and 9.0 an assembler makes two opcodes of one instruction by turns.
"""
LAPSES = "lapses"
"""Stands among the operations for all kernels of `sm_lapses`."""
OPERATIONS = (*SINGLE, *BETWEEN, "shared", LAPSES)
LEVELS = ("L1", "L2", "DRAM")

CHAIN, STREAM, BANK, CHASE, PAIR, LOG = "chain", "stream", "bank", "memory", "pair", "log"
LAPSE, QUEUE, LINE = "lapse", "queue", "line"
TABLE = SampleColumns(
    ("measure", "name", "with", "warps", "count"),
    ("warps", "count"),
    ("cycles",),
    {
        CHAIN: tuple(name for name in OPERATIONS if name != LAPSES),
        STREAM: tuple(SINGLE),
        BANK: ("shared",),
        CHASE: LEVELS,
        PAIR: ("fp32",),
        LOG: (CLOCK,),
        LAPSE: tuple(WORKERS),
        QUEUE: ("shared",),
        LINE: tuple(GAPS),
    },
)
"""The column `with` has the reader of a chain, the words of a bank, the partitions of a stream or queue, A-B of a pair,
RUN.WARP of a log, whose time is measured beside a worker, or the execution of straight-line code."""


def chains(names: Collection[str] = OPERATIONS) -> Iterator[tuple[str, str, Link]]:
    """Yield operation, reader, and a chain in which each waits for the other."""
    for name, link in SINGLE.items():
        if name in names:
            yield name, name, link
    for (one, first), (other, second) in combinations(_NARROW.items(), 2):
        if one in names and other in names:
            yield one, other, Link("b32", (first[0], second[0]))
    if "int" in names:
        yield from ((name, "int", link) for name, links in BETWEEN.items() for link in links if name in names)


def sm_source(names: Collection[str] = OPERATIONS) -> dict[str, str]:
    """Return the program in CUDA, with the operations that are asked for.

    Raises:
        InputError: an operation that is not measured.
    """
    if unknown := sorted(set(names) - set(OPERATIONS)):
        raise InputError(f"no program measures {unknown[0]}; known: {', '.join(OPERATIONS)}")
    made = [(CHAIN, name, reader, LATENCY, link) for name, reader, link in chains(names)]
    made += [(STREAM, name, ONE, DELAY, link) for name, link in SINGLE.items() if name in names]
    made += [(CHAIN, "shared", NOBODY, LATENCY, SHARED), (BANK, "shared", NOBODY, DELAY, SHARED)] * ("shared" in names)
    kernels, tests = [], []
    for number, (measure, name, reader, form, link) in enumerate(made):
        function = f"{measure}_{name}_{reader.strip('-')}_{number}".replace("-", "_")
        if form == DELAY:
            made_of = {function: chain_text(form, link, STREAMS, in_rounds=True)}
        else:
            made_of = {f"{function}_{count}": chain_text(form, link, count) for count in COUNTS}
        kernels += [fill_template("sm_kernel.cu", name=own, body=quoted_ptx(body)) for own, body in made_of.items()]
        several = cycle(made_of)  # the one kernel of a stream for all counts
        tests += [f'        {{"{measure}", "{name}", "{reader}", {count}, {next(several)}}},' for count in COUNTS]
    for function, body, own in lapse_kernels() if LAPSES in names else ():
        kernels.append(fill_template("sm_kernel.cu", name=function, body=quoted_ptx(body)))
        tests += [
            f'        {{"{measure}", "{name}", "{reader}", {count}, {function}}},'
            for measure, name, reader, count in own
        ]
    kernels.append(fill_template("sm_kernel.cu", name="log_clock", body=quoted_ptx(_log())))
    text = fill_template(
        "sm.cu",
        kernels="".join(kernels),
        tests="\n".join(tests),
        repeats=REPEATS,
        apart=APART,
        paired=PAIRED,
        streams=STREAMS,
        longest=max(COUNTS),
        steps_logged=LOG_STEPS,
        most_logged=max(LOG_WARPS),
        one_warps=", ".join(map(str, ONE_WARPS)),
        all_warps=", ".join(map(str, ALL_WARPS)),
        conflicts=", ".join(map(str, CONFLICTS)),
        worker=WORKER,
        constants=CONSTANTS,
    )
    return {"sm.cu": text}


def lapse_kernels() -> Iterator[tuple[str, list[str], list[tuple[str, str, str, int]]]]:
    """Yield the name of a kernel, its PTX, and its tests as measure, name, reader and count."""
    for name in WORKERS:
        whose = [reader for reader in READERS if (name, reader) in MEASURED]
        tests = [(LAPSE, name, reader, count) for reader in whose for count in COUNTS]
        yield f"{LAPSE}_{name}".replace("-", "_"), worker_text(name), tests
    for count in LOADS:
        yield f"{QUEUE}_{count}", loads_text(count), [(QUEUE, "shared", NOBODY, count)]
    for name, gaps in GAPS.items():
        yield f"{LINE}_{name}", line_text(gaps), [(LINE, name, NOBODY, gaps)]


def _log() -> list[str]:
    """Return the code of a warp that reads the clock again and again, into registers first."""
    notes = range(LOG_STEPS)
    return [
        f".reg .b32 {', '.join(f'c{step}' for step in notes)};",
        ".reg .b64 at;",
        "mov.u64 start, %clock64;",
        *(f"mov.u32 c{step}, %clock;" for step in notes),
        "mov.u64 stop, %clock64;",
        "mov.u64 at, notes;",
        *(f"st.global.u32 [at+{4 * step}], c{step};" for step in notes),
        "mov.u32 result, 0;",
    ]
