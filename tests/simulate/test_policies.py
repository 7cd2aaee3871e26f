"""Policies are schedulers: work-conserving, never outside the extremes, and the quick ones are the plain ones."""

import os
import random
import re
import secrets
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError, UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import (
    DELAY,
    Latency,
    Machine,
    PortResource,
    SchedulerPromise,
    UnitClass,
    Use,
    WarpAssignment,
)
from makespan.model.program import InstructionTiming, Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, Choices, replay, run
from makespan.model.simulate import floor_compiled as loops
from makespan.model.simulate import runs as either_way
from makespan.model.simulate.choices import ASSIGNMENTS, LATENCIES, PATHS, SplitMix, WarpRoutes, choose_routes, mix_bits
from makespan.model.simulate.floor import Floor
from makespan.model.simulate.floor_compiled import FIRST, NONE, first_able, lowest, next_after, next_in, nth, population
from makespan.model.simulate.policies import (
    FAIR_RULES,
    STARVING_RULES,
    PriorityRule,
    RankedPolicy,
    RulePolicy,
    WitnessPolicy,
    partition_policies,
    warps_of_partition,
)
from makespan.model.simulate.runner import EntryRow, Runner
from makespan.model.simulate.runs import PolicyRun, simulate_policies
from makespan.model.simulate.semantics import SmState, WarpIssue, has_finished, next_state, passing_barrier, ready_warps
from makespan.model.simulate.statistics import statistics
from makespan.model.strings import parse_string
from tests.oracle import brute_force, obeys
from tests.strategies import (
    barrier_instances,
    general_instances,
    general_machines,
    instances,
    multiprocessor_instances,
    runs,
)

SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
LOADS = Machine("loads", (UnitClass("C", 1), UnitClass("L", 1, 2, Latency(3, 3))))
WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from makespan import Instance, Latency, Machine, UnitClass
from makespan.model.simulate import POLICIES
from makespan.model.simulate.runner import Runner
machine = Machine("m", (UnitClass("C", 2), UnitClass("L", 1, 2, Latency(3, 9))), 2)
ready = Runner(Instance.of("CCL|LCC", 65, machine, blocks=5))
print(*(ready.makespan(policy) for policy in POLICIES))
"""


def all_choices() -> st.SearchStrategy[Choices]:
    """What no policy decides."""
    return st.builds(
        Choices,
        st.sampled_from(LATENCIES),
        st.sampled_from(PATHS),
        st.integers(0, 2**64 - 1),
        st.integers(1, 5),
        st.sampled_from(LATENCIES),
        st.sampled_from(ASSIGNMENTS),
    )


@st.composite
def whole_instances(draw: st.DrawFn) -> Instance:
    """Everything at once: a general machine, automata, barriers and blocks."""
    machine = draw(general_machines(most_interval=5, most_latency=9))
    shapes = draw(barrier_instances(most_warps=8, most=6, most_units=1))
    if not shapes.machine.capacities.keys() <= machine.capacities.keys():
        machine = Machine("general", (*machine.units, UnitClass("L", 1, 3, Latency(2, 6))), machine.issue_width)
    return Instance(shapes.groups, machine, shapes.blocks)


@pytest.mark.parametrize("policy", POLICIES)
@given(instance=instances(), choices=all_choices())
def test_a_policy_lies_between_best_and_worst_case(policy: str, instance: Instance, choices: Choices) -> None:
    schedule = run(instance, policy, choices)
    extremes = brute_force(instance)
    assert obeys(instance, schedule)
    assert extremes.lower <= replay(instance, schedule) <= extremes.upper


@pytest.mark.parametrize("policy", POLICIES)
@given(instance=general_instances(), choices=all_choices())
@settings(max_examples=20)
def test_so_does_it_on_the_general_machine(policy: str, instance: Instance, choices: Choices) -> None:
    schedule = run(instance, policy, choices)
    extremes = brute_force(instance)
    assert obeys(instance, schedule)
    assert extremes.lower <= replay(instance, schedule) <= extremes.upper


@pytest.mark.parametrize("policy", POLICIES)
@given(instance=multiprocessor_instances(), choices=all_choices())
@settings(max_examples=15)
def test_so_does_it_on_a_multiprocessor(policy: str, instance: Instance, choices: Choices) -> None:
    schedule = run(instance, policy, choices)
    extremes = brute_force(instance)
    assert obeys(instance, schedule)
    assert extremes.lower <= replay(instance, schedule) <= extremes.upper


@settings(max_examples=100)
@given(
    st.one_of(
        general_instances(most_warps=6, most=6),
        whole_instances(),
        multiprocessor_instances(most_warps=6, most=6),
    ),
    all_choices(),
    st.randoms(),
)
def test_compiled_runs_are_the_plain_ones(instance: Instance, choices: Choices, chance: random.Random) -> None:
    chosen = choose_routes(instance, choices)
    quick = Runner(instance, chosen)
    for name in POLICIES:
        schedule = simulate_policies(instance, partition_policies(instance, name, choices, chosen), chosen)
        assert quick.schedule(name, choices) == schedule
        assert quick.makespan(name, choices) == schedule.makespan == replay(instance, schedule)
    order = chance.sample(range(instance.warps), instance.warps)
    partitions = range(instance.machine.partitions)
    schedule = simulate_policies(instance, [RankedPolicy(order) for _ in partitions], chosen)
    assert quick.ranked_schedule(order) == schedule
    assert quick.ranked(order) == schedule.makespan
    laggards = [max(warps_of_partition(chosen.partitions, part), default=-1) for part in partitions]
    apart = Runner(instance, chosen, laggards)
    for rule in STARVING_RULES:

        def key(row: EntryRow, done: int, _: int, rule: PriorityRule = rule) -> tuple[int, ...]:
            return rule(0, row.warp, done, row.warp in laggards)

        ranks = apart.ranks(key)
        schedule = simulate_policies(instance, [RulePolicy(rule, laggards) for _ in partitions], chosen)
        assert apart.schedule_of(apart.by_ranks(FIRST, ranks)) == schedule


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("warps", "group_size"), [(136, 12), (64, 16), (64, 12)])
def test_a_hundred_warps_in_several_words_of_bits(policy: str, warps: int, group_size: int) -> None:
    machine = Machine("m", (UnitClass("C", 3), UnitClass("L", 3, 5, Latency(2, 40))), 3)
    instance, choices = (
        Instance.of("CLLC|LC", warps, machine, blocks=2),
        Choices("random", seed=5, group_size=group_size),
    )
    chosen = choose_routes(instance, choices)
    plain = simulate_policies(instance, partition_policies(instance, policy, choices, chosen), chosen)
    assert Runner(instance, chosen).schedule(policy, choices) == plain
    assert run(instance, policy, choices) == plain


def test_who_waits_for_a_slot_or_a_port_issues_in_the_first_cycle_with_one() -> None:
    """Nobody comes to his next place for long; a slot is there in the next cycle, a port after three."""
    slots = Machine("slots", (UnitClass("L", 2, 5, Latency(5, 5)),), 1)
    assert Runner(Instance.of("L", 2, slots)).schedule("lrr").cycles == ((0,), (1,), (), (), (), ())
    ports = Machine("ports", (UnitClass("C", 1, 1, Latency(6, 6)), UnitClass("L", 1, 3)))
    instance = Instance.merged([(Program.chain("C"), 1), (Program.chain("L"), 2)], ports)
    assert Runner(instance).schedule("lrr").cycles == ((0, 1), (), (), (2,), (), ())


def test_sets_of_slots_in_words_of_bits_are_searched_like_sets() -> None:
    """Who is ready for a class with a free port: the first from a slot on, the first in a circle, the n-th."""
    chance = random.Random(1)
    for size in (0, 1, 5, 60, 63, 64) * 3:
        number = sum(1 << bit for bit in chance.sample(range(64), size))
        with np.errstate(over="ignore"):
            assert population(np.uint64(number)) == size
            assert size == 0 or lowest(np.uint64(number)) == (number & -number).bit_length() - 1
    for _ in range(200):
        words, classes = chance.randint(1, 3), chance.randint(1, 3)
        free = [chance.randint(0, 2) for _ in range(classes)]
        ready = [{n for n in range(64 * words) if chance.random() < 1 / 40} for _ in range(classes)]
        able = sorted(set().union(*(slots for slots, ports in zip(ready, free, strict=True) if ports)))
        bits = [[sum(1 << n % 64 for n in slots if n // 64 == word) for word in range(words)] for slots in ready]
        state = Runner(Instance.of("C", 1)).state._replace(
            ready=np.array(bits, dtype=np.uint64), kinds=np.zeros(classes, loops.KIND)
        )
        state.kinds["free"] = [5 + (not ports) for ports in free]
        state.kinds["ready"] = [len(slots) for slots in ready]
        given = 5, state, 0, classes
        low, high = sorted(chance.choices([*range(64 * words + 1), 0, 64, 64 * words], k=2))
        last = chance.choice([low - 1, chance.randint(low - 1, high - 1), high - 1])
        inside = [n for n in able if low <= n < high]
        after = [n for n in inside if n > last] + inside
        with np.errstate(over="ignore"):
            assert first_able(*given) == next(iter(able), NONE)
            assert next_in(*given, low, high) == next(iter(inside), NONE)
            assert next_after(*given, last, low, high) == next(iter(after), NONE)
            assert [nth(*given, 0, number) for number in range(len(able))] == able


def test_without_a_compiler_the_same_code_runs_as_it_is() -> None:
    machine = Machine("m", (UnitClass("C", 2), UnitClass("L", 1, 2, Latency(3, 9))), 2)
    compiled = Runner(Instance.of("CCL|LCC", 65, machine, blocks=5))
    done = subprocess.run([sys.executable, "-W", "error", "-c", WITHOUT_NUMBA], check=True, capture_output=True)
    assert done.stdout.split() == [b"%d" % compiled.makespan(policy) for policy in POLICIES]


def test_small_and_large_instances_take_different_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.of("CLC", 5)
    plain = run(instance, "gto")
    monkeypatch.setattr(either_way, "SMALL", 0)
    monkeypatch.setattr(either_way, "simulate_policies", None)
    assert run(instance, "gto") == plain


@pytest.mark.parametrize("small", [0, 10**9])
def test_the_shortest_and_the_longest_of_all_policies(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(either_way, "SMALL", small)
    instance = Instance.of("CLLCL", 4)
    cycles = [run(instance, policy).makespan for policy in POLICIES]
    found = either_way.longest_run(instance, choose_routes(instance, Choices()), lambda: False)
    assert found is not None
    assert either_way.shortest_run(instance).makespan == min(cycles) < max(cycles) == found.makespan
    assert replay(instance, found) == max(cycles)
    assert either_way.longest_run(instance, choose_routes(instance, Choices()), lambda: True) is None
    assert (
        simulate_policies(instance, [RankedPolicy(range(4))], choose_routes(instance, Choices()), lambda: True) is None
    )


def test_oldest_first_always_takes_the_smallest_number() -> None:
    assert run(Instance.of("CC", 2), "oldest").cycles == ((0,), (0,), (1,), (1,))


def test_youngest_first_always_takes_the_largest_number() -> None:
    assert run(Instance.of("CC", 2), "youngest").cycles == ((1,), (1,), (0,), (0,))


def test_loose_round_robin_passes_the_turn_on() -> None:
    assert run(Instance.of("CC", 3), "lrr").cycles == ((0,), (1,), (2,), (0,), (1,), (2,))


def test_loose_round_robin_has_one_turn_for_all_classes() -> None:
    """In cycle 0 warp 3 issues last, its L, so 0 is next; with a turn for each class 1 would be."""
    programs = [(Program.chain("CC"), 3), (Program.chain("LC"), 1)]
    instance = Instance.merged(programs, Machine("m", (UnitClass("C", 1), UnitClass("L", 1))))
    assert run(instance, "lrr").cycles == ((0, 3), (0,), (1,), (2,), (3,), (1,), (2,))


def test_the_greedy_warp_goes_on_before_older_ones() -> None:
    """Warp 0 waits for its load; 1 becomes greedy, and stays so when 0 is ready again."""
    programs = [(Program.chain("LCC"), 1), (Program.chain("CCCCC"), 2)]
    instance = Instance.merged(programs, Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(3, 3))), 1))
    assert [warp for warps in run(instance, "gto").cycles for warp in warps] == [0, 1, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2]
    assert [warp for warps in run(instance, "oldest").cycles for warp in warps] == [
        0, 1, 1, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2,
    ]  # fmt: skip


def test_greedy_then_youngest_stays_greedy_and_passes_on_to_the_largest_number() -> None:
    programs = [(Program.chain("CCC"), 2), (Program.chain("LCC"), 1)]
    instance = Instance.merged(programs, Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(3, 3))), 1))
    assert [warp for warps in run(instance, "gty").cycles for warp in warps] == [2, 1, 1, 1, 2, 2, 0, 0, 0]


def test_every_partition_has_a_policy_of_its_own() -> None:
    """Warps 0, 2, 4 are in one partition and 1, 3 in the other; each passes its own turn on."""
    machine = Machine("halves", (UnitClass("C", 1),), partitions=2, assignment=WarpAssignment.MODULO)
    assert run(Instance.of("CC", 5, machine), "lrr").cycles == ((0, 1), (2, 3), (1, 4), (0, 3), (2,), (4,))
    fetched = run(Instance.of("CC", 8, machine), "two-level", Choices(group_size=2)).cycles
    assert fetched == ((0, 1), (2, 3)) * 2 + ((4, 5), (6, 7)) * 2  # 0 and 2 are a group, 1 and 3 another


@pytest.mark.parametrize("width", [None, 1])
def test_a_partition_that_has_had_a_shared_port_goes_to_the_end_of_the_line(width: int | None) -> None:
    units = UnitClass("C", 1), UnitClass("L", 1, 1, shared=True)
    machine = Machine("halves", units, width, partitions=2, assignment=WarpAssignment.MODULO)
    assert run(Instance.of("LL", 4, machine), "oldest").cycles == tuple((w,) for w in (0, 1, 0, 1, 2, 3, 2, 3))


def test_a_private_port_costs_no_place_in_the_line() -> None:
    """Both come to L in cycle 2; in cycle 1 only warp 0 issues, of its own partition's C."""
    units = UnitClass("C", 1), UnitClass("D", 1, 1, Latency(2, 2)), UnitClass("L", 1, 1, shared=True)
    machine = Machine("halves", units, partitions=2, assignment=WarpAssignment.MODULO)
    instance = Instance.merged([(parse_string(string, machine), 1) for string in ("CCL", "DL")], machine)
    assert run(instance, "oldest").cycles == ((0, 1), (0,), (0,), (1,))


