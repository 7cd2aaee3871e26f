"""Task files: what is read, exactly, and what is refused, each in one line that names the file."""

import re
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan import KernelQuestion, Launch, Machine
from makespan.errors import InputError
from makespan.flow import GivenBound, Step
from makespan.machine import GivenRange
from makespan.ptx import Classes, Dependences
from makespan.schedulability import files
from makespan.schedulability.description import (
    BundleFile,
    Description,
    ExecutionTime,
    GivenCycles,
    GivenTime,
    KernelLaunch,
    Priorities,
    common_tick,
    task_set,
)
from makespan.schedulability.task import Activation, Policy, TaskSet
from tests.effort import calls


def ticks(found: Description, seconds: Mapping[str, Fraction]) -> tuple[TaskSet, Fraction]:
    return task_set(found, {name: ExecutionTime(time) for name, time in seconds.items()})


GOOD = """
clock = "1.4GHz"
priorities = "larger-first"

[[partition]]
name = "gpu"
policy = "fixed-priority"
sms = 2

[[task]]
name = "a"
wcet = "200us"
evidence = "measured by nobody"
period = "10ms"
deadline = "5ms"
jitter = "1us"
offset = "0s"
priority = 2
partition = "gpu"
core = "cpu0"
cpu_before = "1us"
cpu_after = "2us"

[[task]]
name = "b"
cycles = 280
evidence = "the vendor's word"
period = "20ms"
deadline = "20ms"
priority = 1
partition = "gpu"

[[chain]]
name = "c"
tasks = ["a", "b"]
activation = "data"
deadline = "40ms"
"""


