"""Execution times: only what is proven or vouched for becomes one, and nothing that is kept is trusted."""

import hashlib
import json
import os
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan import Instance, KernelQuestion, Launch, Limits, Machine, Result, solve
from makespan.deadlines import files
from makespan.deadlines import wcet as wcet_module
from makespan.deadlines.description import KernelLaunch
from makespan.deadlines.wcet import Solver, Wcet, WcetGround, claim_of_bundle, execution_times, on_one_sm, on_sms
from makespan.estimates.estimate import Estimate
from makespan.host import tool
from makespan.host.errors import InputError
from makespan.model.assumptions import (
    Assumption,
    as_written,
    caveat,
    dram_rate,
    one_path,
    trusted_loop,
    untimed_classes,
)
from makespan.model.assumptions import AssumptionKind as About
from makespan.model.claim import WorstCaseClaim
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance
from makespan.model.lapses import PlaceLapses
from makespan.model.machine import PAPER, SchedulerPromise, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.proof.engines.gpu import solve_gpu
from makespan.report import cache
from makespan.report.cache import BundleCache
from makespan.report.gpu import bundle as gpu_bundle
from makespan.report.result import bundle
from makespan.verify import Outcome, digest, verify
from tests.oracle import brute_force, brute_force_gpu
from tests.strategies import barrier_instances, general_machines

