"""CUDA source becomes a module that knows how it was made; what goes wrong on the way is one clear line."""

import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from makespan import cli
from makespan.host.errors import InputError, ParseError
from makespan.kernels import ptx
from makespan.kernels.ptx import cuda

SAMPLES = Path(__file__).parents[2] / "ptx"
SOURCE = "__global__ void k() {}\n"
PTX = """//
// Cuda compilation tools, release 13.0, V13.0.88
//
.version 9.0
.target sm_75
.visible .entry k() {
    .loc 1 1 1
    add.s32 %r1, %r2, %r3;
    ret;
}
.file 1 "FOLDER/source.cu"
"""

needs_nvcc = pytest.mark.skipif(
    shutil.which("nvcc") is None or shutil.which("gcc") is None, reason="nvcc and a host compiler are not installed"
)
needs_nvrtc = pytest.mark.skipif(cuda.nvrtc_library() is None, reason="NVRTC is not installed")

Fake = Callable[[str], Path]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, with nothing in it; no NVRTC either."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for variable in ("NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(cuda, "nvrtc_library", lambda: None)
    return folder


@pytest.fixture
def fake(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Puts a shell script in the place of nvcc and writes a source file, whose path it returns."""

    def install(script: str) -> Path:
        executable(bare / "nvcc", f"export PATH={os.defpath}\n{script}\n")
        executable(bare / "gcc")
        source = tmp_path / "k.cu"
        source.write_text(SOURCE)
        return source

    return install


def executable(path: Path, script: str = "") -> None:
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)


def printing(text: str, path: Path) -> str:
    """A script that leaves this PTX, FOLDER standing for the folder in which it runs."""
    model = path / "model.ptx"
    model.write_text(text)
    return f'sed "s|FOLDER|$PWD|" {model} > output.ptx'


def listed(text: str) -> str:
    """What the lists of bytes in debug sections say."""
    lists = (line.removeprefix(".b8 ") for line in text.splitlines() if line.startswith(".b8 "))
    return bytes(map(int, ",".join(lists).split(","))).decode()


# Which compiler


def test_nvcc_with_a_host_compiler_comes_first(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake("")
    monkeypatch.setattr(cuda, "nvrtc_library", lambda: Path("libnvrtc.so.13"))
    assert cuda.choose_compiler("k.cu").flags == ("-ptx", "-arch=compute_75", "-lineinfo")


def test_nvrtc_takes_the_place_of_an_nvcc_without_host_compiler(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(bare / "nvcc")
    monkeypatch.setattr(cuda, "nvrtc_library", lambda: Path("libnvrtc.so.13"))
    chosen = cuda.choose_compiler("k.cu", "compute_80")
    assert (chosen.name, chosen.flags) == ("NVRTC", ("--gpu-architecture=compute_80", "--generate-line-info"))


@pytest.mark.parametrize("variable", ["NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"])
def test_a_host_compiler_may_be_named_in_the_environment(
    variable: str, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(bare / "nvcc")
    monkeypatch.setenv(variable, "-ccbin=/opt/cc")
    flags = cuda.choose_compiler("k.cu").flags
    assert (f"{variable}=-ccbin=/opt/cc" in flags) == variable.endswith("FLAGS")  # those that may say more than that


def test_without_any_compiler_both_remedies_are_named(bare: Path) -> None:
    with pytest.raises(
        InputError, match=r"^k.cu: no CUDA compiler: put nvcc and a host .* pip install 'makespan\[cuda\]'"
    ):
        cuda.choose_compiler("k.cu")


def test_an_nvcc_that_lacks_only_its_host_compiler_is_told_so(bare: Path) -> None:
    executable(bare / "nvcc")
    with pytest.raises(InputError, match=r"bin/nvcc finds no host compiler \(gcc\), and there is no NVRTC: put"):
        cuda.choose_compiler("k.cu")


def test_nvrtc_is_found_in_the_folders_of_its_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cu12/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13", "cu13/lib/libnvrtc-builtins.so.13.5"):
        library = tmp_path / "nvidia" / name
        library.parent.mkdir(parents=True, exist_ok=True)
        library.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    assert cuda.nvrtc_library() == tmp_path / "nvidia/cu13/lib/libnvrtc.so.13"


# What comes of a compilation


def test_the_module_remembers_how_it_was_made(fake: Fake, tmp_path: Path) -> None:
    module = cuda.read(fake(printing(PTX, tmp_path)))
    made = f"the PTX was made from {tmp_path}/k.cu by nvcc V13.0.88 with -ptx -arch=compute_75 -lineinfo; another"
    assert str(module.compilation).startswith(made)
    assert [note for note in ptx.program(module.kernel()).assumptions if str(note).startswith(made)] != []
    assert ptx.bounds_template(module.kernels).splitlines()[2].startswith(f"# Labels hold for this PTX only: {made}")


def test_the_version_of_a_compiler_that_does_not_tell_it_is_not_made_up(fake: Fake, tmp_path: Path) -> None:
    compilation = cuda.read(fake(printing(PTX.replace("V13", "13"), tmp_path))).compilation
    assert compilation is not None
    assert compilation.compiler == "nvcc of a version that it does not tell"


def test_line_information_names_the_file_of_the_user(fake: Fake, tmp_path: Path) -> None:
    text = PTX + '.file 2 "FOLDER/include/h.cuh"\n.file 3 "/usr/include/x.h"\n'
    kernel = cuda.read(fake(printing(text, tmp_path))).kernel()
    assert dict(kernel.files) == {1: f"{tmp_path}/k.cu", 2: f"{tmp_path}/h.cuh", 3: "/usr/include/x.h"}


def test_the_nul_at_the_end_of_the_ptx_is_dropped(fake: Fake, tmp_path: Path) -> None:
    script = printing(PTX, tmp_path) + r"; printf '\0' >> output.ptx"
    assert cuda.read(fake(script)).kernel().name == "k"


def test_the_compiler_sees_fixed_names_whatever_the_file_is_called(fake: Fake, tmp_path: Path) -> None:
    plain = fake(f'echo "$@" > {tmp_path}/words; cmp source.cu include/*.cu && ' + printing(PTX, tmp_path))
    hostile = plain.rename(tmp_path / 'a$(touch owned);`touch owned` "\n\x1b.cu')
    module = cuda.read(hostile)
    assert (tmp_path / "words").read_text().split() == [
        *("-ptx", "-arch=compute_75", "-lineinfo"),
        *("-Xcompiler=-iquote,include", "-o", "output.ptx", "source.cu"),
    ]
    assert dict(module.kernel().files) == {1: f"{tmp_path}/a$(touch owned);`touch owned` ???.cu"}
    assert module.file == f'PTX of {tmp_path}/a$(touch owned);`touch owned` "??.cu'


def test_kept_ptx_is_what_positions_refer_to(fake: Fake, tmp_path: Path) -> None:
    kept = tmp_path / "kept.ptx"
    module = cuda.read(fake(printing(PTX, tmp_path)), keep=kept)
    assert ptx.read(kept) == module
    assert (module.kernel().file, module.kernel().source) == (str(kept), str(tmp_path / "k.cu"))


def test_names_do_not_tell_in_which_folder_the_compiler_was(fake: Fake, tmp_path: Path) -> None:
    """Neither as they stand, nor as lists of bytes over several lines."""
    for name in ("_ZN37_INTERNAL_{}_9_source_cu__Z1kPi6helperEi", "_ZN39_GLOBAL__N__{}_9_source_cu_a4deb302"):
        texts = set()
        for unit in ("1d0f9a5e", "ffffffff", "00000000"):
            code = [str(byte) for byte in name.format(unit).encode()]
            lines = "\n".join(f".b8 {','.join(code[at : at + 13])}" for at in range(0, len(code), 13))
            text = f"{PTX}.func {name.format(unit)}() {{ ret; }}\n.section .debug_str {{\n{lines},0\n}}\n"
            texts.add(cuda.read(fake(printing(text, tmp_path))).text)
        (text,) = texts
        assert f".func {name.format('00000000')}()" in text
        assert listed(text) == name.format("00000000") + "\0"


def test_names_that_differ_stay_different(fake: Fake, tmp_path: Path) -> None:
    """Somebody may call a function as compilers do."""
    names = [f"_INTERNAL_{unit}_9_source_cu_" for unit in ("12345678", "00000000")]
    text = PTX + "".join(f".func {name}() {{ ret; }}\n" for name in names)
    assert [one.name for one in cuda.read(fake(printing(text, tmp_path))).functions] == names
    listing = ",".join(str(byte) for byte in names[0].encode())
    mixed = f"{PTX}.func {names[1]}() {{ ret; }}\n.section .debug_str {{\n.b8 {listing},0\n}}\n"
    assert listed(cuda.read(fake(printing(mixed, tmp_path))).text) == names[0] + "\0"


@pytest.mark.parametrize("name", ["kept.cu", "kept", "missing/kept.ptx"])
def test_ptx_is_kept_only_where_it_can_and_may_be(name: str, fake: Fake, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{name}: (the file that keeps the PTX must end in .ptx|cannot keep the PTX)"):
        cuda.read(fake(printing(PTX, tmp_path)), keep=tmp_path / name)


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with room for a part of a file only."""
    write = Path.write_bytes

    def part(path: Path, data: bytes) -> int:
        write(path, data[:100] if path.parent == tmp_path else data)
        if path.parent == tmp_path:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)

    monkeypatch.setattr(Path, "write_bytes", part)


