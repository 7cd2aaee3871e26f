"""Assumptions as values: what must hold for a number to be a worst case of its source, and what a verdict says of it.

Every assumption stands as a sentence in the list below a result. Some of them change what the number means so much that
the number would be misread without them. These are *conditions*: they stand in the verdict itself. `CONDITIONS` is the
list of all of them, in the order of a verdict.

An assumption is made where it arises, by a function of this module that words it. Nobody reads the sentence back: all
that the package decides, it decides by `kind` and `about`. Words of users (in a machine file, for example) are of the
kind `caveat`, which is shown and has no condition.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

_MOST_SHOWN = 4
_NAME = r"[A-Za-z0-9_.+-]{1,64}"
"""What is shown of a name as it stands; any other name is quoted."""


class AssumptionKind(StrEnum):
    """What an assumption is about."""

    # the machine, and how it serves the warps of an instance
    MACHINE = "machine"
    ONE_CYCLE = "one-cycle"
    UNIT_LATENCY = "unit-latency"
    UNSTATED_LATENCY = "unstated-latency"
    EXECUTION = "execution"
    WORK_CONSERVING = "work-conserving"
    FAIR = "fair"
    RESOURCES = "resources"
    PARTITIONS = "partitions"
    MODULO = "modulo"
    STALL = "stall"
    OWN_LATENCIES = "own-latencies"
    ANY_LATENCY = "any-latency"
    BARRIERS = "barriers"
    # what a machine file leaves open, and what a user says of a machine
    CAVEAT = "caveat"
    UNTIMED = "untimed"
    UNPARTITIONED = "unpartitioned"
    PORTS = "ports"
    INTERVAL = "interval"
    ASSIGNMENT = "assignment"
    # a kernel, its launch and its paths
    PTX = "ptx"
    MACHINE_CODE = "machine-code"
    SOURCE = "source"
    NO_MACHINE_CODE = "no-machine-code"
    OPERATIONS = "operations"
    UNVERIFIED = "unverified"
    LATENCY = "latency"
    BLOCKING = "blocking"
    STALL_ON_USE = "stall-on-use"
    READ_LATE = "read-late"
    READ_BEHIND = "read-behind"
    CLASSES = "classes"
    UNKNOWN_OPCODES = "unknown-opcodes"
    INSTRUCTIONS = "instructions"
    PATH = "path"
    LOOP = "loop"
    GIVEN_LOOP = "given-loop"
    TRUSTED_LOOP = "trusted-loop"
    TRANSFERRED_LOOP = "transferred-loop"
    LAUNCH = "launch"
    PARAMETERS = "parameters"
    LANES = "lanes"
    RESIDENCY = "residency"
    GIVEN_BLOCKS = "given-blocks"
    # a whole GPU, and what stands in a file
    GPU = "gpu"
    DRAM_RATE = "dram-rate"
    DRAM_NEED = "dram-need"
    CLOCK = "clock"
    BUNDLE = "bundle"


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that must hold for a number to be a worst case of its source.

    Args:
        text: the sentence in the list below a result.
        about: what the condition of this kind names, such as `("global takes at most 900 cycles",)`; empty for a kind
            without a condition, or whose condition names nothing.

    >>> print(as_written())
    the hardware executes the PTX as it is written, although ptxas expands, unrolls and drops instructions
    """

    kind: AssumptionKind
    text: str
    about: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def naming(self, text: str) -> "Assumption":
        """Return the same assumption in a longer sentence, which says whose it is."""
        return replace(self, text=text)

    @property
    def document(self) -> dict[str, object]:
        """Return the assumption as it stands in JSON."""
        return {"kind": str(self.kind), "text": self.text, **({"about": list(self.about)} if self.about else {})}


def _shorten_list(about: Sequence[str]) -> str:
    return ", ".join(about[:_MOST_SHOWN]) + f" and {len(about) - _MOST_SHOWN} more" * (len(about) > _MOST_SHOWN)


def _join_clauses(about: Sequence[str]) -> str:
    """What is given, in one clause: `global takes at most 900 cycles and local at most 400`."""
    first, *others = about
    further = [re.sub("( takes|(?<=[0-9]) cycles?)", "", said) if " takes " in said else said for said in others]
    *before, last = [first, *further]
    return f"{', '.join(before)} and {last}" if before else last