ROOT = Path(__file__).parents[2]
FILE = """
clock = "1.4GHz"

[[partition]]
name = "gpu"
policy = "fifo"
sms = {sms}

[[task]]
name = "a"
period = "1ms"
deadline = "1ms"
partition = "gpu"
{source}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("vecadd.ptx", "divergent.ptx", "reduction.ptx"):
        shutil.copy(ROOT / "ptx" / name, tmp_path / name)
    return tmp_path


def one(folder: Path, source: str, *, sms: int = 1, store: wcet_module.ClaimStore | None = None) -> Wcet:
    path = folder / "tasks.toml"
    path.write_text(FILE.format(source=source, sms=sms))
    return execution_times(files.read(path), Solver(lambda: Limits(20), store))["a"]


def refusal(folder: Path, source: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        one(folder, source, **options)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'tasks.toml'}: task a: ")
    assert "\n" not in message
    return message.removeprefix(f"{folder / 'tasks.toml'}: task a: ")


# Where execution times come from


def test_a_given_time_is_shown_as_what_it_is(folder: Path) -> None:
    found = one(folder, 'wcet = "200us"\nevidence = "measured"')
    assert found == Wcet(Fraction(1, 5000), None, WcetGround.GIVEN, "measured")
    found = one(folder, 'cycles = 7\nevidence = "datasheet"')
    assert found == Wcet(Fraction(7, 1_400_000_000), 7, WcetGround.GIVEN, "datasheet")
    assert not found.is_exact


def test_only_a_kernel_of_one_path_is_shown_to_take_its_time(folder: Path) -> None:
    shutil.copy(ROOT / "ptx" / "fir.ptx", folder)
    inferred = 'kernel = "fir.ptx"\nwarps = 2'
    known, loose = one(folder, inferred), one(folder, inferred + "\nloop_bound = ['$L__BB0_1=20']")
    assert known.is_one_path
    assert known.time().is_shown
    assert (loose.is_exact, loose.is_one_path, loose.time().is_shown) == (True, False, False)
    store = BundleCache(folder / "kept", effort="20 s", note=print)
    for _ in range(2):  # solved, then kept
        assert not one(folder, inferred + "\nloop_bound = ['$L__BB0_1=20']", store=store).is_one_path


def test_a_kernel_is_solved(folder: Path) -> None:
    found = one(folder, 'kernel = "vecadd.ptx"\nblock = 256\ngrid = 1')
    assert (found.cycles, found.seconds, found.kind) == (140, Fraction(140, 1_400_000_000), WcetGround.PROVEN)
    assert found.evidence == "kernel vecadd.ptx: 8 warps on machine paper: 140 cycles, exact, by theorem-e"
    assert found.is_exact
    assert any("the hardware executes the PTX as it is written" in str(note) for note in found.assumptions)
    assert one(folder, 'kernel = "vecadd.ptx"\nwarps = 8').cycles == 140


def test_kernels_that_differ_in_the_sign_of_a_zero_are_two(folder: Path) -> None:
    """The number 0.0 equals -0.0, but the bits of a parameter do not, and a branch may see them."""
    body = ".reg .pred p; .reg .b32 a; ld.param.b32 a, [x]; setp.eq.u32 p, a, 0; @p bra E; add.u32 a, a, 1; E: ret;"
    (folder / "k.ptx").write_text(f".version 8.0\n.target sm_75\n.entry k(.param .f32 x) {{ {body} }}")
    head, task = FILE.split("[[task]]")
    ours = task.format(source='kernel = "k.ptx"\nwarps = 1\nparam = { x = 0.0 }')
    other = ours.replace('"a"', '"b"').replace("0.0", "-0.0")
    path = folder / "tasks.toml"
    path.write_text("[[task]]".join([head.format(sms=1), ours, other]))
    found = execution_times(files.read(path), Solver(lambda: Limits(20)))
    assert {name: wcet.cycles for name, wcet in found.items()} == {"a": 3, "b": 4}


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        ("loop_bound = ['H=1']", "loop_bound = ['H=9']"),
        ("loop_bound = ['H=2']", "loop_bound = ['H=2']\nclasses = 'c.toml'"),
        (
            "loop_bound = ['H=2']\nmachine = 'turing'\nlatency = ['global=50']",
            "loop_bound = ['H=2']\nmachine = 'turing'\nlatency = ['global=90']",
        ),
    ],
)
def test_kernels_that_differ_in_what_is_said_of_them_are_two(folder: Path, fast: str, slow: str) -> None:
    body = "H: ld.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra H; ret;"
    (folder / "k.ptx").write_text(f".version 8.0\n.target sm_75\n.entry k() {{ {body} }}")
    (folder / "c.toml").write_text('ret = "C"')
    head, task = FILE.split("[[task]]")
    tasks = [task.format(source=f'kernel = "k.ptx"\nwarps = 1\n{more}') for more in (fast, slow)]
    path = folder / "tasks.toml"
    path.write_text("[[task]]".join([head.format(sms=1), tasks[0], tasks[1].replace('"a"', '"b"')]))
    found = execution_times(files.read(path), Solver(lambda: Limits(20)))
    assert found["a"].seconds < found["b"].seconds


def test_a_bundle_is_verified_and_shown(folder: Path) -> None:
    bundle.write_bundle(solve(Instance.of("CLLCLL", 2)), folder / "k.json")
    found = one(folder, 'bundle = "k.json"')
    assert (found.cycles, found.kind) == (10, WcetGround.PROVEN)
    assert found.evidence == "bundle k.json: 2 warps on machine paper: 10 cycles, exact, by theorem-e"


def test_cycles_need_a_clock(folder: Path) -> None:
    text = FILE.replace('clock = "1.4GHz"', "")
    for source in ('cycles = 7\nevidence = "x"', 'kernel = "vecadd.ptx"\nwarps = 2'):
        (folder / "tasks.toml").write_text(text.format(source=source, sms=1))
        with pytest.raises(InputError, match="task a: cycles need a clock: give clock"):
            execution_times(files.read(folder / "tasks.toml"), Solver(Limits))


def test_equal_kernels_are_solved_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Instance] = []

    def counted(instance: Instance, **options: Any) -> Result:
        asked.append(instance)
        return solve(instance, **options)

    monkeypatch.setattr(wcet_module, "solve", counted)
    text = FILE.format(source='kernel = "vecadd.ptx"\nwarps = 2', sms=1)
    task = text[text.index("[[task]]") :]
    (folder / "tasks.toml").write_text(text + task.replace('"a"', '"b"'))
    times = execution_times(files.read(folder / "tasks.toml"), Solver(Limits))
    assert times["a"] == times["b"]
    assert len(asked) == 1


def test_equal_kernels_with_other_lapses_are_solved_apart() -> None:
    solver, program = Solver(Limits), Program.chain("CLLC")
    some, more = (Instance.of(program.lapsing((PlaceLapses(credit=credit),) * 4), 3) for credit in (1, 2))
    assert (some, some.assumptions) == (more, more.assumptions)  # lapses are no part of the equality
    assert [solver.claim(one).upper for one in (some, more, some)] == [8 + 12, 8 + 24, 8 + 12]
    assert (solver.claim(some).lower, solver.claim(some).proof) == (8, "lapses")


@pytest.mark.parametrize("credits_", [(0, 1, 2), (0, 2, 1)])
def test_lapses_may_depend_on_the_number_of_sms(
    credits_: tuple[int, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How late a line is may depend on it, and a partition may have one SM or two."""

    def of_size(_launch: KernelLaunch, sms: int, _card: object) -> GpuInstance:
        late = Program.chain("CLLC").lapsing((PlaceLapses(credit=credits_[sms]),) * 4)
        return GpuInstance.of(((late, 3),), 1, PAPER, sms=sms, resident=1)

    monkeypatch.setattr(wcet_module, "on_sms", of_size)
    text = FILE.format(source='kernel = "vecadd.ptx"\ngrid = 1\nblock = 96', sms=1)
    task = text.replace('partition = "gpu"\n', "") + text[text.index("[[partition]]") : text.index("[[task]]")].replace(
        'name = "gpu"', 'name = "other"'
    ).replace("sms = 1", "sms = 2")
    (folder / "tasks.toml").write_text(task)
    assert execution_times(files.read(folder / "tasks.toml"), Solver(Limits))["a"].cycles == 8 + 24


# What is no execution time


def test_an_estimate_is_refused_by_its_type() -> None:
    estimate = Estimate("hong-kim", 100.0, None, (), "memory", ())
    with pytest.raises(InputError, match="must be a proven upper bound, and Estimate is none: take the Result of"):
        WorstCaseClaim.of(estimate)
    with pytest.raises(InputError, match="and float is none"):
        WorstCaseClaim.of(100.0)
    assert WorstCaseClaim.of(solve(Instance.of("CL", 2))).upper == 3


