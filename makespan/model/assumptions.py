"""Assumptions as values: each says what must hold for a number to be a worst case of its source.

An assumption is made where it arises, by a function of this module that words it. No program reads the sentence back:
the package decides by `kind` and `about` alone, and `makespan.model.conditions` says what a verdict states of them.
Words of users (in a machine file, for example) are of the kind `caveat`, which is shown and has no condition.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

_MOST_SHOWN = 4
PLAIN_NAME = r"[A-Za-z0-9_.+-]{1,64}"
"""The names that a verdict shows as they stand; any other name is quoted."""


class AssumptionKind(StrEnum):
    """The subject of an assumption, by which the package decides; `str` is its name in JSON."""

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
    LAPSES = "lapses"
    QUEUES = "queues"
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
    CARRIED_OVER = "carried-over"
    LEFT_OUT = "lapses-left-out"
    FETCH = "fetch"
    WARM = "warm"
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


def shorten_list(about: Sequence[str]) -> str:
    """Return the first four of these, and how many more there are."""
    return ", ".join(about[:_MOST_SHOWN]) + f" and {len(about) - _MOST_SHOWN} more" * (len(about) > _MOST_SHOWN)


def quote_name(name: str) -> str:
    """Return a name from outside as a verdict shows it: any name but a plain one is in quotes.

    >>> quote_name("ampere-ga10x"), quote_name("x, exact")
    ('ampere-ga10x', "'x, exact'")
    """
    return name if re.fullmatch(PLAIN_NAME, name) else f"'{name.replace(chr(39), '')}'"


# The machine, and how it serves the warps of an instance


def machine(
    name: str, units: str, issue_width: int | None, *, is_basic: bool, runs_ahead: bool, kind: AssumptionKind
) -> Assumption:
    """Return the ports and latencies of the machine; `kind` says which latencies are not stated, see `CONDITIONS`."""
    holds = (
        "an instruction holds one unit of its class for one cycle"
        if is_basic
        else "X=P/I@T is a class X of P ports, which an instruction holds for I cycles;"
        + (" its result is there after T cycles" if runs_ahead else " its warp goes on after T cycles")
    )
    width = f", issue width {issue_width}" if issue_width is not None else ""
    return Assumption(kind, f"machine {name!r}: units {units}{width}; {holds}")


def execution(*, start_together: bool) -> Assumption:
    """Return how a warp executes; the warps of a whole GPU do not start together."""
    start = "all warps start in cycle 0; " * start_together
    return Assumption(
        AssumptionKind.EXECUTION, f"{start}a warp executes at most one instruction per cycle, in program order"
    )


def scheduler(*, is_fair: bool, is_basic: bool, lapses: bool = False) -> Assumption:
    """Return the promise of the scheduler; `lapses` says whether it may issue nothing now and then."""
    promise = " and fair (no warp goes before one that was ready and issued earlier)" * is_fair
    issues = " in every class" if is_basic else ": it issues whenever a warp is ready, a port free and a slot left"
    kind = AssumptionKind.FAIR if is_fair else AssumptionKind.WORK_CONSERVING
    but = ", but for its lapses" * lapses
    return Assumption(kind, f"the scheduler is work-conserving{promise}{issues}{but}")


def resources(named: str, held: str) -> Assumption:
    """Return the resources of the machine, and the class that holds each one, with the cycles."""
    text = f"resources {named}; {held}: X+r/I is a class X that holds a port of r for I cycles besides"
    return Assumption(AssumptionKind.RESOURCES, text)


def partitions(count: int, shared: Sequence[str], *, is_modulo: bool) -> Assumption:
    """Return how the SM is divided, and how warps belong to partitions."""
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
    """Return where a warp that runs ahead waits."""
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
    """Return the assumption that each instruction takes any latency of its range."""
    return Assumption(AssumptionKind.ANY_LATENCY, "each instruction takes any latency of the range of its class")


def barriers(blocks: int | None) -> Assumption:
    """Return how warps wait for each other; `blocks` is None where the number of blocks on an SM changes."""
    where = {None: "", 1: "all warps are in one block; "}.get(blocks, f"the warps are in {blocks} blocks; ")
    waits = "at a barrier a warp waits for the others of its block, those that have ended aside"
    return Assumption(AssumptionKind.BARRIERS, f"{where}{waits}, and to pass it takes no time")


def known_lapses(what: str) -> Assumption:
    """Return the assumption that an SM keeps warps from issuing for the reasons that are known, and for no other.

    Args:
        what: the subject of the result: `SM` or `GPU`.
    """
    text = (
        "schedulers issue nothing in some cycles, lines of code and constants are late, and accesses queue, for as long"
        " as is known of the instructions; nothing else keeps a warp that is ready from issuing"
    )
    return Assumption(AssumptionKind.LAPSES, text, (what,))


def queues_left_out(names: Sequence[str]) -> Assumption:
    """Return the assumption that instructions reach their ports as if these queues were not there."""
    text = (
        f"instructions go through queues before {', '.join(names)}, which no upper bound counts that knows barriers, or"
        " blocks that begin one after another: the bound holds for the SM without them"
    )
    return Assumption(AssumptionKind.QUEUES, text, tuple(map(quote_name, names)))


# What a machine file leaves open, and what a user says of a machine


def caveat(words: str) -> Assumption:
    """Return the words of the author of a machine file, which are shown and mean nothing to this package."""
    return Assumption(AssumptionKind.CAVEAT, words)


def untimed_classes(machine_name: str, classes: Sequence[str]) -> Assumption:
    """Return the classes of unknown latency, for which one cycle stands in."""
    listed = ", ".join(classes)
    text = f"no latency is known for {listed}: 1 cycle, the least there is, stands in its place"
    return Assumption(AssumptionKind.UNTIMED, text, (f"{quote_name(machine_name)} ({listed})",))


def without_partitions(schedulers: int) -> Assumption:
    """Return the assumption that schedulers, which the machine file names, have no ports of their own."""
    text = f"a warp belongs to one of {schedulers} schedulers; the machine lets any warps issue together"
    return Assumption(AssumptionKind.UNPARTITIONED, text)


def lowest_terms() -> Assumption:
    """Return the assumption that ports and intervals only keep the throughput."""
    text = "ports and intervals are throughputs in lowest terms; more ports of longer intervals can take longer"
    return Assumption(AssumptionKind.PORTS, text)


def slower_than_fp32(results: int, slower: Sequence[str]) -> Assumption:
    """Return the assumption that class C is as fast as its fastest instructions."""
    text = f"C is as fast as fp32 ({results} results per cycle); slower: {', '.join(slower)}"
    return Assumption(AssumptionKind.PORTS, text)


def interval(holds: str, cycles: str, own: str) -> Assumption:
    """Return the assumption that a user has narrowed the range of an interval; `holds` says which class holds what."""
    said = f"{holds} for {cycles}"
    return Assumption(AssumptionKind.INTERVAL, f"interval as given: {said}; the machine says {own}", (said,))


def assignment(count: int) -> Assumption:
    """Return the assumption that a user has assigned warps to partitions by their numbers."""
    text = f"assignment as given: warp w belongs to partition w mod {count}; the machine leaves it open"
    return Assumption(AssumptionKind.ASSIGNMENT, text)


# A kernel, its launch and its paths


def as_written() -> Assumption:
    """Return the assumption that the GPU executes PTX."""
    text = "the hardware executes the PTX as it is written, although ptxas expands, unrolls and drops instructions"
    return Assumption(AssumptionKind.PTX, text)


def as_compiled(sm: int, machine_name: str) -> Assumption:
    """Return the assumption that the GPU executes this machine code."""
    text = f"the hardware executes the machine code as it is, for sm_{sm}"
    return Assumption(AssumptionKind.MACHINE_CODE, text, (quote_name(machine_name),))


def about_code(
    compilation: object | None, executed: Assumption, lanes_do: Iterable[str], guarded: int, where_idle: str
) -> Iterator[Assumption]:
    """Yield what a program of a kernel supposes in every language.

    Args:
        compilation: how the code was made, as text; None if it was given as it is.
        executed: the assumption that the GPU executes this code.
        lanes_do: what is supposed of the lanes of a warp.
        guarded: how many instructions have a guard.
        where_idle: what is supposed of the time of a guarded instruction; empty for nothing.
    """
    if compilation is not None:
        yield Assumption(AssumptionKind.SOURCE, str(compilation))
    yield executed
    yield from map(lanes, lanes_do)
    if guarded:
        yield instructions(f"guarded instructions are issued whatever their predicate{where_idle} ({guarded} of them)")


def compiled_for(text: str, lacking: str | None) -> Assumption:
    """Return the architecture that source was compiled for; `lacking` says why PTX stands in, if it does."""
    if lacking is None:
        return Assumption(AssumptionKind.SOURCE, text)
    return Assumption(
        AssumptionKind.NO_MACHINE_CODE, f"PTX stands in for machine code, because {lacking}; {text}", (lacking,)
    )


def operations(machine_name: str, listed: str) -> Assumption:
    """Return the assumption that operations, and not classes, decide how long every instruction takes."""
    text = f"operations of machine {machine_name!r}, with class and any of the cycles: {listed}"
    return Assumption(AssumptionKind.OPERATIONS, text)


def unverified_latencies(cycles: Mapping[str, str]) -> Assumption:
    """Return the latencies, by operation, that are not confirmed."""
    listed = ", ".join(f"{name} {range_}" for name, range_ in cycles.items())
    text = f"latencies that nobody has confirmed: {listed}; the file of the machine has a source or reason for each"
    return Assumption(AssumptionKind.UNVERIFIED, text, tuple(cycles))


def latency(operation: str, cycles: str, own: str, *, is_below: bool = False) -> Assumption:
    """Return how long an operation takes by the word of a user."""
    said = f"{operation} takes {cycles}" + ", less than the machine says" * is_below
    return Assumption(AssumptionKind.LATENCY, f"latency as given: {said}; the machine says {own}", (said,))


def waits_for_all() -> Assumption:
    """Return the assumption that dependences between registers are not used."""
    return Assumption(AssumptionKind.BLOCKING, "a warp of the kernel waits for every result at once")


def stall_on_use() -> Assumption:
    """Return what an instruction of PTX waits for."""
    text = (
        "a warp of the kernel waits for a result where it is needed: when it reads or writes a register that is"
        " pending; at its end it waits for results that nobody reads, too, but for no store"
    )
    return Assumption(AssumptionKind.STALL_ON_USE, text)


def read_late() -> Assumption:
    """Return when operands have been read that are counted apart."""
    text = (
        "an instruction that counts its operands and its result apart has read them when that is there, and not before"
    )
    return Assumption(AssumptionKind.READ_LATE, text)


def read_behind() -> Assumption:
    """Return when operands have been read that a later instruction counts."""
    text = (
        "operands that are counted apart from a result have been read some cycles after a later instruction, less the"
        " stalls between the two: where other warps hold that one up, they may be read as much later"
    )
    return Assumption(AssumptionKind.READ_BEHIND, text)


def counted_lapses(counted: Sequence[str], *, is_verified: bool) -> Assumption:
    """Return the mechanisms on account of which schedulers lapse, as far as sources tell."""
    listed = ", ".join(counted) or "nothing"
    doubt = "" if is_verified else "; not all of their numbers are confirmed"
    text = f"schedulers lapse on account of {listed}, as the sources of the machine file tell, and of nothing else"
    return instructions(f"{text}{doubt}")


def carried_over(architecture: str) -> Assumption:
    """Return the assumption that schedulers lapse as those of another architecture do."""
    name = quote_name(architecture)
    return Assumption(AssumptionKind.CARRIED_OVER, f"lapses are those that were found on {name}", (name,))


def lapses_left_out() -> Assumption:
    """Return the assumption that a machine does nothing of what keeps warps from issuing besides its ports."""
    text = (
        "schedulers never lapse, lines of code and constants are never late, and no queue keeps an instruction from its"
        " ports: what is known of that, if anything is, is known of machine code on machines whose files have a table"
        " [lapses]"
    )
    return Assumption(AssumptionKind.LEFT_OUT, text)


def line_caches(listed: str) -> Assumption:
    """Return what holds lines of code and constants, such as `of code (8 sets of 32 lines of 128 bytes)`."""
    text = (
        f"nothing else than is asked about uses the caches {listed} of each partition, whose sets follow the addresses,"
        " and a line gives way to another one only where its set is full, and after all lines of anything else"
    )
    return instructions(text)


def late_lines(what: str, *, near: bool) -> Assumption:
    """Return the assumption that some lines of code or constants do not stay in the cache of a partition.

    Args:
        near: whether the next cache keeps those whose addresses are known.
    """
    come = "the next cache keeps them, so that only the first time may be as long as a first fetch"
    text = come if near else "each use may be as long as a first fetch"
    return instructions(f"some lines of {what} do not stay in the cache of a partition, and {text}")


def first_fetch(what: str, cycles: str) -> Assumption:
    """Return how long a first fetch of a line of code or constants takes by the word of a user."""
    said = f"a first fetch of {what} takes {cycles}"
    return Assumption(AssumptionKind.FETCH, f"first fetch as given: {said}; no source knows an upper end", (said,))


def warm_caches() -> Assumption:
    """Return the assumption that lines of code and constants are there from the start."""
    text = (
        "all lines of code and constants that stay in the caches of a partition, or in the next cache, are there when"
        " the launch begins, as after a launch of the same kernel that came to all of them on each partition and since"
        " when nothing has emptied these caches"
    )
    return Assumption(AssumptionKind.WARM, text)


def classes(by_prefix: Mapping[str, str]) -> Assumption:
    """Return the classes of opcodes by the word of a user."""
    listed = [f"{prefix}={letter}" for prefix, letter in by_prefix.items()]
    return Assumption(AssumptionKind.CLASSES, f"own unit classes: {', '.join(listed)}", tuple(listed))


def unknown_opcodes(letter: str, opcodes: Sequence[str]) -> Assumption:
    """Return the opcodes that are in no table."""
    listed = ", ".join(opcodes)
    about = f"{letter} ({shorten_list(opcodes)})"
    return Assumption(
        AssumptionKind.UNKNOWN_OPCODES, f"opcodes that no table knows count as {letter}: {listed}", (about,)
    )


def instructions(text: str) -> Assumption:
    """Return a remark of a language on its instructions, which has no condition."""
    return Assumption(AssumptionKind.INSTRUCTIONS, text)


def pending_at_barriers() -> Assumption:
    """Return the assumption that a barrier does not wait for results."""
    text = "a warp comes to a barrier of its block with results pending, and the barrier waits for none of them"
    return Assumption(AssumptionKind.INSTRUCTIONS, text)


def one_path(fixed: str) -> Assumption:
    """Return the assumption that a user has fixed the path of every warp, or some branches of it."""
    return Assumption(AssumptionKind.PATH, f"this path only, not a worst case over inputs: {fixed}")


def loop(label: str, bound: str) -> Assumption:
    """Return how often a loop runs, by the code alone."""
    return Assumption(AssumptionKind.LOOP, f"loop {label}: {bound}")


def given_loop(label: str, bound: str, given: Sequence[str]) -> Assumption:
    """Return how often a loop runs, as a user or a comment says; `given` holds what was said, such as `L=16`."""
    return Assumption(AssumptionKind.GIVEN_LOOP, f"loop {label}: {bound}", tuple(given))


def transferred_loop(label: str, bound: str) -> Assumption:
    """Return how often a loop of machine code runs by the line table of the compiler."""
    return Assumption(AssumptionKind.TRANSFERRED_LOOP, f"loop bounds transferred from PTX: loop {label}: {bound}")


def given_in_ptx(given: Sequence[str]) -> Assumption:
    """Return the bounds of PTX loops that a user or a comment gives, and that were transferred to machine code."""
    return Assumption(AssumptionKind.GIVEN_LOOP, f"loop bounds of the PTX as given: {', '.join(given)}", tuple(given))


def trusted_loop(label: str, bound: str, against: str) -> Assumption:
    """Return how often a loop runs by the word of a user, against the code."""
    text = f"loop bounds trusted against the code: loop {label}: {bound}, but it makes {against}"
    return Assumption(AssumptionKind.TRUSTED_LOOP, text)


def comments_of_loops() -> Assumption:
    """Return which loop a comment bounds."""
    text = "a comment bounds the innermost loop around it: in a nest of loops, all are marked or none"
    return Assumption(AssumptionKind.LOOP, text)


def launch(said: str, parameters: Sequence[str]) -> Assumption:
    """Return what is known of the launch; `parameters` are the known values among it, such as `n=64`."""
    return Assumption(
        AssumptionKind.PARAMETERS if parameters else AssumptionKind.LAUNCH, f"launch: {said}", tuple(parameters)
    )


def lanes(text: str) -> Assumption:
    """Return what is supposed of the lanes of a warp that go different ways."""
    return Assumption(AssumptionKind.LANES, text)


def residency(text: str) -> Assumption:
    """Return how many blocks are on an SM, and why."""
    return Assumption(AssumptionKind.RESIDENCY, text)


def given_blocks(count: int, fitting: int | None) -> Assumption:
    """Return how many blocks are on an SM, as a user says; `fitting` is None where it is not known how many fit."""
    blocks = "1 block" if count == 1 else f"{count} blocks"
    said = f"{blocks} on an SM as given" if fitting is None else f"at most {blocks} on an SM, where {fitting} fit"
    return Assumption(AssumptionKind.GIVEN_BLOCKS, f"resident blocks as given: {said}", (said,))


def given_room(text: str) -> Assumption:
    """Return what a block takes of an SM by the word of a user."""
    return Assumption(AssumptionKind.GIVEN_BLOCKS, text, ("room and takes as given",))


# A whole GPU, and what stands in a file


def gpu(text: str) -> Assumption:
    """Return what is supposed of a whole GPU and its dispatcher."""
    return Assumption(AssumptionKind.GPU, text)


def dram_rate(rate: str, then: str) -> Assumption:
    """Return how much DRAM moves at least, such as `448 GB/s, its peak`, and what follows from that."""
    return Assumption(
        AssumptionKind.DRAM_RATE, f"DRAM moves at least {rate}, as long as an access waits for it; {then}", (rate,)
    )


def dram_need(need: str, then: str) -> Assumption:
    """Return the cycles that DRAM may need for what can be in flight, and what that means for latencies."""
    return Assumption(AssumptionKind.DRAM_NEED, f"DRAM may need {need} for what can be in flight; {then}", (need,))


def clock(text: str) -> Assumption:
    """Return what turns cycles into time."""
    return Assumption(AssumptionKind.CLOCK, text)


def bundle(text: str) -> Assumption:
    """Return what the checker of a bundle has proved, and what it has not."""
    return Assumption(AssumptionKind.BUNDLE, text)
