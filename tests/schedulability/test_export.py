"""Task sets in the formats of other tools, read back by a parser, or run by the tool where it is installed."""

import ast
import csv
import json
import subprocess
import sys
from fractions import Fraction
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest

from makespan.errors import InputError, UnsupportedError
from makespan.schedulability.export import Format, export
from makespan.schedulability.task import Activation, Chain, Partition, Policy, Task, TaskSet

MS = Fraction(1, 1000)
FP, EDF, RELEASE, FIFO = (Partition(policy.value, policy) for policy in Policy)


def _kernels() -> TaskSet:
    return TaskSet(
        (
            Task("a", 2, 10, 10, priority=3, partition=FP.name),
            Task("b", 4, 15, 15, priority=2, partition=FP.name),
            Task("c", 5, 30, 30, priority=1, partition=FP.name),
            Task("d", 3, 10, 10, partition=EDF.name),
            Task("e", 6, 20, 20, partition=EDF.name, offset=5),
            Task("f", 1, 5, 5, partition=FIFO.name),
        ),
        (FP, EDF, FIFO),
    )


def _with_cpu() -> TaskSet:
    return TaskSet(
        (
            Task("a & b", 2000, 10_000, 10_000, priority=30, before=1000, after=500, core="c0", partition=FP.name),
            Task("b", 4000, 15_000, 15_000, jitter=3000, priority=2, partition=FP.name),
            Task("c", 1000, 15_000, 15_000, partition=FIFO.name),
        ),
        (FP, FIFO),
    )


def _text(task_set: TaskSet, kind: Format) -> str:
    return next(iter(export(task_set, kind, tick=MS, stem="tasks").files.values()))


def test_a_job_set_has_every_job_of_a_hyperperiod() -> None:
    files = export(_kernels(), Format.SCHEDULE_ABSTRACTION, tick=MS, stem="tasks").files
    assert list(files) == ["tasks.1.csv", "tasks.2.csv", "tasks.3.csv"]
    first, second, third = (list(csv.DictReader(StringIO(text))) for text in files.values())
    assert [(row["Task ID"], row["Arrival min"], row["Deadline"]) for row in first] == [
        ("1", "0", "10"), ("1", "10", "20"), ("1", "20", "30"), ("2", "0", "15"), ("2", "15", "30"), ("3", "0", "30"),
    ]  # fmt: skip
    assert [int(row["Job ID"]) for row in first] == [1, 2, 3, 4, 5, 6]
    assert int(first[0]["Priority"]) < int(first[3]["Priority"]) < int(first[5]["Priority"])
    assert {row["Priority"] == row["Deadline"] for row in second} == {True}
    assert [row["Arrival min"] for row in second if row["Task ID"] == "2"] == ["5"]
    assert [row["Priority"] for row in third] == ["0"]
    assert {(row["Cost min"], row["Cost max"]) for row in first} == {("1", "2"), ("1", "4"), ("1", "5")}


def test_jitter_widens_the_release_of_a_job() -> None:
    task_set = TaskSet((Task("a", 2, 10, 8, jitter=3, partition=EDF.name),), (EDF,))
    row = next(csv.DictReader(StringIO(_text(task_set, Format.SCHEDULE_ABSTRACTION))))
    assert (row["Arrival min"], row["Arrival max"], row["Deadline"]) == ("0", "3", "8")


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
        "a & b before": {"wcet": 2, "bcet": 0, "scheduling_parameter": 30},
        "a & b kernel": {"wcet": 4, "bcet": 0, "scheduling_parameter": 30},
        "a & b after": {"wcet": 1, "bcet": 0, "scheduling_parameter": 30},
        "b kernel": {"wcet": 8, "bcet": 0, "scheduling_parameter": 2},
        "c kernel": {"wcet": 2, "bcet": 0, "scheduling_parameter": 0},
    }
    assert "one unit of time is 500 ms" in script  # ticks are milliseconds, and 500 divides them all
    assert script.count("link_dependent_task") == 2
    assert "model.PJdEventModel(P=30, J=6)" in script
    assert script.count("SPNPScheduler") == 2
    assert script.count("SPPScheduler") == 1


def test_a_workload_for_rt_app_holds_the_partition_while_the_kernel_runs() -> None:
    task_set = TaskSet(_with_cpu().tasks[:2], (FP,))
    text = next(iter(export(task_set, Format.RT_APP, tick=Fraction(1, 10**6), stem="tasks").files.values()))
    threads = json.loads(text)["tasks"]
    assert list(threads["a & b"])[-6:] == ["runtime0", "lock", "sleep", "unlock", "runtime1", "timer"]
    assert threads["a & b"]["sleep"] == 2000
    assert threads["a & b"]["timer"] == {"ref": "unique", "period": 10_000, "mode": "absolute"}
    assert (threads["b"]["priority"], threads["a & b"]["priority"]) == (1, 2)
    assert (threads["a & b"]["cpus"], "cpus" in threads["b"]) == ([0], False)


def _chained(activation: Activation, jitter: int = 0) -> TaskSet:
    tasks = (
        Task("next", 2, 10, 10, jitter=jitter, priority=1, before=1, core="c0", partition=FP.name),
        Task("head", 4, 10, 10, jitter=2, priority=2, after=1, core="c0", partition=FIFO.name),
    )
    return TaskSet(tasks, (FP, FIFO), (Chain("c", ("head", "next"), activation),))


