"""All threads of a launch, followed on the values that are known, to look at what they do."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from makespan.estimators.profile.probes import Probed
from makespan.flow.execution import Code, Effort, Execution, Front, TooLongError, prepare
from makespan.flow.loops import nest
from makespan.flow.threads import Detail, Threads, threads
from makespan.ptx import Launch

__all__ = ["Code", "Following", "Front", "Threads", "TooLongError", "follow"]
_LANES = frozenset({"%laneid", "%tid.x", "%tid.y", "%tid.z"})


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
    matter = code.registers | _LANES
    detail = Detail.BLOCKS if any(name.startswith("%ctaid.") for name in matter) else Detail.THREADS
    for group in threads(launch, matter, detail):
        following = make(code, group, steps)
        following.run(dict(group.state))
        steps = following.steps_left
        yield following
