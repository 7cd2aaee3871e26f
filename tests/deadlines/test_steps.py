"""A `tick` of a task file is a step of the walk through schedules, and no answer is better for it.

What happens between two ticks counts: a kernel that has just begun before an urgent one comes has all of its time left,
and segments that take less than a tick let the jobs that they start come closer together. Every system here was called
in time once, because of its tick.
"""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from makespan import Limits
from makespan.deadlines import files
from makespan.deadlines.analysis import analyse
from makespan.deadlines.description import task_set
from makespan.deadlines.exactness import late_job, sharpen_verdict
from makespan.deadlines.holistic import AnalysisLimits as Additions
from makespan.deadlines.holistic import responses
from makespan.deadlines.task import (
    GpuPartition,
    GpuTask,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    Slices,
    TaskSet,
    least_unit,
    one_kernel,
)
from makespan.deadlines.verdict import DeadlineAnswer, TaskSetVerdict
from makespan.deadlines.wcet import Solver, execution_times
from makespan.host.errors import InputError
from tests.command import Outcome, Runner
from tests.deadlines.brute import longest
from tests.deadlines.sets import partition_of, small_kernels, small_systems


class System(NamedTuple):
    """A task file without its tick.

    Args:
        late: the task that misses its deadline.
        bound: the time in ms that no job of it exceeds and some come close to; None where more than that is proven.
    """

    text: str
    tick: str
    late: str
    bound: Fraction | int | None = None


def urgent(number: int) -> str:
    return f"priority = {number}"


def on(core: str, number: int = 1) -> str:
    return f'core = "{core}"\nwait = "block"\npriority = {number}'


def kernel(name: str, wcet: str, period: str, deadline: str, more: str = "") -> str:
    source = f"cycles = {wcet}" if wcet.isdigit() else f'wcet = "{wcet}"'
    times = f'{source}\nevidence = "e"\nperiod = "{period}"\ndeadline = "{deadline}"\n{more}\n'
    return f'[[task]]\nname = "{name}"\npartition = "GPU"\n{times}'


def job(name: str, segments: str, period: str, deadline: str, more: str = "") -> str:
    """Segments such as `cpu 1ms, copy 2ms, gpu 3ms`."""
    places = {"cpu": "", "copy": ', engine = "CE", evidence = "e"', "gpu": ', partition = "GPU", evidence = "e"'}
    listed = []
    for segment in segments.split(", "):
        kind, time = segment.split()
        listed.append(f'{{ {"wcet" if kind == "gpu" else kind} = "{time}"{places[kind]} }}')
    times = f'period = "{period}"\ndeadline = "{deadline}"\n'
    return f'[[task]]\nname = "{name}"\n{times}segments = [{", ".join(listed)}]\n{more}\n'


def gpu(policy: str, more: str = "") -> str:
    return f'[[partition]]\nname = "GPU"\npolicy = "{policy}"\n{more}\n'


def in_turn(length: str) -> str:
    return gpu("time-sliced", f'slice = "{length}"\nswitch = "0s"\nswitch_evidence = "e"')


def by_data(*names: str) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return f'[[chain]]\nname = "data"\ntasks = [{listed}]\nactivation = "data"\n'


RANKED = 'priorities = "larger-first"\n'
ENGINE = '[[copy_engine]]\nname = "CE"\npolicy = "fifo"\n'

