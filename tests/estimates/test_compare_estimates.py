"""`makespan estimate --compare`: what is proven beside what is estimated, never mixed."""

import json
import re
from pathlib import Path

import pytest

from makespan import Instance, Machine, solve
from makespan.cli.running import BAD_INPUT
from makespan.kernels import ptx
from makespan.kernels.flow import Launch
from makespan.model.simulate.policies import POLICIES
from tests.command import Outcome, Runner
from tests.estimates.kleimenov_popova.inputs import PASCAL
from tests.schemas import published

ROOT = Path(__file__).parents[2]
VECADD = ("--compare", ROOT / "ptx" / "vecadd.ptx", "--block", 128, "--grid", 80, "--param", "3=10240")
SM = ("--capacity", "C=1,L=1")
FX5600 = ("--gpu", "quadro-fx5600", "--regs", 10)
GTX1050 = ("--gpu", "gtx1050", "--regs", 10, *PASCAL)


def parted(done: Outcome) -> tuple[str, str]:
    """What stands under "proven" and under "estimates"."""
    proven, estimated = re.split(r"^estimates, not bounds", done.out, flags=re.MULTILINE)
    return proven, estimated


def test_proven_and_estimated_stand_apart(estimate: Runner) -> None:
    done = estimate(*VECADD, *SM, *FX5600)
    assert done.code == 0
    proven, estimated = parted(done)
    for word in ("best case", "worst case", *POLICIES):
        assert word in proven
    for word in ("hong-kim", "kleimenov-popova", "opencl-cost-table", "dual-issue"):
        assert word in estimated
        assert word not in proven
    assert "proven, for one SM and every work-conserving scheduler" in proven
    assert "one run, not a bound" in proven
    assert "these numbers answer different questions" in estimated


def test_the_proven_numbers_are_those_of_solve(estimate: Runner) -> None:
    done = estimate(*VECADD, *SM, *FX5600, "--format", "json")
    document = json.loads(done.out)
    kernel = ptx.read(ROOT / "ptx" / "vecadd.ptx").kernel()
    groups = ptx.programs(kernel, launch=Launch((128, 1, 1), (80, 1, 1), {"3": 10240}))
    result = solve(Instance.merged(groups, Machine.of({"C": 1, "L": 1})), best_case=True)
    assert (document["proven"]["lower"], document["proven"]["upper"]) == (result.bounds.lower, result.bounds.upper)
    assert {run["policy"] for run in document["runs"]} == set(POLICIES)
    assert all(not run["is_bound"] for run in document["runs"])


def test_the_document_holds_estimates_and_what_others_lack(estimate: Runner) -> None:
    document = json.loads(estimate(*VECADD, *SM, *FX5600, "--format", "json").out)
    published("estimates-1").validate(document)
    assert document["schema"] == "makespan.estimates/1"
    assert [one["method"] for one in document["estimates"]] == ["hong-kim"]
    for one in document["estimates"]:
        published("estimate-1").validate(one)
    assert set(document["missing"]) == {"kleimenov-popova", "opencl-cost-table", "dual-issue"}


def test_a_method_says_in_the_comparison_what_it_says_alone(estimate: Runner, table: Path) -> None:
    alone = json.loads(estimate("--method", "hong-kim", *VECADD[1:], *FX5600, "--format", "json").out)
    (together,) = json.loads(estimate(*VECADD, *SM, *FX5600, "--format", "json").out)["estimates"]
    assert together == alone
    alone = json.loads(
        estimate("--method", "kleimenov-popova", *VECADD[1:], *GTX1050, "--worst-case-cache", "--format", "json").out
    )
    others = ("--table", "rmbp-gt650m", "--ffma-device", table)
    compared = json.loads(estimate(*VECADD, *SM, *GTX1050, "--worst-case-cache", *others, "--format", "json").out)
    together = {one["method"]: one for one in compared["estimates"]}
    assert set(together) == {"kleimenov-popova", "opencl-cost-table"}
    assert "executes no fma.rn.f32" in compared["missing"]["dual-issue"]
    assert together["kleimenov-popova"] == alone
    assert together["opencl-cost-table"]["cycles"] is None


