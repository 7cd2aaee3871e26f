"""The yardstick of refactorings: digests of a fixed set of answers, of which a change that is none must change none.

    python tools/same.py -o before.tsv                   # about two minutes on one core
    python tools/same.py -o after.tsv                    # after the change
    python tools/same.py --compare before.tsv after.tsv  # what differs; exit code 1 if anything does
    python tools/same.py --show 'capacities 7'           # what is digested of an answer, to see how it differs

A line is `name<TAB>numbers<TAB>witness<TAB>evidence<TAB>words`: what is asked, and a digest each of the bounds and who
proves them, of the schedules, of what else a bundle holds or a command writes, and of the text that a user reads.
Versions and seconds are left out of all of them, and sentences of all but the words.

Nothing depends on how fast a machine is, or on what else it does: time passes by being asked for, a little at every
look at a clock, so that a limit buys the same work everywhere. Each question starts at zero, and solvers have one
thread. What a solver of floating-point numbers finds may differ between two machines, so compare on one. Where a limit
ends the work, a change of how often somebody looks at the clock shows, too; such questions are those of kernels on real
machines.
"""

import argparse
import json
import os
import random
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from hashlib import sha256
from io import StringIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
SECONDS_PER_LOOK = 1 / 1024
"""A power of two, so that differences of times are exact."""


class Clock:
    """Time that passes by being asked for."""

    looks = 0

    def __call__(self) -> float:
        """Seconds since the question was asked."""
        self.looks += 1
        return self.looks * SECONDS_PER_LOOK


CLOCK = Clock()
_start = threading.Thread.start


def _start_and_wait(thread: threading.Thread) -> None:
    """Start a thread and wait until it ends, but for those of a pool, which wait for work.

    Who starts one for a solver looks at the clock until it ends, and how often depends on the machine.
    """
    _start(thread)
    if not thread.name.startswith("ThreadPoolExecutor"):
        thread.join()


# By now the standard library has taken its own clock; what is imported below takes this one.
patch.multiple(time, monotonic=CLOCK, thread_time=CLOCK).start()
patch.object(threading.Thread, "start", _start_and_wait).start()
sys.path.insert(0, str(ROOT))

import makespan  # noqa: E402
from benchmarks import gpu_exhaustive, schedulability_exhaustive, small_instances  # noqa: E402
from makespan import cli  # noqa: E402
from makespan.deadlines.analysis import analyse  # noqa: E402
from makespan.model.simulate import POLICIES, run  # noqa: E402
from makespan.model.strings import read_instances  # noqa: E402
from makespan.report.gpu import text as gpu_text  # noqa: E402
from makespan.report.gpu.bundle import gpu_bundle as gpu_bundle  # noqa: E402
from makespan.report.result import text  # noqa: E402
from makespan.report.result.bundle import result_bundle  # noqa: E402
from makespan.verify import parse, verify  # noqa: E402

SEED = 1
SMALL, GPUS, TASK_SETS = 145, 12, 30
"""How many random questions there are of each kind."""

REFERENCES = 8
"""Of every how many reference strings one is asked; all of them take minutes."""

BESIDES = {"policies": 10, "certificate": 20, "search": 20, "cpsat": 60, "ilp": 60}
"""Of every how many small instances all policies are run, or another backend is asked."""

COLUMNS = ("numbers", "witness", "evidence", "words")
LEFT_OUT = {"seconds", "best_case_seconds", "versions", "sha256", "assumptions"}
"""Keys of documents: times and what depends on them, versions, and words that are among the words anyway."""

TIMES = re.compile(r'\b\d+\.\d+ s\b|\b\d+:\d\d:\d\d\b|(?<=,)\d+\.\d+$|(?<=seconds": )[\d.e-]+', re.MULTILINE)
PROGRESS = re.compile(r"^\d+:\d\d:\d\d  .*\n", re.MULTILINE)
EVIDENCE = "evidence.json"
FOLDERS = ("ptx", "examples", "instruction_strings", "benchmarks")
"""What commands read, from the folder in which they run."""