@pytest.mark.parametrize("schema", ["makespan.estimate/1", "makespan.estimate/hong-kim/2", "makespan.estimates/1"])
def test_a_file_with_an_estimate_is_refused_by_name(folder: Path, schema: str) -> None:
    (folder / "e.json").write_text(json.dumps({"schema": schema, "cycles": 100}))
    message = (
        f"{folder / 'e.json'}: this is an estimate ({schema}), which bounds nothing; solve the kernel with --bundle"
    )
    assert refusal(folder, 'bundle = "e.json"').startswith(message)


def test_a_bundle_that_claims_too_little_is_refused_even_with_a_fitting_digest(folder: Path) -> None:
    content = bundle.result_bundle(solve(Instance.of("CLLCLL", 3)))
    content["result"]["upper"] -= 1
    content["result"]["lower"] -= 1
    (folder / "k.json").write_text(json.dumps(content))
    assert refusal(folder, 'bundle = "k.json"').startswith(f"{folder / 'k.json'}: rejected: ")
    del content["sha256"]
    content["sha256"] = hashlib.sha256(bundle.canonical_json(content)).hexdigest()
    (folder / "k.json").write_text(json.dumps(content))
    assert refusal(folder, 'bundle = "k.json"').startswith(f"{folder / 'k.json'}: rejected: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a bundle: it is not JSON; the file is empty"),
        ("{}", "rejected: not a bundle: schema is not 'makespan.bundle/3'"),
        ("[" * 100_000, "not a bundle: nested too deeply"),
        ('{"schema": "makespan.result/2", "upper": 5}', "rejected: not a bundle: schema is not 'makespan.bundle/3'"),
        ('{"schema": ["makespan.estimate/1"]}', "rejected: not a bundle: schema is not 'makespan.bundle/3'"),
    ],
)
def test_what_is_no_bundle_is_refused(folder: Path, content: str, message: str) -> None:
    (folder / "k.json").write_text(content)
    assert refusal(folder, 'bundle = "k.json"') == f"{folder / 'k.json'}: {message}"


def test_a_bundle_that_cannot_be_read_is_refused(folder: Path) -> None:
    assert (
        refusal(folder, 'bundle = "k.json"')
        == f"{folder / 'k.json'}: cannot read the bundle: No such file or directory"
    )
    (folder / "k.json").mkdir()
    assert refusal(folder, 'bundle = "k.json"') == f"{folder / 'k.json'}: cannot read the bundle: Is a directory"


def test_of_a_claim_that_cannot_be_re_proved_only_what_can_be_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solve(Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1})), backend="search")
    assert (result.bounds, result.pessimistic) == (Bounds(10, 10), 14)
    path = tmp_path / "k.json"
    bundle.write_bundle(replace(result, certificate=None), path)
    monkeypatch.setattr(wcet_module, "verify", lambda document: verify(document, most_states=1))
    claim = claim_of_bundle(path, [1])
    assert (claim.lower, claim.upper, claim.proof) == (10, 14, "what could be re-proved of 10 by search")


PATH = one_path("S=fall")


def test_one_path_is_no_worst_case_unless_somebody_says_why(folder: Path) -> None:
    source = 'kernel = "divergent.ptx"\nwarps = 2\ntake = ["S=fall"]'
    assert refusal(folder, source).startswith(f'{PATH}: say in evidence = "..." why no other path can be taken')
    found = one(folder, f'{source}\nevidence = "p is never true"')
    assert found.evidence.endswith("; for this path only; p is never true")


def test_a_bundle_of_one_path_is_no_worst_case_either(folder: Path) -> None:
    result = solve(Instance.of(Program.chain("CLCLC", assumptions=(PATH,)), 2))
    bundle.write_bundle(result, folder / "k.json")
    assert refusal(folder, 'bundle = "k.json"').startswith(f"k.json says: {PATH}: say in")
    assert one(folder, 'bundle = "k.json"\nevidence = "why"').cycles == 6


def test_a_bundle_with_bounds_that_the_code_contradicts_needs_a_reason(folder: Path) -> None:
    doubt = trusted_loop("L", "at most 3 iterations (command line)", "exactly 8 iterations (why)")
    result = solve(Instance.of(Program.chain("CLCLC", assumptions=(doubt,)), 2))
    bundle.write_bundle(result, folder / "k.json")
    assert refusal(folder, 'bundle = "k.json"').startswith(
        f'k.json says: {doubt}: say in evidence = "..." why they hold'
    )
    found = one(folder, 'bundle = "k.json"\nevidence = "measured"')
    assert found.evidence.endswith("; with loop bounds trusted against the code; measured")
    assert any(note.kind is doubt.kind for note in found.assumptions)


def test_a_bundle_has_the_caveats_of_its_machine_and_its_assumptions(folder: Path) -> None:
    units = (UnitClass("C", 1), UnitClass("L", 1))
    gpu = Machine("some GPU", units, untimed=("C", "L"))
    for machine, about in (
        (PAPER, "if every instruction takes one cycle"),
        (gpu, "if the unknown latencies of 'some GPU' (C, L) were one cycle"),
    ):
        program = Program.chain("CLCLC", assumptions=(as_written(), PATH))
        result = solve(Instance.of(program, 2, machine))
        bundle.write_bundle(result, folder / "k.json")
        found = conditions(claim_of_bundle(folder / "k.json", [1]).assumptions)
        assert found == result.caveats == ("for the PTX as written", "for this path only", about)
        assert one(folder, 'bundle = "k.json"\nevidence = "why"').caveats == found


