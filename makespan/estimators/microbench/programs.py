"""Programs that measure; what they print is read by `samples` and fitted by `fit`.

Source of the three memory kernels: an undated slide deck by Ostapenko, Southern Federal University, whose captions of
the two departure kernels are interchanged: consecutive addresses are the coalesced ones. A chain of dependent loads
stands in for the deck's sum, whose loads do not wait for each other; the sum remains as an option.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from string import Template
from types import MappingProxyType
from typing import Literal

from makespan.errors import InputError
from makespan.estimators.gpu_keys import MAX_BLOCK_WARPS
from makespan.estimators.microbench.chains import body, kernels

Language = Literal["cuda", "opencl", "ptx"]
Chase = Literal["chase", "sum"]

SUFFIXES: Mapping[Language, str] = MappingProxyType({"cuda": ".cu", "opencl": ".cl", "ptx": ".ptx"})
SPREAD = 33
"""Elements between the addresses of neighbouring threads: odd, and 132 bytes, so that each has a segment of its own."""
ROUNDS, UNROLLED = 20, 50
"""Rounds of a throughput kernel, and the operations of each."""
REPEATS = 5
STEPS = (256, 1024)
"""Lengths of the walks through the levels of memory."""
GRIDS = (1, 8, 64, 512, 4096)
MAX_WARPS = 32
VECTOR = ("f32_add", "f32_sub", "f32_mul", "f32_div")
"""Operations that are measured on vectors of four, too; their kernels have names that end in 4."""
_C: Mapping[str, str] = MappingProxyType(
    {
        "f32_add": "{s} + b",
        "f32_sub": "{s} - b",
        "f32_mul": "{s} * b",
        "f32_div": "b / {s}",
        "sin": "sin({s})",
        "native_sin": "native_sin({s})",
    }
)
_CUDA = MappingProxyType({**_C, "sin": "sinf({s})", "native_sin": "__sinf({s})"})
_STEP: Mapping[tuple[Language, Chase], str] = MappingProxyType(
    {
        ("cuda", "chase"): "        at = load(x + at);",
        ("cuda", "sum"): "        sum += load(x + at);\n        at += h;",
        ("opencl", "chase"): "        at = x[at];",
        ("opencl", "sum"): "        sum += x[at];\n        at += h;",
        ("ptx", "chase"): "    mov.u32 %at, %value;",
        ("ptx", "sum"): "    add.u32 %sum, %sum, %value;\n    add.u32 %at, %at, %h;",
    }
)
"""One step of the latency kernel."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What the memory kernels do.

    Args:
        loads: independent loads of a thread, K; a block of W warps makes K W requests.
        warps: sizes of the block, at least four of them, for the line that is fitted.
        steps: lengths of the walk of one thread, two or more, so that the cost of a launch cancels.
        caches: the latency kernel walks through so many times the last cache, and as much is overwritten before a run.
        latency: `chase` follows addresses that were loaded; `sum` adds values up, as the deck does.
    """

    warp_size: int = 32
    loads: int = 8
    warps: tuple[int, ...] = (4, 8, 16, 32)
    steps: tuple[int, ...] = (1024, 4096)
    repeats: int = REPEATS
    caches: int = 4
    latency: Chase = "chase"


def filled(file: str, /, **values: object) -> str:
    """A template of the package with its places filled; `$cuda_check` needs no value."""
    folder = resources.files("makespan.estimators.microbench") / "templates"
    check = (folder / "check.cu").read_text("utf-8") if file.endswith(".cu") else ""
    return Template((folder / file).read_text("utf-8")).substitute(values, cuda_check=check)


def memory_source(language: Language, plan: MemoryPlan) -> dict[str, str]:
    """The kernels `latency`, `coalesced` and `uncoalesced`; in CUDA with a host program that prints samples as CSV."""
    common = {
        "loads": plan.loads,
        "spread": SPREAD,
        "warp_size": plan.warp_size,
        "latency": _STEP[language, plan.latency],
    }
    name = f"memory{SUFFIXES[language]}"
    if language == "ptx":
        departures = "".join(_ptx_departures(name, plan.loads) for name in ("coalesced", "uncoalesced"))
        return {name: filled(name, **common, departures=departures)}
    read = "load(x + {})" if language == "cuda" else "x[{}]"
    text = filled(
        name,
        **common,
        coalesced=_loads(plan.loads, lambda k: read.format(f"{k} * h + i")),
        uncoalesced=_loads(plan.loads, lambda k: read.format(f"({k} * h + i) * {SPREAD}")),
        sum=" + ".join(f"v{k}" for k in range(plan.loads)),
        warps=", ".join(map(str, plan.warps)),
        steps=", ".join(map(str, plan.steps)),
        repeats=plan.repeats,
        caches=plan.caches,
    )
    return {name: text}


def _loads(loads: int, read: Callable[[int], str]) -> str:
    return "\n".join(f"    float v{k} = {read(k)};" for k in range(loads))


def _ptx_departures(name: str, loads: int) -> str:
    statements = []
    for k in range(loads):
        statements.append(f"    ld.global.cv.f32 %v{k}, [%address];")
        statements.append("    add.u64 %address, %address, %step;")
    statements += [f"    add.f32 %v0, %v0, %v{k};" for k in range(1, loads)]
    bytes_apart = 4 if name == "coalesced" else 4 * SPREAD
    return filled("departures.ptx", name=name, loads=loads, element_bytes=bytes_apart, statements="\n".join(statements))


def throughput_source(language: Language, *, rounds: int = ROUNDS) -> dict[str, str]:
    """A kernel for every operation; in CUDA with a host program that prints samples as CSV.

    Raises:
        InputError: PTX, which has neither loops over vectors nor an exact sine.
    """
    expressions = operations(language)
    tests = (f'        {{"{name}", run_{name}, {len(_values(name))}}},' for name in expressions)
    text = filled(
        f"throughput{SUFFIXES[language]}",
        rounds=rounds,
        repeats=REPEATS,
        operations=rounds * UNROLLED,
        kernels="".join(_throughput_kernel(language, *each) for each in expressions.items()),
        tests="\n".join(tests),
    )
    return {f"throughput{SUFFIXES[language]}": text}


def operations(language: Language) -> dict[str, str]:
    """What each throughput kernel repeats, by its name; `{s}` stands for the value."""
    _refuse(language, "throughput", "ptx")
    found = dict(_CUDA if language == "cuda" else _C)
    return {**found, **{f"{name}4": found[name] for name in VECTOR}}


def _values(name: str) -> list[str]:
    return [f"s{n}" for n in range(4 if name.endswith("4") else 1)]


def _throughput_kernel(language: Language, name: str, expression: str) -> str:
    kernel, pointer, index = {
        "cuda": ('extern "C" __global__ void', "float *", "blockIdx.x * blockDim.x + threadIdx.x"),
        "opencl": ("__kernel void", "__global float *", "get_global_id(0)"),
    }[language]
    values = _values(name)
    step = "\n".join(f"        {value} = {expression.format(s=value)};" for value in values)
    return filled(
        "throughput_kernel.txt",
        signature=f"{kernel} run_{name}({pointer}out, float a, float b, int rounds)",
        index=index,
        values=", ".join(f"{value} = a + {n} + i % 256" for n, value in enumerate(values)),
        steps="\n".join([step] * UNROLLED),
        sum=" + ".join(values),
    )


def instructions_source(language: Language) -> dict[str, str]:
    """Chains and streams of instructions; in CUDA walks through memory and reads of it, too.

    Raises:
        InputError: OpenCL, which has no clock of its own.
    """
    _refuse(language, "latency", "opencl")
    made = list(kernels())
    quote = _quoted if language == "cuda" else _indented
    suffix = SUFFIXES[language]
    text = "".join(
        filled(f"chain{suffix}", name=f"{form}_{kind}_{count}", body=quote(body(form, kind, count)))
        for form, kind, count in made
    )
    tests = "\n".join(f'        {{"{form}", "{kind}", {count}, {form}_{kind}_{count}}},' for form, kind, count in made)
    steps = ", ".join(f"{count}u" for count in STEPS)
    return {f"latency{suffix}": filled(f"latency{suffix}", kernels=text, tests=tests, steps=steps, repeats=REPEATS)}


def launch_source(language: Language, *, warp_size: int = 32, max_warps: int = MAX_WARPS) -> dict[str, str]:
    """An empty kernel with a host program that prints launch times as CSV.

    Raises:
        InputError: PTX, which has no host, or blocks that no GPU has.
    """
    _refuse(language, "launch", "ptx")
    if warp_size < 1 or not 1 <= max_warps <= MAX_BLOCK_WARPS:
        raise InputError(f"blocks of 1..{max_warps} warps of {warp_size} threads: no such blocks; at most 64 warps")
    values = {"grids": ", ".join(map(str, GRIDS)), "warp_size": warp_size, "max_warps": max_warps, "repeats": REPEATS}
    files = ("launch.cu",) if language == "cuda" else ("launch.cl", "launch_opencl.py.txt")
    return {name.removesuffix(".txt"): filled(name, **values) for name in files}


def ffma_source() -> dict[str, str]:
    """Latency and throughput of FFMA for any CUDA GPU: a pair of kernels in CUDA C++ and in PTX.

    PTX says neither which registers nor which control codes the machine code has.
    """
    chain, streams, rounds = 128, 8, 64
    several = [f"%f{4 + stream}" for stream in range(streams)]
    cuda = filled("ffma.cu", chain=chain, streams=streams, rounds=rounds, operations=streams * rounds)
    ptx = filled(
        "ffma.ptx",
        registers=4 + streams,
        chain=_indented(["fma.rn.f32 %f1, %f1, %f2, %f3;"] * chain),
        statements=_indented([f"fma.rn.f32 {name}, {name}, %f2, %f3;" for name in several] * rounds),
        start=_indented([f"mov.f32 {name}, %f2;" for name in several]),
        sum=_indented([f"add.f32 %f1, %f1, {name};" for name in several]),
    )
    return {"ffma.cu": cuda, "ffma.ptx": ptx}


def _refuse(language: Language, benchmark: str, without: Language) -> None:
    if language == without:
        raise InputError(f"the benchmark {benchmark} has no program in {language}; take --emit cuda")


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _quoted(lines: list[str]) -> str:
    """PTX inside inline assembly of CUDA."""
    return "\n".join(f'{" " * 21}"{line.replace("%", "%%")}\\n"' for line in lines)
