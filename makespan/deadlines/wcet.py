"""Execution times of kernels and copies, each with its ground: solved now, verified from a bundle, or given.

Nothing else becomes one: an `Estimate` is another type, and refused, and so is a file that holds one.

A launch on a partition is a question about all its SMs (`on_sms`), or about one of them where that is enough. Let the
partition have S SMs, on each of which exactly R blocks of the launch fit at the same time, out of B. With B
<= S R no block needs to wait for room. Where they begin at once, too, all of them start together, in one wave, and an
SM has at least B - (S - 1) R and at most min(R, B) of them. The slowest SM ends the kernel. More blocks can never be
faster at worst as long as every port is held for one cycle: take the worst schedule of k blocks and let the warps of
one more block issue only what the others leave. Ports and issue slots that the others use are theirs in every cycle as
before, so their schedule is unchanged, and in no cycle could one more instruction be issued. A warp that holds a port
for longer can delay another, which may be the better for it, and one more block may spread the warps over partitions
in another way; so on such a machine every number of blocks is a question of its own.
With more blocks than S R some start when others end, and only theorem G speaks of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from makespan.deadlines.description import (
    BundleFile,
    Description,
    ExecutionTime,
    GivenCycles,
    GivenTime,
    KernelLaunch,
    ServedEntry,
    execution_keys,
)
from makespan.deadlines.task import GpuTask, SegmentKind
from makespan.host.errors import InputError, prefix_errors
from makespan.host.stopwatch import within
from makespan.host.text_file import read_bytes
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.assumptions import AssumptionKind as About
from makespan.model.claim import WorstCaseClaim, programs_of
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance, GpuResult
from makespan.model.instance import Instance
from makespan.model.lowered import LoweredMachine
from makespan.model.machine import Machine, narrow_intervals
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.values import shown
from makespan.model.result import Bounds, Result
from makespan.model.wording import count_words
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.gpu import THEOREM_G, solve_gpu
from makespan.verify import Outcome, Refused, gpu_reading, parse, reading, verify
from makespan.verify.conditions import LATENCIES
from makespan.verify.reading import MOST_BYTES

if TYPE_CHECKING:
    from makespan.kernels.question import LaunchedKernel

MAX_QUESTIONS = 64


def on_sms(launch: KernelLaunch, sms: int, card: Gpu | None = None) -> GpuInstance:
    """Return all blocks of a launch on a partition of `sms` SMs.

    Args:
        card: The GPU that they belong to. All its other SMs count as active, whatever runs there, where a latency grows
            with the number of active SMs.

    Raises:
        InputError: a kernel that cannot be read or made a program; a launch that lacks something, more resident blocks
            than an SM holds, or a latency that grows where no GPU is named.
    """
    # The front end of kernels takes time to load, and a task file need not have a kernel.
    from makespan.kernels.gpu_question import as_given, of_kernel
    from makespan.kernels.question import LaunchedKernel, launch_kernel

    question = launch.question
    growing = [(name, latency) for name, latency in question.latencies.items() if latency.depends_on]
    if growing and card is None:
        name, latency = growing[0]
        raise InputError(
            f"latency of {name}: {latency} depends on {latency.depends_on}: say on which GPU, with"
            ' gpu = "NAME" at the top (--gpu for CSV)'
        )
    found = launch_kernel(question, launch.machine, card)
    chosen = launch.machine or (found.default_machine if card is None else card.machine)
    machine = narrow_intervals(chosen, launch.holds)
    if found.launch.grid is None:
        return as_given(_one_block(found, machine, sms, card), launch.machine, card)
    if prod(found.launch.grid) == 1 and question.blocks_per_sm is None:
        found = LaunchedKernel(replace(found.question, blocks_per_sm=1), found.module, found.kernel)
    return as_given(of_kernel(found, machine, sms=sms, card=card), launch.machine, card)


def _one_block(kernel: "LaunchedKernel", machine: Machine, sms: int, card: Gpu | None) -> GpuInstance:
    """Return one block of a launch that names only its number of warps."""
    from makespan.kernels.gpu_question import dispatch_cycles

    if kernel.launch.block is not None or kernel.question.warps is None:
        raise InputError("the number of blocks is not known: give grid, such as grid = 1 (or warps = N for one block)")
    (block,) = kernel.blocks(machine)
    return GpuInstance.of(block, 1, machine, sms=sms, resident=1, dispatch=dispatch_cycles(card))


def on_one_sm(gpu: GpuInstance) -> tuple[Instance, ...]:
    """Return the questions about one SM, if all blocks start together; the worst answer is that of the GPU.

    Raises:
        InputError: there are too many questions.
    """
    most = gpu.resident
    # where more blocks need not be worse, every number is asked about
    least = most if _more_is_worse(gpu.machine) else max(1, gpu.blocks - (gpu.sms - 1) * most)
    if most - least >= MAX_QUESTIONS:
        raise InputError(
            f"{most} blocks on an SM with partitions, or whose ports are held for longer than a cycle;"
            f" the limit is {MAX_QUESTIONS}"
        )
    return tuple(gpu.sm(count) for count in range(least, most + 1))


def _more_is_worse(machine: Machine) -> bool:
    """Return whether one more block can never make the others faster at worst."""
    held = LoweredMachine.of(machine).by_class.values()
    return machine.partitions == 1 and all(reservation.longest == 1 for reservation in held)


ESTIMATE_SCHEMA = "makespan.estimate"


class WcetGround(StrEnum):
    """The party that answers for an execution time."""

    GIVEN = "given"
    """the user"""
    PROVEN = "proven"
    """a proof that was computed or verified here, within the model of the machine"""


@dataclass(frozen=True, slots=True)
class Wcet:
    """An upper bound on the execution time of a kernel or a copy, proven or given.

    Args:
        cycles: The same in cycles of the SM clock; None where it was given as a time.
        evidence: A line on where it comes from.
        at_least: The seconds that some schedule of the model takes; None where nothing is known.
        assumptions: What must hold; a given time has none.
        is_one_path: The same as in a `WorstCaseClaim`.
    """

    seconds: Fraction
    cycles: int | None
    kind: WcetGround
    evidence: str
    at_least: Fraction | None = None
    assumptions: tuple[Assumption, ...] = ()
    is_one_path: bool = True

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the conditions that a verdict that rests on it must state."""
        return conditions(self.assumptions)

    @property
    def is_exact(self) -> bool:
        """Return whether a schedule of the model takes so long."""
        return self.at_least == self.seconds

    def time(self, slower: Fraction = Fraction(1)) -> ExecutionTime:
        """Return the time; what is counted in cycles is scaled to a clock that is slower by this factor."""
        factor = Fraction(1) if self.cycles is None else slower
        at_least = None if self.at_least is None else self.at_least * factor
        return ExecutionTime(self.seconds * factor, at_least, is_shown=self.is_one_path)

    @classmethod
    def of_claim(cls, claim: WorstCaseClaim, clock: Fraction, evidence: str) -> "Wcet":
        """Return a claim at this many hertz."""
        at_least = claim.lower / clock
        notes = claim.assumptions
        seconds, one_path = claim.upper / clock, claim.is_one_path
        return cls(seconds, claim.upper, WcetGround.PROVEN, evidence, at_least, notes, one_path)


