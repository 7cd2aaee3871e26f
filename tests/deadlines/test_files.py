"""Task files: what is read, exactly, and what is refused, each in one line that names the file."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan import KernelQuestion, Launch, Limits, Machine
from makespan.deadlines import files
from makespan.deadlines.chains import predecessors
from makespan.deadlines.description import (
    BundleFile,
    CpuEntry,
    Description,
    ExecutionTime,
    GivenCycles,
    GivenTime,
    KernelLaunch,
    Priorities,
    ServedEntry,
    TaskEntry,
    TimeSource,
    common_tick,
    task_set,
)
from makespan.deadlines.task import ChainStart, HostWait, SegmentKind, ServerPolicy, TaskSet
from makespan.deadlines.wcet import Solver, execution_times, wcet_key
from makespan.host.errors import InputError
from makespan.kernels import toml_table
from makespan.kernels.flow import GivenBound, TraceStep
from makespan.kernels.ptx import Classes, Dependences
from makespan.model.machine import GivenRange
from tests.effort import calls


def ticks(found: Description, seconds: Mapping[str, Fraction]) -> tuple[TaskSet, Fraction]:
    return task_set(found, {name: ExecutionTime(time) for name, time in seconds.items()})


def source(entry: TaskEntry) -> TimeSource:
    """Of its only kernel."""
    (kernel,) = entry.executions.values()
    return kernel.source


def kernels(system: TaskSet) -> list[int]:
    """The execution times of the only kernel of each task, in ticks."""
    return [segment.wcet for task in system.tasks for segment in task.of(SegmentKind.KERNEL)]


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
wait = "block"
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
activation = "periodic"
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
    assert source(a) == GivenTime(Fraction(1, 5000), "measured by nobody")
    assert source(b) == GivenCycles(280, "the vendor's word")
    assert (a.period, a.deadline, a.jitter) == (Fraction(1, 100), Fraction(1, 200), Fraction(1, 10**6))
    assert a.offset == 0
    assert b.offset is None
    assert (a.segments[0], a.segments[2]) == (CpuEntry(Fraction(1, 10**6)), CpuEntry(Fraction(2, 10**6)))
    assert (a.core, a.wait) == ("cpu0", HostWait.BLOCK)
    assert (found.partitions[0].partition.policy, found.partitions[0].sms) == (ServerPolicy.FIXED_PRIORITY, 2)
    assert (found.chains[0].tasks, found.chains[0].activation) == (("a", "b"), ChainStart.PERIODIC)
    system, tick = ticks(found, {"a": Fraction(1, 5000), "b": Fraction(280, 1_400_000_000)})
    assert tick == Fraction(1, 10 * 10**12)  # ten in the picosecond, as a job of a has three segments
    assert kernels(system) == [2_000_000_000, 2_000_000]
    assert system.chains[0].deadline == 400 * 10**9


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
            ": priorities must be one of larger-first, smaller-first, rate-monotonic, deadline-monotonic, audsley, not"
            " 'high'",
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
        (
            "jitter",
            "jiter",
            ": task a: unknown key 'jiter'; did you mean 'jitter'? known: name, period, deadline, jitter,",
        ),
        (
            "clock =",
            "klock =",
            ": the file: unknown key 'klock'; did you mean 'clock'? known: gpu, clock, tick, ",
        ),
        ("sms =", "sm =", ": partition gpu: unknown key 'sm'; did you mean 'sms'? known: name, policy, sms"),
        ("sms = 2", "sms = 0", ": partition gpu: sms must be 1..4096, not 0"),
        (
            'policy = "fixed-priority"\n',
            "",
            ": partition gpu has no policy: give one of fixed-priority, edf, edf-release, fifo",
        ),
        (
            '"fixed-priority"',
            '"rr"',
            ": partition gpu: policy must be one of fixed-priority, edf, edf-release, fifo, time-sliced, not 'rr'",
        ),
        ('tasks = ["a", "b"]', 'tasks = ["a", "b", "a"]', ": chain c is cyclic: it comes back to task a; a chain"),
        ('tasks = ["a", "b"]', 'tasks = ["a", "x"]', ": chain c names an unknown task x"),
        ('tasks = ["a", "b"]', "tasks = []", ": chain c has no task"),
        ('tasks = ["a", "b"]', "tasks = [1]", ": chain c: tasks must be a text of 1..500 printable characters, not 1"),
        ('activation = "periodic"\n', "", ": chain c has no activation"),
        ('activation = "periodic"', 'activation = "x"', ": chain c: activation must be one of periodic, data, not 'x'"),
        ('deadline = "40ms"', 'deadline = "0ms"', ": chain c: deadline must be more than zero"),
        ('name = "b"', 'name = "a"', ": two tasks are named a; names must differ"),
        ('name = "b"\n', "", ": a task has no name: it has 'cycles', 'evidence', 'period', 'deadline', 'priority',"),
        (
            'name = "b"',
            'name = "b\\u001b[31m"',
            ": the name of a task must be 1..80 printable characters, not 'b\\x1b[31m'",
        ),
        ('clock = "1.4GHz"', "clock = 1.4", ': clock needs a unit: write a frequency such as "1.4GHz", not 1.4'),
        ('clock = "1.4GHz"', 'tick = "0ps"', ": tick must be more than zero"),
        ('clock = "1.4GHz"', "tick = 3", ': tick needs a unit: write a time such as "200us", not 3'),
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
    most = written(tmp_path, "\n".join(f"[x{number}]\n{line} = 1" for number in range(150)))
    assert calls(lambda: refusal(most), most=20 * most.stat().st_size)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing.toml") == ": cannot read the task file: No such file or directory"
    (tmp_path / "folder.toml").mkdir()
    assert refusal(tmp_path / "folder.toml") == ": cannot read the task file: Is a directory"
    assert refusal(tmp_path) == ": unknown kind of task file; the name ends in .toml or .csv"
    assert refusal(tmp_path / "tasks.xlsx") == ": unknown kind of task file; the name ends in .toml or .csv"
    (tmp_path / "bytes.toml").write_bytes(b"\xff\x80")
    assert refusal(tmp_path / "bytes.toml") == ": cannot read the task file: it is not UTF-8 text"
    (tmp_path / "large.toml").write_bytes(b"\n" * (toml_table.MAX_FILE_BYTES + 1))
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
    whole = data.draw(st.sampled_from([GOOD, PIPELINE]))
    at = data.draw(st.integers(0, len(whole)))
    text = whole[:at] + data.draw(st.sampled_from(["", '"', "=", "[[", "]]", "\n", "0", "é", "-"]))
    text += whole[data.draw(st.integers(at, len(whole))) :]
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
    assert source(entry) == KernelLaunch(
        KernelQuestion(
            tmp_path / "k.ptx",
            entry="k",
            launch=Launch((16, 16, 1), (8, 1, 1), {"n": 1024, "x": 0.5}),
            blocks_per_sm=2,
            loop_bounds=(GivenBound("L", 4), GivenBound("N", 7, True, f"{tmp_path / 'bounds.csv'}:1", "k")),
            classes=Classes("modern", {"ld": "L"}, "C"),
            take={"M": "fall"},
            trace=(TraceStep("O", 0, f"{tmp_path / 't.txt'}:1"),),
            arch="compute_80",
            dependences=Dependences.BLOCKING,
            latencies={"global": GivenRange(None, 900)},
        ),
        Machine.of({"C": 2, "L": 1, "S": 1, "D": 1, "T": 1}),
        "why",
    )


def test_a_bundle_is_found_beside_the_file(tmp_path: Path) -> None:
    (entry,) = files.read(written(tmp_path, KERNEL.replace('kernel = "k.ptx"', 'bundle = "k.json"'))).tasks
    assert source(entry) == BundleFile(tmp_path / "k.json")


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
            ": task a: an interval is given as memory=2, memory=2..4 or memory=..4, not 'x'",
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


# Segments


PIPELINE = """
priorities = "larger-first"
launch_delay = "10us"
launch_evidence = "traced"

