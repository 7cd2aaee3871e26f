"""Programs that measure; what they print is read by `samples` and fitted by `fit`.

Source of the three memory kernels: an undated slide deck by Ostapenko, Southern Federal University, whose captions of
the two departure kernels are interchanged: consecutive addresses are the coalesced ones. A chain of dependent loads
stands in for the deck's sum, whose loads do not wait for each other; the sum remains as an option.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from string import Template
from types import MappingProxyType
from typing import Literal

from makespan.estimates.kinds import MAX_BLOCK_WARPS
from makespan.estimates.microbench.chains import LINKS, chain_text, kernels
from makespan.host.errors import InputError

ProgramLanguage = Literal["cuda", "opencl"]
Chase = Literal["chase", "sum"]

SUFFIXES: Mapping[ProgramLanguage, str] = MappingProxyType({"cuda": ".cu", "opencl": ".cl"})
# Elements between the addresses of neighbouring threads: odd, and 132 bytes, so that each has a segment of its own.
SPREAD = 33
ROUNDS, UNROLLED = 20, 50  # rounds of a throughput kernel, and the operations of each
REPEATS = 5
STEPS = (256, 1024)  # lengths of the walks through the levels of memory
GRIDS = (1, 8, 64, 512, 4096)
MAX_WARPS = 32
# Operations that are measured on vectors of four, too; their kernels have names that end in 4.
VECTOR = ("f32_add", "f32_sub", "f32_mul", "f32_div")
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
# One step of the latency kernel.
_STEP: Mapping[tuple[ProgramLanguage, Chase], str] = MappingProxyType(
    {
        ("cuda", "chase"): "        at = load(x + at);",
        ("cuda", "sum"): "        sum += load(x + at);\n        at += h;",
        ("opencl", "chase"): "        at = x[at];",
        ("opencl", "sum"): "        sum += x[at];\n        at += h;",
    }
)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The sizes of the runs of the memory kernels.

    Args:
        loads: independent loads of a thread, K; a block of W warps makes K W requests.
        warps: sizes of the block, at least four of them, for the line that is fitted.
        steps: lengths of the walk of one thread, two or more, so that the cost of a launch cancels.
        caches: the latency kernel walks through this multiple of the last cache; as much is overwritten before a run.
        latency: `chase` follows addresses that were loaded; `sum` adds values up, as the deck does.
    """

    warp_size: int = 32
    loads: int = 8
    warps: tuple[int, ...] = (4, 8, 16, 32)
    steps: tuple[int, ...] = (1024, 4096)
    repeats: int = REPEATS
    caches: int = 4
    latency: Chase = "chase"


def fill_template(file: str, /, **values: object) -> str:
    """Return a template of the package with its places filled.

    Three places need no value: `$host` is what host programs share, `$walk` the kernels that walk through rings of
    addresses, and `$ring` their calls.
    """
    folder = resources.files("makespan.estimates.microbench") / "templates"
    shared = {name: (folder / f"{name}.cu").read_text("utf-8") for name in ("host", "walk", "ring")}
    shared["ring"] = Template(shared["ring"]).substitute(steps=", ".join(f"{count}u" for count in STEPS))
    return Template((folder / file).read_text("utf-8")).substitute(shared, **values)


def memory_source(language: ProgramLanguage, plan: MemoryPlan) -> dict[str, str]:
    """Return the kernels `latency`, `coalesced` and `uncoalesced`, in CUDA with a host program that prints CSV."""
    suffix = SUFFIXES[language]
    read = "load(x + {})" if language == "cuda" else "x[{}]"
    departures = {
        "coalesced": (
            "{k} * h + i",
            "All loads of a warp fall into as few segments as can be: consecutive threads, consecutive addresses.",
        ),
        "uncoalesced": (
            f"({{k}} * h + i) * {SPREAD}",
            f"Every thread has a segment of its own: addresses are {SPREAD} elements apart.",
        ),
    }
    kernels = (
        fill_template(
            f"departure{suffix}",
            name=name,
            comment=comment,
            loads="\n".join(f"    float v{k} = {read.format(index.format(k=k))};" for k in range(plan.loads)),
            sum=" + ".join(f"v{k}" for k in range(plan.loads)),
        )
        for name, (index, comment) in departures.items()
    )
    text = fill_template(
        f"memory{suffix}",
        latency=_STEP[language, plan.latency],
        departures="\n".join(kernels),
        loads=plan.loads,
        spread=SPREAD,
        warp_size=plan.warp_size,
        warps=", ".join(map(str, plan.warps)),
        steps=", ".join(map(str, plan.steps)),
        repeats=plan.repeats,
        caches=plan.caches,
    )
    return {f"memory{suffix}": text}


