"""Words that everything which names a worst case shares."""

from collections.abc import Iterable

from makespan.model.machine import Machine, SchedulerPromise

PAPERS_NAME = "M^L + M^C"
ALONE_NAME = "theorem 1S"


def promise_words(said: Iterable[str]) -> str:
    """What follows "every work-conserving scheduler" where a bound under these caveats needs more of it.

    >>> promise_words(["for a fair scheduler"]), promise_words(["for this path only"])
    (' that is fair', '')
    """
    return f" that is {SchedulerPromise.FAIR}" if "for a fair scheduler" in tuple(said) else ""


def scope_words(said: Iterable[str]) -> str:
    """Caveats as they follow the first word of a verdict; nothing where there is none.

    >>> "exact" + scope_words(["for the PTX as written", "for this path only"])
    'exact for the PTX as written, for this path only'
    """
    return f" {', '.join(said)}".rstrip()


def cycle_words(count: int) -> str:
    """`1 cycle`, `2 cycles`."""
    return count_words(count, "cycle")


def count_words(count: int, noun: str) -> str:
    """Return how many there are, such as `1 block` or `2 blocks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def pessimistic_name(machine: Machine, *, runs_ahead: bool = False) -> str:
    """`M^L + M^C`, as its authors call it, for the two classes that they have; else what it is.

    >>> from makespan.model.machine import PAPER
    >>> pessimistic_name(PAPER), pessimistic_name(PAPER, runs_ahead=True)
    ('M^L + M^C', 'theorem 1S')
    """
    if runs_ahead or machine.partitions > 1 or machine.resources:
        return ALONE_NAME
    return PAPERS_NAME if set(machine.capacities) == {"C", "L"} else "pessimistic bound"


def pessimistic_meaning(name: str) -> str:
    """What the bound of this name adds up."""
    return (
        "one warp alone, and what keeps it waiting" if name == ALONE_NAME else "what each class needs alone, added up"
    )