def test_a_bundle_of_a_gpu_is_for_as_many_sms(folder: Path) -> None:
    gpu = GpuInstance.of(((Program.chain("CLCLC"), 2),), 9, PAPER, sms=2, resident=2)
    proven = solve_gpu(gpu)
    gpu_bundle.write_gpu_bundle(proven, folder / "k.json")
    found = one(folder, 'bundle = "k.json"', sms=2)
    assert found.cycles == proven.bounds.upper
    assert found.evidence.startswith("bundle k.json: 9 blocks of 2 warps on 2 SMs with 2 each, paper: ")
    assert not found.time().is_shown
    assert any(str(note).startswith("the dispatcher is work-conserving") for note in found.assumptions)
    for sms in (1, 3):
        message = f": it is about 2 SMs, and the partition has {sms}: a proof for one number of SMs is none for another"
        assert refusal(folder, 'bundle = "k.json"', sms=sms).endswith(message)


@pytest.mark.parametrize(
    "lie",
    [
        Assumption(About.UNTIMED, "no latency is known for C) schedulable (L", ("paper (C) schedulable (L)",)),
        untimed_classes("paper", ["Q"]),
        Assumption(About.LATENCY, "latency as given", ("nothing at all",)),
        Assumption(About.FAIR, "the scheduler is fair"),
        Assumption(About.MACHINE, "machine 'paper': nobody states a latency"),
        Assumption(About.CAVEAT, "words about something", ("schedulable",)),
    ],
)
def test_a_bundle_cannot_state_conditions_that_its_instance_does_not_have(folder: Path, lie: Assumption) -> None:
    result = solve(Instance.of("CL", 2))
    bundle.write_bundle(replace(result, assumptions=(*result.assumptions, lie)), folder / "k.json")
    assert "k.json: rejected: " in refusal(folder, 'bundle = "k.json"')


def test_a_bundle_cannot_leave_out_the_conditions_of_its_instance(folder: Path) -> None:
    result = solve(Instance.of("CL", 2, replace(PAPER, scheduler=SchedulerPromise.FAIR)))
    for left_out in (About.FAIR, About.ONE_CYCLE):
        kept = tuple(note for note in result.assumptions if note.kind is not left_out)
        bundle.write_bundle(replace(result, assumptions=kept), folder / "k.json")
        assert "does not follow from the instance" in refusal(folder, 'bundle = "k.json"')


def test_kept_results_have_the_caveats_of_solved_ones(folder: Path) -> None:
    log = Log()
    source = 'kernel = "vecadd.ptx"\nwarps = 2\nmachine = "pascal-gp100"'
    each = [one(folder, source, store=kept(folder, log)) for _ in range(2)]
    assert not log
    assert each[0].caveats == each[1].caveats
    assert each[1].caveats == (
        "for the PTX as written",
        "for a whole SM without its partitions",
        "although lapses are left out",
        "if the unknown latencies of pascal-gp100 (C, L, S, D) were one cycle",
    )
    assert one(folder, 'wcet = "200us"\nevidence = "measured"').caveats == ()


def test_what_a_bundle_says_beyond_its_numbers_is_marked(folder: Path) -> None:
    result = solve(Instance.of("CLLCLL", 2, Machine.of({"C": 9, "L": 9})))
    lie = caveat("machine 'paper': units C=1, L=1")
    bundle.write_bundle(replace(result, assumptions=(*result.assumptions, lie)), folder / "k.json")
    found = list(map(str, one(folder, 'bundle = "k.json"').assumptions))
    assert any("units C=9, L=9" in note for note in found)
    assert str(lie) not in found
    assert f"k.json says: {lie}" in found
    assert any(note.startswith("k.json: the numbers were verified, for the warps that are in it") for note in found)


def test_a_bundle_cannot_write_lines_of_the_report(folder: Path) -> None:
    result = solve(Instance.of("CLLCLL", 2))
    lie = caveat("x\n\nschedulable: \x1b[31m")
    bundle.write_bundle(replace(result, assumptions=(*result.assumptions, lie)), folder / "k.json")
    assert "has characters that cannot be printed" in refusal(folder, 'bundle = "k.json"')


