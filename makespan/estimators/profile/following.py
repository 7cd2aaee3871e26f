"""All threads of a launch, followed on the values that are known, to look at what they do."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from makespan.estimators.profile.probes import Probed
from makespan.flow import (
    Code,
    Detail,
    Effort,
    Execution,
    Front,
    Launch,
    Threads,
    TooLongError,
    nest,
    prepare,
    thread_groups,
)

__all__ = ["Code", "Following", "Front", "Threads", "TooLongError", "follow"]


class Following(Execution):
    """The execution of a group of threads; what it sees on its way is for those that inherit from it."""

    def __init__(self, code: Code, group: Threads, steps: int) -> None:
        super().__init__(code, Effort.ALL, group.size, steps)
        self.group = group


F = TypeVar("F", bound=Following)


def follow(
    found: Probed, launch: Launch, registers: Iterable[str], steps: int, make: Callable[[Code, Threads, int], F]
) -> Iterator[F]:
    """The executions of all groups of threads that differ, each once it has ended.

    Args:
        registers: whose values matter, beside those that decide branches.
        steps: of all of them together.

    Raises:
        TooLongError: more steps.
        UnsupportedError: control flow that has no natural loops.
    """
    code = prepare(found.flow, nest(found.flow), found.parameters, list(registers))
    special = found.flow.semantics.instruction_set.registers
    matter = code.registers | {special.lane, *special.thread}
    detail = Detail.THREADS if matter.isdisjoint(special.block) else Detail.BLOCKS
    for group in thread_groups(special, launch, matter, detail):
        following = make(code, group, steps)
        following.run(dict(group.state))
        steps = following.steps_left
        yield following
