"""Tasks, partitions, chains: what is refused, and what task sets say of themselves."""

from typing import Any

import pytest

from makespan.errors import InputError
from makespan.schedulability.task import Activation, Chain, Partition, Policy, Task, TaskSet

GPU = Partition("gpu", Policy.FIFO)
RANKED = Partition("ranked", Policy.FIXED_PRIORITY)


def task(name: str = "a", **changes: Any) -> Task:
    return Task(**{"name": name, "wcet": 2, "period": 10, "deadline": 10, "partition": "gpu", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"period": 0}, "period of task a must be at least 1 and at most 1e24 ticks, not 0"),
        ({"period": -1}, "period of task a must be at least 1 and at most 1e24 ticks, not -1"),
        ({"wcet": 0}, "execution time of task a must be at least 1 and at most 1e24 ticks, not 0"),
        ({"deadline": 0}, "deadline of task a must be at least 1 and at most 1e24 ticks, not 0"),
        ({"jitter": -1}, "jitter of task a must be at least 0 and at most 1e24 ticks, not -1"),
        ({"offset": -1}, "offset of task a must be at least 0 and at most 1e24 ticks, not -1"),
        ({"period": 10**25}, "period of task a must be at least 1 and at most 1e24 ticks, not a number of 84 bits"),
        ({"wcet": 1.5}, "execution time of task a must be a whole number of ticks, not 1.5"),
        ({"wcet": True}, "execution time of task a must be a whole number of ticks, not True"),
        ({"priority": 1.5}, "priority of task a must be a whole number, not 1.5"),
        ({"before": 1}, "task a has CPU time and no core: say which core runs it"),
        ({"name": ""}, "the name of a task must be 1..80 printable characters, not ''"),
        ({"name": "a\n"}, r"the name of a task must be 1..80 printable characters, not 'a\n'"),
    ],
)
def test_a_task_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        task(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", "b", "a"), None), "chain c is cyclic: it comes back to task a; a chain visits a task once"),
        (((), None), "chain c has no task"),
        ((("a",), 0), "deadline of chain c must be 1..1e24 ticks, not 0"),
    ],
)
def test_a_chain_out_of_range_is_refused(arguments: tuple[tuple[str, ...], int | None], message: str) -> None:
    names, deadline = arguments
    with pytest.raises(InputError) as caught:
        Chain("c", names, Activation.PERIODIC, deadline)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("tasks", "partitions", "chains", "message"),
    [
        ((), (GPU,), (), "a task set has 1..1000 tasks, not 0"),
        ((task(),), (), (), "a task set needs at least one partition of the GPU"),
        ((task(), task()), (GPU,), (), "two of the tasks are named a; names must differ"),
        ((task(),), (GPU, GPU), (), "two of the partitions are named gpu; names must differ"),
        ((task(partition="sm9"),), (GPU,), (), "task a runs on an unknown partition sm9; there are gpu"),
        (
            (task(partition="ranked"),),
            (RANKED,),
            (),
            "task a has no priority, and partition ranked schedules by priorities",
        ),
        ((task(core="cpu0", before=1),), (GPU,), (), "task a has no priority, and core cpu0 schedules by priorities"),
        (
            (task(),),
            (GPU,),
            (Chain("c", ("a", "b"), Activation.DATA),),
            "chain c names an unknown task b",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tasks: tuple[Task, ...], partitions: tuple[Partition, ...], chains: tuple[Chain, ...], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        TaskSet(tasks, partitions, chains)
    assert str(caught.value) == message


def test_a_partition_needs_a_policy_that_is_one() -> None:
    with pytest.raises(
        InputError, match="policy of gpu must be one of fixed-priority, edf, edf-release, fifo, not 'fifo'"
    ):
        Partition("gpu", "fifo")  # type: ignore[arg-type]


def test_a_task_set_says_what_runs_where() -> None:
    placed, open_, ranked = task(), task("b", partition=None), task("c", core="cpu0", after=1, priority=1)
    system = TaskSet((placed, open_, ranked), (GPU, RANKED))
    assert system.on("gpu") == (placed, ranked)
    assert system.unassigned == (open_,)
    assert system.cores == {"cpu0": (ranked,)}
    assert system.by_name["b"] is open_
    assert system.assigned({"b": "gpu"}).on("gpu")[1].name == "b"
    assert ranked.cpu == 1