def written(folder: Path, text: str, name: str = "tasks.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(path: Path, **options: str) -> str:
    """The message, which is one line and begins with the file."""
    with pytest.raises(InputError) as caught:
        files.read(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


# TOML


def test_everything_in_a_toml_file_is_read_exactly(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, GOOD))
    assert found.clock == 1_400_000_000
    assert found.priorities is Priorities.LARGER_FIRST
    a, b = found.tasks
    assert a.source == GivenTime(Fraction(1, 5000), "measured by nobody")
    assert b.source == GivenCycles(280, "the vendor's word")
    assert (a.period, a.deadline, a.jitter) == (Fraction(1, 100), Fraction(1, 200), Fraction(1, 10**6))
    assert a.offset == 0
    assert b.offset is None
    assert (a.before, a.after, a.core) == (Fraction(1, 10**6), Fraction(2, 10**6), "cpu0")
    assert (found.partitions[0].partition.policy, found.partitions[0].sms) == (Policy.FIXED_PRIORITY, 2)
    assert (found.chains[0].tasks, found.chains[0].activation) == (("a", "b"), Activation.DATA)
    system, tick = ticks(found, {"a": Fraction(1, 5000), "b": Fraction(280, 1_400_000_000)})
    assert tick == Fraction(1, 2 * 10**12)
    assert [task.wcet for task in system.tasks] == [400_000_000, 400_000]
    assert system.chains[0].deadline == 80 * 10**9


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('period = "10ms"', 'period = "0s"', ": task a: period must be more than zero"),
        ('period = "10ms"', "period = 10", ': task a: period needs a unit: write a time such as "200us", not 10'),
        ('period = "10ms"', 'period = "10"', ": task a: period: '10' lacks its unit; one of ps, ns, us, ms, s"),
        ('period = "10ms"', 'period = "-10ms"', ": task a: period must be a time such as \"200us\", not '-10ms'"),
        ('period = "10ms"', 'period = "1e9s"', ": task a: period must be a time such as \"200us\", not '1e9s'"),
        ('period = "10ms"', 'period = "2000000000s"', ": task a: period: '2000000000s' is too large"),
        ('period = "10ms"\n', "", ': task a has no period: give one such as period = "10ms"'),
        ('deadline = "5ms"\n', "", ': task a has no deadline: give one such as deadline = "10ms"'),
        ('deadline = "5ms"', 'deadline = "0ms"', ": task a: deadline must be more than zero"),
        ('wcet = "200us"', 'wcet = "0us"', ": task a: wcet must be more than zero"),
        ('evidence = "measured by nobody"\n', "", ': task a: who vouches for this wcet? say it in evidence = "..."'),
        ("measured by nobody", " ", ": task a: evidence is blank: say who vouches, and why"),
        ("cycles = 280", "cycles = -280", ": task b: cycles must be 1..1000000000000000, not -280"),
        (
            "cycles = 280",
            f"cycles = 1{'0' * 40}",
            ": task b: cycles must be 1..1000000000000000, not a number of 133 bits",
        ),
        ("cycles = 280", "cycles = 2.5", ": task b: cycles must be a whole number, not 2.5"),
        (
            "cycles = 280",
            'cycles = 280\nwcet = "1us"',
            ": task b: wcet and cycles exclude each other: give exactly one of wcet, cycles, bundle, kernel",
        ),
        (
            'wcet = "200us"\n',
            "",
            ": task a has no execution time: give exactly one of wcet, cycles, bundle, kernel",
        ),
        (
            'wcet = "200us"',
            'wcet = "200us"\nblock = 256',
            ": task a: block belongs to a kernel, and the execution time comes from wcet",
        ),
        (
            'partition = "gpu"\ncore',
            'partition = "sm7"\ncore',
            ": task a runs on an unknown partition sm7; there are gpu",
        ),
        (
            'core = "cpu0"\n',
            "",
            ': task a has CPU time and no core: say which one runs it, such as core = "cpu0"',
        ),
        (
            "priority = 2\n",
            "",
            ": task a has no priority, and core cpu0 schedules by priorities: give every task a priority, or"
            ' priorities = "rate-monotonic" or "deadline-monotonic" at the top',
        ),
        (
            "priority = 1\n",
            "",
            ": task b has no priority, and partition gpu schedules by priorities: give every task a priority, or"
            ' priorities = "rate-monotonic" or "deadline-monotonic" at the top',
        ),
        (
            'priorities = "larger-first"\n',
            "",
            ': task a has priority 2, and nothing says what this means: give priorities = "larger-first" or'
            ' "smaller-first" at the top',
        ),
        (
            '"larger-first"',
            '"rate-monotonic"',
            ": task a has a priority of its own beside priorities = 'rate-monotonic'",
        ),
        (
            '"larger-first"',
            '"high"',
            ": priorities must be one of larger-first, smaller-first, rate-monotonic, deadline-monotonic, not 'high'",
        ),
        ("priority = 2", "priority = 1.5", ": task a: priority must be a whole number of at most 1e9, not 1.5"),
        (
            "priority = 2",
            f"priority = {10**15}",
            f": task a: priority must be a whole number of at most 1e9, not {10**15}",
        ),
        (
            "jitter",
            "string",
            ": task a: unknown key 'string'; give the bundle that 'makespan solve --string ... --bundle",
        ),
        ("jitter", "jiter", ": task a: unknown key 'jiter'; known: name, period, deadline, jitter,"),
        (
            "clock =",
            "klock =",
            ": the file: unknown key 'klock'; known: gpu, clock, tick, priorities, partition, task, chain",
        ),
        ("sms =", "sm =", ": partition gpu: unknown key 'sm'; known: name, policy, sms"),
        ("sms = 2", "sms = 0", ": partition gpu: sms must be 1..4096, not 0"),
        (
            'policy = "fixed-priority"\n',
            "",
            ": partition gpu has no policy: give one of fixed-priority, edf, edf-release, fifo",
        ),
        (
            '"fixed-priority"',
            '"rr"',
            ": partition gpu: policy must be one of fixed-priority, edf, edf-release, fifo, not 'rr'",
        ),
        ('tasks = ["a", "b"]', 'tasks = ["a", "b", "a"]', ": chain c is cyclic: it comes back to task a; a chain"),
        ('tasks = ["a", "b"]', 'tasks = ["a", "x"]', ": chain c names an unknown task x"),
        ('tasks = ["a", "b"]', "tasks = []", ": chain c has no task"),
        ('tasks = ["a", "b"]', "tasks = [1]", ": chain c: tasks must be a text of 1..500 printable characters, not 1"),
        ('activation = "data"\n', "", ": chain c has no activation"),
        ('activation = "data"', 'activation = "x"', ": chain c: activation must be one of periodic, data, not 'x'"),
        ('deadline = "40ms"', 'deadline = "0ms"', ": chain c: deadline must be more than zero"),
        ('name = "b"', 'name = "a"', ": two of the tasks are named a; names must differ"),
        ('name = "b"\n', "", ": a task has no name: it has 'cycles', 'evidence', 'period', 'deadline', 'priority',"),
        (
            'name = "b"',
            'name = "b\\u001b[31m"',
            ": the name of a task must be 1..80 printable characters, not 'b\\x1b[31m'",
        ),
        ('clock = "1.4GHz"', "clock = 1.4", ': clock needs a unit: write a frequency such as "1.4GHz", not 1.4'),
        ('clock = "1.4GHz"', 'tick = "0ps"', ": tick must be more than zero"),
        (
            'clock = "1.4GHz"',
            'tick = "3us"',
            ": task a: period of 10 ms is no whole number of ticks of 3 us",
        ),
    ],
)
def test_bad_values_are_refused_by_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    found = refusal(written(tmp_path, GOOD.replace(old, new, 1)))
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": there is no [[task]]; give at least one"),
        ("[[task]]\nname = 'a'\nwcet =", ": not a TOML task file: Invalid value (at end of document)"),
        ("a = 1\na = 2\n", ": not a TOML task file: Cannot overwrite a value (at line 2, column 6)"),
        ("task = 5\n", ": task must be tables: begin each with [[task]]"),
        ("task = [5]\n", ": task must be tables: begin each with [[task]]"),
        ("x = " + "[" * 1990, ": not a TOML task file: "),
        (f"x = {'9' * 1990}\n", ": the file: unknown key 'x'"),
        ("x = '" + "a" * 2000 + "'", ":1: a line of 2006 characters; the limit is 2000"),
        ("\n[[task]]\n" * 1001, ": 1001 tables [[task]]; the limit is 1000"),
        ("\u0000", ": not a TOML task file: "),
    ],
)
def test_hostile_toml_is_refused_by_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(written(tmp_path, text)).startswith(message)


