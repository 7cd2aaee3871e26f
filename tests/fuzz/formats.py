"""What is read from outside: for each kind of input what reads it, and honest inputs to begin with."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from makespan.cli.running import BAD_INPUT, NO, NOT_MEASURED
from tests.fuzz import honest, readers
from tests.fuzz.honest import Maker, packed, solved
from tests.fuzz.http import answer
from tests.fuzz.readers import ROOT, Command, Options, Reader, by

MOST_SEED_BYTES = 20_000


class Format(NamedTuple):
    """A kind of input: what reads a file of it, the end of its name, honest ones, and the exit codes of a refusal.

    Args:
        seeds: contents, files of the repository, or what makes one.
        parts: contents that are refused, to take parts of.
    """

    read: Reader
    suffix: str
    seeds: tuple[bytes | str | Maker, ...]
    refusals: tuple[int, ...] = (BAD_INPUT, NOT_MEASURED)
    parts: tuple[bytes, ...] = ()


WORDS = (
    b"string=CLC\nwarps=1..4\ncapacity=C=2,L=1\nbest-case\nseed=2\n",
    b"string=CL(1)@4..8|C\nwarps=2\ncapacity=C=1,L=1\ndeadline=200ns\nclock=1.4GHz\nblocks-per-sm=2\nseed=3\n",
    b"string=CLC\nwarps=2\ngpu=t4\nsms=2\ngrid=4\nblocks-per-sm=1\nhold=memory=2\n",
    b"string=CLLK\nwarps=3\nmachine=turing\nassignment=modulo\nformat=json\n",
)
POLICIES = (b"string=CLC\nwarps=3\ncapacity=C=2,L=1\nseed=3\n", b"string=CL()@4..9C(1)\nwarps=2\nformat=json\n")
CURVES = (b"string=CLC\nwarps=1..3\ncapacity=C=2,L=1\n", b"string=CLLC\nwarps=1..2\nmachine=turing\n")
EXPRESSIONS = (
    b"expr=matrix.\\(x,y){ x + matrix[x,y] }\narray=matrix:float:4096x4096\nwg=64\ncpu-time=0.2\n",
    b"expr=ma.\\(a,b,c){ ma[c,a,b] + g(a) }\nfunc=g(x)=2*x\narray=ma:int:256x256x256\nalike\nbytes=none\n",
)
PTX = tuple(f"ptx/{name}.ptx" for name in ("vecadd", "divergent", "reduction", "fft_butterfly", "nearest_point"))
STRAIGHT = "ptx/vecadd.ptx", "ptx/polynomial.ptx"
"""Kernels whose loops, if any, every estimator counts."""
SHORT = "--time-limit 0.05 --memory-limit 64MiB"
BUNDLES = (
    solved("--string CLLC --warps 3 --capacity C=2,L=1"),
    solved("--string CL|C --warps 2 --capacity C=1,L=1 --best-case"),
    solved("--string CLC --warps 2 --machine turing"),
    solved("--string CL()@4..9C(1) --warps 2 --capacity C=1,L=1"),
)
MACHINES = "makespan/data/machines/*.toml", "benchmarks/library/machines/*.toml"
TASKS = "examples/gcaps.toml", "examples/pipeline.toml", "examples/tasks.toml", "examples/gpu_tasks.toml"
CUBINS = "ptx/reduction.sm_86.cubin", "ptx/reduction.sm_90.cubin", "ptx/polynomial.sm_86.cubin"
ON_SM = "--block 32 --blocks-per-sm 1 --latency global=..600"
LOOPS, TRACE = b"$L__BB0_1,16\nnearest_point.cu:12,==4,nearest_point # of it\n", b"$L__BB0_1 taken\n:12 fall # so\n"
CLASSES = b'"ld.param" = "C"\nnanosleep = "-"\n'

FORMATS: dict[str, Format] = {
    "ptx": Format(by("kernels.ptx:read"), ".ptx", PTX),
    "ptx-strings": Format(Command("strings {path} --block 64 --unknown C"), ".ptx", PTX),
    "ptx-template": Format(Command("strings {path} --bounds-template"), ".ptx", PTX),
    "ptx-solve": Format(Command(f"solve {{path}} --block 64 --unknown C --machine paper {SHORT}"), ".ptx", PTX),
    "ptx-report": Format(
        Command(f"report {{path}} --block 32 --unknown C --machine paper {SHORT} -o {{here}}/r.html"), ".ptx", STRAIGHT
    ),
    "hong-kim": Format(
        Command("estimate --method hong-kim {path} --block 64 --grid 80 --gpu quadro-fx5600 --set mem_ld=500"),
        ".ptx",
        STRAIGHT,
    ),
    "kleimenov-popova": Format(
        Command(
            "estimate --method kleimenov-popova {path} --gpu {here}/gpu.toml --grid 20 --block 64 --worst-case-cache"
            " --regs 32 --expr",
            {"gpu.toml": honest.EXAMPLE_GPU},
        ),
        ".ptx",
        (honest.FIGURE_3,),
    ),
    "opencl-cost-table": Format(
        Command("estimate --method opencl-cost-table {path} --block 256 --grid 96 --table rmbp-gt650m"),
        ".ptx",
        STRAIGHT,
    ),
    "dual-issue": Format(
        Command("estimate --method dual-issue {path} --block 256 --grid 104"), ".ptx", ("ptx/polynomial.ptx",)
    ),
    "estimate-compare": Format(
        Command("estimate --compare {path} --block 128 --grid 80 --gpu quadro-fx5600"), ".ptx", ("ptx/vecadd.ptx",)
    ),
    "cuda": Format(Command("strings {path} --block 64"), ".cu", ("ptx/vecadd.cu",)),
    "cubin": Format(readers.cubin, ".cubin", ("ptx/*.cubin",)),
    "cubin-strings": Format(Command("strings {path} --block 64"), ".cubin", CUBINS),
    "cubin-solve": Format(Command(f"solve {{path}} {ON_SM} {SHORT}"), ".cubin", CUBINS),
    "nvdisasm": Format(readers.nvdisasm("strings --block 64"), ".json", (honest.listed,)),
    "nvdisasm-solve": Format(readers.nvdisasm(f"solve {ON_SM} {SHORT}"), ".json", (honest.listed,)),
    "cuobjdump": Format(readers.cuobjdump, ".txt", (honest.LISTED,)),
    "fatbin-strings": Format(
        Command("strings {path} --block 64 --arch sm_86"), ".fatbin", (packed(), packed("--compress-all"))
    ),
    "string": Format(readers.string, ".txt", (b"CLLC|C", b"L()@400..900+2 C(1) | C(1,2)")),
    "instances-toml": Format(by("model.strings:read_instances"), ".toml", ("instruction_strings/*.toml",)),
    "instances-jsonl": Format(by("model.strings:read_instances"), ".jsonl", ("instruction_strings/*.jsonl",)),
    "instances-solve": Format(
        Command(f"solve {{path}} {SHORT}"),
        ".jsonl",
        (b'{"string":"CLC","warps":2,"capacity":{"C":1,"L":1},"name":"a","makespan":5}',),
    ),
    "machine": Format(by("model.machine.files:read_machine"), ".toml", MACHINES),
    "machine-show": Format(Command("machines {path}"), ".toml", (*MACHINES, "examples/long_loads.toml")),
    "machine-solve": Format(
        Command(f"solve --string CLC --warps 2 {SHORT} --machine {{path}}"),
        ".toml",
        ("benchmarks/library/machines/*.toml", "examples/long_loads.toml"),
    ),
    "machine-kernel": Format(
        Command(f"solve {{root}}/ptx/vecadd.ptx --block 64 --latency global=..90 {SHORT} --machine {{path}}"),
        ".toml",
        ("makespan/data/machines/turing.toml", "makespan/data/machines/ampere-ga10x.toml"),
    ),
    "gpu": Format(by("model.machine.gpus:read_gpu"), ".toml", ("makespan/data/gpus/*.toml",)),
    "gpu-show": Format(Command("gpus {path}"), ".toml", ("makespan/data/gpus/*.toml",)),
    "gpu-solve": Format(
        Command(f"solve --string K --warps 2 --grid 9 --blocks-per-sm 2 {SHORT} --gpu {{path}}"),
        ".toml",
        ("makespan/data/gpus/t4.toml", "makespan/data/gpus/rtx-3070.toml"),
    ),
    "gpu-estimate": Format(
        Command(
            "estimate --method kleimenov-popova {here}/k.ptx --gpu {path} --grid 20 --block 64 --worst-case-cache"
            " --regs 32",
            {"k.ptx": honest.FIGURE_3},
        ),
        ".toml",
        (honest.EXAMPLE_GPU,),
    ),
    "tasks-toml": Format(by("deadlines.files:read"), ".toml", TASKS),
    "tasks-csv": Format(by("deadlines.files:read"), ".csv", (honest.CSV_TASKS,)),
    "tasks-answer": Format(Command(f"schedulability --no-cache --attempts 2 {SHORT} {{path}}"), ".toml", TASKS[:2]),
    "tasks-bundle": Format(
        Command(f"schedulability --no-cache --attempts 2 {SHORT} {{here}}/t.toml", {"t.toml": honest.BUNDLE_TASKS}),
        ".json",
        BUNDLES[:1],
    ),
    "launches": Format(by("kernels.launch_file:read_launches"), ".toml", ("examples/launches.toml",)),
    "launches-solve": Format(Command(f"solve {{path}} --gpu rtx-3070 {SHORT}"), ".toml", ("examples/launches.toml",)),
    "bundle": Format(readers.bundle, ".json", BUNDLES, (NO,)),
    "gpu-bundle": Format(
        readers.bundle,
        ".json",
        (solved("--string CLC --warps 2 --sms 2 --grid 5 --blocks-per-sm 2 --capacity C=1,L=1"),),
        (NO,),
    ),
    "bundle-verify": Format(Command("verify {path}"), ".json", BUNDLES, (NO, BAD_INPUT)),
    "kept": Format(readers.kept, ".json", BUNDLES[:1]),
    "spec": Format(by("many.spec:read_spec"), ".toml", (honest.SPEC, honest.GATE)),
    "gate": Format(Command("gate {path} --junit {here}/j.xml"), ".toml", (honest.GATE,)),
    "question": Format(readers.question, ".json", (honest.QUESTION, honest.KERNEL_QUESTION)),
    "table": Format(readers.table, ".sqlite", (honest.swept,)),
    "table-export": Format(Command("sweep export {path} -o {here}/t.csv"), ".sqlite", (honest.swept,)),
    "family": Format(
        readers.family, ".toml", (honest.FAMILY, "benchmarks/library/paper.toml", "benchmarks/library/gpus.toml")
    ),
    "family-show": Format(Command("benchmark show {here}"), ".toml", (honest.FAMILY,)),
    "results": Format(by("many.library.claims:read_claims"), ".jsonl", ("benchmarks/library/known.jsonl",)),
    "results-check": Format(
        Command("benchmark check {here} {path} --evidence {here}/kept", {"tiny.toml": honest.FAMILY}),
        ".jsonl",
        (honest.claimed,),
    ),
    "results-table": Format(
        Command("benchmark table {here} {path} --each", {"tiny.toml": honest.FAMILY}), ".jsonl", (honest.claimed,)
    ),
    "runs": Format(by("hardware.campaign:read_campaign"), ".jsonl", (honest.RUNS,)),
    "runs-judged": Format(readers.judged, ".jsonl", (honest.recorded,)),
    "loop-bounds": Format(by("kernels.flow.loops:read_bounds"), ".csv", (LOOPS,)),
    "classes": Format(by("kernels.ptx.isa:read_classes"), ".toml", (CLASSES,)),
    "classes-strings": Format(
        Command("strings {root}/ptx/vecadd.ptx --block 64 --classes {path}"), ".toml", (CLASSES,)
    ),
    "loop-bounds-strings": Format(
        Command("strings {root}/ptx/nearest_point.ptx --block 64 --unknown C --loop-bound {path}"),
        ".csv",
        (b"# kernel nearest_point: 1 loop\n$L__BB0_2,32\n",),
    ),
    "trace-strings": Format(
        Command("strings {root}/ptx/divergent.ptx --block 32 --paths single --trace {path}"),
        ".txt",
        (b"# either side\n:19 taken\n",),
    ),
    "trace": Format(by("kernels.flow.branches:read_trace"), ".txt", (TRACE,)),
    "cost-table": Format(by("estimates.opencl_cost_table.table:read"), ".json", ("makespan/data/cost_tables/*.json",)),
    "cost-table-estimate": Format(
        Command(
            "estimate --method opencl-cost-table {root}/ptx/vecadd.ptx --block 256 --grid 96 --explain --table {path}"
        ),
        ".json",
        ("makespan/data/cost_tables/*.json",),
    ),
    "points": Format(readers.points, ".json", (honest.POINTS,)),
    "samples": Format(readers.samples, ".csv", (honest.LAUNCH_TIMES,)),
    "launch-times": Format(Command("measure launch --fit {path}"), ".csv", (honest.LAUNCH_TIMES,)),
    "latencies": Format(Command("measure latency --fit {path} --gpu gtx1050"), ".csv", (honest.LATENCIES,)),
    "throughputs": Format(Command("measure throughput --fit {path} --gpu hd6970"), ".csv", (honest.THROUGHPUTS,)),
    "memory-times": Format(Command("measure memory --fit {path} --gpu quadro-fx5600"), ".csv", (honest.MEMORY_TIMES,)),
    "sm-times": Format(Command("measure sm --fit {path} --machine turing"), ".csv", (honest.SM_TIMES,)),
    "ptxas": Format(by("estimates.profile.resources:read_resources", "k"), ".txt", (honest.PTXAS,)),
    "dual-issue-table": Format(readers.measured, ".csv", (honest.MEASURED,)),
    "dual-issue-import": Format(
        Command("estimate --method dual-issue --ffma 1e9 --sms 13 --clock-ghz 0.7 --import {path}"),
        ".csv",
        (honest.MEASURED,),
    ),
    "form": Format(readers.form, ".json", (honest.FORM,)),
    "http": Format(answer, ".http", honest.REQUESTS, parts=honest.STRANGE),
    "solve-words": Format(Options(f"solve {SHORT}"), ".txt", WORDS),
    "simulate-words": Format(Options("simulate --time-limit 0.05"), ".txt", POLICIES),
    "compare-words": Format(Options(f"compare {SHORT}"), ".txt", CURVES),
    "expression-words": Format(Options("estimate --method opencl-cost-table --table rmbp-gt650m"), ".txt", EXPRESSIONS),
}
"""By name; `-show`, `-solve` and the like go on from the reader to the end of a command."""


def seeds(name: str) -> Iterator[bytes]:
    """Honest inputs of a format, the large ones shortened."""
    form = FORMATS[name]
    for seed in form.seeds:
        if callable(seed):
            with TemporaryDirectory() as folder:
                yield seed(Path(folder))
        elif isinstance(seed, bytes):
            yield seed
        else:
            for path in sorted(ROOT.glob(seed)):
                data = path.read_bytes()
                whole = form.suffix not in {".jsonl", ".ptx"} or len(data) <= MOST_SEED_BYTES
                yield data if whole else data[: data.rindex(b"\n", 0, MOST_SEED_BYTES)]
