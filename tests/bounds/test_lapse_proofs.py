"""The proofs of section 17 of docs/theory.md, cycle by cycle, on random schedules."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random

import pytest

from benchmarks import closed_form
from makespan.host.errors import InvalidScheduleError
from makespan.model.gpu import Grid
from makespan.model.instance import Instance
from makespan.model.lapses import CacheLine
from makespan.model.machine import UnitQueue
from makespan.model.program import Program
from makespan.model.schedule import WHOLE_SM
from makespan.model.simulate.replay import replay
from makespan.proof.bounds import theorem_e
from tests import lapsing
from tests.bounds.gpu_ledger import GpuLedger
from tests.bounds.lapse_cutting import CutSchedule
from tests.bounds.lapse_ledger import LapseLedger, LapsingRun, random_run
from tests.bounds.ledger import Issue, Ledger, masses
from tests.bounds.queue_ledger import QueueLedger, random_queued_run
from tests.bounds.test_theorem_g_lapses import proofs, random_gpu


def plain(random: Random) -> Instance:
    machine = lapsing.plain_machine(random)
    return lapsing.instance(random, machine, ahead=False, barriers=random.random() < 0.3, most=10)


def multiprocessor(random: Random, *, barriers: bool) -> Instance:
    return lapsing.instance(random, lapsing.multiprocessor(random), ahead=True, barriers=barriers, most=10)


def queued(random: Random) -> Instance:
    """Two to four warps, some of whose classes have queues; lapses are those of credit, and misses."""
    instance = lapsing.instance(random, lapsing.multiprocessor(random), ahead=True, barriers=False, most=6)
    units = list(instance.machine.capacities)
    random.shuffle(units)
    cut = random.randint(1, len(units))
    queues = tuple(
        UnitQueue(name, tuple(names), random.randint(0, 3), random.random() < 0.5)
        for name, names in (("first", units[:cut]), ("second", units[cut : random.randint(cut, len(units))]))
        if names
    )
    machine = replace(instance.machine, queues=queues)
    return replace(only(instance, "credit", "misses"), machine=machine)


def only(instance: Instance, *kinds: str) -> Instance:
    """The instance with some kinds of its lapses."""

    def kept(program: Program) -> Program:
        none = dict.fromkeys({"credit", "fence", "misses"}.difference(kinds), 0)
        return program.lapsing(tuple(place._replace(lines=(), **none) for place in program.lapses))

    groups = tuple(replace(group, program=kept(group.program)) for group in instance.groups)
    return replace(instance, groups=groups)


COUNT, SOAK = 200, 30_000
"""Schedules of each kind in `make test`, and in `make soak`."""

KINDS: dict[str, Callable[[Random], Instance]] = {
    "1'": plain,
    "1S": partial(multiprocessor, barriers=False),
    "1S with barriers": partial(multiprocessor, barriers=True),
    "1Q": queued,
}


BROKEN = {
    "1'": ("withheld", "lapse", "own port", "occupied", "own", "fences", "misses at barriers"),
    "1S": ("withheld", "lapse", "tokens", "own port", "own", "shared", "elsewhere", "fences"),
    "1S with barriers": ("pending", "occupied", "own", "one partition", "one window", "misses at barriers"),
    "1Q": ("withheld", "lapse", "queue", "own port", "own", "served", "serving", "behind", "from issue"),
}
"""What is left out of each proof on purpose, one after the other."""

MOST_TRIES = 5000
"""Schedules that are looked at for one that notices; the rarest needs more than 1,000."""


def inequalities(kind: str, random: Random, without: str = "") -> Iterator[tuple[str, Fraction | int]]:
    """Yield the inequalities of a random schedule by name, and by kind how many hits there are in it."""
    instance = KINDS[kind](random)
    if not any(program.has_lapses for program in instance.programs()):
        return
    yield "schedules", 1
    ledger: LapseLedger | QueueLedger
    if kind == "1Q":
        ledger = QueueLedger(random_queued_run(random, instance), random, without)
    else:
        ledger = LapseLedger(random_run(random, instance), random, without)
    yield from ledger.inequalities()
    yield from ledger.kinds.items()


def check(kind: str, random: Random, count: int) -> Counter[str]:
    """Check so many schedules, and count the inequalities, those that hold with equality, and hits."""
    found = Counter[str]()
    while found["schedules"] < count:
        state = random.getstate()
        for name, left in inequalities(kind, random):
            if left < 0:
                random.setstate(state)
                instance = KINDS[kind](random)
                pytest.fail(f"{kind}, {name}: {left}, {instance}, {[p.lapses for p in instance.programs()]}")
            found[name] += 1
            found[f"{name} tight"] += left == 0
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_proofs_hold_in_every_cycle(kind: str) -> None:
    found = check(kind, Random(5), COUNT)
    assert min(found["lapse"], found["withheld"], found["full" if kind != "1Q" else "queue"]) > COUNT / 10
    assert min(found[f"{name} tight"] for name in ("issue", "charge", "floor", "credits")) > COUNT / 50


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_the_proofs_hold_in_every_cycle_of_many(kind: str) -> None:
    print(f"\n{kind}: {dict(check(kind, Random(6), SOAK))}")


@pytest.mark.parametrize(
    ("kind", "without"), [(kind, without) for kind, broken in BROKEN.items() for without in broken]
)
def test_the_inequalities_notice_what_is_left_out(kind: str, without: str) -> None:
    random = Random(7)
    assert any(left < 0 for _ in range(MOST_TRIES) for _, left in inequalities(kind, random, without))


def cut(random: Random, without: str = "") -> Iterator[CutSchedule]:
    """Yield what is left of the partitions of a random schedule without its lapses."""
    instance = only(KINDS[random.choice(("1'", "1S", "1S with barriers"))](random), "credit", "fence")
    if instance.has_barriers:
        instance = replace(instance, machine=replace(instance.machine, partitions=1))
    is_shared = instance.machine.partitions > 1 and any(ports.shared for ports in instance.machine.ports)
    if instance.blocks == 1 and not is_shared:
        run = random_run(random, instance)
        for part in sorted(set(run.parts)):
            yield CutSchedule(run, part, without)


def check_cut(random: Random, count: int) -> Counter[str]:
    """Check so many schedules, and count the lapses."""
    found = Counter[str]()
    while found["schedules"] < count:
        for left in cut(random):
            shorter, schedule = left.cut()
            assert replay(shorter, schedule) == left.end - len(left.lapses)
            found["schedules"] += 1
            found["lapses"] += len(left.lapses)
            found["barriers"] += shorter.has_barriers
            found["partitions"] += left.run.instance.machine.partitions > 1
    return found


def test_without_its_lapses_a_schedule_is_one_of_shorter_times() -> None:
    found = check_cut(Random(8), COUNT)
    assert min(found.values()) > COUNT / 10
    assert found["lapses"] > COUNT


@pytest.mark.soak
def test_without_their_lapses_many_schedules_are_some_of_shorter_times() -> None:
    print(f"\n{dict(check_cut(Random(9), SOAK))}")


@pytest.mark.parametrize("without", ["hold", "latency", "stall"])
def test_replay_notices_what_keeps_its_length(without: str) -> None:
    random = Random(10)
    with pytest.raises(InvalidScheduleError):  # noqa: PT012 - the schedules before are accepted
        for left in (left for _ in range(MOST_TRIES) for left in cut(random, without)):
            replay(*left.cut())


# --- theorem E ----------------------------------------------------------------------------------------------------

PAIRS = {
    "intervals": closed_form.Kind(interval=5, latency=4, ranges=True, warps=4, letters=8),
    "capacities": closed_form.Kind(ports=3, latency=4, ranges=True, warps=5, letters=6),
    "barriers": closed_form.Kind(ports=2, interval=4, latency=3, ranges=True, warps=4, letters=8, barriers=True),
}
"""The strings of theorem E."""


def with_lines(random: Random, kind: closed_form.Kind) -> Instance:
    """Strings whose lines are late; their schedulers lapse if intervals are of one cycle, which cannot get shorter."""
    instance = closed_form.instance(random, kind)
    lines = [CacheLine(f"line {n}", random.randint(1, 3)) for n in range(random.choice((0, 1, 2)))]
    kinds = random.choice(("l", "lm", "m"))
    if all(unit.interval == 1 for unit in instance.machine.units):
        kinds += random.choice(("", "c", "cf"))
    groups = [replace(g, program=lapsing.lapsing(random, g.program, lines, kinds)) for g in instance.groups]
    return replace(instance, groups=tuple(groups))


def pairs_of(run: LapsingRun, random: Random, without: str) -> Ledger:
    """The proof of theorem E on what is left of a schedule without its lapses."""
    instance, programs = run.instance, tuple(run.instance.programs())

    def at(cycle: int) -> int:
        return cycle - sum(lapse < cycle for lapse in run.lapses)

    segments = [[[] for _ in range(len(passed) + 1)] for passed in run.barriers]  # type: list[list[list[Issue]]]
    for step in (step for steps in run.steps for step in steps):
        end = at(step.cycle + step.latency)
        unit = programs[step.warp].places[step.place].unit
        segments[step.warp][run.phase_of(step)].append(Issue(unit, at(step.cycle), end - at(step.cycle)))
    chain, begin, kept = run.chain(), 0, set[int]()
    mine, others = list[Issue](), list[list[Issue]]()
    for phase, y in enumerate(chain):
        end = run.end_of_phase(y, phase)
        kept |= {at(t) for t in range(begin, end) if (t, y) in run.withheld and t not in run.lapses}
        mine, begin = [*mine, *segments[y][phase]], end
    for warp, own in enumerate(segments):
        others += [one for phase, one in enumerate(own) if one and (phase >= len(chain) or chain[phase] != warp)]
    late = frozenset(at(cycle) for cycle, _ in run.withheld if cycle not in run.lapses)
    known = [unit.name for unit in instance.machine.units if unit.capacity == 1 or unit.interval == 1]
    counted = frozenset(known if random.random() < 0.6 else random.sample(known, random.randint(0, len(known))))
    mass = masses(instance.machine, counted)
    caps = {name: random.choice((own, max(mass.values()), own + 1)) for name, own in mass.items()}
    crew = instance.warps - 1
    return Ledger(instance.machine, counted, mine, others, caps, crew, without, late, frozenset(kept))


def inequalities_of_pairs(kind: str, random: Random, without: str = "") -> Iterator[tuple[str, int]]:
    """Yield the inequalities of theorem E in a random schedule by name, and by kind how many cycles are disturbed."""
    instance = with_lines(random, PAIRS[kind])
    if all(group.program.is_chain and group.program.has_lapses for group in instance.groups):
        run = random_run(random, instance)
        yield from (("schedules", 1), ("withheld", len(run.withheld)), ("lapses", len(run.lapses)))
        yield from pairs_of(run, random, without).inequalities()


def check_pairs(kind: str, random: Random, count: int) -> Counter[str]:
    """Check so many schedules, and count inequalities, those that hold with equality, and disturbed cycles."""
    found = Counter[str]()
    while found["schedules"] < count:
        for name, left in inequalities_of_pairs(kind, random):
            assert left >= 0, (kind, name, left)
            found[name] += left if name in {"withheld", "lapses"} else 1
            found[f"{name} tight"] += left == 0
    return found


@pytest.mark.parametrize("kind", PAIRS)
def test_a_late_line_costs_pairs_a_cycle_at_most(kind: str) -> None:
    found = check_pairs(kind, Random(11), COUNT // 2)
    assert min(found["withheld"], found["lapses"], found["I tight"]) > COUNT / 10


@pytest.mark.soak
@pytest.mark.parametrize("kind", PAIRS)
def test_late_lines_cost_pairs_a_cycle_each_at_most(kind: str) -> None:
    print(f"\n{kind}: {dict(check_pairs(kind, Random(12), SOAK))}")


@pytest.mark.parametrize("without", ["late", "price", "latency"])
def test_the_inequalities_of_pairs_notice_what_is_left_out(without: str) -> None:
    random = Random(13)
    assert any(left < 0 for _ in range(MOST_TRIES) for _, left in inequalities_of_pairs("intervals", random, without))


def with_all_lapses(random: Random) -> Instance:
    """Strings whose classes may be held for several cycles, or warps that run ahead on one partition or several."""
    if random.random() < 0.5:
        return KINDS[random.choice(("1'", "1S", "1S with barriers"))](random)
    instance = closed_form.instance(random, PAIRS[random.choice(list(PAIRS))])
    lines = [CacheLine(f"line {n}", random.randint(1, 3)) for n in range(random.choice((0, 1, 2)))]
    kinds = random.choice(("c", "cl", "cf", "cm", "lm", "cflm"))
    groups = [replace(g, program=lapsing.lapsing(random, g.program, lines, kinds)) for g in instance.groups]
    return replace(instance, groups=tuple(groups))


def room_of_pairs(random: Random, without: str = "") -> int | None:
    """The cycles by which a random schedule is shorter than theorem E and its lapses and disturbed cycles say.

    None if the theorem does not apply.
    """
    instance = with_all_lapses(random)
    plain = theorem_e(instance.without_lapses.relaxed)
    if plain is None or not any(program.has_lapses for program in instance.programs()):
        return None
    run = random_run(random, instance)
    chain, begin = run.chain(), 0
    part, kept = run.parts[chain[-1]], 0
    lapses = {cycle for cycle, parts in run.lapses.items() if {part, WHOLE_SM} & set(parts)}
    for phase, y in enumerate(chain):
        end = run.end_of_phase(y, phase)
        kept, begin = kept + sum((t, y) in run.withheld and t not in lapses for t in range(begin, end)), end
    late = {cycle for cycle, warp in run.withheld if run.parts[warp] == part and cycle not in lapses}
    parts = {"lapses": len(lapses), "kept": kept, "late": len(late)}
    return plain.upper + sum(cycles for name, cycles in parts.items() if name != without) - run.makespan


def check_room(random: Random, count: int) -> Counter[str]:
    """Check so many schedules, and count those that are as long as can be."""
    found = Counter[str]()
    while found["schedules"] < count:
        if (room := room_of_pairs(random)) is not None:
            assert room >= 0
            found["schedules"] += 1
            found["tight"] += not room
    return found


def test_theorem_e_counts_lapses_once_and_late_warps() -> None:
    assert check_room(Random(17), COUNT)["tight"] > COUNT / 25
    random = Random(18)
    assert any((room_of_pairs(random, "lapses") or 0) < 0 for _ in range(MOST_TRIES))


@pytest.mark.soak
def test_theorem_e_counts_lapses_once_and_late_warps_in_many_schedules() -> None:
    print(f"\n{check_room(Random(19), SOAK)}")


# --- theorem G ----------------------------------------------------------------------------------------------------


def ledger_of_gpu(random: Random, without: str = "") -> GpuLedger:
    """The proof of theorem G on a random run of a GPU with more blocks than fit at once."""
    of = random_gpu(random)
    grid = Grid(of.grid.block, of.blocks + random.randint(0, 5))
    return GpuLedger(replace(of, grids=(grid,)), random, without)


def check_gpus(random: Random, count: int) -> Counter[str]:
    """Check so many runs, and count inequalities, those that hold with equality, and hits."""
    found = Counter[str]()
    for _ in range(count):
        ledger = ledger_of_gpu(random)
        for name, left in ledger.inequalities():
            assert left >= 0, (name, left, ledger.gpu)
            found[name] += 1
            found[f"{name} tight"] += left == 0
        found += ledger.kinds
        for proof in proofs(ledger.gpu):
            assert ledger.run.last <= proof.dispatched + proof.windows
            assert ledger.run.makespan <= proof.upper
    return found


def test_the_links_of_a_gpu_are_as_long_as_theorem_g_says() -> None:
    found = check_gpus(Random(14), COUNT)
    assert min(found[name] for name in ("full", "lapse", "withheld", "link tight", "partition tight")) > COUNT
    assert min(found[f"{name} tight"] for name in ("ports", "lapses", "charge")) > COUNT / 10


@pytest.mark.soak
def test_the_links_of_many_gpus_are_as_long_as_theorem_g_says() -> None:
    print(f"\n{dict(check_gpus(Random(15), SOAK))}")


@pytest.mark.parametrize("without", ["lapse", "withheld", "R", "K", "own credit", "own"])
def test_the_links_notice_what_is_left_out(without: str) -> None:
    random = Random(16)
    assert any(left < 0 for _ in range(MOST_TRIES) for _, left in ledger_of_gpu(random, without).inequalities())
