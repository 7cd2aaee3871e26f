"""Task sets in the formats of other tools, read back by a parser, or run by the tool where it is installed."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings

from makespan.deadlines.export import Format, export
from makespan.deadlines.task import (
    ChainStart,
    CopyEngine,
    GpuPartition,
    GpuTask,
    HostWait,
    JobSegment,
    SegmentKind,
    ServerPolicy,
    Slices,
    TaskChain,
    TaskSet,
    one_kernel,
)
from makespan.host.errors import InputError, UnsupportedError

MS = Fraction(1, 1000)
FP, EDF, RELEASE, FIFO = (GpuPartition(policy.value, policy) for policy in ServerPolicy)
SLICED = GpuPartition("p", ServerPolicy.FIFO, Slices(1))
DMA = CopyEngine("dma", ServerPolicy.FIFO)


def _kernels() -> TaskSet:
    return TaskSet(
        (
            one_kernel("a", 2, 10, 10, priority=3, partition=FP.name),
            one_kernel("b", 4, 15, 15, priority=2, partition=FP.name),
            one_kernel("c", 5, 30, 30, priority=1, partition=FP.name),
            one_kernel("d", 3, 10, 10, partition=EDF.name),
            one_kernel("e", 6, 20, 20, partition=EDF.name, offset=5),
            one_kernel("f", 1, 5, 5, partition=FIFO.name),
        ),
        (FP, EDF, FIFO),
    )


def _with_cpu() -> TaskSet:
    return TaskSet(
        (
            one_kernel(
                "a & b",
                2000,
                10_000,
                10_000,
                priority=30,
                before=1000,
                after=500,
                core="c0",
                wait=HostWait.BLOCK,
                partition=FP.name,
            ),
            one_kernel("b", 4000, 15_000, 15_000, jitter=3000, priority=2, partition=FP.name),
            one_kernel("c", 1000, 15_000, 15_000, partition=FIFO.name),
        ),
        (FP, FIFO),
    )


def _text(task_set: TaskSet, kind: Format) -> str:
    return next(iter(export(task_set, kind, tick=MS, stem="tasks").files.values()))


def test_a_simulation_names_every_task_and_its_scheduler() -> None:
    files = export(_kernels(), Format.SIMSO, tick=MS, stem="tasks").files
    root = ElementTree.fromstring(files["tasks.xml"])
    assert [task.get("name") for task in root.iter("task")] == ["a", "b", "c", "d", "e", "f"]
    assert [task.get("WCET") for task in root.iter("task")] == ["2.0", "4.0", "5.0", "3.0", "6.0", "1.0"]
    assert [task.get("partition") for task in root.iter("task")] == ["0", "0", "0", "1", "1", "2"]
    scheduler = next(root.iter("sched")).attrib["className"]
    assert scheduler in files
    names = {node.name for node in ast.walk(ast.parse(files[scheduler])) if isinstance(node, ast.ClassDef)}
    assert names == {Path(scheduler).stem}


def test_the_simulation_runs_where_simso_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("simso")
    for name, text in export(_kernels(), Format.SIMSO, tick=MS, stem="tasks").files.items():
        (tmp_path / name).write_text(text)
    script = (
        "from simso.core import Model; from simso.configuration import Configuration\n"
        "model = Model(Configuration('tasks.xml')); model.run_model()\n"
        "print({t.name: max(j.response_time for j in t.jobs if j.response_time) for t in model.results.tasks.values()})"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    response = ast.literal_eval(done.stdout)
    assert {name: ticks / 10**9 for name, ticks in response.items()} == {
        "a": 3,
        "b": 6,
        "c": 11,
        "d": 4,
        "e": 6,
        "f": 1,
    }


def test_the_script_for_pycpa_uses_its_names_and_every_time() -> None:
    script = _text(_with_cpu(), Format.PYCPA)
    tree = ast.parse(script)
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "model.Task"]
    times = {ast.literal_eval(node.args[0]): {k.arg: ast.literal_eval(k.value) for k in node.keywords} for node in made}
    assert times == {
        "a & b 1 cpu": {"wcet": 2, "bcet": 0, "scheduling_parameter": 30},
        "a & b 2 kernel": {"wcet": 4, "bcet": 0, "scheduling_parameter": 30},
        "a & b 3 cpu": {"wcet": 1, "bcet": 0, "scheduling_parameter": 30},
        "b 1 kernel": {"wcet": 8, "bcet": 0, "scheduling_parameter": 2},
        "c 1 kernel": {"wcet": 2, "bcet": 0, "scheduling_parameter": 0},
    }
    assert "one unit of time is 500 ms" in script  # ticks are milliseconds, and 500 divides them all
    assert script.count("link_dependent_task") == 2
    assert "model.PJdEventModel(P=30, J=6)" in script
    assert script.count("SPNPScheduler") == 2
    assert script.count("SPPScheduler") == 1


def _pipeline(wait: HostWait | None = HostWait.BLOCK) -> TaskSet:
    """Data of a camera start two tasks, which a third one waits for; every kind of segment, and two launch delays."""
    camera = (
        JobSegment(SegmentKind.CPU, 4),
        JobSegment(SegmentKind.COPY, 6, "h2d", delay=2),
        JobSegment(SegmentKind.KERNEL, 8, FP.name),
    )
    fuse = (
        JobSegment(SegmentKind.KERNEL, 10, FP.name, delay=4),
        JobSegment(SegmentKind.COPY, 2, "h2d"),
        JobSegment(SegmentKind.CPU, 6),
    )
    tasks = (
        GpuTask("fuse", fuse, 100, 90, jitter=2, priority=2, core="c0", wait=wait),
        GpuTask("camera", camera, 100, 60, jitter=12, priority=5, core="c0", wait=wait),
        one_kernel("left", 4, 100, 50, priority=4, partition=FP.name),
        one_kernel("right", 2, 100, 50, priority=3, partition=FIFO.name),
    )
    ways = (("camera", "left", "fuse"), ("camera", "right", "fuse"))
    chains = tuple(TaskChain(f"by {way[1]}", way, ChainStart.DATA, 99) for way in ways)
    return TaskSet(tasks, (FP, FIFO), chains, (CopyEngine("h2d", ServerPolicy.FIXED_PRIORITY),))


def _linked(*ways: tuple[str, str]) -> TaskSet:
    tasks = tuple(one_kernel(name, 2, 10, 10, priority=1, partition=FP.name) for name in "abc")
    return TaskSet(tasks, (FP,), tuple(TaskChain("".join(way), way, ChainStart.DATA) for way in ways))


def _chained(activation: ChainStart) -> TaskSet:
    tasks = (
        one_kernel("next", 2, 10, 10, priority=1, before=1, core="c0", wait=HostWait.BLOCK, partition=FP.name),
        one_kernel(
            "head", 4, 10, 10, jitter=2, priority=2, after=1, core="c0", wait=HostWait.BLOCK, partition=FIFO.name
        ),
    )
    return TaskSet(tasks, (FP, FIFO), (TaskChain("c", ("head", "next"), activation),))


class _Node:
    """A task or junction of pyCPA, as far as a script links it."""

    def __init__(self, name: str, wcet: int = 0, scheduling_parameter: int = 0, **_: object) -> None:
        self.name, self.wcet, self.rank, self.place = name, wcet, scheduling_parameter, ""
        self.after: list[_Node] = []
        self.in_event_model: object = None

    def link_dependent_task(self, node: "_Node") -> None:
        self.after.append(node)


class _Script:
    """What a script for pyCPA builds and prints, with stand-ins for pyCPA by which each part takes its time alone."""

    def __init__(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks: list[_Node] = []
        self.junctions: list[_Node] = []
        system = SimpleNamespace(bind_resource=lambda made: made, bind_junction=self._bind_junction)
        model = {"System": lambda: system, "Task": _Node, "Junction": _Node, "PJdEventModel": dict}
        scheduler = {name: lambda **_: None for name in ("SPPScheduler", "SPNPScheduler")}
        pycpa = ModuleType("pycpa")
        vars(pycpa).update(
            model=SimpleNamespace(**model, Resource=lambda name, _: SimpleNamespace(bind_task=self._binder(name))),
            options=SimpleNamespace(init_pycpa=lambda: None, get_opt=lambda _: 0, set_opt=lambda *_: None),
            schedulers=SimpleNamespace(prio_high_wins_equal_fifo=None, **scheduler),
            junctions=SimpleNamespace(ANDJoin=lambda: None),
            analysis=SimpleNamespace(analyze_system=lambda _: {t: SimpleNamespace(wcrt=t.wcet) for t in self.tasks}),
        )
        monkeypatch.setitem(sys.modules, "pycpa", pycpa)
        printed: list[str] = []
        exec(text, {"print": lambda *words: printed.append(" ".join(map(str, words)))})
        self.printed = printed

    def _bind_junction(self, node: _Node) -> _Node:
        self.junctions.append(node)
        return node

    def _binder(self, place: str) -> Callable[[_Node], _Node]:
        def bind(node: _Node) -> _Node:
            node.place = place
            self.tasks.append(node)
            return node

        return bind

    def sources(self, node: _Node) -> list[_Node]:
        return [other for other in (*self.tasks, *self.junctions) if node in other.after]

    def before(self, node: _Node) -> set[str]:
        """All parts that it waits for, directly or not."""
        return {name for other in self.sources(node) for name in ({other.name} | self.before(other))}


def _expected(task_set: TaskSet, task: GpuTask) -> tuple[set[str], int]:
    """The parts of a task and of all before it, and when it ends if each of them takes its time and nobody disturbs."""
    chains = [chain.tasks for chain in task_set.chains]
    sources = {way[way.index(task.name) - 1] for way in chains if task.name in way[1:]}
    earlier = [_expected(task_set, task_set.by_name[name]) for name in sources]
    own = {f"{task.name} {number} {part.kind}" for number, part in enumerate(task.segments, 1)}
    time = task.jitter + sum(part.delay + part.wcet for part in task.segments)
    return own.union(*(names for names, _ in earlier)), max((end for _, end in earlier), default=0) + time


@st.composite
def _families(draw: st.DrawFn) -> TaskSet:
    parts = st.builds(
        JobSegment, st.just(SegmentKind.KERNEL), st.integers(1, 9), st.sampled_from(["a", "b"]), st.integers(0, 3)
    )
    tasks, chains = [], []
    for number in range(draw(st.integers(1, 5))):
        segments = tuple(draw(st.lists(parts, min_size=1, max_size=3)))
        tasks.append(GpuTask(f"t{number}", segments, 100, 7, jitter=draw(st.integers(0, 2)), priority=number))
        if number:
            sources = draw(st.sets(st.integers(0, number - 1), min_size=1))
            chains += [TaskChain(f"{s} to {number}", (f"t{s}", f"t{number}"), ChainStart.DATA) for s in sources]
    partitions = (GpuPartition("a", ServerPolicy.FIFO), GpuPartition("b", ServerPolicy.FIXED_PRIORITY))
    return TaskSet(tuple(tasks), partitions, tuple(chains))


@given(_families())
@example(_pipeline())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_script_for_pycpa_starts_each_part_after_all_that_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, task_set: TaskSet
) -> None:
    text = _text(task_set, Format.PYCPA)
    script = _Script(text, monkeypatch)
    unit = 2 if "is 2 ms" in text else 1
    for node in script.tasks:
        assert (node.in_event_model is None) == (len(script.sources(node)) == 1)  # pyCPA keeps the last one linked
    for node in script.junctions:
        assert len(script.sources(node)) > 1
    made = {node.name: node for node in script.tasks}
    for task in task_set.tasks:
        parts, end = _expected(task_set, task)
        last = f"{task.name} {len(task.segments)} {task.segments[-1].kind}"
        before = {name for name in script.before(made[last]) if not name.startswith("junction") and "delay" not in name}
        assert before | {last} == parts
        assert any(
            line.startswith(f"{task.name}: ") and line.endswith(f" end {end // unit}") for line in script.printed
        )


def test_pycpa_has_every_part_on_its_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    script = _Script(_text(_pipeline(), Format.PYCPA), monkeypatch)
    assert sorted(
        (node.name, node.place, node.wcet, node.rank) for node in script.tasks if "delay" not in node.name
    ) == [
        ("camera 1 cpu", "core c0", 2, 5),
        ("camera 2 copy", "copy engine h2d", 3, 5),
        ("camera 3 kernel", "partition fixed-priority", 4, 5),
        ("fuse 1 kernel", "partition fixed-priority", 5, 2),
        ("fuse 2 copy", "copy engine h2d", 1, 2),
        ("fuse 3 cpu", "core c0", 3, 2),
        ("left 1 kernel", "partition fixed-priority", 2, 4),
        ("right 1 kernel", "partition fifo", 1, 0),
    ]
    delays = {node.name: node for node in script.tasks if "delay" in node.name}
    assert {name: node.wcet for name, node in delays.items()} == {"camera 2 delay": 1, "fuse 1 delay": 3}
    assert len({node.place for node in delays.values()}) == 2
    assert [node.in_event_model for node in script.tasks if node.in_event_model] == [{"P": 50, "J": 6}]


def test_pycpa_takes_threads_that_spin_alone_as_threads_that_block() -> None:
    said = "threads that spin are taken as threads that block: lonely"
    alone = one_kernel("lonely", 2, 10, 10, before=1, priority=1, core="c", wait=HostWait.SPIN, partition=FP.name)
    urgent = one_kernel("urgent", 2, 10, 10, before=1, priority=2, core="c", wait=HostWait.BLOCK, partition=FP.name)
    notes = export(TaskSet((alone, urgent), (FP,)), Format.PYCPA, tick=MS, stem="tasks").notes
    assert notes[0].startswith(said)
    equal = replace(urgent, priority=1)
    with pytest.raises(UnsupportedError, match="lonely spins on core c, and urgent there is not more urgent"):
        export(TaskSet((alone, equal), (FP,)), Format.PYCPA, tick=MS, stem="tasks")
    idle = replace(
        urgent, segments=urgent.segments[1:], priority=0, wait=HostWait.SPIN
    )  # has no CPU time that anybody could take
    assert notes == export(TaskSet((alone, idle), (FP,)), Format.PYCPA, tick=MS, stem="tasks").notes


def test_the_script_for_pycpa_runs_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("pycpa")
    (tmp_path / "chain.py").write_text(_text(_chained(ChainStart.DATA), Format.PYCPA))
    command = [sys.executable, "chain.py"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if re.search(r"(cpu|kernel) \d+$|end \d+$", line)]
    assert lines == [
        "head 1 kernel 4",
        "head 2 cpu 1",
        "next 1 cpu 2",
        "next 2 kernel 3",  # arrivals up to 2 + 4 + 1 + 2 late: two of them 10 - 9 apart, and then 2 * 2 - 1
        "head: response 7, deadline 10, end 7",
        "next: response 5, deadline 10, end 12",
    ]


def test_a_format_says_in_what_it_differs() -> None:
    notes = "; ".join(export(_kernels(), Format.SIMSO, tick=MS, stem="tasks").notes)
    assert all(word in notes for word in ("strictly periodic", "upper bound"))
    timed = "chains of timers are left out, which change no schedule: c"
    made = export(_chained(ChainStart.PERIODIC), Format.PYCPA, tick=MS, stem="tasks")
    assert made.notes[0].startswith("fifo became equal")
    assert made.notes[-1] == timed
    assert all(note in made.files["tasks.py"] for note in made.notes)
    document = ElementTree.fromstring(
        _text(_kernels(), Format.SIMSO), ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    )
    assert "what is in time there may be late here" in (document[0].text or "")


def test_strictly_periodic_tasks_are_one_pattern_and_no_note_says_otherwise() -> None:
    task_set = TaskSet((one_kernel("a", 2, 10, 8, offset=3, partition=EDF.name),), (EDF,))
    notes = export(task_set, Format.SIMSO, tick=MS, stem="tasks").notes
    assert not any("strictly periodic" in note for note in notes)


@pytest.mark.parametrize("name", ['a"""b', "a\\", "--", "a -->", "é-"])
def test_names_of_chains_break_no_comment(name: str) -> None:
    tasks = (
        one_kernel("a", 2, 10, 10, priority=1, partition=FP.name),
        one_kernel("b", 4, 10, 10, priority=2, partition=FP.name),
    )
    task_set = TaskSet(tasks, (FP,), (TaskChain(name, ("a", "b"), ChainStart.PERIODIC),))
    ast.parse(_text(task_set, Format.PYCPA))
    assert next(ElementTree.fromstring(_text(task_set, Format.SIMSO)).iter("task")).get("name") == "a"


