"""What a question lacks is asked for at once, each input by its remedy, with a command that has blanks to fill in."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from makespan import KernelQuestion, Launch, cli, gpu_instance
from makespan.cli.options import source_options
from makespan.cli.source import instances as of_options
from makespan.host import tool
from makespan.host.errors import MissingInputsError
from makespan.kernels import flow, ptx
from makespan.kernels.question import bounds_template, launch_kernel
from makespan.model.strings import NamedInstance
from tests.command import Outcome, Runner, command_fixture

PARAMETERS = ".param .u64 data, .param .u32 n, .param .u32 m"
BEGIN = """.reg .pred %p, %q; .reg .b32 %i, %j, %n, %m, %s; .reg .b64 %at; .shared .align 4 .b8 tile[64];
ld.param.u64 %at, [data];
ld.param.u32 %n, [n];
ld.param.u32 %m, [m];"""

needs_tools = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)


def counted(label: str, line: int, most: str, inside: str = "") -> str:
    """A loop that counts %i up to a register."""
    return f"""mov.u32 %i, 0;
.loc 1 {line} 1
{label}:
add.u32 %i, %i, 1;
st.global.u32 [%at], %i;
{inside}
setp.lt.u32 %p, %i, %{most};
@%p bra {label};"""


def waiting(label: str, line: int) -> str:
    """A loop that memory ends."""
    return f""".loc 1 {line} 1
{label}:
ld.global.u32 %s, [%at];
st.global.u32 [%at+8], %s;
setp.ne.u32 %q, %s, 0;
@%q bra {label};"""


NESTED = f""".loc 1 4 1
mov.u32 %j, 0;
OUTER:
{counted("INNER", 5, "n")}
add.u32 %j, %j, 1;
setp.lt.u32 %q, %j, %m;
@%q bra OUTER;"""
SHARED = """st.shared.u32 [tile], %m;
bar.sync 0;
ld.shared.u32 %s, [tile+4];
st.global.u32 [%at+4], %s;"""
TWO_TESTS = """ld.global.u32 %s, [%at+8];
setp.ne.u32 %q, %s, 0;"""


def text(*body: str, source: str = "dir/k.cu") -> str:
    inside = "\n".join([BEGIN, *body, "ret;"])
    return (
        f'.version 8.0\n.target sm_75\n.address_size 64\n.file 1 "{source}"\n'
        f".visible .entry k({PARAMETERS})\n{{\n{inside}\n}}\n"
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


solve = command_fixture("solve")


def asked(done: Outcome) -> tuple[list[str], str]:
    """The inputs that are missing, and the command; nothing is printed beside them."""
    assert (done.code, done.out) == (2, "")
    first, command, *hints = done.err.splitlines()
    found = re.fullmatch(r"makespan: k\.ptx: kernel k: ([0-9]+) inputs? (?:is|are) missing: (.*)", first)
    assert found is not None, first
    missing = [each for each in found[2].split("; ") if not each.startswith("'makespan strings k.ptx ")]
    assert len(missing) == int(found[1])
    assert hints == []
    return missing, command


def filled(command: str) -> list[str]:
    """The words of a command behind its name, with 4 in each blank."""
    words = shlex.split(command)
    assert words[:2] == ["makespan", "solve"]
    return [re.sub(r"(?<![A-Za-z0-9_])N$", "4", word) for word in words[2:]]


def instances(words: list[str]) -> tuple[NamedInstance, ...]:
    """What these options ask, if they lack nothing."""

    @click.command()
    @source_options
    def command(**options: Any) -> tuple[NamedInstance, ...]:
        return of_options(**options)

    found: tuple[NamedInstance, ...] = command.main(words, standalone_mode=False)
    return found


def test_all_that_a_kernel_lacks_is_asked_for_in_one_message(solve: Runner) -> None:
    Path("k.ptx").write_text(text(NESTED, waiting("WAIT", 9)))
    missing, command = asked(solve("k.ptx", "--machine", "turing", "--latency", "parameter=..9"))
    assert missing == [
        "the threads of a block, or its warps (--block N, or --warps N)",
        "a bound for the loop at k.cu:4, which depends on m (--loop-bound 'k.cu:4=N', or --param m=N)",
        "a bound for the loop at k.cu:5, which depends on n (--loop-bound 'k.cu:5=N', or --param n=N)",
        "a bound for the loop at k.cu:9 (--loop-bound 'k.cu:9=N')",
        "the latency of operation global, first used at dir/k.cu:5, of which machine 'turing' knows only that it is"
        " 30 cycles or more (--latency global=..N)",
    ]
    assert command == (
        "  makespan solve k.ptx --machine turing --latency parameter=..9 --block N --loop-bound 'k.cu:4=N'"
        " --loop-bound 'k.cu:5=N' --loop-bound 'k.cu:9=N' --latency global=..N"
    )


@needs_tools
def test_all_that_machine_code_lacks_is_asked_for_in_one_message(solve: Runner) -> None:
    """It decides with dynamic shared memory how many blocks are resident, and its loops are those of the source."""
    declared = ".extern .shared .align 4 .b8 more[];\n.visible"
    Path("k.ptx").write_text(text(NESTED, SHARED, waiting("WAIT", 9)).replace(".visible", declared, 1))
    missing, command = asked(solve("k.ptx", "--arch", "sm_86"))
    assert [re.search(r"\((.*)\)$", each)[1] for each in missing] == [  # type: ignore[index]
        "--block N, or --warps N",
        "--loop-bound 'k.cu:4=N', or --param m=N",
        "--loop-bound 'k.cu:5=N', or --param n=N",
        "--loop-bound 'k.cu:9=N'",
        "--latency global=..N",
        "--latency fetch=..N, or --warm",
        "--latency constant-miss=..N, or --warm",
        "--dynamic-shared N",
    ]
    assert instances(filled(command.replace("..N", "..900")))


@pytest.mark.parametrize("given", [(), ("--arch", "sm_86")], ids=["PTX", "machine code"])
@pytest.mark.parametrize(
    "body",
    [
        (counted("L", 4, "n"),),
        (NESTED,),
        (counted("A", 4, "n"), counted("B", 4, "m"), waiting("C", 9)),
        (SHARED, counted("L", 4, "n")),
        ("mov.u32 %s, %nctaid.x;", counted("L", 4, "s")),
    ],
    ids=["a loop", "nested loops", "two loops of one line", "shared memory", "a loop that the grid decides"],
)
@needs_tools
def test_the_command_that_is_shown_asks_a_whole_question_once_its_blanks_are_filled(
    given: tuple[str, ...], body: tuple[str, ...], solve: Runner
) -> None:
    Path("k.ptx").write_text(text(*body))
    missing, command = asked(solve("k.ptx", *given))
    words = filled(command.replace("..N", "..900"))
    assert instances(words)
    instead = [found[1] for each in missing if (found := re.search(r"--loop-bound .*, or (.*)\)$", each))]
    remedies = shlex.split(" ".join(instead).replace(" and ", " ").replace("N", "4"))
    decided = {"k.cu:4=4", "k.cu:5=4", "A=4", "B=4"}
    rest = [word for at, word in enumerate(words) if not decided & {*words[at : at + 2]}]
    assert instances([*rest, *remedies])


def test_loops_that_share_a_line_are_told_apart_by_their_labels(solve: Runner) -> None:
    Path("k.ptx").write_text(text(counted("A", 4, "n"), counted("B", 4, "n")))
    missing, command = asked(solve("k.ptx", "--block", 32))
    assert missing == [
        f"a bound for the loop {label} (k.ptx:{line}), one of 2 loops that the compiler made of dir/k.cu:4, which"
        f" depends on n (--loop-bound '{label}=N', or --param n=N)"
        for label, line in (("A", 13), ("B", 21))
    ]
    assert command == "  makespan solve k.ptx --block 32 --loop-bound 'A=N' --loop-bound 'B=N'"


def test_a_file_is_named_by_the_shortest_end_of_its_path_that_means_one_loop(solve: Runner) -> None:
    other = counted("B", 4, "n").replace(".loc 1", ".loc 2")
    found = text(counted("A", 4, "n"), other).replace('.file 1 "dir/k.cu"', '.file 1 "dir/k.cu"\n.file 2 "other/k.cu"')
    Path("k.ptx").write_text(found)
    _, command = asked(solve("k.ptx", "--block", 32))
    assert command.endswith("--block 32 --loop-bound 'dir/k.cu:4=N' --loop-bound 'other/k.cu:4=N'")


def test_a_line_that_nobody_knows_is_not_named(solve: Runner) -> None:
    """The compiler writes 0 for code of its own."""
    for source in (text(counted("L", 0, "n")), text(counted("L", 4, "n").replace(".loc 1 4 1", ""))):
        Path("k.ptx").write_text(source)
        missing, _ = asked(solve("k.ptx", "--block", 32))
        assert missing[0].startswith("a bound for the loop L (k.ptx:")


def test_what_the_launch_does_not_decide_is_not_offered(solve: Runner) -> None:
    """Neither a parameter, where memory decides a loop, nor one that was given, nor one that has no say."""
    Path("k.ptx").write_text(text(waiting("A", 4), "ld.global.u32 %m, [%at+8];", counted("B", 5, "m")))
    missing, _ = asked(solve("k.ptx", "--block", 32, "--param", "m=3"))
    assert missing == [
        "a bound for the loop at k.cu:4 (--loop-bound 'k.cu:4=N')",
        "a bound for the loop at k.cu:5 (--loop-bound 'k.cu:5=N')",
    ]


def test_the_block_is_offered_where_it_decides_and_is_not_asked_for_anyway(solve: Runner) -> None:
    Path("k.ptx").write_text(text("mov.u32 %s, %ntid.x;", counted("A", 4, "s"), counted("B", 5, "n")))
    missing, _ = asked(solve("k.ptx", "--warps", 2))
    assert missing[0] == (
        "a bound for the loop at k.cu:4, which depends on the block (--loop-bound 'k.cu:4=N', or --block N)"
    )
    missing, command = asked(solve("k.ptx"))
    assert len(missing) == 2
    assert command == "  makespan solve k.ptx --block N --loop-bound 'k.cu:5=N'"
    assert solve(*filled(command), "--time-limit", 1, "--quiet").code == 0


def test_a_whole_gpu_lacks_the_grid_and_resident_blocks_besides(solve: Runner) -> None:
    Path("k.ptx").write_text(text("mov.u32 %s, %nctaid.x;", counted("A", 4, "s"), counted("B", 5, "n")))
    missing, command = asked(solve("k.ptx", "--sms", 2))
    assert missing == [
        "the threads of a block, or its warps (--block N, or --warps N)",
        "the blocks of the grid (--grid N)",
        "a bound for the loop at k.cu:5, which depends on n (--loop-bound 'k.cu:5=N', or --param n=N)",
        "the blocks that are resident on an SM at once (--blocks-per-sm N, or --arch sm_NN)",
    ]
    assert command == "  makespan solve k.ptx --sms 2 --block N --grid N --loop-bound 'k.cu:5=N' --blocks-per-sm N"
    assert solve(*filled(command), "--time-limit", 0.1, "--quiet").code in (0, 3)
    question = KernelQuestion(Path("k.ptx"), launch=Launch(grid=4), blocks_per_sm=2)
    with pytest.raises(MissingInputsError) as caught:
        gpu_instance(question, sms=2)
    assert [each.field for each in caught.value.missing] == ["block", "loop_bounds"]


def test_many_loops_are_asked_for_as_a_file(solve: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    Path("k.ptx").write_text(text(*(counted(f"L{number}", 4 + number, "n") for number in range(13))))
    missing, command = asked(solve("k.ptx", "--block", 32))
    assert missing == ["a file with bounds for 13 loops, from k.cu:4 to k.cu:16 (--loop-bound 'FILE', or --param n=N)"]
    assert command == "  makespan solve k.ptx --block 32 --loop-bound 'FILE'"
    assert cli.run(["strings", "k.ptx", "--bounds-template"]) == 0
    Path("FILE").write_text(capsys.readouterr().out.replace(",?", ",4"))
    assert solve("k.ptx", "--block", 32, "--loop-bound", "FILE", "--time-limit", 0.1, "--quiet").code in (0, 3)


def test_a_bounds_template_says_what_else_would_tell_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    body = f"mov.u32 %s, %nctaid.x;\nadd.u32 %s, %s, %n;\n{counted('A', 4, 's')}\n{waiting('B', 9)}"
    Path("k.ptx").write_text(text(body))
    for given, told in ((), "; --grid N and --param n=N would tell"), (("--grid", "8"), "; --param n=N would tell"):
        assert cli.run(["strings", "k.ptx", "--bounds-template", *given]) == 0
        about = [line for line in capsys.readouterr().out.splitlines() if line.startswith("# k.ptx:")]
        assert about == [
            f"# k.ptx:15, source dir/k.cu:4, depth 1{told} its bound",
            "# k.ptx:22, source dir/k.cu:9, depth 1",
        ]
    module = ptx.parse(text(counted("A", 4, "n")), "k.ptx")
    question = KernelQuestion(module, launch=Launch(parameters={"n": 3}))
    assert "would tell" not in bounds_template(question, module, module.kernels)


def test_in_python_an_input_has_the_name_of_its_field() -> None:
    module = ptx.parse(text(NESTED, waiting("WAIT", 9)), "k.ptx")
    with pytest.raises(MissingInputsError) as caught:
        KernelQuestion(module).instance()
    fields = [(each.field, each.blank, each.instead) for each in caught.value.missing]
    assert fields == [
        ("block", "N", (("warps", "N"),)),
        ("loop_bounds", "k.cu:4=N", (("parameters", "m=N"),)),
        ("loop_bounds", "k.cu:5=N", (("parameters", "n=N"),)),
        ("loop_bounds", "k.cu:9=N", ()),
    ]
    assert "--" not in str(caught.value).replace("--bounds-template", "")
    assert "(loop_bounds 'k.cu:4=N', or parameters m=N)" in str(caught.value)
    with pytest.raises(
        MissingInputsError, match=r"^k\.ptx: kernel k: 3 inputs are missing: a bound for the loop at k\.cu:4"
    ):
        ptx.program(module.kernel())


def test_json_has_the_command_among_the_details(solve: Runner) -> None:
    Path("k.ptx").write_text(text(counted("L", 4, "n")))
    done = solve("k.ptx", "--format", "json")
    said = json.loads(done.err)
    assert said["error"].startswith("k.ptx: kernel k: 2 inputs are missing: ")
    assert said["details"] == ["  makespan solve k.ptx --format json --block N --loop-bound 'k.cu:4=N'"]


def test_a_command_can_be_copied_whatever_names_there_are(solve: Runner) -> None:
    name = "a'b $(touch x) c.cu"
    Path("-k;.ptx").write_text(text(counted("L", 4, "n"), source=name))
    done = solve("--block", 32, "--", "-k;.ptx")
    words = shlex.split(done.err.splitlines()[1])
    assert words == ["makespan", "solve", "--block", "32", "--loop-bound", f"{name}:4=N", "--", "-k;.ptx"]
    assert solve("--time-limit", 0.1, "--quiet", *filled(shlex.join(words))).code in (0, 3)


def test_a_comment_that_tells_no_bound_is_still_explained(solve: Runner) -> None:
    """Below the command, for nobody can do anything about it there."""
    loop = counted("L", 4, "n", "@%q bra L;\n// makespan: loop 4")
    Path("k.ptx").write_text(text(loop))
    first, command, hint = solve("k.ptx", "--block", 32).err.splitlines()
    assert "a bound for the loop at k.cu:4 (--loop-bound" in first
    assert command == "  makespan solve k.ptx --block 32 --loop-bound 'k.cu:4=N'"
    assert re.fullmatch(r"  k\.ptx:\d+: loop L can repeat without passing this comment, .*", hint)


@needs_tools
def test_machine_code_asks_for_the_loops_of_its_ptx() -> None:
    """Also where it has a branch of two predicates, so that nothing follows from the machine code itself."""
    both = counted("L", 4, "n", TWO_TESTS).replace("setp.lt.u32 %p, %i, %n;", "setp.lt.and.u32 %p, %i, %n, %q;")
    question = KernelQuestion(ptx.parse(text(both), "k.ptx"), arch="sm_86")
    assert not launch_kernel(question).flow.is_plain
    ((name, _, deciders),) = {asked for info in launch_kernel(question).loops for asked in info.asks}
    assert (name, deciders) == ("k.cu:4", (flow.LaunchInput("parameters", "n"),))


@needs_tools
def test_loops_that_became_one_are_both_asked_for() -> None:
    loops = (Path(__file__).parent / "sass" / "loops.ptx").read_text()
    question = KernelQuestion(ptx.parse(loops, "k.ptx"), arch="sm_86", entry="merged")
    (info,) = launch_kernel(question).loops
    assert [asked.name for asked in info.asks] == ["OUTER", "INNER"]