def test_long_dotted_keys_cost_little_time(tmp_path: Path) -> None:
    refused = refusal(written(tmp_path, ".".join("a" * 990) + " = 1\n"))
    assert refused == ":1: a line with 989 dots; the limit is 100"
    line = ".".join("a" * 100)
    most = written(tmp_path, "\n".join(f"[x{number}]\n{line} = 1" for number in range(1000)))
    assert calls(lambda: refusal(most), most=20 * most.stat().st_size)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing.toml") == ": cannot read the task file: No such file or directory"
    (tmp_path / "folder.toml").mkdir()
    assert refusal(tmp_path / "folder.toml") == ": cannot read the task file: Is a directory"
    assert refusal(tmp_path) == ": unknown kind of task file; the name ends in .toml or .csv"
    assert refusal(tmp_path / "tasks.xlsx") == ": unknown kind of task file; the name ends in .toml or .csv"
    (tmp_path / "bytes.toml").write_bytes(b"\xff\x80")
    assert refusal(tmp_path / "bytes.toml") == ": cannot read the task file: it is not UTF-8 text"
    (tmp_path / "large.toml").write_bytes(b"\n" * (files.MAX_FILE_BYTES + 1))
    assert refusal(tmp_path / "large.toml") == ": larger than 1 MiB, too large for a task file"