SYSTEMS = {
    "a kernel that has just begun": System(
        RANKED
        + gpu("fixed-priority")
        + kernel("record", "2ms", "10ms", "10ms", urgent(1))
        + kernel("stop", "2ms", "20ms", "3ms", urgent(2)),
        "1ms",
        "stop",
        4,
    ),
    "copies and CPU time that end early": System(
        RANKED
        + ENGINE
        + job("grab", "cpu 1ms, copy 1ms, cpu 1ms, copy 1ms, cpu 1ms", "6ms", "6ms", on("c0"))
        + job("use", "cpu 4ms", "6ms", "5ms", 'core = "c1"\npriority = 1')
        + by_data("grab", "use"),
        "1ms",
        "use",
        7,
    ),
    "cycles, and a tick that is much shorter": System(
        RANKED
        + 'clock = "1.4GHz"\n'
        + gpu("fixed-priority")
        + kernel("first", "1399", "7us", "3.1us", urgent(3))
        + kernel("second", "2099", "10us", "9us", urgent(2))
        + kernel("third", "3001", "33us", "33us", urgent(1)),
        "100ns",
        "first",
        Fraction(4400, 1_400_000),
    ),
    "deadlines by releases": System(
        gpu("edf-release") + kernel("a", "2ms", "11ms", "2ms") + kernel("b", "1ms", "11ms", "4ms"),
        "1ms",
        "a",
        3,
    ),
    "deadlines by arrivals, with jitter": System(
        gpu("edf") + kernel("a", "3ms", "9ms", "9ms", 'jitter = "1ms"') + kernel("b", "4ms", "8ms", "6ms"),
        "1ms",
        "b",
        7,
    ),
    "copies after kernels": System(
        RANKED
        + gpu("fixed-priority")
        + ENGINE.replace("fifo", "fixed-priority")
        + job("a", "gpu 1ms, gpu 2ms, cpu 1ms", "6ms", "6ms", on("c0", 2))
        + job("b", "copy 3ms, copy 2ms", "6ms", "6ms", "priority = 1")
        + by_data("a", "b"),
        "1ms",
        "b",
    ),
    "copies first in, first out": System(
        RANKED
        + gpu("fixed-priority")
        + ENGINE
        + job("a", "gpu 2ms, gpu 2ms, cpu 1ms", "8ms", "8ms", on("c0", 2))
        + job("b", "copy 4ms, copy 2ms", "8ms", "7ms", "priority = 1")
        + by_data("a", "b"),
        "1ms",
        "b",
    ),
    "contexts in turn for a millisecond each": System(
        RANKED
        + in_turn("1ms")
        + job("a", "cpu 1ms, cpu 1ms, cpu 1ms", "4ms", "4ms", 'core = "c0"\npriority = 1')
        + kernel("b", "3ms", "4ms", "4ms", 'context = "b"')
        + kernel("d", "1ms", "5ms", "30ms", 'context = "d"')
        + by_data("a", "b"),
        "1ms",
        "b",
    ),
    "contexts in turn for two milliseconds each": System(
        RANKED
        + in_turn("2ms")
        + job("a", "cpu 1ms, cpu 1ms, cpu 1ms, cpu 1ms", "5ms", "5ms", 'core = "c0"\npriority = 1')
        + kernel("b", "2ms", "5ms", "4ms", 'context = "b"')
        + kernel("d", "2ms", "4ms", "30ms", 'context = "d"')
        + by_data("a", "b"),
        "1ms",
        "b",
    ),
    "three cores and data": System(
        RANKED
        + job("a", "cpu 1ms, cpu 1ms", "7ms", "7ms", 'core = "c0"\npriority = 2')
        + job("b", "cpu 1ms", "7ms", "7ms", 'core = "c1"\npriority = 2')
        + job("d", "cpu 4ms", "7ms", "6ms", 'core = "c2"\npriority = 1')
        + job("e", "cpu 2ms", "8ms", "12ms", 'core = "c2"\npriority = 3')
        + by_data("a", "b", "d"),
        "1ms",
        "d",
    ),
    "three cores and data, alone": System(
        RANKED
        + job("a", "cpu 1ms, cpu 1ms", "6ms", "6ms", 'core = "c0"\npriority = 2')
        + job("b", "cpu 1ms, cpu 1ms, cpu 1ms", "6ms", "6ms", 'core = "c1"\npriority = 2')
        + job("d", "cpu 4ms", "6ms", "4ms", 'core = "c2"\npriority = 1')
        + by_data("a", "b", "d"),
        "1ms",
        "d",
        7,
    ),
}


LATE = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
TICKS = ("", "1ms", "700us", "100ns", "1s")


class Command(Runner):
    def on(self, text: str, tick: str, *options: object) -> Outcome:
        Path("tasks.toml").write_text(f'tick = "{tick}"\n{text}' if tick else text)
        return self("tasks.toml", *options)

    def document(self, text: str, tick: str, *options: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.on(text, tick, "--format", "json", *options).out)
        return found


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command("schedulability", capsys)


def in_grains(text: str, grains: int, folder: Path) -> TaskSet:
    """The system of a task file in whole ticks, so many to the ms."""
    (folder / "grains.toml").write_text(text)
    described = files.read(folder / "grains.toml")
    found = execution_times(described, Solver(Limits))
    system, tick = task_set(described, {name: wcet.time() for name, wcet in found.items()})
    return divided(system, Fraction(1, 1000 * grains) / tick)


