"""Machine files: what is shipped, what is refused, and what `makespan machines` shows."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan import cli
from makespan.host.errors import InputError
from makespan.host.text_file import parse_toml
from makespan.model.assumptions import caveat
from makespan.model.instance import Instance
from makespan.model.machine import (
    PAPER,
    CycleRange,
    Latency,
    Machine,
    MachineDatum,
    MachineFile,
    PortResource,
    TimedOperation,
    UnitClass,
    Use,
    WarpAssignment,
    find_machine,
    read_machine,
    shipped_machines,
)
from makespan.model.machine.files import MAX_FILE_BYTES, WARP, machine_file
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.model.strings import parse_string
from tests.oracle import brute_force
from tests.test_docs import Shell, blocks

PAGE = Path(__file__).parents[2] / "docs" / "machines.md"
EXAMPLE = Path(__file__).parents[2] / "examples" / "partitioned.toml"
SHIPPED = shipped_machines()
GPUS = {name: file for name, file in SHIPPED.items() if name != "paper"}
PARTITIONED_GPUS = {name: file for name, file in GPUS.items() if file.machine.partitions > 1}
WHOLE_GPUS = {name: file for name, file in GPUS.items() if file.machine.partitions == 1}
NEWER = (*("volta", "turing", "ampere-ga100", "ampere-ga10x", "ada", "hopper"), *("blackwell-gb100", "blackwell-gb20x"))


# What comes with the package


def test_every_shipped_machine_is_known_by_its_own_name() -> None:
    assert all(file.machine.name == name == find_machine(name).machine.name for name, file in SHIPPED.items())
    assert SHIPPED["paper"].machine == PAPER
    assert set(NEWER) <= set(PARTITIONED_GPUS)


def test_only_the_paper_machine_is_basic() -> None:
    assert [name for name, file in SHIPPED.items() if file.machine.is_basic] == ["paper"]


def test_every_shipped_number_has_a_source() -> None:
    assert [datum for file in SHIPPED.values() for datum in file.data if datum.source is None] == []


@pytest.mark.parametrize("file", WHOLE_GPUS.values(), ids=WHOLE_GPUS)
def test_capacities_are_throughputs_in_warps(file: MachineFile) -> None:
    rates = file.values("throughput")
    units = {unit.name: Fraction(unit.capacity, unit.interval) for unit in file.machine.units}
    basis = {"C": "fp32", "L": "ldst", "S": "sfu", "D": "fp64"}
    assert units == {unit: Fraction(rates[key], WARP) for unit, key in basis.items()}
    assert all(Fraction(u.capacity, u.interval).denominator == u.interval for u in file.machine.units)
    confirmed = {datum.key: datum.verified for datum in file.data}
    for unit, key in basis.items():
        assert confirmed[f"units.{unit}.capacity"] == confirmed[f"throughput.{key}"]


@pytest.mark.parametrize("file", WHOLE_GPUS.values(), ids=WHOLE_GPUS)
def test_the_issue_width_counts_warps_and_not_second_dispatches(file: MachineFile) -> None:
    issue = file.values("issue")
    cycles = 2 if "Fermi" in str(file.architecture) else 1
    assert file.machine.issue_width == issue["width"] == Fraction(issue["schedulers"], cycles)


@pytest.mark.parametrize("file", WHOLE_GPUS.values(), ids=WHOLE_GPUS)
def test_a_gpu_says_what_it_is_and_what_its_model_leaves_out(file: MachineFile) -> None:
    assert file.architecture
    assert file.compute_capability
    assert file.examples
    assert file.clock
    assert set(file.values("residency")) == {"warps", "blocks"}
    assert str(file.caveats[0]).startswith("no latency is known for C, L, S, D")
    assert file.machine.caveats == file.caveats[1:]
    assert all(any(word in str(caveat) for caveat in file.caveats) for word in ("schedulers", "lowest terms", "fp32"))


@pytest.mark.parametrize(
    ("name", "classes", "width", "warps", "blocks"),
    [
        ("fermi-gf100", "C=1 L=1/2 S=1/8 D=1/2", 1, 48, 8),
        ("fermi-gf104", "C=3/2 L=1/2 S=1/4 D=1/8", 1, 48, 8),
        ("kepler-gk104", "C=6 L=1 S=1 D=1/4", 4, 64, 16),
        ("kepler-gk110", "C=6 L=1 S=1 D=2", 4, 64, 16),
        ("maxwell", "C=4 L=1 S=1 D=1/8", 4, 64, 32),
        ("pascal-gp100", "C=2 L=1/2 S=1/2 D=1", 2, 64, 32),
        ("pascal-gp10x", "C=4 L=1 S=1 D=1/8", 4, 64, 32),
    ],
)
def test_the_shipped_numbers_are_these(name: str, classes: str, width: int, warps: int, blocks: int) -> None:
    file = SHIPPED[name]
    assert " ".join(map(str, file.machine.units)) == classes
    assert file.machine.issue_width == width
    assert file.values("residency") == {"warps": warps, "blocks": blocks}


def test_what_is_unverified_is_what_the_page_says() -> None:
    doubtful = {name: {datum.key for datum in file.unverified} for name, file in WHOLE_GPUS.items()}
    assert {name: keys for name, keys in doubtful.items() if keys} == {
        "fermi-gf100": {"issue.width"},
        "fermi-gf104": {
            *("units.L.capacity", "units.L.interval", "throughput.ldst", "throughput.logic", "issue.width"),
        },
    }


# Real multiprocessors


RESIDENT = {"turing": (32, 16), "ampere-ga10x": (48, 16), "ada": (48, 24), "blackwell-gb20x": (48, 24)}
WAY = "path/1..4+memory/1..2"
MEMORY = f"L=1+path/2..12+memory/2..32 X=1@1..32+{WAY} K=1@1..50+{WAY} B=1+b-ports/1..4"
JUDGED = {
    "special": 2 * 25,
    "shuffle": 32,
    "barrier": 53,
    "shared": 33 + 31 + 3 * 2,
    "constant": 29 + 31,
    "parameter": 29,
    "operands": 29 + 31,
}
"""Upper ends of operations within a multiprocessor, in cycles: as long as it does nothing else, and what an access adds
to itself when its lanes are served one after another, or when it fills four registers."""

TWO_PIPES = "I=1@2..15+fp32-int/2 S=1/8@4..29 D=1/16"


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("volta", f"C=1/2@2..8 I=1/2@3..15 S=1/8@4..28 D=1/4@8..15 {MEMORY}"),
        ("turing", f"C=1/2@2..8 I=1/2@3..15 H=1/2@6..8 S=1/8@4..29 D=1/16 T=1@8..22+t-ports/8..16 {MEMORY}"),
        ("ampere-ga100", f"C=1/2@2..7 I=1/2@3..14 S=1/8@4..29 D=1/4@6..14 {MEMORY}"),
        ("ampere-ga10x", f"C=1@3..7+fp32 or fp32-int/2 {TWO_PIPES} T=1+t-ports/8..32 {MEMORY}"),
        ("ada", f"C=1@3..7+fp32 or fp32-int/2 {TWO_PIPES} {MEMORY}"),
        ("hopper", f"C=1@4..7 I=1/2@2..14 S=1/8@4..29 D=1/2@6..14 {MEMORY}"),
        ("blackwell-gb100", f"C=1@4..7 I=1/2@2..14 S=1/8@4..29 D=1/2@6..14 {MEMORY}"),
        (
            "blackwell-gb20x",
            f"C=1@3..8+fp32 or fp32-int/2 I=1@2..15+fp32-int/2 S=1/8@4..29 D=1/16 T=1/8 {MEMORY}",
        ),
    ],
)
def test_the_numbers_of_partitions_are_these(name: str, classes: str) -> None:
    machine = SHIPPED[name].machine
    assert " ".join(map(str, machine.units)) == classes
    assert (machine.partitions, machine.assignment, machine.issue_width) == (4, WarpAssignment.ANY, 1)
    warps, blocks = RESIDENT.get(name, (64, 32))
    assert SHIPPED[name].values("residency") == {"warps": warps, "blocks": blocks}


@pytest.mark.parametrize("file", PARTITIONED_GPUS.values(), ids=PARTITIONED_GPUS)
def test_partitions_together_have_the_throughput_of_the_multiprocessor(file: MachineFile) -> None:
    machine, rates = file.machine, file.values("throughput")
    ports = {resource.name: resource for resource in machine.resources}

    def warps_per_cycle(unit: UnitClass) -> Fraction:
        limits = [Fraction(unit.capacity * (1 if unit.shared else machine.partitions), unit.interval)]
        for use in unit.uses:
            one_of = [ports[name] for name in use.resources]
            count = sum(each.capacity * (1 if each.shared else machine.partitions) for each in one_of)
            limits.append(Fraction(count, use.least))
        return min(limits)

    flow = {unit.name: warps_per_cycle(unit) for unit in machine.units}
    basis = {"C": "fp32", "I": "logic", "S": "sfu", "D": "fp64", "X": "shuffle"}
    assert {unit: flow[unit] for unit in basis} == {unit: Fraction(rates[key], WARP) for unit, key in basis.items()}
    assert flow["S"] == Fraction(rates["popc_clz"], WARP)
    assert flow["L"] == Fraction(1, 2)  # of all partitions together, measured on GA10x
    assert flow["K"] == 1


@pytest.mark.parametrize("file", PARTITIONED_GPUS.values(), ids=PARTITIONED_GPUS)
def test_a_partitioned_gpu_says_what_is_known_of_each_operation(file: MachineFile) -> None:
    machine = file.machine
    operations = {operation.name: operation for operation in machine.operations}
    everywhere = {
        *("fp32", "int", "int-multiply", "predicate", "sfu", "convert", "bit-count", "fp64", "vote", "shuffle"),
        *("special", "branch", "barrier", "constant", "parameter", "shared", "global", "local", "atomic", "operands"),
        "fence",
    }
    assert machine.name not in NEWER or everywhere <= set(operations)
    # What other SMs, caches of data, and units that partitions share take part in has no upper end.
    never = {"global", "local", "atomic", "fence"}
    shared = {unit.name for unit in machine.units if unit.shared}
    for operation in machine.operations:
        if operation.name in never or operation.unit in shared:
            assert operation.most is None, operation
    fixed = ("fp32", "int", "int-multiply", "predicate", "sfu", "convert", "bit-count", "branch")
    assert all(operations[name].most is not None for name in fixed if name in operations)
    assert all(operation.most is None or operation.least <= operation.most for operation in machine.operations)
    if machine.name in NEWER:
        assert {name: operations[name].most for name in JUDGED} == JUDGED
        assert {f"operations.{name}.latency" for name in JUDGED} <= {datum.key for datum in file.unverified}
        assert any(
            re.match(rf"upper ends of {', '.join([*JUDGED][:-1])} and operands are judged", str(c))
            for c in file.caveats
        )
    assert {unit.name for unit in machine.units} == {operation.unit for operation in machine.operations}
    assert not any("schedulers" in str(caveat) for caveat in file.caveats)
    assert file.machine.caveats == file.caveats[:-1]
    assert str(file.caveats[-1]).startswith("no latency is known for ")
    untimed = machine.untimed
    assert {operation.unit for operation in machine.operations if operation.name in never} <= set(untimed)


@pytest.mark.parametrize("file", PARTITIONED_GPUS.values(), ids=PARTITIONED_GPUS)
def test_the_short_names_of_sources_are_those_that_the_notes_explain(file: MachineFile) -> None:
    given = " ".join(str(datum.source) for datum in file.data)
    used = set(
        re.findall(r"GPGPU-Sim|Accel-Sim tuner|Accel-Sim|Huerta|Arafa|PPT-GPU|Mesa sm\d+|Nsight|SM answer", given)
    )
    assert used <= {note.partition(":")[0] for note in file.notes}


def test_letters_run_on_every_shipped_gpu() -> None:
    for file in GPUS.values():
        assert Instance.of("CL", 5, file.machine).warps == 5


# Files


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text)
    return file


def test_a_file_gives_the_machine_and_a_source_for_each_number(tmp_path: Path) -> None:
    file = read_machine(
        written(
            tmp_path,
            """
            name = "wide"
            issue = { width = 2, schedulers = { value = 2, source = "p. 1" } }
            residency.warps = { value = 48, source = "p. 2", verified = false }
            units.C = { capacity = 2, source = "p. 3" }
            units.L = { capacity = 1, interval = 2, source = "p. 4", latency = { value = [4, 400], source = "p. 5" } }
            units.S = { capacity = 1, latency = 9 }
            """,
        )
    )
    units = UnitClass("C", 2), UnitClass("L", 1, 2, Latency(4, 400)), UnitClass("S", 1, 1, Latency(9, 9))
    assert file.machine == Machine("wide", units, 2)
    assert set(file.data) == {
        MachineDatum("units.C.capacity", 2, "p. 3", True),
        MachineDatum("units.L.capacity", 1, "p. 4", True),
        MachineDatum("units.L.interval", 2, "p. 4", True),
        MachineDatum("units.L.latency", CycleRange(4, 400), "p. 5", True),
        MachineDatum("units.S.capacity", 1, None, False),
        MachineDatum("units.S.latency", CycleRange(9, 9), None, False),
        MachineDatum("issue.width", 2, None, False),
        MachineDatum("issue.schedulers", 2, "p. 1", True),
        MachineDatum("residency.warps", 48, "p. 2", False),
    }
    assert len(file.unverified) == 4
    assert file.values("residency") == {"warps": 48}
    assert file.values("issue") == {"width": 2, "schedulers": 2}


PARTITIONED = """
    name = "halves"
    partitions = { value = 2, source = "p. 1" }
    assignment = "modulo"
    caveats = ["nothing fetches instructions"]
    resources.fma.capacity = 1
    resources.alu.capacity = 2
    resources.memory = { capacity = 1, shared = true, source = "p. 2" }
    units.B = { capacity = 3, interval = [1, 4], shared = true, source = "p. 3" }
    units.C.capacity = 1
    units.C.source = "p. 4"
    units.C.uses = { "fma or alu" = 2, memory = { value = [1, 32], source = "p. 5" } }
    units.L = { capacity = 1, interval = { value = 2, source = "p. 6" } }
    operations.fp32 = { class = "C", latency = [4, 6], source = "p. 7" }
    operations.int = { class = "C", latency = 5 }
    operations.global = { class = "L", latency = { least = 279 }, source = "p. 8", verified = false }
    operations.shared = { class = "L", latency = { least = 30, source = "p. 9" } }
    """


def test_a_file_has_partitions_resources_and_operations(tmp_path: Path) -> None:
    file = read_machine(written(tmp_path, PARTITIONED))
    resources = PortResource("fma", 1), PortResource("alu", 2), PortResource("memory", 1, shared=True)
    units = (
        UnitClass("B", 3, shared=True, uses=(Use(("b-ports",), 1, 4),)),
        UnitClass("C", 1, latency=Latency(4, 6), uses=(Use(("fma", "alu"), 2, 2), Use(("memory",), 1, 32))),
        UnitClass("L", 1, 2),
    )
    ports = (*resources, PortResource("b-ports", 3, shared=True))
    assert file.machine == Machine("halves", units, partitions=2, assignment=WarpAssignment.MODULO, resources=ports)
    assert file.machine.operations == (
        TimedOperation("fp32", "C", 4, 6),
        TimedOperation("int", "C", 5, 5, is_verified=False),
        TimedOperation("global", "L", 279, None, is_verified=False),
        TimedOperation("shared", "L", 30, None),
    )
    assert file.machine.caveats == file.caveats == (caveat("nothing fetches instructions"),)
    assert set(file.data) == {
        MachineDatum("partitions", 2, "p. 1", True),
        MachineDatum("resources.fma.capacity", 1, None, False),
        MachineDatum("resources.alu.capacity", 2, None, False),
        MachineDatum("resources.memory.capacity", 1, "p. 2", True),
        MachineDatum("units.B.capacity", 3, "p. 3", True),
        MachineDatum("units.B.interval", CycleRange(1, 4), "p. 3", True),
        MachineDatum("units.C.capacity", 1, "p. 4", True),
        MachineDatum("units.C.uses.fma or alu", CycleRange(2, 2), "p. 4", True),
        MachineDatum("units.C.uses.memory", CycleRange(1, 32), "p. 5", True),
        MachineDatum("units.L.capacity", 1, None, False),
        MachineDatum("units.L.interval", 2, "p. 6", True),
        MachineDatum("operations.fp32.latency", CycleRange(4, 6), "p. 7", True),
        MachineDatum("operations.int.latency", CycleRange(5, 5), None, False),
        MachineDatum("operations.global.latency", CycleRange(279, None), "p. 8", False),
        MachineDatum("operations.shared.latency", CycleRange(30, None), "p. 9", True),
    }


def test_a_class_without_a_latency_has_that_of_its_operations_where_all_have_an_upper_end(tmp_path: Path) -> None:
    text = f'architecture = "an example"\n{PARTITIONED}'
    file = read_machine(written(tmp_path, text))
    assert [unit.latency for unit in file.machine.units] == [Latency(1, 1), Latency(4, 6), Latency(1, 1)]
    assert str(file.caveats[1]).startswith("no latency is known for B, L: ")
    given = read_machine(written(tmp_path, text.replace("units.C.source", "units.C.latency = 9\nunits.C.source")))
    assert given.machine.units[1].latency == Latency(9, 9)


def test_a_machine_without_its_partitions_says_so_and_one_with_them_does_not(tmp_path: Path) -> None:
    whole = read_machine(written(tmp_path, f"{ONE}issue.schedulers = 4"))
    assert str(whole.caveats[0]).startswith("a warp belongs to one of 4 schedulers; ")
    assert read_machine(written(tmp_path, f"partitions = 4\n{ONE}issue.schedulers = 4")).caveats == ()


def test_a_file_without_a_name_has_its_own(tmp_path: Path) -> None:
    assert find_machine(str(written(tmp_path, "units.C.capacity = 2"))).machine == Machine.of({"C": 2}, "mine")


ONE = "units.C.capacity = 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a table [units]"),
        ("units = 1", "needs a table [units]"),
        ("[units]", "has no unit class"),
        ("= =", "not a TOML machine file"),
        ("x = 1\nx = 2", "not a TOML machine file"),
        (f"x = {'9' * 5000}", "not a TOML machine file"),
        ("[units]\nC = 1", "units.C needs { capacity = N }"),
        ("[units]\nC = {}", "units.C needs { capacity = N }"),
        (
            "[units]\nC = { capcity = 1 }",
            "units.C: unknown key 'capcity'; did you mean 'capacity'? known: capacity, int",
        ),
        ("[units]\nC = { capacity = 'a' }", "capacity of C must be a whole number, not 'a'"),
        ("[units]\nC = { capacity = 0 }", "capacity of C must be 1..1024, not 0"),
        (f"[units]\nC = {{ capacity = 0x{'f' * 9999} }}", "must be 1..1024, not a number of 39996 bits"),
        (f"[units]\nC = {{ capacity = [0x{'f' * 9999}] }}", "must be a whole number, not [a number of 39996 bits]"),
        (
            "[units]\nC = { capacity = 1, speed = 2 }",
            "units.C: unknown key 'speed'; known: capacity, interval, latency,",
        ),
        ("[units]\nC = { capacity = 1, interval = true }", "interval of C must be a whole number, not True"),
        ("[units]\nC = { capacity = 1, interval = 9999 }", "interval of C must be 1..1024, not 9999"),
        ("[units]\nC = { capacity = 1, latency = 0 }", "units.C.latency: a latency must be 1..100000, not 0"),
        ("[units]\nC = { capacity = 1, latency = [4] }", "units.C.latency is N or [least, most], not [4]"),
        ("[units]\nC = { capacity = 1, latency = [4, 2] }", "units.C.latency: a range of latencies is [least, most]"),
        ("[units]\nC = { capacity = 1, latency = {} }", "units.C.latency: a latency must be a whole number, not None"),
        (
            "[units]\nC = { capacity = 1, latency = { n = 1 } }",
            "units.C.latency: unknown key 'n'; known: least, source, ",
        ),
        ("[units]\nC = { capacity = 1, source = 1 }", "units.C: source must be a text, not 1"),
        ("[units]\nC = { capacity = 1, verified = 1 }", "units.C: verified must be true or false, not 1"),
        ("[units]\nC = { capacity = 1, verified = true }", "units.C: verified by what? give a source"),
        ('[units]\n"\\u001b[2J" = { bad = 1 }', "one capital letter A-Z, not '\\x1b[2J'"),
        ("[units]\nlanes = { capacity = 1 }", "one capital letter A-Z, not 'lanes'"),
        (ONE + "warp_size = 32", "unknown key 'warp_size'; known: architecture, assignment, caveats, clock, "),
        ("name = 1\n" + ONE, "name must be a text, not 1"),
        ('name = "a\\u001b[2J"\n' + ONE, "name must be 1..500 printable characters on one line, not 'a\\x1b[2J'"),
        (f"name = '{'a' * 501}'\n" + ONE, "name must be 1..500 printable characters on one line, not 'aaa"),
        ("name = ''\n" + ONE, "name must be 1..500 printable characters"),
        ("notes = 'one'\n" + ONE, "notes must be a list of texts, not 'one'"),
        ("notes = [1]\n" + ONE, "notes must be a text, not 1"),
        ("scheduler = 'kind'\n" + ONE, "scheduler is any or fair, not 'kind'"),
        ("[units]\nscheduler = 'fair'", "units: scheduler is a key of the whole file: write it above the first"),
        (ONE + "[issue]\nscheduler = 'fair'", "issue: scheduler is a key of the whole file: write it above"),
        ("scheduler = 1\n" + ONE, "scheduler must be a text, not 1"),
        ("issue = 4\n" + ONE, "issue is a table of numbers, not 4"),
        ("issue.wide = 4\n" + ONE, "issue: unknown key 'wide'; known: dispatch, schedulers, width"),
        ("issue.width = 0\n" + ONE, "issue.width must be 1..1000000000, not 0"),
        ("issue.width = 1025\n" + ONE, "issue width of machine 'mine' must be 1..1024, not 1025"),
        ("issue.width = { source = 'p. 1' }\n" + ONE, "issue.width must be a whole number, not None"),
        ("issue.width = { value = 1, n = 2 }\n" + ONE, "issue.width: unknown key 'n'; known: source, value, verified"),
        ("residency.warps = -1\n" + ONE, "residency.warps must be 1..1000000000, not -1"),
        ("residency.threads = 1\n" + ONE, "residency: unknown key 'threads'; known: blocks, registers, shared_bytes, "),
        ("partitions = 65\n" + ONE, "partitions must be 1..64, not 65"),
        ("partitions = 0\n" + ONE, "partitions must be 1..64, not 0"),
        ("partitions = [1, 2]\n" + ONE, "partitions must be a whole number, not [1, 2]"),
        ("partitions = { least = 2 }\n" + ONE, "partitions: unknown key 'least'; known: source, value, verified"),
        (ONE + "[issue]\npartitions = 4", "issue: partitions is a key of the whole file: write it above the first"),
        ("assignment = 'mod'\n" + ONE, "assignment is modulo or any, not 'mod'"),
        ("caveats = 'one'\n" + ONE, "caveats must be a list of texts, not 'one'"),
        ("resources = 4\n" + ONE, "needs a table [resources] such as memory = { capacity = 1 }"),
        ("resources.memory = 4\n" + ONE, "resources.memory needs { capacity = N }"),
        ("resources.memory.ports = 1\n" + ONE, "resources.memory: unknown key 'ports'; known: capacity, shared,"),
        ("resources.memory.capacity = [1, 2]\n" + ONE, "capacity of memory must be a whole number, not [1, 2]"),
        ("resources.M.capacity = 1\n" + ONE, "a resource is named by small letters, digits and hyphens, not 'M'"),
        ('resources."\\u001b[2J".capacity = 1\n' + ONE, "the name of a resource must be 1..500 printable characters"),
        ("resources.m = { capacity = 1, shared = 1 }\n" + ONE, "resources.m: shared must be true or false, not 1"),
        ("units.C = { capacity = 1, shared = 'yes' }", "units.C: shared must be true or false, not 'yes'"),
        ("units.C = { capacity = 1, uses = 4 }", "units.C.uses needs { RESOURCE = N or [least, most] }"),
        ("units.C = { capacity = 1, uses = { m = 1 } }", "units.C.uses: unknown resource 'm'; known: -"),
        (
            "resources.memory.capacity = 1\nunits.C = { capacity = 1, uses = { memroy = 1 } }",
            "units.C.uses: unknown resource 'memroy'; did you mean 'memory'? known: memory",
        ),
        (
            "resources.m.capacity = 1\nunits.C = { capacity = 1, uses = { 'm or m' = 1 } }",
            "units.C.uses.m or m: an instruction uses one of different resources, not ('m', 'm')",
        ),
        (
            "resources.m.capacity = 1\nresources.n.capacity = 1\n"
            "units.C = { capacity = 1, uses = { 'm or n' = 1, m = 2 } }",
            "class C of machine 'mine' uses a resource twice",
        ),
        (
            "resources.m.capacity = 1\nunits.C = { capacity = 1, uses = { m = [3, 2] } }",
            "units.C.uses.m: a range of intervals is [least, most], not [3, 2]",
        ),
        (
            "resources.m.capacity = 1\nunits.C = { capacity = 1, uses = { m = { least = 2 } } }",
            "units.C.uses.m: interval on m must be a whole number, not None",
        ),
        (
            "units.C = { capacity = 1, interval = [0, 2] }",
            "units.C.interval: interval on c-ports must be 1..1024, not 0",
        ),
        ("units.C = { capacity = 1, interval = [1] }", "units.C.interval is N or [least, most], not [1]"),
        ("units.C = { capacity = 1, latency = { least = 9 } }", "a latency must be a whole number, not None"),
        (
            "resources.c-ports.capacity = 1\nunits.C = { capacity = 1, interval = [1, 2] }",
            "has up to 64 resources with different names",
        ),
        ("operations = 4\n" + ONE, "needs a table [operations] such as "),
        ("operations.fp33 = 4\n" + ONE, "operations: unknown operation 'fp33'; did you mean 'fp32'? known: atomic, "),
        (
            "operations.int = 4\n" + ONE,
            'operations.int needs { class = "C", latency = N, [least, most] or { least = N } }',
        ),
        ("operations.int.class = 'C'\n" + ONE, 'operations.int needs { class = "C", latency = N'),
        ("operations.int = { class = 'C', latency = 0 }\n" + ONE, "operations.int: a latency must be 1..100000, not 0"),
        (
            "operations.int = { class = 'C', latency = { least = 0 } }\n" + ONE,
            "operations.int: a latency must be 1..100000, not 0",
        ),
        ("operations.int = { class = 1, latency = 1 }\n" + ONE, "operations.int.class must be a text, not 1"),
        (
            "operations.int = { class = 'CC', latency = 1 }\n" + ONE,
            "operations.int: a unit class is one capital letter",
        ),
        ("operations.int = { class = 'X', latency = 1 }\n" + ONE, "machine 'mine' has no class X, which serves int"),
        ("throughput.fp32 = 1.5\n" + ONE, "throughput.fp32 must be a whole number, not 1.5"),
    ],
)
def test_a_machine_file_that_is_none_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_machine(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_a_machine_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\x80\x00")
    with pytest.raises(InputError, match="cannot read the machine file: it is not UTF-8 text"):
        read_machine(binary)
    with pytest.raises(InputError, match="cannot read the machine file: No such file"):
        read_machine(tmp_path / "missing.toml")
    with pytest.raises(InputError, match="cannot read the machine file: Is a directory"):
        read_machine(tmp_path)


@pytest.mark.parametrize("text", ["x = " + "[" * 10_000, "x" + ".x" * 8_000 + " = 1"])
def test_a_deeply_nested_machine_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.toml:"):
        read_machine(written(tmp_path, text))


def test_a_huge_machine_file_is_refused_by_its_size(tmp_path: Path) -> None:
    just = written(tmp_path, ONE + "#" * (MAX_FILE_BYTES - len(ONE)))
    assert read_machine(just).machine.capacities == {"C": 1}
    huge = written(tmp_path, ONE + "é" * MAX_FILE_BYTES)  # cut within a character
    with pytest.raises(InputError, match="larger than 32 KiB"):
        read_machine(huge)
    with pytest.raises(InputError, match="larger than 32 KiB"):
        read_machine(Path("/dev/zero"))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("CL", min_size=1, max_size=3), min_size=2, max_size=3), st.integers(1, 2), st.integers(1, 2))
def test_an_interval_of_a_range_is_one_of_its_cycles(strings: list[str], ports: int, partitions: int) -> None:
    def worst(interval: str) -> int:
        loads = f"units.L.capacity = {ports}\nunits.L.interval = {interval}"
        text = f"partitions = {partitions}\nunits.C.capacity = 1\n{loads}"
        machine = machine_file(parse_toml(text, "machine file", "m"), "m").machine
        return brute_force(Instance.merged([(Program.chain(string), 1) for string in strings], machine)).upper

    each = worst("1"), worst("2")
    assert (worst("[1, 1]"), worst("[2, 2]")) == each
    assert worst("[1, 2]") >= max(each)


def test_the_example_of_two_partitions_is_small_enough_to_enumerate() -> None:
    machine = read_machine(EXAMPLE).machine
    for string in ("CL", "L()C(1)"):
        # At most 6 cycles each, and 2 in which the other one has the memory unit; at least 4 and 3, and 1 of that.
        assert brute_force(Instance.of(parse_string(string, machine), 2, machine)) == Bounds(8, 14), string


def test_the_example_times_what_every_kernel_does() -> None:
    timed = {operation.name for operation in read_machine(EXAMPLE).machine.operations}
    assert {"parameter", "special", "int", "predicate", "branch", "global"} <= timed


# Command line


def test_the_list_has_a_row_for_each_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines"]) == 0
    header, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert header.split() == ["name", "architecture", "capability", "partitions", "issue", "unverified", "classes"]
    assert [row.split()[0] for row in rows] == list(SHIPPED)
    assert re.fullmatch(r"paper +- +- +1 +- +0 of 2 +C=1 L=1", rows[list(SHIPPED).index("paper")])


def test_a_page_shows_every_number_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    for name, file in SHIPPED.items():
        assert cli.run(["machines", name]) == 0
        page = capsys.readouterr().out
        assert page.startswith(f"machine {name}\n")
        for datum in file.data:
            doubt = "" if datum.verified else "UNVERIFIED: "
            line = rf"^  {re.escape(datum.key)} +{datum.value}  {doubt}{re.escape(str(datum.source))}$"
            assert re.search(line, page, re.MULTILINE), (name, datum)
        unwrapped = " ".join(page.split())
        assert all(" ".join(f"- {text}".split()) in unwrapped for text in (*map(str, file.caveats), *file.notes))


def test_a_page_of_a_users_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "units.C = { capacity = 1, interval = 2, latency = [1, 30] }")
    assert cli.run(["machines", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "machine mine",
        "issue width  no limit",
        "C            1 port, held for 2 cycles; latency 1..30",
        "engines      all but ilp: intervals (C=2), latencies (C=1..30)",
        "unverified   3 of 3",
        "numbers:",
        "  units.C.capacity      1  UNVERIFIED: no source",
        "  units.C.interval      2  UNVERIFIED: no source",
        "  units.C.latency   1..30  UNVERIFIED: no source",
    ]


def test_a_page_of_a_machine_with_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines", str(written(tmp_path, PARTITIONED))]) == 0
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert lines[:10] == [
        "machine halves",
        "partitions   2, warps assigned: modulo",
        "issue width  no limit",
        "B            3 ports shared by all partitions, held for 1 cycle; latency 1; uses b-ports/1..4",
        "C            1 port, held for 1 cycle; latency 4..6; uses fma or alu/2; uses memory/1..32",
        "L            1 port, held for 2 cycles; latency 1",
        "fma          1 port, which classes use",
        "alu          2 ports, which classes use",
        "memory       1 port shared by all partitions, which classes use",
        "b-ports      3 ports shared by all partitions, which classes use",
    ]
    assert "  fp32    C  4..6   32-bit floating-point add, multiply, multiply-add, compare, minimum" in lines
    assert "  global  L  279..  global memory, and generic addresses" in lines
    assert "  operations.global.latency  279..  UNVERIFIED: p. 8" in lines


def test_json_of_a_machine_with_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines", str(written(tmp_path, PARTITIONED)), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["partitions"], document["assignment"]) == (2, "modulo")
    assert document["resources"]["memory"] == {"capacity": 1, "shared": True}
    assert document["units"]["C"]["uses"] == [
        {"one_of": ["fma", "alu"], "interval": [2, 2]},
        {"one_of": ["memory"], "interval": [1, 32]},
    ]
    assert document["units"]["B"]["shared"] is True
    assert document["operations"]["fp32"] == {"class": "C", "latency": [4, 6]}
    assert document["operations"]["global"] == {"class": "L", "latency": [279, None]}
    assert {datum["key"]: datum["value"] for datum in document["figures"]}["operations.global.latency"] == [279, None]


def test_json_has_one_object_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines", "--format", "json"]) == 0
    documents = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [document["name"] for document in documents] == list(SHIPPED)
    for document, file in zip(documents, SHIPPED.values(), strict=True):
        assert document["schema"] == "makespan.machine/1"
        assert document["issue_width"] == file.machine.issue_width
        assert document["basic"] is file.machine.is_basic
        assert len(document["figures"]) == len(file.data)
        assert all(set(datum) == {"key", "value", "source", "verified"} for datum in document["figures"])


def test_json_of_one_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "units.C = { capacity = 2, latency = [1, 30], source = 'p. 1' }")
    assert cli.run(["machines", str(file), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    unit = {"capacity": 2, "interval": 1, "latency": [1, 30], "shared": False, "uses": []}
    assert document["units"] == {"C": unit}
    assert document["figures"] == [
        {"key": "units.C.capacity", "value": 2, "source": "p. 1", "verified": True},
        {"key": "units.C.latency", "value": [1, 30], "source": "p. 1", "verified": True},
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("magic", "makespan: unknown machine 'magic'; shipped: ada, ampere-ga100, "),
        ("../data/machines/ada", "makespan: unknown machine '../data/machines/ada'; shipped: "),
        (
            "turing-unpartitioned",
            "makespan: machine 'turing-unpartitioned' does not come with the package any more: take 'turing'",
        ),
        ("magic-unpartitioned", "makespan: unknown machine 'magic-unpartitioned'; shipped: ada, ampere-ga100, "),
        ("missing.toml", "makespan: missing.toml: cannot read the machine file: No such file or directory"),
    ],
)
def test_a_machine_that_nobody_knows_is_one_line_and_exit_2(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["machines", name]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(message)
    assert said.err.count("\n") == 1


# The page


def test_the_commands_of_the_page_print_what_stands_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(capsys)
    (example,) = blocks(PAGE, "console")
    for step in example.removeprefix("$ ").split("\n$ "):
        command, *expected = step.splitlines()
        stated = re.search(r"# exit (\d+)$", command)
        done = shell(command)
        assert done.code == (int(stated[1]) if stated else 0)
        assert [line for line in expected if line not in done.lines] == []


def test_the_machine_file_of_the_page_is_one_and_every_key_is_explained(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "toml")
    file = read_machine(written(tmp_path, text))
    units = UnitClass("C", 2), UnitClass("L", 1, 2, Latency(20, 400))
    assert file.machine == Machine("mine", units, 2)
    explained = re.sub(r"`\.(\w+)`", r"`residency.\1` `throughput.\1`", PAGE.read_text())
    keys = {datum.key for gpu in GPUS.values() for datum in gpu.data}
    named = {re.sub(r"units\..", "units.X", key) for key in keys}
    named = {re.sub(r"^(units.X.uses|operations|resources|queues|lapses\.[a-z-]+)\..*", r"\1", key) for key in named}
    assert [key for key in named if f"`{key}`" not in explained and f"`{key}.NAME`" not in explained] == []
    assert [name for name in SHIPPED if f"`{name}`" not in explained] == []
