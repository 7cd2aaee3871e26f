"""Programs that measure the parameters of the model; what they print is read by `samples` and fitted by `fit`."""

from collections.abc import Mapping
from importlib import resources
from string import Template
from types import MappingProxyType
from typing import Literal

from makespan.errors import InputError
from makespan.estimators.kleimenov_popova.microbench.chains import CHAIN, LENGTHS, body, kernels

Language = Literal["cuda", "opencl", "ptx"]
REPEATS = 5
STEPS = (256, 1024)
GRIDS = (1, 8, 64, 512, 4096)
MAX_WARPS = 32

_EXPRESSIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "f32": ("float", "{x} = fma({x}, a, b);"),
        "f64": ("double", "{x} = fma({x}, a, b);"),
        "i32": ("int", "{x} = ({x} + a) ^ b;"),
        "i32_mul": ("int", "{x} = {x} * a + b;"),
        "i64": ("long", "{x} = ({x} + a) ^ b;"),
        "i64_mul": ("long", "{x} = {x} * a + b;"),
        "int_div": ("int", "{x} = a / ({x} | 1);"),
        "f32_div": ("float", "{x} = a / {x};"),
        "shift": ("uint", "{x} = rotate({x}, a);"),
        "sfu": ("float", "{x} = native_exp2({x});"),
    }
)
"""What OpenCL can repeat, by class, with the type of the value."""

_TWO = ("i32", "i64")
"""Classes whose expression is two instructions."""
_STREAMS = 8
_ROUND = 64


def latency_source(language: Language, *, lengths: tuple[int, ...] = LENGTHS, target: str = "sm_75") -> dict[str, str]:
    """The files, by name, of the benchmark of latencies and issue delays; in CUDA of memory, too.

    Args:
        lengths: instructions of a chain or stream: at least two, multiples of 32.
        target: of PTX.

    Raises:
        InputError: other lengths, or a target that is none.
    """
    if language == "opencl":
        return _opencl("latency", kernels="".join(_opencl_kernel(*each) for each in opencl_kernels()))
    made = list(kernels(lengths))
    if language == "ptx":
        text = "".join(
            _filled("kernel.ptx", name=f"{form}_{kind}_{count}", body=_indented(body(form, kind, count)))
            for form, kind, count in made
        )
        return {"latency.ptx": _filled("latency.ptx", kernels=text, target=_target(target))}
    text = "".join(
        _filled("kernel.cu", name=f"{form}_{kind}_{count}", body=_quoted(body(form, kind, count)))
        for form, kind, count in made
    )
    tests = "\n".join(f'        {{"{form}", "{kind}", {count}, {form}_{kind}_{count}}},' for form, kind, count in made)
    steps = ", ".join(f"{count}u" for count in STEPS)
    return {"latency.cu": _filled("latency.cu", kernels=text, tests=tests, steps=steps, repeats=REPEATS)}


def launch_source(language: Language, *, warp_size: int = 32, max_warps: int = MAX_WARPS) -> dict[str, str]:
    """The files, by name, of the benchmark of launch times: an empty kernel, and a host program but for PTX.

    Raises:
        InputError: blocks that no GPU has.
    """
    if warp_size < 1 or not 1 <= max_warps <= 64:
        raise InputError(f"blocks of 1..{max_warps} warps of {warp_size} threads: no such blocks; at most 64 warps")
    common = {"grids": ", ".join(map(str, GRIDS)), "warp_size": warp_size, "max_warps": max_warps, "repeats": REPEATS}
    if language == "ptx":
        return {"launch.ptx": _filled("launch.ptx", target="sm_75", **common)}
    if language == "cuda":
        return {"launch.cu": _filled("launch.cu", **common)}
    return _opencl("launch", **common)


def opencl_kernels() -> list[tuple[str, str]]:
    """Form and class of every kernel in OpenCL."""
    return [(form, name) for name in _EXPRESSIONS for form in ("latency", "delay")]


def _opencl(name: str, **values: object) -> dict[str, str]:
    """The kernels and the host program, which is Python with pyopencl."""
    tests = ", ".join(f'("{form}", "{kind}", {_ROUND * (2 if kind in _TWO else 1)})' for form, kind in opencl_kernels())
    host = _filled(
        f"{name}_opencl.py.txt", tests=tests, repeats=REPEATS, **{k: v for k, v in values.items() if k != "repeats"}
    )
    return {f"{name}.cl": _filled(f"{name}.cl", **values), f"{name}_opencl.py": host}


def _opencl_kernel(form: str, name: str) -> str:
    kind, expression = _EXPRESSIONS[name]
    names = ["x"] if form == CHAIN else [f"x{number}" for number in range(_STREAMS)]
    steps = "\n".join("        " + expression.format(x=names[at % len(names)]) for at in range(_ROUND))
    return _filled(
        "kernel.cl",
        name=f"{form}_{name}",
        type=kind,
        values=", ".join(f"{each} = a + {number}" for number, each in enumerate(names)),
        steps=steps,
        sum=" + ".join(names),
    )


def _target(target: str) -> str:
    if not (target.startswith("sm_") and target[3:].rstrip("af").isdecimal()):
        raise InputError(f"target must be a name such as sm_75, not {target!r}")
    return target


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _quoted(lines: list[str]) -> str:
    """PTX inside inline assembly of CUDA."""
    return "\n".join(f'{" " * 21}"{line.replace("%", "%%")}\\n"' for line in lines)


def _filled(file: str, /, **values: object) -> str:
    template = resources.files("makespan.estimators.kleimenov_popova.microbench") / "templates" / file
    return Template(template.read_text("utf-8")).substitute(values)