class ClaimStore(Protocol):
    """A store of results; what comes from there is verified."""

    def load(self, asked: Instance | GpuInstance) -> WorstCaseClaim | None:
        """Return the claim kept for what is asked; None where there is none that can be trusted."""

    def save(self, result: Result | GpuResult) -> None:
        """Keep a result in the store."""


@dataclass(frozen=True, slots=True)
class Solver:
    """A solver of kernels, with its limits and its store.

    Args:
        limits: It makes the budget of one instance.
        store: It is asked before a kernel is solved.
        is_for_bounds: Whether only upper ends matter: then no long schedules of several waves are looked for.
        known: The claims that were solved before, by instance, its assumptions and its lapses, which are no part of its
            equality.
    """

    limits: Callable[[], Limits]
    store: ClaimStore | None = None
    is_for_bounds: bool = False
    known: dict[tuple[Instance | GpuInstance, tuple[Assumption, ...], tuple[object, ...]], WorstCaseClaim] = field(
        default_factory=dict
    )

    def claim(self, asked: Instance | GpuInstance) -> WorstCaseClaim:
        """Return the worst case of what is asked: from the store, or solved, once."""
        key = asked, asked.assumptions, _lapses(asked)
        if key not in self.known:
            self.known[key] = self._claim(asked)
        return self.known[key]

    def _claim(self, asked: Instance | GpuInstance) -> WorstCaseClaim:
        if self.is_for_bounds and isinstance(asked, GpuInstance):  # no schedule is needed, so no engine is asked
            return WorstCaseClaim.about(asked, Bounds(0, theorem_g(asked).upper), THEOREM_G, asked.assumptions)
        kept = None if self.store is None else self.store.load(asked)
        if kept is not None:
            return kept
        limits = self.limits()
        result = solve(asked, limits=limits) if isinstance(asked, Instance) else solve_gpu(asked, limits=limits)
        if self.store is not None:
            self.store.save(result)
        return WorstCaseClaim.of(result)


