"""Machines: what is refused, what is basic, and what the page about them claims, by enumeration."""

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makespan import cli
from makespan.host.errors import InputError, UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import MAX_CAPACITY, ONE_CYCLE, PAPER, Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.proof.bounds import any_units
from makespan.proof.engines import solve

PAGE = (Path(__file__).parents[2] / "docs" / "machines.md").read_text()


def test_the_paper_machine_has_one_unit_of_each_of_two_classes() -> None:
    assert PAPER.capacities == {"C": 1, "L": 1}
    assert PAPER.is_basic


@pytest.mark.parametrize(
    ("name", "capacity", "message"),
    [
        ("C", 0, "capacity of C must be 1..1024, not 0"),
        ("C", -1, "capacity of C must be 1..1024, not -1"),
        ("C", MAX_CAPACITY + 1, "not 1025"),
        ("C", 1.0, "capacity of C must be a whole number, not 1.0"),
        ("C", True, "capacity of C must be a whole number, not True"),
        ("C", 2**99, "capacity of C must be 1..1024, not a number of 100 bits"),
        ("c", 1, "one capital letter A-Z, not 'c'"),
        ("CC", 1, "one capital letter A-Z, not 'CC'"),
        ("", 1, "one capital letter A-Z, not ''"),
        ("Ç", 1, "one capital letter A-Z, not 'Ç'"),
    ],
)
def test_a_unit_class_is_a_capital_letter_with_a_capacity(name: str, capacity: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        UnitClass(name, capacity)


def test_what_is_derived_from_a_machine_is_no_part_of_its_value() -> None:
    used, fresh = (Machine("halves", (UnitClass("C", 1), UnitClass("L", 1, shared=True)), partitions=2) for _ in "ab")
    assert used.number_of_pool == ({"C": 0, "L": 2}, {"C": 1, "L": 2})
    assert (used, hash(used), repr(used)) == (fresh, hash(fresh), repr(fresh))
    assert pickle.loads(pickle.dumps(used)) == fresh
    assert replace(used, partitions=1).number_of_pool == ({"C": 0, "L": 1},)


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        (0, "interval of L must be 1..1024, not 0"),
        (1025, "interval of L must be 1..1024, not 1025"),
        (True, "interval of L must be a whole number, not True"),
        (0.5, "interval of L must be a whole number, not 0.5"),
    ],
)
def test_an_interval_is_a_number_of_cycles(interval: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        UnitClass("L", 1, interval)


@pytest.mark.parametrize(
    ("least", "most", "message"),
    [
        (0, 1, "a latency must be 1..100000, not 0"),
        (1, 100_001, "a latency must be 1..100000, not 100001"),
        (True, 1, "a latency must be a whole number, not True"),
        (1, True, "a latency must be a whole number, not True"),
        (1.5, 2, "a latency must be a whole number, not 1.5"),
        (3, 2, r"a range of latencies is \[least, most\], not \[3, 2\]"),
    ],
)
def test_a_latency_is_an_ordered_range_of_cycles(least: int, most: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Latency(least, most)


def test_a_unit_class_has_its_latency_as_a_latency() -> None:
    with pytest.raises(InputError, match="latency of L must be a Latency, not 4"):
        UnitClass("L", 1, latency=4)  # type: ignore[arg-type]


def test_a_machine_has_at_least_one_class_and_names_each_once() -> None:
    with pytest.raises(InputError, match="machine 'custom' has no unit class"):
        Machine.of({})
    with pytest.raises(InputError, match="names a unit class twice: C, C"):
        Machine("twice", (UnitClass("C", 1), UnitClass("C", 2)))


@pytest.mark.parametrize("width", [0, -1, 1025, True, 2.0, "2"])
def test_an_issue_width_is_a_number_of_instructions(width: int) -> None:
    with pytest.raises(InputError, match="issue width of machine 'm' must be"):
        Machine("m", (UnitClass("C", 1),), width)


@pytest.mark.parametrize(
    ("machine", "beyond"),
    [
        (Machine.of({"C": 2, "L": 1}), ()),
        (Machine("m", (UnitClass("C", 1, 1, Latency(1, 1)),)), ()),
        (Machine("m", (UnitClass("C", 1),), 1), ("an issue width of 1",)),
        (Machine("m", (UnitClass("C", 1, 2), UnitClass("L", 1))), ("intervals (C=2)",)),
        (Machine("m", (UnitClass("C", 1, 1, Latency(1, 2)),)), ("latencies (C=1..2)",)),
        (Machine("m", (UnitClass("C", 1, 1, Latency(4, 4)),)), ("latencies (C=4)",)),
    ],
)
def test_a_basic_machine_takes_one_cycle_in_every_respect(machine: Machine, beyond: tuple[str, ...]) -> None:
    assert tuple(machine.features.values()) == beyond
    assert machine.is_basic == (not beyond)


# What an engine does not know of a machine, it refuses by name

HALF = Machine("half", (UnitClass("C", 1, 2), UnitClass("L", 1)), 1)


def test_an_engine_for_capacities_refuses_what_it_would_misread() -> None:
    with pytest.raises(
        UnsupportedError, match=r"backend ilp does not know an issue width of 1, intervals \(C=2\); use backend auto,"
    ):
        solve(Instance.of("CL", 2, HALF), backend="ilp")
    assert solve(Instance.of("C", 1), backend="ilp").bounds.upper == 1


@pytest.mark.parametrize("command", [["solve", "--backend", "ilp"], ["export", "--model", "lp", "-o", "model.lp"]])
@pytest.mark.parametrize(
    "key", ["issue.width = 1", "units.C.interval = 2", "units.C.latency = 2", "units.C.latency = [1, 2]"]
)
def test_the_ilp_refuses_a_machine_that_is_not_basic_in_one_line(
    command: list[str], key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow.toml").write_text(f"units.C.capacity = 2\n{key}\n")
    assert cli.run([*command, "--string", "CC", "--warps", "2", "--machine", "slow.toml"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "does not know" in said.err
    assert said.err.endswith(("use backend auto, certificate, search or cpsat\n", "use --model cp\n"))
    assert said.err.count("\n") == 1


def test_a_schedule_that_nobody_could_write_down_is_refused() -> None:
    slow = Machine("slow", (UnitClass("C", 1, latency=Latency(1, 100_000)),))
    with pytest.raises(InputError, match="schedules of up to 100001000 cycles exceed the limit of 50000000"):
        Instance.of("C" * 1_000, 1, slow)


# The definition on the page, enumerated: small, and independent of every engine


class Frame(NamedTuple):
    """A unit with `places` in each frame of `length` cycles, instead of ports."""

    places: int
    length: int


Waiting = tuple[int, int, int]
"""A warp: its string, its next instruction, and cycles until it may issue that."""


def cycles(latency: Latency) -> range:
    return range(latency.least, latency.most + 1)


def worst_case(strings: Sequence[str], machine: Machine, frames: dict[str, Frame] | None = None) -> int:
    """The longest work-conserving schedule; classes in `frames` have places in frames instead of their ports."""
    framed = frames or {}
    units = {unit.name: unit for unit in machine.units}
    period = max((frame.length for frame in framed.values()), default=1)

    @cache
    def longest(warps: tuple[Waiting, ...], held: tuple[tuple[str, int], ...], phase: int) -> int:
        if all(at == len(strings[number]) and wait == 0 for number, at, wait in warps):
            return 0
        return 1 + max(longest(*after) for after in set(successors(warps, held, phase)))

    def successors(
        warps: tuple[Waiting, ...], held: tuple[tuple[str, int], ...], phase: int
    ) -> Iterator[tuple[tuple[Waiting, ...], tuple[tuple[str, int], ...], int]]:
        wants = {w: strings[n][at] for w, (n, at, wait) in enumerate(warps) if wait == 0 and at < len(strings[n])}
        used = Counter(name for name, _ in held)
        free = {name: (framed[name].places if name in framed else unit.capacity) for name, unit in units.items()}
        for issued in maximal(wants, {name: count - used[name] for name, count in free.items()}):
            kept = [(name, left - 1) for name, left in held if left > 1]
            for w in issued:
                frame = framed.get(wants[w])
                taken = frame.length - phase % frame.length if frame else units[wants[w]].interval
                kept += [(wants[w], taken - 1)] if taken > 1 else []
            for chosen in product(*(cycles(units[wants[w]].latency) for w in issued)):
                latency = dict(zip(issued, chosen, strict=True))
                moved = (
                    (n, at + 1, latency[w] - 1) if w in latency else (n, at, max(0, wait - 1))
                    for w, (n, at, wait) in enumerate(warps)
                )
                yield tuple(sorted(moved)), tuple(sorted(kept)), (phase + 1) % period

    def maximal(wants: dict[int, str], free: dict[str, int]) -> Iterator[tuple[int, ...]]:
        for size in range(len(wants) + 1):
            for issued in combinations(wants, size):
                used = Counter(wants[w] for w in issued)
                fits = size <= (machine.issue_width or size) and all(used[name] <= free[name] for name in used)
                room = machine.issue_width is None or size < machine.issue_width
                if fits and not any(room and used[wants[w]] < free[wants[w]] for w in wants if w not in issued):
                    yield issued

    return longest(tuple(sorted((number, 0, 0) for number in range(len(strings)))), (), 0)


def _machine(ports: int, interval: int) -> Machine:
    return Machine("m", (UnitClass("C", 1), UnitClass("S", 1), UnitClass("L", ports, interval)))


def test_the_enumeration_knows_worst_cases_of_the_paper_machine() -> None:
    assert [worst_case(["CLCLCL"] * warps, PAPER) for warps in (1, 2, 3)] == [6, 7, 12]
    assert [worst_case(["CCCC"] * warps, Machine.of({"C": 2})) for warps in (1, 2, 3, 4)] == [4, 4, 8, 10]


def test_the_order_of_ports_and_intervals_matters_as_the_page_says() -> None:
    rows = [row for row in PAGE.splitlines() if row.startswith(("| L, L |", "| CCCLLL", "| CSCS"))]
    assert len(rows) == 3
    for row in rows:
        warps, *stated = (cell.strip() for cell in row.strip("|").split("|"))
        strings = warps.split(", ")
        one, two = worst_case(strings, _machine(1, 2)), worst_case(strings, _machine(2, 4))
        assert [one, two, worst_case(strings, _machine(1, 2), {"L": Frame(1, 2)})] == list(map(int, stated)), row


def test_a_hit_can_be_worse_than_a_miss_as_the_page_says() -> None:
    assert "Three warps `LCL`" in PAGE
    assert "is 7 cycles if C has latency 1, and **6** if it has latency 2" in PAGE
    latencies = ONE_CYCLE, Latency(2, 2), Latency(1, 2)
    machines = [Machine("m", (UnitClass("C", 1, latency=latency), UnitClass("L", 1))) for latency in latencies]
    hit, miss, either = (worst_case(["LCL"] * 3, machine) for machine in machines)
    assert (hit, miss) == (7, 6)
    assert either >= 7


words = st.lists(st.text("CLS", min_size=1, max_size=3), min_size=1, max_size=3)
ranges = st.integers(1, 2).flatmap(lambda least: st.builds(Latency, st.just(least), st.integers(least, 3)))


@settings(max_examples=200, deadline=None)
@given(
    strings=words,
    p=st.integers(1, 2),
    q=st.integers(1, 3),
    k=st.integers(1, 2),
    latency=ranges,
    width=st.none() | st.just(1),
)
@example(strings=["LLL"] * 3, p=2, q=1, k=1, latency=ONE_CYCLE, width=1)
def test_the_bound_of_the_page_holds_for_every_way_to_build_a_throughput(
    strings: list[str], p: int, q: int, k: int, latency: Latency, width: int | None
) -> None:
    others = UnitClass("C", 1, latency=latency), UnitClass("S", 1)
    ports = Machine("m", (*others, UnitClass("L", k * p, k * q)), width)
    reduced = Machine("m", (*others, UnitClass("L", p, q)), width)
    bound = any_units(Instance.merged([(Program.chain(string), 1) for string in strings], reduced))
    assert worst_case(strings, ports) <= bound
    assert worst_case(strings, ports, {"L": Frame(k * p, k * q)}) <= bound


def test_the_machine_of_the_paper_has_one_name() -> None:
    assert Machine.of({"C": 1, "L": 1}) == PAPER
    assert Machine.of({"C": 2, "L": 1}).name == Machine.of({"C": 1}).name == "custom"
    assert Machine.of({"C": 1, "L": 1}, "mine").name == "mine"
