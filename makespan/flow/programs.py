"""From a kernel to the programs of its warps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from makespan.errors import InputError, UnsupportedError
from makespan.flow.automaton import Branching, Builder
from makespan.flow.barriers import refuse_barriers, refuse_parted_barriers, with_barriers
from makespan.flow.branches import Step, preferences
from makespan.flow.divergence import Reconvergence, reconvergences
from makespan.flow.graph import JUMPS, Flow, flow
from makespan.flow.launch import Launch
from makespan.flow.loop_bounds import GivenBound
from makespan.flow.loop_info import LoopInfo, loop_infos
from makespan.flow.loops import Nest, nest
from makespan.flow.paths import by_take, by_trace, refuse_unbounded
from makespan.flow.uniformity import decided, uniform_branches
from makespan.flow.walk import Terrain
from makespan.program import Origin, Program, merged
from makespan.ptx.calls import is_indirect, is_inlined
from makespan.ptx.isa import PROFILES, Classes, units_of
from makespan.ptx.module import Instruction, Kernel
from makespan.ptx.notes import source_lines
from makespan.wording import AS_WRITTEN, PATH_ONLY, TRUSTED_BOUNDS

Paths: TypeAlias = Literal["automaton", "single"]

_MOST_LINES = 3


def program(
    kernel: Kernel | Flow,
    *,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[Step] | None = None,
    paths: Paths | None = None,
    launch: Launch | None = None,
    warp: int | None = None,
) -> Program:
    """What one warp may execute: everything that hardware with reconvergence allows, or one path.

    One path stands for a kernel only where nothing is left to choose: the longest path need not be the worst case.

    Args:
        kernel: an entry or function with a body, or its flow, which keeps what was found out of it.
        profile: which unit classes there are, see `PROFILES`.
        loop_bounds: bounds that win over those in comments of the kernel.
        classes: own unit classes by opcode prefix, see `Classes`.
        unknown: the class of opcodes that nothing classifies.
        take: `taken` or `fall` by label, or by `:LINE`, of the branch.
        trace: the outcome of every executed branch, in order.
        paths: `single` for the one path that take or trace fix, and the default with them; `automaton` for all paths,
            of which `take` leaves out sides.
        launch: what is known of block, grid and parameters.
        warp: only this warp of the block; None for what every warp may execute.

    Raises:
        InputError: a loop without bound, a bound, `take` or `trace` that does not fit, an unknown opcode.
        UnsupportedError: control flow or a barrier that cannot be followed; the message names the remedy.
    """
    source = _Source.of(kernel, Classes(profile, classes or {}, unknown), loop_bounds, launch or Launch())
    return source.program(take or {}, trace, _kind(paths, take, trace), warp)


def programs(
    kernel: Kernel | Flow,
    *,
    launch: Launch,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[Step] | None = None,
    paths: Paths | None = None,
) -> tuple[tuple[Program, int], ...]:
    """The programs of the warps of one block, each with the number of its warps.

    Warps differ where the launch decides their branches differently, as in `if (threadIdx.x / 32 == 0)`.

    Raises:
        InputError: see `program`; a launch without block.
        UnsupportedError: see `program`.
    """
    source = _Source.of(kernel, Classes(profile, classes or {}, unknown), loop_bounds, launch)
    warps = source.launch.warps_per_block
    if warps is None:
        raise InputError("the number of warps is not known: give --block")
    kind = _kind(paths, take, trace)
    if kind == "single":
        return ((source.program(take or {}, trace, kind, None), warps),)
    return merged((source.program(take or {}, trace, kind, warp), 1) for warp in range(warps))


def _kind(paths: Paths | None, take: Mapping[str, str] | None, trace: Sequence[Step] | None) -> Paths:
    if take and trace is not None:
        raise InputError("give either take or trace, not both")
    if paths == "automaton" and trace is not None:
        raise InputError("a trace fixes one path: no --paths automaton beside it")
    return paths or ("single" if take or trace is not None else "automaton")


@dataclass(frozen=True)
class _Source:
    """A kernel that is read, classified and launched."""

    flow: Flow
    nest: Nest
    classes: Classes
    units: tuple[str | None, ...]
    given: tuple[GivenBound, ...]
    launch: Launch
    sources: tuple[str, ...]

    @classmethod
    def of(cls, kernel: Kernel | Flow, classes: Classes, given: Sequence[GivenBound], launch: Launch) -> "_Source":
        found = flow(kernel)
        if not found.code:
            raise InputError(f"{found.kernel.file}:{found.kernel.line}: {found.kernel.name} has no instruction")
        known = launch.for_kernel(found.kernel)
        units = with_barriers(found, units_of(found.kernel, classes), known)
        lines = zip(found.kernel.statements, source_lines(found.kernel), strict=True)
        sources = tuple(str(line or "") for statement, line in lines if isinstance(statement, Instruction))
        return cls(found, nest(found), classes, units, tuple(given), known, sources)

    @cached_property
    def uniform(self) -> frozenset[int]:
        """The branches at which no lanes part, in any warp."""
        return uniform_branches(self.flow, self.launch) if self.flow.is_plain else _said_uniform(self.flow)

    @cached_property
    def rules(self) -> tuple[Reconvergence, ...]:
        """Where lanes that parted come together."""
        return reconvergences(self.flow)

    def program(self, take: Mapping[str, str], trace: Sequence[Step] | None, paths: Paths, warp: int | None) -> Program:
        """The program of one warp, or of every warp."""
        terrain = Terrain(self.flow, self.nest, loop_infos(self.flow, self.nest, self.given, self.launch, warp))
        if paths == "automaton":
            return self._automaton(terrain, take, warp)
        path = by_take(terrain, take) if trace is None else by_trace(terrain, trace)
        visited = frozenset(path)
        self._refuse(visited)
        served = [at for block in path for at in self._served(block)]
        if not served:
            raise self._nothing(always=True)
        letters = "".join(self.units[at] or "" for at in served)
        assumptions = (*self._assumptions(visited), *_about_path(terrain, visited, take, trace))
        return Program.chain(letters, origins=[self._origin((at,)) for at in served], assumptions=assumptions)

    def _automaton(self, terrain: Terrain, take: Mapping[str, str], warp: int | None) -> Program:
        """Everything that a warp may execute, but for the sides that `take` leaves out."""
        sides = decided(self.flow, self.launch, warp) if self.flow.is_plain else {}
        sides |= preferences(self.flow, take)
        visited = _reachable(self.flow, sides)
        parting = frozenset(block for block in visited - self.uniform - sides.keys() if self._has_sides(block))
        self._refuse(visited)
        refuse_unbounded(terrain, visited)
        rules = self.rules if parting else (Reconvergence({}, drops=False),)
        refuse_parted_barriers(self.flow, parting, rules)
        builder = Builder(terrain, self.units)
        made = builder.automaton(Branching(terrain, rule, self.uniform, sides) for rule in rules)
        if made is None:
            raise self._no_way(terrain)
        if made.may_be_empty:
            raise self._nothing(always=not made.places)
        assumptions = (*self._assumptions(visited), *self._about_paths(terrain, visited, parting, take))
        origins = tuple(self._origin(behind) for behind in made.instructions)
        return Program(made.places, made.starts, origins, assumptions)

    def _refuse(self, visited: Set[int]) -> None:
        """Refuse what no program can express."""
        for instruction in (i for block in sorted(visited) for i in self.flow.instructions(block)):
            if instruction.name == "call" and not is_inlined(instruction):
                raise _uncallable(self.flow.kernel, instruction)
        refuse_barriers(self.flow, sorted(visited), self.launch)

    def _has_sides(self, block: int) -> bool:
        return len(set(self.flow.blocks[block].successors)) > 1

    def _served(self, block: int) -> Iterator[int]:
        span = range(self.flow.blocks[block].first, self.flow.blocks[block].stop)
        return (at for at in span if self.units[at] is not None)

    def _origin(self, behind: Sequence[int]) -> Origin:
        """The line of an instruction, and those of others that are the same place."""
        first = self.flow.code[behind[0]]
        more = [f"line {self.flow.code[at].line}" for at in behind[1:_MOST_LINES]]
        also = f" (or {', '.join(more)}{', ...' * (len(behind) > _MOST_LINES)})" if more else ""
        return Origin(self.flow.kernel.file, first.line, f"{first}{also}", self.sources[behind[0]])

    def _assumptions(self, visited: Set[int]) -> Iterator[str]:
        """What must hold for the program to stand for the kernel, whatever its paths."""
        kernel, classes = self.flow.kernel, self.classes
        code = [instruction for block in sorted(visited) for instruction in self.flow.instructions(block)]
        yield f"profile {classes.profile}: unit classes {', '.join(PROFILES[classes.profile])}"
        if kernel.compilation is not None:
            yield str(kernel.compilation)
        yield f"{AS_WRITTEN}, although ptxas expands, unrolls and drops instructions"
        if any(self._has_sides(block) for block in visited):
            yield "branches marked .uni are uniform, and no data race makes lanes that load one address see two values"
        if guarded := sum(i.guard is not None and i.name not in JUMPS and not is_inlined(i) for i in code):
            yield f"guarded instructions are issued whatever their predicate ({guarded} of them)"
        if classes.overrides:
            yield f"own unit classes: {', '.join(f'{prefix}={letter}' for prefix, letter in classes.overrides.items())}"
        if unknown := sorted(classes.unclassified(i.opcode for i in code)):
            yield f"opcodes that no table knows count as {classes.unknown}: {', '.join(unknown)}"
        if any(i.name == "nanosleep" for i in code):
            yield "nanosleep takes one cycle: the time asleep is not counted"

    def _about_paths(
        self, terrain: Terrain, visited: Set[int], parting: Set[int], take: Mapping[str, str]
    ) -> Iterator[str]:
        """What must hold for the automaton to have every path."""
        if take:
            yield f"{PATH_ONLY}: {', '.join(f'{key}={side}' for key, side in take.items())}"
        for loop, info in zip(terrain.nest.loops, terrain.infos, strict=True):
            if loop.header in visited and info.bound is not None:
                yield _about_loop(info)
        if any(info.bound and info.bound.source.startswith("comment") for info in terrain.infos):
            yield "a comment bounds the innermost loop around it: in a nest of loops, all are marked or none"
        if said := str(self.launch):
            yield f"launch: {said}"
        if parting:
            lines = sorted({self.flow.last(block).line for block in parting})
            yield (
                f"lanes part at {_lines(lines)}, run one side after the other in any order, and reconverge at the"
                " immediate post-dominator: sides are not interleaved, as independent thread scheduling might"
            )
            if synchronous := sorted(
                {i.line for b in visited for i in self.flow.instructions(b) if _needs_lanes(i.opcode)}
            ):
                yield f"lanes that wait for each other come together at {_lines(synchronous)}"

    def _nothing(self, *, always: bool) -> InputError:
        kernel = self.flow.kernel
        what = (
            "a warp executes nothing that needs a unit, so this takes 0 cycles and there is nothing to solve"
            if always
            else "a warp may end before any instruction needs a unit, which no program can say; fix it with --take"
        )
        return InputError(f"{kernel.file}:{kernel.line}: {kernel.name}: {what}")

    def _no_way(self, terrain: Terrain) -> InputError:
        kernel = self.flow.kernel
        bounds = ", ".join(f"loop {info.label} {info.bound}" for info in terrain.infos if info.bound)
        return InputError(f"{kernel.file}:{kernel.line}: no path through {kernel.name} keeps the loop bounds: {bounds}")


def _uncallable(kernel: Kernel, call: Instruction) -> UnsupportedError:
    why, remedy = "calls what has no body in this file", "have the function compiled into it"
    if is_indirect(kernel, call):
        why, remedy = "calls what a register points to, which is not followed", "call the function by its name"
    return UnsupportedError(f"{kernel.file}:{call.line}: `{call}` {why}; {remedy}, or leave the call out with --take")


def _about_path(
    terrain: Terrain, visited: Set[int], take: Mapping[str, str], trace: Sequence[Step] | None
) -> Iterator[str]:
    """What must hold for one path to be the one that is executed."""
    if take:
        yield f"{PATH_ONLY}: {', '.join(f'{key}={side}' for key, side in take.items())}"
    if trace is not None:
        yield f"{PATH_ONLY}: a trace of {len(trace)} branches" + (f", from {trace[0].place}" if trace else "")
    for loop, info in zip(terrain.nest.loops, terrain.infos, strict=True):
        if loop.header in visited and info.bound is not None:
            to_maximum = ", run to this maximum unless take leaves it earlier" if take and not info.bound.exact else ""
            yield f"{_about_loop(info)}{to_maximum}"


def _about_loop(info: LoopInfo) -> str:
    """How often a loop runs, who says so, and whether the code says otherwise."""
    if info.against is None:
        return f"loop {info.label}: {info.bound}"
    return f"{TRUSTED_BOUNDS}: loop {info.label}: {info.bound}, but it makes {info.against}"


def _reachable(flow: Flow, decided: Mapping[int, int]) -> frozenset[int]:
    """The blocks to which a way leads past decided branches."""
    found, waiting = set[int](), [0]
    while waiting:
        block = waiting.pop()
        if block != flow.exit and block not in found:
            found.add(block)
            afters = flow.blocks[block].successors
            waiting += (afters[decided[block]],) if block in decided else afters
    return frozenset(found)


def _said_uniform(flow: Flow) -> frozenset[int]:
    """The branches that say of themselves that all lanes take them alike."""
    branching = (block for block in range(flow.exit) if len(flow.blocks[block].successors) > 1)
    return frozenset(block for block in branching if "uni" in flow.last(block).opcode.split("."))


def _needs_lanes(opcode: str) -> bool:
    """Whether an instruction exchanges something between the lanes of a warp or waits for them."""
    name, *parts = opcode.split(".")
    return name in ("shfl", "vote", "match", "redux", "elect") or (name == "bar" and parts[:1] == ["warp"])


def _lines(lines: Iterable[int]) -> str:
    several = list(lines)
    shown = ", ".join(map(str, several[:_MOST_LINES])) + ", ..." * (len(several) > _MOST_LINES)
    return f"line{'s' * (len(several) > 1)} {shown}"