def test_a_bundle_whose_assumptions_are_words_is_refused(folder: Path) -> None:
    document = bundle.result_bundle(solve(Instance.of("CLLCLL", 2)))
    document |= {"schema": "makespan.bundle/2", "result": document["result"] | {"schema": "makespan.result/1"}}
    document["result"]["assumptions"] = [note["text"] for note in document["result"]["assumptions"]]
    (folder / "k.json").write_text(json.dumps({**document, "sha256": digest(document)}))
    assert verify(json.loads((folder / "k.json").read_text())).outcome is Outcome.ACCEPTED
    assert refusal(folder, 'bundle = "k.json"').endswith("its number holds: solve the question again")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('kernel = "none.ptx"\nwarps = 1', "none.ptx: cannot read the PTX file: No such file or directory"),
        ('kernel = "tasks.toml"\nwarps = 1', "tasks.toml: not a kernel file; expected .ptx or .cu"),
        ('kernel = "vecadd.ptx"\nentry = "x"\nwarps = 1', "no kernel 'x'"),
        (
            'kernel = "vecadd.ptx"\nblock = 256',
            "the number of blocks is not known: give grid, such as grid = 1 (or warps",
        ),
        ('kernel = "vecadd.ptx"', "the number of blocks is not known: give grid, such as grid = 1 (or warps"),
        ('kernel = "vecadd.ptx"\nblock = 256\nwarps = 8', "the number of blocks is not known: give grid, such as grid"),
        (
            'kernel = "vecadd.ptx"\ngrid = 1',
            "1 input is missing: the threads of a block, or its warps (block N, or warps N)",
        ),
        (
            'kernel = "vecadd.ptx"\nblock = 256\ngrid = 1\nwarps = 3',
            "block means 8 warps for each block, and warps says otherwise: leave warps out",
        ),
        ('kernel = "vecadd.ptx"\nwarps = 2\nparam = ["x=1"]', "param x: no such parameter of kernel vecadd"),
        ('kernel = "vecadd.ptx"\nwarps = 2\nloop_bound = ["L=1"]', "L"),
        ('kernel = "vecadd.ptx"\nwarps = 2\narch = "compute_80"', "vecadd.ptx: arch is for CUDA source (.cu)"),
    ],
)
def test_a_launch_that_lacks_something_is_refused(folder: Path, source: str, message: str) -> None:
    assert message in refusal(folder, source)


# Blocks and SMs


def test_a_grid_of_several_blocks_says_how_many_are_resident(folder: Path) -> None:
    source = 'kernel = "vecadd.ptx"\nblock = 128\ngrid = 4'
    missing = (
        "kernel vecadd: 1 input is missing: the blocks that are resident on an SM at once (blocks_per_sm N, or arch "
    )
    assert missing in refusal(folder, source)
    found = one(folder, f"{source}\nblocks_per_sm = 2", sms=2)
    assert found.cycles == solve(Instance.of(one_block(folder), 8, blocks=2)).bounds.upper == 140
    assert "with 2 blocks on an SM as given" in found.caveats


def one_block(folder: Path) -> Program:
    question = KernelQuestion(folder / "vecadd.ptx", launch=Launch((128, 1, 1), (4, 1, 1)), blocks_per_sm=4)
    return on_one_sm(on_sms(KernelLaunch(question, PAPER), 1))[0].groups[0].program


def test_a_port_that_the_machine_lacks_is_held_by_nothing(folder: Path) -> None:
    message = refusal(folder, 'kernel = "vecadd.ptx"\nblock = 128\ngrid = 1\nhold = ["memory=1"]')
    assert message.startswith("machine 'paper': no class holds 'memory' for a range of cycles; ")


@pytest.mark.parametrize(("sms", "resident"), [(1, 3), (3, 1), (2, 1)])
def test_a_grid_of_several_waves_is_bounded_by_theorem_g(folder: Path, sms: int, resident: int) -> None:
    found = one(folder, f'kernel = "vecadd.ptx"\nblock = 128\ngrid = 4\nblocks_per_sm = {resident}', sms=sms)
    gpu = GpuInstance.of(((one_block(folder), 4),), 4, PAPER, sms=sms, resident=resident)
    assert found.cycles == theorem_g(gpu).upper
    assert f"4 blocks of 4 warps on {sms} SM" in found.evidence
    assert found.evidence.endswith(", by theorem-g")
    assert any(str(note).startswith("the dispatcher is work-conserving") for note in found.assumptions)


@pytest.mark.parametrize(("sms", "resident", "blocks"), [(1, 1, 3), (1, 2, 3), (2, 1, 3), (2, 2, 3)])
def test_an_execution_time_on_several_sms_contains_the_worst_case(
    folder: Path, sms: int, resident: int, blocks: int
) -> None:
    """Of every dispatcher and scheduler, by brute force."""
    straight(folder)
    source = f'kernel = "k.ptx"\nblock = 32\ngrid = {blocks}\nblocks_per_sm = {resident}'
    found = one(folder, source, sms=sms)
    question = KernelQuestion(folder / "k.ptx", launch=Launch((32, 1, 1), (blocks, 1, 1)), blocks_per_sm=resident)
    truth = brute_force_gpu(on_sms(KernelLaunch(question), sms)).upper
    assert found.cycles is not None
    assert found.at_least is not None
    assert found.at_least * 1_400_000_000 <= truth <= found.cycles


def on_card(folder: Path, source: str, sms: int | str = 16) -> Wcet:
    path = folder / "tasks.toml"
    given = sms if isinstance(sms, int) else f'"{sms}"'
    path.write_text('gpu = "rtx-3070"' + FILE.format(source=source, sms=given).replace('clock = "1.4GHz"', ""))
    return execution_times(files.read(path), Solver(lambda: Limits(0.1)))["a"]