def test_a_full_disk_leaves_no_part_of_the_ptx(fake: Fake, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source = fake(printing(PTX, tmp_path))
    before = set(tmp_path.iterdir())
    request.getfixturevalue("full")
    with pytest.raises(InputError, match="cannot keep the PTX there: No space left on device"):
        cuda.read(source, keep=tmp_path / "kept.ptx")
    assert set(tmp_path.iterdir()) == before


def test_ptx_that_cannot_be_kept_takes_the_place_of_nothing(
    fake: Fake, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source, kept = fake(printing(PTX, tmp_path)), tmp_path / "kept.ptx"
    kept.write_text("of before")
    request.getfixturevalue("full")
    with pytest.raises(InputError, match="cannot keep the PTX there: No space left on device"):
        cuda.read(source, keep=kept)
    assert kept.read_text() == "of before"
    with pytest.raises(InputError, match="cannot keep the PTX there: File name too long"):
        cuda.read(source, keep=tmp_path / f"{'a' * 5_000}.ptx")


@pytest.mark.parametrize("arch", ["sm_75", "compute_", "compute_75;x", "compute_7500", "-o", ""])
def test_only_virtual_architectures_are_passed_on(arch: str, fake: Fake, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no virtual architecture; expected one such as compute_75"):
        cuda.read(fake(printing(PTX, tmp_path)), arch=arch)


def test_ptx_that_is_not_understood_is_told_with_how_to_see_it(fake: Fake, tmp_path: Path) -> None:
    source = fake(printing(PTX.replace("ret;", "ret, ret;"), tmp_path))
    with pytest.raises(ParseError, match=r"^PTX of .*k.cu:9:8: expected .*, got ',' \(lines are .*--keep-ptx") as told:
        cuda.read(source)
    assert told.value.context == "    ret, ret;\n       ^"


# What goes wrong

LOGS = {
    "front end": ('source.cu(3): error: identifier "x" is undefined', '{}:3: nvcc says: identifier "x" is undefined'),
    "new intrinsic": (
        'source.cu(3): error: identifier "__reduce_add_sync" is undefined',
        '{}:3: nvcc says: identifier "__reduce_add_sync" is undefined; this was compiled for compute_75, and what only'
        " newer GPUs have needs --arch, such as compute_90",
    ),
    "numbered": ("source.cu(3): error #20013-D: no", "{}:3: nvcc says: no"),
    "catastrophic": ("./source.cu(1): catastrophic error: cannot open", "{}:1: nvcc says: cannot open"),
    "preprocessor": (
        "include/h.cuh:2:10: fatal error: x.h: No such file",
        "{dir}/h.cuh:2: nvcc says: x.h: No such file",
    ),
    "preprocessor's error": ("source.cu:1:2: error: #error boom", "{}:1: nvcc says: #error boom"),
    "first of two": ("source.cu(3): error: a\nsource.cu(2): error: b", "{}:3: nvcc says: a"),
    "after a warning": ("source.cu(1): warning: w\n  x; // error: no\nsource.cu(4): error: e", "{}:4: nvcc says: e"),
    "without place": ('At end of source: error: expected a "}"', '{}: nvcc says: expected a "}}"'),
    "driver": ("gcc: No such file\nnvcc fatal   : Failed", "{}: nvcc says: Failed"),
    "something else": ("one\ntwo\n\n", "{}: nvcc says: two"),
    "nothing": ("", "{}: nvcc says: nothing, but it ended with code 3 and left no PTX"),
    "terminal": ("source.cu(3): error: \x1b[31mred\x07\x9b", "{}:3: nvcc says: ?[31mred??"),
    "other file": ("/usr/x.h(3): error: a", "/usr/x.h:3: nvcc says: a"),
    "long": ("source.cu(3): error: " + "x" * 100_000, "{}:3: nvcc says: " + "x" * 300),
    "no line number": (f"source.cu({'9' * 30}): error: a", "{}: nvcc says: a"),
    "no such architecture": (
        "nvcc fatal   : Unsupported gpu architecture 'compute_61'",
        "{}: nvcc says: Unsupported gpu architecture 'compute_61'; with --arch name an architecture that this compiler"
        " knows, such as compute_75",
    ),
}


@pytest.mark.parametrize(("log", "told"), LOGS.values(), ids=LOGS)
def test_the_first_error_of_the_compiler_is_told_in_one_line(log: str, told: str, fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    source = fake(f"cat {tmp_path}/log >&2; exit 3")
    with pytest.raises(InputError) as error:
        cuda.read(source)
    assert str(error.value) == told.format(source, dir=tmp_path)


@pytest.mark.parametrize(
    "log",
    ["source.cu(1): error: host functions are not allowed", 'source.cu(1): error: cannot open source file "cstdio"'],
)
def test_what_nvrtc_cannot_take_is_explained(log: str) -> None:
    compiler = cuda.Compiler("NVRTC", ("/bin/sh", "-c", f"echo '{log}'; exit 6"), ())
    with pytest.raises(InputError, match=r"k.cu:1: NVRTC says: .*; NVRTC takes device code only: no main, no <<<"):
        cuda.compile_source(Path("k.cu"), b"", compiler)


def test_a_compiler_that_does_not_end_is_stopped_with_all_it_started(fake: Fake, tmp_path: Path) -> None:
    source = fake(f"sleep 600 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(
        InputError, match=r"k.cu: nvcc was stopped at its time limit of 0.5 s; compile the file yourself"
    ):
        cuda.read(source, seconds=0.5)
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "cmdline"
    while child.exists() and child.read_bytes():  # for ten minutes, if nobody stops it
        time.sleep(0.01)


def test_a_compiler_that_writes_too_much_is_stopped(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "MAX_BYTES", 2**16)
    source = fake("exec head -c 1000000 /dev/zero > output.ptx")
    with pytest.raises(InputError, match=r"nvcc says: nothing, but it wrote more than the limit of"):
        cuda.read(source)


def test_a_compiler_that_talks_too_much_is_stopped(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "MAX_BYTES", 2**16)
    with pytest.raises(InputError, match=r"nvcc says: nothing, but it wrote more than the limit of"):
        cuda.read(fake("exec head -c 1000000 /dev/zero >&2"))


def test_a_compiler_gets_little_memory(fake: Fake, tmp_path: Path) -> None:
    cuda.read(fake(f"(ulimit -v; ulimit -c; ulimit -t) > {tmp_path}/limits; " + printing(PTX, tmp_path)), seconds=7)
    assert (tmp_path / "limits").read_text().split() == [str(4 * 2**20), "0", "8"]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("true", "left no PTX"),
        ("touch output.ptx", "the file is empty"),
        (r"printf 'a\0b' > output.ptx", "this is a binary file"),
        ("mkdir output.ptx", "left no PTX"),
        ("mkfifo output.ptx", "left no PTX"),
    ],
)
def test_output_that_is_no_ptx_is_refused(script: str, told: str, fake: Fake) -> None:
    with pytest.raises(InputError, match=told):
        cuda.read(fake(script))


def test_an_nvcc_that_cannot_run_is_told(fake: Fake, bare: Path) -> None:
    source = fake("")
    (bare / "nvcc").write_bytes(b"\x7fELF")
    with pytest.raises(InputError, match=r"k.cu: nvcc says: .*Exec format error"):
        cuda.read(source)


def test_nothing_is_left_in_the_temporary_folder(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, temporary = fake('touch "$TMPDIR/x"; ' + printing(PTX, tmp_path)), tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    cuda.read(source)
    assert list(temporary.iterdir()) == []
    assert source.read_text() == SOURCE  # the folder of the source is only linked there


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "cannot read the CUDA source: No such file or directory"),
        (b"int\0", "binary file"),
        ("int".encode("utf-16"), "it is UTF-16 text; save it as UTF-8"),
        (b" " * 101, "larger than"),
    ],
)
def test_source_that_cannot_be_source_is_refused(
    data: bytes | None, told: str, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "MAX_SOURCE_BYTES", 100)
    source = fake("exit 1")
    if data is None:
        source.unlink()
    else:
        source.write_bytes(data)
    with pytest.raises(InputError, match=told):
        cuda.read(source)