def test_pycpa_starts_by_data_what_data_starts() -> None:
    script = _text(_chained(Activation.DATA), Format.PYCPA)
    links = [line for line in script.splitlines() if "link_dependent_task" in line]
    assert links == [
        "task_0_before.link_dependent_task(task_0_kernel)",
        "task_1_kernel.link_dependent_task(task_1_after)",
        "task_1_after.link_dependent_task(task_0_before)",
    ]
    assert script.count("in_event_model") == 1
    assert "task_1_kernel.in_event_model = model.PJdEventModel(P=10, J=2)" in script
    assert _text(_chained(Activation.PERIODIC), Format.PYCPA).count("in_event_model") == 2


def test_the_script_for_pycpa_runs_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("pycpa")
    (tmp_path / "chain.py").write_text(_text(_chained(Activation.DATA), Format.PYCPA))
    command = [sys.executable, "chain.py"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert len([line for line in done.stdout.splitlines() if line[-1].isdigit()]) == 4


def test_a_format_says_in_what_it_differs() -> None:
    for kind, words in (
        (Format.SIMSO, ("strictly periodic", "upper bound")),
        (Format.SCHEDULE_ABSTRACTION, ("strictly periodic", "one hyperperiod", "among equal priorities")),
    ):
        notes = "; ".join(export(_kernels(), kind, tick=MS, stem="tasks").notes)
        assert all(word in notes for word in words)
    timed = "chains of timers are left out, which change no schedule: c"
    made = export(_chained(Activation.PERIODIC), Format.PYCPA, tick=MS, stem="tasks")
    assert [note[:16] for note in made.notes[:2]] == ["deadlines are le", "fifo became equa"]
    assert made.notes[-1] == timed
    assert all(note in made.files["tasks.py"] for note in made.notes)
    document = ElementTree.fromstring(
        _text(_kernels(), Format.SIMSO), ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    )
    assert "what is in time there may be late here" in (document[0].text or "")


def test_strictly_periodic_tasks_are_one_pattern_and_no_note_says_otherwise() -> None:
    task_set = TaskSet((Task("a", 2, 10, 8, offset=3, partition=EDF.name),), (EDF,))
    notes = export(task_set, Format.SCHEDULE_ABSTRACTION, tick=MS, stem="tasks").notes
    assert not any("strictly periodic" in note for note in notes)


@pytest.mark.parametrize("name", ['a"""b', "a\\", "--", "a -->", "é-"])
def test_names_of_chains_break_no_comment(name: str) -> None:
    tasks = (Task("a", 2, 10, 10, priority=1, partition=FP.name), Task("b", 4, 10, 10, priority=2, partition=FP.name))
    task_set = TaskSet(tasks, (FP,), (Chain(name, ("a", "b"), Activation.PERIODIC),))
    ast.parse(_text(task_set, Format.PYCPA))
    assert next(ElementTree.fromstring(_text(task_set, Format.SIMSO)).iter("task")).get("name") == "a"


@pytest.mark.parametrize("kind", [Format.SIMSO, Format.SCHEDULE_ABSTRACTION, Format.RT_APP])
def test_what_data_starts_is_refused_where_it_cannot_be_said(kind: Format) -> None:
    tasks = (Task("a", 2, 10, 10, priority=1, partition=FP.name), Task("b", 4, 10, 10, priority=2, partition=FP.name))
    task_set = TaskSet(tasks, (FP,), (Chain("c", ("a", "b"), Activation.DATA),))
    with pytest.raises(UnsupportedError, match=r"tasks that start when another one ends, .* and chain c has some"):
        export(task_set, kind, tick=MS, stem="tasks")


@pytest.mark.parametrize(
    ("task_set", "kind", "message"),
    [
        (_with_cpu(), Format.SIMSO, "SimSo knows no tasks that wait for the GPU, and a & b has CPU time"),
        (_with_cpu(), Format.SCHEDULE_ABSTRACTION, "and a & b has CPU time"),
        (_kernels(), Format.PYCPA, "pyCPA can express fixed-priority and fifo, and partition edf has edf"),
        (_kernels(), Format.RT_APP, "rt-app can express fixed-priority, and partition edf has edf"),
        (_chained(Activation.DATA, jitter=1), Format.PYCPA, "links next to head without jitter between them"),
        (TaskSet((Task("a", 1, 5, 5),), (EDF,)), Format.PYCPA, "no partition runs a: assign them before the export"),
        (TaskSet((Task("a", 1, 5, 5, jitter=1, partition="fifo"),), (FIFO,)), Format.SIMSO, "no release jitter"),
        (
            TaskSet((Task("a", 1, 5, 5, jitter=1, partition="fifo"),), (FIFO,)),
            Format.SCHEDULE_ABSTRACTION,
            "which fifo with jitter has not",
        ),
        (
            TaskSet((Task("a", 1, 5, 5, jitter=1, partition="edf-release"),), (RELEASE,)),
            Format.SCHEDULE_ABSTRACTION,
            "which edf-release with jitter has not",
        ),
        (
            TaskSet((Task("a", 1, 10**6, 9, partition="edf"), Task("b", 1, 999_983, 9, partition="edf")), (EDF,)),
            Format.SCHEDULE_ABSTRACTION,
            "jobs arrive in a hyperperiod, more than 100000",
        ),
        (
            TaskSet((Task("a", 1, 2**63, 2**63, partition="edf"),), (EDF,)),
            Format.SCHEDULE_ABSTRACTION,
            "counts in 64 bits",
        ),
    ],
)
def test_what_a_tool_cannot_express_is_refused(task_set: TaskSet, kind: Format, message: str) -> None:
    with pytest.raises(InputError, match=message):
        export(task_set, kind, tick=MS, stem="tasks")
    assert issubclass(UnsupportedError, InputError)