def execution_times(description: Description, solver: Solver) -> dict[str, Wcet]:
    """Return the times of all copies and kernels, by the names of `Description.executions`.

    Equal kernels are solved once.

    Raises:
        InputError: a source that cannot be read, is rejected, fixes a path without saying why it is the only one, or
            needs a clock; the message names the file and the task, or its segment.
    """
    return dict(each_execution_time(description, solver))


def each_execution_time(
    description: Description, solver: Solver, found: dict[tuple[str, tuple[int, ...]], Wcet] | None = None
) -> Iterator[tuple[str, Wcet]]:
    """Yield the same one by one, as they become known.

    Args:
        found: The times that are known, by source and by the numbers of SMs that may run it; it grows.
    """
    found = {} if found is None else found
    for name, entry in description.executions.items():
        # as text: 0.0 == -0.0, which are two parameters; of all fields, which the representation of a question is not
        key = (type(entry.source).__name__ + repr(astuple(entry.source)), description.sms_of(entry))
        with prefix_errors(f"{description.where}: task {name}"):
            if key not in found:
                found[key] = _execution_time(entry, description, solver)
        yield name, found[key]


def wcet_key(task: GpuTask, index: int) -> str:
    """Return the name of the execution time of a copy or kernel of a task, see `execution_keys`."""
    return execution_keys(task.name, (segment.kind for segment in task.segments))[index]


def claim_of_bundle(path: Path, sizes: Sequence[int]) -> WorstCaseClaim:
    """Return the claim that a bundle proves; of one that could be re-proved only in part, that part.

    What is assumed of the machine follows from the verified instance; what else the file says is marked as said by it.

    Args:
        sizes: The numbers of SMs that the partition may have; a bundle of a GPU must be about that number.

    Raises:
        InputError: a file that cannot be read, is no bundle or an estimate, is rejected by the checker, or is about
            another number of SMs.
    """
    document = _document(path)
    verdict = verify(document)
    upper = verdict.upper
    if verdict.outcome is Outcome.REJECTED or verdict.claim is None or verdict.lower is None or upper is None:
        raise InputError(f"{path}: {verdict}")
    claimed, proof = verdict.claim.upper, str(verdict.claim.evidence)
    if upper > claimed:  # the checker re-proved a weaker bound only
        proof = f"what could be re-proved of {claimed} by {proof}"
    is_of_gpu = gpu_reading.speaks_of(document)
    found = gpu_reading.bundle(document) if is_of_gpu else reading.bundle(document)
    asked = found.gpu if isinstance(found, gpu_reading.GpuBundle) else found.instance
    if isinstance(asked, GpuInstance) and set(sizes) != {asked.sms}:
        has = " or ".join(map(str, sizes))
        raise InputError(
            f"{path}: it is about {count_words(asked.sms, 'SM')}, and the partition has {has}: a proof for one number"
            " of SMs is none for another"
        )
    if isinstance(asked, GpuInstance) and asked.dram:
        raise InputError(
            f"{path}: it counts cycles in which DRAM is busy, for the clock of a GPU that it does not name: give the"
            " kernel itself instead of the bundle"
        )
    if found.said is None:
        raise InputError(
            f"{path}: its assumptions are words, as an older makespan wrote them, and nobody can tell under which"
            " conditions its number holds: solve the question again"
        )
    if not asked.machine.name.isprintable():
        raise InputError(f"{path}: rejected: {shown(asked.machine.name)} has characters that cannot be printed")
    stated = {note.kind for note in found.said}  # who states latencies was checked; a file may say it more exactly
    known = tuple(note for note in asked.assumptions if note.kind not in LATENCIES or note.kind in stated)
    notes = (
        *known,
        assumptions.bundle(
            f"{path.name}: the numbers were verified, for the warps that are in it; that these are all warps of the"
            " kernel with all its paths, on this machine, is as the file says"
        ),
        *(note.naming(f"{path.name} says: {note}") for note in found.said if note not in known),
    )
    claim = WorstCaseClaim.about(asked, Bounds(verdict.lower, max(claimed, upper)), proof, notes)
    return replace(claim, is_one_path=claim.is_one_path and not is_of_gpu)  # a latency may have grown with active SMs


