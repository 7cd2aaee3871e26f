"""The parameters of a PTX kernel: their names, their values as bits, and the block that the kernel asks for.

PTX only numbers parameters, so their names come from the CUDA source. `signatures` is no parser of C++: it finds
`__global__ ... name(...)` outside of comments and literals, and splits the brackets. A name counts only where every
definition and declaration of the kernel agrees on it.
"""

import math
import re
from collections.abc import Iterator
from itertools import zip_longest

from makespan.kernels.flow import DeclaredParameter, KernelSignature, Launch, ParameterValue, dim3_text
from makespan.kernels.ptx.module import Declaration, PtxKernel, Signatures

_SCALAR = re.compile(r"\.([busf])(8|16|32|64)(?![0-9A-Za-z_])")
_DIRECTIVE = re.compile(r"(\.(?:req|max)ntid) ([0-9]{1,4})(?:, ([0-9]{1,4}))?(?:, ([0-9]{1,4}))?")


def signature(kernel: PtxKernel) -> KernelSignature:
    """Return the parameters of a kernel by their PTX names, and the block that its directives tell."""
    # of a function all values are unknown, as it is called with any; the body may declare a name anew
    hidden = {name for s in kernel.statements if isinstance(s, Declaration) for name, _ in s.names}
    listed = [(name, declared) for declared in kernel.parameters or () for name, _ in declared.names]
    parameters = dict[str, DeclaredParameter]()
    source_names = _source_names(kernel, len(listed)) or (None,) * len(listed)
    for (name, declared), own in zip(listed, source_names, strict=True):
        kind, bits = scalar_type(declared) or ("", None)
        shown = f"{own} or {name}" if own else name
        is_hidden = not kernel.is_entry or name in hidden
        parameters[name] = DeclaredParameter(declared.text, shown, bits, kind, own, is_hidden)
    found = (match for match in map(_DIRECTIVE.fullmatch, kernel.attributes) if match)
    said = {match[1]: (int(match[2]), int(match[3] or 1), int(match[4] or 1)) for match in found}
    most = said.get(".maxntid")
    # Source: PTX ISA, "Performance-Tuning Directives": `.maxntid` limits the product, not each extent
    threads, because = (None, "") if most is None else (math.prod(most), f" (.maxntid {dim3_text(most)})")
    return KernelSignature(kernel.name, parameters, said.get(".reqntid"), threads, " (.reqntid)", because)


def fit_launch(launch: Launch, kernel: PtxKernel) -> Launch:
    """Return the launch by `KernelSignature.fit`."""
    return signature(kernel).fit(launch)


def parameter_names(kernel: PtxKernel) -> tuple[str, ...]:
    """Return the names of parameters in the CUDA source or, where that does not tell, in the PTX."""
    names = [name for parameter in kernel.parameters or () for name, _ in parameter.names]
    return tuple(own or name for own, name in zip_longest(_source_names(kernel, len(names)), names))


def scalar_type(declaration: Declaration) -> tuple[str, int] | None:
    """Return the kind of a parameter (b, u, s or f) and its bits; None for an aggregate or another type.

    >>> scalar_type(Declaration(".param", (("n", None),), ".param .u32 n"))
    ('u', 32)
    """
    types = _SCALAR.findall(declaration.text)
    if len(types) != 1 or "[" in declaration.text:  # an array or a structure holds more than a number
        return None
    return types[0][0], int(types[0][1])


def known_parameters(kernel: PtxKernel, launch: Launch) -> dict[str, ParameterValue]:
    """Return the parameters by `KernelSignature.known`."""
    return signature(kernel).known(launch)


def _source_names(kernel: PtxKernel, count: int) -> tuple[str | None, ...]:
    return source_parameter_names(kernel.name, kernel.compilation.signatures, count) if kernel.compilation else ()


_NO_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*                          # a comment, which a backslash continues
      | /\*.*?\*/
      | R"([^\s()\\]{0,16})\(.*?\)\1"              # a raw string
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'       # a character, but no digit separator
    """,
    re.DOTALL | re.VERBOSE,
)
_KERNEL = re.compile(r"\b__global__\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_LAST_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")
_ARRAY = re.compile(r"\(\s*[*&]+\s*(?:const\s+)?(?P<name>[A-Za-z_]\w*)\s*\)")
_ATTRIBUTES = frozenset(
    {"__launch_bounds__", "__attribute__", "__declspec", "__cluster_dims__", "__maxnreg__", "alignas"}
)
_OPEN, _CLOSE = "([{<", ")]}>"
MOST_LETTERS = 20_000
"""The longest brackets after a kernel's name that are read."""


def signatures(source: str) -> Signatures:
    """Return the names of the parameters of every kernel in the source; None for an unknown name.

    >>> signatures('__global__ void scale(float *x, const int n = 4); // f(a)')
    (('scale', ('x', 'n')),)
    """
    code = _NO_CODE.sub(" ", source)  # comments and literals may hold anything
    found: dict[str, list[tuple[str | None, ...]]] = {}
    for match in _KERNEL.finditer(code):
        for name, brackets in _declared_functions(code, match.end()):
            found.setdefault(name, []).append(tuple(_name(parameter) for parameter in _split(brackets)))
    return tuple((name, _agreed_names(several)) for name, several in found.items())


def source_parameter_names(kernel: str, known: Signatures, count: int) -> tuple[str | None, ...]:
    """Return the names of the `count` parameters of a kernel, by its plain or mangled name; all None if unknown."""
    fitting = {names for name, names in known if len(names) == count and _is(kernel, name)}
    return fitting.pop() if len(fitting) == 1 else (None,) * count  # declarations that differ tell nothing


def _is(kernel: str, name: str) -> bool:
    return kernel == name or re.search(rf"(?<![0-9]){len(name)}{re.escape(name)}", kernel) is not None


def _declared_functions(code: str, at: int) -> Iterator[tuple[str, str]]:
    name = None
    stop = min(len(code), at + MOST_LETTERS)  # keeps the time linear for hostile source
    while at < stop:
        letter = code[at]
        if letter == "(":
            inside = _bracket_contents(code, at, stop)
            if inside is None:
                return
            if name is not None and name not in _ATTRIBUTES:
                yield name, inside
                return
            at += len(inside) + 2
        elif letter in ";{}=":
            return
        elif word := _WORD.match(code, at):
            name, at = word[0], word.end()
        else:
            at += 1


def _bracket_contents(code: str, at: int, stop: int) -> str | None:
    depth = 0
    for end in range(at, stop):
        depth += (code[end] == "(") - (code[end] == ")")
        if depth == 0:
            return code[at + 1 : end]
    return None


def _split(parameters: str) -> list[str]:
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(parameters):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and depth == 0:
            found.append(parameters[begin:at])
            begin = at + 1
    found.append(parameters[begin:])
    return [] if found in (["void"], [""]) or not parameters.strip() else found


def _name(parameter: str) -> str | None:
    """Return the name in a declaration such as `const float *x`, `int n = 4`, `float (&grid)[8]`."""
    declared = parameter.partition("=")[0].strip()
    if pointer := _ARRAY.search(declared):
        return pointer["name"]
    last = _LAST_NAME.search(declared)
    if last is None or not declared[: last.start()].strip():  # a type alone has no name
        return None
    return last["name"]


def _agreed_names(several: list[tuple[str | None, ...]]) -> tuple[str | None, ...]:
    if len({len(names) for names in several}) > 1:
        return ()
    return tuple(names[0] if len(set(names)) == 1 else None for names in zip(*several, strict=True))
