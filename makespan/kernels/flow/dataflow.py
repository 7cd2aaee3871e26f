"""Which registers have a say in where a warp goes."""

from collections.abc import Callable, Iterable, Set

from makespan.kernels.flow.graph import Flow


def influential_registers(
    flow: Flow,
    passes: Callable[[int], bool] = lambda _: True,
    besides: Iterable[str] = (),
) -> frozenset[str]:
    """Return the registers on which a conditional branch may depend, through instructions that `passes` allows.

    An instruction is given by its number. What one reads that does not pass is left out. The registers `besides`, by
    their own names, count as those of branches do.
    """
    writers: dict[str, list[int]] = {}
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
                if effect.guard is None:
                    killed.update(effect.writes)
        found.append(exposed)
        kept.append(killed)
    waiting = list(range(flow.exit))
    while waiting:
        number = waiting.pop()
        for above in before[number]:
            more = found[number] - kept[above] - found[above]
            if more:
                found[above] = found[above] | more
                waiting.append(above)
    return tuple(found)


def branch_guard(flow: Flow, block: int) -> tuple[str, ...]:
    """Return the register of the guard of the instruction that ends a block, if it has one."""
    guard = flow.effects[flow.blocks[block].stop - 1].guard
    return () if guard is None else (guard.register,)
