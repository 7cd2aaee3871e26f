"""Estimates in words and as JSON, and the command that dispatches to methods."""

import json
import math

import pytest

from makespan.cli.running import BAD_INPUT
from makespan.estimates import Estimate, ModelQuantity, Origin, Term
from makespan.estimates.report import estimate as report
from makespan.host.errors import InputError
from tests.command import Runner
from tests.schemas import published

SCHEMA = published("estimate-1")
ESTIMATE = Estimate(
    method="hong-kim",
    cycles=50728.1875,
    seconds=5.07281875e-05,
    terms=(Term("execution", 38428.1875), Term("synchronisation", 12300.0), Term("bandwidth", 9.5, is_limit=True)),
    limiting="memory",
    quantities=(
        ModelQuantity("blocks", 80, "", Origin.GIVEN),
        ModelQuantity("comp_insts", 27, "", Origin.DERIVED, "from loop bounds and branches"),
        ModelQuantity("Mem_LD", 420, "cycles", Origin.GPU, "literature, unverified: a paper"),
        ModelQuantity("CWP_full", math.inf, "warps", Origin.DERIVED),
        ModelQuantity("pattern", "1122", "", Origin.MEASURED),
    ),
    warnings=("below what an SM can issue",),
)


def test_text_says_what_was_given_and_derived_what_limits_and_that_it_is_no_bound() -> None:
    lines = report.text(ESTIMATE).splitlines()
    assert lines == [
        "method hong-kim: an estimate, not a bound: the launch may take more, or less",
        "given: blocks = 80",
        "derived from the kernel and its launch: comp_insts = 27, CWP_full = inf warps",
        "from the description of the GPU: Mem_LD = 420 cycles",
        "measured on the device: pattern = 1122",
        "made of (cycles):",
        "  execution               38428.2",
        "  synchronisation           12300",
        "the largest counts (cycles):",
        "  bandwidth                   9.5",
        "limited by: memory",
        "warning: below what an SM can issue",
        "estimate (not a bound) by hong-kim: 50728.2 cycles, 5.07282e-05 s",
    ]


def test_explained_text_has_a_line_with_its_source_for_every_quantity() -> None:
    lines = report.text(ESTIMATE, explain=True).splitlines()
    assert "  Mem_LD = 420 cycles  literature, unverified: a paper" in lines
    assert "  comp_insts = 27       from loop bounds and branches" in lines


def test_long_lists_of_quantities_are_folded_between_quantities() -> None:
    several = tuple(ModelQuantity(f"quantity_{n}", n, "cycles per warp", Origin.GIVEN) for n in range(20))
    lines = report.text(Estimate("m", 1, None, (), "nothing", several)).splitlines()
    assert all(len(line) <= 110 for line in lines)
    assert all("cycles per warp" in line and not line.endswith("=") for line in lines[1:-2])


def test_document_is_as_its_schema_says() -> None:
    document = report.document(ESTIMATE)
    SCHEMA.validate(json.loads(json.dumps(document, allow_nan=False)))
    assert (document["schema"], document["kind"], document["is_bound"]) == ("makespan.estimate/1", "estimate", False)
    assert document["quantities"][3]["value"] == "inf"
    assert document["terms"][2] == {"name": "bandwidth", "value": 9.5, "is_limit": True}


def test_seconds_alone_are_fine_and_nothing_at_all_is_refused() -> None:
    found = Estimate("opencl-cost-table", None, 2e-3, (Term("transfer", 1e-3),), "transfer", ())
    assert "made of (s):" in report.text(found)
    assert report.verdict(found) == "estimate (not a bound) by opencl-cost-table: 0.002 s"
    with pytest.raises(InputError, match="neither cycles nor seconds"):
        Estimate("m", None, None, (), "", ())
    with pytest.raises(InputError, match="not a time: nan"):
        Estimate("m", math.nan, None, (), "", ())


def test_help_lists_the_methods_without_importing_them(estimate: Runner) -> None:
    shown = estimate("--help")
    assert shown.code == 0
    for name in ("hong-kim", "kleimenov-popova", "opencl-cost-table", "dual-issue", "compare"):
        assert name in shown.out
    assert "not a bound" in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which method? begin with --method hong-kim|kleimenov-popova"),
        (["k.ptx"], "which method? begin with --method hong-kim|kleimenov-popova"),
        (["k.ptx", "--method", "hong-kim"], "which method? begin with --method hong-kim|kleimenov-popova"),
        (["--compare", "k.ptx", "--method=hong-kim"], "No such option '--method'"),
        (["hong-kim", "k.ptx", "--compare"], "No such option '--compare'"),
        (["--method"], "unknown method ''"),
        (["--method", "guess", "k.ptx"], "unknown method 'guess'"),
        (["--method=guess", "k.ptx"], "unknown method 'guess'"),
    ],
)
def test_a_method_must_be_named(arguments: list[str], message: str, estimate: Runner) -> None:
    done = estimate(*arguments)
    assert done.code == BAD_INPUT
    assert message in done.err


@pytest.mark.parametrize("name", ["hong-kim", "kleimenov-popova", "static-fixpoint", "opencl-cost-table", "cost-table"])
def test_a_method_comes_first_with_or_without_the_option(name: str, estimate: Runner) -> None:
    by_option, first = estimate("--method", name, "--help"), estimate(name, "--help")
    assert by_option == first == estimate(f"--method={name}", "--help")
    assert (by_option.code, by_option.err) == (0, "")
