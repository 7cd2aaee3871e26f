"""Loop bounds of PTX for the machine code that was compiled from it, matched by the line table of the compiler.

A machine loop M is matched by the lines of its own instructions, those of loops inside of it left out. A test of a PTX
loop L is a conditional branch that stands in L and in no inner loop; it is executed once at most whenever the head of L
is. M is taken for a copy of L, whole, rotated, unrolled or a remainder, if

- every way around M passes a test of L. So loops that stand for one instruction, such as an atomic addition to shared
  memory that is tried until it succeeds, are no copies, although their lines are those of L;
- no line of M decides how another PTX loop goes on (a test, or what its predicate is computed by), or L is around that
  loop, and a machine loop inside of M decides it.

Then M goes around at most as often as the head of L is executed. Where the lines of M decide several PTX loops inside
of each other, it may have become of all of them, and the products of their executions bound it. What an optimiser could
do away with is refused: a PTX loop that can go around without a test that leaves or repeats it may have merged with the
one around it. Every copy may run as often as the whole loop.

All this believes the line table, so the bound says where it comes from, and the verdict that there is such a one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from makespan.host.errors import InputError, ParseError, UnsupportedError
from makespan.kernels import ptx, sass
from makespan.kernels.flow import (
    MAX_ITERATIONS,
    AskedBound,
    Flow,
    GivenBound,
    Launch,
    LaunchInput,
    LoopInfo,
    LoopNest,
    TransferredBound,
    bounds_that_fit,
    goes_around,
    loop_nest,
)


class TransferredCode(NamedTuple):
    """Machine code with what PTX tells of its loops, and the given bounds that are for the machine code itself."""

    flow: sass.SassFlow
    given: tuple[GivenBound, ...]


def transfer_bounds(
    flow: sass.SassFlow, given: Sequence[GivenBound], launch: Launch, kernels: Iterable[sass.SassKernel]
) -> TransferredCode:
    """Tell of the loops of machine code what the PTX in its file knows, if any of them needs it.

    Args:
        given: bounds for loops of the machine code and of the PTX.
        launch: with parameters as machine code has them.
        kernels: all of the module, for which bounds may be given, too.

    Raises:
        InputError: a bound for a loop of the PTX that another bound or the code contradicts.
    """
    kernel, text = flow.kernel, flow.kernel.ptx_text
    # a key that is an address of machine code, or that names another kernel
    for_code = tuple(one for one in given if one.key in kernel.labels or one.kernel not in (None, kernel.name))
    others = tuple(one for one in given if one not in for_code)
    own = sass.bounds_for(kernel, for_code, kernels) if for_code else ()
    if text is None or not (others or _is_wanted(flow, own, launch)):
        return TransferredCode(flow, tuple(given))
    try:
        module = ptx.parse(text, f"PTX of {kernel.source.partition(' --arch ')[0]}")
        compiled = module.kernel(kernel.name)
        found, fitted = ptx.flow(compiled), ptx.fit_launch(_by_position(launch, kernel), compiled)
        loops = loop_nest(found)
    except (ParseError, UnsupportedError, InputError) as refusal:  # the machine code can still be answered without
        why = f"the PTX that it was compiled from does not tell more: {refusal}"
        told = {loop.header: TransferredBound(None, why) for loop in loop_nest(flow).loops}
        return TransferredCode(replace(flow, transferred=told), tuple(given))
    others = ptx.bounds_for(compiled, others, module.kernels)
    for_ptx = bounds_that_fit(found, others)
    infos = ptx.loops(found, for_ptx, fitted)
    source = _PtxLoops(found, loops, tuple(_as_in_machine_code(info, compiled, flow) for info in infos))
    return TransferredCode(
        replace(flow, transferred=dict(_bounds_by_header(flow, source))),
        (*for_code, *(one for one in others if one not in for_ptx)),
    )


def _is_wanted(flow: sass.SassFlow, given: Sequence[GivenBound], launch: Launch) -> bool:
    return any(info.bound is None or not info.bound.exact for info in sass.loops(flow, given, launch))


def _by_position(launch: Launch, kernel: sass.SassKernel) -> Launch:
    position = {declared.name: str(number) for number, declared in enumerate(kernel.parameters)}
    return replace(launch, parameters={position.get(key, key): value for key, value in launch.parameters.items()})


def _as_in_machine_code(info: LoopInfo, compiled: ptx.PtxKernel, flow: sass.SassFlow) -> LoopInfo:
    """Return a loop of the PTX with what decides it, parameters by the names that they have for machine code."""
    order = [name for parameter in compiled.parameters or () for name, _ in parameter.names]
    called, declared = flow.semantics.signature.called, flow.kernel.parameters

    def as_there(decider: LaunchInput) -> LaunchInput:
        if not decider.name:
            return decider
        (name,) = ptx.fit_launch(Launch(parameters={decider.name: 0}), compiled).parameters
        position = order.index(name)
        return decider._replace(name=called.get(declared[position].name or "", str(position)))

    return info._replace(
        asks=tuple(asked._replace(deciders=tuple(map(as_there, asked.deciders))) for asked in info.asks)
    )


class _PtxLoop(NamedTuple):
    """A PTX loop as line tables know it: all copies of a function that was inlined have the same."""

    label: str
    line: int

    def __str__(self) -> str:
        return f"{self.label} (PTX line {self.line})"


class _PtxLoopBound(NamedTuple):
    """A PTX loop with its bound: how often its head is executed for each entry."""

    heads: int
    is_bottom_tested: bool
    info: LoopInfo


@dataclass(frozen=True)
class _PtxLoops:
    """The loops of a PTX kernel by the lines of its instructions."""

    flow: Flow
    nest: LoopNest
    infos: tuple[LoopInfo, ...]

    @cached_property
    def keys(self) -> tuple[_PtxLoop, ...]:
        blocks = self.flow.blocks
        return tuple(_PtxLoop(self.flow.name(loop.header), blocks[loop.header].line) for loop in self.nest.loops)

    @cached_property
    def inside(self) -> Mapping[int, Set[_PtxLoop | None]]:
        found: dict[int, set[_PtxLoop | None]] = {}
        for block in range(self.flow.exit):
            key = self._key(block)
            for number in self.flow.numbers(block):
                found.setdefault(self.flow.code[number].line, set()).add(key)
        return found

    @cached_property
    def tests(self) -> Mapping[int, _PtxLoop]:
        """Return the loop whose test stands in a line, where nothing else does, by line."""
        found: dict[int, set[_PtxLoop | None]] = {}
        for block in range(self.flow.exit):
            for number in self.flow.numbers(block):
                is_test = number == self.flow.blocks[block].stop - 1 and self.flow.has_sides(block)
                found.setdefault(self.flow.code[number].line, set()).add(self._key(block) if is_test else None)
        return {line: key for line, (key, *more) in found.items() if key is not None and not more}

    @cached_property
    def decisions(self) -> Mapping[int, Set[_PtxLoop]]:
        """Return the loops that a line decides: by a test, or by computing a predicate of one."""
        found: dict[int, set[_PtxLoop]] = {}
        for number, (key, loop) in enumerate(zip(self.keys, self.nest.loops, strict=True)):
            own = [block for block in loop.blocks if self._tests(block, number)]
            read = {name for block in own for name in self.flow.ending(block).reads}
            inside = {at for block in loop.blocks for at in self.flow.numbers(block)}
            lines = {self.flow.last(block).line for block in own}
            # writers of a register that a test reads
            lines |= {self.flow.code[at].line for at in inside if not read.isdisjoint(self.flow.effects[at].writes)}
            for line in lines:
                found.setdefault(line, set()).add(key)
        return found

    @cached_property
    def around(self) -> Mapping[_PtxLoop, Set[_PtxLoop]]:
        """Return the loops around each loop, in any copy."""
        found: dict[_PtxLoop, set[_PtxLoop]] = {}
        for number, loop in enumerate(self.nest.loops):
            found.setdefault(self.keys[number], set()).update(self.keys[n] for n in self.nest.around(loop.header))
        # an inlined copy may lie in another copy of itself
        return {key: around - {key} for key, around in found.items()}

    @cached_property
    def elusive(self) -> Set[_PtxLoop]:
        """Return the loops that can go around without a test that leaves or repeats them."""
        return {self.keys[number] for number, loop in enumerate(self.nest.loops) if self._is_elusive(number)}

    @cached_property
    def most(self) -> Mapping[_PtxLoop, _PtxLoopBound | None]:
        """Return the bound of each loop in the copy that runs most often; None where a copy has no bound."""
        found: dict[_PtxLoop, _PtxLoopBound | None] = {}
        for key, loop, info in zip(self.keys, self.nest.loops, self.infos, strict=True):
            this = None
            if info.bound is not None and info.against is None:  # a bound against the code is not carried further
                heads = info.bound.maximum + (not loop.is_bottom_tested)
                this = _PtxLoopBound(heads, loop.is_bottom_tested, info)
            known = found.setdefault(key, this)
            if known is not None:
                found[key] = this if this is None or this.heads > known.heads else known
        return found

    def outer(self, key: _PtxLoop) -> Set[_PtxLoop | None]:
        numbers = (number for number, other in enumerate(self.keys) if other == key)
        above = (self.nest.loops[number].outer for number in numbers)
        return {None if number is None else self.keys[number] for number in above}

    def _key(self, block: int) -> _PtxLoop | None:
        number = self.nest.innermost.get(block)
        return None if number is None else self.keys[number]

    def _tests(self, block: int, number: int) -> bool:
        return self.nest.innermost[block] == number and self.flow.has_sides(block)

    def _is_elusive(self, number: int) -> bool:
        loop = self.nest.loops[number]
        ends = {block for block, _ in loop.exits} | loop.latches  # tests that leave or repeat the loop
        return goes_around(self.flow, loop, {b for b in ends if self._tests(b, number)})


class _NoBoundError(Exception):
    """The reason why PTX tells no bound of a loop, with the PTX loops whose bounds would tell one."""

    def __init__(self, why: str, asks: tuple[AskedBound, ...] = ()) -> None:
        self.asks = asks
        super().__init__(why)


def _bounds_by_header(flow: sass.SassFlow, source: _PtxLoops) -> Iterator[tuple[int, TransferredBound]]:
    code = _MatchedCode(flow, loop_nest(flow), source)
    for number, loop in enumerate(code.nest.loops):
        try:
            yield loop.header, code.transferred(number)
        except _NoBoundError as no:
            yield loop.header, TransferredBound(None, f"{flow.name(loop.header)}: {no}", asks=no.asks)


@dataclass(frozen=True)
class _MatchedCode:
    """Machine code beside the PTX that it was compiled from."""

    flow: sass.SassFlow
    nest: LoopNest
    source: _PtxLoops

    @cached_property
    def decided(self) -> tuple[Set[_PtxLoop], ...]:
        """Return, by machine loop, the PTX loops that its own lines decide."""
        found: list[set[_PtxLoop]] = [set() for _ in self.nest.loops]
        for block, number in self.nest.innermost.items():
            found[number].update(*(self.source.decisions.get(line, ()) for line in self._lines(block)))
        return tuple(found)

    def transferred(self, number: int) -> TransferredBound:
        """Return the bound of a machine loop.

        Raises:
            _No: none is told.
        """
        loop, keys = self.nest.loops[number], self.decided[number]
        own = [block for block in loop.blocks if self.nest.innermost[block] == number]
        self._refuse_gaps(own)  # first of all: the line table must tell every branch
        around = self.source.around
        if not keys:
            raise _NoBoundError("no line of it is that of a test of a PTX loop")
        first = [k for k in keys if all(k in around[other] and other not in around[k] for other in keys - {k})]
        if not first:
            raise _NoBoundError(f"it has lines of PTX loops that are not inside of each other: {_loops_text(keys)}")
        outermost, inner = first[0], keys - {first[0]}
        below = [n for n in range(len(self.nest.loops)) if n != number and number in self._around(n)]
        # inner PTX loops still have machine loops of their own
        is_copy = all(any(key in self.decided[n] for n in below) for key in inner)
        if is_copy and not self._goes_past(number, own, {outermost}):
            return self._of_one(outermost, is_bottom_tested=loop.is_bottom_tested)
        if self._goes_past(number, own, keys):
            raise _NoBoundError(f"it can repeat without passing a test of a PTX loop ({_loops_text(keys)})")
        return self._of_several(self._chain(outermost, inner))  # the loop may have become of all of them together

    def _of_one(self, key: _PtxLoop, *, is_bottom_tested: bool) -> TransferredBound:
        most = self._bound(key)
        both_test_before = not most.is_bottom_tested and not is_bottom_tested
        return self._said(most.heads - both_test_before, [key])

    def _of_several(self, keys: Sequence[_PtxLoop]) -> TransferredBound:
        heads = 1
        if len(asks := self._asks(keys)) > 1:
            raise _NoBoundError(f"it is a copy of PTX loops whose bounds nobody knows: {_loops_text(keys)}", asks)
        for key in keys:
            heads *= self._bound(key).heads  # collapsed loops: every head for every head around it
        return self._said(heads, keys)

    def _said(self, maximum: int, keys: Sequence[_PtxLoop]) -> TransferredBound:
        where = f"PTX line{'s' * (len(keys) > 1)} {', '.join(str(key.line) for key in keys)}"
        if maximum > MAX_ITERATIONS:  # a bound that large is no use to an automaton
            raise _NoBoundError(f"the PTX tells a bound above {MAX_ITERATIONS}, that of {_loops_text(keys)}")
        known = [(key.label, bound) for key in keys if (bound := self._bound(key).info.bound) is not None]
        bounds = ", ".join(f"{label} {bound}" for label, bound in known)
        given = dict.fromkeys(said for label, bound in known for said in bound.given_for(label))
        return TransferredBound(
            maximum, f"transferred by the compiler's line table from {where}: {bounds}", where, tuple(given)
        )

    def _asks(self, keys: Iterable[_PtxLoop]) -> tuple[AskedBound, ...]:
        known = zip(self.source.keys, self.source.infos, strict=True)
        open_ends = [info for key, info in known if key in keys and self.source.most[key] is None]
        return tuple(dict.fromkeys(ask for info in open_ends if info.bound is None for ask in info.asks))

    def _bound(self, key: _PtxLoop) -> _PtxLoopBound:
        most = self.source.most[key]
        if most is None:
            asks = self._asks([key])
            given = " ".join(f"--loop-bound '{name}=N'" for name in [asked.name for asked in asks] or [key.label])
            raise _NoBoundError(f"it is a copy of PTX loop {key}, whose bound nobody knows: give {given}", asks)
        return most

    def _chain(self, outermost: _PtxLoop, inner: Set[_PtxLoop]) -> tuple[_PtxLoop, ...]:
        """Return all loops from the innermost one to the outermost one.

        Raises:
            _No: they are not all inside of each other, or copies of one stand in several loops.
        """
        last = max(inner, key=lambda key: len(self.source.around[key] & inner), default=outermost)
        chain = [last]
        while chain[-1] != outermost:
            above = self.source.outer(chain[-1])
            key = next(iter(above))
            if len(above) > 1 or key is None:
                raise _NoBoundError(f"it has lines of PTX loops in several places: {_loops_text({outermost, *inner})}")
            chain.append(key)
        if not inner <= {*chain}:
            raise _NoBoundError(
                f"it has lines of PTX loops that are not inside of each other: {_loops_text({outermost, *inner})}"
            )
        return tuple(reversed(chain))

    def _refuse_gaps(self, own: Sequence[int]) -> None:
        """Refuse what no line tells, and loops that may have merged with others."""
        inside = self.source.inside
        for block in own:
            if self.flow.has_sides(block) and self._last(block) not in inside:
                raise _NoBoundError(f"the line table does not tell of which PTX line `{self.flow.last(block)}` is")
        touched = {key for block in own for line in self._lines(block) for key in inside.get(line, ()) if key}
        touched = touched.union(*(self.source.around[key] for key in touched))  # merging may have happened at any level
        if elusive := touched & self.source.elusive:
            raise _NoBoundError(f"PTX loop {min(elusive)} can go around without a test of its own")

    def _goes_past(self, number: int, own: Sequence[int], keys: Set[_PtxLoop]) -> bool:
        loop, tests = self.nest.loops[number], self.source.tests
        at = {block: tests.get(self._last(block)) for block in own if self.flow.has_sides(block)}
        passed = {block for block, key in at.items() if key is not None and key in keys}
        return goes_around(self.flow, loop, passed)

    def _around(self, number: int) -> Iterator[int]:
        outer = self.nest.loops[number].outer
        while outer is not None:
            yield outer
            outer = self.nest.loops[outer].outer

    def _lines(self, block: int) -> Set[int]:
        return {line for number in self.flow.numbers(block) if (line := self._line(number))}

    def _last(self, block: int) -> int:
        return self._line(self.flow.blocks[block].stop - 1)

    def _line(self, number: int) -> int:
        place = self.flow.code[number].ptx
        return 0 if place is None else place.line


def _loops_text(keys: Iterable[_PtxLoop]) -> str:
    return ", ".join(map(str, sorted(keys, key=lambda key: key.line)))