def test_partitions_are_sms_of_a_gpu(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, f'gpu = "a100-sxm"\n{GOOD}'))
    assert found.card is not None
    assert (found.card.name, found.sms) == ("a100-sxm", {"gpu": 2})
    assert (found.clock, found.clock_by) == (Fraction(1_400_000_000), None)
    mig = f'gpu = "a100-sxm"\n{GOOD}'.replace("sms = 2", 'sms = "3g.40gb"')
    assert files.read(written(tmp_path, mig)).sms == {"gpu": 42}


def test_a_gpu_says_its_clock(tmp_path: Path) -> None:
    silent = GOOD.replace('clock = "1.4GHz"', 'gpu = "rtx-3070"')
    found = files.read(written(tmp_path, silent))
    assert (found.clock, found.clock_by) == (Fraction(1_500_000_000), "base clock of rtx-3070: data sheet")
    assert files.read(written(tmp_path, silent.replace("rtx-3070", "h100-sxm"))).clock is None


@pytest.mark.parametrize(
    ("gpu", "sms", "message"),
    [
        (
            "rtx-3070",
            "47",
            ": partition gpu: sms: GPU rtx-3070: the number of SMs must be 1..46 (it has no MIG instances)",
        ),
        (
            "rtx-3070",
            '"3g.40gb"',
            ": partition gpu: sms: GPU rtx-3070: the number of SMs must be 1..46 (it has no MIG instances)",
        ),
        ("rtx-3070", "true", ": partition gpu: sms must be a whole number, not True"),
        ("rtx-1", "2", ": unknown GPU 'rtx-1'; shipped: "),
    ],
)
def test_sms_that_a_gpu_does_not_have_are_refused(tmp_path: Path, gpu: str, sms: str, message: str) -> None:
    text = f'gpu = "{gpu}"\n{GOOD}'.replace("sms = 2", f"sms = {sms}")
    assert refusal(written(tmp_path, text)).startswith(message)


def test_a_partition_of_a_gpu_says_how_many_sms_it_has(tmp_path: Path) -> None:
    silent = GOOD.replace("sms = 2\n", "")
    assert files.read(written(tmp_path, silent)).sms == {"gpu": 1}
    missing = " is missing: how many SMs of GPU rtx-3070 does it have? give sms = N"
    assert refusal(written(tmp_path, f'gpu = "rtx-3070"\n{silent}')) == f": partition gpu: sms{missing}"
    rows = written(tmp_path, "name,wcet,evidence,period,deadline,partition,policy\na,1us,me,1ms,1ms,g,fifo\n", "t.csv")
    assert files.read(rows).sms == {"g": 1}
    with pytest.raises(InputError, match=f":2: partition g: sms{re.escape(missing)}$"):
        files.read(rows, gpu="rtx-3070")


def test_partitions_together_have_no_more_sms_than_the_gpu(tmp_path: Path) -> None:
    text = f'gpu = "rtx-3070"\n{GOOD}\n[[partition]]\nname = "other"\npolicy = "fifo"\nsms = 45'
    message = ": the partitions have 47 SMs together, and GPU rtx-3070 has 46"
    assert refusal(written(tmp_path, text)) == message


def test_a_csv_file_is_told_its_gpu(tmp_path: Path) -> None:
    text = "name,wcet,evidence,period,deadline,partition,policy,sms\na,1us,me,1ms,1ms,g,fifo,3g.40gb\n"
    found = files.read(written(tmp_path, text, "tasks.csv"), gpu="a100-sxm")
    assert found.sms == {"g": 42}
    message = ":2: partition g: sms must be a whole number, not '3g.40gb'"
    assert refusal(written(tmp_path, text, "tasks.csv")) == message


def test_a_toml_file_takes_no_clock_beside_it(tmp_path: Path) -> None:
    message = ": a TOML file says GPU, clock and priorities itself: no --gpu, --clock, --priorities beside it"
    assert refusal(written(tmp_path, GOOD), clock="1GHz") == message


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    for name in ("x.toml", "x.csv"):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(data)
        with pytest.raises(InputError):
            files.read(path)


