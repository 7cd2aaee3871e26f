"""Honest inputs that no file of the repository has: short ones as text, others made by what writes them."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.readers import CUBIN, ROOT, VALIDATE, run

Maker = Callable[[Path], bytes]
"""Makes an input with a folder to work in."""

SPEC = b'capacity = "C=1,L=1"\n[[question]]\nstring = "CLC"\n[question.each]\nwarps = ["1..2"]\n'
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

GATE = b"""clock = "1GHz"
[[question]]
string = "CLLCLL"
warps = 2
each.deadline = ["10ns", "11cycles"]
[[question]]
string = "CLC"
capacity = "C=2,L=2"
each.warps = ["1..3"]
deadline = "9cycles"
"""
FAMILY = b"""title = "tiny"
origin = "by hand"
question = [
  { name = "one", string = "CLLCLL", warps = 2 },
  { name = "several", string = "CL", warps = 2, sms = 2, grid = 3, blocks-per-sm = 1 },
]
"""
BUNDLE_TASKS = b"""clock = "1GHz"
priorities = "rate-monotonic"
[[partition]]
name = "p"
sms = 1
policy = "fifo"
[[task]]
name = "a"
core = "cpu0"
partition = "p"
period = "10ms"
deadline = "5ms"
segments = [{ cpu = "1ms" }, { bundle = "fuzzed.json" }]
"""
LAUNCH_TIMES = b"# gpu: T4\nblocks,warps_per_block,seconds\n" + b"".join(
    b"%d,%d,%de-9\n" % (blocks, warps, 4000 + 10 * blocks + warps) for warps in (1, 2) for blocks in (1, 10, 50, 100)
)
LATENCIES = b"measure,name,count,cycles\n" + b"".join(
    b"%s,%d,%d\n" % (what, count, each * count + 30)
    for what, each in ((b"latency,f64", 48), (b"delay,f64", 4), (b"memory,L1", 80), (b"bandwidth,L1", 1))
    for count in (64, 192, 320)
)
THROUGHPUTS = b"operation,operations,global_size,seconds\n" + b"".join(
    b"f32_add,1000,1048576,%f\nf32_mul4,4000,1048576,%f\n" % (seconds, seconds * 4) for seconds in (0.0024, 0.0025)
)
MEMORY_TIMES = b"pattern,requests,cycles\n" + b"".join(
    b"latency,%d,%d\ncoalesced,%d,%d\nuncoalesced,%d,%d\n" % (n, 420 * n, n, 420 + 4 * n, n, 420 + 320 * n)
    for n in (32, 64, 128, 256)
)
SM_TIMES = b"# gpu: T4\n# driver: 5\n# clocks: locked\nmeasure,name,with,warps,count,cycles\n" + b"".join(
    b"chain,%s,1,%d,%d\n" % (both, count, 90 + count * each)
    for both, each in ((b"fp32,fp32", 4), (b"int,int", 5), (b"fp32,int", 6))
    for count in (64, 192)
)
QUESTION = b'{"string":"CLC","warps":2,"capacity":"C=1,L=1","deadline":"9cycles","clock":"1GHz","best-case":true}'
KERNEL_QUESTION = (
    b'{"source":"ptx/vecadd.ptx","block":"64","latency":["global=..90"],"param":["3=32"],"machine":"turing"}'
)
HEAD = b"Host: localhost\r\nContent-Type: application/json\r\nOrigin: http://localhost\r\n"
REQUESTS = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
    b"HEAD /questions/%s/report.html?a=b HTTP/1.0\r\nHost: [::1]:80\r\nConnection: keep-alive\r\n\r\n" % (b"A" * 22),
    b"GET /questions/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n\r\n" % (b"A" * 22),
    b"POST /questions HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (HEAD, len(FORM), FORM),
    b"POST /questions/%s/stop HTTP/1.1\r\n%sContent-Length: 2\r\n\r\n{}" % (b"A" * 22, HEAD),
)
STRANGE = (  # refused, but parts to make others of
    b"POST /questions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"PUT * HTTP/2.0\r\nHost: a\r\nHost: b\r\nContent-Length: 99999999999999999999\r\nExpect: 100-continue\r\n\r\n",
    b"OPTIONS http://localhost/ HTTP/1.1\r\n folded: header\r\nContent-Type: multipart/form-data; boundary=a\r\n\r\n-",
)

_PAGE = (ROOT / "docs/kleimenov_popova.md").read_text("utf-8")
FIGURE_3, EXAMPLE_GPU = (
    next(text for text in re.findall(rf"```{language}\n(.*?)```", _PAGE, re.DOTALL) if said in text).encode()
    for language, said in (("ptx", "figure3"), ("toml", "lat_uncoal"))
)


def solved(words: str) -> Maker:
    """The bundle of a question."""

    def made(folder: Path) -> bytes:
        run(["solve", *words.split(), "--time-limit", "5", "--bundle", str(folder / "b.json")])
        return (folder / "b.json").read_bytes()

    return made


def swept(folder: Path) -> bytes:
    """The table of a sweep."""
    (folder / "s.toml").write_bytes(SPEC)
    run(["sweep", str(folder / "s.toml"), "-o", str(folder / "t.sqlite"), "--workers", "1"])
    return (folder / "t.sqlite").read_bytes()


def claimed(folder: Path) -> bytes:
    """Results of a library of two instances."""
    (folder / "tiny.toml").write_bytes(FAMILY)
    run(["benchmark", "run", str(folder), "-o", str(folder / "results.sqlite"), "--update"])
    return (folder / "known.jsonl").read_bytes()


def listed(folder: Path) -> bytes:
    """What nvdisasm says, or what stands for it."""
    from makespan.host import tool
    from makespan.kernels.sass import disassembler
    from tests.sass.test_fuzz import nops

    says = nops if tool.find("nvdisasm") is None else disassembler._nvdisasm
    return json.dumps(says(CUBIN.read_bytes(), "k.cubin")).encode()


def packed(*options: str) -> Maker:
    """A fat binary."""

    def made(folder: Path) -> bytes:
        from makespan.host import tool

        images = (f"--image3=kind=elf,sm={sm},file={ROOT}/ptx/reduction.sm_{sm}.cubin" for sm in (75, 86))
        words = (str(tool.find("fatbinary")), "-64", *options, f"--create={folder / 'k'}", *images)
        subprocess.run(words, check=True)
        return (folder / "k").read_bytes()

    return made


def recorded(folder: Path) -> bytes:
    """Runs of a kernel on the virtual device."""
    run([*VALIDATE.split(), "--device", "virtual:1", "--runs", "4", "-o", str(folder / "runs.jsonl")])
    return (folder / "runs.jsonl").read_bytes()
