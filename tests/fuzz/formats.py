"""What is read from outside: for each kind of input what reads it, and honest inputs to begin with."""

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
CUBIN = ROOT / "ptx/reduction.sm_86.cubin"
MOST_SEED_BYTES = 20_000


class Format(NamedTuple):
    """A kind of input: what reads a file of it, the end of its name, and where files of it are."""

    read: Callable[[Path], object]
    suffix: str
    seeds: tuple[str | bytes, ...]


def _by(name: str, *rest: str) -> Callable[[Path], object]:
    """A function that takes a path, loaded when it is called."""
    module, _, function = name.partition(":")
    return lambda path: getattr(import_module(f"makespan.{module}"), function)(path, *rest)


def _bytes(name: str) -> Callable[[Path], object]:
    module, _, function = name.partition(":")
    return lambda path: getattr(import_module(f"makespan.{module}"), function)(path.read_bytes())


def _command(*before: str, after: tuple[str, ...] = ()) -> Callable[[Path], object]:
    """A whole command, as a process would run it whose output is strict UTF-8."""

    def read(path: Path) -> object:
        return _run([*before, str(path), *after])

    return read


def _words(*before: str) -> Callable[[Path], object]:
    """Words of a command line, one a line; such as write files are left out."""

    def read(path: Path) -> object:
        lines = path.read_bytes().replace(b"\0", b"").decode("utf-8", "surrogateescape").split("\n")
        return _run(
            [*before, *(f"--{line}" for line in lines if re.match(r"[a-z-]+=", line) and not WRITES.match(line))]
        )

    return read


WRITES = re.compile(r"-*(b|g|keep|h|o|t|machine|class)")


def _run(words: list[str]) -> int:
    from makespan import cli
    from makespan.cli.running import BUG

    out, err = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", "strict"),
        io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"),
    )
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.run(words)
    err.seek(0)
    said = err.read()
    if code == BUG or "Traceback" in said:
        raise AssertionError(f"exit code {code}: {said[:300]}")
    return code


def _bundle(path: Path) -> object:
    """A forger fits the digest."""
    from makespan.verify import digest, parse, verify

    document = parse(path.read_bytes())
    if isinstance(document, dict):
        document = {**document, "sha256": digest(document)}
    return str(verify(document, most_states=2_000))


def _cubin(path: Path) -> object:
    """With NOPs for what nvdisasm says."""
    from makespan.sass import disassembler
    from tests.sass.test_fuzz import nops

    with patch.object(disassembler, "_nvdisasm", nops):
        return disassembler.disassembled(path.read_bytes(), str(path), str(path))


def _nvdisasm(path: Path) -> object:
    """What nvdisasm says of a cubin that is as it should be."""
    from makespan import tool
    from makespan.sass import disassembler

    said = path.read_bytes()

    def ran(command: object, folder: Path, *, output: str | None = None, **_: object) -> tuple[int, str]:
        (folder / str(output)).write_bytes(said)
        return 0, ""

    with patch.object(tool, "run", ran), patch.object(tool, "find", lambda _: Path("x")):
        return disassembler.disassembled(CUBIN.read_bytes(), "k.cubin", "k.cubin")


def _cuobjdump(path: Path) -> object:
    """What cuobjdump lists of a fat binary."""
    from makespan.sass import fatbin

    return fatbin._chosen(fatbin._LISTED.findall(path.read_bytes().decode("utf-8", "replace")), "k.fatbin", None)


def _string(path: Path) -> object:
    from makespan.machine import Machine
    from makespan.strings import parse_string

    return parse_string(path.read_bytes().decode("utf-8", "replace"), Machine.of({"C": 2, "L": 1}))


def _table(path: Path) -> object:
    from makespan.sweep.store import opened

    with opened(path) as store:
        return store.answered(), store.failed(), store.contradicted(), tuple(store.asked())


def _family(path: Path) -> object:
    from makespan.library import collection

    return collection.read(path.parent)


def _samples(path: Path) -> object:
    from makespan.estimators.microbench import samples

    return samples.remarks(path), samples.read(path, samples.LAUNCH)


def _points(path: Path) -> object:
    from makespan.estimators.opencl_cost_table import points_file
    from makespan.estimators.opencl_cost_table.suite import Plan

    return points_file.known(path, type("Device", (), {"name": "d", "driver": "1"})(), Plan())


def _measured(path: Path) -> object:
    from makespan.estimators.dual_issue.device import Sm
    from makespan.estimators.dual_issue.measurements import read

    return read(path, Sm(192, 4, 32))


def _form(path: Path) -> object:
    from makespan.serve.form import question, read

    return question(read(path.read_bytes()), most_seconds=60, compiles=False)


def _solved(*words: str) -> Callable[[Path], bytes]:
    """The bundle of a question, as a seed."""

    def made(folder: Path) -> bytes:
        _run(["solve", *words, "--time-limit", "5", "--bundle", str(folder / "b.json")])
        return (folder / "b.json").read_bytes()

    return made