GROWING = 'kernel = "vecadd.ptx"\nblock = 256\nblocks_per_sm = 6\nlatency = ["global=..400+10n"]'


@pytest.mark.parametrize(("grid", "sms", "active"), [(8, 16, 8 + 30), (46, 46, 46), (40, 1, 46)])
def test_all_sms_that_may_be_at_work_on_something_else_count_as_active(
    folder: Path, grid: int, sms: int, active: int
) -> None:
    found = on_card(folder, f"{GROWING}\ngrid = {grid}", sms)
    assert f"if global takes at most {400 + 10 * active} cycles with {active} active SMs" in found.caveats


@pytest.mark.parametrize(("latency", "is_shown"), [("..900", True), ("..400+10n", False)])
def test_what_takes_so_long_because_of_others_is_not_shown(folder: Path, latency: str, is_shown: bool) -> None:
    straight(folder)
    launch = f'kernel = "k.ptx"\nblock = 32\ngrid = 40\nblocks_per_sm = 1\nlatency = ["global={latency}"]'
    assert on_card(folder, launch).time().is_shown == is_shown


WITH_DRAM = GROWING.replace("..400+10n", "..450+dram")


def test_a_kernel_alone_on_a_gpu_is_later_by_what_dram_needs(folder: Path) -> None:
    found = on_card(folder, f"{WITH_DRAM}\ngrid = 46", 46)
    without = on_card(folder, f"{WITH_DRAM.replace('+dram', '')}\ngrid = 46", 46)
    moved = 46 * 8 * (1024 + 1024 + 2048) + 4 * 2**20
    assert found.cycles is not None
    assert without.cycles is not None
    assert found.cycles >= without.cycles + moved * 1725 // 448_000
    assert "if global takes at most 450 cycles besides those in which DRAM is busy" in found.caveats
    assert "if DRAM moves at least 448 GB/s, its peak, as long as an access waits for it" in found.caveats
    assert not found.time().is_shown


SUPPOSES = "+dram supposes that nothing else uses DRAM, and"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("sms = 46", "sms = 45", "nobody says what the other 1 SMs of rtx-3070 ask of it; ask about all 46 SMs"),
        ("[[task]]", '[[copy_engine]]\nname = "up"\npolicy = "fifo"\n[[task]]', f"{SUPPOSES} there are copies"),
        (
            "[[partition]]",
            'clock = "1.8GHz"\n[[partition]]',
            "+dram counts cycles of the largest clock of rtx-3070, 1.725",
        ),
        (
            'policy = "fifo"',
            'policy = "time-sliced"\nslice = "1ms"\nswitch = "1us"\nswitch_evidence = "measured"',
            f"{SUPPOSES} contexts take a partition in turn",
        ),
    ],
)
def test_what_others_may_do_to_dram_is_refused(folder: Path, before: str, after: str, message: str) -> None:
    path, text = folder / "tasks.toml", FILE.format(source=f"{WITH_DRAM}\ngrid = 46", sms=46)
    if "time-sliced" in after:
        text = text.replace("[[task]]", '[[task]]\ncontext = "one"')
    path.write_text('gpu = "rtx-3070"' + text.replace('clock = "1.4GHz"', "").replace(before, after))
    with pytest.raises(InputError) as caught:
        execution_times(files.read(path), Solver(lambda: Limits(0.1)))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: task a: ")


WARM = """
kernel = "polynomial.sm_86.cubin"
machine = "ampere-ga10x"
block = 32
grid = 1
blocks_per_sm = 1
latency = ["global=..600"]
warm = true
"""
ANOTHER = '[[task]]\nname = "b"\nperiod = "1ms"\ndeadline = "1ms"\npartition = "gpu"\n'


@pytest.mark.skipif(tool.find("nvdisasm") is None, reason="nvdisasm is not installed")
@pytest.mark.parametrize(
    ("other", "is_refused"), [("", False), (ANOTHER + WARM, False), (ANOTHER + 'wcet = "1us"\nevidence = "mine"', True)]
)
def test_caches_are_not_warm_where_another_kernel_may_run(folder: Path, other: str, is_refused: bool) -> None:
    shutil.copy(ROOT / "ptx" / "polynomial.sm_86.cubin", folder)
    path = folder / "tasks.toml"
    path.write_text(FILE.format(source=WARM, sms=1) + other)
    solver = Solver(lambda: Limits(0.1))
    if not is_refused:
        assert "with warm caches of code and constants" in execution_times(files.read(path), solver)["a"].caveats
        return
    with pytest.raises(InputError, match="task a: warm supposes that the launch before was of the same kernel"):
        execution_times(files.read(path), solver)


def straight(folder: Path) -> None:
    (folder / "k.ptx").write_text(
        ".version 8.0\n.target sm_75\n.entry k() { .reg .b32 a, b; add.u32 a, a, 1; ld.global.u32 b, [0]; ret; }"
    )


