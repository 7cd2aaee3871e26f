"""The parameters of a PTX kernel: their names, their values as bits, and the block that the kernel asks for.

PTX only numbers parameters, so their names come from the CUDA source. `signatures` is no parser of C++: it finds
`__global__ ... name(...)` outside of comments and literals, and splits the brackets. A name counts only where every
definition and declaration of the kernel agrees on it.
"""

import math
import re
import struct
from collections.abc import Iterator
from itertools import zip_longest

from makespan.host.errors import InputError, Naming
from makespan.kernels.flow import Dim3, Launch, ParameterValue, dim3_text, find_parameter
from makespan.kernels.ptx.module import Declaration, PtxKernel, Signatures

_SCALAR = re.compile(r"\.([busf])(8|16|32|64)(?![0-9A-Za-z_])")
_DIRECTIVE = re.compile(r"(\.(?:req|max)ntid) ([0-9]{1,4})(?:, ([0-9]{1,4}))?(?:, ([0-9]{1,4}))?")


def fit_launch(launch: Launch, kernel: PtxKernel) -> Launch:
    """Return the same launch with parameters by their PTX names, and with the block that `.reqntid` tells.

    A parameter may be called by its PTX name, by its position ("3" is the fourth), by its name in the CUDA source
    that was compiled, or by the end of its PTX name from an underscore on. Calling this twice is the
    same as once; every analysis calls it.

    Raises:
        InputError: a name that fits no parameter or several, a value that its type cannot hold, a block that is
            not the one that the kernel requires, or has more threads than it allows.
    """
    declared = {name: parameter for parameter in kernel.parameters or () for name, _ in parameter.names}
    found = launch.with_parameters(
        lambda key: _find_parameter(key, list(declared), kernel, launch.named),
        lambda name, value: encode_parameter(declared[name], value, launch.named),
    )
    said = _declared_extents(kernel)
    most = said.get(".maxntid")
    # Source: PTX ISA, "Performance-Tuning Directives": `.maxntid` limits the product, not each extent
    threads, because = (None, "") if most is None else (math.prod(most), f" (.maxntid {dim3_text(most)})")
    return found.with_block(kernel.name, said.get(".reqntid"), threads, " (.reqntid)", because)


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
    """Return the known parameters of an entry by PTX name, but for those whose name the body declares anew.

    Raises:
        InputError: see `fit_launch`.
    """
    declared = {name: parameter for parameter in kernel.parameters or () for name, _ in parameter.names}
    hidden, values = _hidden(kernel), fit_launch(launch, kernel).parameters
    return {
        name: encode_parameter(declared[name], value, launch.named)
        for name, value in values.items()
        if name not in hidden
    }


def numeric_parameter_names(kernel: PtxKernel) -> dict[str, str]:
    """Return how a user calls the parameters of an entry that can be given as numbers, by PTX name.

    That is the name in the CUDA source, if it tells just this one; else the name in the PTX or, where a compiler made
    it of a number, the position.
    """
    declared = {name: parameter for parameter in kernel.parameters or () for name, _ in parameter.names}
    said = _source_names(kernel, len(declared)) or (None,) * len(declared)
    found: dict[str, str] = {}
    for position, (name, own) in enumerate(zip(declared, said, strict=True)):
        if scalar_type(declared[name]) is not None and name not in _hidden(kernel):
            is_own = own is not None and own not in declared and said.count(own) == 1
            is_number = name.endswith(f"_param_{position}")
            found[name] = own if own is not None and is_own else str(position) if is_number else name
    return found


def encode_parameter(declaration: Declaration, value: int | float, named: Naming) -> ParameterValue:
    """Return a parameter with this value; `named` is that of the launch.

    Raises:
        InputError: a value that the type cannot hold.
    """
    found = scalar_type(declaration)
    name, said = declaration.names[0][0], named("parameters")
    if found is None:
        raise InputError(f"{said} {name}: {declaration.text} holds more than a number; its value cannot be given")
    kind, bits = found
    if kind == "f" and bits >= 32:
        try:
            packed = struct.pack("<f" if bits == 32 else "<d", value)
        except OverflowError:
            raise InputError(f"{said} {name}={value}: too large for {declaration.text}") from None
        return ParameterValue(int.from_bytes(packed, "little"), bits)
    if kind == "f" or not isinstance(value, int):
        raise InputError(f"{said} {name}={value}: expected a whole number for {declaration.text}")
    half = 1 << (bits - 1)
    least, most = -half, 2 * half - 1 if kind in "bu" else half - 1
    if not least <= value <= most:
        raise InputError(f"{said} {name}={value}: {declaration.text} holds {least}..{most}")
    return ParameterValue(value % (2 * half), bits)


def _hidden(kernel: PtxKernel) -> frozenset[str]:
    """Return the parameters of unknown value: those whose name the body declares anew, and all of a function."""
    if not kernel.is_entry:  # a function is called with any values
        return frozenset(name for parameter in kernel.parameters or () for name, _ in parameter.names)
    return frozenset(name for s in kernel.statements if isinstance(s, Declaration) for name, _ in s.names)


def _declared_extents(kernel: PtxKernel) -> dict[str, Dim3]:
    found = (match for match in map(_DIRECTIVE.fullmatch, kernel.attributes) if match)
    return {match[1]: (int(match[2]), int(match[3] or 1), int(match[4] or 1)) for match in found}


def _find_parameter(key: str, names: list[str], kernel: PtxKernel, named: Naming) -> str:
    said = _source_names(kernel, len(names))
    found, problem = find_parameter(key, names, said)
    if found is not None:
        return found
    called = [f"{own} or {name}" if own else name for own, name in zip_longest(said, names)]
    listed = ", ".join(f"{position} is {name}" for position, name in enumerate(called)) or "there are none"
    raise InputError(
        f"{named('parameters')} {key}: {problem} of kernel {kernel.name}; give the position, or the name in the PTX:"
        f" {listed}"
    )


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
