"""`makespan schedulability`: the answer as an exit code, what stands beside it, and what is refused."""

import csv
import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

import jsonschema
import pytest

from makespan.deadlines import assessment, evidence
from makespan.deadlines.simulation import Scenario, SimulatedRun, simulate
from makespan.deadlines.task import GpuPartition, ServerPolicy, TaskSet, one_kernel
from makespan.deadlines.wcet import Solver
from makespan.model.claim import WorstCaseClaim
from makespan.model.instance import Instance
from tests.command import Outcome, Runner
from tests.schemas import published

ROOT = Path(__file__).parents[2]
SCHEMA = published("schedulability-2")
TOP = '[[partition]]\nname = "gpu"\npolicy = "{policy}"\n'
TASK = """
[[task]]
name = "{name}"
wcet = "{wcet}"
evidence = "of the example"
period = "{period}"
deadline = "{deadline}"
partition = "gpu"
"""


def system(*tasks: tuple[str, str, str, str], policy: str = "fifo", top: str = "", more: str = "") -> str:
    """A file with tasks (name, WCET, period, deadline)."""
    written = "".join(TASK.format(name=n, wcet=c, period=t, deadline=d) for n, c, t, d in tasks)
    return f"{top}\n{TOP.format(policy=policy)}{written}{more}"