FILES = {
    "gate.toml": 'clock = "1.4GHz"\nblock = 256\n[[sweep]]\nsource = "ptx/vecadd.ptx"\ndeadline = "200ns"\n'
    '[[sweep]]\nsource = "ptx/fir.ptx"\ndeadline = "600ns"\n',
}
"""The same, where no folder has it."""

OF_KERNEL = {
    "matmul_tiled.ptx": "--block 16x4 --param 3=16",
    "nbody.ptx": "--block 64 --param 2=5",
    "nearest_point.ptx": "--block 64 --loop-bound '$L__BB0_2=4'",
    "nearest_point_paper.ptx": "--block 64 --loop-bound Loop=4",
    "mandelbrot.ptx": "--block 64 --loop-bound '$L__BB0_1=8'",
    "spmv_csr.ptx": "--block 64 --loop-bound '$L__BB0_3=2'",
}
"""What a kernel needs beside a block of two warps, and what keeps it small."""

_TIMED = ("global=..600", "atomic=..900", "parameter=..100", "special=..50", "shared=..40", "shuffle=..40", "sfu=..40")
REAL = " ".join(f"--latency {one}" for one in _TIMED) + " --time-limit 0.1"
ON_MACHINE = ("--best-case", "--capacity C=2,L=1", f"--machine turing {REAL}", f"--machine ampere-ga10x {REAL}")

_MEASURED = {
    **{f"latency.{unit}": 6 for unit in ("param", "mov", "i32_mul", "setp", "i64", "f32")},
    **{f"delay.{unit}": 1 for unit in ("param", "mov", "i32_mul", "setp", "bra", "i64", "f32", "global")},
    "lat_DRAM": 400,
    "lat_uncoal": 400,
    "band_L1": 32,
    "band_L2": 32,
    "band_uncoal": 32,
}
MEASURED = " ".join(("--worst-case-cache", *(f"--set {key}={value}" for key, value in _MEASURED.items())))
"""What a model wants to know of a GPU that nobody has measured."""

CUBIN = "ptx/polynomial.sm_86.cubin --block 32 --latency global=..600 --warm"
HAVE_JSON = {"estimate", "simulate", "schedulability", "strings", "machines", "verify"}
"""Commands with figures of which there is no evidence."""

