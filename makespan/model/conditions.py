"""The conditions of a verdict: the assumptions without which a number would be misread.

Every assumption stands as a sentence in the list below a result. Some of them change what the number means so much that
they stand in the verdict itself. `CONDITIONS` is the list of all of them, in the order of a verdict.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from makespan.model.assumptions import PLAIN_NAME, Assumption, AssumptionKind, shorten_list


def _join_clauses(about: Sequence[str]) -> str:
    """Return all of these in one clause: `global takes at most 900 cycles and local at most 400`."""
    first, *others = about
    further = [re.sub("( takes|(?<=[0-9]) cycles?)", "", said) if " takes " in said else said for said in others]
    *before, last = [first, *further]
    return f"{', '.join(before)} and {last}" if before else last


class VerdictCondition(NamedTuple):
    """A phrase of a verdict, which stands there if there is an assumption of one of these kinds.

    Args:
        kinds: one phrase speaks of all assumptions of these kinds.
        words: the phrase; `{}` is where it names what the assumptions are about.
        cause: what brings the condition about, for readers of the documentation.
        form: what the assumptions may be about, as a regular expression: a file in which another author wrote an
            assumption adds no other words to a verdict.
        listed: how the phrase names several things.
    """

    kinds: tuple[AssumptionKind, ...]
    words: str
    cause: str
    form: str = ""
    listed: Callable[[Sequence[str]], str] = shorten_list


_OPERATION = r"[a-z][a-z0-9-]{0,31}"
_CYCLES = (
    r"(?:at most )?[0-9]{1,9}(?:\.\.[0-9]{1,9})? cycles?(?: besides those in which DRAM is busy)?"
    r"(?: with [0-9]{1,4} active SMs?)?"
)
_FETCH = r"a first fetch of (?:code|constants)"
_HELD = r"class [A-Z] holds [a-z0-9 -]{1,200} for " + _CYCLES
_LOOP = r"[^\s,;()]{1,200}={1,2}[0-9]{1,5}"

CONDITIONS: tuple[VerdictCondition, ...] = (
    VerdictCondition(
        (AssumptionKind.MACHINE_CODE,),
        "for the machine code on {}",
        "machine code is analysed",
        rf"{PLAIN_NAME}|'[^']+'",
    ),
    VerdictCondition(
        (AssumptionKind.PTX,), "for the PTX as written", "PTX is analysed, which ptxas has still to compile"
    ),
    VerdictCondition(
        (AssumptionKind.NO_MACHINE_CODE,),
        "with PTX in the place of machine code because {}",
        "`--gpu` or `--machine` asks about machine code, which cannot be made or read here",
        "ptxas or nvdisasm is missing|none for GPUs before sm_70 can be read",
    ),
    VerdictCondition(
        (AssumptionKind.STALL_ON_USE,), "with stall on use", "`--dependences registers`, or a machine with operations"
    ),
    VerdictCondition(
        (AssumptionKind.BLOCKING,),
        "with every result waited for",
        "`--dependences blocking`, a machine with operations",
    ),
    VerdictCondition(
        (AssumptionKind.READ_LATE,),
        "with operands read as late as results",
        "an instruction of machine code counts its operands and its result apart",
    ),
    VerdictCondition(
        (AssumptionKind.READ_BEHIND,),
        "with operands read behind later instructions",
        "machine code counts the operands of an instruction from a later instruction on",
    ),
    VerdictCondition((AssumptionKind.PATH,), "for this path only", "`--take` or `--trace` fixes branches"),
    VerdictCondition((AssumptionKind.TRUSTED_LOOP,), "with loop bounds trusted against the code", "`--trust-bounds`"),
    VerdictCondition(
        (AssumptionKind.TRANSFERRED_LOOP,), "with loop bounds transferred from PTX", "the line table of a compiler"
    ),
    VerdictCondition(
        (AssumptionKind.GIVEN_LOOP,),
        "with loop bounds as given ({})",
        "`--loop-bound`, a bounds file or a comment in the kernel bounds a loop more tightly than its code",
        _LOOP,
    ),
    VerdictCondition(
        (AssumptionKind.PARAMETERS,),
        "with {}",
        "`--param` says the value of a parameter",
        r"[^\s,;:=()]{1,200}=[^\s,;:=()]{1,100}",
    ),
    VerdictCondition(
        (AssumptionKind.CLASSES,), "with unit classes as given ({})", "`--classes`", r"[a-z0-9_.:]{1,64}=[A-Z-]"
    ),
    VerdictCondition(
        (AssumptionKind.UNKNOWN_OPCODES,),
        "with unknown opcodes as class {}",
        "`--unknown` counts opcodes that no table knows",
        r"[A-Z-] \([a-z0-9_.:, ]{1,400}\)",
    ),
    VerdictCondition(
        (AssumptionKind.UNPARTITIONED,),
        "for a whole SM without its partitions",
        "a machine file names schedulers and no partitions",
    ),
    VerdictCondition(
        (AssumptionKind.UNVERIFIED,),
        "with unverified latencies ({})",
        "the machine file says `verified = false` of latencies",
        _OPERATION,
        ", ".join,
    ),
    VerdictCondition(
        (AssumptionKind.FAIR,), "for a fair scheduler", '`--scheduler fair`, or `scheduler = "fair"` in a machine file'
    ),
    VerdictCondition(
        (AssumptionKind.MODULO,),
        "if warp w belongs to partition w mod {}",
        '`--assignment modulo`, or `assignment = "modulo"` in a machine file',
        "[0-9]{1,2}",
    ),
    VerdictCondition(
        (AssumptionKind.GIVEN_BLOCKS,),
        "with {}",
        "`--blocks-per-sm` is less than fits on an SM, or nobody knows how many fit; `room` and `takes` of launches",
        "at most [0-9]{1,5} blocks? on an SM, where [0-9]{1,5} fit|[0-9]{1,5} blocks? on an SM as given"
        "|room and takes as given",
    ),
    VerdictCondition(
        (AssumptionKind.WARM,),
        "with warm caches of code and constants",
        "`--warm`",
    ),
    VerdictCondition(
        (AssumptionKind.CARRIED_OVER,),
        "with lapses as on {}",
        "the table `[lapses]` of the machine file says that its numbers are those of another architecture",
        rf"{PLAIN_NAME}|'[^']+'",
    ),
    VerdictCondition(
        (AssumptionKind.LAPSES,),
        "on the {} as it is known",
        "instructions make schedulers lapse, wait for lines, or go through queues",
        "SM|GPU",
    ),
    VerdictCondition(
        (AssumptionKind.LEFT_OUT,),
        "although lapses are left out",
        "a GPU, or a machine with queues, is asked about with strings or PTX, or a GPU with a file without `[lapses]`",
    ),
    VerdictCondition(
        (AssumptionKind.QUEUES,),
        "although queues before {} are left out",
        "instructions go through queues, and there are barriers, or a whole GPU is asked about",
        rf"{PLAIN_NAME}|'[^']+'",
    ),
    VerdictCondition(
        (AssumptionKind.LATENCY, AssumptionKind.INTERVAL, AssumptionKind.FETCH),
        "if {}",
        "`--hold` and `--latency`",
        rf"{_HELD}|{_OPERATION} takes {_CYCLES}(?:, less than the machine says)?|{_FETCH} takes {_CYCLES}",
        _join_clauses,
    ),
    VerdictCondition(
        (AssumptionKind.DRAM_RATE,),
        "if DRAM moves at least {}, as long as an access waits for it",
        "`--latency` with `+dram`",
        r"[0-9.e+]{1,20} GB/s, (?:its|[0-9.]{1,9} % of its) peak",
    ),
    VerdictCondition(
        (AssumptionKind.DRAM_NEED,),
        "although DRAM may need {} for what can be in flight",
        "of a whole GPU, more loads can be in flight than DRAM moves within the latencies that are given",
        "[0-9]{1,40} cycles?",
    ),
    VerdictCondition(
        (AssumptionKind.UNTIMED,),
        "if the unknown latencies of {} were one cycle",
        "the machine file of a GPU does not say the latency of a class",
        rf"(?:{PLAIN_NAME}|'[^']+') \([A-Z](?:, [A-Z])*\)",
    ),
    VerdictCondition(
        (AssumptionKind.UNSTATED_LATENCY,),
        "if every latency that the program does not state is one cycle",
        "some instructions state their latencies, and the machine has none",
    ),
    VerdictCondition(
        (AssumptionKind.ONE_CYCLE,), "if every instruction takes one cycle", "the machine has no latencies or intervals"
    ),
    VerdictCondition(
        (AssumptionKind.UNIT_LATENCY,), "if every latency is one cycle", "the machine has intervals and no latencies"
    ),
)
"""All that a verdict can say of what it rests on, in its order."""

_CONDITION_OF: Mapping[AssumptionKind, VerdictCondition] = MappingProxyType(
    {kind: condition for condition in CONDITIONS for kind in condition.kinds}
)


def conditions(assumptions: Iterable[Assumption]) -> tuple[str, ...]:
    """Return the conditions that a verdict states under these assumptions, each once, in the order of `CONDITIONS`.

    >>> from makespan.model.assumptions import latency, one_path
    >>> conditions([one_path("S=fall"), latency("global", "at most 900 cycles", "300 or more")])
    ('for this path only', 'if global takes at most 900 cycles')
    """
    return tuple(words for _, words in _number_conditions(assumptions))


def together(several: Iterable[Iterable[Assumption]]) -> tuple[str, ...]:
    """Return the conditions of several results, which need not agree in what they assume, each once.

    >>> from makespan.model.assumptions import latency, one_path
    >>> together([[latency("sfu", "20 cycles", "18..24")], [one_path("S=fall"), latency("sfu", "18 cycles", "18..24")]])
    ('for this path only', 'if sfu takes 20 cycles', 'if sfu takes 18 cycles')
    """
    found = dict.fromkeys(numbered for assumptions in several for numbered in _number_conditions(assumptions))
    return tuple(words for _, words in sorted(found, key=lambda numbered: numbered[0]))


def _number_conditions(assumptions: Iterable[Assumption]) -> Iterator[tuple[int, str]]:
    """Yield the conditions in the order of `CONDITIONS`, with their numbers there."""
    found: dict[AssumptionKind, dict[str, None]] = {}
    for assumption in assumptions:
        found.setdefault(assumption.kind, {}).update(dict.fromkeys(assumption.about))
    for number, condition in enumerate(CONDITIONS):
        if meant := [found[kind] for kind in condition.kinds if kind in found]:
            about = [said for each in meant for said in each]
            yield number, condition.words.format(condition.listed(about)) if condition.form else condition.words


def is_well_formed(assumption: Assumption) -> bool:
    """Return whether an assumption that was read from a file is about what its kind can be about.

    >>> is_well_formed(Assumption(AssumptionKind.LATENCY, "", ("global takes at most 900 cycles",)))
    True
    >>> is_well_formed(Assumption(AssumptionKind.LATENCY, "", ("nothing at all",)))
    False
    """
    condition = _CONDITION_OF.get(assumption.kind)
    if condition is None or not condition.form:  # such a kind names nothing in a verdict
        return not assumption.about
    return bool(assumption.about) and all(re.fullmatch(condition.form, said) for said in assumption.about)