class VerdictCondition(NamedTuple):
    """What a verdict says where there is an assumption of these kinds.

    Args:
        kinds: one phrase speaks of all assumptions of these kinds.
        words: the phrase; `{}` is where it names what the assumptions are about.
        cause: what brings the condition about, for readers of the documentation.
        form: what the assumptions may be about, as a regular expression: a file in which somebody else wrote an
            assumption adds no other words to a verdict.
        listed: how the phrase names several things.
    """

    kinds: tuple[AssumptionKind, ...]
    words: str
    cause: str
    form: str = ""
    listed: Callable[[Sequence[str]], str] = _shorten_list


_OPERATION = r"[a-z][a-z0-9-]{0,31}"
_CYCLES = (
    r"(?:at most )?[0-9]{1,9}(?:\.\.[0-9]{1,9})? cycles?(?: besides those in which DRAM is busy)?"
    r"(?: with [0-9]{1,4} active SMs?)?"
)
_HELD = r"class [A-Z] holds [a-z0-9 -]{1,200} for " + _CYCLES
_LOOP = r"[^\s,;()]{1,200}={1,2}[0-9]{1,5}"

CONDITIONS: tuple[VerdictCondition, ...] = (
    VerdictCondition(
        (AssumptionKind.MACHINE_CODE,), "for the machine code on {}", "machine code is analysed", rf"{_NAME}|'[^']+'"
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
        (AssumptionKind.LATENCY, AssumptionKind.INTERVAL),
        "if {}",
        "`--hold` and `--latency`",
        rf"{_HELD}|{_OPERATION} takes {_CYCLES}(?:, less than the machine says)?",
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
        rf"(?:{_NAME}|'[^']+') \([A-Z](?:, [A-Z])*\)",
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

    >>> conditions([one_path("S=fall"), latency("global", "at most 900 cycles", "300 or more")])
    ('for this path only', 'if global takes at most 900 cycles')
    """
    return tuple(words for _, words in _number_conditions(assumptions))


def together(several: Iterable[Iterable[Assumption]]) -> tuple[str, ...]:
    """Return the conditions of several results, which need not agree in what they assume, each once.

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
    if condition is None or not condition.form:
        return not assumption.about
    return bool(assumption.about) and all(re.fullmatch(condition.form, said) for said in assumption.about)


def quote_name(name: str) -> str:
    """Return a name from outside as a verdict shows it: any but a plain one is in quotes.

    >>> quote_name("ampere-ga10x"), quote_name("x, exact")
    ('ampere-ga10x', "'x, exact'")
    """
    return name if re.fullmatch(_NAME, name) else f"'{name.replace(chr(39), '')}'"


# The machine, and how it serves the warps of an instance


def machine(
    name: str, units: str, issue_width: int | None, *, is_basic: bool, runs_ahead: bool, kind: AssumptionKind
) -> Assumption:
    """What the machine has. Its kind says which latencies nobody states, see `CONDITIONS`."""
    holds = (
        "an instruction holds one unit of its class for one cycle"
        if is_basic
        else "X=P/I@T is a class X of P ports, which an instruction holds for I cycles;"
        + (" its result is there after T cycles" if runs_ahead else " its warp goes on after T cycles")
    )
    width = f", issue width {issue_width}" if issue_width is not None else ""
    return Assumption(kind, f"machine {name!r}: units {units}{width}; {holds}")


def execution(*, start_together: bool) -> Assumption:
    """Return how a warp executes; warps of a whole GPU do not start together."""
    start = "all warps start in cycle 0; " * start_together
    return Assumption(
        AssumptionKind.EXECUTION, f"{start}a warp executes at most one instruction per cycle, in program order"
    )


def scheduler(*, is_fair: bool, is_basic: bool) -> Assumption:
    """What the scheduler promises."""
    promise = " and fair (no warp goes before one that was ready and issued earlier)" * is_fair
    issues = " in every class" if is_basic else ": it issues whenever a warp is ready, a port free and a slot left"
    kind = AssumptionKind.FAIR if is_fair else AssumptionKind.WORK_CONSERVING
    return Assumption(kind, f"the scheduler is work-conserving{promise}{issues}")


def resources(named: str, held: str) -> Assumption:
    """Which resources there are, and which class holds one for how long."""
    text = f"resources {named}; {held}: X+r/I is a class X that holds a port of r for I cycles besides"
    return Assumption(AssumptionKind.RESOURCES, text)


def partitions(count: int, shared: Sequence[str], *, is_modulo: bool) -> Assumption:
    """Return how the SM is divided, and which warp belongs to which partition."""
    spread = "modulo their number" if is_modulo else "evenly in any way"
    text = (
        f"{count} partitions with issue and units of their own, but for what all of them share"
        f" ({', '.join(shared) or 'nothing'}); warps belong to them {spread}"
    )
    return (
        Assumption(AssumptionKind.MODULO, text, (str(count),))
        if is_modulo
        else Assumption(AssumptionKind.PARTITIONS, text)
    )


def stall() -> Assumption:
    """Where a warp that runs ahead waits."""
    text = (
        "a warp issues in order and waits for a result where it needs it; operands are read at issue, or when a counter"
        " says so"
    )
    return Assumption(AssumptionKind.STALL, text)


def own_latencies(listed: str) -> Assumption:
    """Return the latencies that instructions state, where they are not those of their class."""
    text = (
        f"latencies of instructions that are not those of their class: {listed}; each takes any of its range, all"
        " others any of the range of their class"
    )
    return Assumption(AssumptionKind.OWN_LATENCIES, text)


def any_latency() -> Assumption:
    """That the adversary chooses latencies."""
    return Assumption(AssumptionKind.ANY_LATENCY, "each instruction takes any latency of the range of its class")


def barriers(blocks: int | None) -> Assumption:
    """Return how warps wait for each other; None where the number of blocks on an SM changes."""
    where = {None: "", 1: "all warps are in one block; "}.get(blocks, f"the warps are in {blocks} blocks; ")
    waits = "at a barrier a warp waits for the others of its block, those that have ended aside"
    return Assumption(AssumptionKind.BARRIERS, f"{where}{waits}, and to pass it takes no time")


# What a machine file leaves open, and what a user says of a machine


def caveat(words: str) -> Assumption:
    """Return the words of an author of a machine file, which are shown and mean nothing to this package."""
    return Assumption(AssumptionKind.CAVEAT, words)


def untimed_classes(machine_name: str, classes: Sequence[str]) -> Assumption:
    """Return the classes for whose latency one cycle stands, as nobody knows it."""
    listed = ", ".join(classes)
    text = f"no latency is known for {listed}: 1 cycle, the least there is, stands in its place"
    return Assumption(AssumptionKind.UNTIMED, text, (f"{quote_name(machine_name)} ({listed})",))


def without_partitions(schedulers: int) -> Assumption:
    """That a machine file names schedulers, and the machine has none of their own ports."""
    text = f"a warp belongs to one of {schedulers} schedulers; the machine lets any warps issue together"
    return Assumption(AssumptionKind.UNPARTITIONED, text)


def lowest_terms() -> Assumption:
    """That ports and intervals only keep the throughput."""
    text = "ports and intervals are throughputs in lowest terms; more ports of longer intervals can take longer"
    return Assumption(AssumptionKind.PORTS, text)


def slower_than_fp32(results: int, slower: Sequence[str]) -> Assumption:
    """That class C is as fast as its fastest instructions."""
    text = f"C is as fast as fp32 ({results} results per cycle); slower: {', '.join(slower)}"
    return Assumption(AssumptionKind.PORTS, text)


def interval(holds: str, cycles: str, own: str) -> Assumption:
    """That a user has narrowed the range of an interval; `holds` says which class holds what."""
    said = f"{holds} for {cycles}"
    return Assumption(AssumptionKind.INTERVAL, f"interval as given: {said}; the machine says {own}", (said,))


def assignment(count: int) -> Assumption:
    """That a user has assigned warps to partitions by their numbers."""
    text = f"assignment as given: warp w belongs to partition w mod {count}; the machine leaves it open"
    return Assumption(AssumptionKind.ASSIGNMENT, text)


# A kernel, its launch and its paths


def as_written() -> Assumption:
    """That the GPU executes PTX."""
    text = "the hardware executes the PTX as it is written, although ptxas expands, unrolls and drops instructions"
    return Assumption(AssumptionKind.PTX, text)


def as_compiled(sm: int, machine_name: str) -> Assumption:
    """That the GPU executes this machine code."""
    text = f"the hardware executes the machine code as it is, for sm_{sm}"
    return Assumption(AssumptionKind.MACHINE_CODE, text, (quote_name(machine_name),))


def compiled_by(compilation: object) -> Assumption:
    """Return how the code was made."""
    return Assumption(AssumptionKind.SOURCE, str(compilation))


def compiled_for(text: str, lacking: str | None) -> Assumption:
    """For which architecture source was compiled, and what is lacking if that is PTX in the place of machine code."""
    if lacking is None:
        return Assumption(AssumptionKind.SOURCE, text)
    return Assumption(
        AssumptionKind.NO_MACHINE_CODE, f"PTX stands in for machine code, because {lacking}; {text}", (lacking,)
    )


def operations(machine_name: str, listed: str) -> Assumption:
    """That operations, and not classes, decide how long every instruction takes."""
    text = f"operations of machine {machine_name!r}, with class and any of the cycles: {listed}"
    return Assumption(AssumptionKind.OPERATIONS, text)


def unverified_latencies(cycles: Mapping[str, str]) -> Assumption:
    """Return the latencies, by operation, that nobody has confirmed."""
    listed = ", ".join(f"{name} {range_}" for name, range_ in cycles.items())
    text = f"latencies that nobody has confirmed: {listed}; the file of the machine has a source or reason for each"
    return Assumption(AssumptionKind.UNVERIFIED, text, tuple(cycles))


def latency(operation: str, cycles: str, own: str, *, is_below: bool = False) -> Assumption:
    """That a user says how long an operation takes."""
    said = f"{operation} takes {cycles}" + ", less than the machine says" * is_below
    return Assumption(AssumptionKind.LATENCY, f"latency as given: {said}; the machine says {own}", (said,))


def waits_for_all() -> Assumption:
    """That dependences between registers are not used."""
    return Assumption(AssumptionKind.BLOCKING, "a warp of the kernel waits for every result at once")


def stall_on_use() -> Assumption:
    """What an instruction of PTX waits for."""
    text = (
        "a warp of the kernel waits for a result where it is needed: when it reads or writes a register that is"
        " pending; at its end it waits for results that nobody reads, too, but for no store"
    )
    return Assumption(AssumptionKind.STALL_ON_USE, text)


def read_late() -> Assumption:
    """When operands have been read that are counted apart."""
    text = (
        "an instruction that counts its operands and its result apart has read them when that is there, and not before"
    )
    return Assumption(AssumptionKind.READ_LATE, text)


def read_behind() -> Assumption:
    """When operands have been read that a later instruction counts."""
    text = (
        "operands that are counted apart from a result have been read some cycles after a later instruction, less the"
        " stalls between the two: where other warps hold that one up, they may be read as much later"
    )
    return Assumption(AssumptionKind.READ_BEHIND, text)


def classes(by_prefix: Mapping[str, str]) -> Assumption:
    """Return the classes of opcodes that a user says."""
    listed = [f"{prefix}={letter}" for prefix, letter in by_prefix.items()]
    return Assumption(AssumptionKind.CLASSES, f"own unit classes: {', '.join(listed)}", tuple(listed))


def unknown_opcodes(letter: str, opcodes: Sequence[str]) -> Assumption:
    """Return the opcodes that no table knows."""
    listed = ", ".join(opcodes)
    about = f"{letter} ({_shorten_list(opcodes)})"
    return Assumption(
        AssumptionKind.UNKNOWN_OPCODES, f"opcodes that no table knows count as {letter}: {listed}", (about,)
    )


def instructions(text: str) -> Assumption:
    """What a language has to say of its instructions; it has no condition."""
    return Assumption(AssumptionKind.INSTRUCTIONS, text)


def pending_at_barriers() -> Assumption:
    """What a barrier does not wait for."""
    text = "a warp comes to a barrier of its block with results pending, and the barrier waits for none of them"
    return Assumption(AssumptionKind.INSTRUCTIONS, text)


def one_path(fixed: str) -> Assumption:
    """That a user has fixed the path of every warp, or some branches of it."""
    return Assumption(AssumptionKind.PATH, f"this path only, not a worst case over inputs: {fixed}")


def loop(label: str, bound: str) -> Assumption:
    """Return how often a loop runs, by the code alone."""
    return Assumption(AssumptionKind.LOOP, f"loop {label}: {bound}")


def given_loop(label: str, bound: str, given: Sequence[str]) -> Assumption:
    """Return how often a loop runs, as a user or a comment says; `given` is what is said, such as `("L=16",)`."""
    return Assumption(AssumptionKind.GIVEN_LOOP, f"loop {label}: {bound}", tuple(given))


def transferred_loop(label: str, bound: str) -> Assumption:
    """Return how often a loop of machine code runs, as the compiler's line table tells."""
    return Assumption(AssumptionKind.TRANSFERRED_LOOP, f"loop bounds transferred from PTX: loop {label}: {bound}")


def given_in_ptx(given: Sequence[str]) -> Assumption:
    """Return the bounds of loops of PTX that a user or a comment says, and that were transferred to machine code."""
    return Assumption(AssumptionKind.GIVEN_LOOP, f"loop bounds of the PTX as given: {', '.join(given)}", tuple(given))


def trusted_loop(label: str, bound: str, against: str) -> Assumption:
    """Return how often a loop runs, as a user says against the code."""
    text = f"loop bounds trusted against the code: loop {label}: {bound}, but it makes {against}"
    return Assumption(AssumptionKind.TRUSTED_LOOP, text)


def comments_of_loops() -> Assumption:
    """Which loop a comment is about."""
    text = "a comment bounds the innermost loop around it: in a nest of loops, all are marked or none"
    return Assumption(AssumptionKind.LOOP, text)


def launch(said: str, parameters: Sequence[str]) -> Assumption:
    """What is known of the launch, and which of it are values of parameters."""
    return Assumption(
        AssumptionKind.PARAMETERS if parameters else AssumptionKind.LAUNCH, f"launch: {said}", tuple(parameters)
    )


def lanes(text: str) -> Assumption:
    """What is assumed of lanes of a warp that go different ways."""
    return Assumption(AssumptionKind.LANES, text)


def residency(text: str) -> Assumption:
    """Return how many blocks are on an SM, and why."""
    return Assumption(AssumptionKind.RESIDENCY, text)


def given_blocks(count: int, fitting: int | None) -> Assumption:
    """That a user says how many blocks are on an SM; None where nobody knows how many fit."""
    blocks = "1 block" if count == 1 else f"{count} blocks"
    said = f"{blocks} on an SM as given" if fitting is None else f"at most {blocks} on an SM, where {fitting} fit"
    return Assumption(AssumptionKind.GIVEN_BLOCKS, f"resident blocks as given: {said}", (said,))


def given_room(text: str) -> Assumption:
    """That a user says what a block takes of an SM."""
    return Assumption(AssumptionKind.GIVEN_BLOCKS, text, ("room and takes as given",))


# A whole GPU, and what stands in a file


def gpu(text: str) -> Assumption:
    """What is assumed of a whole GPU and its dispatcher."""
    return Assumption(AssumptionKind.GPU, text)


def dram_rate(rate: str, then: str) -> Assumption:
    """Return how much DRAM moves at least, such as `448 GB/s, its peak`, and what follows from that."""
    return Assumption(
        AssumptionKind.DRAM_RATE, f"DRAM moves at least {rate}, as long as an access waits for it; {then}", (rate,)
    )


def dram_need(need: str, then: str) -> Assumption:
    """That DRAM may need so many cycles for what can be in flight, and what that means for latencies."""
    return Assumption(AssumptionKind.DRAM_NEED, f"DRAM may need {need} for what can be in flight; {then}", (need,))


def clock(text: str) -> Assumption:
    """What turns cycles into time."""
    return Assumption(AssumptionKind.CLOCK, text)


def bundle(text: str) -> Assumption:
    """What the checker of a bundle has proved, and what it has not."""
    return Assumption(AssumptionKind.BUNDLE, text)
