"""The registers that have a say in where a warp goes, and what the ways that part at a branch write until they join."""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

from makespan.kernels.flow.graph import Flow, closure, networkx_graph
from makespan.kernels.flow.loops import LoopNest


def influential_registers(
    flow: Flow,
    passes: Callable[[int], bool] = lambda _: True,
    besides: Iterable[str] = (),
) -> frozenset[str]:
    """Return the registers on which a conditional branch may depend, through instructions that `passes` allows.

    An instruction is given by its number. What one reads that does not pass is left out. The registers `besides`, by
    their own names, count as those of branches do.
    """
    writers: dict[str, list[int]] = {}  # every writer counts, wherever it stands: no order is needed for safety
    for number, effect in enumerate(flow.effects):
        for name in effect.writes:
            writers.setdefault(name, []).append(number)
    found, done = set[str](), set[int]()
    waiting = [name for block in range(flow.exit) if flow.is_branch(block) for name in branch_guard(flow, block)]
    waiting += besides
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            for number in writers.get(name, ()):
                if number not in done:
                    done.add(number)
                    waiting += flow.effects[number].reads if passes(number) else ()
    return frozenset(found)


def live_registers(flow: Flow, matter: Set[str]) -> tuple[Set[str], ...]:
    """Return, by block, the registers that matter and may be read there or later before they are written."""
    before: dict[int, list[int]] = {block: [] for block in range(flow.exit + 1)}
    found: list[Set[str]] = []
    kept: list[Set[str]] = []
    for number, block in enumerate(flow.blocks):
        for after in block.successors:
            before[after].append(number)
        exposed, killed = set[str](), set[str]()
        for at in range(block.first, block.stop):
            effect = flow.effects[at]
            if effect.transfer is not None or not matter.isdisjoint(effect.writes):
                exposed |= matter & (set(effect.reads) - killed)
                if effect.guard is None:  # a guarded write may leave the old value, so it stays live
                    killed.update(effect.writes)
        found.append(exposed)
        kept.append(killed)
    waiting = list(range(flow.exit))
    while waiting:
        number = waiting.pop()
        for above in before[number]:
            more = found[number] - kept[above] - found[above]  # grows only, so this ends
            if more:
                found[above] = found[above] | more
                waiting.append(above)
    return tuple(found)


def branch_guard(flow: Flow, block: int) -> tuple[str, ...]:
    """Return the register of the guard of the instruction that ends a block, if it has one."""
    guard = flow.effects[flow.blocks[block].stop - 1].guard
    return () if guard is None else (guard.register,)  # an end without a guard depends on nothing


@dataclass(slots=True)
class Partings:
    """The partings of a kernel; use `of`.

    Args:
        matter: the registers that count.
        work_left: how many blocks and registers may still be looked at; whoever asks stops where nothing is left.
    """

    flow: Flow
    nest: LoopNest
    matter: Set[str]
    work_left: int
    _meets: Mapping[int, int]
    _before: Mapping[int, int]

    @classmethod
    def of(cls, flow: Flow, nest: LoopNest, matter: Set[str], work: int) -> "Partings":
        """Return the partings of a kernel, which may take this much work."""
        before: dict[int, int] = {}
        for block in flow.blocks:
            for after in set(block.successors):
                before[after] = before.get(after, 0) + 1
        return cls(flow, nest, matter, work, _meeting_points(flow), before)

    def written(self, block: int, *, by_iteration: bool = False) -> dict[int, set[str]]:
        """Return what the ways from the end of a block may write before they join, by block where they join.

        Behind a loop that is left in different iterations, that is all which the loop writes.

        Args:
            by_iteration: whether ways that come together at the head of a loop around the block do so in one iteration,
                and not after any number of them.
        """
        flow = self.flow
        successors = flow.blocks[block].successors
        if flow.exit in successors:  # one way ends here, and all that goes on goes the other way
            return {}
        meet = self._meets.get(block, flow.exit)  # no way to the end: they meet nowhere
        sides = [self._closure(after, {meet}) for after in successors]
        region = sides[0] | sides[1]
        # both sides may also join before the post-dominator, for some lanes
        joins = {b for b in sides[0] & sides[1] if self._before[b] > 1} | ({meet} - {flow.exit})
        found = {join: self.written_in(region) for join in joins}
        heads = {self.nest.loops[number].header for number in self.nest.around(block)} if by_iteration else set()
        if joins & heads:
            once = self.written_in({b for after in successors for b in self._closure(after, {meet, *heads})})
            found |= dict.fromkeys(joins & heads, once)
        for number in self.nest.around(block):  # lanes that leave a loop in different iterations
            loop = self.nest.loops[number]
            if any(source == block or source in region for source, _ in loop.exits):
                inside = self.written_in(loop.blocks)  # temporal divergence: any iteration may have written last
                for _, after in loop.exits:
                    found[after] = found.get(after, set()) | inside
        return found

    def written_in(self, blocks: Set[int]) -> set[str]:
        """Return the registers that count and that these blocks may write."""
        numbers = (number for block in blocks for number in self.flow.numbers(block))
        found = {name for number in numbers for name in self.flow.effects[number].writes}
        self.work_left -= len(found)
        return found & self.matter

    def _closure(self, begin: int, avoided: Set[int]) -> frozenset[int]:
        found = closure(self.flow, [begin], avoided)
        self.work_left -= len(found)
        return found


def _meeting_points(flow: Flow) -> dict[int, int]:
    import networkx as nx

    return dict(nx.immediate_dominators(networkx_graph(flow).reverse(copy=False), flow.exit))
