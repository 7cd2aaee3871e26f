"""Words that everything which names a worst case shares: above all, under which conditions its number holds.

Every assumption stands in a list below a result. Some change what the number means, so much that it would be misread
without them; these are *caveats*, and part of the verdict itself.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from makespan.machine import (
    ASSIGNMENT_AS_GIVEN,
    INTERVAL_AS_GIVEN,
    ONE_CYCLE,
    UNPARTITIONED,
    UNTIMED,
    Assignment,
    Machine,
    Scheduler,
)

PAPERS_NAME = "M^L + M^C"
ALONE_NAME = "theorem 1S"
AS_WRITTEN = "the hardware executes the PTX as it is written"
AS_COMPILED = "the hardware executes the machine code as it is"
NO_TOOLS = "PTX stands in for machine code, because ptxas or nvdisasm is missing"
TOO_OLD = "PTX stands in for machine code, because none for GPUs before sm_70 can be read"
PATH_ONLY = "this path only, not a worst case over inputs"
TRUSTED_BOUNDS = "loop bounds trusted against the code"
TRANSFERRED = "transferred by the compiler's line table"
TRANSFERRED_BOUNDS = "loop bounds transferred from PTX"
STALL_ON_USE = "a warp of the kernel waits for a result where it is needed"
BLOCKING = "a warp of the kernel waits for every result at once"
READ_LATE = "an instruction that counts its operands and its result apart has read them when that is there"
READ_BEHIND = "operands that are counted apart from a result have been read some cycles after a later instruction"
BY_OPERATION = "operations"
GIVEN_LATENCY = "latency as given: "
UNVERIFIED_LATENCIES = "latencies that nobody has confirmed: "
TOGETHER = "all warps start in cycle 0; "
IN_ONE_BLOCK = "all warps are in one block; "
OWN_LATENCIES = "latencies of instructions that are not those of their class: "

_CAVEATS = {
    AS_WRITTEN: "for the PTX as written",
    NO_TOOLS: "with PTX in the place of machine code because ptxas or nvdisasm is missing",
    TOO_OLD: "with PTX in the place of machine code because none for GPUs before sm_70 can be read",
    STALL_ON_USE: "with stall on use",
    BLOCKING: "with every result waited for",
    READ_LATE: "with operands read as late as results",
    READ_BEHIND: "with operands read behind later instructions",
    PATH_ONLY: "for this path only",
    TRUSTED_BOUNDS: f"with {TRUSTED_BOUNDS}",
    TRANSFERRED_BOUNDS: f"with {TRANSFERRED_BOUNDS}",
    UNPARTITIONED: "for a whole SM without its partitions",
}
"""The caveat that goes with an assumption, by how the assumption begins; in the order of a verdict."""

_PROMISES = {scheduler: f"for a {scheduler} scheduler" for scheduler in Scheduler if scheduler is not Scheduler.ANY}
"""The caveat that goes with what a scheduler promises besides work conservation."""

_NARROWED = re.compile(rf"{INTERVAL_AS_GIVEN}(class [A-Z] holds [a-z0-9 -]+ for (?:at most )?[0-9.]+ cycles?); ")
"""What the caveat of a machine may say in a verdict: a file has any caveats that its author likes."""


def caveats(machine: Machine, assumptions: Iterable[str]) -> tuple[str, ...]:
    """The conditions that belong into a verdict about warps on `machine` under these assumptions.

    >>> from makespan.machine import PAPER
    >>> caveats(PAPER, [f"{PATH_ONLY}: S=fall"])
    ('for this path only', 'if every instruction takes one cycle')
    """
    notes = tuple(assumptions)
    said = [caveat for begin, caveat in _CAVEATS.items() if any(note.startswith(begin) for note in notes)]
    compiled = (
        (f"for the machine code on {machine.name}",) if any(note.startswith(AS_COMPILED) for note in notes) else ()
    )
    doubted = [note.removeprefix(UNVERIFIED_LATENCIES) for note in notes if note.startswith(UNVERIFIED_LATENCIES)]
    listed = dict.fromkeys(each.split()[0] for note in doubted for each in note.partition(";")[0].split(", "))
    said += [f"with unverified latencies ({', '.join(listed)})"] if listed else []
    promise: tuple[str, ...] = () if machine.scheduler is Scheduler.ANY else (_PROMISES[machine.scheduler],)
    is_assigned = any(note.startswith(ASSIGNMENT_AS_GIVEN) for note in notes)
    if is_assigned and machine.assignment is Assignment.MODULO:
        promise += (f"if warp w belongs to partition w mod {machine.partitions}",)
    return (*compiled, *said, *promise, *_about_latencies(machine, notes))


def together(said: Iterable[str]) -> tuple[str, ...]:
    """The caveats of several results, each once, in the order of a verdict.

    >>> together(["if every latency is one cycle", "for this path only", "for the PTX as written"])
    ('for the PTX as written', 'for this path only', 'if every latency is one cycle')
    """
    order = list(_CAVEATS.values())
    return tuple(sorted(dict.fromkeys(said), key=lambda caveat: order.index(caveat) if caveat in order else len(order)))


def promised(said: Iterable[str]) -> str:
    """What follows "every work-conserving scheduler" where a bound under these caveats needs more of it.

    >>> promised(["for a fair scheduler"]), promised(["for this path only"])
    (' that is fair', '')
    """
    among = tuple(said)
    return "".join(f" that is {scheduler}" for scheduler, caveat in _PROMISES.items() if caveat in among)


def scope(said: Iterable[str]) -> str:
    """Caveats as they follow the first word of a verdict; nothing where there is none.

    >>> "exact" + scope(["for the PTX as written", "for this path only"])
    'exact for the PTX as written, for this path only'
    """
    return f" {', '.join(said)}".rstrip()


def cycles(count: int) -> str:
    """`1 cycle`, `2 cycles`."""
    return counted(count, "cycle")


def counted(count: int, noun: str) -> str:
    """How many there are, such as `1 block` or `2 blocks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def pessimistic_name(machine: Machine, *, runs_ahead: bool = False) -> str:
    """`M^L + M^C`, as its authors call it, for the two classes that they have; else what it is.

    >>> from makespan.machine import PAPER
    >>> pessimistic_name(PAPER), pessimistic_name(PAPER, runs_ahead=True)
    ('M^L + M^C', 'theorem 1S')
    """
    if runs_ahead or machine.partitions > 1 or machine.resources:
        return ALONE_NAME
    return PAPERS_NAME if set(machine.capacities) == {"C", "L"} else "pessimistic bound"


def pessimistic_words(name: str) -> str:
    """What the bound of this name adds up."""
    return (
        "one warp alone, and what keeps it waiting" if name == ALONE_NAME else "what each class needs alone, added up"
    )


def _about_latencies(machine: Machine, notes: Sequence[str]) -> Iterator[str]:
    """A machine without latencies is not the GPU whose name it may have; a note may name only classes that it has."""
    given = [note.removeprefix(GIVEN_LATENCY).partition(";")[0] for note in notes if note.startswith(GIVEN_LATENCY)]
    given += [found[1] for note in notes if (found := _NARROWED.match(note))]
    if given:
        further = [re.sub("( takes|(?<=[0-9]) cycles?)", "", said) if " takes " in said else said for said in given[1:]]
        *others, last = [given[0], *further]
        yield f"if {', '.join(others)} and {last}" if others else f"if {last}"
    if any(note.startswith(f"{BY_OPERATION} of machine ") for note in notes):
        return
    named = [note.removeprefix(UNTIMED).partition(":")[0].strip() for note in notes if note.startswith(UNTIMED)]
    unknown = [classes for classes in named if {*classes.split(", ")} <= {*machine.capacities}]
    if unknown:
        yield f"if the unknown latencies of {machine.name} ({unknown[0]}) were one cycle"
    elif any(note.startswith(OWN_LATENCIES) for note in notes):
        if all(unit.latency == ONE_CYCLE for unit in machine.units):
            yield "if every latency that the program does not state is one cycle"
    elif all(unit.latency == ONE_CYCLE for unit in machine.units):
        brief = all(unit.interval == 1 for unit in machine.units)
        yield "if every instruction takes one cycle" if brief else "if every latency is one cycle"