def _listed(folder: Path) -> bytes:
    """What nvdisasm says, or what stands for it."""
    from makespan import tool
    from makespan.sass import disassembler
    from tests.sass.test_fuzz import nops

    data = CUBIN.read_bytes()
    says = nops if tool.find("nvdisasm") is None else disassembler._nvdisasm
    return json.dumps(says(data, "k.cubin")).encode()


def _swept(folder: Path) -> bytes:
    (folder / "s.toml").write_bytes(SPEC)
    _run(["sweep", str(folder / "s.toml"), "-o", str(folder / "t.sqlite"), "--workers", "1"])
    return (folder / "t.sqlite").read_bytes()


SPEC = b'capacity = "C=1,L=1"\n[[sweep]]\nstring = "CLC"\n[sweep.each]\nwarps = ["1..2"]\n'
ASM = b"""-:-:D:-:05 FFMA R31, R150, R147, R31
-:-:D:-:04 FFMA R27, R150, R146, R27
-:-:D:-:05 FFMA R6,  R149, R146, R6
-:-:D:-:04 FFMA R7,  R148, R147, R7
-:-:D:-:05 FFMA R2,  R149, R147, R2
-:-:D:-:04 FFMA R3,  R148, R146, R3
T:-:D:S:00 LDS.64 R168, [R222+0x400]
"""
PTXAS = b"""ptxas info    : Compiling entry function 'k' for 'sm_75'
ptxas info    : Function properties for k
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 12 registers, 48+16 bytes smem, 368 bytes cmem[0]
"""
RUNS = (
    b'{"schema":"makespan.runs/1","device":{"name":"d","driver":"1","sms":1,"capability":"8.6","clock_khz":1000000,"virtual":false},'
    b'"file":"k.ptx","kernel":"k","code":"00","compiler":"c","grid":[1,1,1],"block":[32,1,1],'
    b'"shared":0,"parameters":{"n":"1"},"seed":1}\n{"number":0,"condition":{"inputs":"zeros","offset":0,"cache":'
    b'"thrashed","neighbours":"idle"},"warps":[[0,0,0,0,5,9]],"others":[1]}\n'
)
LISTED = b"ELF file    1: image.1.sm_86.cubin\nELF file    2: image.2.sm_86.cubin\n"
POINTS = (
    b'{"schema":"makespan.opencl-points/1","device":"d","driver":"1","plan":{"quick":false,"full":false},'
    b'"is_complete":true,"points":{"a":[1.0,0.1,3,1.0,true]}}\n'
)
MEASURED = (
    b"test,key,ops_per_cycle,gap,latency\nlatency,FFMA,,,9.0\nthroughput,FMUL,127.50,,\npattern,1-2-2-1,186.35,,\n"
)
FORM = b'{"kind":"string","source":"CL","warps":"2","loop-bound":"L=3\\nM==4","time-limit":"5","capacity":"C=1,L=1"}'
CSV_TASKS = b"name,wcet,evidence,period,deadline,sms,partition,policy\na,1ms,measured,10ms,5ms,2,p,fifo\n"

WORDS = (
    b"string=CLC\nwarps=1..4\ncapacity=C=2,L=1\nlatency=L=4..9\nhold=L=2\n",
    b"string=CL(1)@4..8|C\nwarps=2\ncapacity=C=1,L=1\ndeadline=200ns\nclock=1.4GHz\nblocks-per-sm=2\nseed=3\n",
    b"string=CLC\nwarps=2\ngpu=t4\nsms=2\ngrid=4\nblocks-per-sm=1\n",
)
PTX = tuple(f"ptx/{name}.ptx" for name in ("vecadd", "divergent", "reduction", "fft_butterfly", "nearest_point"))
OF_PTX = ("--block", "64", "--unknown", "C")
SHORT = ("--time-limit", "0.2", "--memory-limit", "64MiB")

