"""The fewest SMs: every number is tried, since more need not be better, and what is said is what was proven."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan import Limits
from makespan.deadlines import files, sensitivity
from makespan.deadlines.description import Description
from makespan.deadlines.report.text import fewest_line
from makespan.deadlines.sensitivity import FewestSms, fewest_sms
from makespan.deadlines.wcet import Solver, Wcet, WcetGround, execution_times
from makespan.host.errors import InputError

SAMPLE = Path(__file__).parents[2] / "ptx" / "vecadd.ptx"
TASK = """
[[task]]
name = "{name}"
kernel = "vecadd.ptx"
block = 256
grid = 10
blocks_per_sm = 2
machine = "paper"
period = "{period}"
deadline = "{deadline}"
partition = "{name}"
"""
CHAIN = '[[chain]]\nname = "c"\ntasks = ["p", "q"]\nactivation = "periodic"\ndeadline = "{}us"\n'


def partitions(**sms: int) -> str:
    return "".join(f'[[partition]]\nname = "{name}"\npolicy = "fifo"\nsms = {count}\n' for name, count in sms.items())


def described(folder: Path, tasks: Mapping[str, str], more: str = "", period: str = "100us", **sms: int) -> Description:
    """Partitions of a GPU of 46 SMs, and on each a kernel with this deadline."""
    written = "".join(TASK.format(name=name, deadline=deadline, period=period) for name, deadline in tasks.items())
    path = folder / "tasks.toml"
    path.write_text(f'gpu = "rtx-3070"\n{partitions(**sms)}{written}{more}')
    return files.read(path)


def searched(found: Description, times: Mapping[str, Sequence[int]]) -> list[FewestSms]:
    """As if kernels took so many microseconds with 1, 2, ... SMs."""

    def known(description: Description, *_: object) -> Iterator[tuple[str, Wcet]]:
        for entry in description.tasks:
            for name, kernel in entry.executions.items():
                sms = description.sms[kernel.resource or ""]
                seconds = Fraction(times[name][sms - 1], 10**6)
                yield name, Wcet(seconds, None, WcetGround.PROVEN, "", Fraction(0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensitivity, "each_execution_time", known)
        return list(fewest_sms(found, Solver(Limits)))


@given(st.lists(st.integers(1, 6), min_size=46, max_size=46), st.integers(1, 6))
def test_the_smallest_number_that_is_proven_is_found_however_bounds_go_up_and_down(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], deadline: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (found,) = searched(described(folder, {"p": f"{deadline}us"}, p=46), {"p": times})
    does = [sms for sms, time in enumerate(times, start=1) if time <= deadline]
    assert (found.found is None) == (not does)
    assert [tried.sms["p"] for tried in found.tried] == list(range(1, (does[0] if does else 46) + 1))
    for tried in found.tried:
        assert tried.seconds == {"p": Fraction(times[tried.sms["p"] - 1], 10**6)}
        assert (tried.unproven == ()) == (times[tried.sms["p"] - 1] <= deadline)


def test_each_partition_is_looked_at_while_the_others_have_what_the_file_says(tmp_path: Path) -> None:
    description = described(tmp_path, {"p": "5us", "q": "5us"}, p=20, q=6)
    times = {"p": [9, 9, 5, *[9] * 43], "q": [7, *[5] * 45]}
    p, q, both = searched(description, times)
    assert (p.partition, p.most, q.partition, q.most) == ("p", 40, "q", 26)
    assert p.found is not None
    assert q.found is not None
    assert both.found is not None
    assert (p.found.sms, q.found.sms, both.found.sms) == ({"p": 3}, {"q": 2}, {"p": 3, "q": 2})
    assert fewest_line(p) == "p: 3 of up to 40 are proven to do (p 5 us), and no fewer (1..2: no proof for p)"
    assert fewest_line(q) == "q: 2 of up to 26 are proven to do (q 5 us), and no fewer (1: no proof for q)"
    assert fewest_line(both) == "together: 5 of 46 SMs, p 3, q 2: every deadline is proven"


def test_what_each_partition_alone_can_do_without_all_need_not(tmp_path: Path) -> None:
    """A chain of both has time for one slow kernel, 2 x 100 us for the periods and 12 for the kernels."""
    description = described(tmp_path, {"p": "10us", "q": "10us"}, CHAIN.format(212), p=20, q=20)
    p, q, both = searched(description, {"p": [10, *[2] * 45], "q": [10, *[2] * 45]})
    assert p.found is not None
    assert q.found is not None
    assert (p.found.sms, q.found.sms, both.found) == ({"p": 1}, {"q": 1}, None)
    assert fewest_line(both) == "together: 2 of 46 SMs, p 1, q 1: no proof for c"


def test_a_chain_belongs_to_the_partitions_of_its_tasks(tmp_path: Path) -> None:
    description = described(tmp_path, {"p": "10us", "q": "10us"}, CHAIN.format(205), p=20, q=20)
    p, *_ = searched(description, {"p": [10, 4, *[2] * 44], "q": [2] * 46})
    assert [tried.unproven for tried in p.tried] == [("c",), ("c",), ()]


def test_where_no_number_does_that_is_said_and_no_more(tmp_path: Path) -> None:
    description = described(tmp_path, {"p": "5us", "q": "5us"}, p=6, q=40)
    times = {"p": [9] * 46, "q": [5] * 46}
    found = searched(description, times)
    assert [each.partition for each in found] == ["p", "q"]
    assert fewest_line(found[0]) == "p: no number of SMs up to 6 is proven to do (1..6: no proof for p)"
    assert fewest_line(found[1]) == "q: 1 of up to 40 are proven to do (q 5 us)"


def test_bounds_of_kernels_decide(tmp_path: Path) -> None:
    """10 blocks, 2 at a time on an SM: up to 5 waves, all but the last two of them too slow."""
    shutil.copy(SAMPLE, tmp_path)
    description = described(tmp_path, {"p": "400ns"}, p=46)
    solver = Solver(Limits)
    (found,) = fewest_sms(description, solver)
    assert found.found is not None
    sms = found.found.sms["p"]
    assert 1 < sms < 46
    seconds = [fewest_time(description.with_sms({"p": count}), solver) for count in (sms - 1, sms)]
    assert seconds[0] > Fraction(4, 10**7) >= seconds[1]
    assert [tried.seconds["p"] for tried in found.tried[-2:]] == seconds


def fewest_time(description: Description, solver: Solver) -> Fraction:
    """As it is solved with witness, without a search."""
    return execution_times(description, solver)["p"].seconds


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('gpu = "rtx-3070"', 'clock = "1GHz"', "--fewest-sms needs to know how many SMs there are: say on which GPU"),
        ('partition = "p"', "", "--fewest-sms: task p has no partition: give it one"),
    ],
)
def test_what_is_missing_is_said_before_the_work(tmp_path: Path, old: str, new: str, message: str) -> None:
    described(tmp_path, {"p": "5us"}, p=6)
    path = tmp_path / "tasks.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        fewest_sms(files.read(path), Solver(Limits))


GIVEN = """
[[task]]
name = "a"
wcet = "1us"
evidence = "measured on 6 SMs"
period = "9us"
deadline = "9us"
partition = "p"
"""


def test_nobody_vouches_for_a_given_time_on_another_number_of_sms(tmp_path: Path) -> None:
    path = tmp_path / "tasks.toml"
    path.write_text(f'gpu = "rtx-3070"\n{partitions(p=6)}{GIVEN}')
    with pytest.raises(InputError, match="every partition has an execution time that is given, or from a bundle"):
        fewest_sms(files.read(path), Solver(Limits))
    description = described(tmp_path, {"p": "10us", "q": "10us"}, GIVEN, p=6, q=20)
    q, both = searched(description, {"p": [2] * 46, "q": [20, *[2] * 45], "a": [1] * 46})
    assert q.partition == "q"
    assert both.found is not None
    assert both.found.sms == {"p": 6, "q": 2}


BOTH = """
[[task]]
name = "a"
period = "100us"
deadline = "{deadline}us"
segments = [
    {{ kernel = "vecadd.ptx", block = 256, grid = 10, blocks_per_sm = 2, machine = "paper", partition = "p" }},
    {{ kernel = "vecadd.ptx", block = 256, grid = 10, blocks_per_sm = 2, machine = "paper", partition = "q" }},
]
"""


def test_a_task_with_kernels_on_both_partitions_counts_for_each(tmp_path: Path) -> None:
    """10 us in all leave 8 for the one while the other takes the 2 that it takes on the SMs of the file."""
    description = described(tmp_path, {}, BOTH.format(deadline=10), p=20, q=20)
    p, q, both = searched(description, {"a[0]": [9, 8, *[2] * 44], "a[1]": [8, *[2] * 45]})
    assert [dict(tried.seconds) for tried in p.tried] == [{"a[0]": Fraction(9, 10**6)}, {"a[0]": Fraction(8, 10**6)}]
    assert [tried.unproven for tried in p.tried] == [("a",), ()]
    assert q.found is not None
    assert (q.found.sms, both.found) == ({"q": 1}, None)