GOOD = system(("a", "1ms", "10ms", "8ms"), ("b", "2ms", "10ms", "10ms"))
LATE = system(("a", "1ms", "10ms", "2ms"), ("b", "2ms", "10ms", "10ms"))
OVERLOAD = system(("a", "6ms", "10ms", "10ms"), ("b", "5ms", "10ms", "10ms"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return tmp_path


class Command(Runner):
    """The command on a file with some content."""

    def on(self, text: str, *options: object) -> Outcome:
        Path("tasks.toml").write_text(text)
        return self("tasks.toml", *options)

    def document(self, text: str, *options: object) -> dict[str, Any]:
        done = self.on(text, "--format", "json", *options)
        (line,) = done.out.splitlines()
        document: dict[str, Any] = json.loads(line)
        SCHEMA.validate(document)
        assert done.code == {"schedulable": 0, "not schedulable": 1, "undecided": 3}[document["answer"]]
        return document


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command("schedulability", capsys)


# Answers


def test_what_is_schedulable_is_exit_code_0(command: Command) -> None:
    done = command.on(GOOD)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "schedulable: every deadline is proven; the least slack is 5 ms, of a"
    rows = [line.split() for line in done.out.splitlines()[4:6]]
    assert rows == [
        ["a", "gpu", "1", "ms", "given", "10", "ms", "8", "ms", "3", "ms", "5", "ms", "schedulable"],
        ["b", "gpu", "2", "ms", "given", "10", "ms", "10", "ms", "3", "ms", "7", "ms", "schedulable"],
    ]
    assert "  a, given: of the example" in done.out.splitlines()
    assert "  partition gpu: 30.0 %" in done.out.splitlines()
    assert "  - execution times that the user vouches for: a, b" in done.out.splitlines()


def test_a_job_that_is_late_in_a_legal_schedule_is_exit_code_1(command: Command) -> None:
    done = command.on(LATE)
    assert done.code == 1
    condition = "if execution times are attained"
    assert done.out.splitlines()[0] == f"not schedulable {condition}: a legal schedule is too late for a"
    (miss,) = [line for line in done.out.splitlines() if " too late: " in line]
    assert miss.startswith("  a: the job that arrives at ")
    (late,) = [task for task in command.document(LATE)["tasks"] if task["name"] == "a"]
    assert late["miss"]["completion"] - late["miss"]["arrival"] > late["deadline"]
    assert late["slack"] < 0


def test_overload_is_a_verdict(command: Command) -> None:
    done = command.on(OVERLOAD)
    assert (done.code, done.err) == (1, "")
    condition = "if execution times are attained"
    assert done.out.splitlines()[0].startswith(f"not schedulable {condition}: overload of partition gpu")
    assert "  partition gpu: 110.0 %, more than there is" in done.out.splitlines()
    document = command.document(OVERLOAD)
    assert document["loads"] == [
        {"name": "partition gpu", "demand": "11/10", "overload": True, "attained": "11/10", "supposes": ["a", "b"]}
    ]
    assert document["supposes"] == ["a", "b"]


def test_json_counts_whole_ticks(command: Command) -> None:
    document = command.document(GOOD)
    assert document["tick"] == "1/2000000000000"
    a = document["tasks"][0]
    assert (a["wcet"], a["period"], a["deadline"]) == (2 * 10**9, 2 * 10**10, 16 * 10**9)
    assert a["response"] + a["slack"] == a["deadline"]
    assert sum(part["ticks"] for part in a["parts"]) == a["response"]


def test_what_is_neither_proven_nor_refuted_is_exit_code_3(command: Command) -> None:
    done = command.on(LATE, "--attempts", 0)
    assert done.code == 3
    assert done.out.splitlines()[0] == "undecided: no proof for a"


def test_the_verdict_alone(command: Command) -> None:
    done = command.on(LATE, "--quiet")
    assert (done.code, done.err) == (1, "")
    assert done.out == "not schedulable if execution times are attained: a legal schedule is too late for a\n"


def test_chains_have_latencies(command: Command) -> None:
    chain = '\n[[chain]]\nname = "c"\ntasks = ["a", "b"]\nactivation = "periodic"\ndeadline = "{}"\n'
    document = command.document(GOOD + chain.format("40ms"))
    (found,) = document["chains"]
    assert (found["answer"], found["reaction"]) == ("schedulable", 52 * 10**9)
    assert (found["tasks"], found["activation"], found["slack"]) == (["a", "b"], "periodic", 28 * 10**9)
    assert "the least slack is 4 ms, of chain c" in command.on(GOOD + chain.format("30ms"), "-q").out
    assert "c reaches its deadline" in command.on(GOOD + chain.format("26ms"), "-q").out
    done = command.on(GOOD + chain.format("20ms"))
    assert done.code == 3
    assert done.out.splitlines()[0] == "undecided: chains without proof: c"


def test_what_breaks_first_is_said(command: Command) -> None:
    done = command.on(GOOD, "--sensitivity")
    section = done.out.split("what breaks first:\n")[1].split("\n\n")[0].splitlines()
    assert " ".join(line.strip() for line in section[:2]) == (
        "execution times of the kernels: proven up to 2.666 times; beyond it evidence against a, if execution times are"
        " attained"
    )
    document = command.document(GOOD, "--sensitivity")
    assert (document["margins"][0]["holds"], document["margins"][0]["breaks"]) == ("1333/500", ["a"])
    assert len(document["margins"]) == 5


def test_tasks_that_data_starts_have_the_period_of_the_head(command: Command) -> None:
    chain = '\n[[chain]]\nname = "c"\ntasks = ["a", "b"]\nactivation = "data"\n'
    document = command.document(f"{GOOD}{chain}", "--sensitivity")
    margins = {margin["quantity"]: margin["holds"] for margin in document["margins"]}
    assert "period of b" not in margins
    full = Fraction(3, 1000) / Fraction(document["tick"])
    assert full <= Fraction(margins["period of a"]) < full * Fraction(101, 100)


def test_a_clock_is_varied_where_cycles_depend_on_it(command: Command) -> None:
    text = GOOD.replace('wcet = "1ms"', "cycles = 1000000")
    document = command.document(f'clock = "1GHz"\n{text}', "--sensitivity")
    (clock,) = [margin for margin in document["margins"] if margin["quantity"] == "clock"]
    assert clock["holds"] == "167000000"  # 2 ms + 1e6 cycles within 8 ms


# Several segments


SEGMENTS = """
priorities = "larger-first"
[[partition]]
name = "gpu"
policy = "fifo"
[[copy_engine]]
name = "h2d"
policy = "fifo"
[[task]]
name = "t1"
core = "cpu0"
priority = 1
period = "20ms"
deadline = "20ms"
launch_delay = "1ms"
launch_evidence = "traced"
segments = [
    { cpu = "1ms" },
    { copy = "2ms", engine = "h2d", evidence = "timed" },
    { wcet = "3ms", evidence = "timed", partition = "gpu" },
    { cpu = "1ms" },
]
[[task]]
name = "t11"
core = "cpu0"
priority = 2
cpu = "2ms"
period = "10ms"
deadline = "10ms"
"""
SPIN = "with threads that spin, as nothing says that they block (t1)"


def test_a_task_of_several_segments_is_one_row_with_all_its_places(command: Command) -> None:
    done = command.on(SEGMENTS)
    assert done.code == 0
    words = " ".join(done.out.split())
    assert words.startswith(f"schedulable {SPIN}: every deadline is proven; ")
    assert "2 tasks on 1 partition, gpu (fifo); 1 copy engine, h2d (fifo); 1 core, cpu0 " in words
    assert " t1 cpu0 (spin), h2d, gpu 7 ms given 20 ms 20 ms " in words
    assert " t11 cpu0 2 ms given 10 ms 10 ms " in words
    within = "(launched within 1 ms)"
    assert f" t1: cpu0 1 ms, h2d 2 ms {within}, gpu 3 ms {within}, cpu0 1 ms " in words
    assert " t1, copy on h2d (t1[1]), given: timed t1, kernel on gpu (t1[2]), given: timed " in words
    assert words.index("assumptions:") > words.index("execution times:")


def test_json_has_a_row_for_each_segment(command: Command) -> None:
    document = command.document(SEGMENTS)
    assert (document["assumed_spin"], document["caveats"]) == (["t1"], [])
    assert document["copy_engines"] == [{"name": "h2d", "policy": "fifo"}]
    task, other = document["tasks"]
    assert (task["core"], task["wait"], other["wait"]) == ("cpu0", "spin", None)
    ms = Fraction(1, 1000) / Fraction(document["tick"])
    parts = [(part["kind"], part["place"], part["wcet"], part["delay"], part["evidence"]) for part in task["segments"]]
    assert parts == [
        ("cpu", None, ms, 0, None),
        ("copy", "h2d", 2 * ms, ms, "timed"),
        ("kernel", "gpu", 3 * ms, ms, "timed"),
        ("cpu", None, ms, 0, None),
    ]
    assert task["wcet"] == 7 * ms == sum(part["wcet"] for part in task["segments"])
    assert [part["kind"] for part in other["segments"]] == ["cpu"]


def test_a_thread_that_is_said_to_block_is_no_condition(command: Command) -> None:
    done = command.on(SEGMENTS.replace('core = "cpu0"', 'core = "cpu0"\nwait = "block"', 1), "-q")
    assert done.out.startswith("schedulable: every deadline is proven")


def test_tasks_and_part_of_a_picture_are_chosen(command: Command) -> None:
    done = command.on(SEGMENTS, "--gantt", "x.svg", "--tasks", "t1", "--window", "1ms..8ms")
    assert (done.code, done.out.splitlines()[-1]) == (0, "picture: x.svg")
    words = [text.strip() for text in ElementTree.parse("x.svg").getroot().itertext()]
    assert {"t1", "core cpu0", "partition gpu"} <= set(words)
    assert "t11" not in words  # it has no row; its bars have its name and number
    assert "the latest job: t1#" in " ".join(words)
    far = command.on(SEGMENTS, "--gantt", "y.svg", "--window", "900s..901s")
    assert (far.code, far.err) == (2, "makespan: nothing of any task is in this part of the schedule\n")
    assert far.out.startswith("schedulable")
    for text, reason in (("3ms", "is no window such as 3ms..9ms"), ("2ms..1ms", "ends before it begins")):
        assert reason in command.on(SEGMENTS, "--gantt", "z.svg", "--window", text).err


def test_a_page_is_made(command: Command) -> None:
    done = command.on(SEGMENTS, "--html", "x.html")
    assert (done.code, done.out.splitlines()[-1]) == (0, "page: x.html")
    page = Path("x.html").read_text()
    assert f"schedulable {SPIN}" in page
    assert page.count('<section class="task" id="task-') == 2
    assert page.count('<svg class="figure gantt wide"') == 2
    assert command.on(SEGMENTS, "--html", "y.html", "--tasks", "t1").code == 0
    assert Path("y.html").read_text().count('<svg class="figure gantt wide"') == 1


# A GPU


WAVES = """
gpu = "rtx-3070"
[[partition]]
name = "vision"
policy = "fifo"
sms = 4
[[task]]
name = "a"
kernel = "vecadd.ptx"
machine = "paper"
block = 128
grid = 12
blocks_per_sm = 2
period = "1us"
deadline = "{}"
partition = "vision"
"""


def test_a_kernel_of_several_waves_has_a_verdict(command: Command) -> None:
    shutil.copy(ROOT / "ptx" / "vecadd.ptx", "vecadd.ptx")
    text = WAVES.format("500ns")
    done = command.on(text, "--fewest-sms")
    assert done.code == 0
    words = " ".join(done.out.split())
    assert "tasks.toml: 1 task on 1 partition of rtx-3070, vision (fifo, 4 SMs), SM clock 1.5 GHz" in words
    assert "a, proven: kernel vecadd.ptx: 12 blocks of 4 warps on 4 SMs with 2 each, paper: " in words
    assert "- the SM clock never falls below 1.5 GHz (base clock of rtx-3070: data sheet), and whatever" in words
    document = command.document(text, "--fewest-sms")
    assert (document["gpu"], document["partitions"]) == (
        "rtx-3070",
        [{"name": "vision", "policy": "fifo", "slices": None, "sms": 4}],
    )
    (fewest,) = document["fewest_sms"]
    assert (fewest["partition"], fewest["most"]) == ("vision", 46)
    sms = fewest["sms"]["vision"]
    assert [tried["sms"] for tried in fewest["tried"]] == [{"vision": count} for count in range(1, sms + 1)]
    assert [tried["unproven"] for tried in fewest["tried"]] == [["a"]] * (sms - 1) + [[]]
    assert f"vision: {sms} of up to 46 are proven to do (a " in words


def test_a_deadline_between_schedule_and_theorem_is_undecided(command: Command) -> None:
    shutil.copy(ROOT / "ptx" / "vecadd.ptx", "vecadd.ptx")
    (task,) = command.document(WAVES.format("500ns"))["tasks"]
    (kernel,) = task["segments"]
    found = re.search(r": (\d+) cycles, at least (\d+), by theorem-g$", kernel["evidence"])
    assert found is not None
    upper, lower = map(int, found.groups())
    assert lower < upper == kernel["wcet_cycles"]
    answers = {upper: "schedulable", upper - 1: "undecided", lower: "undecided", lower - 1: "not schedulable"}
    for cycles, answer in answers.items():
        picoseconds = -(-cycles * 2000 // 3)  # at 1.5 GHz
        assert command.document(WAVES.format(f"{picoseconds}ps"))["answer"] == answer


# Interrupted


def test_ctrl_c_during_the_search_prints_what_is_proven(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "simulate", interrupt)
    done = command.on(LATE, "--gantt", "x.png")
    assert (done.code, done.err) == (130, "interrupted: what is known so far\n")
    assert done.out.startswith("undecided: no proof for a\n")
    assert [line.split()[0] for line in done.out.splitlines()[4:6]] == ["a", "b"]
    assert not Path("x.png").exists()
    document = json.loads(command.on(LATE, "--format", "json").out)
    SCHEMA.validate(document)
    assert document["interrupted"]


def test_ctrl_c_between_margins_prints_those_that_are_known(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assessment, "shortest_period", interrupt)
    done = command.on(GOOD, "--sensitivity")
    assert done.code == 130
    section = done.out.split("what breaks first:\n")[1].split("\n\n")[0]
    assert "execution time of a: " in section
    assert "period" not in section


def test_ctrl_c_while_kernels_are_solved_says_which_are(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels()
    claim, asked = Solver.claim, list[Instance]()

    def second(self: Solver, instance: Instance) -> WorstCaseClaim:
        asked.append(instance)
        if len(asked) == 2:
            interrupt()
        return claim(self, instance)

    monkeypatch.setattr(Solver, "claim", second)
    done = command("examples/tasks.toml")
    assert (done.code, done.out) == (130, "")
    assert [line for line in done.err.splitlines() if line] == [
        "filter, proven: kernel fir.ptx: 8 warps on machine paper: 930 cycles, exact, by theorem-e",
        "makespan: interrupted",
    ]


def interrupt(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


# The search for late jobs


def test_the_search_ends_with_the_round_that_finds_a_late_job(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are late with the first schedule that is tried for them; nobody looks for more."""
    runs = counted(monkeypatch)
    both = system(("a", "2ms", "10ms", "3ms"), ("b", "2ms", "10ms", "3ms"))
    document = command.document(both)
    assert [task["answer"] for task in document["tasks"]] == ["not schedulable", "not schedulable"]
    assert len(runs) == 2


def test_overload_needs_no_search(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = counted(monkeypatch)
    assert command.on(OVERLOAD).code == 1
    assert runs == []


def test_a_search_is_limited_in_schedules_and_jobs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedRun, "late", ())
    runs = counted(monkeypatch)
    assert command.on(LATE, "--attempts", 7).code == 3
    assert len(runs) == 7
    del runs[:]
    task_set = TaskSet((one_kernel("a", 2, 9, 1, partition="g"),), (GpuPartition("g", ServerPolicy.FIFO),))
    assert list(evidence.misses(task_set, ["a"], attempts=9, jobs=1)) == []
    assert len(runs) == 1


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Scenario]:
    """The scenarios that are simulated from now on."""
    seen = list[Scenario]()

    def remember(scenario: Scenario) -> SimulatedRun:
        seen.append(scenario)
        return simulate(scenario)

    monkeypatch.setattr(evidence, "simulate", remember)
    return seen


def test_jitter_beyond_the_deadline_gets_a_hint(command: Command) -> None:
    done = command.on(GOOD.replace('deadline = "8ms"', 'deadline = "8ms"\njitter = "8ms"'))
    assert done.code == 1
    assert "the jitter of a, 8 ms, leaves nothing of its deadline of 8 ms" in " ".join(done.out.split())


def test_a_deadline_that_is_just_reached_has_no_slack(command: Command) -> None:
    """The kernel of b may have begun as short a time before a arrives as one likes."""
    text = system(("a", "1ms", "10ms", "4ms"), ("b", "3ms", "10ms", "10ms"), policy="edf")
    done = command.on(text)
    assert done.out.splitlines()[0] == "schedulable: every deadline is proven; a reaches its deadline"
    assert done.out.splitlines()[4].split()[-3:] == ["0", "s", "schedulable"]
    assert command.document(text)["tasks"][0]["slack"] == 0


def test_json_says_what_priorities_mean(command: Command) -> None:
    text = system(("a", "1ms", "10ms", "8ms"), policy="fixed-priority", top='priorities = "smaller-first"')
    document = command.document(text.replace("[[task]]", "[[task]]\npriority = 3"))
    assert (document["priorities"], document["tasks"][0]["priority"]) == ("smaller-first", -3)
    assert command.document(GOOD)["priorities"] is None


# Assignment


OPEN = system(("a", "6ms", "10ms", "10ms"), ("b", "5ms", "10ms", "10ms")).replace('partition = "gpu"\n', "")
TWO = OPEN + '\n[[partition]]\nname = "other"\npolicy = "edf"\n'


@pytest.mark.parametrize("way", ["first-fit", "best-fit", "worst-fit", "exact"])
def test_tasks_without_a_partition_are_assigned(command: Command, way: str) -> None:
    document = command.document(TWO, "--assign", way)
    assert document["answer"] == "schedulable"
    assert sorted(document["assignment"]["places"].values()) == ["gpu", "other"]
    assert [task["segments"][0]["place"] for task in document["tasks"]] == [
        document["assignment"]["places"][name] for name in ("a", "b")
    ]


def test_where_no_assignment_can_do_it_the_answer_is_no(command: Command) -> None:
    done = command.on(OPEN, "--assign", "first-fit", "--gantt", "g.png")
    assert done.code == 1
    verdict = (
        "not schedulable if execution times are attained: all partitions together are asked for 110.0 %, more than"
        " there is"
    )
    assert done.out.splitlines()[0] == verdict[: len(done.out.splitlines()[0])]
    assert done.out.splitlines()[-1] == f"no picture: {verdict}"
    assert not Path("g.png").exists()
    assert command.document(OPEN, "--assign", "exact")["tasks"][0]["answer"] is None


LOOSE = """
priorities = "larger-first"
tick = "1ms"
[[partition]]
name = "GPU"
policy = "fifo"
[[task]]
name = "a"
period = "8ms"
deadline = "7ms"
priority = 2
core = "cpu"
wait = "block"
segments = [ { wcet = "1ms", partition = "GPU", evidence = "measured" }, { cpu = "1ms" } ]
[[task]]
name = "b"
period = "5ms"
deadline = "5ms"
priority = 1
core = "cpu"
wait = "block"
segments = [ { cpu = "1ms" }, { wcet = "1ms", partition = "GPU", evidence = "measured" }, { cpu = "2ms" } ]
"""


def test_all_schedules_say_what_no_theorem_proves(command: Command) -> None:
    assert command.on(LOOSE).code == 3
    done = command.on(LOOSE, "--exact")
    assert done.code == 0
    assert "  b: in all schedules 5 ms, attained if execution times are" in done.out.splitlines()
    assert "steps of 1 ms, " in done.out
    late = command.on(LOOSE.replace('deadline = "5ms"', 'deadline = "4ms"'), "--attempts", 0, "--exact")
    assert late.code == 1
    assert "the longest response of b in all schedules" in late.out
    assert command.on(LOOSE.replace('tick = "1ms"\n', ""), "--exact").out == done.out
    assert command.document(LOOSE, "--exact")["tasks"][1]["response_is_exact"]


def test_where_no_assignment_is_proven_the_answer_is_open(command: Command) -> None:
    tight = TWO.replace('deadline = "10ms"', 'deadline = "4ms"')
    done = command.on(tight, "--assign", "exact")
    assert done.code == 3
    assert done.out.splitlines()[0] == "undecided: the analysis proves no assignment of the tasks to partitions"
    assert command.on(tight, "--assign", "first-fit").out.splitlines()[0] == (
        "undecided: no assignment was found by first-fit"
    )


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (OPEN, (), "task a has no partition: give it one, or --assign first-fit|best-fit|worst-fit|exact"),
        (GOOD, ("--assign", "exact"), "every task has a partition: leave out --assign, or the partition of some task"),
    ],
)
def test_assign_is_for_tasks_without_a_partition(
    command: Command, text: str, options: tuple[str, ...], message: str
) -> None:
    done = command.on(text, *options)
    assert (done.code, done.err) == (2, f"makespan: tasks.toml: {message}\n")


# Files


def test_a_picture_is_drawn(command: Command) -> None:
    for suffix in ("png", "svg", "pdf"):
        done = command.on(LATE, "--gantt", f"late.{suffix}")
        assert done.code == 1
        assert done.out.splitlines()[-1] == f"picture: late.{suffix}"
        assert Path(f"late.{suffix}").stat().st_size > 1000
    words = "".join(ElementTree.parse("late.svg").getroot().itertext())
    assert "not schedulable if execution times are attained: a legal schedule is too late for a" in words
    assert "end after the deadline" in words
    assert "partition gpu" in words


@pytest.mark.parametrize(
    ("kind", "file", "first"),
    [
        ("simso", "out.xml", "<?xml"),
        ("pycpa", "out.py", '"""Worst-case response times by pyCPA'),
    ],
)
def test_the_task_set_is_exported(command: Command, kind: str, file: str, first: str) -> None:
    done = command.on(GOOD, "--export", kind, f"out.{file.rpartition('.')[2]}")
    assert done.code == 0
    assert f"export: {file}" in done.out.splitlines()
    assert done.err.startswith(f"export to {kind}: ")
    assert Path(file).read_text().startswith(first)


def test_an_export_that_cannot_be_made_costs_nobody_the_answer(command: Command) -> None:
    done = command.on(GOOD.replace('"fifo"', '"edf"'), "--export", "pycpa", "out.py")
    assert done.code == 2
    assert done.out.startswith("schedulable")
    assert "pyCPA can express fixed-priority" in done.err


def test_csv_is_read_with_clock_and_priorities_beside_it(command: Command) -> None:
    header = ("name", "cycles", "evidence", "period", "deadline", "priority", "partition", "policy")
    with Path("tasks.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [
                header,
                ("a", 1000, "x", "10us", "10us", 1, "gpu", "fixed-priority"),
                ("b", 2000, "x", "10us", "10us", 2, "gpu", "fixed-priority"),
            ]
        )
    done = command("tasks.csv", "--clock", "1GHz", "--priorities", "smaller-first")
    assert done.code == 0
    assert done.out.splitlines()[4].split()[:9] == ["a", "gpu", "1", "us", "given", "10", "us", "10", "us"]
    assert "  a, given: 1000 cycles, x" in done.out.splitlines()
    assert command("tasks.csv", "--priorities", "smaller-first").err == (
        'makespan: tasks.csv: task a: cycles need a clock: give clock = "1.4GHz" at the top of the file'
        " (--clock for CSV)\n"
    )
    assert command("tasks.csv", "--clock", "1GHz").code == 2


# Kernels


def kernels() -> None:
    shutil.copytree(ROOT / "ptx", "ptx")
    Path("examples").mkdir()
    shutil.copy(ROOT / "examples" / "tasks.toml", "examples")


def test_three_kernels_come_to_a_verdict_and_are_kept(command: Command, folder: Path) -> None:
    kernels()
    first = command("examples/tasks.toml")
    assert first.code == 0
    written = f"schedulable for the PTX as written, {BLOCKS} (filter), {ONE_CYCLE}: every deadline is proven"
    assert " ".join(first.out.split()).startswith(written)
    assert len(list((folder / "user" / "makespan" / "results").iterdir())) == 3
    again = command("examples/tasks.toml")
    assert (again.code, again.out) == (0, first.out)
    for spoilt in (folder / "user" / "makespan" / "results").iterdir():
        spoilt.write_bytes(spoilt.read_bytes()[:-40])
    third = command("examples/tasks.toml")
    assert (third.code, third.out) == (0, first.out)
    assert third.err.count("not used, the kernel is solved again") == 3


def test_no_cache_leaves_nothing_behind(command: Command, folder: Path) -> None:
    kernels()
    assert command("examples/tasks.toml", "--no-cache").code == 0
    assert not (folder / "user").exists()
    assert command("examples/tasks.toml", "--cache", "mine/here").code == 0
    assert len(list((folder / "mine" / "here").iterdir())) == 3
    assert not (folder / "user").exists()


BLOCKS = "with 2 blocks on an SM as given"
ONE_CYCLE = "if every instruction takes one cycle"
WHOLE, LEFT_OUT = "for a whole SM without its partitions", "although lapses are left out"
TURING = "if the unknown latencies of pascal-gp100 (C, L, S, D) were one cycle"


def test_the_verdict_states_the_conditions_of_its_execution_times(command: Command) -> None:
    kernels()
    verdict = f"schedulable for the PTX as written, {BLOCKS} (filter), {ONE_CYCLE}: every deadline is proven;"
    solved = command("examples/tasks.toml", "-q", "--gantt", "x.svg")
    kept = command("examples/tasks.toml", "-q")
    assert solved.out == kept.out
    assert kept.out.startswith(verdict)
    picture = " ".join("".join(ElementTree.parse("x.svg").getroot().itertext()).split())
    assert verdict in picture
    document = json.loads(command("examples/tasks.toml", "--format", "json").out)
    SCHEMA.validate(document)
    each = [document["caveats"], *(kernel["caveats"] for kernel in solved_kernels(document))]
    own, filtered = ["for the PTX as written", ONE_CYCLE], ["for the PTX as written", BLOCKS, ONE_CYCLE]
    assert each == [filtered, filtered, own, own]


def solved_kernels(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [segment for task in document["tasks"] for segment in task["segments"] if segment["kind"] == "kernel"]


def test_a_condition_of_some_kernels_names_their_tasks(command: Command) -> None:
    kernels()
    text = Path("examples/tasks.toml").read_text()
    Path("examples/tasks.toml").write_text(text.replace("grid = 1\n", 'grid = 1\nmachine = "pascal-gp100"\n'))
    said = command("examples/tasks.toml", "-q", "--time-limit", "2").out
    of_tasks = f"{WHOLE} (edges, peak), {BLOCKS} (filter), {LEFT_OUT} (edges, peak), {TURING} (edges, peak)"
    assert said.startswith(f"schedulable for the PTX as written, {of_tasks}, {ONE_CYCLE} (filter): every")
    document = json.loads(command("examples/tasks.toml", "--format", "json", "--time-limit", "2").out)
    assert document["caveats"] == ["for the PTX as written", WHOLE, BLOCKS, LEFT_OUT, TURING, ONE_CYCLE]
    assert [kernel["caveats"][-1] for kernel in solved_kernels(document)] == [ONE_CYCLE, TURING, TURING]


def test_given_times_have_no_conditions_of_their_own(command: Command) -> None:
    assert command.document(GOOD)["caveats"] == []
    kernels()
    proven = 'name = "k"\nkernel = "ptx/vecadd.ptx"\nblock = 32\ngrid = 1'
    where = 'period = "10ms"\ndeadline = "9ms"\npartition = "gpu"'
    done = command.on(f'clock = "1GHz"\n{GOOD}\n[[task]]\n{proven}\n{where}\n', "-q")
    assert done.out.startswith(f"schedulable for the PTX as written, {ONE_CYCLE}: every deadline is proven")
    late = f'clock = "1GHz"\n{LATE}\n[[task]]\n{proven}\n{where}\n'
    assert command.on(late, "-q").out.startswith(
        f"not schedulable for the PTX as written, {ONE_CYCLE}, if execution times are attained: a legal schedule"
    )


# Refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gantt", "x.gif"), "x.gif: the name of a picture must end in .png, .svg, .pdf"),
        (("--gantt", "none/x.png"), "none/x.png: cannot write the picture: No such file or directory"),
        (("--html", "x.txt"), "x.txt: the name of a page must end in .html"),
        (("--html", "none/x.html"), "none/x.html: cannot write the page: No such file or directory"),
        (("--tasks", "a"), "--tasks and --window choose what --gantt and --html draw: give one of them, too"),
        (("--gantt", "x.png", "--tasks", "a,c"), "--tasks: there is no task 'c'; the file has a, b"),
        (("--export", "simso", "none/x.xml"), "none/x.xml: cannot write the export: No such file or directory"),
        (("--cache", "tasks.toml"), "tasks.toml: cannot make the folder of solved kernels: File exists"),
        (("--cache", "c", "--no-cache"), "--cache and --no-cache exclude each other"),
        (
            ("--clock", "1GHz"),
            "tasks.toml: a TOML file says GPU, clock and priorities itself: no --gpu, --clock, --priorities beside it",
        ),
    ],
)
def test_bad_options_are_refused_before_the_work(command: Command, options: tuple[str, ...], message: str) -> None:
    done = command.on(GOOD, *options)
    assert (done.code, done.out, done.err) == (2, "", f"makespan: {message}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace('"10ms"', '"0ms"', 1), "task a: period must be more than zero"),
        (GOOD.replace('"10ms"', "10", 1), 'task a: period needs a unit: write a time such as "200us", not 10'),
        (
            GOOD.replace('wcet = "1ms"', 'kernel = "none.ptx"\nwarps = 1', 1),
            'task a: cycles need a clock: give clock = "1.4GHz" at the top of the file (--clock for CSV)',
        ),
        (
            'clock = "1GHz"\n' + GOOD.replace('wcet = "1ms"', 'kernel = "none.ptx"\nwarps = 1', 1),
            "task a: none.ptx: cannot read the PTX file: No such file or directory",
        ),
        (
            GOOD + '\n[[chain]]\nname = "c"\ntasks = ["a", "b", "a"]\nactivation = "data"\n',
            "chain c is cyclic: it comes back to task a; a chain visits a task once",
        ),
        (
            GOOD.replace('partition = "gpu"', 'partition = "sm9"', 1),
            "task a runs on an unknown partition sm9; there are gpu",
        ),
        (
            system(("a", "1ms", "10ms", "8ms"), policy="fixed-priority"),
            "task a has no priority, and partition gpu schedules by priorities: give every task a priority, or"
            ' priorities = "rate-monotonic" or "deadline-monotonic" at the top (--priorities for CSV)',
        ),
    ],
)
def test_a_bad_file_is_one_line(command: Command, text: str, message: str) -> None:
    done = command.on(text)
    assert (done.code, done.out, done.err) == (2, "", f"makespan: tasks.toml: {message}\n")


def test_tasks_that_data_starts_are_drawn_from_the_end_of_the_one_before(command: Command) -> None:
    chain = '\n[[chain]]\nname = "c"\ntasks = ["a", "b"]\nactivation = "data"\n'
    done = command.on(GOOD + chain, "--gantt", "x.svg")
    assert (done.code, done.out.splitlines()[-1]) == (0, "picture: x.svg")
    words = "".join(ElementTree.parse("x.svg").getroot().itertext())
    assert "a#0" in words
    assert "b#0" in words


def test_errors_as_json(command: Command) -> None:
    done = command("none.toml", "--format", "json")
    assert done.code == 2
    assert json.loads(done.err)["error"] == "none.toml: cannot read the task file: No such file or directory"
    assert command(".").err.startswith("makespan: .: unknown kind of task file")


def test_the_schema_is_a_schema_and_refuses_less(command: Command) -> None:
    document = command.document(GOOD)
    for field in document:
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate({key: value for key, value in document.items() if key != field})
    for field in document["tasks"][0]:
        task = {key: value for key, value in document["tasks"][0].items() if key != field}
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate({**document, "tasks": [task]})
    for field in document["tasks"][0]["segments"][0]:
        segment = {key: value for key, value in document["tasks"][0]["segments"][0].items() if key != field}
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate({**document, "tasks": [{**document["tasks"][0], "segments": [segment]}]})


def test_a_name_of_a_task_adds_no_words_to_a_verdict(command: Command) -> None:
    kernels()
    lie = "a), if every result is waited for (b"
    text = Path("examples/tasks.toml").read_text().replace('name = "filter"', f'name = "{lie}"')
    Path("examples/tasks.toml").write_text(text.replace('"filter"', f'"{lie}"'))
    said = command("examples/tasks.toml", "-q").out
    assert said.count(lie) == said.count(f"'{lie}'") > 0