def test_of_several_resources_the_first_that_is_free_is_used() -> None:
    unit = UnitClass("C", 2, uses=(Use(("a", "b"), 1, 3),))
    machine = Machine("m", (unit,), resources=(PortResource("a", 1), PortResource("b", 1)))
    made = run(Instance.of("C", 3, machine), "oldest")
    assert made.cycles == ((0, 1), (), (), (2,))
    assert made.uses == ((((0, 3),),), (((1, 3),),), (((0, 3),),))
    made = run(Instance.of("C", 3, machine), "oldest", Choices(interval="least"))
    assert made.cycles == ((0, 1), (2,))
    drawn = {run(Instance.of("C", 1, machine), "lrr", Choices(interval="random", seed=n)).uses for n in range(60)}
    assert len(drawn) == 2 * 3


def test_resources_are_tried_in_a_circle() -> None:
    unit = UnitClass("C", 3, uses=(Use(("a", "b", "c")),))
    machine = Machine("m", (unit,), resources=tuple(PortResource(name, 1) for name in "abc"))
    assert run(Instance.of("C", 3, machine), "oldest").uses == ((((0, 1),),), (((1, 1),),), (((2, 1),),))


def test_warps_are_spread_over_partitions_modulo_their_number_or_at_random() -> None:
    machine = Machine("free", (UnitClass("C", 1),), partitions=3)
    assert run(Instance.of("C", 7, machine), "lrr").partitions == (0, 1, 2, 0, 1, 2, 0)
    spread = {
        run(Instance.of("C", 7, machine), "lrr", Choices(assignment="random", seed=n)).partitions for n in range(9)
    }
    assert len(spread) == 9
    assert all(sorted(parts) == [0, 0, 0, 1, 1, 2, 2] for parts in spread)
    chosen, draws = Choices(assignment="random", seed=5), SplitMix(5, 4)
    shuffled = [0, 1, 2, 0, 1, 2, 0]
    for behind in (7, 6, 5, 4, 3, 2):  # the last place of so many takes the one of any of them
        drawn = draws.below(behind)
        shuffled[drawn], shuffled[behind - 1] = shuffled[behind - 1], shuffled[drawn]
    assert choose_routes(Instance.of("C", 7, machine), chosen).partitions == tuple(shuffled)
    fixed = Machine("fixed", machine.units, partitions=3, assignment=WarpAssignment.MODULO)
    assert choose_routes(Instance.of("C", 7, fixed), chosen).partitions == (0, 1, 2, 0, 1, 2, 0)


