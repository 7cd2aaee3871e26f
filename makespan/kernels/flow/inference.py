"""Loop bounds that follow from the code and the launch, and the inputs of the launch that would tell more.

The values of registers flow from parameters, from the sizes of the block and the grid and from the places of threads in
them to the branches that leave a loop. For each register this analysis holds the inputs of the launch that would make
its value known, or that none would, as after a load from memory. A value also depends on what decides whether it is
written: where the ways that part at a branch come together, and behind a loop that is left in different iterations,
everything that was written on the way depends on the branch as well.

A loop is decided by the inputs that make the outcome of one of its exits known. `execution` cannot follow the values in
a loop without an end in sight, so whatever the loop writes depends on these inputs, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from makespan.host.stopwatch import check
from makespan.kernels.flow.dataflow import Partings, influential_registers, live_registers
from makespan.kernels.flow.execution import reverse_postorder
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch, LaunchInput, ParameterValue, ThreadRegisters, dim3_text
from makespan.kernels.flow.instruction_set import SHARED_REGISTER, Computation
from makespan.kernels.flow.loops import (
    MAX_ITERATIONS,
    BoundBasis,
    Loop,
    LoopBound,
    LoopNest,
    goes_around,
    iterations_text,
)
from makespan.kernels.flow.runs import AbstractRun, AbstractRuns


class ProvenIterations(NamedTuple):
    """The iterations that every entry to a loop makes, as the code proves, counted like those of a bound.

    Args:
        least: the fewest iterations.
        most: the most iterations; None if no end is in sight.
        source: the facts that this follows from, as text.
        is_entered: false if this launch never comes to the loop, whatever `least` and `most` say.
    """

    least: int
    most: int | None
    source: str
    is_entered: bool = True

    @property
    def bound(self) -> LoopBound | None:
        """Return the bound that follows; None if no end is in sight, or only a very far one."""
        if self.most is None or self.most > MAX_ITERATIONS:
            return None
        never = "" if self.is_entered else ", never entered"
        return LoopBound(
            self.most, self.is_entered and self.least == self.most, f"{self.source}{never}", BoundBasis.CODE
        )

    def implies(self, said: LoopBound) -> bool:
        """Return whether the code proves a bound that was given."""
        own = self.bound
        if own is None:
            return False
        return (own.exact and own.maximum == said.maximum) if said.exact else own.maximum <= said.maximum

    def disproof(self, said: LoopBound) -> str | None:
        """Return in words what the code makes instead; None where it does not contradict a bound."""
        too_few = said.maximum < self.least  # an upper bound below what surely happens
        too_many = said.exact and self.most is not None and said.maximum > self.most
        if not self.is_entered or not (too_few or too_many):
            return None
        if self.least == self.most:
            return f"{iterations_text('exactly', self.least)} ({self.source})"
        limit = iterations_text("at least", self.least) if too_few else iterations_text("at most", self.most or 0)
        return f"{limit} ({self.source})"


def infer_iterations(
    flow: Flow, nest: LoopNest, launch: Launch, warp: int | None = None
) -> dict[int, ProvenIterations]:
    """Return what can be proven, by number of the loop; `warp` restricts it to one warp of the block.

    It holds for every entry to the loop, by every warp of every block. A loop that this launch never enters gets the
    least bound there is.

    Raises:
        InputError: a launch that does not fit the kernel, or a warp that the block does not have.
    """
    if not nest.loops:
        return {}
    runs = AbstractRuns.of(flow, launch)
    source = _source(runs, flow.semantics.instruction_set.registers)
    found: dict[int, ProvenIterations] = {}
    for tried in runs.tries(warp):
        proven = {number: _proven(nest.loops[number], tried, number, source) for number in _followed_loops(nest, tried)}
        # more detail comes first; less detail may still end loops that it gave up
        found = proven | {number: one for number, one in found.items() if one.most is not None or number not in proven}
        if not any(run.seen.given_up for run in tried):
            break  # less detail finds no more
    return dict(sorted(found.items()))


def _followed_loops(nest: LoopNest, tried: Iterable[AbstractRun]) -> Iterator[int]:
    given_up = set[int]().union(*(run.seen.given_up for run in tried))
    return (number for number in range(len(nest.loops)) if number not in given_up)


def _proven(loop: Loop, tried: Iterable[AbstractRun], number: int, source: str) -> ProvenIterations:
    """Return what all threads together did, in the iterations of `walk.BoundedFlow.most_repeats`."""
    first = int(loop.is_bottom_tested)  # one iteration has begun before the first back edge
    counts = [run.seen.counts[number] for run in tried if number in run.seen.counts]
    endless = [run.seen.endless[number] for run in tried if number in run.seen.endless]
    if not counts and not endless:
        return ProvenIterations(first, first, source, is_entered=False)
    least = min([*endless, *(count.least for count in counts if count.least is not None)], default=None)
    most = max(count.most for count in counts) if not endless else None
    if least is None:  # nothing leaves the loop
        return ProvenIterations(first, None if most is None else most + first, source)
    return ProvenIterations(least + first, None if most is None else most + first, source)


def _source(runs: AbstractRuns, special: ThreadRegisters) -> str:
    launch, matter = runs.launch, runs.code.registers
    said = [
        f"{name}={launch.parameters[name]}"
        for name, parameter in runs.parameters.items()
        if not matter.isdisjoint(parameter.words or (name,))
    ]
    for option, extent, names in (
        ("block", launch.block, (*special.thread, *special.block_size)),
        ("grid", launch.grid, (*special.block, *special.grid_size)),
    ):
        if extent is not None and not _wholes(names).isdisjoint(_wholes(matter)):
            said.append(f"{option} {dim3_text(extent)}")
    return f"inferred: {', '.join(said) or 'from the code alone'}"


def _wholes(registers: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in registers}


MAX_WORK = 1_000_000
"""Registers and blocks that the analysis may look at; beyond it, it says that nothing decides."""


class _DecidingInputs(NamedTuple):
    """The inputs that make a register known; `is_sure` is false if they do so in some iterations only."""

    inputs: frozenset[LaunchInput] = frozenset()
    is_sure: bool = True

    def __or__(self, other: "_DecidingInputs") -> "_DecidingInputs":
        return _DecidingInputs(self.inputs | other.inputs, self.is_sure and other.is_sure)


_KNOWN = _DecidingInputs()
_InputState: TypeAlias = dict[str, _DecidingInputs]
_MixedInputs: TypeAlias = dict[str, _DecidingInputs | None]
"""Further inputs on which the values of registers depend; None where no input makes them known."""


def deciders(
    flow: Flow, nest: LoopNest, launch: Launch, endless: Collection[int]
) -> dict[int, tuple[LaunchInput, ...]]:
    """Return the inputs that are not given and that decide together how often a loop runs, by number of the loop.

    Args:
        endless: the loops without an end in sight; others are not looked at.

    Raises:
        InputError: a launch that does not fit the kernel.
    """
    known = flow.semantics.signature.fit(launch)
    names = {name: called for name, called in flow.semantics.signature.called.items() if name not in known.parameters}
    if not endless or not flow.is_plain or not (names or known.block is None or known.grid is None):
        return {}
    zeros = Launch(known.block, known.grid, {**dict.fromkeys(names, 0), **known.parameters})
    parameters = flow.semantics.signature.known(zeros)
    found = _Dependence(flow, nest, known, names, parameters, frozenset(endless))
    return {number: inputs for number, inputs in found.decided.items() if inputs} if found.solve() else {}


@dataclass
class _Dependence:
    """The fixed point of the inputs behind registers and loops.

    Args:
        names: what the user calls the parameters that are not given.
        parameters: the parameters as if all were given.
        entering: what is known at the beginning of each block that was reached.
        guards: by block that ends in a branch, the value that decides which way it goes.
        mixed: by block, what registers depend on besides, wherever they come from.
        decided: what has been found; empty for a loop that the launch does not decide.
        lost: the loops that nothing decides.
    """

    flow: Flow
    nest: LoopNest
    launch: Launch
    names: Mapping[str, str]
    parameters: Mapping[str, ParameterValue]
    endless: frozenset[int]
    entering: dict[int, _InputState] = field(default_factory=dict)
    guards: dict[int, _DecidingInputs | None] = field(default_factory=dict)
    mixed: dict[int, _MixedInputs] = field(default_factory=dict)
    decided: dict[int, tuple[LaunchInput, ...]] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)

    def solve(self) -> bool:
        """Find the fixed point, and return whether it was found within the work that it may take."""
        rank = {block: at for at, block in enumerate(reverse_postorder(self.flow))}
        waiting = {0} if self.flow.blocks else set()
        self.entering = {block: {} for block in waiting}
        while waiting:
            while waiting:
                kernel = self.flow.kernel.name
                check(f"looking for what decides the loops of {kernel}", "tell more of the launch with --param")
                block = min(waiting, key=rank.__getitem__)  # in reverse postorder most blocks are passed once
                waiting.remove(block)
                waiting |= self._pass(block)
                self._partings.work_left -= 1 + len(waiting) + len(self.entering[block])
                if self._partings.work_left < 0:
                    return False
            for number in sorted(self.endless):
                waiting |= self._decide(number)
            waiting = waiting or self._give_up_one()  # nothing changes any more: weaken one loop, and go on
        return True

    @cached_property
    def _matter(self) -> frozenset[str]:
        return influential_registers(self.flow, lambda number: self._computations[number] is not None)

    @cached_property
    def _live(self) -> Sequence[Set[str]]:
        return live_registers(self.flow, self._matter)

    @cached_property
    def _partings(self) -> Partings:
        return Partings.of(self.flow, self.nest, self._matter, MAX_WORK)

    @cached_property
    def _computations(self) -> Sequence[Computation | None]:
        semantics = self.flow.semantics
        return [semantics.computation(number, self.parameters) for number in range(len(self.flow.code))]

    @cached_property
    def _special(self) -> Mapping[str, _DecidingInputs]:
        registers, launch = self.flow.semantics.instruction_set.registers, self.launch
        block = _KNOWN if launch.block is not None else _DecidingInputs(frozenset({LaunchInput("block")}))
        grid = _KNOWN if launch.grid is not None else _DecidingInputs(frozenset({LaunchInput("grid")}))
        return {
            **dict.fromkeys((registers.lane, *registers.lane_masks.values()), _KNOWN),
            **dict.fromkeys((*registers.thread, *registers.block_size), block),
            **dict.fromkeys((*registers.block, *registers.grid_size), grid),
        }

    def _pass(self, block: int) -> set[int]:
        """Go through a block, and return the blocks reached whose entering state changed."""
        state, changed = self._after(block), set()
        guard = self.flow.ending(block).guard if self.flow.is_branch(block) else None
        if guard is not None:
            value = state.get(guard.register)
            if self.guards.get(block, _KNOWN) != value:  # what joins behind the branch depends on its guard
                for join, names in self._partings.written(block, by_iteration=True).items():
                    changed |= self._mix(join, names, value)
            self.guards[block] = value
        for after in self.flow.blocks[block].successors:
            if after != self.flow.exit and self._enter(after, state):
                changed.add(after)
        return changed

    def _after(self, block: int) -> _InputState:
        state = dict(self.entering[block])
        for number in self.flow.numbers(block):
            effect = self.flow.effects[number]
            names = self._matter.intersection(effect.writes)
            if not names:
                continue
            self._partings.work_left -= 1
            computation = self._computations[number]
            found = None if computation is None else self._result(number, computation, state)
            results = () if computation is None else computation.results
            guard = _KNOWN if effect.guard is None else self._get(state, effect.guard.register)
            for name in names:
                new = found if name in results and name != SHARED_REGISTER else None
                if effect.guard is not None and new is not None:
                    old = state.get(name)
                    # a guarded write keeps the old value in some lanes
                    sure = guard is not None and guard.is_sure and old is not None
                    new = new | guard | old if sure and guard is not None and old is not None else None
                if new is None:
                    state.pop(name, None)
                else:
                    state[name] = new
        return state

    def _get(self, state: _InputState, name: str) -> _DecidingInputs | None:
        return state.get(name) or self._special.get(name)

    def _result(self, number: int, computation: Computation, state: _InputState) -> _DecidingInputs | None:
        value, unknown = _DecidingInputs(self._read[number]), set[str]()
        for source in computation.sources:
            found = _KNOWN if source.register is None else self._get(state, source.register)
            if found is None:
                unknown.add(source.register or "")
            else:
                value |= found
        if not unknown:
            return value
        is_decided = computation.yields_predicates and computation.may_be_known(unknown)
        return value._replace(is_sure=False) if is_decided else None

    @cached_property
    def _read(self) -> Mapping[int, frozenset[LaunchInput]]:
        """Return, by instruction, the parameters that it reads itself and that are not given."""
        semantics, given = self.flow.semantics, self.parameters
        known = {name: value for name, value in given.items() if name not in self.names}
        found = {}
        for number, full in enumerate(self._computations):
            read: list[str] = []
            if full is not None and not _are_alike(full, semantics.computation(number, known)):
                for name in self.names.keys() & given.keys():
                    others = {other: value for other, value in given.items() if other != name}
                    if not _are_alike(full, semantics.computation(number, others)):
                        read.append(name)
            found[number] = frozenset(LaunchInput("parameters", self.names[name]) for name in read)
        return found

    def _enter(self, block: int, state: _InputState) -> bool:
        """Bring a state to a block, and return whether that changed what is known there."""
        old, mixed = self.entering.get(block), self.mixed.get(block, {})
        new: _InputState = {}
        for name in self._live[block] & state.keys():
            more = mixed.get(name, _KNOWN)
            if more is not None and (old is None or name in old):
                new[name] = state[name] | more | (_KNOWN if old is None else old[name])
        self.entering[block] = new
        return new != old  # states only lose registers or gain inputs, so the fixed point is reached

    def _mix(self, block: int, names: Set[str], value: _DecidingInputs | None) -> set[int]:
        """Let registers depend on a value from a block on; return the block if its entering state changed."""
        mixed = self.mixed.setdefault(block, {})
        for name in names:
            old = mixed.get(name, _KNOWN)
            mixed[name] = None if value is None or not value.is_sure or old is None else old | value
        return {block} if block in self.entering and self._enter(block, self.entering[block]) else set()

    def _decide(self, number: int) -> set[int]:
        """Update the inputs that decide a loop; return its head if what is known there changed."""
        loop, best = self.nest.loops[number], None if number in self.lost else self._best(self.nest.loops[number])
        self.decided[number] = tuple(sorted(best or ()))
        if best is None:
            self.lost.add(number)
        elif not best:  # more may come to depend on the launch, such as what an outer loop counts
            return set()
        value = None if best is None else _DecidingInputs(best)
        return self._mix(loop.header, self._partings.written_in(loop.blocks), value)

    def _best(self, loop: Loop) -> frozenset[LaunchInput] | None:
        """Return the fewest inputs that make an exit known on every way around; None without such inputs.

        They are none at all where nothing depends on the launch, although no end of the loop is in sight.
        """
        guards = {block: value for block, _ in loop.exits if (value := self.guards.get(block)) is not None}
        inputs = {value.inputs for value in guards.values()}
        inputs.add(frozenset[LaunchInput]().union(*inputs))  # all inputs together, if no exit alone decides
        fit = [
            each
            for each in inputs
            if not goes_around(self.flow, loop, {block for block, value in guards.items() if value.inputs <= each})
        ]
        return min(filter(None, fit), key=lambda each: (len(each), sorted(each)), default=frozenset() if fit else None)

    def _give_up_one(self) -> set[int]:
        """Let the values of the first loop that the launch does not decide count as unknown."""
        for number in sorted(self.endless - self.lost):
            if not self.decided[number]:
                self.lost.add(number)
                if changed := self._decide(number):
                    return changed
        return set()


def _are_alike(one: Computation, other: Computation | None) -> bool:
    return other is not None and (one.results, one.sources) == (other.results, other.sources)