def divided(system: TaskSet, by: Fraction) -> TaskSet:
    """With ticks that are so many times as long."""

    def less(ticks: int) -> int:
        assert (ticks / by).denominator == 1
        return (ticks / by).numerator

    def shorter(task: GpuTask) -> GpuTask:
        segments = tuple(replace(s, wcet=less(s.wcet), delay=less(s.delay)) for s in task.segments)
        times = less(task.period), less(task.deadline), less(task.jitter)
        return replace(task, segments=segments, period=times[0], deadline=times[1], jitter=times[2])

    tasks, chains = map(shorter, system.tasks), (replace(chain, deadline=None) for chain in system.chains)
    slices = [p.slices for p in system.partitions]
    cut = [None if s is None else Slices(less(s.length), less(s.switch)) for s in slices]
    partitions = (replace(p, slices=s) for p, s in zip(system.partitions, cut, strict=True))
    return TaskSet(tuple(tasks), tuple(partitions), tuple(chains), system.engines)


# Systems that a tick called in time


@LATE
def test_a_tick_changes_no_answer_and_no_number(command: Command, system: System) -> None:
    documents = [command.document(system.text, tick) for tick in TICKS]
    assert all(document == documents[0] for document in documents)
    assert documents[0]["answer"] == "not schedulable"
    assert {task["name"] for task in documents[0]["tasks"] if task["answer"] != "schedulable"} == {system.late}
    lines = [command.on(system.text, tick) for tick in TICKS]
    assert {done.code for done in lines} == {1}
    assert len({done.out for done in lines}) == 1


@LATE
def test_a_walk_in_steps_of_a_tick_calls_none_of_them_in_time(command: Command, system: System) -> None:
    for tick in (system.tick, "700us"):
        document = command.document(system.text, tick, "--exact", "--attempts", "0")
        task = next(task for task in document["tasks"] if task["name"] == system.late)
        assert (task["answer"], document["answer"]) != ("schedulable", "schedulable")
        assert task["slack"] < 0


@LATE
def test_the_bound_is_the_time_that_jobs_come_close_to(command: Command, system: System) -> None:
    document = command.document(system.text, system.tick)
    task = next(task for task in document["tasks"] if task["name"] == system.late)
    ms = Fraction(document["tick"]) * 1000
    assert system.bound in (None, task["response"] * ms)
    assert task["slack"] == task["deadline"] - task["response"] < 0
    assert task["response"] >= sum(part["wcet"] for part in task["segments"])
    assert sum(part["ticks"] for part in task["parts"]) == task["response"]


@pytest.mark.parametrize("name", [name for name in SYSTEMS if "cycles" not in name])
def test_a_schedule_with_events_between_the_ticks_is_too_late(tmp_path: Path, command: Command, name: str) -> None:
    system, grains = SYSTEMS[name], 4 if "early" in name else 2
    stepped = in_grains(system.text, grains, tmp_path)
    found = longest(stepped)
    assert found is not None
    assert found[system.late] > stepped.by_name[system.late].deadline
    document = command.document(system.text, system.tick)
    for task in document["tasks"]:
        assert task["response"] * Fraction(document["tick"]) * 1000 >= Fraction(found[task["name"]], grains)
    whole = longest(in_grains(system.text, 1, tmp_path))
    assert whole is not None
    assert whole[system.late] * 1000 <= stepped.by_name[system.late].deadline * 1000 // grains


def test_a_deadline_that_is_missed_by_less_than_a_picosecond_is_not_proven(command: Command) -> None:
    """Each of five segments may take as little as one likes; that they take half a picosecond is nobody's promise."""
    early = SYSTEMS["copies and CPU time that end early"].text
    for deadline, code in (("6.999999999ms", 1), ("7ms", 0)):
        assert command.on(early.replace('"5ms"', f'"{deadline}"'), "").code == code


def test_margins_are_those_without_a_tick(command: Command) -> None:
    system = SYSTEMS["cycles, and a tick that is much shorter"]
    loose = system.text.replace("3.1us", "3.3us")
    plain, ticked = (command.document(loose, tick, "--sensitivity")["margins"] for tick in ("", system.tick))
    assert plain == ticked
    margins = {margin["quantity"]: margin for margin in ticked}
    assert Fraction(margins["execution time of first"]["holds"]) == Fraction(1157, 1000)
    assert 1399 * Fraction(1157, 1000) + 3001 <= Fraction("3.3e-6") * 1_400_000_000 < 1399 * Fraction(1158, 1000) + 3001