@given(st.data())
def test_no_cut_or_changed_file_crashes_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(GOOD)))
    text = GOOD[:at] + data.draw(st.sampled_from(["", '"', "=", "[[", "]]", "\n", "0", "é", "-"]))
    text += GOOD[data.draw(st.integers(at, len(GOOD))) :]
    path = tmp_path_factory.getbasetemp() / "cut.toml"
    path.write_text(text)
    with suppress(InputError):
        assert isinstance(files.read(path), Description)


# Kernels


KERNEL = """
[[partition]]
name = "gpu"
policy = "fifo"

[[task]]
name = "a"
period = "1ms"
deadline = "1ms"
partition = "gpu"
kernel = "k.ptx"
"""


def test_a_kernel_has_the_options_of_the_command_line(tmp_path: Path) -> None:
    more = """
entry = "k"
block = "16x16"
grid = 8
blocks_per_sm = 2
param = { n = 1024, x = 0.5 }
loop_bound = ["L=4", "bounds.csv"]
take = ["M=fall"]
trace = "t.txt"
classes = "c.toml"
unknown = "C"
profile = "modern"
capacity = "C=2,L=1,S=1,D=1,T=1"
arch = "compute_80"
dependences = "blocking"
latency = ["global=..900"]
evidence = "why"
"""
    (tmp_path / "bounds.csv").write_text("N,==7,k")
    (tmp_path / "t.txt").write_text("O taken")
    (tmp_path / "c.toml").write_text('ld = "L"')
    (entry,) = files.read(written(tmp_path, KERNEL + more)).tasks
    assert entry.source == KernelLaunch(
        KernelQuestion(
            tmp_path / "k.ptx",
            entry="k",
            launch=Launch((16, 16, 1), (8, 1, 1), {"n": 1024, "x": 0.5}),
            blocks_per_sm=2,
            loop_bounds=(GivenBound("L", 4), GivenBound("N", 7, True, f"{tmp_path / 'bounds.csv'}:1", "k")),
            classes=Classes("modern", {"ld": "L"}, "C"),
            take={"M": "fall"},
            trace=(Step("O", 0, f"{tmp_path / 't.txt'}:1"),),
            arch="compute_80",
            dependences=Dependences.BLOCKING,
            latencies={"global": GivenRange(None, 900)},
        ),
        Machine.of({"C": 2, "L": 1, "S": 1, "D": 1, "T": 1}),
        "why",
    )


def test_a_bundle_is_found_beside_the_file(tmp_path: Path) -> None:
    (entry,) = files.read(written(tmp_path, KERNEL.replace('kernel = "k.ptx"', 'bundle = "k.json"'))).tasks
    assert entry.source == BundleFile(tmp_path / "k.json")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("machine = 'vega'", ": task a: unknown machine 'vega'; shipped: "),
        ("machine = 'none.toml'", ": task a: "),
        ("machine = 'turing'\ncapacity = { C = 1 }", ": task a: machine and capacity exclude each other"),
        ("capacity = { C = 0 }", ": task a: capacity of C must be 1..1024, not 0"),
        ("capacity = 'C'", ": task a: capacity of C must be a whole number, not ''"),
        ("capacity = 1", ": task a: capacity must be units per class such as { C = 2, L = 1 }, not 1"),
        ("profile = 'x'", ": task a: profile must be one of paper, fermi, modern, not 'x'"),
        ("dependences = 'x'", ": task a: dependences must be one of registers, blocking, not 'x'"),
        ("latency = ['x']", ": task a: a latency is given as global=400, global=300..900 or global=..900, "),
        (
            "machine = 'turing'\nhold = ['x']",
            ": task a: an interval is given as memory=1, memory=1..4 or memory=..4, not 'x'",
        ),
        ("warps = 0", ": task a: warps must be 1..65536, not 0"),
        ("blocks_per_sm = -1", ": task a: blocks_per_sm must be 1..65536, not -1"),
        ("block = 0", ": task a: block must be 1..2147483647, not 0"),
        ("block = [256]", ": task a: block must be a text of 1..500 printable characters, not [256]"),
        ("param = { n = 'x' }", ": task a: param: 'n' must be a number, not 'x'"),
        ("param = 'n=1'", ": task a: param must be a list of texts, not 'n=1'"),
        ("loop_bound = [3]", ": task a: loop_bound must be a text of 1..500 printable characters, not 3"),
    ],
)
def test_bad_options_of_kernels_are_refused(tmp_path: Path, more: str, message: str) -> None:
    assert refusal(written(tmp_path, f"{KERNEL}{more}\n")).startswith(message)