COMMANDS = f"""
solve --string CLLCLL --warps 1..8 --capacity C=2,L=1 --best-case
solve --string CCLLCC --warps 1..4 --capacity C=2,L=1 --format csv
solve --string 'L()L()C(1,2)@4+2' --warps 3 --machine examples/partitioned.toml --bundle {EVIDENCE}
solve --string 'L()C(1)|L()C(3)' --warps 2 --machine examples/partitioned.toml --bundle {EVIDENCE}
solve --string CLCCL --warps 4 --machine examples/slow.toml --timeline --gantt slow.json --gantt slow.csv
solve --string LCCLCCCLCL --warps 8 --capacity C=2,L=1 --deadline 35cycles --gantt late.trace.json
solve --string CLLCLL --warps 2 --machine pascal-gp100 --scheduler fair --bundle {EVIDENCE}
solve --string CLXC --warps 2
solve --string CLLCLL --warps 2 --grid 100 --sms 4 --blocks-per-sm 2 --deadline 300ns --clock 1GHz --bundle {EVIDENCE}
solve instruction_strings/paper.toml
solve instruction_strings/known_worst_cases.toml
solve ptx/vecadd.ptx --block 256 --deadline 200ns --clock 1.4GHz
solve ptx/vecadd.ptx --block 256 --grid 4096 --sms 46 --blocks-per-sm 6 --time-limit 0.2 --bundle {EVIDENCE}
solve ptx/reduction.ptx --block 256 --blocks-per-sm 2 --time-limit 0.2 --bundle {EVIDENCE}
solve ptx/nearest_point_paper.ptx
solve ptx/vecadd.cu --block 64 --param n=64 --arch sm_86 --warm {REAL} --bundle {EVIDENCE}
solve ptx/reduction.cu --block 64 --time-limit 0.2 --bundle {EVIDENCE}
solve {CUBIN} --blocks-per-sm 1 --deadline 1us --clock 1.4GHz --bundle {EVIDENCE}
solve {CUBIN} --blocks-per-sm 1 --grid 46 --gpu rtx-3070 --bundle {EVIDENCE}
solve ptx/polynomial.sm_86.cubin --block 32 --grid 99 --gpu rtx-3070 --warm --latency global=..450+dram --time-limit 0.2
solve examples/launches.toml --gpu rtx-3070 --time-limit 0.2 --bundle {EVIDENCE}
solve examples/launches.toml --gpu rtx-3070 --assignment modulo
solve ptx/reduction.sm_75.cubin --block 64 --blocks-per-sm 1 --warm {REAL} --bundle {EVIDENCE}
solve ptx/reduction.sm_90.cubin --block 64 --blocks-per-sm 1 --warm {REAL} --bundle {EVIDENCE}
solve ptx/reduction.sm_120.cubin --block 64 --blocks-per-sm 1 --warm {REAL} --bundle {EVIDENCE}
strings ptx/reduction.sm_80.cubin --listing
strings ptx/reduction.sm_100.cubin --block 256 --latency global=..600 --warm
strings ptx/divergent.ptx --dot
strings ptx/spmv_csr.ptx --bounds-template
strings ptx/reduction.sm_86.cubin --bounds-template
simulate --string CLLCLL --warps 6
simulate --string CCLLCLC --warps 7 --capacity C=2,L=1 --policy two-level --group-size 2 --gantt run.json
simulate ptx/vecadd.ptx --block 256 --policy gto
simulate ptx/divergent.ptx --warps 4 --policy random --route random --seed 7
simulate {CUBIN} --blocks-per-sm 1 --policy lrr --ranges random
compare --string LLLLCCCC --warps 1..6 -o compare.csv -o compare.json
export --string CLLCLL --warps 2 --model lp -o model.lp
export --string CLLCLL --warps 2 --model cp -o model.txt
report ptx/polynomial.ptx --warps 4 -o page.html
gate gate.toml --junit gate.xml
schedulability examples/tasks.toml --sensitivity
schedulability examples/pipeline.toml
schedulability examples/gcaps.toml
schedulability examples/gpu_tasks.toml --fewest-sms
estimate --method hong-kim ptx/vecadd.ptx --block 128 --grid 80 --gpu quadro-fx5600 --set mem_ld=500
estimate --method hong-kim ptx/matmul_tiled.ptx --gpu quadro-fx5600 --block 16x16 --grid 80 --regs 18 --param 3=128
estimate --method hong-kim --counts comp=27,uncoal=6,coal=0,synch=6 --gpu isca09-example --grid 80 --block 128
estimate --method kleimenov-popova ptx/vecadd.ptx --gpu gtx1050 --grid 20 --block 64 --regs 32 --expr {MEASURED}
estimate --method dual-issue ptx/polynomial.ptx --block 256 --grid 104 --param 3=26624
estimate --method cost-table --expr 'm.\\(x,y){{ x + m[x,y] }}' --array m:float:4096x4096 --table rmbp-gt650m
estimate --compare ptx/vecadd.ptx --block 128 --grid 80 --param 3=10240 --gpu quadro-fx5600 --regs 10
benchmark check benchmarks/library --family paper
benchmark table benchmarks/library --family paper
machines
machines ampere-ga10x
machines --gpus
machines --gpus h100-pcie
solve --help
simulate --help
schedulability --help
estimate --help
verify missing.json
"""
"""Command lines, of all commands that answer without a device or a server."""