def test_a_latency_that_grows_needs_a_gpu(folder: Path) -> None:
    message = refusal(folder, f"{GROWING}\nmachine = 'ampere-ga10x'\ngrid = 8")
    assert message.startswith("latency of global: ..400+10n depends on how many SMs are active: say on which GPU")


def test_no_more_blocks_are_resident_than_an_sm_of_the_gpu_holds(folder: Path) -> None:
    with pytest.raises(InputError, match="task a: blocks_per_sm 7: only "):
        on_card(folder, GROWING.replace("= 6", "= 7") + "\ngrid = 100")


def test_the_clock_of_a_gpu_counts_where_no_other_is_said(folder: Path) -> None:
    found = on_card(folder, 'kernel = "vecadd.ptx"\nmachine = "paper"\nwarps = 8')
    assert (found.cycles, found.seconds) == (140, Fraction(140, 1_500_000_000))


def test_with_ports_held_for_longer_every_number_of_blocks_is_a_question(folder: Path) -> None:
    slow = Machine("slow", (UnitClass("C", 2, interval=2), UnitClass("L", 1)))
    question = KernelQuestion(folder / "vecadd.ptx", launch=Launch((32, 1, 1), (5, 1, 1)), blocks_per_sm=3)
    launch = KernelLaunch(question, slow)
    assert [instance.warps for instance in on_one_sm(on_sms(launch, 2))] == [2, 3]
    assert [instance.warps for instance in on_one_sm(on_sms(launch, 5))] == [1, 2, 3]
    assert [instance.warps for instance in on_one_sm(on_sms(replace(launch, machine=PAPER), 5))] == [3]


@st.composite
def one_of_several_blocks(draw: st.DrawFn) -> Instance:
    """A block of one warp, perhaps with barriers, latencies and an issue width, whose ports are free after a cycle."""
    machine = draw(general_machines(most_classes=2, most_interval=1, most_latency=3))
    return draw(barrier_instances(machine=machine, most_warps=1, most=3, most_blocks=1))


@given(one_of_several_blocks(), st.integers(1, 2))
def test_a_block_more_is_never_faster_at_worst_where_ports_are_free_after_a_cycle(one: Instance, blocks: int) -> None:
    fewer, more = (
        Instance.merged([(group.program, n) for group in one.groups], one.machine, blocks=n)
        for n in (blocks, blocks + 1)
    )
    assert brute_force(fewer).upper <= brute_force(more).upper


def test_a_task_without_a_partition_fits_every_partition(folder: Path) -> None:
    text = FILE.format(sms=1, source='kernel = "vecadd.ptx"\nblock = 128\ngrid = 2\nblocks_per_sm = 1')
    text = text.replace('partition = "gpu"\n', "") + '\n[[partition]]\nname = "two"\npolicy = "fifo"\nsms = 2\n'
    (folder / "tasks.toml").write_text(text)
    found = execution_times(files.read(folder / "tasks.toml"), Solver(Limits))["a"]
    block = ((one_block(folder), 4),)
    assert found.cycles == theorem_g(GpuInstance.of(block, 2, PAPER, sms=1, resident=1)).upper
    assert found.at_least is not None
    assert found.at_least < found.seconds


# What is kept


class Log(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


SOURCE = 'kernel = "vecadd.ptx"\nblock = 256\ngrid = 1'


def kept(folder: Path, log: Log, effort: str = "60") -> BundleCache:
    return BundleCache(folder / "kept", effort=effort, note=log)


def test_what_is_kept_is_not_solved_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    first = one(folder, SOURCE, store=kept(folder, log))
    (file,) = (folder / "kept").iterdir()
    assert json.loads(file.read_text())["schema"] == "makespan.bundle/3"
    monkeypatch.setattr(wcet_module, "solve", lambda *_, **__: pytest.fail("solved again"))
    assert one(folder, SOURCE, store=kept(folder, log)) == first
    assert log == []


def test_a_launch_of_several_waves_is_kept_and_verified(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, source = Log(), 'kernel = "vecadd.ptx"\nblock = 128\ngrid = 9\nblocks_per_sm = 2'
    first = one(folder, source, sms=2, store=kept(folder, log))
    (file,) = (folder / "kept").iterdir()
    whole = json.loads(file.read_bytes())
    assert whole["schema"] == "makespan.gpu-bundle/2"
    with monkeypatch.context() as patch:
        patch.setattr(wcet_module, "solve_gpu", lambda *_, **__: pytest.fail("solved again"))
        assert one(folder, source, sms=2, store=kept(folder, log)) == first
    file.write_bytes(changed(whole, upper=whole["result"]["upper"] - 1))
    assert one(folder, source, sms=2, store=kept(folder, log)) == first
    (line,) = log
    assert line.startswith(f"{file}: not used, the kernel is solved again: ")


def changed(content: dict[str, Any], **fields: Any) -> bytes:
    content["result"] |= fields
    del content["sha256"]
    content["sha256"] = hashlib.sha256(bundle.canonical_json(content)).hexdigest()
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda data: data[:-100], "not a bundle: "),
        (lambda data: b"", "not a bundle: "),
        (lambda data: b"\x00" * 100, "not a bundle: "),
        (lambda data: data.replace(b'"upper":140', b'"upper":139'), ""),
        (lambda data: changed(json.loads(data), lower=139, upper=139), "the witness takes 140 cycles"),
        (lambda data: changed(json.loads(data), pessimistic=169), "pessimistic is 168, not 169"),
        (
            lambda data: json.dumps(bundle.result_bundle(solve(Instance.of("CL", 2)))).encode(),
            "it answers another question",
        ),
    ],
)
def test_what_was_spoilt_is_not_used_and_solved_again(folder: Path, spoil: Any, reason: str) -> None:
    log = Log()
    first = one(folder, SOURCE, store=kept(folder, log))
    (file,) = (folder / "kept").iterdir()
    whole = file.read_bytes()
    file.write_bytes(spoil(whole))
    assert one(folder, SOURCE, store=kept(folder, log)) == first
    (line,) = log
    assert line.startswith(f"{file}: not used, the kernel is solved again: {reason}")
    assert json.loads(file.read_bytes())["result"]["upper"] == 140


