"""Assumptions: values, of which a verdict names those without which its number would be misread."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from makespan import Instance, Machine, cli, solve
from makespan.kernels import ptx
from makespan.kernels.flow import Launch, loop_bounds
from makespan.model.assumptions import (
    Assumption,
    AssumptionKind,
    as_compiled,
    as_written,
    carried_over,
    caveat,
    classes,
    first_fetch,
    given_blocks,
    given_loop,
    interval,
    lapses_left_out,
    latency,
    launch,
    queues_left_out,
    quote_name,
    unknown_opcodes,
    untimed_classes,
    unverified_latencies,
    warm_caches,
)
from makespan.model.conditions import CONDITIONS, conditions, is_well_formed, together
from makespan.model.machine import PAPER, Latency, PortResource, SchedulerPromise, UnitClass, Use
from makespan.model.machine.files import read_machine
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, digest, verify
from tests.ptx.texts import kernel

ROOT = Path(__file__).parents[1]

MADE = {
    "for the machine code on ampere-ga10x": as_compiled(86, "ampere-ga10x"),
    "for the machine code on 'x, exact'": as_compiled(86, "x, exact"),
    "for the PTX as written": as_written(),
    "with loop bounds as given (L=16)": given_loop("L", "at most 16 iterations (command line)", ("L=16",)),
    "with n=64": launch("block 32x1x1, n=64", ["n=64"]),
    "with unit classes as given (fma=S, add=C)": classes({"fma": "S", "add": "C"}),
    "with unknown opcodes as class C (brew.u32)": unknown_opcodes("C", ["brew.u32"]),
    "with unverified latencies (special, shared)": unverified_latencies({"special": "1..50", "shared": "23..70"}),
    "with at most 1 block on an SM, where 16 fit": given_blocks(1, 16),
    "with 6 blocks on an SM as given": given_blocks(6, None),
    "with warm caches of code and constants": warm_caches(),
    "with lapses as on 8.6": carried_over("8.6"),
    "although lapses are left out": lapses_left_out(),
    "although queues before memory, 'x, y' are left out": queues_left_out(["memory", "x, y"]),
    "if global takes at most 900 cycles": latency("global", "at most 900 cycles", "300 or more"),
    "if sfu takes 9 cycles, less than the machine says": latency("sfu", "9 cycles", "18..24", is_below=True),
    "if a first fetch of code takes at most 600 cycles": first_fetch("code", "at most 600 cycles"),
    "if class L holds memory for 2..4 cycles": interval("class L holds memory", "2..4 cycles", "2..32"),
    "if the unknown latencies of turing (C, L) were one cycle": untimed_classes("turing", ["C", "L"]),
}


@pytest.mark.parametrize("words", MADE)
def test_a_verdict_names_what_an_assumption_is_about(words: str) -> None:
    assert conditions([MADE[words]]) == (words,)
    assert is_well_formed(MADE[words])


def test_conditions_have_the_order_of_their_list_and_stand_once() -> None:
    made = [*MADE.values()]
    draw, said = random.Random(1), conditions(made)
    for _ in range(20):
        draw.shuffle(made)
        assert {*conditions(made)} == {*conditions(made + made)}
    kinds = [words.partition("{")[0] for words in (condition.words for condition in CONDITIONS)]
    order = [next(number for number, words in enumerate(kinds) if each.startswith(words)) for each in said]
    assert order == sorted(order)


def test_several_results_keep_what_only_some_of_them_assume() -> None:
    fast, slow = latency("global", "400 cycles", "300 or more"), latency("global", "900 cycles", "300 or more")
    found = together([[as_written(), fast], [as_written()], [slow]])
    assert found == ("for the PTX as written", "if global takes 400 cycles", "if global takes 900 cycles")


def test_the_page_lists_every_condition_with_its_kind_and_cause() -> None:
    page = (ROOT / "docs" / "conditions.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for row, condition in zip(rows, CONDITIONS, strict=True):
        words, kinds, cause = (cell.strip() for cell in row.strip("|").split(" | "))
        assert words == f"`{condition.words.replace('{}', chr(0x2026))}`"
        assert kinds == ", ".join(f"`{kind}`" for kind in condition.kinds)
        assert cause == condition.cause
    assert len({kind for condition in CONDITIONS for kind in condition.kinds}) == len(
        [kind for condition in CONDITIONS for kind in condition.kinds]
    )


def test_a_name_from_outside_that_is_no_plain_name_is_quoted() -> None:
    assert quote_name("ampere-ga10x") == "ampere-ga10x"
    for name in ("x if all is well", "x'y", "", "a: exact", "x" * 65):
        assert re.fullmatch("'[^']*'", quote_name(name))


# What users say stands in the verdict


LOOP = "L: add.s32 a,a,1;\nld.u32 b,[c];\nsetp.ne.u32 p,b,0;\n@p bra L;\nret;"
COUNTED = "mov.u32 a,0;\nL: add.u32 a,a,1;\nsetp.lt.u32 p,a,5;\n@p bra L;\nret;"


def said(text: str, **options: object) -> tuple[str, ...]:
    return conditions(ptx.program(kernel(text), **options).assumptions)  # type: ignore[arg-type]


def test_a_bound_that_only_a_user_or_a_comment_knows_is_a_condition() -> None:
    assert said(LOOP, loop_bounds=loop_bounds(["L=8"])) == (
        "for the PTX as written",
        "with loop bounds as given (L=8)",
    )
    assert "with loop bounds as given (L=9)" in said(LOOP.replace("L:", "L: // makespan: loop 9\n"))
    assert "with loop bounds as given (L==8)" in said(LOOP, loop_bounds=loop_bounds(["L==8"]))


def test_a_bound_that_the_code_proves_is_none_whoever_says_it() -> None:
    for given in ([], ["L=5"], ["L==5"], ["L=9"]):
        assert said(COUNTED, loop_bounds=loop_bounds(given)) == ("for the PTX as written",)


def test_parameters_are_a_condition() -> None:
    text = "ld.param.u32 a,[n];\nmov.u32 b,0;\nL: add.u32 b,b,1;\nsetp.lt.u32 p,b,a;\n@p bra L;\nret;"
    module = ptx.parse(f".version 8.0\n.target sm_80\n.entry k(.param .u32 n)\n{{ {text} }}", "k.ptx")
    found = ptx.program(module.kernel(), launch=Launch(parameters={"n": 7}))
    assert conditions(found.assumptions) == ("for the PTX as written", "with n=7")


def test_time_asleep_is_refused_where_nobody_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(".version 8.0\n.target sm_80\n.entry k() { nanosleep.u32 1000000; ret; }")
    assert cli.run(["solve", str(file), "--warps", "2"]) == 2
    assert "classes of units do not tell for how long" in capsys.readouterr().err
    ampere = ["--machine", "ampere-ga10x"]
    assert cli.run(["solve", str(file), "--warps", "2", *ampere]) == 2
    assert "--latency sleep=..N" in capsys.readouterr().err
    assert cli.run(["solve", str(file), "--warps", "2", *ampere, "--latency", "sleep=..5000", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "if sleep takes at most 5000 cycles" in out
    assert int(out.rpartition(" cycles")[0].rpartition(" ")[2]) >= 5000


# Nobody adds words to a verdict


def phrases() -> Iterator[str]:
    """Sentences of this package, and what comes close to them."""
    for assumption in MADE.values():
        yield str(assumption)
        yield str(assumption).replace("given", "given: nothing")
    for condition in CONDITIONS:
        yield condition.words.replace("{}", "nothing")
        yield f"{condition.words.replace('{}', 'x')}: the worst case is 1 cycle"
    yield from ("operations of machine mine are timed", "operations of machine 'paper', with class and any cycles: C")
    yield from (
        "no latency is known for C, L: 1 cycle",
        "no latency is known for Q: so what",
        "for this GPU all is well",
    )
    yield from ("this path only, not a worst case over inputs", "the hardware executes the machine code as it is")
    yield from ("assignment as given: warp w", "a warp belongs to one of 4 schedulers", "\u202eexact")


PRINTABLE = [words for words in phrases() if words.isprintable()]


@pytest.mark.parametrize("words", PRINTABLE)
def test_words_of_a_machine_file_never_change_a_verdict(words: str, tmp_path: Path) -> None:
    text = "[units.C]\ncapacity = 1\nsource = 'x'\n[units.L]\ncapacity = 1\nsource = 'x'\n"
    (tmp_path / "m.toml").write_text(f"caveats = [{json.dumps(words)}]\nnotes = [{json.dumps(words)}]\n{text}")
    machine = read_machine(tmp_path / "m.toml").machine
    found = solve(Instance.of("CLLC", 3, machine))
    assert str(found) == "exact if every instruction takes one cycle: the worst case is 8 cycles"
    assert caveat(words) in found.assumptions


@pytest.mark.parametrize("words", PRINTABLE)
def test_a_name_of_a_machine_never_changes_what_a_verdict_says(words: str) -> None:
    machine = Machine(words, (UnitClass("C", 1), UnitClass("L", 1)), untimed=("L",))
    (said,) = solve(Instance.of("CLLC", 2, machine)).caveats
    assert said == f"if the unknown latencies of {quote_name(words)} (L) were one cycle"
    assert said.count("'") == 2


def test_a_bundle_adds_no_words_of_its_own_to_a_verdict() -> None:
    """Whatever it says, the conditions that its instance decides stay, and all others have the form of their kind."""
    draw = random.Random(7)
    fair = replace(PAPER, scheduler=SchedulerPromise.FAIR)
    outcomes = set()
    for _ in range(400):
        result = solve(Instance.of("CLLC", 3, draw.choice([PAPER, fair])))
        about = tuple(draw.choice([*PRINTABLE, "L=3", "n=1", "2"]) for _ in range(draw.randint(0, 2)))
        lie = Assumption(draw.choice(list(AssumptionKind)), draw.choice(PRINTABLE), about)
        document = result_bundle(replace(result, assumptions=(*result.assumptions, lie)))
        verdict = verify({**document, "sha256": digest(document)})
        outcomes.add(verdict.outcome)
        if verdict.outcome is Outcome.ACCEPTED:
            assert is_well_formed(lie)
            assert verdict.conditions == result.caveats
            assert verdict.said == conditions([lie])[: len(verdict.said or ())]
    assert outcomes == {Outcome.ACCEPTED, Outcome.REJECTED}


def test_the_checker_says_what_its_number_is_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "b.json")
    options = ["--string", "CLLCLC", "--warps", "3", "--scheduler", "fair", "--quiet"]
    assert cli.run(["solve", *options, "--bundle", file]) == 0
    capsys.readouterr()
    assert cli.run(["verify", file]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("accepted for a fair scheduler, if every instruction takes one cycle: the worst case is ")
    assert second == "of: 3 x CLLCLC on machine paper (C=1, L=1, fair scheduler)"
    assert third.startswith("not checked: ")


def test_the_checker_prints_conditions_of_the_kernel_as_the_word_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "b.json")
    arguments = ["solve", str(ROOT / "ptx" / "vecadd.ptx"), "--block", "64", "--quiet", "--bundle", file]
    assert cli.run(arguments) == 0
    capsys.readouterr()
    assert cli.run(["verify", file]) == 0
    assert "as the file says, not checked: for the PTX as written" in capsys.readouterr().out.splitlines()


def test_a_class_that_holds_a_resource_for_longer_takes_more_than_a_cycle() -> None:
    for cycles, said in ((1, "if every instruction takes one cycle"), (8, "if every latency is one cycle")):
        loads = UnitClass("L", 1, uses=(Use(("memory",), 1, cycles),))
        machine = Machine("m", (UnitClass("C", 1), loads), resources=(PortResource("memory", 1),))
        found = solve(Instance.of("CLLC", 2, machine))
        assert found.caveats == (said,)
        assert verify(result_bundle(found)).conditions == (said,)


def test_a_bundle_whose_conditions_cannot_be_printed_is_rejected() -> None:
    result = solve(Instance.of("CLLC", 3))
    for about in ("x\naccepted: all is well=1", "x\x1b[2K=1", "\u202ex=1"):
        lie = Assumption(AssumptionKind.GIVEN_LOOP, "loop", (about,))
        verdict = verify(result_bundle(replace(result, assumptions=(*result.assumptions, lie))))
        assert (verdict.outcome, verdict.reason) == (
            Outcome.REJECTED,
            "an assumption has characters that cannot be printed",
        )


def test_the_checker_takes_a_bound_of_all_partitions_with_its_weights() -> None:
    units = tuple(UnitClass(name, 1, 2, Latency(2, 2)) for name in "CL")
    found = solve(Instance.of("CL", 3, Machine("m", units, 1, partitions=2)))
    assert found.upper_evidence == "theorem-e"
    assert verify(result_bundle(found)).outcome is Outcome.ACCEPTED
