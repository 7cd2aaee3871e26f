"""Barriers: what the definition says by hand, and every engine against it."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from makespan.cli.export import command as export
from makespan.host.errors import InputError, InvalidScheduleError, UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Machine
from makespan.model.program import BARRIER, Program, ProgramPlace
from makespan.model.result import Bounds, Status, Upper, UpperBound
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, replay, run
from makespan.model.simulate.semantics import SmState, next_states, passing_barrier, settled_states, start_states
from makespan.model.strings import parse_instances
from makespan.proof.bounds import pessimistic, phases, theorem_e
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.construct import greedy
from makespan.proof.engines.search import plain as search
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, digest, pairs, parse, verify
from makespan.verify.pairs import theorem_a
from makespan.verify.pessimistic import pessimistic as verified_pessimistic
from makespan.verify.phases import questions
from makespan.verify.states import shortest_and_longest
from tests.effort import Looks, calls
from tests.forgery import Document, certificate, forged
from tests.oracle import brute_force, obeys, standing
from tests.strategies import barrier_instances, runs


def places(states: Iterable[SmState]) -> set[tuple[int, ...]]:
    return {state.places for state in states}


def test_the_warps_of_a_block_wait_for_each_other() -> None:
    instance = Instance.of("C|L", 2)
    assert places(next_states(instance, standing(instance, 0, 0))) == {(1, 0), (0, 1)}  # one waits at the barrier
    assert places(next_states(instance, standing(instance, 1, 0))) == {
        (2, 2)
    }  # and both pass as soon as the other one comes
    assert passing_barrier(instance, standing(instance, 1, 1)) == (0, 1)
    assert places(settled_states(instance, standing(instance, 1, 1))) == {(2, 2)}


def test_every_block_has_its_own_barrier() -> None:
    instance = Instance.of("C|L", 4, blocks=2)
    assert instance.block_of_warp() == (0, 0, 1, 1)
    assert places(settled_states(instance, standing(instance, 1, 1, 1, 0))) == {(2, 2, 1, 0)}


def test_nobody_waits_for_a_warp_that_has_finished() -> None:
    instance = Instance.merged([(Program.chain("C|C"), 1), (Program.chain("L"), 1)])
    assert places(settled_states(instance, standing(instance, 1, 0))) == {(1, 0)}
    assert places(settled_states(instance, standing(instance, 1, 1))) == {(2, 1)}


def test_barriers_at_the_ends_and_in_a_row_take_no_time() -> None:
    instance = Instance.of("||C||C|", 2)
    assert places(start_states(instance)) == {(2, 2)}
    assert brute_force(instance) == Bounds(4, 4)


@pytest.mark.parametrize(
    ("string", "warps", "blocks", "extremes"),
    [
        ("C|L", 2, 1, Bounds(4, 4)),  # without the barrier 3
        ("CCL|CL", 2, 1, Bounds(5 + 3, 5 + 3)),
        ("CL|CL", 2, 2, brute_force(Instance.of("CLCL", 2))),  # a block of one warp waits for nobody
    ],
)
def test_worst_and_best_case_by_hand(string: str, warps: int, blocks: int, extremes: Bounds) -> None:
    assert brute_force(Instance.of(string, warps, blocks=blocks)) == extremes


def test_a_barrier_is_neither_an_upper_nor_a_lower_bound_on_the_kernel_without_it() -> None:
    assert brute_force(Instance.of("C|L", 2)).upper > brute_force(Instance.of("CL", 2)).upper
    assert brute_force(Instance.of("C|CLC", 2)).upper < brute_force(Instance.of("CCLC", 2)).upper


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("|", "at least one instruction on every path"),
        ("||", "at least one instruction on every path"),
    ],
)
def test_a_program_of_barriers_is_refused(program: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Program.chain(program)
    with pytest.raises(InputError, match=message):
        Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,)), ProgramPlace(BARRIER, (3,))), starts=(0, 2))


@pytest.mark.parametrize("blocks", [0, -1, 3, True])
def test_blocks_must_divide_the_warps(blocks: int) -> None:
    with pytest.raises(InputError, match="blocks"):
        Instance.of("C|L", 4, blocks=blocks)


def test_a_warp_cannot_run_through_a_barrier() -> None:
    instance = Instance.of("C|L", 2)
    path = (0, 1, 2)
    assert replay(instance, Schedule(((0,), (1,), (0,), (1,)), (path, path))) == 4
    with pytest.raises(InvalidScheduleError, match="cycle 1: warp 0 executes, but waits at a barrier"):
        replay(instance, Schedule(((0,), (0, 1), (1,)), (path, path)))
    with pytest.raises(InvalidScheduleError, match="goes from place 0 to 2"):
        replay(instance, Schedule(((0,), (1,), (0,), (1,)), ((0, 2), path)))


@given(barrier_instances())
def test_the_plain_search_finds_the_extremes(instance: Instance) -> None:
    truth = brute_force(instance)
    found = search.solve(instance, Limits())
    assert found.witness is not None
    assert (found.upper, found.best_case) == (truth.upper, Bounds(truth.lower, truth.lower))
    assert replay(instance, found.witness) == truth.upper
    assert obeys(instance, found.witness)


@given(st.data(), barrier_instances())
def test_replay_accepts_what_the_definition_allows(data: st.DataObject, instance: Instance) -> None:
    schedule = data.draw(runs(instance))
    assert obeys(instance, schedule)
    assert replay(instance, schedule) == schedule.makespan


@given(barrier_instances(), st.sampled_from(sorted(POLICIES)))
def test_policies_make_real_schedules(instance: Instance, policy: str) -> None:
    schedule = run(instance, policy)
    assert obeys(instance, schedule)
    assert replay(instance, schedule) in range(*_range(brute_force(instance)))


def _range(extremes: Bounds) -> tuple[int, int]:
    return extremes.lower, extremes.upper + 1


@given(barrier_instances(most_blocks=1))
def test_one_warp_per_block_needs_no_barrier(instance: Instance) -> None:
    """With blocks of one warp each, a barrier holds nobody up."""
    string = "".join(p.unit for p in instance.groups[0].program.places if p.unit != BARRIER)
    if instance.groups[0].program.is_chain and string:
        alone = Instance.of(instance.groups[0].program, 2, instance.machine, blocks=2)
        assert brute_force(alone) == brute_force(Instance.of(string, 2, instance.machine))


def test_machines_have_no_unit_called_barrier() -> None:
    with pytest.raises(InputError, match="one capital letter"):
        Machine.of({BARRIER: 1})
    assert BARRIER not in PAPER.capacities


@given(barrier_instances())
def test_the_pessimistic_bound_holds(instance: Instance) -> None:
    assert pessimistic(instance) >= brute_force(instance).upper


@given(barrier_instances())
def test_greedy_schedules_are_real(instance: Instance) -> None:
    for schedule in greedy.schedules(instance, Limits()):
        assert replay(instance, schedule) == schedule.makespan <= brute_force(instance).upper


@given(barrier_instances(most_blocks=1))
def test_the_worst_case_is_at_most_the_sum_of_the_phases(instance: Instance) -> None:
    found = phases(instance)
    if found is not None:
        total = sum(brute_force(phase.instance).upper for phase in found)
        single = all(len(part.program.starts) == 1 for phase in found[1:] for part in phase.parts)
        truth = brute_force(instance).upper
        assert truth == total if single else truth <= total


def test_phases_of_strings_are_the_pieces_between_barriers() -> None:
    found = phases(Instance.merged([(Program.chain("CC|L||CL"), 2), (Program.chain("|C"), 1)]))
    assert found is not None
    assert [[part.program.letters for part in phase.parts] for phase in found] == [["CC"], ["L", "C"], ["CL"]]
    assert [part.places for phase in found for part in phase.parts] == [(0, 1), (3,), (1,), (6, 7)]


def test_equal_parts_of_different_programs_are_one_group_of_the_phase() -> None:
    found = phases(Instance.merged([(Program.chain("CC|L"), 2), (Program.chain("CC|C"), 1)]))
    assert found is not None
    assert [phase.instance.groups[0].warps for phase in found] == [3, 2]


def test_a_warp_that_may_skip_a_phase_has_no_phases() -> None:
    early = Program((ProgramPlace("C", (1, 2)), ProgramPlace(BARRIER, (2,)), ProgramPlace("L", (3,))))
    assert phases(Instance.of(early, 2)) is None
    assert phases(Instance.of("C|L", 2, blocks=2)) is None


@given(barrier_instances(), st.sampled_from(["auto", "certificate", "search"]))
def test_solve_encloses_the_worst_and_the_best_case(instance: Instance, backend: str) -> None:
    truth = brute_force(instance)
    found = solve(instance, backend=backend, best_case=True)
    assert found.bounds.lower <= truth.upper <= found.bounds.upper
    assert found.best_case is not None
    assert found.best_case.lower <= truth.lower <= found.best_case.upper
    cut = phases(instance) if instance.has_barriers else ()
    if backend != "certificate" and (cut is None or all(len(p.program.starts) == 1 for c in cut[1:] for p in c.parts)):
        assert found.bounds == Bounds(truth.upper, truth.upper)


def test_one_block_is_exact_phase_by_phase() -> None:
    tile = "LLCC|CCLCCLCCL|"
    result = solve(Instance.of(tile * 16 + "LC", 8, Machine.of({"C": 2, "L": 1})))
    pieces = [solve(Instance.of(piece, 8, Machine.of({"C": 2, "L": 1}))) for piece in ("LLCC", "CCLCCLCCL", "LC")]
    assert result.status is Status.EXACT
    assert result.bounds.upper == sum(
        count * piece.bounds.upper for count, piece in zip((16, 16, 1), pieces, strict=True)
    )
    assert [phase.upper for phase in result.phases] == [piece.bounds.upper for piece in pieces]


@pytest.mark.parametrize("backend", ["cpsat", "ilp"])
def test_models_solve_the_phases_of_one_block_and_refuse_several(backend: str) -> None:
    instance = Instance.of("CL|LCL", 2)
    assert solve(instance, backend=backend).bounds == solve(instance, backend="search").bounds
    with pytest.raises(UnsupportedError, match=f"backend {backend} does not know barriers between several blocks"):
        solve(Instance.of("CL|LCL", 4, blocks=2), backend=backend)


@given(barrier_instances(), st.booleans())
def test_bundles_are_accepted(instance: Instance, best_case: bool) -> None:
    result = solve(instance, best_case=best_case)
    verdict = verify(parse(json.dumps(result_bundle(result)).encode()))
    assert verdict.outcome is Outcome.ACCEPTED, verdict
    assert verdict.lower == result.bounds.lower


@given(barrier_instances())
def test_the_checker_enumerates_barriers_by_itself(instance: Instance) -> None:
    truth = brute_force(instance)
    assert shortest_and_longest(instance, 100_000) == (truth.lower, truth.upper)
    assert verified_pessimistic(instance) == pessimistic(instance) >= truth.upper
    bound = theorem_e(instance)
    assert bound is not None
    assert pairs.bound(instance, bound.weights) == bound.upper >= truth.upper
    cut = phases(instance)
    assert questions(instance) == (None if cut is None else [phase.instance for phase in cut])


def by_phases() -> Document:
    """A bundle that rests on phases, one of them on a certificate."""
    result = solve(Instance.of("LLCC|CCLCL|LLCC|C", 5, Machine.of({"C": 2, "L": 2})))
    own = certificate(Instance.of("CCLCL", 5, Machine.of({"C": 2, "L": 2})), states=0)
    second = UpperBound(own.upper, Upper.POTENTIAL, own)
    phased = (result.phases[0], second, *result.phases[2:])
    rise = own.upper - result.phases[1].upper
    return result_bundle(
        replace(result, bounds=Bounds(result.bounds.lower, result.bounds.upper + rise), phases=phased, history=())
    )


def test_a_phase_may_rest_on_a_certificate() -> None:
    assert verify(by_phases()).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["phases"].pop(), "2 phases are given, but barriers make 3 different ones"),
        (lambda d: d["phases"].append(d["phases"][0]), "4 phases are given"),
        (lambda d: d["phases"][0].update(upper=d["phases"][0]["upper"] - 1), "is wrong|proves only"),
        (lambda d: d["phases"][0].update(upper=d["phases"][0]["upper"] + 1), "which add up to"),
        (lambda d: d["phases"][1].update(certificate=None), "there is no certificate"),
        (lambda d: d["phases"][1].update(evidence="phases"), "by phases, but none are given"),
        (lambda d: d.update(phases=[]), "by phases, but none are given"),
        (lambda d: d["instance"].update(blocks=5), "blocks does not follow|phases are given"),
        (lambda d: d["phases"][1]["certificate"]["potentials"][0]["tables"][0].update(constant=-(10**9)), "."),
    ],
)
def test_a_forged_phase_is_rejected(change: Callable[[Document], object], reason: str) -> None:
    def apply(document: Document) -> None:
        change(document)

    verdict = verify(forged(by_phases(), apply))
    assert verdict.outcome is Outcome.REJECTED
    assert re.search(reason, verdict.reason), verdict.reason


def test_a_witness_that_runs_through_a_barrier_is_rejected() -> None:
    document = result_bundle(solve(Instance.of("C|L", 2)))
    document["witness"]["cycles"] = [[1, [0]], [1, [0, 1]], [1, [1]]]
    document["result"].update(lower=3, status="bounded")
    document["sha256"] = digest(document)
    assert re.search("warp 0 waits at a barrier", verify(document).reason)


def test_a_model_of_barriers_is_not_exported(tmp_path: Path) -> None:
    target = tmp_path / "model.lp"
    given = ["--string", "C|L", "--warps", "2", "--model", "lp", "-o", str(target)]
    with pytest.raises(UnsupportedError, match=r"does not know barriers .*; export the phases between barriers"):
        CliRunner().invoke(export, given, catch_exceptions=False)
    assert not target.exists()


def test_instance_files_say_blocks_and_barriers() -> None:
    line = '{"string": "CL|LC", "warps": 4, "blocks": 2, "capacity": {"C": 1, "L": 1}}'
    (named,) = parse_instances(line, "here", ".jsonl")
    assert (named.instance.groups, named.instance.blocks) == (Instance.of("CL|LC", 4).groups, 2)
    with pytest.raises(InputError, match="here:1: 4 warps cannot be spread evenly over 3 blocks"):
        parse_instances(line.replace('"blocks": 2', '"blocks": 3'), "here", ".jsonl")


@given(barrier_instances(most_units=1, most_warps=4, most=6, most_blocks=2))
def test_theorems_a_and_e_hold_with_barriers(instance: Instance) -> None:
    """And theorem E is never the looser one, not even where nobody can wait."""
    old, new, truth = theorem_a(instance), theorem_e(instance), brute_force(instance).upper
    assert new is not None
    assert truth <= new.upper
    assert old is None or new.upper <= old


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_chain_may_change_the_group_at_a_barrier(blocks: int) -> None:
    """One group has a pair before the barrier only, the other one after it only."""
    groups = [(Program.chain("CL|C"), blocks), (Program.chain("C|CL"), blocks)]
    instance = Instance.merged(groups, blocks=blocks)
    bound = theorem_e(instance)
    assert bound is not None
    assert bound.upper == theorem_a(instance) == brute_force(instance).upper == 2 + 4 * blocks


def test_without_barriers_blocks_make_no_difference() -> None:
    groups = [(Program.chain("L"), 2), (Program.chain("C"), 2), (Program.chain("LC"), 2)]
    machine = Machine.of({"C": 1, "L": 2})
    assert Instance.merged(groups, machine, blocks=2) == Instance.merged(groups, machine)
    for backend in ("certificate", "search", "auto"):
        assert solve(Instance.merged(groups, machine, blocks=2), backend=backend).bounds == Bounds(4, 4)


def test_many_blocks_take_no_longer_than_many_warps() -> None:
    found: list[Bounds] = []
    many = Instance.of("CL|CL", 5_000, blocks=5_000)
    assert calls(lambda: found.append(solve(many, backend="certificate", limits=Looks(20)).bounds), most=10**7)
    assert found[0].lower <= found[0].upper == 5_000 * 2 + 2


def test_when_time_is_up_the_phases_left_over_are_bounded() -> None:
    instance = Instance.of("LLCC|CCLCL|LLC|C", 5, Machine.of({"C": 2, "L": 2}))
    limits = Limits(seconds=1e-9)
    result = solve(instance, limits=limits)
    assert result.bounds.lower <= brute_force(instance).upper <= result.bounds.upper
    assert verify(parse(json.dumps(result_bundle(result)).encode())).outcome is Outcome.ACCEPTED