Question: TypeAlias = Callable[[], "Answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is digested, as plain data; None where there is no such thing."""

    numbers: Any = None
    witness: Any = None
    evidence: Any = None
    words: str = ""

    def digests(self) -> list[str]:
        """One for each column."""
        values = (json.dumps(getattr(self, column), sort_keys=True) for column in COLUMNS)
        return [sha256(value.encode()).hexdigest()[:16] for value in values]


def of_bundle(found: Mapping[str, Any], told: str) -> Answer:
    """A result with its evidence; what the independent checker says of that is among the words."""
    rest, said = dict(found), _plain(verify(parse(json.dumps(found).encode())))
    claim, witness = rest.pop("result"), [rest.pop("witness"), rest.pop("shortest", None)]
    del said["claim"]  # the same once more, with its seconds
    words = "\n".join((_timeless(told), json.dumps([claim["assumptions"], said])))
    return Answer(_figures(claim), witness, _figures(rest), words)


def solved(instance: makespan.Instance, backend: str = "auto") -> Answer:
    """The worst and the best case of an instance."""
    found = makespan.solve(instance, backend=backend, best_case=True, limits=makespan.Limits(10.0, 1 << 28))
    return of_bundle(result_bundle(found), text.result_report(found))


def simulated(instance: makespan.Instance) -> Answer:
    """What each policy does."""
    runs = {name: run(instance, name) for name in POLICIES}
    return Answer({name: schedule.makespan for name, schedule in runs.items()}, _plain(runs))


def launched(gpu: makespan.GpuInstance) -> Answer:
    """The worst and the best case of a whole GPU."""
    found = makespan.solve_gpu(gpu, best_case=True, limits=makespan.Limits(10.0, 1 << 28))
    return of_bundle(gpu_bundle(found), gpu_text.gpu_report(found))


def analysed(draw: random.Random, kind: str) -> Answer:
    """The bounds of a random task set, and jobs that are late."""
    recipe = schedulability_exhaustive.KINDS[kind]
    return Answer(_plain(analyse(schedulability_exhaustive.system(draw, recipe))))


def printed(line: str) -> Answer:
    """What a command prints and writes in this folder, which is left as it was.

    Where it writes no bundle, the numbers are what it prints as JSON.
    """
    known = set(Path().iterdir())
    told, figures = _ran(line), None
    if line.split()[0] in HAVE_JSON and "--help" not in line:
        rows = _ran(f"{line} --format json").splitlines()
        figures = [_figures(json.loads(row)) for row in rows if row.startswith(("{", "["))]
    written = {path.name: path.read_text() for path in sorted(set(Path().iterdir()) - known)}
    for name in written:
        Path(name).unlink()
    if EVIDENCE in written:
        return of_bundle(json.loads(written[EVIDENCE]), told)
    return Answer(figures, None, {name: _timeless(content) for name, content in written.items()}, _timeless(told))


def _ran(line: str) -> str:
    """What a command prints, on either stream, and its exit code."""
    CLOCK.looks = 0
    told = StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        code = cli.run(shlex.split(line))
    return f"{told.getvalue()}exit code {code}"


def _timeless(words: str) -> str:
    """Words without what is told while something is under way, how long it took, and who says so."""
    return TIMES.sub("...", PROGRESS.sub("", words)).replace(makespan.__version__, "...")


def _figures(document: Any) -> Any:
    """A document without what is left out, and without sentences; names of theorems and engines stay."""
    if isinstance(document, dict):
        return {key: _figures(value) for key, value in document.items() if key not in LEFT_OUT}
    if isinstance(document, list):
        return list(map(_figures, document))
    return None if isinstance(document, str) and " " in document else document


def _plain(value: Any) -> Any:
    """A value as plain data, whatever its type is called and wherever that lives."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(item)] for key, item in value.items()]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(map(_plain, value))
    return value if isinstance(value, bool | int | float | None) else str(value)


def questions() -> Iterator[tuple[str, Question]]:
    """All that is asked, by name."""
    references = read_instances(ROOT / "instruction_strings" / "reference.jsonl")
    for number, named in islice(enumerate(references, 1), 0, None, REFERENCES):
        yield f"reference {number}", partial(solved, named.instance)
    turn = 0
    for kind, number, draw in _draws(small_instances.KINDS, SMALL):
        instance, turn = small_instances.KINDS[kind](draw), turn + 1
        yield f"{kind} {number}", partial(solved, instance)
        for who in (who for who, every in BESIDES.items() if turn % every == 0):
            asked = partial(simulated, instance) if who == "policies" else partial(solved, instance, who)
            yield f"{kind} {number}, {who}", asked
    for kind, number, draw in _draws(gpu_exhaustive.KINDS, GPUS):
        yield f"GPU, {kind} {number}", partial(launched, gpu_exhaustive.instance(draw, gpu_exhaustive.KINDS[kind]))
    for kind, number, draw in _draws(schedulability_exhaustive.KINDS, TASK_SETS):
        yield f"tasks, {kind} {number}", partial(analysed, draw, kind)
    for line in commands():
        yield line, partial(printed, line)


def _draws(kinds: Mapping[str, object], count: int) -> Iterator[tuple[str, int, random.Random]]:
    """Random numbers for each question, which depend on its kind and its number alone."""
    for number in range(count):
        for kind in kinds:
            yield kind, number, random.Random(f"{SEED} {kind} {number}")


def commands() -> Iterator[str]:
    """All command lines: every kernel in PTX on several machines, then the others."""
    for path in sorted((ROOT / "ptx").glob("*.ptx")):
        asked = f"ptx/{path.name} {OF_KERNEL.get(path.name, '--block 64')}"
        yield f"strings {asked} --listing"
        yield from (f"solve {asked} {machine} --bundle {EVIDENCE}" for machine in ON_MACHINE)
    yield from filter(None, COMMANDS.splitlines())


def answered(question: Question) -> Answer:
    """The answer, or how it is refused."""
    CLOCK.looks = 0
    try:
        return question()
    except makespan.MakespanError as error:
        return Answer(words=f"{type(error).__name__}: {error}")


def differences(one: Path, other: Path) -> Iterator[str]:
    """A line for each name of which the two files do not say the same."""
    before, after = (
        {name: digests for name, *digests in (line.split("\t") for line in path.read_text().splitlines())}
        for path in (one, other)
    )
    for name in {**before, **after}:
        if name not in before or name not in after:
            yield f"{name}: only in {one if name in before else other}"
        elif before[name] != after[name]:
            rows = zip(COLUMNS, before[name], after[name], strict=True)
            yield f"{name}: {', '.join(column for column, old, new in rows if old != new)}"


def main() -> int:
    """Ask, show or compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--output", type=Path, metavar="FILE", help="ask everything and write the digests")
    what.add_argument("--show", metavar="NAME", help="print the answer to one question")
    what.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help="print what differs between two files")
    given = parser.parse_args()
    if given.compare:
        found = list(differences(*given.compare))
        print("\n".join([*found, f"{len(found)} answers differ"]))
        return int(bool(found))
    output = given.output and given.output.resolve()
    with TemporaryDirectory() as name:
        os.chdir(name)
        os.environ.update(COLUMNS="80", NO_COLOR="1", XDG_CACHE_HOME=str(Path(name, "cache")))
        Path("cache").mkdir()
        for folder in FOLDERS:
            Path(folder).symlink_to(ROOT / folder)
        for file, content in FILES.items():
            Path(file).write_text(content)
        asked = ((name, question) for name, question in questions() if given.show in (None, name))
        if output is None:
            print(json.dumps([asdict(answered(question)) for _, question in asked], indent=1))
        else:
            rows = ("\t".join([name, *answered(question).digests()]) for name, question in asked)
            output.write_text("".join(f"{row}\n" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