# CSV


HEADER = "name,wcet,evidence,period,deadline,priority,partition,policy"
ROW = "a,200us,measured,10ms,5ms,1,gpu,fixed-priority"


def test_a_csv_file_has_a_task_a_row(tmp_path: Path) -> None:
    rows = f"{HEADER},sms,cycles,param\n{ROW},4,,\n\nb,,datasheet,20ms,20ms,2,gpu,fixed-priority,4,280,\n"
    path = written(tmp_path, rows, "tasks.csv")
    found = files.read(path, clock="1.4GHz", priorities="smaller-first")
    assert [task.name for task in found.tasks] == ["a", "b"]
    assert found.tasks[1].source == GivenCycles(280, "datasheet")
    assert found.partitions[0].sms == 4
    system, _ = ticks(found, {"a": Fraction(1, 5000), "b": Fraction(1, 5000)})
    assert system.by_name["a"].priority == -1


def test_lists_in_a_csv_file_are_parted_by_semicolons(tmp_path: Path) -> None:
    text = "name,kernel,warps,param,capacity,period,deadline,partition,policy\n"
    text += 'a,k.ptx,8,n=1024; m=2,"C=2,L=1",1ms,1ms,gpu,fifo\n'
    (entry,) = files.read(written(tmp_path, text, "tasks.csv")).tasks
    assert isinstance(entry.source, KernelLaunch)
    question = entry.source.question
    assert (question.warps, question.launch.parameters) == (8, {"n": 1024, "m": 2})
    assert entry.source.machine is not None
    assert entry.source.machine.capacities == {"C": 2, "L": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the first line must name the columns, such as name,wcet,evidence,period,deadline"),
        (HEADER, ": a task file has 1..1000 tasks, not 0"),
        (f"{HEADER}\n{ROW},x", ":2: 9 cells for 8 columns"),
        (f"{HEADER}\na,200us", ":2: 2 cells for 8 columns"),
        (f"{HEADER},name\n{ROW},a", ":1: column 'name' is there twice"),
        (f"{HEADER}\n{ROW.replace('10ms', '10')}", ":2: task a: period: '10' lacks its unit; one of ps, ns, us, ms, s"),
        (f"{HEADER}\n{ROW.replace('10ms', '0ms')}", ":2: task a: period must be more than zero"),
        (f"{HEADER}\n{ROW}".replace(",", ";"), ":1: one column, 'name;wcet;ev"),
        (
            f"{HEADER.replace('evidence', 'core')}\n{ROW}",
            ":2: task a: who vouches for this wcet? say it in column evid",
        ),
        (f"{HEADER}\n\n{ROW.replace('gpu', '')}", ":3: task a needs a partition: a CSV file has columns partition and"),
        (f"{HEADER}\n{ROW.replace('fixed-priority', '')}", ":2: task a needs a policy: a CSV file has columns"),
        (
            f"{HEADER}\n{ROW.replace(',1,', ',x,')}",
            ":2: task a: priority must be a whole number of at most 1e9, not 'x'",
        ),
        (
            f"{HEADER}\n{ROW}\n{ROW.replace('a,', 'b,').replace('fixed-priority', 'edf')}",
            ":3: partition gpu has another",
        ),
        (f"{HEADER.replace('wcet', 'wecet')}\n{ROW}", ":2: task a: unknown key 'wecet'; known: name, period"),
        (f'{HEADER}\n"{ROW}', ": not a CSV task file: unexpected end of data"),
        (f"{HEADER}\n{ROW}", ": task a has priority 1, and nothing says what this means: give priorities"),
    ],
)
def test_bad_csv_is_refused_by_one_line_with_its_number(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(written(tmp_path, text, "tasks.csv")).startswith(message)


def test_options_beside_csv_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}\n{ROW}\n", "tasks.csv")
    with pytest.raises(InputError, match="--clock: '1' lacks its unit"):
        files.read(path, clock="1", priorities="larger-first")
    with pytest.raises(InputError, match="--priorities must be one of larger-first"):
        files.read(path, priorities="big")