# On the command line


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run([str(word) for word in words])
    return code, *capsys.readouterr()


def test_solve_lists_the_compilation_among_its_assumptions(
    fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "solve", fake(printing(PTX, tmp_path)), "--warps", 2, "--arch", "compute_80")
    assert (code, err) == (0, "")
    said = f"- the PTX was made from {tmp_path}/k.cu by nvcc V13.0.88 with -ptx -arch=compute_80 -lineinfo;"
    assert said in " ".join(out.split())  # long lines are wrapped


def test_several_kernels_are_listed_and_found_by_their_plain_names(
    fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PTX.replace("entry k", "entry _Z5saxpyPf") + PTX.split("sm_75\n")[1].split(".file")[0]
    source = fake(printing(text, tmp_path))
    code, _, err = run(capsys, "solve", source, "--warps", 2)
    assert (code, err.count("\n")) == (2, 1)
    assert "choose one of 2 kernels with --kernel NAME: _Z5saxpyPf, k" in err
    assert run(capsys, "solve", source, "--warps", 2, "--kernel", "saxpy")[0] == 0


def test_so_does_one_about_an_opcode(fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = fake(printing(PTX.replace("add.s32 %r1, %r2, %r3", "zork f"), tmp_path))
    code, _, err = run(capsys, "solve", source, "--warps", 2)
    assert code == 2
    message, *context = err.splitlines()
    assert message.startswith(f"makespan: PTX of {source}:8:")
    assert message.endswith("(lines are those of the PTX that was made; --keep-ptx FILE.ptx keeps it)")
    assert [line.strip() for line in context] == ["zork f;", "^"]


def test_an_error_about_a_place_in_the_ptx_says_how_to_see_it(
    fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fake(printing(PTX.replace("add.s32 %r1, %r2, %r3", "call f"), tmp_path))
    code, _, err = run(capsys, "solve", source, "--warps", 2)
    assert code == 2
    assert err.startswith(f"makespan: PTX of {source}:8: `call f;` calls what has no body")
    assert err.endswith("(lines are those of the PTX that was made; --keep-ptx FILE.ptx keeps it)\n")
    kept = tmp_path / "kept.ptx"
    code, _, err = run(capsys, "solve", source, "--warps", 2, "--keep-ptx", kept)
    assert code == 2
    assert err.startswith(f"makespan: {kept}:8: `call f;` calls what has no body")
    assert "--keep-ptx" not in err
    assert kept.read_text().splitlines()[7].strip() == "call f;"


@pytest.mark.parametrize("option", [("--arch", "compute_80"), ("--keep-ptx", "k.ptx")])
@pytest.mark.parametrize("command", [("solve", "--warps", "2"), ("strings",), ("strings", "--bounds-template")])
def test_options_of_compilers_need_cuda_source(
    option: tuple[str, str], command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *command, SAMPLES / "vecadd.ptx", *option)
    assert (code, err.count("\n")) == (2, 1)
    assert f"vecadd.ptx: {option[0]} is for CUDA source (.cu)" in err


# The compilers themselves


@pytest.fixture(params=[pytest.param("nvcc", marks=needs_nvcc), pytest.param("NVRTC", marks=needs_nvrtc)])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    if request.param == "NVRTC":
        monkeypatch.setenv("PATH", str(tmp_path))
    return str(request.param)


@pytest.mark.parametrize("name", ["vecadd", "fir", "nbody", "warp_reduction"])
def test_line_information_changes_no_instruction(name: str, compiler: str) -> None:
    path = SAMPLES / f"{name}.cu"
    chosen = cuda.choose_compiler(str(path))
    plain = tuple(word for word in chosen.command if word not in ("-lineinfo", "--generate-line-info"))
    text = cuda.compile_source(path, path.read_bytes(), chosen._replace(command=plain))
    module = cuda.read(path)
    assert module.compilation is not None
    assert module.compilation.compiler.startswith(f"{compiler} V")
    assert module.kernel(name).instructions == ptx.parse(text).kernel(name).instructions
    assert (".loc" in text, module.kernel().files != ()) == (False, True)


@needs_nvcc
@pytest.mark.parametrize("name", ["vecadd", "fir", "nbody", "warp_reduction"])
def test_the_compiler_of_the_samples_makes_them_again(name: str) -> None:
    """Other versions need not: they order instructions differently."""
    module, beside = cuda.read(SAMPLES / f"{name}.cu"), SAMPLES / f"{name}.ptx"
    assert module.compilation is not None
    if module.compilation.compiler.removeprefix("nvcc ") not in beside.read_text():
        pytest.skip(f"the samples are not from {module.compilation.compiler}")
    assert module.kernel().instructions == ptx.read(beside).kernel().instructions


LOCAL = """#include <cuda_fp16.h>
#include "neighbour.cuh"
static __device__ __noinline__ int far(int a) { return a * 17 + threadIdx.x; }
static __device__ int near(int a) { return __shfl_down_sync(~0u, a, 1); }
namespace {
__device__ __noinline__ int hidden(int a) { return a ^ 5; }
__global__ void unnamed(int *p, __half *h) {
    p[0] = hidden(p[1]) + near(p[2]) + same(p[3]);
    h[0] = __hadd(h[1], h[2]);
}
}
static __global__ void local(int *p) { atomicAdd(p, far(p[1])); }
void keep() { unnamed<<<1, 1>>>(0, 0); local<<<1, 1>>>(0); }
"""
"""Functions that only one source file can name."""


@needs_nvcc
def test_source_becomes_the_same_ptx_every_time(tmp_path: Path) -> None:
    """Of static functions and unnamed namespaces nvcc names the folder, which is another one every time."""
    (tmp_path / "neighbour.cuh").write_text("static __device__ int same(int x) { return 2 * x; }\n")
    source = tmp_path / "k.cu"
    source.write_text(LOCAL)
    first, again = (cuda.read(source) for _ in "ab")
    assert first.text == again.text
    unit = f"00000000_{len('source.cu')}_source_cu_"
    assert len({line for line in first.text.splitlines() if f"_GLOBAL__N__{unit}" in line}) > 3
    assert f"_INTERNAL_{unit}" in first.text
    names = [kernel.name for kernel in first.kernels]
    assert [kernel.name for kernel in again.kernels] == names
    assert len(names) == 2
    assert f"_INTERNAL_{unit}" in listed(first.text)


def test_loops_know_their_source_lines(compiler: str) -> None:
    path = SAMPLES / "fir.cu"
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "makespan: loop" in text)
    (loop,) = ptx.loops(cuda.read(path).kernel())
    assert loop.bound is not None
    assert loop.bound.maximum == 16
    assert loop.source_line in {f"{path}:{near}" for near in range(line - 2, line + 3)}


def test_files_beside_the_source_can_be_included_under_a_hostile_name(compiler: str, tmp_path: Path) -> None:
    (tmp_path / "twice.cuh").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    source = tmp_path / "a$(touch owned)`touch owned`;touch owned;.cu"
    source.write_text('#include "twice.cuh"\n__global__ void scale(int *x) { *x = twice(*x); }\n')
    kernel = cuda.read(source).kernel("scale")
    assert kernel.name == "_Z5scalePi"
    assert set(dict(kernel.files).values()) == {str(source), str(tmp_path / "twice.cuh")}
    assert {path.name for path in tmp_path.rglob("*")} == {"twice.cuh", source.name}


def test_headers_of_cuda_can_be_included(compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "half.cu"
    source.write_text(
        "#include <cuda_fp16.h>\n#include <cuda/std/array>\n"
        'extern "C" __global__ void half_sum(__half *x) { cuda::std::array<__half, 1> y{x[1]}; x[0] = x[0] + y[0]; }\n'
    )
    assert cuda.read(source).kernel().name == "half_sum"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n__global__ void k() { x = 1; }", ':2: {} says: identifier "x" is undefined'),
        ('\n\n#include "missing.h"', ":3: {} says: .*missing.h"),
        ("#error boom", ":1: {} says: .*#error.* boom"),
        ("__global__ void k() {", r": {} says: expected a \"}}\""),
    ],
)
def test_errors_in_the_source_are_told_with_its_lines(text: str, told: str, compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(text + "\n")
    with pytest.raises(InputError, match=f"^{source}{told.format(compiler)}"):
        cuda.read(source)


@pytest.mark.parametrize("host", ["#include <cstdio>", "int main() { return 0; }", "void f() { k<<<1, 1>>>(); }"])
@needs_nvrtc
def test_nvrtc_refuses_host_code_and_says_what_to_do(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    source = tmp_path / "k.cu"
    source.write_text(f"__global__ void k() {{}}\n{host}\n")
    with pytest.raises(
        InputError, match=r"k.cu:2: NVRTC says: .*NVRTC takes device code only.*or put nvcc and gcc on PATH"
    ):
        cuda.read(source)
