"""From text to typed expressions: names are resolved, functions inlined, constants folded."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from makespan.errors import InputError, ParseError
from makespan.estimators.opencl_cost_table import syntax
from makespan.estimators.opencl_cost_table.expression import (
    Array,
    Expression,
    Iteration,
    Read,
    Variable,
    literal,
    negation,
    operation,
)
from makespan.estimators.opencl_cost_table.syntax import Applied, Binary, Definition, Minus, Name, Number, Term

MAX_CALLS = 10_000  # that are inlined: functions that call functions twice each grow exponentially
_WORDS = """
    auto bool break case char complex const constant continue default do double else enum event_t extern float for
    global goto half if image1d_t image2d_t image3d_t imaginary inline int kernel local long main private quad
    register restrict return sampler_t short signed sizeof size_t static struct switch typedef uchar uint uintptr_t
    ulong union unsigned ushort void volatile while iteration
"""
RESERVED = frozenset(_WORDS.split())
"""Names that OpenCL C keeps for itself; so are those with two underscores in front."""


def iteration(
    text: str, *, arrays: Iterable[Array], constants: Mapping[str, int] | None = None, functions: Iterable[str] = ()
) -> Iteration:
    r"""The domain iteration in `text`, such as `m.\(x,y){ g(x) + m[x,y] }`.

    Args:
        constants: named integers.
        functions: definitions such as `g(x)=2*x`; calls are inlined, and they may call each other without recursion.

    Raises:
        ParseError: a place in a text that means nothing: unknown or ambiguous names, wrong numbers of subscripts or
            arguments, `%` on floats, a division by a constant zero, literals that do not fit in 32 bits.
        InputError: two arrays, constants or functions of one name.
    """
    written = syntax.iteration(text)
    names = _Names.of(arrays, constants or {}, [syntax.function(line) for line in functions])
    array = names.arrays.get(written.name)
    if array is None:
        written.refuse(f"array {written.name} is not declared; give --array {written.name}:float:SHAPE", 0)
    if len(written.parameters) != len(array.shape):
        given = len(written.parameters)
        written.refuse(f"array {array.name} has {len(array.shape)} dimensions, and the iteration {given} variables", 0)
    for name in written.parameters:
        if name in names.taken or _is_reserved(name):
            written.refuse(f"variable {name} has the name of something else", 0)
    extents = zip(written.parameters, array.shape, strict=True)
    scope = {name: Variable(name, at, extent) for at, (name, extent) in enumerate(extents)}
    body = _Resolver(written, names, scope, ()).resolve(written.body)
    return Iteration(array, written.parameters, body)


@dataclass(frozen=True, slots=True)
class _Names:
    arrays: Mapping[str, Array]
    constants: Mapping[str, int]
    functions: Mapping[str, Definition]
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    @classmethod
    def of(cls, arrays: Iterable[Array], constants: Mapping[str, int], functions: Iterable[Definition]) -> "_Names":
        declared, defined = list(arrays), list(functions)
        names = [*(array.name for array in declared), *constants, *(definition.name for definition in defined)]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise InputError(f"{name} is declared twice: arrays, constants and functions need different names")
            if _is_reserved(name):
                raise InputError(f"{name} is a word of OpenCL C; choose another name")
        return cls({a.name: a for a in declared}, constants, {definition.name: definition for definition in defined})

    @property
    def taken(self) -> set[str]:
        return {*self.arrays, *self.constants, *self.functions}


def _is_reserved(name: str) -> bool:
    return name in RESERVED or name.startswith("__")


@dataclass(frozen=True, slots=True)
class _Resolver:
    """One text: what the names in it mean, and which functions are being inlined."""

    written: Definition
    names: _Names
    scope: Mapping[str, Expression]
    inlined: tuple[str, ...]

    def resolve(self, term: Term) -> Expression:
        try:
            return self._resolve(term)
        except ParseError:
            raise
        except InputError as error:  # of an expression that cannot be built: the innermost place is the right one
            self.written.refuse(str(error), term.at)
        except RecursionError:
            self.written.refuse("nested too deeply; parenthesise long sums, or split the expression", term.at)

    def _resolve(self, term: Term) -> Expression:
        match term:
            case Number(value):
                return literal(value)
            case Name(name):
                return self._named(name, term.at)
            case Minus(operand):
                return negation(self.resolve(operand))
            case Binary(operator, left, right):
                return operation(operator, self.resolve(left), self.resolve(right))
            case Applied(name, arguments, True):
                return self._called(name, tuple(map(self.resolve, arguments)), term.at)
            case Applied(name, arguments):
                if name not in self.names.arrays:
                    self.written.refuse(f"array {name} is not declared; give --array {name}:float:SHAPE", term.at)
                return Read(self.names.arrays[name], tuple(map(self.resolve, arguments)))

    def _named(self, name: str, at: int) -> Expression:
        if name in self.scope:
            return self.scope[name]
        if name in self.names.constants:
            return literal(self.names.constants[name])
        known = ", ".join([*self.scope, *self.names.constants])
        hint = "an array needs subscripts" if name in self.names.arrays else f"known: {known}; or give --const {name}=N"
        return self.written.refuse(f"unknown variable {name}; {hint}", at)

    def _called(self, name: str, arguments: tuple[Expression, ...], at: int) -> Expression:
        called = self.names.functions.get(name)
        if called is None:
            self.written.refuse(f"function {name} is not defined; give --func '{name}(...)=...'", at)
        if name in self.inlined:
            self.written.refuse(f"function {name} calls itself; calls are inlined", at)
        if next(self.names.calls) > MAX_CALLS:
            self.written.refuse(f"more than {MAX_CALLS} calls to inline; write fewer", at)
        if len(arguments) != len(called.parameters):
            wanted = len(called.parameters)
            self.written.refuse(f"function {name} takes {wanted} arguments, and {len(arguments)} are given", at)
        scope = dict(zip(called.parameters, arguments, strict=True))
        return _Resolver(called, self.names, scope, (*self.inlined, name)).resolve(called.body)