def test_a_path_of_a_warp_that_runs_ahead_counts_its_stalls() -> None:
    program = Program(
        (ProgramPlace("C", (1, 2)), ProgramPlace("C", (3,)), ProgramPlace("C", (3,))),
        timings=(InstructionTiming(), InstructionTiming(9), InstructionTiming()),
    )
    assert run(Instance.of(program, 1), "lrr").paths == ((0, 1),)
    assert run(Instance.of(program, 1), "lrr", Choices(path="shortest")).paths == ((0, 2),)


def test_two_level_stays_in_a_fetch_group_while_a_warp_of_it_is_ready() -> None:
    cycles = run(Instance.of("CC", 4), "two-level", Choices(group_size=2)).cycles
    assert cycles == ((0,), (1,), (0,), (1,), (2,), (3,), (2,), (3,))


def test_two_level_passes_on_while_everybody_waits() -> None:
    """In cycle 1 only 2 is ready, for a port that 0 holds: its group takes over, and keeps the turn when 0 is back."""
    machine = Machine("m", (UnitClass("C", 1, 3, Latency(3, 3)), UnitClass("L", 1, 1, Latency(3, 3))))
    instance = Instance.merged([(Program.chain("CC"), 1), (Program.chain("LC"), 1), (Program.chain("C"), 1)], machine)
    choices = Choices(group_size=2)
    chosen = choose_routes(instance, choices)
    plain = simulate_policies(instance, partition_policies(instance, "two-level", choices, chosen), chosen)
    assert [warp for warps in plain.cycles for warp in warps] == [0, 1, 2, 0, 1]
    assert Runner(instance).schedule("two-level", choices) == plain


@pytest.mark.parametrize(
    ("policy", "one", "other"),
    [
        ("lrr", [[1]], [[2]]),  # who was last
        ("gto", [[1]], [[2]]),  # who is greedy
        ("gty", [[1]], [[2]]),
        ("two-level", [[0]], [[1]]),  # who was last in a group
        ("two-level", [[0], [2]], [[2], [0]]),  # which group it is
        ("random", [[1]], [[1], [1]]),  # how many numbers were drawn
    ],
)
def test_the_state_of_a_policy_is_what_it_remembers(policy: str, one: list[list[int]], other: list[list[int]]) -> None:
    def after(cycles: list[list[int]]) -> object:
        asked = POLICIES[policy](range(4), Choices(group_size=2), 0)
        for cycle, able in enumerate(cycles):
            asked.begin(cycle, able)
            assert asked.pick(able) == able[0]
        return asked.state(len(cycles))

    assert after(one) == after(one) != after(other)


@pytest.mark.parametrize(("first", "rules", "fair"), [(0, (1, 1, 0), (0, 1, 0)), (1, (0, 0, 1), (0, 0, 1))])
def test_who_has_done_less_goes_first_by_some_rules_and_last_by_others(
    first: int, rules: tuple[int, ...], fair: tuple[int, ...]
) -> None:
    """One of two warps goes on alone, and both are ready since the next cycle."""
    for known, chosen in (STARVING_RULES, rules), (FAIR_RULES, fair):
        for rule, then in zip(known, chosen, strict=True):
            asked = RulePolicy(rule, ())
            for cycle, (able, picked) in enumerate([([first], first), ([0, 1], then)]):
                asked.begin(cycle, able)
                assert asked.pick(able) == picked


