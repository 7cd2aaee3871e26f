"""Words for verdicts and reports: counted nouns, conditions, and the names of the pessimistic bound."""

from collections.abc import Iterable

from makespan.model.machine import Machine, SchedulerPromise

PAPERS_NAME = "M^L + M^C"
ALONE_NAME = "theorem 1S"


def promise_words(said: Iterable[str]) -> str:
    """Return the words that follow "every work-conserving scheduler" under these caveats.

    >>> promise_words(["for a fair scheduler"]), promise_words(["for this path only"])
    (' that is fair', '')
    >>> promise_words(["on the SM as it is known"])
    ' with known lapses'
    """
    caveats = tuple(said)
    fair = f" that is {SchedulerPromise.FAIR}" if "for a fair scheduler" in caveats else ""
    return fair + " with known lapses" * ("on the SM as it is known" in caveats)


def scope_words(said: Iterable[str]) -> str:
    """Return the caveats as they follow the first word of a verdict; the text is empty if there is none.

    >>> "exact" + scope_words(["for the PTX as written", "for this path only"])
    'exact for the PTX as written, for this path only'
    """
    return f" {', '.join(said)}".rstrip()


def cycle_words(count: int) -> str:
    """Return a number of cycles, such as `1 cycle` or `2 cycles`."""
    return count_words(count, "cycle")


def count_words(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 block` or `2 blocks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def pessimistic_name(machine: Machine, *, runs_ahead: bool = False) -> str:
    """Return the name of the pessimistic bound: `M^L + M^C`, as its authors call it, only for classes C and L.

    >>> from makespan.model.machine import PAPER
    >>> pessimistic_name(PAPER), pessimistic_name(PAPER, runs_ahead=True)
    ('M^L + M^C', 'theorem 1S')
    """
    # the formula of the paper is about one undivided SM without resources; elsewhere theorem 1S takes its place
    if runs_ahead or machine.partitions > 1 or machine.resources:
        return ALONE_NAME
    return PAPERS_NAME if set(machine.capacities) == {"C", "L"} else "pessimistic bound"


def pessimistic_meaning(name: str, *, lapses: bool = False) -> str:
    """Return the terms that the bound of this name adds up, as a phrase; `lapses` says whether they are added, too."""
    terms = "one warp alone, and what keeps it waiting"
    if name != ALONE_NAME:
        terms = "what each class needs alone, added up"
    return terms + ", and lapses" * lapses
