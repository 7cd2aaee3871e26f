"""Kernels that show lapses of schedulers, queues before units, and lines of code that are late.

A *worker* is a warp that executes items, such as multiply-adds whose registers lie in one bank. What an item costs is
seen by its own time, or by the time of two other warps that have an instruction ready in every cycle. The same items
without the mechanism are their control.

An assembler chooses registers, but the two halves of a pair of 64 bits lie in an even register and in the odd one
behind it. So values that are loaded and stored in pairs have a bank that is known, where banks are even and odd.

Source: the mechanisms are those of R. Huerta et al., Analyzing Modern NVIDIA GPU Cores, MICRO 2025, listing 1, table 1
and sections 5.1 to 5.4.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

OWN, SAME, OTHER = READERS = "own", "same", "other"
"""Whose time is measured: the worker's, that of warps of its partition, or that of warps of another partition."""
BEHIND = (16, 24)
"""Numbers of loads with which all queues are full."""
LOADS = (*range(1, 13), *BEHIND)
"""The numbers of loads that a warp issues at once."""
GAPS: Mapping[str, int] = MappingProxyType({"short": 64, "long": 2048})
"""The readings of the clock of straight-line code. The long one has 64 KiB or more, which no first
cache of instructions holds."""
FIRST, AGAIN = "first", "again"
"""The first time that a launch executes straight-line code, and the second time."""
WORKER = 8
"""The number of the worker, of warps 0 to 8: the youngest, which schedulers that are known prefer."""
CONSTANTS = 2048
"""The bytes of constants of which each item of `constants` reads another line of 64 bytes."""
_PAIRS, _FEW, _ITEMS, _NEVER = 16, 4, 32, "0x5bd1e995"


def _multiply_add(b: str, c: str) -> str:
    return f"fma.rn.f32 {{x}}, {{x}}, {b}, {c};"


_ONE_READ = _multiply_add("0f3F9D70A4", "{y}")
_FEW_READS, _LOGIC = _ONE_READ.replace("{x}", "{few}"), "{logic}"
_CONSTANT = ("ld.const.b32 k{i}, [constants+{at}];", _multiply_add("k{i}", "{y}"))
_STORE = "st.volatile.global.b32 [notes], {y};"
WORKERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reads-1": (_ONE_READ,),
        "reads-2": (_multiply_add("{x1}", "{y}"),),
        "reads-3": (_multiply_add("{x1}", "{x2}"),),
        "plain": (_FEW_READS, _LOGIC),
        "multiply": ("mad.lo.s32 {few}, {few}, 0x5bd1e995, {y};", _LOGIC),
        "spaced": (_FEW_READS, _LOGIC) * 5,
        "special": ("ex2.approx.ftz.f32 {beyond}, {beyond};", _LOGIC, *(_FEW_READS, _LOGIC) * 4),
        "constant": tuple(step.replace("{at}", "{near}") for step in _CONSTANT),
        "constants": tuple(step.replace("{at}", "{far}") for step in _CONSTANT),
        "load": ("ld.volatile.shared.b32 {any}, [v];",),
        "store": (_STORE,),
        "fence-block": (_STORE, "membar.cta;"),
        "fence-gpu": (_STORE, "membar.gl;"),
        "fence-system": (_STORE, "membar.sys;"),
    }
)
"""The instructions of an item, by the name of the worker. `{x}` lies in an even register, and `{y}` in an odd one."""

MEASURED = frozenset(
    {
        *((name, OWN) for name in WORKERS if name != "load" and not name.startswith(("store", "fence"))),
        *((name, SAME) for name in ("reads-1", "constant", "constants", "load")),
        *((name, OTHER) for name in ("store", "fence-block", "fence-gpu", "fence-system")),
    }
)
"""The workers, each with whose time is measured."""