def test_the_state_of_a_run_is_that_of_its_policies_and_the_line_of_its_partitions() -> None:
    units = UnitClass("C", 1), UnitClass("L", 1, 1, shared=True)
    halves = Machine("halves", units, partitions=2, assignment=WarpAssignment.MODULO)
    for string, changes in ("C", False), ("L", True):  # only who has had the shared port goes to the end of the line
        instance = Instance.of(string, 2, halves)
        chosen = choose_routes(instance, Choices())
        made = PolicyRun(halves, [RankedPolicy(range(2))] * 2, Floor.of(instance, chosen.paths, chosen.partitions))
        for warp, latencies in enumerate(chosen.latencies):
            made.put(warp, latencies, None)
        made.floor.begin(0)
        before = made.state(0)
        assert list(made.picks(0)) == [0, 1][: 2 - changes]
        assert (made.state(1) != before) == changes


def test_the_state_of_a_rule_is_what_all_have_done_and_since_when_they_wait() -> None:
    def after(*cycles: list[int], first: int = 0) -> object:
        asked = RulePolicy(FAIR_RULES[1], ())
        for cycle, able in enumerate(cycles, first):
            asked.begin(cycle, able)
            asked.pick(able)
        return asked.state(first + len(cycles))

    assert after([0, 1], [0, 1]) == after([0, 1], [0, 1], first=5)
    assert after([0]) != after([1])  # who has done something
    assert after([0], [1, 3]) != after([0, 3], [1])  # since when 3 waits


def test_random_policies_differ_by_their_seed_only() -> None:
    instance = Instance.of("CLCCLL", 6)
    assert run(instance, "random", Choices(seed=1)) == run(instance, "random", Choices(seed=1))
    assert len({run(instance, "random", Choices(seed=seed)).cycles for seed in (*range(5), 2**64 - 1)}) == 6


def test_random_numbers_are_those_of_splitmix64() -> None:
    """Source: the first outputs of the reference implementation (Vigna, splitmix64.c) for the seed 1234567."""
    draws = SplitMix(1234567)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [draws.below(2**64) for _ in expected] == expected
    assert mix_bits(2**64 + 1234567) == mix_bits(1234567)


def test_the_adversary_repeats_its_witness() -> None:
    @given(st.data(), general_instances())
    def repeats(data: st.DataObject, instance: Instance) -> None:
        witness = data.draw(runs(instance))
        fixed = [unit.latency.most for unit in instance.machine.units]
        names = list(instance.machine.capacities)
        latencies = witness.latencies or tuple(
            tuple(fixed[names.index(program.places[place].unit)] for place in path)
            for program, path in zip(instance.programs(), witness.paths, strict=True)
        )
        chosen = WarpRoutes(witness.paths, latencies, (0,) * instance.warps)
        assert simulate_policies(instance, [WitnessPolicy(witness)], chosen) == witness

    repeats()


def test_what_no_policy_decides_is_said_by_the_choices() -> None:
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(2, 9))))
    program = Program(
        (ProgramPlace("C", (1, 2)), ProgramPlace("C", (3,)), ProgramPlace("L", (3,)), ProgramPlace("C", (4,)))
    )
    instance = Instance.of(program, 1, cached)
    assert run(instance, "lrr").paths == ((0, 2, 3),)
    assert run(instance, "lrr").latencies == ((1, 9, 1),)
    assert run(instance, "lrr", Choices("least", "longest")).makespan == 4
    assert run(instance, "lrr", Choices(path="shortest")).paths == ((0, 1, 3),)
    assert run(instance, "lrr", Choices(path="first")).paths == ((0, 1, 3),)
    drawn = [run(instance, "lrr", Choices("random", "random", seed)) for seed in range(200)]
    assert {schedule.paths[0] for schedule in drawn} == {(0, 1, 3), (0, 2, 3)}
    assert {latencies[1] for schedule in drawn for latencies in schedule.latencies} == {1, *range(2, 10)}


@pytest.mark.parametrize(
    ("places", "path"),
    [
        (
            (ProgramPlace("C", (1, 2)), ProgramPlace("C", (4,)), ProgramPlace("|", (3,)), ProgramPlace("C", (4,))),
            (0, 1),
        ),
        (
            (ProgramPlace("C", (1, 3)), ProgramPlace("|", (2,)), ProgramPlace("C", (4,)), ProgramPlace("C", (4,))),
            (0, 1, 2),
        ),
    ],
)
def test_a_barrier_makes_a_path_no_longer_and_no_shorter(
    places: tuple[ProgramPlace, ...], path: tuple[int, ...]
) -> None:
    """Both ways have equally many cycles, so it is the first of them."""
    for rule in "longest", "shortest":
        assert run(Instance.of(Program(places), 1), "lrr", Choices(path=rule)).paths == (path,)


def test_the_shortest_path_may_end_at_once() -> None:
    program = Program((ProgramPlace("C", (1, 2)), ProgramPlace("C", (2,))))
    assert run(Instance.of(program, 1), "lrr", Choices(path="shortest")).paths == ((0,),)


def test_a_path_is_longest_at_the_largest_latencies_and_shortest_at_the_smallest() -> None:
    units = UnitClass("C", 1, 1, Latency(5, 5)), UnitClass("L", 1, 1, Latency(1, 9))
    instance = Instance.of(Program((ProgramPlace("C", (2,)), ProgramPlace("L", (2,))), (0, 1)), 1, Machine("m", units))
    for rule in "longest", "shortest":
        assert run(instance, "lrr", Choices(path=rule)).paths == ((1,),)