def test_a_kernel_of_multiply_adds_has_a_bound_on_their_throughput_estimated(estimate: Runner, table: Path) -> None:
    polynomial = ("--compare", ROOT / "ptx" / "polynomial.ptx", "--block", 64, "--grid", 26, "--param", "3=1664")
    done = estimate(*polynomial, *SM, *FX5600, "--ffma-device", table, "--format", "json")
    (found,) = (one for one in json.loads(done.out)["estimates"] if one["method"] == "dual-issue")
    assert found["cycles"] > 0
    assert found["limiting"] == "FFMA throughput"
    origins = {one["name"]: (one["origin"], one["value"]) for one in found["quantities"]}
    assert (origins["sms"], origins["clock"]) == (("gpu", 16), ("gpu", 1.35))
    changed = estimate(*polynomial, *SM, *FX5600, "--ffma-device", table, "--set", "sms=8", "--format", "json")
    (given,) = (one for one in json.loads(changed.out)["estimates"] if one["method"] == "dual-issue")
    assert [one["origin"] for one in given["quantities"] if one["name"] == "sms"] == ["given"]
    assert given["cycles"] == pytest.approx(2 * found["cycles"])


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        (FX5600, "kleimenov-popova   says nothing: --l1pct and --l2pct not given"),
        (FX5600, "opencl-cost-table  says nothing: --table is missing"),
        (("--gpu", "hd6970"), "hong-kim           says nothing: GPU hd6970"),
        ((*FX5600, "--worst-case-cache"), "kleimenov-popova   says nothing: GPU quadro-fx5600"),
    ],
)
def test_what_a_method_lacks_is_named(gpu: tuple[object, ...], message: str, estimate: Runner) -> None:
    done = estimate(*VECADD, *SM, *gpu)
    assert done.code == 0
    assert message in done.out


def test_a_figure_can_be_set_for_the_comparison(estimate: Runner) -> None:
    slower = ("--set", "hong_kim.mem_ld=4200")
    first, second = (
        json.loads(estimate(*VECADD, *SM, *FX5600, *more, "--format", "json").out)["estimates"][0]["cycles"]
        for more in ((), slower)
    )
    assert second > first


def test_a_bounded_proof_has_its_own_exit_code(estimate: Runner) -> None:
    done = estimate(
        "--compare", ROOT / "ptx" / "sha256_round.ptx", "--block", 256, "--grid", 2, "--param", "2=512", *FX5600,
        "--capacity", "C=2,L=1", "--time-limit", "0.2",
    )  # fmt: skip
    assert done.code == 3
    assert "hong-kim" in parted(done)[1]
    assert (
        "\nbounded for the PTX as written, with sha256_round_param_2=512, if every instruction takes one cycle: the"
        " worst case is at least" in done.out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--compare", ROOT / "ptx" / "vecadd.ptx", "--block", 128, *FX5600), "the launch is not known: give --grid"),
        (("--compare", ROOT / "ptx" / "vecadd.ptx", *FX5600), "the launch is not known: give --block and --grid"),
        (("--compare", "--string", "CL", *FX5600), "needs a kernel: a .ptx or .cu file"),
        (("--compare", "-", "--input-format", "ptx", *FX5600), "give a file instead of '-'"),
        (VECADD, "Missing option '--gpu'"),
        ((*VECADD, "--gpu", "gtx9"), "unknown GPU 'gtx9'"),
        ((*VECADD, *FX5600, "--set", "mem_lt=3"), "unknown key 'mem_lt'"),
        ((*VECADD, *FX5600, "--ptxas", "/nowhere"), "cannot read the output of ptxas -v"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[object, ...], message: str, estimate: Runner) -> None:
    done = estimate(*arguments)
    assert done.code == BAD_INPUT
    assert message in done.err
    assert len(done.err.splitlines()) == 1
