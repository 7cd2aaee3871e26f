"""What a user says of latencies and intervals: `global=..400+10n`, `memory=2`."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan import KernelQuestion, Launch, solve
from makespan.host.errors import InputError
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import (
    GivenRange,
    KnownLapses,
    Latency,
    LineCache,
    Machine,
    PortResource,
    UnitClass,
    Use,
    find_machine,
    given_intervals,
    given_latencies,
    narrow_intervals,
    timed_operations,
)
from makespan.model.machine.values import MAX_LATENCY, MAX_SMS
from makespan.model.strings import parse_string
from makespan.proof.bounds.theorem_g import theorem_g
from tests.oracle import brute_force


def machine(of_l: Use, of_x: Use, *of_y: Use) -> Machine:
    units = (
        UnitClass("L", 1, uses=(of_l,)),
        UnitClass("X", 1, uses=(of_x,)),
        UnitClass("Y", 1, uses=(*of_y, Use(("slot",), 1, 8))),
    )
    return Machine("m", units, resources=(PortResource("memory", 1), PortResource("way", 1), PortResource("slot", 1)))


RANGED = machine(Use(("memory",), 2, 8), Use(("memory",), 3, 3), Use(("way", "memory"), 1, 8))


@pytest.mark.parametrize(
    ("texts", "meant"),
    [
        ([], RANGED),
        (["memory=4"], machine(Use(("memory",), 4, 4), Use(("memory",), 3, 3), Use(("way", "memory"), 4, 4))),
        (["memory=..4"], machine(Use(("memory",), 2, 4), Use(("memory",), 3, 3), Use(("way", "memory"), 1, 4))),
        (["memory=2..8"], machine(Use(("memory",), 2, 8), Use(("memory",), 3, 3), Use(("way", "memory"), 2, 8))),
        (["way=..2"], machine(Use(("memory",), 2, 8), Use(("memory",), 3, 3), Use(("way", "memory"), 1, 2))),
    ],
)
def test_ranges_become_narrower_and_fixed_intervals_stay(texts: list[str], meant: Machine) -> None:
    assert narrow_intervals(RANGED, given_intervals(texts)) == meant


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["memory=1"], "class L holds memory for 2..8 cycles, not for 1 cycle; a range can only become narrower"),
        (["memory=..9"], "class L holds memory for 2..8 cycles, not for at most 9 cycles; "),
        (["memory=..1"], "class L holds memory for 2..8 cycles, not for at most 1 cycle; "),
        (["memory=4", "way=4"], "no class holds 'way' for a range of cycles; it has a range for slot"),
        (["l2=4"], "no class holds 'l2' for a range of cycles; it has a range for memory, way, slot"),
        (["memory=4", "slot=2", "way=4"], "for a range of cycles; its intervals are no ranges"),
        (["memory"], "an interval is given as memory=2, memory=2..4 or memory=..4, not 'memory'"),
        (["memory=0"], "interval of memory: 1..1024 cycles, not 0"),
        (["memory=5..4"], "interval of memory: 5..4 is no range"),
        (["memory=4", "memory=4"], "the interval of memory is given twice"),
        (["memory=..4+1n"], "an interval is given as memory=2, "),
        (["memory=..4:1,5:2"], "an interval is given as memory=2, "),
    ],
)
def test_what_is_no_narrower_range_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        narrow_intervals(RANGED, given_intervals(texts))


@given(st.data())
@settings(max_examples=15)
def test_less_choice_is_never_worse(data: st.DataObject) -> None:
    least = data.draw(st.integers(1, 3))
    loads = UnitClass("L", 1, uses=(Use(("memory",), least, data.draw(st.integers(least, 3))),))
    wide = Machine("m", (UnitClass("C", 1), loads), issue_width=1, resources=(PortResource("memory", 1),))
    held = wide.units[1].uses[0]
    if held.is_fixed:
        return
    most = data.draw(st.integers(held.least, held.most))
    narrow = narrow_intervals(wide, {"memory": GivenRange(data.draw(st.none() | st.integers(held.least, most)), most)})
    program = parse_string(data.draw(st.sampled_from(["LC", "LLC", "CL", "L()@3C(1)"])), wide)
    worst = [brute_force(Instance.of(program, 2, each)).upper for each in (narrow, wide)]
    assert worst[0] <= worst[1]
    assert solve(Instance.of(program, 2, narrow)).bounds.upper >= worst[0]


def test_a_verdict_says_for_how_long_ports_are_held() -> None:
    turing = narrow_intervals(find_machine("turing").machine, given_intervals(["memory=..4", "b-ports=1"]))
    said = Instance.of("L", 2, turing).assumptions
    assert "interval as given: class L holds memory for at most 4 cycles; the machine says 2..32" in map(str, said)
    held = "if class L holds memory for at most 4 cycles and class B holds b-ports for 1 cycle"
    assert held in conditions(said)


# Latencies that grow with the number of active SMs


def grown(text: str, active: int) -> GivenRange:
    (found,) = given_latencies([f"global={text}"]).values()
    return found.for_sms(active)


@pytest.mark.parametrize(
    ("text", "active", "meant", "said"),
    [
        ("..900", 46, (None, 900), "at most 900 cycles"),
        ("..400+10n", 1, (None, 410), "at most 410 cycles with 1 active SM"),
        ("..400+10n", 46, (None, 860), "at most 860 cycles with 46 active SMs"),
        ("..0+7n", 3, (None, 21), "at most 21 cycles with 3 active SMs"),
        ("300..400+0n", 46, (300, 400), "300..400 cycles"),
        ("300..400:1,600:16,900:46", 1, (300, 400), "300..400 cycles with 1 active SM"),
        ("300..400:1,600:16,900:46", 2, (300, 600), "300..600 cycles with 2 active SMs"),
        ("300..400:1,600:16,900:46", 16, (300, 600), "300..600 cycles with 16 active SMs"),
        ("300..400:1,600:16,900:46", 17, (300, 900), "300..900 cycles with 17 active SMs"),
        ("..5:8", 8, (None, 5), "at most 5 cycles with 8 active SMs"),
    ],
)
def test_a_latency_grows_with_the_active_sms(text: str, active: int, meant: tuple[int | None, int], said: str) -> None:
    found = grown(text, active)
    assert (found[:2], str(found), found.grows) == (meant, said, False)
    assert found.for_sms(MAX_SMS) == found


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=6), st.integers(1, 60))
def test_a_table_says_the_least_of_the_rows_that_reach(further: list[tuple[int, int]], active: int) -> None:
    sms, cycles, rows = 0, 1, []
    for more_sms, more_cycles in further:
        sms, cycles = sms + more_sms, cycles + more_cycles
        rows.append((cycles, sms))
    text = f"..{','.join(f'{cycles}:{sms}' for cycles, sms in rows)}"
    assert str(given_latencies([f"global={text}"])["global"]) == text
    if active > sms:
        with pytest.raises(InputError, match=f"up to {sms} active SMs, and {active} are active: add ,N:{active}"):
            grown(text, active)
        return
    assert grown(text, active).most == min(cycles for cycles, reached in rows if active <= reached)
    assert grown(text, 1).most <= grown(text, active).most


@given(st.integers(0, 999), st.integers(1, 99), st.integers(1, 99))
def test_a_line_is_its_formula_and_says_itself(base: int, per_sm: int, active: int) -> None:
    text = f"..{base}+{per_sm}n"
    assert str(given_latencies([f"global={text}"])["global"]) == text
    assert grown(text, active).most == base + per_sm * active


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("400+10n", "latency of global: what grows with the number of active SMs is an upper end: ..400"),
        ("400:1,500:2", "what grows with the number of active SMs is an upper end: ..400"),
        ("..400-1n", "a latency is given as global=400, "),
        ("..400+n", "a latency is given as global=400, "),
        ("..400:1,", "a latency is given as global=400, "),
        ("..400:1;500:2", "a latency is given as global=400, "),
        ("..400:1" + ",500:2" * 64, "a latency is given as global=400, "),
        ("..400:1,399:2", "399 cycles with 2 active SMs, and 400 with 1: it must not fall"),
        ("..400:2,500:2", "500:2 follows 400:2; numbers of SMs rise, from 1 on"),
        ("..400:0", "400:0 follows 0:0; numbers of SMs rise, from 1 on"),
        ("..400:1,100001:2", "latency of global: 1..100000 cycles, not 100001"),
        ("..0:1", "latency of global: 1..100000 cycles, not 0"),
        ("..400+100000n", "latency of global: 1..100000 cycles, not 100400"),
        ("500..400:1,600:2", "500..400 is no range"),
        ("500..400+10n", "500..410 is no range"),
    ],
)
def test_growth_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        given_latencies([f"global={text}"])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "share", "beside", "said"),
    [
        ("..450+dram", Fraction(1), (None, 450), "at most 450 cycles besides those in which DRAM is busy"),
        (
            "..450+dram@0.000001",
            Fraction(1, 10**6),
            (None, 450),
            "at most 450 cycles besides those in which DRAM is busy",
        ),
        ("..450+dram@0.8", Fraction(4, 5), (None, 450), "at most 450 cycles besides those in which DRAM is busy"),
        ("300..450+dram@0.875", Fraction(7, 8), (300, 450), "300..450 cycles besides those in which DRAM is busy"),
        (
            "..400+10n+dram",
            Fraction(1),
            (None, 860),
            "at most 860 cycles besides those in which DRAM is busy with 46 active SMs",
        ),
        ("..400:1,900:46+dram@0.5", Fraction(1, 2), (None, 900), "at most 900 cycles besides those in which DRAM is"),
    ],
)
def test_cycles_in_which_dram_is_busy_come_on_top(
    text: str, share: Fraction, beside: tuple[int, int], said: str
) -> None:
    (found,) = given_latencies([f"global={text}"]).values()
    assert (found.dram, str(found)) == (share, text)
    there = found.for_sms(46)
    assert (there.dram, there.grows, bool(there.depends_on)) == (share, False, True)
    assert there.beside_dram()[:2] == beside
    assert str(there.beside_dram()).startswith(said)
    assert there.beside_dram().depends_on == ""
    with pytest.raises(
        InputError, match=r"depends on what a launch asks of DRAM; say on which GPU, and ask about a whole"
    ):
        timed_operations(find_machine("turing").machine, {"global": there})
    assert timed_operations(find_machine("turing").machine, {"global": there.beside_dram()})["global"].most == beside[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("450+dram", "latency of global: what +dram is added to is an upper end: ..450"),
        ("..450+dram@0.0", "the share of its bandwidth that DRAM moves at least is above 0"),
        ("..1+dram", "no access to DRAM takes less than 2 cycles"),
        ("..450+dram@1.1", "a latency is given as global=400, "),
        ("..450+dram@.8", "a latency is given as global=400, "),
        ("..450+dram@0.1234567", "a latency is given as global=400, "),
        ("..450+dram+dram", "a latency is given as global=400, "),
        ("..450+dram+10n", "a latency is given as global=400, "),
        ("..450 +dram", "a latency is given as global=400, "),
    ],
)
def test_what_dram_is_not_added_to_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        given_latencies([f"global={text}"])
    assert message in str(caught.value)
    with pytest.raises(InputError, match="an interval is given as"):
        given_intervals(["memory=..4+dram"])


CACHES = KnownLapses(code=LineCache(128, 8, 32, 86), constants=LineCache(64, 4, 2, 79))


@pytest.mark.parametrize(
    ("known", "names"),
    [
        (None, ()),
        (KnownLapses(), ()),
        (replace(CACHES, constants=None), ("fetch",)),
        (replace(CACHES, code=None), ("constant-miss",)),
        (CACHES, ("fetch", "constant-miss")),
    ],
)
def test_first_fetches_are_given_where_a_machine_knows_the_cache(
    known: KnownLapses | None, names: tuple[str, ...]
) -> None:
    machine = replace(find_machine("turing").machine, lapses=known)
    assert machine.fetches == names
    for name in ("fetch", "constant-miss"):
        given = given_latencies([f"{name}=..600"])
        assert given[name].most == 600
        if name in names:
            assert timed_operations(machine, given) == timed_operations(machine, {})
        else:
            with pytest.raises(InputError, match=f"'turing' knows no cache for .*, so {name} says nothing: leave it"):
                timed_operations(machine, given)


def test_first_fetches_grow_with_the_active_sms() -> None:
    given = given_latencies(["fetch=..400+10n"])
    with pytest.raises(InputError, match=r"latency of fetch: .* depends on how many SMs are active"):
        timed_operations(replace(find_machine("turing").machine, lapses=CACHES), given)
    assert given["fetch"].for_sms(46).most == 860


@pytest.mark.parametrize("text", ["fetch=600", "fetch=200..600", "constant-miss=..600+dram"])
def test_a_first_fetch_has_an_upper_end_alone(text: str) -> None:
    with pytest.raises(InputError) as caught:
        given_latencies([text])
    name = text.partition("=")[0]
    said = f"latency of {name}: give an upper end alone, which includes what DRAM takes: {name}=..900"
    assert str(caught.value) == said


def test_growth_past_the_longest_latency_is_refused_for_the_sms_that_reach_it() -> None:
    assert grown("..99000+10n", 100).most == MAX_LATENCY
    with pytest.raises(InputError, match=r"latency \.\.99000\+10n: 1\.\.100000 cycles, not 100010 with 101 active SMs"):
        grown("..99000+10n", 101)
    for active in (0, -1, MAX_SMS + 1, True):
        with pytest.raises(InputError, match="the number of active SMs must be"):
            grown("..400+10n", active)


def test_where_nobody_counts_sms_growth_is_refused_and_nowhere_else() -> None:
    turing = find_machine("turing").machine
    growing = given_latencies(["global=..400+10n"])
    with pytest.raises(InputError, match=r"latency of global: \.\.400\+10n depends on how many SMs are active; say on"):
        timed_operations(turing, growing)
    resolved = timed_operations(turing, {name: latency.for_sms(50) for name, latency in growing.items()})
    assert resolved == timed_operations(turing, given_latencies(["global=..900"]))


def test_a_verdict_says_with_how_many_active_sms() -> None:
    asked = KernelQuestion(
        Path("ptx/vecadd.ptx"), launch=Launch(block=(32, 1, 1)), latencies=given_latencies(["global=..400+10n"])
    )
    turing = find_machine("turing").machine
    with pytest.raises(InputError, match="say on which GPU, with --gpu"):
        asked.instance(turing)
    instance = replace(asked, latencies={"global": grown("..400+10n", 46)}).instance(turing)
    assert "if global takes at most 860 cycles with 46 active SMs" in conditions(instance.assumptions)


@given(st.data())
@settings(max_examples=20)
def test_a_bound_of_a_whole_gpu_does_not_fall_with_the_active_sms(data: st.DataObject) -> None:
    growing = given_latencies([f"global=..{data.draw(st.integers(0, 5))}+{data.draw(st.integers(1, 3))}n"])["global"]
    letters = data.draw(st.sampled_from(["LC", "CLLC", "L()C(1)", "L()L()+2C(2)C(1)"]))
    block, blocks, sms, resident = (data.draw(st.integers(1, most)) for most in (4, 40, 6, 3))
    interval, width = data.draw(st.integers(1, 3)), data.draw(st.none() | st.integers(1, 2))

    def upper(active: int) -> int:
        loads = UnitClass("L", 1, interval, Latency(1, growing.for_sms(active).most))
        each = Machine("m", (UnitClass("C", 1), loads), issue_width=width)
        warps = [(parse_string(letters, each), block)]
        return theorem_g(GpuInstance.of(warps, blocks, each, sms=sms, resident=resident)).upper

    bounds = [upper(active) for active in (1, 2, 5)]
    assert bounds == sorted(bounds)