FORMATS: dict[str, Format] = {
    "ptx": Format(_by("ptx:read"), ".ptx", PTX),
    "ptx-strings": Format(_command("strings", after=OF_PTX), ".ptx", PTX),
    "ptx-estimate": Format(
        _command("estimate", "--method", "hong-kim", after=("--gpu", "t4", "--block", "64", "--grid", "4")), ".ptx", PTX
    ),
    "cubin": Format(_cubin, ".cubin", ("ptx/*.cubin",)),
    "cubin-strings": Format(_command("strings", after=("--block", "64")), ".cubin", ("ptx/reduction.sm_86.cubin",)),
    "nvdisasm": Format(_nvdisasm, ".json", ()),
    "cuobjdump": Format(_cuobjdump, ".txt", (LISTED,)),
    "string": Format(_string, ".txt", (b"CLLC|C", b"L()@400..900+2 C(1) | C(1,2)")),
    "instances-toml": Format(_by("strings:read_instances"), ".toml", ("instruction_strings/*.toml",)),
    "instances-jsonl": Format(_by("strings:read_instances"), ".jsonl", ("instruction_strings/*.jsonl",)),
    "instances-solve": Format(
        _command("solve", after=SHORT),
        ".jsonl",
        (b'{"string":"CLC","warps":2,"capacity":{"C":1,"L":1},"name":"a","makespan":5}',),
    ),
    "machine": Format(
        _by("machine.files:read"), ".toml", ("makespan/data/machines/*.toml", "benchmarks/library/machines/*.toml")
    ),
    "machine-show": Format(
        _command("machines"), ".toml", ("makespan/data/machines/*.toml", "examples/long_loads.toml")
    ),
    "machine-solve": Format(
        _command("solve", "--string", "CLC", "--warps", "2", *SHORT, "--machine"),
        ".toml",
        ("benchmarks/library/machines/*.toml",),
    ),
    "gpu": Format(_by("machine.gpus:read"), ".toml", ("makespan/data/gpus/*.toml",)),
    "gpu-show": Format(_command("gpus"), ".toml", ("makespan/data/gpus/*.toml",)),
    "tasks-toml": Format(_by("schedulability.files:read"), ".toml", ("examples/*.toml",)),
    "tasks-csv": Format(_by("schedulability.files:read"), ".csv", (CSV_TASKS,)),
    "tasks-answer": Format(
        _command("schedulability", "--no-cache", "--attempts", "2", *SHORT),
        ".toml",
        ("examples/gcaps.toml", "examples/pipeline.toml", "examples/partitioned.toml"),
    ),
    "launches": Format(_by("schedulability.launches:read"), ".toml", ("examples/launches.toml",)),
    "bundle": Format(_bundle, ".json", ()),
    "gpu-bundle": Format(_bundle, ".json", ()),
    "bundle-verify": Format(_command("verify"), ".json", ()),
    "spec": Format(_by("sweep.spec:read"), ".toml", (SPEC,)),
    "table": Format(_table, ".sqlite", ()),
    "family": Format(_family, ".toml", ("benchmarks/library/paper.toml", "benchmarks/library/gpus.toml")),
    "results": Format(_by("library.claims:read"), ".jsonl", ("benchmarks/library/known.jsonl",)),
    "runs": Format(_by("validation.campaign:read"), ".jsonl", (RUNS,)),
    "loop-bounds": Format(
        _by("flow.loop_bound:read_bounds"), ".csv", (b"$L__BB0_1,16\nsaxpy.cu:12,==4,saxpy # of it\n",)
    ),
    "classes": Format(_by("ptx.isa:read_classes"), ".toml", (b'"ld.param" = "C"\nnanosleep = "-"\n',)),
    "trace": Format(_by("flow.branches:read_trace"), ".txt", (b"$L__BB0_1 taken\n:12 fall # so\n",)),
    "cost-table": Format(
        _by("estimators.opencl_cost_table.table:read"), ".json", ("makespan/data/cost_tables/*.json",)
    ),
    "points": Format(_points, ".json", (POINTS,)),
    "samples": Format(_samples, ".csv", (b"# gpu: T4\nblocks,warps_per_block,seconds\n1,2,1e-6\n2,2,2e-6\n",)),
    "ptxas": Format(_by("estimators.profile.resources:read_resources", "k"), ".txt", (PTXAS,)),
    "dual-issue-listing": Format(_by("estimators.dual_issue.listing:read"), ".sass", (ASM,)),
    "dual-issue-table": Format(_measured, ".csv", (MEASURED,)),
    "form": Format(_form, ".json", (FORM,)),
    "solve-words": Format(_words("solve", *SHORT), ".txt", WORDS),
}
"""By name; `-show`, `-solve` and the like go on from the reader to the end of a command."""

MADE: dict[str, tuple[Callable[[Path], bytes], ...]] = {
    name: (
        _solved("--string", "CLLC", "--warps", "3", "--capacity", "C=2,L=1"),
        _solved("--string", "CL|C", "--warps", "2", "--capacity", "C=1,L=1", "--best-case"),
        _solved("--string", "CLC", "--warps", "2", "--machine", "turing"),
        _solved("--string", "CL()@4..9C(1)", "--warps", "2", "--capacity", "C=1,L=1"),
    )
    for name in ("bundle", "bundle-verify")
} | {
    "gpu-bundle": (
        _solved(
            "--string",
            "CLC",
            "--warps",
            "2",
            "--sms",
            "2",
            "--grid",
            "5",
            "--blocks-per-sm",
            "2",
            "--capacity",
            "C=1,L=1",
        ),
    ),
    "table": (_swept,),
    "nvdisasm": (_listed,),
}


def seeds(name: str) -> Iterator[bytes]:
    """Honest inputs of a format, the large ones shortened."""
    form = FORMATS[name]
    for seed in form.seeds:
        given = [seed] if isinstance(seed, bytes) else [path.read_bytes() for path in sorted(ROOT.glob(seed))]
        for data in given:
            whole = form.suffix not in {".jsonl", ".ptx"} or len(data) <= MOST_SEED_BYTES
            yield data if whole else data[: data.rindex(b"\n", 0, MOST_SEED_BYTES)]
    for make in MADE.get(name, ()):
        with TemporaryDirectory() as folder:
            yield make(Path(folder))