# Ticks and priorities


def test_cycles_of_an_odd_clock_stay_exact(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, GOOD.replace("1.4GHz", "1.35GHz")))
    assert found.clock is not None
    system, tick = ticks(found, {"a": Fraction(1, 5000), "b": 280 / found.clock})
    assert tick == Fraction(1, 54 * 10**12)
    assert system.by_name["b"].wcet * tick == Fraction(280, 1_350_000_000)


def test_with_a_given_tick_only_execution_times_are_rounded_up(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, 'tick = "1us"\n' + GOOD))
    system, tick = ticks(found, {"a": Fraction(1, 5000), "b": Fraction(1, 1_300_000)})
    assert tick == Fraction(1, 10**6)
    assert [task.wcet for task in system.tasks] == [200, 1]
    assert [task.period for task in system.tasks] == [10_000, 20_000]


def test_times_without_a_common_measure_are_refused_with_the_remedy(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, GOOD))
    with pytest.raises(InputError, match='too fine to count with: give a longer tick, such as tick = "1ns"'):
        ticks(found, {"a": Fraction(1, 1_000_000_007), "b": Fraction(1, 1_000_000_009)})


@given(st.lists(st.fractions(min_value=Fraction(1, 10**12), max_value=100), min_size=1, max_size=5))
def test_every_time_is_a_whole_number_of_common_ticks(times: list[Fraction]) -> None:
    tick = common_tick(times)
    assert all((time / tick).denominator == 1 for time in [*times, Fraction(1, 10**12)])


@pytest.mark.parametrize(("convention", "ranks"), [("larger-first", [2, 1]), ("smaller-first", [-2, -1])])
def test_given_priorities_mean_what_the_file_says(tmp_path: Path, convention: str, ranks: list[int]) -> None:
    found = files.read(written(tmp_path, GOOD.replace("larger-first", convention)))
    system, _ = ticks(found, dict.fromkeys("ab", Fraction(1, 1000)))
    assert [task.priority for task in system.tasks] == ranks


@pytest.mark.parametrize(
    ("convention", "deadline", "a_first"),
    [
        ("rate-monotonic", "5ms", True),
        ("rate-monotonic", "30ms", True),
        ("deadline-monotonic", "5ms", True),
        ("deadline-monotonic", "30ms", False),
    ],
)
def test_monotonic_priorities_follow_from_the_times(
    tmp_path: Path, convention: str, deadline: str, a_first: bool
) -> None:
    text = GOOD.replace("larger-first", convention).replace("priority = 2\n", "").replace("priority = 1\n", "")
    found = files.read(written(tmp_path, text.replace('"5ms"', f'"{deadline}"')))
    system, _ = ticks(found, dict.fromkeys("ab", Fraction(1, 1000)))
    a, b = (task.priority or 0 for task in system.tasks)
    assert (a > b) is a_first


def test_equal_periods_have_equal_monotonic_priorities(tmp_path: Path) -> None:
    text = GOOD.replace("larger-first", "rate-monotonic").replace("priority = 2\n", "").replace("priority = 1\n", "")
    found = files.read(written(tmp_path, text.replace('"10ms"', '"20ms"')))
    system, _ = ticks(found, dict.fromkeys("ab", Fraction(1, 1000)))
    assert system.tasks[0].priority == system.tasks[1].priority