def test_a_pipe_among_what_is_kept_is_left_alone(folder: Path) -> None:
    log = Log()
    first = one(folder, SOURCE, store=kept(folder, log))
    (file,) = (folder / "kept").iterdir()
    file.unlink()
    os.mkfifo(file)
    assert one(folder, SOURCE, store=kept(folder, log)) == first
    assert log == [f"{file}: not used: it is no file"]
    assert file.is_fifo()


def test_assumptions_of_a_kept_result_come_from_the_question(folder: Path) -> None:
    log = Log()
    one(folder, SOURCE, store=kept(folder, log))
    (file,) = (folder / "kept").iterdir()
    file.write_bytes(changed(json.loads(file.read_bytes()), assumptions=[caveat("all is well").document]))
    found = one(folder, SOURCE, store=kept(folder, log))
    assert "all is well" not in map(str, found.assumptions)
    assert any("the hardware executes the PTX as it is written" in str(note) for note in found.assumptions)


def test_a_result_that_is_not_exact_is_kept_for_its_effort_only(tmp_path: Path) -> None:
    instance = Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1}))
    exact = solve(instance, backend="certificate")
    loose = replace(exact, bounds=Bounds(exact.bounds.lower, exact.bounds.upper + 1), history=())
    log = Log()
    kept(tmp_path, log, "1").save(loose)
    assert kept(tmp_path, log, "60").load(instance) is None
    claim = kept(tmp_path, log, "1").load(instance)
    assert claim is not None
    assert claim.upper == loose.bounds.upper
    kept(tmp_path, log, "60").save(exact)
    claim = kept(tmp_path, log, "1").load(instance)
    assert claim is not None
    assert claim.upper == exact.bounds.upper


def test_what_cannot_be_re_proved_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1}))
    log = Log()
    kept(tmp_path, log).save(replace(solve(instance, backend="search"), certificate=None))
    assert kept(tmp_path, log).load(instance) is not None
    monkeypatch.setattr(cache, "verify", lambda document: verify(document, most_states=1))
    assert kept(tmp_path, log).load(instance) is None
    (line,) = log
    assert line.endswith("not used, the kernel is solved again: upper 10 reported by search, re-proved only to 14")


def test_another_version_solves_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    one(folder, SOURCE, store=kept(folder, log))
    monkeypatch.setattr(cache, "__version__", "9.9")
    one(folder, SOURCE, store=kept(folder, log))
    assert len(list((folder / "kept").iterdir())) == 2


def test_where_nothing_can_be_kept_a_note_says_so(folder: Path) -> None:
    (folder / "kept").write_text("a file")
    log = Log()
    assert one(folder, SOURCE, store=kept(folder, log)).cycles == 140
    remedy = "keep solved kernels elsewhere by --cache DIR, or not at all by --no-cache"
    assert log[-1] == f"not kept: {folder / 'kept'}: File exists; {remedy}"


def test_that_nothing_can_be_kept_is_said_once(folder: Path) -> None:
    (folder / "kept").write_text("a file")
    log = Log()
    store = kept(folder, log)
    for letters in ("CL", "LC"):
        store.save(solve(Instance.of(letters, 2)))
    assert len(log) == 1


def test_the_folder_of_the_user_follows_the_convention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_folder() == tmp_path / "makespan" / "results"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.default_folder() == tmp_path / ".cache" / "makespan" / "results"


def test_a_bundle_that_counts_cycles_of_dram_is_refused_as_it_names_no_clock(folder: Path) -> None:
    gpu = GpuInstance.of(((Program.chain("CLCLC"), 2),), 9, PAPER, sms=2, resident=2, dram=7)
    result = solve_gpu(gpu)
    rate = dram_rate("448 GB/s, its peak", "nothing else uses it")
    gpu_bundle.write_gpu_bundle(replace(result, assumptions=(*result.assumptions, rate)), folder / "k.json")
    assert "for the clock of a GPU that it does not name" in refusal(folder, 'bundle = "k.json"', sms=2)
    gpu_bundle.write_gpu_bundle(result, folder / "k.json")
    assert "what is said of DRAM does not follow" in refusal(folder, 'bundle = "k.json"', sms=2)