def test_text_page_and_json_say_the_same(command: Command) -> None:
    system = SYSTEMS["a kernel that has just begun"]
    done = command.on(system.text, system.tick, "--html", "page.html")
    row = next(line.split() for line in done.out.splitlines() if line.startswith("stop"))
    assert row[-8:] == ["3", "ms", "4", "ms", "-1", "ms", "not", "schedulable"]
    words = " ".join(Path("page.html").read_text().split())
    assert "  stop: blocking 2 ms + kernel 2 ms, attained if execution times are" in done.out.splitlines()
    assert "-1 ms" in words
    assert "below the bound" not in words  # a schedule that comes closer than a picosecond attains it
    task = command.document(system.text, system.tick)["tasks"][1]
    assert (task["slack"], task["response"], task["deadline"]) == (-2 * 10**9, 8 * 10**9, 6 * 10**9)
    met = command.on(system.text.replace('"3ms"', '"4ms"'), "")
    assert met.out.startswith("schedulable: every deadline is proven; stop reaches its deadline\n")


def test_margins_round_no_time(command: Command) -> None:
    """A thousandth of 1.234567891 ms is no whole number of picoseconds."""
    text = gpu("fifo") + kernel("a", "1.234567891ms", "7.000000001ms", "1.235802459ms")
    document = command.document(text, "", "--sensitivity")
    margins = {margin["quantity"]: margin for margin in document["margins"]}
    assert margins["execution time of a"]["holds"] == "1001/1000"
    shortest = Fraction(margins["period of a"]["holds"]) * Fraction(document["tick"])
    assert shortest == Fraction("7.000000001e-3") * Fraction(177, 1000)


# Walks


PAIR = (
    RANKED
    + gpu("fifo")
    + job("a", "gpu 1ms, cpu 1ms", "8ms", "7ms", on("c", 2))
    + job("b", "cpu 1ms, gpu 1ms, cpu 2ms", "5ms", "5ms", on("c", 1))
)
"""No theorem proves that b is in time, and a walk does."""


def test_the_tick_is_the_shortest_step(command: Command) -> None:
    for tick, last in (("", "1 ms"), ("1ms", "1 ms"), ("250us", "250 us"), ("300us", "300 us")):
        assert f"all schedules in steps of {last}, " in command.on(PAIR, tick, "--exact").out
    assert command.on(PAIR, "1ms").code == 3
    assert command.on(PAIR, "1ms", "--exact").code == 0


def test_a_step_longer_than_a_period_proves_nothing(command: Command) -> None:
    done = command.on(PAIR, "6ms", "--exact")
    assert done.code == 3
    assert "steps of 6 ms are too long: rounded to them, tasks take more than there is: a, b" in done.out


def test_a_step_shorter_than_what_analyses_count_with_is_no_walk_by_ticks(command: Command) -> None:
    """In half picoseconds the urgent kernel takes 3.5 ps, and that is not the longest."""
    tiny = SYSTEMS["a kernel that has just begun"].text.replace("ms", "ps")
    document = command.document(tiny, "0.001ps", "--exact")
    assert document["tasks"][1]["response"] * Fraction(document["tick"]) == Fraction(4, 10**12)


def test_a_walk_refutes_by_a_schedule_of_whole_steps(command: Command) -> None:
    tight = PAIR.replace('"5ms"\nsegments', '"4ms"\nsegments')
    for tick in ("", "1ms", "500us"):
        done = command.on(tight, tick, "--exact", "--attempts", "0")
        assert done.code == 1
        assert "the longest response of b in all schedules" in done.out


def test_a_time_that_is_shown_is_taken_in_whole_steps_or_not_at_all() -> None:
    """`long` takes 5 ticks, which are no whole steps of 2; 4 are."""
    for shown, is_found in ((5, False), (4, True)):
        urgent = one_kernel("urgent", 2, 40, 3, priority=2, partition="gpu")
        long = one_kernel("long", 5, 40, 40, priority=1, partition="gpu", attained=shown)
        system = partition_of(urgent, long)
        assert (late_job(system, "urgent", 1000, grid=2) is not None) == is_found
        assert late_job(system, "urgent", 1000) is not None


def test_periods_that_are_no_whole_steps_are_longer_in_a_schedule_that_refutes() -> None:
    """`low` is preempted by jobs 8 ticks apart, as 6 were too few: it takes 16 ticks."""
    cpu = (JobSegment(SegmentKind.CPU, 4),)
    high = GpuTask("high", cpu, 7, 7, priority=2, core="c")
    low = GpuTask("low", (JobSegment(SegmentKind.CPU, 8),), 100, 15, priority=1, core="c")
    miss = late_job(TaskSet((high, low), ()), "low", 10_000, grid=2)
    assert miss is not None
    assert miss.completion - miss.arrival == 16