def _diamond(policy: ServerPolicy = ServerPolicy.FIXED_PRIORITY) -> TaskSet:
    """A head of two kernels starts two tasks, and a fourth waits for both; another one alone is on a copy engine."""
    head = (JobSegment(SegmentKind.KERNEL, 2, "gpu", delay=1), JobSegment(SegmentKind.KERNEL, 3, "gpu"))
    tasks = (
        GpuTask("head", head, 20, 15, jitter=4, offset=5, priority=1),
        one_kernel("a", 1, 20, 9, priority=2, partition="gpu"),
        one_kernel("b", 2, 20, 9, priority=3, partition="gpu"),
        one_kernel("end", 1, 20, 9, priority=4, partition="gpu"),
        GpuTask("copy", (JobSegment(SegmentKind.COPY, 7, "dma"),), 10, 10),
    )
    ways = (("head", "a", "end"), ("head", "b", "end"))
    chains = tuple(TaskChain(f"by {way[1]}", way, ChainStart.DATA, 30 + way[1].count("a")) for way in ways)
    return TaskSet(tasks, (GpuPartition("gpu", policy),), chains, (DMA,))


def test_a_simulation_lets_a_task_follow_the_one_whose_data_start_it() -> None:
    copy = GpuTask("copy", (JobSegment(SegmentKind.COPY, 3, "dma"),), 10, 10)
    tasks = (one_kernel("next", 2, 10, 6, priority=1, partition=FP.name), copy)
    chain = (TaskChain("c", ("copy", "next"), ChainStart.DATA),)
    task_set = TaskSet(tasks, (FP,), chain, (DMA,))
    root = ElementTree.fromstring(_text(task_set, Format.SIMSO))
    made = [
        tuple(task.get(key) for key in ("id", "task_type", "followed_by", "partition")) for task in root.iter("task")
    ]
    assert made == [("1", "APeriodic", None, "0"), ("2", "Periodic", "1", "1")]
    assert [processor.get("name") for processor in root.iter("processor")] == [FP.name, "dma"]