def test_a_path_of_a_warp_that_runs_ahead_takes_its_latencies_or_its_stalls() -> None:
    """A stall of 3 cycles for a result that is there after one; or a stall of one for a result after 9."""
    timings = InstructionTiming(3, (1, 1), (0,)), InstructionTiming(1, (9, 9), (0,))
    program = Program((ProgramPlace("C", (2,)), ProgramPlace("C", (2,))), (0, 1), timings=timings)
    for rule, path in ("longest", (1,)), ("shortest", (0,)):
        assert run(Instance.of(program, 1), "lrr", Choices(path=rule)).paths == (path,)


def test_every_warp_has_random_numbers_of_its_own() -> None:
    """The streams of latencies, paths and uses are 1, 2 and 3, each followed by the number of the warp."""
    unit = UnitClass("C", 1, 1, Latency(1, 9), uses=(Use(("a", "b"), 1, 9),))
    machine = Machine("m", (unit,), resources=(PortResource("a", 1), PortResource("b", 1)))
    fork = Program((ProgramPlace("C", (1, 2)), ProgramPlace("C", (3,)), ProgramPlace("C", (3,))))
    instance = Instance.merged([(Program.chain("CC"), 2), (fork, 2)], machine)
    chosen = choose_routes(instance, Choices("random", "random", 5, interval="random"))
    for warp in range(4):
        latency, path, use = (SplitMix(5, stream, warp) for stream in (1, 2, 3))
        assert chosen.latencies[warp] == (1 + latency.below(9), 1 + latency.below(9))
        assert path.below(1) == 0  # where it starts
        assert chosen.paths[warp] == (0, 1 if warp < 2 else 1 + path.below(2))
        assert chosen.uses[warp] == tuple(((use.below(2), 1 + use.below(9)),) for _ in range(2))


def test_a_latency_is_random_on_whichever_path_it_is() -> None:
    """Also where the first warp takes the path on which all latencies are fixed."""
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(1, 9))))
    instance = Instance.of(Program((ProgramPlace("C", (2,)), ProgramPlace("L", (2,))), starts=(0, 1)), 12, cached)
    chosen = choose_routes(instance, Choices("random", "random", seed=2))
    assert chosen.paths[0] == (0,)
    assert len({own for own, path in zip(chosen.latencies, chosen.paths, strict=True) if path == (1,)}) > 2