def worker_text(name: str) -> list[str]:
    """Return the PTX of a worker and of the warps beside it, between readings of the clock as in `chain_text`.

    The worker executes `rounds` times 32 items; warps beside it execute as many rounds of plain instructions as the
    upper half of `memory` says.
    """
    return [
        f".reg .b32 {', '.join(f'x{i}, y{i}, z{i}' for i in range(_PAIRS))};",
        f".reg .b32 v, w, r, left, k<{_ITEMS}>;",
        ".reg .pred q;",
        "mov.b64 {v, w}, memory;",
        "mov.u32 r, %tid.x;",
        f"setp.lt.u32 q, r, {32 * WORKER};",
        "and.b32 r, r, 31;",  # lanes differ, so that no uniform instruction takes the place
        "mad.lo.u32 v, r, 128, v;",
        *(f"ld.volatile.shared.v2.b32 {{x{i}, y{i}}}, [v+{8 * i}];" for i in range(_PAIRS)),
        *(f"add.u32 z{i}, x{i}, seed;" for i in range(_PAIRS)),
        "mov.u64 start, %clock64;",
        "@q bra beside;",
        *_round_lines("items", "rounds", WORKERS[name]),
        "bra.uni done;",
        "beside:",
        *_round_lines("others", "w", WORKERS["plain"]),
        "done:",
        "mov.u32 r, 0;",
        *(f"st.volatile.shared.v2.b32 [v+{8 * i}], {{x{i}, y{i}}};" for i in range(_PAIRS)),
        *(f"xor.b32 r, r, {each}{i}; " for i in range(_PAIRS) for each in "xz"),
        "mov.u32 result, r;",
        "mov.u64 stop, start;",
        f"setp.ne.u32 q, r, {_NEVER};",  # always true: the second reading waits for the result
        "@q mov.u64 stop, %clock64;",
    ]


def _round_lines(label: str, rounds: str, steps: tuple[str, ...]) -> Iterator[str]:
    yield from (f"mov.u32 left, {rounds};", f"{label}:", '.pragma "nounroll";')
    for i in range(_ITEMS):
        at, beyond = i % _PAIRS, _FEW + i % (_PAIRS - _FEW)
        names = {"x": f"x{at}", "x1": f"x{(i + 1) % _PAIRS}", "x2": f"x{(i + 2) % _PAIRS}", "y": f"y{at}"}
        names |= {"any": f"{'xy'[i // _PAIRS]}{at}", "beyond": f"x{beyond}"}
        for number, step in enumerate(steps):
            turn = i * len(steps) // 2 + number // 2
            # two different operations in turn, since an assembler makes one of equal ones
            logic = ("xor.b32 z{0}, z{0}, 0x1234567;", "shr.u32 z{0}, z{0}, 1;")[turn // _FEW % 2]
            few = {"few": f"x{turn % _FEW}", "logic": logic.format(turn % _FEW)}
            yield step.format(i=i, near=4 * at, far=CONSTANTS // _ITEMS * i, **names, **few)
    yield from ("sub.u32 left, left, 1;", "setp.ne.u32 q, left, 0;", f"@q bra {label};")


def loads_text(count: int) -> list[str]:
    """Return the PTX of so many loads at once, which read the clock before the first and behind the last."""
    loads = range(count)
    return [
        f".reg .b32 v, w, r, {', '.join(f'y{i}' for i in loads)};",
        "mov.b64 {v, w}, memory;",
        "mov.u32 r, %laneid;",
        "mad.lo.u32 v, r, 4, v;",
        "mov.u64 start, %clock64;",
        *(f"ld.volatile.shared.u32 y{i}, [v+{128 * (i % 32)}];" for i in loads),
        "mov.u64 stop, %clock64;",
        "mov.u32 r, 0;",
        *(f"xor.b32 r, r, y{i};" for i in loads),
        "mov.u32 result, r;",
    ]


def line_text(gaps: int) -> list[str]:
    """Return the PTX of straight-line code that keeps the longest time from one reading of the clock to the next.

    The longest time of the first execution is left in `notes`, and that of the second one behind it.
    """
    lines = [
        ".reg .b32 m, t, c0, c1;",
        ".reg .pred p;",
        "mov.u32 m, 0;",
        "mov.u32 t, %laneid;",
        "add.u32 t, t, seed;",
        # always true, but of each lane: else an assembler reads the clock into a uniform register, which is slow
        f"setp.ne.u32 p, t, {_NEVER};",
        "mov.u64 start, %clock64;",
        "mov.u32 c0, %clock;",
        "mov.u32 c1, c0;",
    ]
    for gap in range(gaps):
        now, last = f"c{(gap + 1) % 2}", f"c{gap % 2}"
        lines += [f"@p mov.u32 {now}, %clock;", f"sub.u32 t, {now}, {last};", "max.u32 m, m, t;"]
    return [
        *lines,
        "mov.u64 stop, %clock64;",
        "ld.global.u32 t, [notes+4];",
        "st.global.u32 [notes], t;",
        "st.global.u32 [notes+4], m;",
        "mov.u32 result, m;",
    ]