@pytest.mark.parametrize(
    ("task_set", "kind", "message"),
    [
        (_with_cpu(), Format.SIMSO, "SimSo knows no tasks that wait for the GPU, and a & b has CPU time: choose pycpa"),
        (_diamond(), Format.SIMSO, "SimSo knows no jobs of several segments, and head has 2: choose pycpa"),
        (
            _linked(("a", "b"), ("a", "c")),
            Format.SIMSO,
            "SimSo starts one task at the end of another, and a starts b and c: choose pycpa",
        ),
        (
            _linked(("a", "b"), ("b", "c"), ("a", "c")),
            Format.SIMSO,
            "SimSo knows no task that waits for several, and c does: choose pycpa",
        ),
        (
            TaskSet((GpuTask("a", (JobSegment(SegmentKind.COPY, 1, "dma", delay=1),), 9, 9),), (), (), (DMA,)),
            Format.SIMSO,
            "SimSo knows no launch delay, and a has some: choose pycpa",
        ),
        (_pipeline(HostWait.SPIN), Format.PYCPA, "camera spins on core c0, and fuse there is not more urgent"),
        (
            TaskSet((replace(one_kernel("a", 1, 9, 9, partition="p"), context="x"),), (SLICED,)),
            Format.PYCPA,
            "partition p is time-sliced, and no tool here knows contexts that take turns: leave its tasks out",
        ),
        (
            _kernels(),
            Format.PYCPA,
            "pyCPA can express fixed-priority and fifo, and partition edf, which serves d, has edf: choose",
        ),
        (
            TaskSet((one_kernel("a", 1, 5, 5),), (EDF,)),
            Format.PYCPA,
            "no partition runs a: assign them before the export",
        ),
        (TaskSet((one_kernel("a", 1, 5, 5, jitter=1, partition="fifo"),), (FIFO,)), Format.SIMSO, "no release jitter"),
        (
            TaskSet(
                (one_kernel("a", 1, 10**6, 9, partition="edf"), one_kernel("b", 1, 999_983, 9, partition="edf")), (EDF,)
            ),
            Format.SIMSO,
            "jobs fall into a hyperperiod, more than 100000",
        ),
    ],
)
def test_what_a_tool_cannot_express_is_refused(task_set: TaskSet, kind: Format, message: str) -> None:
    with pytest.raises(InputError, match=message):
        export(task_set, kind, tick=MS, stem="tasks")
    assert issubclass(UnsupportedError, InputError)
