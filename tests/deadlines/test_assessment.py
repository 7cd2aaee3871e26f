"""What an assessment rests on: who waits how, what launches take by whose word, and margins that mean something."""

from fractions import Fraction
from pathlib import Path

import pytest

from makespan import Limits
from makespan.deadlines.assessment import Assessment, assessments
from makespan.deadlines.exploration import explore
from makespan.deadlines.files import read
from makespan.deadlines.task import GpuPartition, GpuTask, HostWait, JobSegment, SegmentKind, ServerPolicy, TaskSet
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.deadlines.wcet import Solver, execution_times

ROOT = Path(__file__).parents[2]
PIPELINE = (ROOT / "examples" / "pipeline.toml").read_text()


def assessed(folder: Path, text: str, assignment: str | None = None, *, with_margins: bool = False) -> Assessment:
    (folder / "tasks.toml").write_text(text)
    description = read(folder / "tasks.toml")
    wcets = execution_times(description, Solver(Limits))
    *_, found = assessments(description, wcets, assignment=assignment, with_margins=with_margins)
    return found


def test_the_example_of_a_pipeline_adds_up(tmp_path: Path) -> None:
    """In each activation, which has ended when the next begins, nobody waits for anybody: all times, once."""
    found = assessed(tmp_path, PIPELINE)
    assert found.verdict is not None
    microseconds = [(task.response or 0) * found.tick * 10**6 for task in found.verdict.tasks]
    assert microseconds == [1000 + 520 + 2020, 4020, 7020 + 120 + 1000]
    assert [(chain.reaction or 0) * found.tick * 10**6 for chain in found.verdict.chains] == [sum(microseconds)]
    assert found.answer is DeadlineAnswer.YES
    assert found.assumed_spin == ()


def test_who_is_assumed_to_spin_is_said(tmp_path: Path) -> None:
    text = PIPELINE.replace('wait = "block"\nsegments = [\n    { wcet', "segments = [\n    { wcet")
    found = assessed(tmp_path, text)
    assert found.assumed_spin == ("dnn",)
    assert one(found, "while a job of camera waits").endswith("does not spin, as it may by default")
    assert one(found, "while a job of dnn waits").endswith(
        "its thread spins on its core with its priority, and does not yield"
    )


def test_neither_way_to_wait_is_the_worse_for_everybody() -> None:
    """So a verdict for threads that spin says nothing of threads that block, and names its condition."""

    def system(wait: HostWait) -> TaskSet:
        low, high = (
            ((SegmentKind.CPU, 1), (SegmentKind.KERNEL, 3)),
            ((SegmentKind.CPU, 2), (SegmentKind.KERNEL, 1), (SegmentKind.CPU, 1), (SegmentKind.KERNEL, 2)),
        )
        tasks = []
        for rank, (parts, period) in enumerate([(low, 10), (high, 14)]):
            segments = tuple(
                JobSegment(kind, wcet, "g" if kind is SegmentKind.KERNEL else None) for kind, wcet in parts
            )
            tasks.append(GpuTask(f"t{rank}", segments, period, period, priority=rank, core="c", wait=wait))
        return TaskSet(tuple(tasks), (GpuPartition("g", ServerPolicy.FIFO),))

    assert explore(system(HostWait.BLOCK)).response == {"t0": 6, "t1": 8}
    assert explore(system(HostWait.SPIN)).response == {"t0": 10, "t1": 7}


def test_who_vouches_for_launches_is_said(tmp_path: Path) -> None:
    text = PIPELINE.replace(
        'partition = "GPU", evidence',
        'partition = "GPU", launch_delay = "0s", launch_evidence = "a graph", evidence',
        1,
    )
    found = assessed(tmp_path, text)
    assert one(found, "launch delays of at most 20 us") == (
        "launch delays of at most 20 us that the user vouches for, of camera[1], isp, dnn[0], dnn[1]:"
        " the longest of 100000 launches in a trace, and half as much again"
    )
    assert one(found, "launch delays of at most 0 s").endswith("of camera[2]: a graph")
    silent = "\n".join(line for line in PIPELINE.splitlines() if not line.startswith("launch_"))
    said = "launches of camera[1], camera[2], isp, dnn[0], dnn[1] take no time but what is in CPU times and"
    assert one(assessed(tmp_path, silent), "launches of").startswith(said)


def one(found: Assessment, begin: str) -> str:
    (note,) = (note for note in found.notes if note.startswith(begin))
    return note


def test_a_thread_that_does_not_take_its_result_back_is_told(tmp_path: Path) -> None:
    (note,) = (note for note in assessed(tmp_path, PIPELINE).notes if "is over when its last copy or kernel is" in note)
    assert note.startswith("a job of camera is over")


CPU_ONLY = """
priorities = "rate-monotonic"
[[task]]
name = "a"
period = "9ms"
deadline = "9ms"
core = "c"
cpu = "4ms"
"""

GIVEN = """
[[partition]]
name = "p"
policy = "fifo"
[[task]]
name = "b"
period = "9ms"
deadline = "9ms"
wcet = "1ms"
evidence = "e"
partition = "p"
"""


def test_only_what_has_an_effect_is_varied(tmp_path: Path) -> None:
    assert [m.quantity for m in assessed(tmp_path, CPU_ONLY, with_margins=True).margins] == ["period of a"]
    found = assessed(tmp_path, CPU_ONLY + GIVEN, with_margins=True)
    quantities = ["execution times of the kernels", "period of a", "execution time of b", "period of b"]
    assert [margin.quantity for margin in found.margins] == quantities


def test_a_slower_clock_is_tried_with_the_places_that_were_found(tmp_path: Path) -> None:
    """A kernel of 1000 cycles at 1 MHz has 1 ms; at half the clock 2 ms, its deadline."""
    text = 'clock = "1MHz"\n[[partition]]\nname = "p"\npolicy = "fifo"\n[[task]]\nname = "a"\ncycles = 1000\n'
    text += 'evidence = "e"\nperiod = "9ms"\ndeadline = "2ms"\n'
    found = assessed(tmp_path, text, "first-fit", with_margins=True)
    assert [margin.holds for margin in found.margins if margin.quantity == "clock"] == [Fraction(500_000)]


@pytest.mark.parametrize("missing", ["", 'partition = "GPU"\n'])
def test_a_task_that_nothing_places_is_refused_or_placed(tmp_path: Path, missing: str) -> None:
    found = assessed(tmp_path, PIPELINE.replace(missing, "") if missing else PIPELINE, "first-fit" if missing else None)
    assert (found.assignment is None) == (not missing)
    assert found.task_set.by_name["isp"].segments[0].resource == "GPU"
