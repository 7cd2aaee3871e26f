"""The tables `[lapses]` and `[queues.NAME]` of machine files: what they give, what is refused, and what is shown."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from makespan import cli
from makespan.host.errors import InputError
from makespan.model.machine import (
    CacheSize,
    KnownLapses,
    LineCache,
    MachineDatum,
    MachineFile,
    RegisterReads,
    UnitQueue,
    find_machine,
    read_machine,
    shipped_machines,
)
from tests.test_docs import blocks

PAGE = Path(__file__).parents[2] / "docs" / "machines.md"
KNOWN = Path(__file__).parents[1] / "data" / "machines"
ONE = "[units]\nC = { capacity = 1 }\nL = { capacity = 1 }\n"
EVERY = """
[lapses]
expiry = { value = 60, source = "p. 1", verified = false }
register-read = { banks = 2, ports = 1, variable = true, source = "p. 2" }
multiply = { cycles = 1, source = "p. 3" }
constant = { cycles = { value = 4, source = "p. 4" }, line = 64, sets = 4, ways = 2, window = 79, gap = 1, ahead = 0 }
fetch = { line = 128, sets = 8, ways = 32, window = 86, gap = 1, ahead = 8, source = "p. 5", verified = false }
next = { line = 128, sets = 64, ways = 16, source = "p. 6" }
fence = { block = 53, gpu = 186, system = 2900, source = "p. 7" }
[queues.memory]
units = ["L"]
places = 5
blocks = true
source = "p. 8"
"""


def read(folder: Path, text: str) -> MachineFile:
    file = folder / "mine.toml"
    file.write_text(ONE + text)
    return read_machine(file)


def test_a_file_without_the_tables_knows_nothing(tmp_path: Path) -> None:
    machine = read(tmp_path, "").machine
    assert (machine.lapses, machine.queues, machine.fetches) == (None, (), ())


def test_the_tables_give_the_lapses_and_a_source_for_each_number(tmp_path: Path) -> None:
    file = read(tmp_path, EVERY)
    second = CacheSize(128, 64, 16)
    assert file.machine.lapses == KnownLapses(
        registers=RegisterReads(2, 1, is_variable=True),
        multiply=1,
        constant=4,
        constants=LineCache(64, 4, 2, 79, gap=1, next=second),
        code=LineCache(128, 8, 32, 86, gap=1, ahead=8, next=second),
        fence={"block": 53, "gpu": 186, "system": 2900},
        expiry=60,
    )
    assert file.machine.queues == (UnitQueue("memory", ("L",), 5, blocks=True),)
    found = {datum.key: datum for datum in file.data if not datum.key.startswith("units.")}
    assert len(found) == 2 + 1 + 7 + 6 + 3 + 3 + 1 + 1
    for key, value, source, verified in (
        ("lapses.expiry", 60, "p. 1", False),
        ("lapses.register-read.ports", 1, "p. 2", True),
        ("lapses.multiply.cycles", 1, "p. 3", True),
        ("lapses.constant.cycles", 4, "p. 4", True),
        ("lapses.constant.window", 79, None, False),
        ("lapses.fetch.ahead", 8, "p. 5", False),
        ("lapses.next.ways", 16, "p. 6", True),
        ("lapses.fence.system", 2900, "p. 7", True),
        ("queues.memory.places", 5, "p. 8", True),
    ):
        assert found[key] == MachineDatum(key, value, source, verified)


def test_lapses_are_verified_if_every_number_is(tmp_path: Path) -> None:
    sure = '[lapses]\nmultiply = { cycles = 0, source = "p. 1" }\nexpiry = '
    known = read(tmp_path, f'{sure}{{ value = 3, source = "p. 2" }}').machine.lapses
    assert known == KnownLapses(multiply=0, expiry=3, is_verified=True)
    doubtful = read(tmp_path, f"{sure}3").machine.lapses
    assert doubtful is not None
    assert not doubtful.is_verified


def test_lapses_of_another_architecture_say_so(tmp_path: Path) -> None:
    text = '[lapses]\ncarried-over = "Ampere"\nexpiry = 0\nmultiply = { cycles = 1, source = "p. 1"%s }\n'
    known = read(tmp_path, text % ", verified = false").machine.lapses
    assert known == KnownLapses(multiply=1, carried_over="Ampere")
    with pytest.raises(InputError, match=r"lapses.multiply.cycles is carried over from Ampere, so nothing confirms it"):
        read(tmp_path, text % "")


CACHE = "{ line = 128, sets = 8, ways = 32, window = 86, gap = 1, ahead = 8 }"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lapses = 4", "lapses is a table, not 4: begin it with [lapses]"),
        ("lapses.fetsh = {}", "lapses: unknown key 'fetsh'; did you mean 'fetch'? known: carried-over, constant, "),
        ("lapses.source = 'p. 1'", "lapses: source is a key of the whole file"),
        ("lapses.carried-over = 1", "lapses: carried-over must be a text, not 1"),
        ("lapses.carried-over = ''", "lapses: carried-over must be 1..500 printable characters"),
        ("lapses.multiply = { cycles = 1 }", "lapses needs expiry = N: for how many cycles behind the end of a warp"),
        ("lapses = {}", "lapses needs expiry = N"),
        ("lapses.expiry = -1", "lapses.expiry must be 0..100000, not -1"),
        ("lapses.expiry = false", "lapses.expiry must be a whole number, not False"),
        ("lapses.expiry = { least = 1 }", "lapses.expiry: unknown key 'least'; known: source, value, verified"),
        ("lapses.multiply = 1", "lapses.multiply needs { cycles = N }"),
        ("lapses.multiply = {}", "lapses.multiply needs { cycles = N }"),
        ("lapses.multiply = { cycles = 1.5 }", "lapses.multiply.cycles must be a whole number, not 1.5"),
        ("lapses.multiply = { cycles = 0.0 }", "lapses.multiply.cycles must be a whole number, not 0.0"),
        ("lapses.multiply = { cycles = [1, 2] }", "lapses.multiply.cycles must be a whole number, not [1, 2]"),
        ("lapses.multiply = { cycles = 1, opcode = 'IMAD' }", "lapses.multiply: unknown key 'opcode'"),
        ("lapses.multiply = { cycles = 100001 }", "lapses.multiply.cycles must be 0..100000, not 100001"),
        ("lapses.register-read = { banks = 2 }", "lapses.register-read needs { banks = N, ports = N }"),
        ("lapses.register-read = { banks = 2, ports = 1 }", "lapses.register-read needs variable = true, or false: do"),
        (
            "lapses.register-read = { banks = 2, ports = 1, variable = 1 }",
            "lapses.register-read.variable must be true or false, not 1",
        ),
        (
            "lapses.register-read = { banks = 0, ports = 1, variable = true }",
            "lapses.register-read.banks must be 1..64, not 0",
        ),
        ("lapses.fence = { block = 53, gpu = 186 }", "lapses.fence needs { block = N, gpu = N, system = N }"),
        ("lapses.next = { line = 128 }", "lapses.next needs { line = N, sets = N, ways = N }"),
        ("lapses.fetch = { line = 128 }", "lapses.fetch needs { line = N, sets = N, ways = N, window = N, gap = N, "),
        (f"lapses.fetch = {CACHE.replace('86', '0')}", "lapses.fetch.window must be 1..100000, not 0"),
        (f"lapses.fetch = {CACHE.replace('128', '5000')}", "lapses.fetch.line must be 1..4096, not 5000"),
        (f"lapses.fetch = {CACHE.replace('}', ', cycles = 4 }')}", "lapses.fetch: unknown key 'cycles'"),
        ("lapses.constant = { line = 64 }", "lapses.constant needs { cycles = N }"),
        (
            "lapses.constant = { cycles = 4, gap = 1 }",
            "lapses.constant has gap and no line: it needs line, sets, ways, window, gap",
        ),
        (
            f"lapses.fetch = {CACHE.replace('128', '24')}",
            "lapses.fetch.line must be a multiple of 16 bytes, not 24",
        ),
        ("queues = 1", "needs a table [queues] such as memory = "),
        ("queues.memory = 1", "queues.memory needs { units = [CLASS, ...], places = N, blocks = true }"),
        ("queues.memory = { units = ['L'], places = 5 }", "queues.memory needs { units = [CLASS, ...], places"),
        ("queues.M = { units = ['L'], places = 5, blocks = true }", "a queue is named by small letters, digits and"),
        ("queues.m = { units = [], places = 5, blocks = true }", "queues.m.units is a list of different classes"),
        ("queues.m = { units = 'L', places = 5, blocks = true }", "queues.m.units is a list of different classes"),
        ("queues.m = { units = ['L', 'L'], places = 5, blocks = true }", "queues.m.units is a list of different"),
        ("queues.m = { units = [1], places = 5, blocks = true }", "queues.m.units: a class must be a text, not 1"),
        ("queues.m = { units = ['LL'], places = 5, blocks = true }", "queues.m.units: a unit class is one capital"),
        ("queues.m = { units = ['X'], places = 5, blocks = true }", "has no class X, which goes through m"),
        ("queues.m = { units = ['L'], places = 0, blocks = true }", "queues.m.places must be 1..1024, not 0"),
        ("queues.m = { units = ['L'], places = 5, blocks = 1 }", "queues.m.blocks must be true or false, not 1"),
        ("queues.m = { units = ['L'], places = 5, blocks = true, length = 1 }", "queues.m: unknown key 'length'"),
        (
            "[queues.m]\nunits = ['L']\nplaces = 5\nblocks = true\n"
            "[queues.n]\nunits = ['C', 'L']\nplaces = 5\nblocks = true\n",
            "machine 'mine' has queues with different names and different classes",
        ),
    ],
)
def test_tables_that_are_none_are_refused_by_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    expiry = "lapses.expiry = 0\n" if text.startswith("lapses.") and "expiry" not in text + message else ""
    file.write_text(f"{expiry}{text}\n{ONE}" if "[queues." not in text else ONE + text)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_machine(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("ports", "variable", "registers", "cycles"),
    [
        # One port: FMUL with both operands in a bank 1 empty cycle, FFMA with three 2 (Huerta et al., 2025, 5.3).
        (1, True, [0, 1, 2, 3], [(0, 0), (0, 1), (1, 2), (2, 3)]),
        (1, False, [0, 1, 2, 3], [(0, 0), (0, 0), (1, 0), (2, 0)]),
        # Two ports: only three operands in one bank collide (Jia et al., 2018, 3.5).
        (2, True, [0, 1, 2, 3, 4, 5], [(0, 0), (0, 1), (0, 1), (1, 2), (1, 2), (2, 3)]),
    ],
)
def test_reads_of_one_bank_come_one_after_another(
    ports: int, variable: bool, registers: list[int], cycles: list[tuple[int, int]]
) -> None:
    reads = RegisterReads(2, ports, variable)
    assert [tuple(reads.credit(n, from_queue=waits) for waits in (False, True)) for n in registers] == cycles


@pytest.mark.parametrize(("name", "base"), [("known-ga10x", "ampere-ga10x"), ("known-turing", "turing")])
def test_the_machines_of_tests_are_shipped_ones_with_the_tables(name: str, base: str) -> None:
    known, shipped = read_machine(KNOWN / f"{name}.toml"), find_machine(base)
    assert (known.machine.units, known.machine.resources) == (shipped.machine.units, shipped.machine.resources)
    assert known.machine.operations == shipped.machine.operations
    assert known.machine.lapses is not None
    assert [datum.key for datum in known.data if datum.source is None] == []
    assert known.machine.fetches == ("fetch", "constant-miss")
    shared = [queue.units for queue in known.machine.queues if "L" in queue.units]
    ports = {use.resources for unit in known.machine.units if unit.name == "L" for use in unit.uses}
    using = {unit.name for unit in known.machine.units for use in unit.uses if use.resources in ports}
    assert {*shared[0]} == using  # who shares ports of a queued class has to be in its queue


def test_a_machine_for_some_classes_keeps_their_queues() -> None:
    machine = read_machine(KNOWN / "known-ga10x.toml").machine
    served = machine.serving({"C", "L", "K", "S"}).queues
    assert served == (
        UnitQueue("memory", ("L", "K"), 5, blocks=True),
        UnitQueue("special", ("S",), 2, blocks=True),
    )


def test_a_page_shows_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines", str(KNOWN / "known-ga10x.toml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "registers      2 banks, 1 a cycle from each; reads from a queue count",
        "code           8 sets of 32 lines of 128 bytes; a line that the next cache has takes 86 cycles",
        "constants      4 sets of 2 lines of 64 bytes; a line that the next cache has takes 79 cycles",
        "queue memory   5 places for L, X, K; while it is full nothing else may issue",
        "lapses         cycles at most: integer multiply-add 1, late line of constants 4, fence (block) 53, fence",
    ):
        assert any(each.startswith(line) for each in lines), line
    assert any(line.startswith("  lapses.multiply.cycles") and "UNVERIFIED: Huerta SM86" in line for line in lines)


def test_json_has_the_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    documents: list[dict[str, Any]] = []
    for text in (EVERY, ""):
        file = read(tmp_path, text)
        assert cli.run(["machines", str(tmp_path / "mine.toml"), "--format", "json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
        assert len(documents[-1]["figures"]) == len(file.data)
    known, nothing = documents
    assert known["lapses"]["code"] == {
        "line": 128,
        "sets": 8,
        "ways": 32,
        "window": 86,
        "gap": 1,
        "ahead": 8,
        "next": {"line": 128, "sets": 64, "ways": 16},
    }
    assert known["lapses"]["registers"] == {"banks": 2, "ports": 1, "variable": True}
    assert known["lapses"]["fence"] == {"block": 53, "gpu": 186, "system": 2900}
    assert (known["lapses"]["expiry"], known["lapses"]["verified"]) == (60, False)
    assert known["queues"] == {"memory": {"units": ["L"], "places": 5, "blocks": True}}
    assert (nothing["lapses"], nothing["queues"]) == (None, {})


def test_the_tables_of_the_page_are_read_and_their_keys_explained(tmp_path: Path) -> None:
    (text,) = [block for block in blocks(PAGE, "text") if block.startswith("[lapses]")]
    file = tmp_path / "mine.toml"
    file.write_text(f"{ONE}X = {{ capacity = 1 }}\n{text}")
    known = read_machine(file).machine
    assert known.lapses is not None
    assert known.lapses.carried_over == "Ampere GA10x"
    assert known.queues == (UnitQueue("memory", ("L", "X"), 5, blocks=True),)
    rows = dict(re.findall(r"^\| `((?:lapses|queues)\.[\w-]+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE))
    for datum in read(tmp_path, EVERY).data:
        table, _, key = datum.key.rpartition(".")
        if table.startswith("lapses."):
            assert f"`{key}`" in rows[table], datum.key
    assert rows.keys() >= {"lapses.expiry", "lapses.carried-over", "queues.NAME"}


def lapses_row(name: str) -> str:
    """What stands in docs/machines.md of the lapses of a shipped machine."""
    machine = find_machine(name).machine
    known = machine.lapses
    assert known is not None
    assert known.registers is not None
    caches = (
        "-" if cache is None else f"{cache.sets} x {cache.ways} x {cache.line} bytes, {cache.window} cycles"
        for cache in (known.code, known.constants)
    )
    cells = (
        f"`{name}`",
        f"{known.registers.banks} banks, {known.registers.ports} a cycle",
        "-" if known.multiply is None else str(known.multiply),
        "-" if known.constant is None else str(known.constant),
        *caches,
        ", ".join(map(str, known.fence.values())) or "-",
        ", ".join(f"{queue.name} {queue.places}" for queue in machine.queues) or "-",
        known.carried_over or "-",
    )
    return f"| {' | '.join(cells)} |"


def test_who_shares_a_port_with_a_queued_class_is_in_its_queue() -> None:
    for file in shipped_machines().values():
        users: dict[str, set[str]] = {}
        for unit in file.machine.units:
            for name in (unit.name, *(each for use in unit.uses for each in use.resources)):
                users.setdefault(name, set()).add(unit.name)
        queues = [{*queue.units} for queue in file.machine.queues]
        assert all(not queue & sharing or sharing <= queue for queue in queues for sharing in users.values())


def test_the_page_has_the_lapses_of_every_shipped_machine_with_partitions() -> None:
    page, files = PAGE.read_text(), shipped_machines()
    assert [name for name, file in files.items() if file.machine.partitions > 1 and lapses_row(name) not in page] == []
    assert [
        name for name, file in files.items() if (file.machine.lapses is None) != (file.machine.partitions == 1)
    ] == []
    assert all(datum.source for file in files.values() for datum in file.data)