def test_random_latencies_do_not_depend_on_the_policy() -> None:
    cached = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(1, 9))))
    found = {run(Instance.of("LCLLC", 6, cached), policy, Choices("random", seed=3)).latencies for policy in POLICIES}
    assert len(found) == 1
    assert len(set(*found)) == 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"latency": "mean"}, "unknown choice of latencies 'mean'; known: most, least, random"),
        ({"path": "widest"}, "unknown choice of paths 'widest'; known: longest, shortest, first, random"),
        ({"seed": -1}, "a seed is a whole number from 0"),
        ({"seed": 2**64}, "a seed is a whole number from 0 to 2**64 - 1, not 18446744073709551616"),
        ({"interval": "mean"}, "unknown choice of intervals 'mean'; known: most, least, random"),
        ({"assignment": "any"}, "unknown choice of partitions 'any'; known: modulo, random"),
        ({"group_size": 0}, "a fetch group has at least 1 warp, not 0"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused(wrong: dict[str, object], message: str) -> None:
    assert Choices(seed=2**64 - 1, group_size=1) != Choices(seed=0, group_size=1)
    with pytest.raises(InputError, match=re.escape(message)):
        Choices(**wrong)  # type: ignore[arg-type]


def test_what_simulators_and_replays_do_not_know_is_refused_by_name() -> None:
    units = UnitClass("C", 1), UnitClass("L", 1)
    delayed = Instance.of(f"CL{DELAY}", 2, Machine("delays", (*units, UnitClass.of_delays(2)), 1))
    fair = Instance.of("C", 1, Machine("fair", units, scheduler=SchedulerPromise.FAIR))
    for instance, ask, message in (
        (delayed, lambda one: replay(one, Schedule((), ())), "replay does not know cycles of delay"),
        (delayed, lambda one: run(one, "lrr"), "the simulator does not know cycles of delay"),
        (fair, lambda one: run(one, "lrr"), "the simulator does not know a fair scheduler; leave the promise out"),
        (fair, Runner, "the compiled simulator does not know a fair scheduler"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            ask(instance)


def test_a_policy_that_nobody_knows_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="magic"):
        run(Instance.of("C", 1), "magic")


def test_an_order_of_warps_is_a_policy() -> None:
    instance = Instance.of("CLLC", 3)
    quick = Runner(instance)
    assert quick.ranked([2, 1, 0]) == run(instance, "youngest").makespan
    assert quick.ranked_schedule([2, 1, 0]) == run(instance, "youngest")
    assert [len(kept) for kept in quick.nothing[:3]] == [0, 0, 0]  # compiled code would write into anything else
    for wrong in ([0, 1], [0, 1, 1], [1, 2, 3]):
        with pytest.raises(InputError, match=r"an order of 3 warps has each of 0\.\.2 once"):
            quick.ranked(wrong)


def test_statistics_of_a_schedule_by_hand() -> None:
    """Cycles: 0 L0 | 1 - | 2 L1 | 3 C0 | 4 - | 5 C1; the port of L is held in 0, 1 and 2, 3."""
    instance = Instance.of("LC", 2, LOADS)
    counts = statistics(instance, run(instance, "oldest"))
    assert counts.makespan == 6
    assert counts.issues == {0: 2, 1: 4}
    assert counts.issue_slots is None
    assert counts.classes["L"].port_cycles == 4
    assert counts.classes["C"].port_cycles == 2
    assert counts.classes["C"].offered == counts.classes["L"].offered == 6
    ways = counts.warps
    assert (ways.issuing, ways.latency, ways.ports, ways.issue_slot) == (4, 4, {"C": 0, "L": 2}, 0)
    assert (ways.barrier, ways.finished, ways.total) == (0, 2, 12)


def test_statistics_of_issue_slots_by_hand() -> None:
    """Cycles: 0 C0 | 1 L0 | 2 C1 | 3 L1; warp 1 waits for the port of C in 0, and for a slot in 1."""
    instance = Instance.of("CL", 2, Machine("narrow", (UnitClass("C", 1), UnitClass("L", 1)), 1))
    ways = statistics(instance, run(instance, "oldest")).warps
    assert (ways.issuing, ways.latency, ways.ports, ways.issue_slot) == (4, 0, {"C": 1, "L": 0}, 1)
    assert (ways.barrier, ways.finished, ways.total) == (0, 2, 8)
    wide = Instance.of("CL", 2, Machine("wide", instance.machine.units, 2))
    assert statistics(wide, run(wide, "oldest")).issue_slots == 2 * 3  # C1 beside L0


@pytest.mark.parametrize(("width", "warps", "waits", "slot"), [(None, 3, 2, 0), (1, 2, 0, 1)])
def test_statistics_of_one_of_several_resources_by_hand(width: int | None, warps: int, waits: int, slot: int) -> None:
    """Both are held in cycles 0 and 1, and the third warp waits for the first of them; or a slot is all that lacks."""
    unit = UnitClass("C", 3, uses=(Use(("a", "b"), 2, 2),))
    machine = Machine("either", (unit,), width, resources=(PortResource("a", 1), PortResource("b", 1)))
    instance = Instance.of("C", warps, machine)
    ways = statistics(instance, run(instance, "oldest")).warps
    assert (ways.ports, ways.issue_slot) == ({"C": 0, "a": waits, "b": 0}, slot)


def test_statistics_of_barriers_by_hand() -> None:
    """Cycles: 0 C0 L1 | 1 L1 | 2 L1 | 3 C0 | 4 C1; in 1 and 2 warp 0 is at the barrier, in 3 the port of C is held."""
    instance = Instance.merged([(Program.chain("C|C"), 1), (Program.chain("LLL|C"), 1)])
    ways = statistics(instance, run(instance, "oldest")).warps
    assert (ways.issuing, ways.latency, ways.ports, ways.issue_slot) == (6, 0, {"C": 1, "L": 0}, 0)
    assert (ways.barrier, ways.finished, ways.total) == (2, 1, 10)


@pytest.mark.parametrize(
    ("string", "makespan", "latency"),
    [
        ("LC", 6, 4),  # 0 L0 | 1 - | 2 L1 | 3 C0 | 4 - | 5 C1
        ("L()C()", 5, 2),  # 0 L0 | 1 C0 | 2 L1 | 3 C1 | 4 the load of warp 1 is still under way
    ],
)
@pytest.mark.parametrize("assignment", WarpAssignment)
def test_statistics_of_partitions_by_hand(string: str, makespan: int, latency: int, assignment: WarpAssignment) -> None:
    """Each warp has a partition of its own; warp 1 waits for two cycles, as the load of warp 0 holds what is shared."""
    units = UnitClass("C", 1), UnitClass("L", 1, 1, Latency(3, 3), uses=(Use(("lsu",), 2, 2),))
    lsu = PortResource("lsu", 1, shared=True)
    machine = Machine("m", units, 1, partitions=2, assignment=assignment, resources=(lsu,))
    instance = Instance.of(parse_string(string, machine), 2, machine)
    counts = statistics(instance, run(instance, "oldest"))
    assert (counts.makespan, counts.issue_slots) == (makespan, 2 * makespan)
    used = {name: (use.instructions, use.port_cycles, use.offered) for name, use in counts.classes.items()}
    assert used == {"C": (2, 2, 2 * makespan), "L": (2, 2, 2 * makespan), "lsu": (2, 4, makespan)}
    ways = counts.warps
    assert (ways.issuing, ways.latency, ways.ports) == (4, latency, {"C": 0, "L": 0, "lsu": 2})
    assert (ways.issue_slot, ways.barrier, ways.finished, ways.total) == (0, 0, 2, 2 * makespan)


@settings(max_examples=100)
@given(st.data(), st.one_of(general_instances(most_warps=4, most=4), whole_instances()))
def test_statistics_are_what_a_look_at_every_state_counts(data: st.DataObject, instance: Instance) -> None:
    schedule = data.draw(runs(instance))
    counts = statistics(instance, schedule)
    ways = counts.warps
    expected = _look_at_every_state(instance, schedule)
    assert ways.total == instance.warps * schedule.makespan
    assert {
        "issuing": ways.issuing, "latency": ways.latency, "slot": ways.issue_slot, "barrier": ways.barrier,
        "finished": ways.finished,
        **{f"port {name}": cycles for name, cycles in ways.ports.items()},
        **{f"held {name}": use.port_cycles for name, use in counts.classes.items()},
    } == expected  # fmt: skip
    assert sum(counts.issues.values()) == schedule.makespan
    assert sum(issues * cycles for issues, cycles in counts.issues.items()) == ways.issuing
    assert sum(use.instructions for use in counts.classes.values()) == ways.issuing


def _look_at_every_state(instance: Instance, schedule: Schedule) -> dict[str, int]:
    """Step through a schedule with the definition, and ask of every warp in every cycle what it is doing."""
    programs, units = tuple(instance.programs()), instance.machine.units
    ends = [(*path[1:], program.end) for path, program in zip(schedule.paths, programs, strict=True)]
    targets = list(map(iter, ends))
    most = {unit.name: unit.latency.most for unit in units}
    latencies = list(map(iter, schedule.latencies)) or None
    found = dict.fromkeys(("issuing", "latency", "slot", "barrier", "finished"), 0)
    found |= {f"{what} {unit.name}": 0 for what in ("port", "held") for unit in units}

    def settle(state: SmState) -> SmState:
        while passing := passing_barrier(instance, state):
            places = list(state.places)
            for warp in passing:
                places[warp] = next(targets[warp])
            state = state._replace(places=tuple(places))
        return state

    begin = SmState(tuple(path[0] for path in schedule.paths), (0,) * instance.warps, ((),) * len(units))
    state = settle(begin)
    for executing in schedule.cycles:
        waiting = ready_warps(instance, state)
        letters = {warp: unit for unit, warps in waiting.items() for warp in warps}
        held = {
            unit.name: len(ports) + sum(letters[warp] == unit.name for warp in executing)
            for unit, ports in zip(units, state.held, strict=True)
        }
        for unit in units:
            found[f"held {unit.name}"] += held[unit.name]
        capacities = instance.machine.capacities
        for warp, program in enumerate(programs):
            if warp in executing:
                found["issuing"] += 1
            elif state.waits[warp]:
                found["latency"] += 1
            elif state.places[warp] == program.end:
                found["finished"] += 1
            elif warp in letters:
                unit_name = letters[warp]
                full = held[unit_name] == capacities[unit_name]
                found[f"port {unit_name}" if full else "slot"] += 1
            else:
                found["barrier"] += 1
        moves = [
            WarpIssue(w, next(targets[w]), next(latencies[w]) if latencies else most[letters[w]]) for w in executing
        ]
        state = settle(next_state(instance, state, moves))
    assert has_finished(instance, state)
    return found


@pytest.mark.soak
def test_ten_thousand_instances_enclose_every_policy() -> None:
    """Base and general machine, with and without barriers; the plain search is the truth. MAKESPAN_SEED repeats one."""
    from makespan.proof.engines import Limits
    from makespan.proof.engines.search import plain as search

    print(f"MAKESPAN_SEED={SEED}")
    draw = random.Random(SEED)
    for _ in range(10_000):
        instance = _drawn_instance(draw)
        found = search.solve(instance, Limits(600))
        assert found.upper is not None
        assert found.best_case is not None
        assert found.best_case.lower == found.best_case.upper
        choices = Choices(draw.choice(LATENCIES), draw.choice(PATHS), draw.getrandbits(64), draw.randint(1, 5))
        quick = Runner(instance, choose_routes(instance, choices))
        for policy in POLICIES:
            schedule = quick.schedule(policy, choices)
            assert replay(instance, schedule) == schedule.makespan, (instance, policy, choices)
            assert found.best_case.lower <= schedule.makespan <= found.upper, (instance, policy, choices)


def _drawn_instance(draw: random.Random) -> Instance:
    """Half of them on the base machine; small enough for the plain search."""
    while True:
        general = draw.random() < 0.5
        units = [_drawn_unit(draw, name, general) for name in "CLS"[: draw.randint(1, 3)]]
        width = draw.choice([None, None, 1, 2, 3]) if general else None
        letters = "".join(unit.name for unit in units) + ("|" if draw.random() < 0.3 else "")
        blocks = draw.choice([1, 1, 2])
        most, sizes = (3, 4) if general else (5, 6)
        groups = [
            (
                _drawn_program(draw, letters, draw.randint(1, sizes)),
                blocks * draw.randint(1, max(1, most // blocks - 1)),
            )
            for _ in range(draw.choice([1, 1, 2]))
        ]
        try:
            return Instance.merged(groups, Machine("drawn", tuple(units), width), blocks=blocks)
        except InputError:  # a path of barriers only
            continue


def _drawn_unit(draw: random.Random, name: str, general: bool) -> UnitClass:
    if not general:
        return UnitClass(name, draw.randint(1, 3))
    least = draw.choice([1, 1, 2, 4])
    latency = Latency(least, least + draw.choice([0, 0, 1, 2]))
    return UnitClass(name, draw.randint(1, 2), draw.choice([1, 1, 2, 3]), latency)


def _drawn_program(draw: random.Random, letters: str, size: int) -> Program:
    """A string, or an automaton in which some places may be passed over."""
    skips = draw.random() < 0.4
    after = [(n + 1, n + 2) if skips and n + 2 <= size and draw.random() < 0.4 else (n + 1,) for n in range(size)]
    try:
        return Program(tuple(ProgramPlace(draw.choice(letters), targets) for targets in after))
    except InputError:
        return Program.chain(draw.choice(letters.replace("|", "")) * size)
