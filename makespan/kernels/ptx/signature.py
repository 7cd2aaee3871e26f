"""What the parameters of kernels are called in CUDA source: PTX only numbers them.

This is no parser of C++: it finds `__global__ ... name(...)` outside of comments and literals, and splits the brackets.
A name is told only where every definition or declaration of a kernel's name agrees on it; otherwise there is none.
"""

import re
from collections.abc import Iterator

Signatures = tuple[tuple[str, tuple[str | None, ...]], ...]
"""Kernels by their name in the source, each with the names of its parameters in order."""

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
"""Of the brackets after a kernel's name; longer ones are left alone."""


def signatures(source: str) -> Signatures:
    """Return the names of the parameters of every kernel in the source, None for one that is not told.

    >>> signatures('__global__ void scale(float *x, const int n = 4); // f(a)')
    (('scale', ('x', 'n')),)
    """
    code = _NO_CODE.sub(" ", source)
    found: dict[str, list[tuple[str | None, ...]]] = {}
    for match in _KERNEL.finditer(code):
        for name, brackets in _declared_functions(code, match.end()):
            found.setdefault(name, []).append(tuple(_name(parameter) for parameter in _split(brackets)))
    return tuple((name, _agreed_names(several)) for name, several in found.items())


def source_parameter_names(kernel: str, known: Signatures, count: int) -> tuple[str | None, ...]:
    """The names of the `count` parameters of a kernel, by its plain or mangled name; all None where that fails."""
    fitting = {names for name, names in known if len(names) == count and _is(kernel, name)}
    return fitting.pop() if len(fitting) == 1 else (None,) * count


def _is(kernel: str, name: str) -> bool:
    return kernel == name or re.search(rf"(?<![0-9]){len(name)}{re.escape(name)}", kernel) is not None


def _declared_functions(code: str, at: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the inside of the brackets of the function that is declared from `at` on."""
    name = None
    stop = min(len(code), at + MOST_LETTERS)
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
    """What stands between the bracket at `at` and the one that closes it."""
    depth = 0
    for end in range(at, stop):
        depth += (code[end] == "(") - (code[end] == ")")
        if depth == 0:
            return code[at + 1 : end]
    return None


def _split(parameters: str) -> list[str]:
    """Return the parameters between commas that stand in no brackets; after a comparison or an arrow none is split."""
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
    """Return the names on which all declarations agree; none at all where they differ in number."""
    if len({len(names) for names in several}) > 1:
        return ()
    return tuple(names[0] if len(set(names)) == 1 else None for names in zip(*several, strict=True))
