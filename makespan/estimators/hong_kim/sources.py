"""Programs that measure: memory latency and departure delays, and throughputs of operations.

Source of the three memory kernels: an undated slide deck by Ostapenko, Southern Federal University, whose captions of
the two departure kernels are interchanged: consecutive addresses are the coalesced ones. A chain of dependent loads
stands in for the deck's sum, whose loads do not wait for each other; the sum remains as an option.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from string import Template
from types import MappingProxyType
from typing import Literal

from makespan.errors import InputError
from makespan.estimators.hong_kim.exact import whole
from makespan.machine.values import shown

Language = Literal["cuda", "opencl", "ptx"]
Chase = Literal["chase", "sum"]

SUFFIXES: Mapping[Language, str] = MappingProxyType({"cuda": ".cu", "opencl": ".cl", "ptx": ".ptx"})
SPREAD = 33
"""Elements between the addresses of neighbouring threads: odd, and 132 bytes, so that each has a segment of its own."""
MAX_LOADS = 512
UNROLLED = 50
"""Operations of a round of a throughput kernel."""
_DEPARTURE_POINTS = 4

Expressions = Mapping[str, str]
_C: Expressions = MappingProxyType(
    {
        "f32_add": "{s} + b",
        "f32_sub": "{s} - b",
        "f32_mul": "{s} * b",
        "f32_div": "b / {s}",
        "sin": "sin({s})",
        "native_sin": "native_sin({s})",
    }
)
_CUDA: Expressions = MappingProxyType({**_C, "sin": "sinf({s})", "native_sin": "__sinf({s})"})
_PTX: Expressions = MappingProxyType(
    {
        "f32_add": "add.rn.f32 {s}, {s}, %b;",
        "f32_sub": "sub.rn.f32 {s}, {s}, %b;",
        "f32_mul": "mul.rn.f32 {s}, {s}, %b;",
        "f32_div": "div.rn.f32 {s}, %b, {s};",
        "native_sin": "sin.approx.f32 {s}, {s};",
    }
)
VECTOR = ("f32_add", "f32_sub", "f32_mul", "f32_div")
"""Operations that are measured on vectors of four, too; their kernels have names that end in 4."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What the memory kernels do.

    Args:
        loads: independent loads of a thread, K; a block of W warps makes K W requests.
        warps: sizes of the block, at least four of them, for the line that is fitted.
        steps: lengths of the walk of one thread, two or more, so that the cost of a launch cancels.
        caches: the latency kernel walks through so many times the last cache, and as much is overwritten before a run.
        latency: `chase` follows addresses that were loaded; `sum` adds values up, as the deck does.
        target: of PTX.
    """

    warp_size: int = 32
    loads: int = 8
    warps: tuple[int, ...] = (4, 8, 16, 32)
    steps: tuple[int, ...] = (1024, 4096)
    repeats: int = 5
    caches: int = 4
    latency: Chase = "chase"
    target: str = "sm_75"

    def __post_init__(self) -> None:
        for name in ("warp_size", "loads", "repeats", "caches"):
            whole(getattr(self, name), name)
        if self.loads > MAX_LOADS:
            raise InputError(f"loads must be 1..{MAX_LOADS}, not {self.loads}: they are written out")
        for name, least in (("warps", _DEPARTURE_POINTS), ("steps", 2)):
            numbers = {whole(number, name) for number in getattr(self, name)}
            if len(numbers) < least:
                raise InputError(f"{name} must be at least {least} different numbers, not {sorted(numbers)}")
        _check_target(self.target)


def _check_target(target: str) -> None:
    if re.fullmatch(r"sm_[0-9]{2,3}[af]?", target) is None:
        raise InputError(f"a target of PTX is a name such as sm_75, not {shown(target)}")


def memory_source(language: Language, plan: MemoryPlan) -> str:
    """The kernels `latency`, `coalesced` and `uncoalesced`; in CUDA with a host program that prints samples as CSV."""
    common = {"loads": plan.loads, "spread": SPREAD, "warp_size": plan.warp_size}
    latency = _STEP[language, plan.latency]
    if language == "ptx":
        departures = "".join(_ptx_departures(name, plan.loads) for name in ("coalesced", "uncoalesced"))
        return _filled("memory.ptx", **common, latency=latency, departures=departures, target=plan.target)
    read = "load(x + {})" if language == "cuda" else "x[{}]"
    return _filled(
        f"memory{SUFFIXES[language]}",
        **common,
        latency=latency,
        coalesced=_loads(plan.loads, lambda k: read.format(f"{k} * h + i")),
        uncoalesced=_loads(plan.loads, lambda k: read.format(f"({k} * h + i) * {SPREAD}")),
        sum=" + ".join(f"v{k}" for k in range(plan.loads)),
        warps=", ".join(map(str, plan.warps)),
        steps=", ".join(map(str, plan.steps)),
        repeats=plan.repeats,
        caches=plan.caches,
    )


def throughput_source(language: Language, *, rounds: int = 20, repeats: int = 5, target: str = "sm_75") -> str:
    """A kernel for every operation; in CUDA with a host program that prints samples as CSV."""
    _check_target(target)
    kernel = _ptx_kernel if language == "ptx" else _cuda_kernel if language == "cuda" else _opencl_kernel
    expressions = operations(language)
    tests = (
        f'        {{"{name}", run_{name}, {components}}},'
        for name, components in ((name, 4 if name.endswith("4") else 1) for name in expressions)
    )
    return _filled(
        f"throughput{SUFFIXES[language]}",
        rounds=whole(rounds, "rounds"),
        repeats=whole(repeats, "repeats"),
        operations=rounds * UNROLLED,
        kernels="".join(kernel(name, expression) for name, expression in expressions.items()),
        tests="\n".join(tests),
        target=target,
    )


def operations(language: Language) -> dict[str, str]:
    """What each kernel repeats, by its name; `{s}` stands for the value."""
    found = dict(_PTX if language == "ptx" else _CUDA if language == "cuda" else _C)
    return {**found, **{f"{name}4": found[name] for name in VECTOR}}


def _filled(file: str, /, **values: object) -> str:
    template = resources.files("makespan.estimators.hong_kim") / "templates" / file
    return Template(template.read_text("utf-8")).substitute(values)


def _loads(loads: int, read: Callable[[int], str]) -> str:
    return "\n".join(f"    float v{k} = {read(k)};" for k in range(loads))


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


def _ptx_departures(name: str, loads: int) -> str:
    statements = []
    for k in range(loads):
        statements.append(f"    ld.global.cv.f32 %v{k}, [%address];")
        statements.append("    add.u64 %address, %address, %step;")
    statements += [f"    add.f32 %v0, %v0, %v{k};" for k in range(1, loads)]
    bytes_apart = 4 if name == "coalesced" else 4 * SPREAD
    return _filled(
        "departures.ptx", name=name, loads=loads, element_bytes=bytes_apart, statements="\n".join(statements)
    )


def _cuda_kernel(name: str, expression: str) -> str:
    return _c_kernel(
        f'extern "C" __global__ void run_{name}(float *out, float a, float b, int rounds)',
        "blockIdx.x * blockDim.x + threadIdx.x",
        name,
        expression,
    )


def _opencl_kernel(name: str, expression: str) -> str:
    signature = f"__kernel void run_{name}(__global float *out, float a, float b, int rounds)"
    return _c_kernel(signature, "get_global_id(0)", name, expression)


def _c_kernel(signature: str, index: str, name: str, expression: str) -> str:
    values = [f"s{n}" for n in range(4 if name.endswith("4") else 1)]
    steps = "\n".join(f"        {value} = {expression.format(s=value)};" for value in values)
    return f"""
{signature}
{{
    int i = {index};
    float {", ".join(f"{value} = a + {n} + i % 256" for n, value in enumerate(values))};
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {{
{chr(10).join([steps] * UNROLLED)}
    }}
    out[i] = {" + ".join(values)};
}}
"""


def _ptx_kernel(name: str, expression: str) -> str:
    values = [f"%s{n}" for n in range(4 if name.endswith("4") else 1)]
    steps = "\n".join(f"    {expression.format(s=value)}" for value in values)
    return _filled(
        "throughput_kernel.ptx",
        name=f"run_{name}",
        components=len(values),
        start="\n".join(f"    add.f32 {value}, %s0, %b;" for value in values[1:]),
        statements="\n".join([steps] * UNROLLED),
        sum="\n".join(f"    add.f32 %s0, %s0, {value};" for value in values[1:]),
    )