[[partition]]
name = "gpu"
policy = "fifo"

[[partition]]
name = "sm0"
policy = "edf"

[[copy_engine]]
name = "h2d"
policy = "fixed-priority"

[[task]]
name = "camera"
period = "20ms"
deadline = "20ms"
priority = 1
core = "cpu0"
wait = "spin"
partition = "gpu"
launch_delay = "20us"
launch_evidence = "traced here"
segments = [
    { cpu = "1ms" },
    { copy = "200us", engine = "h2d", evidence = "6 MB", launch_delay = "0s", launch_evidence = "a graph" },
    { wcet = "3ms", evidence = "measured", partition = "sm0" },
    { kernel = "k.ptx", warps = 8 },
    { cpu = "2ms" },
]

[[task]]
name = "isp"
period = "20ms"
deadline = "20ms"
partition = "gpu"
wcet = "4ms"
evidence = "measured"

[[task]]
name = "log"
period = "50ms"
deadline = "50ms"
priority = 0
core = "cpu0"
cpu = "5ms"

[[chain]]
name = "c"
tasks = ["camera", "isp"]
activation = "data"
"""


def test_a_job_runs_through_its_segments(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, PIPELINE))
    ms = Fraction(1, 1000)
    system, tick = ticks(found, {"camera[1]": ms / 5, "camera[2]": 3 * ms, "camera[3]": ms / 7, "isp": 4 * ms})
    camera, isp, log = system.tasks
    assert [(str(s.kind), s.resource, s.wcet * tick / ms, s.delay * tick / ms) for s in camera.segments] == [
        ("cpu", None, 1, 0),
        ("copy", "h2d", Fraction(1, 5), 0),
        ("kernel", "sm0", 3, Fraction(1, 50)),
        ("kernel", "gpu", Fraction(1, 7), Fraction(1, 50)),
        ("cpu", None, 2, 0),
    ]
    assert [(str(s.kind), s.resource, s.delay * tick / ms) for s in isp.segments] == [
        ("kernel", "gpu", Fraction(1, 100))
    ]
    assert log.cpu * tick == 5 * ms
    assert (camera.wait, camera.core, log.wait) == (HostWait.SPIN, "cpu0", None)
    assert [(engine.name, engine.policy) for engine in system.engines] == [("h2d", ServerPolicy.FIXED_PRIORITY)]
    assert [part.launch and part.launch.evidence for part in found.executions.values()] == [
        "a graph",
        "traced here",
        "traced here",
        "traced",
    ]
    assert tick == ms / 7 / 10**9 / 22  # six segments are one after the other


UNITS = {"ps": 10**12, "us": 10**6, "ms": 1000}


@given(
    st.lists(
        st.tuples(st.sampled_from(["cpu", "copy", "wcet"]), st.integers(1, 999), st.sampled_from(list(UNITS))),
        min_size=1,
        max_size=6,
    )
)
def test_segments_keep_their_order_and_their_times_exactly(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, int, str]]
) -> None:
    keys = {"cpu": "", "copy": ', engine = "h2d", evidence = "e"', "wcet": ', partition = "gpu", evidence = "e"'}
    listed = ", ".join(f'{{ {kind} = "{number}{unit}"{keys[kind]} }}' for kind, number, unit in parts)
    head = PIPELINE[: PIPELINE.index("[[task]]")].replace("10us", "0.7ps")
    text = (
        f'{head}[[task]]\nname = "a"\nperiod = "9s"\ndeadline = "9s"\npriority = 1\ncore = "c"\nsegments = [{listed}]'
    )
    found = files.read(written(tmp_path_factory.getbasetemp(), text))
    seconds = [Fraction(number, UNITS[unit]) for _, number, unit in parts]
    assert [str(part.kind) if isinstance(part, ServedEntry) else "cpu" for part in found.tasks[0].segments] == [
        kind.replace("wcet", "kernel") for kind, _, _ in parts
    ]
    times = {key: wcet.time() for key, wcet in execution_times(found, Solver(Limits)).items()}
    system, tick = task_set(found, times)
    assert [segment.wcet * tick for segment in system.tasks[0].segments] == seconds
    delays = [segment.delay * tick for segment in system.tasks[0].of(SegmentKind.COPY, SegmentKind.KERNEL)]
    assert delays == [Fraction(7, 10**13)] * len(times)


def test_execution_times_are_named_by_task_or_by_segment(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, PIPELINE))
    assert list(found.executions) == ["camera[1]", "camera[2]", "camera[3]", "isp"]
    system, _ = ticks(found, dict.fromkeys(found.executions, Fraction(1, 1000)))
    assert [wcet_key(system.by_name["camera"], index) for index in (1, 2, 3)] == ["camera[1]", "camera[2]", "camera[3]"]
    assert wcet_key(system.by_name["isp"], 0) == "isp"


def test_segments_may_be_tables_of_their_own(tmp_path: Path) -> None:
    listed = 'segments = [{ cpu = "1ms" }, { wcet = "1ms", evidence = "e", partition = "g" }]'
    tables = '[[task.segments]]\ncpu = "1ms"\n[[task.segments]]\nwcet = "1ms"\nevidence = "e"\npartition = "g"'
    head = '[[partition]]\nname = "g"\npolicy = "fifo"\n[[task]]\nname = "a"\nperiod = "9ms"\ndeadline = "9ms"\n'
    head = f'priorities = "rate-monotonic"\n{head}core = "c"\nwait = "block"\n'
    one, other = (files.read(written(tmp_path, f"{head}{text}\n")) for text in (listed, tables))
    assert one == other


def test_a_thread_of_which_nothing_is_said_spins(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, PIPELINE.replace('wait = "spin"\n', "")))
    assert [entry.is_assumed_to_spin for entry in found.tasks] == [True, False, False]
    system, _ = ticks(found, dict.fromkeys(found.executions, Fraction(1, 1000)))
    assert [task.wait for task in system.tasks] == [HostWait.SPIN, None, None]


def test_a_file_of_cpu_time_needs_no_partition(tmp_path: Path) -> None:
    text = PIPELINE[PIPELINE.index('[[task]]\nname = "log"') : PIPELINE.index("[[chain]]")]
    found = files.read(written(tmp_path, f'priorities = "larger-first"\n{text}'))
    system, _ = ticks(found, {})
    assert (system.partitions, system.by_name["log"].cpu) == ((), 10 * 10**9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{ cpu = "1ms" }', '{ cpu = "0s" }', "task camera: segments[0]: cpu must be more than zero"),
        ('{ cpu = "1ms" }', "{ cpu = 1 }", 'task camera: segments[0]: cpu needs a unit: write a time such as "200us"'),
        ('{ cpu = "1ms" }', '{ cpi = "1ms" }', "task camera: segments[0]: unknown key 'cpi'; known: cpu, copy, wcet,"),
        (
            '{ cpu = "1ms" }',
            "{}",
            "task camera: segments[0]: it says nothing that a job runs: give exactly one of cpu,",
        ),
        (
            '{ cpu = "1ms" }',
            '{ cpu = "1ms", copy = "1ms" }',
            "task camera: segments[0]: cpu and copy exclude each other: give exactly one of cpu, copy, wcet, cycles,",
        ),
        (
            '{ cpu = "1ms" }',
            '{ cpu = "1ms", engine = "h2d" }',
            "task camera: segments[0]: unknown key 'engine'; known: cpu",
        ),
        ('{ cpu = "1ms" }', '"1ms"', "task camera: segments must be a list of tables such as { cpu = "),
        (
            "segments = [",
            "segments = [" + '{ cpu = "1ms" }, ' * 96,
            "task camera: a job has 1..100 segments, not 101",
        ),
        (
            'engine = "h2d", ',
            "",
            'task camera: segments[1]: the copy has no engine: say which serves it, such as engine = "h2d"',
        ),
        (
            'engine = "h2d", ',
            'engine = "h2d", partition = "gpu", ',
            "task camera: segments[1]: unknown key 'partition'; known: copy, engine, evidence, launch_delay, launch_ev",
        ),
        (
            'engine = "h2d", evidence = "6 MB"',
            'engine = "h2d"',
            'task camera: segments[1]: who vouches for this copy? say it in evidence = "..."',
        ),
        ('engine = "h2d"', 'engine = "d2h"', "task camera runs on an unknown copy engine d2h; there are h2d"),
        ('engine = "h2d"', 'engine = "gpu"', "task camera runs on an unknown copy engine gpu; there are h2d"),
        ('partition = "sm0" }', 'partition = "h2d" }', "task camera runs on an unknown partition h2d; there are gpu, "),
        ('evidence = "measured", partition', "partition", "task camera: segments[2]: who vouches for this wcet? say"),
        (
            "warps = 8 }",
            'warps = 8, engine = "h2d" }',
            "task camera: segments[3]: unknown key 'engine'; known: wcet, cycles, bundle, kernel, partition, evidence,",
        ),
        (
            'name = "h2d"\npolicy = "fixed-priority"',
            'name = "gpu"\npolicy = "fifo"',
            "two partitions or copy engines are named gpu; names must differ",
        ),
        (
            'name = "h2d"\npolicy = "fixed-priority"',
            'name = "h2d"',
            "copy engine h2d has no policy: give one of fixed-priority, edf, edf-release, fifo",
        ),
        (
            'policy = "fixed-priority"',
            'policy = "fifo"\nsms = 1',
            "copy engine h2d: unknown key 'sms'; known: name, policy",
        ),
        (
            "priority = 1\ncore",
            "core",
            "task camera has no priority, and core cpu0 schedules by priorities: give every task a priority, or",
        ),
        ('core = "cpu0"\nwait', "wait", "task camera has CPU time and no core: say which one runs it, such as core ="),
        (
            'core = "cpu0"\ncpu = "5ms"',
            'cpu = "5ms"',
            'task log has CPU time and no core: say which one runs it, such as core = "cpu0"',
        ),
        (
            'cpu = "5ms"',
            'cpu = "5ms"\nwait = "block"',
            "task log: wait has no effect, for its jobs have no copy and no kernel to wait for: leave it out",
        ),
        (
            'wcet = "4ms"',
            'wcet = "4ms"\nwait = "block"',
            "task isp: wait has no effect without a core: say which one its thread is on, or leave it out",
        ),
        ('wait = "spin"', 'wait = "yield"', "task camera: wait must be one of block, spin, not 'yield'"),
        (
            'cpu = "5ms"',
            'cpu = "5ms"\npartition = "gpu"',
            "task log: partition has no effect, for it has no kernel that says none: leave it out",
        ),
        (
            'cpu = "5ms"',
            'cpu = "5ms"\nlaunch_delay = "1us"\nlaunch_evidence = "e"',
            "task log: launch_delay has no effect, for it has no copy and no kernel that says none: leave it out",
        ),
        (
            'cpu = "5ms"',
            'cpu = "5ms"\nwcet = "1ms"',
            "task log: cpu and wcet exclude each other: list what a job runs through in segments",
        ),
        (
            'wait = "spin"',
            'wait = "spin"\nkernel = "k.ptx"',
            "task camera: segments and kernel exclude each other: list what a job runs through in segments",
        ),
        (
            'wait = "spin"',
            'wait = "spin"\ncpu_before = "1ms"',
            "task camera: segments and cpu_before exclude each other: list what a job runs through in segments",
        ),
        (
            'wcet = "4ms"\nevidence = "measured"',
            "",
            "task isp has no execution time: give exactly one of wcet, cycles, bundle, kernel (or cpu =",
        ),
        ('launch_evidence = "traced"\n', "", "the file: who vouches for this launch_delay? say it in launch_evidence"),
        ('launch_evidence = "traced"', 'launch_evidence = " "', "the file: launch_evidence is blank: say who vouches,"),
        (
            'launch_delay = "20us"\n',
            "",
            "task camera: launch_evidence has no effect without launch_delay: give both, or none",
        ),
        (
            ', launch_evidence = "a graph"',
            "",
            "task camera: segments[1]: who vouches for this launch_delay? say it in launch_evidence",
        ),
        ('launch_delay = "20us"', 'launch_delay = "20"', "task camera: launch_delay: '20' lacks its unit; one of ps,"),
        (
            'name = "isp"',
            'name = "camera[2]"',
            "camera[2] is the name of two execution times, for a task with several copies and kernels numbers them so:",
        ),
    ],
)
def test_bad_segments_are_refused_by_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PIPELINE
    found = refusal(written(tmp_path, PIPELINE.replace(old, new, 1).replace('["camera", "isp"]', '["camera"]')))
    assert found.startswith(f": {message}")


TRIO = """
[[partition]]
name = "g"
policy = "fifo"
"""


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        (
            ("ac", "bc"),
            "task c waits for data that go back to a and to b, which arrive by themselves: let one task start",
        ),
        (("ab", "bc", "ca"), "is in a circle of tasks that start each other by data"),
        (("ab", "ac", "bd", "cd"), ""),
    ],
)
def test_chains_by_data_join_where_one_task_starts_all(tmp_path: Path, chains: tuple[str, ...], message: str) -> None:
    text = TRIO + "".join(
        f'[[task]]\nname = "{name}"\nwcet = "1ms"\nevidence = "e"\nperiod = "9ms"\ndeadline = "9ms"\npartition = "g"\n'
        for name in "abcd"
    )
    text += "".join(
        f'[[chain]]\nname = "{names}"\ntasks = {list(names)}\nactivation = "data"\n'.replace("'", '"')
        for names in chains
    )
    path = written(tmp_path, text)
    if message:
        assert message in refusal(path)
    else:
        system, _ = ticks(files.read(path), dict.fromkeys("abcd", Fraction(1, 1000)))
        assert predecessors(system) == {"b": ("a",), "c": ("a",), "d": ("b", "c")}


# CSV


HEADER = "name,wcet,evidence,period,deadline,priority,partition,policy"
ROW = "a,200us,measured,10ms,5ms,1,gpu,fixed-priority"


def test_a_csv_file_has_a_task_a_row(tmp_path: Path) -> None:
    rows = f"{HEADER},sms,cycles,param\n{ROW},4,,\n\nb,,datasheet,20ms,20ms,2,gpu,fixed-priority,4,280,\n"
    path = written(tmp_path, rows, "tasks.csv")
    found = files.read(path, clock="1.4GHz", priorities="smaller-first")
    assert [task.name for task in found.tasks] == ["a", "b"]
    assert source(found.tasks[1]) == GivenCycles(280, "datasheet")
    assert found.partitions[0].sms == 4
    system, _ = ticks(found, {"a": Fraction(1, 5000), "b": Fraction(1, 5000)})
    assert system.by_name["a"].priority == -1


def test_lists_in_a_csv_file_are_parted_by_semicolons(tmp_path: Path) -> None:
    text = "name,kernel,warps,param,capacity,period,deadline,partition,policy\n"
    text += 'a,k.ptx,8,n=1024; m=2,"C=2,L=1",1ms,1ms,gpu,fifo\n'
    (entry,) = files.read(written(tmp_path, text, "tasks.csv")).tasks
    launch = source(entry)
    assert isinstance(launch, KernelLaunch)
    question = launch.question
    assert (question.warps, question.launch.parameters) == (8, {"n": 1024, "m": 2})
    assert launch.machine is not None
    assert launch.machine.capacities == {"C": 2, "L": 1}


def test_truth_values_in_a_csv_file_are_those_of_toml(tmp_path: Path) -> None:
    text = "name,kernel,warps,warm,period,deadline,partition,policy\na,k.cubin,8,{},1ms,1ms,gpu,fifo\n"
    found = {}
    for cell in ("true", "false", ""):
        (entry,) = files.read(written(tmp_path, text.format(cell), "tasks.csv")).tasks
        launch = source(entry)
        assert isinstance(launch, KernelLaunch)
        found[cell] = launch.question.warm
    assert found == {"true": True, "false": False, "": False}
    assert "warm must be true or false, not 'yes'" in refusal(written(tmp_path, text.format("yes"), "tasks.csv"))


def test_a_csv_file_has_cpu_time_threads_and_launches_too(tmp_path: Path) -> None:
    header = "name,wcet,cpu,evidence,launch_delay,launch_evidence,core,wait,period,deadline,partition,policy"
    rows = "a,1ms,,measured,10us,traced,cpu0,block,9ms,9ms,gpu,fifo\nb,,2ms,,,,cpu0,,9ms,9ms,,\n"
    found = files.read(written(tmp_path, f"{header}\n{rows}", "tasks.csv"), priorities="rate-monotonic")
    system, tick = ticks(found, {"a": Fraction(1, 1000)})
    a, b = system.tasks
    assert (a.wait, a.segments[0].delay * tick) == (HostWait.BLOCK, Fraction(1, 100_000))
    assert (b.wait, b.cpu * tick, found.sms) == (None, Fraction(1, 500), {"gpu": 1})


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
        (
            f"{HEADER.replace('wcet', 'wecet')}\n{ROW}",
            ":2: task a: unknown key 'wecet'; did you mean 'wcet'? known: name, period",
        ),
        (
            f"{HEADER},segments\n{ROW},x",
            ":1: column 'segments': a row has one kernel, or CPU time alone; write tasks with copies or several",
        ),
        (f"{HEADER},copy,engine\n{ROW},1ms,e", ":1: column 'copy': a row has one kernel, or CPU time alone; write"),
        (
            "name,cpu,core,period,deadline,priority,partition,policy\na,200us,c,10ms,5ms,1,,fifo",
            ":2: task a has no kernel: leave policy and sms empty, they are of a partition",
        ),
        (
            "name,cpu,core,period,deadline,priority,partition,policy\na,200us,c,10ms,5ms,1,gpu,fifo",
            ":2: task a: partition has no effect, for it has no kernel that says none: leave it out",
        ),
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
    assert tick == Fraction(1, 27 * 10**12) / 10
    assert kernels(system)[1] * tick == Fraction(280, 1_350_000_000)


def test_a_tick_of_the_file_rounds_nothing(tmp_path: Path) -> None:
    found = files.read(written(tmp_path, 'tick = "3us"\n' + GOOD))
    assert found.step == Fraction(3, 10**6)
    times = {"a": Fraction(1, 5000), "b": Fraction(1, 1_300_000)}
    assert ticks(found, times) == ticks(replace(found, step=None), times)


def test_all_digits_that_a_file_can_give_are_counted(tmp_path: Path) -> None:
    """Times with 28 digits after the point, and a clock of 28: nothing is too fine to count with."""
    text = GOOD.replace("1.4GHz", "1.234567890123456789012345679GHz")
    text = text.replace('"10ms"', f'"10.{"0" * 26}1ms"').replace('"1us"', f'"0.{"3" * 28}ps"')
    found = files.read(written(tmp_path, text))
    assert found.clock is not None
    times = {"a": Fraction(1, 5000), "b": 280 / found.clock}
    system, tick = ticks(found, times)
    assert [wcet * tick for wcet in kernels(system)] == list(times.values())
    assert system.tasks[0].period * tick == Fraction(1, 100) + Fraction(1, 10**30)
    assert all(time % system.unit == 0 for task in system.tasks for time in (task.period, task.deadline, task.cpu))


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