def throughput_source(language: ProgramLanguage, *, rounds: int = ROUNDS) -> dict[str, str]:
    """Return a kernel for every operation; in CUDA with a host program that prints samples as CSV."""
    expressions = operations(language)
    tests = (f'        {{"{name}", run_{name}, {len(_values(name))}}},' for name in expressions)
    text = fill_template(
        f"throughput{SUFFIXES[language]}",
        rounds=rounds,
        repeats=REPEATS,
        operations=rounds * UNROLLED,
        kernels="".join(_throughput_kernel(language, *each) for each in expressions.items()),
        tests="\n".join(tests),
    )
    return {f"throughput{SUFFIXES[language]}": text}


def operations(language: ProgramLanguage) -> dict[str, str]:
    """Return the expression that each throughput kernel repeats, by its name; `{s}` stands for the value."""
    found = dict(_CUDA if language == "cuda" else _C)
    return {**found, **{f"{name}4": found[name] for name in VECTOR}}


def _values(name: str) -> list[str]:
    return [f"s{n}" for n in range(4 if name.endswith("4") else 1)]


def _throughput_kernel(language: ProgramLanguage, name: str, expression: str) -> str:
    kernel, pointer, index = {
        "cuda": ('extern "C" __global__ void', "float *", "blockIdx.x * blockDim.x + threadIdx.x"),
        "opencl": ("__kernel void", "__global float *", "get_global_id(0)"),
    }[language]
    values = _values(name)
    step = "\n".join(f"        {value} = {expression.format(s=value)};" for value in values)
    return fill_template(
        "throughput_kernel.txt",
        signature=f"{kernel} run_{name}({pointer}out, float a, float b, int rounds)",
        index=index,
        values=", ".join(f"{value} = a + {n} + i % 256" for n, value in enumerate(values)),
        steps="\n".join([step] * UNROLLED),
        sum=" + ".join(values),
    )


def instructions_source(language: ProgramLanguage) -> dict[str, str]:
    """Return a program of chains and streams of instructions, and of walks through memory and reads of it.

    Raises:
        InputError: OpenCL, which has no clock of its own.
    """
    if language == "opencl":
        raise InputError("the benchmark latency has no program in opencl; take --emit cuda")
    made = [(form, kind, count, f"{form}_{kind}_{count}") for form, kind, count in kernels()]
    text = "".join(
        fill_template("chain.cu", name=name, body=quoted_ptx(chain_text(form, LINKS[kind], count)))
        for form, kind, count, name in made
    )
    tests = "\n".join(f'        {{"{form}", "{kind}", {count}, {name}}},' for form, kind, count, name in made)
    return {"latency.cu": fill_template("latency.cu", kernels=text, tests=tests, repeats=REPEATS)}


def launch_source(language: ProgramLanguage, *, warp_size: int = 32, max_warps: int = MAX_WARPS) -> dict[str, str]:
    """Return an empty kernel with a host program that prints launch times as CSV.

    Raises:
        InputError: blocks that no GPU has.
    """
    if warp_size < 1 or not 1 <= max_warps <= MAX_BLOCK_WARPS:
        raise InputError(f"blocks of 1..{max_warps} warps of {warp_size} threads: no such blocks; at most 64 warps")
    values = {"grids": ", ".join(map(str, GRIDS)), "warp_size": warp_size, "max_warps": max_warps, "repeats": REPEATS}
    files = ("launch.cu",) if language == "cuda" else ("launch.cl", "launch_opencl.py.txt")
    return {name.removesuffix(".txt"): fill_template(name, **values) for name in files}


def ffma_source() -> dict[str, str]:
    """Return the latency and throughput test of FFMA for any CUDA GPU.

    CUDA and PTX say neither which registers nor which control codes the machine code has.
    """
    chain, streams, rounds = 128, 8, 64
    return {
        "ffma.cu": fill_template("ffma.cu", chain=chain, streams=streams, rounds=rounds, operations=streams * rounds),
    }


def quoted_ptx(lines: list[str]) -> str:
    """Return PTX lines as inline assembly of CUDA."""
    escaped = (line.replace("%", "%%").replace('"', '\\"') for line in lines)
    return "\n".join(f'{" " * 21}"{line}\\n"' for line in escaped)
