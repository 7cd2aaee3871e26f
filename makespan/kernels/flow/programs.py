"""From the control flow of a kernel to the programs of its warps, and the analyses that every language offers."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar

from makespan.host.errors import InputError, MissingInput
from makespan.kernels.flow import loop_info
from makespan.kernels.flow.automaton import Automaton, AutomatonBuilder, Branching
from makespan.kernels.flow.barriers import refuse_inexpressible, refuse_parted_barriers, with_arrivals, with_barriers
from makespan.kernels.flow.branches import BranchInfo, TraceStep, branch_infos, preferred_sides
from makespan.kernels.flow.graph import Flow, Reconvergence, reach, reconvergences
from makespan.kernels.flow.grid import Launch
from makespan.kernels.flow.instruction_set import Routine
from makespan.kernels.flow.loop_info import LoopInfo, loop_infos
from makespan.kernels.flow.loops import BoundBasis, GivenBound, LoopNest, loop_nest
from makespan.kernels.flow.operations import TimedCode
from makespan.kernels.flow.tokens import drop_needless_tokens
from makespan.kernels.flow.uniformity import decided_sides, declared_uniform, uniform_branches
from makespan.kernels.flow.walk import (
    BoundedFlow,
    by_take,
    by_trace,
    missing_bounds,
    missing_inputs_error,
    unbounded_in,
    unbounded_on_path,
)
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.lapses import NO_LAPSES, PlaceLapses
from makespan.model.machine import PAPER, GivenRange, Machine
from makespan.model.program import Access, InstructionOrigin, Program, ProgramPlace, merge_neighbours

PathMode: TypeAlias = Literal["automaton", "single"]


class WarpOptions(TypedDict, total=False):
    """The keywords by which every language makes programs; one that is left out has its default.

    Args:
        loop_bounds: bounds that win over those in comments of the kernel and over inferred ones.
        take: `taken` or `fall` by label, or by `:LINE` (`:ADDRESS` in machine code), of the branch.
        trace: the outcome of every executed branch, in order.
        paths: see `KernelWarps`.
        machine: where it times operations, they decide class and latency of each instruction.
        latencies: of operations, instead of those of the machine; see `machine.given_latencies`.
        warm: whether the launch before was of the same kernel and left its code and constants in their caches.
        launch: what is known of block, grid and parameters.
    """

    loop_bounds: Sequence[GivenBound]
    take: Mapping[str, str] | None
    trace: Sequence[TraceStep] | None
    paths: PathMode | None
    machine: Machine
    latencies: Mapping[str, GivenRange] | None
    warm: bool
    launch: Launch | None


_MOST_LINES = 3


_WarpFacts: TypeAlias = tuple[tuple[LoopInfo, ...], tuple[tuple[int, int], ...]]
"""The facts in which warps differ: their loops, and the sides that they take."""


@dataclass(frozen=True)
class KernelWarps:
    """The warps of a launched kernel.

    Args:
        given: bounds that win over those that the kernel tells.
        take: `taken` or `fall` by label, or by `:LINE`, of the branch.
        trace: the outcome of every executed branch, in order.
        paths: `single` for the one path that take or trace fix, and the default with them; `automaton` for all paths,
            without the sides that `take` leaves out.

    Raises:
        InputError: no instruction, or a launch that does not fit the kernel.
        UnsupportedError: control flow that has no natural loops.
    """

    code: TimedCode
    launch: Launch
    given: Sequence[GivenBound]
    take: Mapping[str, str] = field(default_factory=dict)
    trace: Sequence[TraceStep] | None = None
    paths: PathMode | None = None
    flow: Flow = field(init=False, repr=False)
    _units: tuple[str | None, ...] = field(init=False, repr=False)
    _nest: LoopNest = field(init=False, repr=False)
    _kept: dict[int | None, tuple[BoundedFlow, dict[int, int], frozenset[int]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _expressible: set[frozenset[int]] = field(default_factory=set, init=False, repr=False, compare=False)
    _made: dict[_WarpFacts, Program] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flow", self.code.flow)
        kernel = self.flow.kernel
        if not self.flow.code:
            raise InputError(f"{kernel.file}:{kernel.line}: {kernel.name} has no instruction")
        object.__setattr__(self, "launch", self.flow.semantics.signature.fit(self.launch))
        object.__setattr__(self, "_units", with_barriers(self.flow, self.code.units, self.launch))
        object.__setattr__(self, "_nest", loop_nest(self.flow))

    def missing(self, asked: Container[str] = ()) -> tuple[MissingInput, ...]:
        """Return the inputs about the warps of a block that are missing before there can be programs.

        Args:
            asked: the fields of the launch that are asked for anyway.

        Raises:
            InputError: a bound or `take` that does not fit, or `take` beside a trace.
        """
        bounds = dict[MissingInput, None]()
        numbers = range(self.launch.warps_per_block or 0) if self._kind == "automaton" else ()
        for warp in numbers or (None,):
            bounds |= dict.fromkeys(self._missing_bounds(warp, asked))
        return (*bounds, *self.code.missing)

    def program(self, warp: int | None = None) -> Program:
        """Return what one warp of the block may execute; None is for what every warp may.

        Raises:
            MissingInputsError: a loop without bound, or a latency without a known upper end.
            InputError: a bound, `take` or `trace` that does not fit, or both of these.
            UnsupportedError: control flow or a barrier that cannot be followed; the message names the remedy.
        """
        bounded, sides, visited = self._facts(warp)
        if missing := (*self._missing_bounds(warp), *self.code.missing):
            raise missing_inputs_error(self.flow.kernel, missing, self.launch.named)
        if self._kind == "single":
            return self._path(bounded)
        known = bounded.infos, tuple(sorted(sides.items()))  # warps with equal loops and sides share one program
        if known not in self._made:
            self._made[known] = self._automaton(bounded, sides, visited)
        return self._made[known]

    def programs(self) -> tuple[tuple[Program, int], ...]:
        """Return the programs of the warps of a block in the order of the launch, each with how many in a row run it.

        Warps differ where the launch decides their branches differently, as in `if (threadIdx.x / 32 == 0)`. The warps
        of a block are numbered by the linear index of their threads, which CUDA counts along x first, then y, then z.

        Raises:
            MissingInputsError: see `program`; what all warps need is asked for at once.
            InputError: see `program`; a launch without block.
            UnsupportedError: see `program`.
        """
        warps = self.launch.warps_per_block
        if warps is None:
            raise InputError(f"the number of warps is not known: give {self.launch.named('block')}")
        if missing := self.missing():
            raise missing_inputs_error(self.flow.kernel, missing, self.launch.named)
        if self._kind == "single":
            return ((self.program(), warps),)
        return merge_neighbours((self.program(warp), 1) for warp in range(warps))

    def _facts(self, warp: int | None) -> tuple[BoundedFlow, dict[int, int], frozenset[int]]:
        """Return the loops of a warp, the sides that it takes where all paths count, and the blocks in reach."""
        if warp not in self._kept:
            infos = loop_infos(self.flow, self._nest, self.given, self.launch, warp)
            sides = (
                decided_sides(self.flow, self.launch, warp) if self._kind == "automaton" and self.flow.is_plain else {}
            )
            sides |= preferred_sides(self.flow, self.take)  # what a user says wins over what was decided
            self._kept[warp] = BoundedFlow(self.flow, self._nest, infos), sides, _reachable(self.flow, sides)
        return self._kept[warp]

    def _missing_bounds(self, warp: int | None, asked: Container[str] = ()) -> tuple[MissingInput, ...]:
        if self.trace is not None:
            return ()
        bounded, sides, visited = self._facts(warp)
        if self._kind == "single":
            return missing_bounds(bounded, unbounded_on_path(bounded, sides), asked)
        if "block" not in asked and visited not in self._expressible:
            # before asking for bounds that would not help
            refuse_inexpressible(self.flow, sorted(visited), self.launch)
            self._expressible.add(visited)
        return missing_bounds(bounded, unbounded_in(bounded, visited), asked)

    @cached_property
    def _kind(self) -> PathMode:
        if self.take and self.trace is not None:
            raise InputError("give either take or trace, not both")
        if self.paths == "automaton" and self.trace is not None:
            raise InputError("a trace fixes one path: no --paths automaton beside it")
        return self.paths or ("single" if self.take or self.trace is not None else "automaton")

    @cached_property
    def _uniform(self) -> frozenset[int]:
        return uniform_branches(self.flow, self.launch) if self.flow.is_plain else declared_uniform(self.flow)

    @cached_property
    def _rules(self) -> tuple[Reconvergence, ...]:
        return reconvergences(self.flow)

    def _path(self, bounded: BoundedFlow) -> Program:
        path = by_take(bounded, self.take) if self.trace is None else by_trace(bounded, self.trace)
        visited = frozenset(path)
        refuse_inexpressible(self.flow, sorted(visited), self.launch)
        served = [at for block in path for at in self.flow.numbers(block) if self._units[at] is not None]
        if not served:
            raise self._nothing(always=True)
        places = tuple(ProgramPlace(self._units[at] or "", (number,)) for number, at in enumerate(served, start=1))
        timings = tuple(self.code.timings[at] for at in served) if self.code.timings else ()
        made = Automaton(places, (0,), tuple((at,) for at in served), timings=timings)
        return self._program(made, (*self._remarks(visited), *self._about_path(bounded, visited)))

    def _automaton(self, bounded: BoundedFlow, sides: Mapping[int, int], visited: Set[int]) -> Program:
        """Return everything that a warp may execute that takes these sides, which lead to these blocks."""
        parting = frozenset(block for block in visited - self._uniform - sides.keys() if self.flow.has_sides(block))
        rules = self._rules if parting else (Reconvergence({}, drops=False),)
        refuse_parted_barriers(self.flow, parting, rules)
        builder = AutomatonBuilder(bounded, self._units, self.code.timings)
        made = builder.automaton(Branching(bounded, rule, self._uniform, sides) for rule in rules)
        if made is None:
            kernel, known = self.flow.kernel, [info for info in bounded.infos if info.bound]
            said = ", ".join(f"loop {info.label} {info.bound}" for info in known)
            where = f"{kernel.file}:{kernel.line}"
            raise InputError(f"{where}: no path through {kernel.name} keeps the loop bounds: {said}")
        if made.may_be_empty:  # a program has at least one place on every path
            raise self._nothing(always=not made.places)
        return self._program(made, (*self._remarks(visited), *self._about_paths(bounded, visited, parting)))

    def _program(self, made: Automaton, assumed: tuple[Assumption, ...]) -> Program:
        if self.code.timings:
            made = drop_needless_tokens(with_arrivals(made), self.code.results)  # arrivals first: they await tokens
        origins = tuple(self._origin(behind) for behind in made.instructions)
        accesses: tuple[Access | None, ...] = ()
        if any(one is not None for one in self.code.accesses):
            # a place that stands for several instructions takes the worst of them
            accesses = tuple(Access.worst(self.code.accesses[at] for at in behind) for behind in made.instructions)
        lapses: tuple[PlaceLapses, ...] = ()
        if self.code.lapses:
            lapses = tuple(
                reduce(or_, (self.code.lapses[at] for at in behind), NO_LAPSES) for behind in made.instructions
            )
        return Program(made.places, made.starts, origins, assumed, made.timings, accesses, lapses)

    def _remarks(self, visited: Set[int]) -> Iterator[Assumption]:
        numbers = [number for block in sorted(visited) for number in self.flow.numbers(block)]
        return self.code.remarks(numbers, any(self.flow.has_sides(block) for block in visited))

    def _origin(self, behind: Sequence[int]) -> InstructionOrigin:
        first, source = self.flow.code[behind[0]], self.flow.effects[behind[0]].source
        more = [self.flow.at(self.flow.code[at].line) for at in behind[1:_MOST_LINES]]
        also = f" (or {', '.join(more)}{', ...' * (len(behind) > _MOST_LINES)})" if more else ""
        return InstructionOrigin(self.flow.kernel.file, first.line, f"{first}{also}", str(source or ""))

    def _about_paths(self, bounded: BoundedFlow, visited: Set[int], parting: Set[int]) -> Iterator[Assumption]:
        if self.take:
            yield _about_take(self.take)
        for loop, info in zip(bounded.nest.loops, bounded.infos, strict=True):
            if loop.header in visited and info.bound is not None:
                yield from _about_loop(info, str(info.bound))
        if any(info.bound is not None and info.bound.by is BoundBasis.COMMENT for info in bounded.infos):
            yield assumptions.comments_of_loops()
        yield from _about_launch(self.launch)
        if parting:
            lines = sorted({self.flow.last(block).line for block in parting})
            where = (
                "immediate post-dominator"
                if self.flow.meetings is None
                else "end of the innermost BSSY, if any, whatever a side parts into before the other side"
            )
            yield assumptions.lanes(
                f"lanes part at {self._at(lines)}, run one side after the other in any order, and reconverge at the"
                f" {where}: sides are not interleaved, as independent thread scheduling might"
            )
            waiting = (n for block in visited for n in self.flow.numbers(block) if self.flow.effects[n].joins_lanes)
            if synchronous := sorted({self.flow.code[number].line for number in waiting}):
                yield assumptions.lanes(f"lanes that wait for each other come together at {self._at(synchronous)}")

    def _about_path(self, bounded: BoundedFlow, visited: Set[int]) -> Iterator[Assumption]:
        take, trace = self.take, self.trace
        if take:
            yield _about_take(take)
        if trace is not None:
            start = f", from {trace[0].place}" if trace else ""
            yield assumptions.one_path(f"a trace of {len(trace)} branches{start}")
        for loop, info in zip(bounded.nest.loops, bounded.infos, strict=True):
            if loop.header in visited and info.bound is not None:
                is_at_most = bool(take) and not info.bound.exact
                to_maximum = ", run to this maximum unless take leaves it earlier" * is_at_most
                yield from _about_loop(info, f"{info.bound}{to_maximum}")
        yield from _about_launch(self.launch)

    def _at(self, places: Sequence[int]) -> str:
        return self.flow.at(*places[:_MOST_LINES]) + ", ..." * (len(places) > _MOST_LINES)

    def _nothing(self, *, always: bool) -> InputError:
        kernel = self.flow.kernel
        what = (
            "a warp executes nothing that needs a unit, so this takes 0 cycles and there is nothing to solve"
            if always
            else "a warp may end before any instruction needs a unit, which no program can say; fix it with --take"
        )
        return InputError(f"{kernel.file}:{kernel.line}: {kernel.name}: {what}")


def kernel_warps(
    flow: Flow,
    code: Callable[[Machine, Mapping[str, GivenRange], bool], TimedCode],
    *,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[TraceStep] | None = None,
    paths: PathMode | None = None,
    machine: Machine = PAPER,
    latencies: Mapping[str, GivenRange] | None = None,
    warm: bool = False,
    launch: Launch | None = None,
) -> KernelWarps:
    """Return the warps of a launch for `WarpOptions`.

    Args:
        code: how a machine times them, with the latencies that are given, in caches that are warm or not.

    Raises:
        InputError: warm caches of a machine that knows none.
    """
    fitted = flow.semantics.signature.fit(launch or Launch())  # what does not fit is told before unknown opcodes
    if warm and not machine.fetches:
        raise InputError(
            f"machine {machine.name!r} knows no cache of code or constants, so {fitted.named('warm')} says nothing:"
            " leave it out"
        )
    timed = code(machine, latencies or {}, warm)
    return KernelWarps(timed, fitted, tuple(loop_bounds), take or {}, trace, paths)


def _about_take(take: Mapping[str, str]) -> Assumption:
    return assumptions.one_path(", ".join(f"{key}={side}" for key, side in take.items()))


def _about_launch(launch: Launch) -> Iterator[Assumption]:
    if said := str(launch):
        yield assumptions.launch(said, [f"{name}={value}" for name, value in launch.parameters.items()])


def _about_loop(info: LoopInfo, said: str) -> Iterator[Assumption]:
    if info.bound is None:
        return
    given = info.bound.given_for(info.label)
    if info.against is not None:
        yield assumptions.trusted_loop(info.label, said, info.against)
    elif info.bound.by is BoundBasis.LINES:
        yield assumptions.transferred_loop(info.label, said)
        if given:
            yield assumptions.given_in_ptx(given)
    elif given:
        yield assumptions.given_loop(info.label, said, given)
    else:
        yield assumptions.loop(info.label, said)


def _reachable(flow: Flow, decided: Mapping[int, int]) -> frozenset[int]:
    def after(block: int) -> Sequence[int]:
        afters = flow.blocks[block].successors if block != flow.exit else ()
        return (afters[decided[block]],) if block in decided else afters

    return frozenset(reach([0], after) - {flow.exit})


class CompiledRoutine(Routine, Protocol):
    """A kernel that may remember how it was made."""

    @property
    def compilation(self) -> object | None:
        """Return how the kernel was made, in words; None if it was given as it is."""


K = TypeVar("K", bound=CompiledRoutine)
F = TypeVar("F", bound=Flow)
P = ParamSpec("P")


@dataclass(frozen=True)
class LanguageAnalysis(Generic[K, F, P]):
    """The analyses of a language, which takes its kernels apart by `flow`; messages call what it reads by `name`."""

    kernel: type[K]
    flow: Callable[[Any], F]
    warps: Callable[Concatenate[Any, P], KernelWarps]
    name: str

    def program(self, kernel: K | F, warp: int | None = None, *args: P.args, **options: P.kwargs) -> Program:
        """Return what one warp may execute: everything that hardware with reconvergence allows, or one path.

        One path stands for a kernel only where nothing is left to choose: the longest path need not be the worst case.

        Args:
            kernel: an entry or function with a body, or its flow, which keeps what was found out of it.
            warp: only this warp of the block; None for what every warp may execute.
            options: those of `warps` of the language.

        Raises:
            InputError: a loop without bound, a bound, `take` or `trace` that does not fit, an unknown opcode.
            UnsupportedError: control flow or a barrier that cannot be followed; the message names the remedy.
        """
        return self.warps(kernel, *args, **options).program(warp)

    def programs(self, kernel: K | F, *args: P.args, **options: P.kwargs) -> tuple[tuple[Program, int], ...]:
        """Return the programs of the warps of one block, see `KernelWarps.programs`.

        Raises:
            InputError: see `program`; a launch without block.
            UnsupportedError: see `program`.
        """
        return self.warps(kernel, *args, **options).programs()

    def loops(
        self, kernel: K | F, loop_bounds: Sequence[GivenBound] = (), launch: Launch | None = None
    ) -> tuple[LoopInfo, ...]:
        """Return the loops of a kernel in text order, each with its bound as far as one is known.

        Raises:
            InputError: a bound for no loop, or one that another bound or the code contradicts.
            UnsupportedError: control flow that has no natural loops.
        """
        found = self.flow(kernel)
        return loop_infos(found, loop_nest(found), loop_bounds, launch or Launch())

    def branches(self, kernel: K | F) -> tuple[BranchInfo, ...]:
        """Return the conditional branches that can be reached, in text order.

        Raises:
            InputError: control flow that is not understood.
        """
        return branch_infos(self.flow(kernel))

    def bounds_for(self, kernel: K, given: Iterable[GivenBound], kernels: Iterable[K]) -> tuple[GivenBound, ...]:
        """Return the bounds without those that fit only another of these kernels, so that one set can serve them all.

        Raises:
            InputError: control flow of `kernel` that is not understood.
        """
        return loop_info.bounds_for(kernel, given, kernels, self.flow)

    def bounds_template(
        self,
        kernels: K | Sequence[K],
        loop_bounds: Sequence[GivenBound] = (),
        launch: Launch | None = None,
        *,
        loops: Callable[[K], Sequence[LoopInfo]] | None = None,
    ) -> str:
        """Return a bounds file to fill in: a line for each loop, `LABEL,?` where no bound is known.

        Args:
            loops: what tells those of a kernel; the default follows from the other arguments.

        Raises:
            InputError: see `loops`.
        """
        several = kernels if isinstance(kernels, Sequence) else [kernels]

        def own(kernel: K) -> Sequence[LoopInfo]:
            return self.loops(kernel, self.bounds_for(kernel, loop_bounds, several), launch)

        made = dict.fromkeys(kernel.compilation for kernel in several if kernel.compilation)
        remarks = [f"Labels hold for this {self.name} only: {compilation}" for compilation in made]
        return loop_info.bounds_template(several, loops or own, remarks)