def test_what_is_exact_is_what_a_schedule_of_whole_steps_takes(command: Command) -> None:
    exact = {tick: command.document(PAIR, tick, "--exact")["tasks"][1]["response_is_exact"] for tick in TICKS[:3]}
    assert exact == {"": True, "1ms": True, "700us": False}
    first = job("a", "gpu 900us, cpu 900us", "8ms", "7ms", on("c", 2))
    second = job("b", "cpu 900us, gpu 900us, cpu 900us, cpu 900us", "5ms", "5ms", on("c", 1))
    task = command.document(RANKED + gpu("fifo") + first + second, "1ms", "--exact")["tasks"][1]
    assert task["method"].endswith("in steps of 1 ms")
    assert not task["response_is_exact"]  # segments of less than a step are no whole ones


# Continuous time


def dense(system: TaskSet) -> TaskSet:
    """A system of whole ticks, whose events may lie between them."""
    unit = least_unit(sum(len(task.segments) for task in system.tasks))
    return replace(system.finer(unit), unit=unit)


def best(system: TaskSet, step: Fraction | None) -> tuple[TaskSetVerdict, TaskSetVerdict]:
    """Without and with a walk, in steps of so many of the old ticks."""
    plain = analyse(system, evidence=False)
    *_, walked = plain, *sharpen_verdict(plain, tick=Fraction(1, system.unit), step=step, most_states=1500)
    return plain, walked


def drawn(random: Random) -> TaskSet:
    return small_kernels(random) if random.random() < 0.3 else small_systems(random, is_chained=random.random() < 0.6)


def test_no_schedule_between_the_ticks_is_longer_than_a_bound() -> None:
    """For random systems with every kind of segment, steps that divide nothing, and events at halves to quarters."""
    random, compared, was_low = Random("between the ticks"), 0, 0
    while compared < 15:
        system = drawn(random)
        grains, step = random.choice((2, 3, 4)), Fraction(random.randint(3, 9), random.choice((2, 3, 4)))
        if (truth := longest(system.finer(grains), 3000)) is None:
            continue
        whole = analyse(system, evidence=False)
        plain, walked = best(dense(system), step)
        compared += 1
        for number, (task, old) in enumerate(zip(system.tasks, whole.tasks, strict=True)):
            seen = Fraction(truth[task.name], grains)
            was_low += old.response is not None and old.response < seen
            for verdict in plain, walked:
                found = verdict.tasks[number]
                assert found.response is None or found.response >= seen * verdict.tasks_analysed.unit
                assert found.answer is not DeadlineAnswer.YES or seen <= task.deadline
            bounds = (old.response, plain.tasks[number].response)
            assert None in bounds or (bounds[0] or 0) * dense(system).unit <= (bounds[1] or 0)
    assert was_low  # bounds for whole ticks would not pass


def test_bounds_are_whole_units_and_do_not_depend_on_how_many_ticks_these_have() -> None:
    random = Random("units")
    for _ in range(30):
        system = drawn(random)
        units = [least_unit(sum(len(task.segments) for task in system.tasks)) * factor for factor in (1, 7)]
        found = [analyse(replace(system.finer(unit), unit=unit), evidence=False) for unit in units]
        rows = [
            [None if task.response is None else Fraction(task.response, unit) for task in verdict.tasks]
            for verdict, unit in zip(found, units, strict=True)
        ]
        assert rows[0] == rows[1]
        assert all(bound is None or bound.denominator == 1 for bound in rows[0])
        ends = [each.end for each in responses(found[0].tasks_analysed, Additions()).of.values() if each is not None]
        assert all(end % units[0] == 0 for end in ends)


def test_a_unit_of_too_few_ticks_is_refused() -> None:
    parts = (JobSegment(SegmentKind.KERNEL, 6, "gpu"), JobSegment(SegmentKind.KERNEL, 6, "gpu"))
    system = TaskSet((GpuTask("a", parts, 60, 60),), (GpuPartition("gpu", ServerPolicy.FIFO),), unit=3)
    with pytest.raises(InputError, match="a unit of 3 ticks is too short for these tasks: take 6 at least"):
        analyse(system)
    assert analyse(replace(system, unit=6)).tasks[0].response == 12


def test_times_are_whole_units() -> None:
    with pytest.raises(InputError, match="every time must be a whole multiple of 2 ticks, and 5 is none"):
        TaskSet((one_kernel("a", 4, 10, 10, jitter=5),), (), unit=2)