def _document(path: Path) -> Any:
    content = read_bytes(path, "bundle", MOST_BYTES)
    try:
        document: Any = parse(content)
    except Refused as refusal:
        raise InputError(f"{path}: {refusal}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if isinstance(schema, str) and schema.startswith(ESTIMATE_SCHEMA):
        raise InputError(
            f"{path}: this is an estimate ({schema[:80]}), which bounds nothing; solve the kernel with --bundle instead"
        )
    return document


def _execution_time(entry: ServedEntry, description: Description, solver: Solver) -> Wcet:
    source = entry.source
    if isinstance(source, GivenTime):
        return Wcet(source.seconds, None, WcetGround.GIVEN, source.evidence)
    if description.clock is None:
        raise InputError('cycles need a clock: give clock = "1.4GHz" at the top of the file (--clock for CSV)')
    if isinstance(source, GivenCycles):
        return Wcet(source.cycles / description.clock, source.cycles, WcetGround.GIVEN, source.evidence)
    if isinstance(source, BundleFile):
        claim, name = claim_of_bundle(source.path, description.sms_of(entry)), f"bundle {source.path.name}"
    else:
        claim, name = (
            _solve_launch(source, description.sms_of(entry), description.card, solver),
            f"kernel {source.question.name}",
        )
    _check_dram(claim, description)
    _check_warm(claim, entry, description)
    return Wcet.of_claim(claim, description.clock, f"{name}: {claim}{_path_evidence(claim, source.evidence)}")


def _check_dram(claim: WorstCaseClaim, description: Description) -> None:
    """Refuse what counts all that DRAM moves during a kernel, where others may use DRAM at the same time."""
    from makespan.kernels.dram import check_clock

    if not any(note.kind is About.DRAM_RATE for note in claim.assumptions):
        return
    others = {
        "there are copies": bool(description.engines),
        "there are several partitions": len(description.partitions) > 1,
        "contexts take a partition in turn": any(entry.slices for entry in description.partitions),
    }
    if said := [other for other, is_there in others.items() if is_there]:
        raise InputError(f"+dram supposes that nothing else uses DRAM, and {said[0]}: give an upper end without +dram")
    check_clock(description.card, description.clock)


def _check_warm(claim: WorstCaseClaim, entry: ServedEntry, description: Description) -> None:
    """Refuse what counts on the code and constants that the launch before has left, where another kernel may run."""
    if not any(note.kind is About.WARM for note in claim.assumptions):
        return
    kernels = (part for part in description.executions.values() if part.kind is SegmentKind.KERNEL)
    places = None, entry.resource
    others = [part for part in kernels if entry.resource is None or part.resource in places]
    if any(part.source != entry.source for part in others) or any(one.slices for one in description.partitions):
        raise InputError(
            "warm supposes that the launch before was of the same kernel, and another one may run there in between:"
            ' give latency = ["fetch=..N", "constant-miss=..N"] in the place of warm'
        )


def _path_evidence(claim: WorstCaseClaim, evidence: str | None) -> str:
    """Return why a fixed path is the only one, and why a bound that the code contradicts holds."""
    missing = {
        About.PATH: "no other path can be taken, or leave out what fixes it",
        About.TRUSTED_LOOP: "they hold all the same, or solve it without --trust-bounds",
    }
    doubts = [note for kind in missing for note in claim.assumptions if note.kind is kind]
    if doubts and evidence is None:
        raise InputError(f'{doubts[0]}: say in evidence = "..." why {missing[doubts[0].kind]}')
    said = conditions(doubts) if evidence is None else (*conditions(doubts), evidence)
    return "".join(f"; {each}" for each in said)


def _lapses(asked: Instance | GpuInstance) -> tuple[object, ...]:
    """Return what is known of the lapses of the machine, and the lapses of all programs in order."""
    return (asked.machine.lapses, *(program.lapses for program in programs_of(asked)))


def _solve_launch(launch: KernelLaunch, sizes: Sequence[int], card: Gpu | None, solver: Solver) -> WorstCaseClaim:
    """Return the worst of the worst cases on partitions of these numbers of SMs."""
    with within(solver.limits().seconds):
        gpus = [on_sms(launch, sms, card) for sms in sizes]
        asked = [on_one_sm(gpu) if gpu.has_lone_sms else (gpu,) for gpu in gpus]
    # how late lines are may depend on the number of SMs
    questions = {(one, _lapses(one)): one for several in asked for one in several}
    claims = [solver.claim(one) for one in questions.values()]
    worst = max(claims, key=lambda claim: claim.upper)
    notes = dict.fromkeys(note for claim in claims for note in claim.assumptions)
    lower = max(claim.lower for claim in claims)  # one of the questions attains it
    # what others do to a latency that depends on them, no run need bring with it
    one_path = all(c.is_one_path for c in claims) and not any(x.depends_on for x in launch.question.latencies.values())
    return replace(worst, lower=lower, assumptions=tuple(notes), is_one_path=one_path)
