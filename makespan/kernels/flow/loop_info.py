"""The bound that holds for each loop, and the facts that a report shows about it.

In this order: the command line, a bounds file, our own comments, the comments of the compiler, inference. A bound that
is inferred and exact takes the place of one in a comment that it keeps; one that is told from outside of the kernel
holds where it is below what is inferred. Whoever says it: a bound that the code contradicts is an error, unless the
user insists.

A comment such as `// makespan: loop N` marks a point that is passed once in every iteration of a source loop, so at
most N times for each entry. A compiler that unrolls the loop copies the comment. If every pass through a loop of the
code meets at least k copies, there are at most floor(N / k) passes, and floor(N / k) takes the place of N. Copies on
different sides of a branch are not added up: only those that no pass avoids count. A loop tested at its bottom keeps at
least 1, because it is only entered when it runs.

Comments of one loop may also be those of two source loops with the same N, of which the inner one was unrolled
entirely; neither text nor line tells, for an inlined function or a macro may write both. N as it stands is safe in
either case. It is divided only where the whole loop is one body three times or more, instruction by instruction, and
all that it counts up by constants goes up by a multiple of k in each pass. Comments that a pass can avoid tell no
bound, for there may be more passes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch, LaunchInput
from makespan.kernels.flow.inference import ProvenIterations, deciders, infer_iterations
from makespan.kernels.flow.instruction_set import AskedBound, LoopMark, Routine, TransferredBound
from makespan.kernels.flow.loops import MAX_ITERATIONS, BoundBasis, GivenBound, Loop, LoopBound, LoopNest, loop_nest

_FEWEST_COPIES = 3


def noted_bounds(flow: Flow, nest: LoopNest) -> dict[int, LoopBound | str]:
    """Return the bounds of loops that comments tell, by number of the loop; our own comments win over the compiler's.

    Where comments stand in a loop and tell no bound, the reason stands in place of it.

    Raises:
        InputError: a comment that is ill-formed.
    """
    everywhere = tuple(flow.semantics.marks())
    marks: dict[tuple[int, bool], list[LoopMark]] = {}
    for mark in everywhere:
        if mark.block in nest.innermost:
            marks.setdefault((nest.innermost[mark.block], mark.is_own), []).append(mark)
    by_author = sorted(marks.items(), key=lambda item: item[0][1])  # the compiler first
    return {number: _noted_bound(flow, nest.loops[number], found, everywhere) for (number, _), found in by_author}


def _noted_bound(flow: Flow, loop: Loop, marks: list[LoopMark], everywhere: Sequence[LoopMark]) -> LoopBound | str:
    """Return the bound that the comments in one loop tell, or the reason why they tell none."""
    first, file, name = marks[0], flow.kernel.file, flow.name(loop.header)
    for mark in marks:
        if (mark.maximum, mark.source) != (first.maximum, first.source):  # comments of two source loops
            return (
                f"{file}:{mark.line}: this comment and that in line {first.line} differ, but stand in one loop,"
                f" {name} (an inner loop may be unrolled entirely); give a --loop-bound instead"
            )
    if not 0 <= first.maximum <= MAX_ITERATIONS:
        raise InputError(f"{file}:{first.line}: a loop bound must be 1..{MAX_ITERATIONS}, not {first.maximum}")
    source = f"comment at {file}:{first.line}"
    copies = _fewest_marks(flow, loop, [mark.block for mark in marks])
    if not copies and first.is_own:  # a pass can avoid the comment, which then bounds nothing
        return (
            f"{file}:{first.line}: loop {name} can repeat without passing this comment, which then tells no bound;"
            " put it where every iteration passes, or give a --loop-bound instead"
        )
    if copies > 1 and not _is_unrolled(flow, loop, marks, everywhere):  # N itself is safe in either case
        doubt = f"{source}, not divided by {copies}, as these need not be copies of one comment"
        return LoopBound(first.maximum, exact=False, source=doubt, by=BoundBasis.COMMENT)
    if copies < 2:
        return LoopBound(first.maximum, exact=False, source=source, by=BoundBasis.COMMENT)
    # each pass uses up `copies` iterations of the source
    passes = max(first.maximum // copies, int(loop.is_bottom_tested))
    said = f"{source}, {copies} copies of {first.maximum} iterations"
    return LoopBound(passes, exact=False, source=said, by=BoundBasis.COMMENT)


def _is_unrolled(flow: Flow, loop: Loop, marks: list[LoopMark], everywhere: Sequence[LoopMark]) -> bool:
    if len(marks) < _FEWEST_COPIES or len({mark.place for mark in marks}) > 1:  # two copies may be two loops by chance
        return False
    numbers = (number for block in loop.blocks for number in flow.numbers(block))
    totals = Counter[str]()
    for register, step in filter(None, map(flow.semantics.step, numbers)):
        totals[register] += step
    # counters must go up by as many steps as there are copies
    counts_up = bool(totals) and all(total % len(marks) == 0 for total in totals.values())
    return counts_up and _repeats_itself(flow, loop, marks, everywhere)


def _repeats_itself(flow: Flow, loop: Loop, marks: list[LoopMark], everywhere: Sequence[LoopMark]) -> bool:
    """Return whether the text is one body again and again, with a mark in each, and control behind the last."""
    lines = {mark.line for mark in marks}
    cuts_before = Counter((mark.block, mark.at) for mark in everywhere if mark.line in lines)
    pieces: list[list[str]] = [[]]
    for block in sorted(loop.blocks):
        for number in (*flow.numbers(block), flow.blocks[block].stop):
            pieces += ([] for _ in range(cuts_before[block, number]))
            if number < flow.blocks[block].stop:
                pieces[-1].append(flow.code[number].opcode)
    before, *between, after = pieces
    if not between[0] or any(piece != between[0] for piece in between):
        return False
    body = between[0]
    cuts = range(len(body) + 1)  # the loop may begin anywhere in the body
    return any(after[:cut] == body[:cut] and before[len(before) - len(body) + cut :] == body[cut:] for cut in cuts)


def _fewest_marks(flow: Flow, loop: Loop, marked: list[int]) -> int:
    marks = Counter(marked)
    queue, done = [(marks[loop.header], loop.header)], set[int]()
    while queue:
        met, block = heappop(queue)  # Dijkstra's algorithm, with marks as distances
        if block in loop.latches:
            return met
        if block not in done:
            done.add(block)
            for after in loop.blocks.intersection(flow.blocks[block].successors):
                heappush(queue, (met + marks[after], after))
    return 0


R = TypeVar("R", bound=Routine)


class LoopInfo(NamedTuple):
    """A loop as a report shows it; `line` is in the kernel, `source_line` is FILE:LINE of what it was compiled from.

    `hint` says why the comments in a loop without a bound tell none. `against` says what the code makes of a loop whose
    bound was trusted although it contradicts that. `origin` is the place from which something is told of it, as text,
    and `others` are the further bounds that are known then. `asks` are the loops whose bounds are to be given where
    this one has none: itself, or those from which something is told of it.
    """

    label: str
    line: int
    source_line: str | None
    bound: LoopBound | None
    depth: int
    hint: str | None = None
    against: str | None = None
    origin: str | None = None
    others: tuple[LoopBound, ...] = ()
    asks: tuple[AskedBound, ...] = ()


def loop_infos(
    flow: Flow, nest: LoopNest, given: Sequence[GivenBound], launch: Launch, warp: int | None = None
) -> tuple[LoopInfo, ...]:
    """Return the loops of the nest, each with its bound as far as one is known, for one warp or for every one.

    Raises:
        InputError: a bound for no loop, or one that another bound or the code contradicts.
    """
    names = _LoopNames.of(flow, nest)
    bounds = _match_bounds(names, [g for g in given if g.place])  # a bounds file first, so that the command line wins
    bounds |= _match_bounds(names, [g for g in given if not g.place])
    insisted = frozenset(number for g in given if g.trusted for number in names.matching(g))
    proven = infer_iterations(flow, nest, launch, warp) if flow.is_plain else {}
    hints: dict[int, str] = {}
    if any(number not in bounds for number in range(len(nest.loops))):  # comments are read only if they are needed
        told, hints = _derived_bounds(flow, nest, proven)
        bounds = told | bounds
    against = {n: found for n, bound in bounds.items() if n in proven and (found := proven[n].disproof(bound))}
    for number, bound in bounds.items():
        if number in proven and proven[number].implies(bound):
            # proven by the code, so no word of a user is left
            bounds[number] = bound._replace(by=BoundBasis.CODE, given=())
        _check(names.labels[number], nest.loops[number], bound, None if number in insisted else against.get(number))
    undecided = _undecided_loops(flow, nest, launch, proven) if len(bounds) < len(nest.loops) else {}
    return tuple(
        LoopInfo(
            names.labels[n],
            flow.blocks[loop.header].line,
            names.sources[n],
            bounds.get(n),
            loop.depth,
            None if n in bounds else hints.get(n),
            against.get(n),
            *_transferred_besides(flow, loop, bounds.get(n), proven.get(n)),
            asks=() if n in bounds else _asks(flow, loop, names, n, undecided.get(n, ())),
        )
        for n, loop in enumerate(nest.loops)
    )


def _undecided_loops(
    flow: Flow, nest: LoopNest, launch: Launch, proven: Mapping[int, ProvenIterations]
) -> Mapping[int, tuple[LaunchInput, ...]]:
    return deciders(flow, nest, launch, [n for n in range(len(nest.loops)) if n not in proven or not proven[n].bound])


def _asks(
    flow: Flow, loop: Loop, names: "_LoopNames", number: int, deciders: tuple[LaunchInput, ...]
) -> tuple[AskedBound, ...]:
    told = flow.transferred.get(loop.header)
    if told is not None and told.asks:
        return tuple(asked._replace(deciders=asked.deciders or deciders) for asked in told.asks)
    label, line, source = names.labels[number], flow.blocks[loop.header].line, names.sources[number]
    key = names.of_line(number) if told is None else label
    if key != label:
        return (AskedBound(key, f"at {key}", deciders),)
    place = f"at {label}" if label == str(line) else f"{label} ({flow.kernel.file}:{line})"
    if source is not None:
        count = names.sources.count(source)
        place += f", one of {count} loops that the compiler made of {source}" if count > 1 else f" ({source})"
    return (AskedBound(label, place, deciders),)


def _transferred_besides(
    flow: Flow, loop: Loop, bound: LoopBound | None, proven: ProvenIterations | None
) -> tuple[str | None, tuple[LoopBound, ...]]:
    """Return the place outside that tells of a loop, and the bounds that are known besides the one that holds."""
    told = flow.transferred.get(loop.header)
    if told is None:
        return None, ()
    known = (proven and proven.bound, _bound(told))
    return told.origin, tuple(other for other in known if other is not None and other != bound)


def _bound(told: TransferredBound) -> LoopBound | None:
    return None if told.maximum is None else LoopBound(told.maximum, False, told.source, BoundBasis.LINES, told.given)


def _check(label: str, loop: Loop, bound: LoopBound, disproof: str | None) -> None:
    if bound.maximum == 0 and loop.is_bottom_tested:
        raise InputError(f"{bound.source}: loop {label} runs its body before it tests, so its bound is at least 1")
    if disproof is not None:
        leave = "" if bound.by is BoundBasis.COMMENT else " or leave it out (solve --trust-bounds would believe it)"
        if bound.by is BoundBasis.LINES:
            leave = f", or give --loop-bound '{label}=N' for this copy"
        raise InputError(f"loop {label}: {bound}, but it makes {disproof}; correct the bound{leave}")


def _derived_bounds(
    flow: Flow, nest: LoopNest, proven: Mapping[int, ProvenIterations]
) -> tuple[dict[int, LoopBound], dict[int, str]]:
    """Return the bounds from comments, inference and outside of the kernel, and why there is none for other loops.

    Raises:
        InputError: a comment that is ill-formed.
    """
    found = {number: bound for number, one in proven.items() if (bound := one.bound) is not None}
    hints: dict[int, str] = {}
    for number, noted in noted_bounds(flow, nest).items():
        if not isinstance(noted, LoopBound):
            hints[number] = noted
        # an exact inferred bound wins over a comment that it keeps
        elif number not in found or not found[number].exact or found[number].maximum > noted.maximum:
            found[number] = noted
    for number, loop in enumerate(nest.loops):
        told = flow.transferred.get(loop.header)
        bound = _bound(told) if told is not None else None
        # of inferred and transferred bounds the smaller holds
        if bound is not None and (number not in found or bound.maximum < found[number].maximum):
            found[number] = bound
        elif bound is None and told is not None:
            hints[number] = told.source
    return found, hints


def bounds_for(
    kernel: R, given: Iterable[GivenBound], kernels: Iterable[R], flow: Callable[[R], Flow]
) -> tuple[GivenBound, ...]:
    """Return the bounds without those that fit only another of these kernels, so that one set can serve them all.

    Other kernels are looked at only where a bound that names no kernel does not fit this one. Of a kernel whose loops
    cannot be told, every label counts as one.

    Raises:
        InputError: control flow of `kernel` that is not understood.
    """
    given = tuple(given)
    own = _LoopNames.of(found := flow(kernel), loop_nest(found)) if given else None
    strange = [g for g in given if own is not None and g.kernel is None and not own.matching(g)]
    for other in (k for k in kernels if k.name != kernel.name):
        if not strange:
            break
        foreign = _bounds_of_kernel(other, strange, flow)  # a label of another kernel is no error here
        strange = [g for g in strange if g not in foreign]
        given = tuple(g for g in given if g not in foreign)
    return given


def _bounds_of_kernel(kernel: R, given: Iterable[GivenBound], flow: Callable[[R], Flow]) -> list[GivenBound]:
    try:
        names = _LoopNames.of(found := flow(kernel), loop_nest(found))
    except InputError:
        return [g for g in given if g.key in kernel.labels]  # control flow that is not understood still has labels
    return [g for g in given if names.matching(g)]


def bounds_that_fit(flow: Flow, given: Iterable[GivenBound]) -> tuple[GivenBound, ...]:
    """Return the bounds that some loop is meant by.

    Raises:
        UnsupportedError: control flow that has no natural loops.
    """
    names = _LoopNames.of(flow, loop_nest(flow))
    return tuple(one for one in given if names.matching(one))


def bounds_template(kernels: Sequence[R], loops: Callable[[R], Sequence[LoopInfo]], remarks: Iterable[str] = ()) -> str:
    """Return a bounds file to fill in: a line for each loop, `LABEL,?` where no bound is known.

    Of several kernels, one whose control flow cannot be followed has a comment that says so.

    Raises:
        InputError: see `loop_infos`.
    """
    lines = [
        "# Loop bounds: LABEL,N for at most N iterations, LABEL,==N for exactly N. Replace every ? by a number.",
        "# An iteration is one execution of the body; a loop that tests before its body may have 0.",
        *(f"# {remark}" for remark in remarks),
    ]
    for kernel in kernels:
        try:
            infos = loops(kernel)
        except UnsupportedError as refusal:
            if len(kernels) == 1:
                raise
            lines += ["", f"# kernel {kernel.name} is refused: {refusal}"]
            continue
        lines += ["", f"# kernel {kernel.name}: {len(infos)} loop{'s' * (len(infos) != 1)}"]
        for info in infos:
            lines += template_lines(info, kernel, with_name=len(kernels) > 1)
    return "\n".join(lines) + "\n"


def template_lines(info: LoopInfo, kernel: Routine, *, with_name: bool = False) -> tuple[str, str]:
    """Return the two lines of a bounds file for one loop: where it is, and its bound or `?`."""
    source = f", {info.origin}" if info.origin else ""
    source += f", source {info.source_line}" if info.source_line else ""
    known = f", {info.bound}" if info.bound else ""
    known = known or (f"; {info.hint}" if info.hint else "")
    if deciders := _deciders(info):
        known += f"; {' and '.join(map(str, deciders))} would tell its bound"
    known += "".join(f", or {other}" for other in info.others)
    count = "?" if info.bound is None else f"{'==' * info.bound.exact}{info.bound.maximum}"
    return (
        f"# {kernel.file}:{info.line}{source}, depth {info.depth}{known}",
        f"{info.label},{count}" + (f",{kernel.name}" if with_name else ""),
    )


def _deciders(info: LoopInfo) -> list[LaunchInput]:
    """Return the inputs that would tell the bound of a loop; none where they do not tell all that is asked for."""
    each = [asked.deciders for asked in info.asks]
    return list(dict.fromkeys(decider for deciders in each for decider in deciders)) if all(each) else []


@dataclass(frozen=True, slots=True)
class _LoopNames:
    """The names of the loops of a kernel: their labels, `line:N`, and FILE:LINE of the source."""

    kernel: Routine
    labels: tuple[str, ...]
    sources: tuple[str | None, ...]
    by_name: Mapping[str, list[int]]
    by_source: Mapping[str, list[tuple[int, str]]]

    @classmethod
    def of(cls, flow: Flow, nest: LoopNest) -> "_LoopNames":
        by_name: dict[str, list[int]] = {}
        labels = tuple(flow.name(loop.header) for loop in nest.loops)
        for number, loop in enumerate(nest.loops):
            for name in {labels[number], f"line:{flow.blocks[loop.header].line}"}:
                by_name.setdefault(name, []).append(number)
        found = [flow.blocks[loop.header].source for loop in nest.loops]
        sources = tuple(str(source) if source is not None and source.line else None for source in found)
        by_source: dict[str, list[tuple[int, str]]] = {}
        for number, source in enumerate(sources):
            if source is not None:
                path = "/" + source.replace("\\", "/")
                by_source.setdefault(_last_part(path), []).append((number, path))
        return cls(flow.kernel, labels, sources, by_name, by_source)

    def of_line(self, number: int) -> str:
        """Return FILE:LINE by the shortest end of its path, where this means this loop alone; else the label."""
        source = self.sources[number] or ""
        parts = source.replace("\\", "/").split("/") if source.isprintable() else []
        ends = ("/".join(parts[first:]) for first in reversed(range(len(parts))))
        known = (end for end in ends if end and self.matching(GivenBound(end, 1)) == [number])
        return next(known, self.labels[number])

    def matching(self, given: GivenBound) -> list[int]:
        """Return the loops that a bound is meant for, by number; a file may be given by the end of its path."""
        if given.kernel not in (None, self.kernel.name):
            return []
        if given.key in self.by_name:
            return self.by_name[given.key]
        return [
            number for number, path in self.by_source.get(_last_part(given.key), ()) if path.endswith(f"/{given.key}")
        ]


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]


def _match_bounds(names: _LoopNames, given: Iterable[GivenBound]) -> dict[int, LoopBound]:
    found: dict[int, LoopBound] = {}
    for bound in given:
        numbers = names.matching(bound)
        if not numbers and bound.kernel in (None, names.kernel.name):
            loops = zip(names.labels, names.sources, strict=True)
            known = ", ".join(f"{label} ({source})" if source else label for label, source in loops)
            has = f"its loops are: {known}" if known else "it has no loop"
            raise InputError(f"{bound.source}: no loop {bound.key} in kernel {names.kernel.name}; {has}")
        if bound.exact and len(numbers) > 1 and bound.key not in names.by_name:
            several = ", ".join(names.labels[n] for n in numbers)
            raise InputError(f"{bound.source}: {bound.key} is the line of several loops; say which: {several}")
        for number in numbers:
            said = LoopBound(bound.maximum, bound.exact, bound.source, BoundBasis.USER)
            other = found.setdefault(number, said)
            if other[:2] != said[:2]:  # the same bound twice is no contradiction
                raise InputError(f"two bounds for loop {names.labels[number]} differ: {other} and {said}")
    return found
