"""Machines: what is refused, and machine files."""

from pathlib import Path

import pytest

from makespan.errors import InputError
from makespan.machine import MAX_CAPACITY, PAPER, Machine, UnitClass, read_machine, shipped_machines


def test_the_paper_machine_has_one_unit_of_each_of_two_classes() -> None:
    assert PAPER.capacities == {"C": 1, "L": 1}


@pytest.mark.parametrize(
    ("name", "capacity", "message"),
    [
        ("C", 0, "capacity of C must be 1..1024, not 0"),
        ("C", -1, "capacity of C must be 1..1024, not -1"),
        ("C", MAX_CAPACITY + 1, "not 1025"),
        ("C", 1.0, "capacity of C must be a whole number, not 1.0"),
        ("C", True, "capacity of C must be a whole number, not True"),
        ("c", 1, "one capital letter A-Z, not 'c'"),
        ("CC", 1, "one capital letter A-Z, not 'CC'"),
        ("", 1, "one capital letter A-Z, not ''"),
        ("Ç", 1, "one capital letter A-Z, not 'Ç'"),
    ],
)
def test_a_unit_class_is_a_capital_letter_with_a_capacity(name: str, capacity: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        UnitClass(name, capacity)


def test_a_machine_has_at_least_one_class_and_names_each_once() -> None:
    with pytest.raises(InputError, match="machine 'custom' has no unit class"):
        Machine.of({})
    with pytest.raises(InputError, match="names a unit class twice: C, C"):
        Machine("twice", (UnitClass("C", 1), UnitClass("C", 2)))


def test_every_shipped_machine_is_known_by_its_own_name() -> None:
    machines = shipped_machines()
    assert machines["paper"] == PAPER
    assert all(machine.name == name for name, machine in machines.items())


def test_a_machine_file_gives_name_and_capacities(tmp_path: Path) -> None:
    file = tmp_path / "wide.toml"
    file.write_text('source = "a datasheet"\n[units]\nC = { capacity = 2, source = "p. 3" }\nL = { capacity = 1 }\n')
    assert read_machine(file) == Machine.of({"C": 2, "L": 1}, "wide")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"needs a table \[units\]"),
        ("units = 1", r"needs a table \[units\]"),
        ("[units]", "has no unit class"),
        ("= =", "not a TOML machine file"),
        ("[units]\nC = 1", r"unit C needs \{ capacity = N \}"),
        ("[units]\nC = {}", r"unit C needs \{ capacity = N \}"),
        ("[units]\nC = { capacity = 'a' }", "capacity of C must be a whole number, not 'a'"),
        ("[units]\nC = { capacity = 0 }", "capacity of C must be 1..1024, not 0"),
        ("[units]\nC = { capacity = 1, speed = 2 }", "unit C: unknown key 'speed'; known: capacity, source"),
        ("warp_size = 32\n[units]\nC = { capacity = 1 }", "unknown key 'warp_size'; known: name, source, units"),
        ("name = 1\n[units]\nC = { capacity = 1 }", "name must be a text, not 1"),
        ("[units]\nlanes = { capacity = 1 }", "one capital letter A-Z, not 'lanes'"),
    ],
)
def test_a_machine_file_that_is_none_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_machine(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_a_machine_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot read the machine file: it is not UTF-8 text"):
        read_machine(binary)
    with pytest.raises(InputError, match="cannot read the machine file: No such file"):
        read_machine(tmp_path / "missing.toml")
    with pytest.raises(InputError, match="cannot read the machine file: Is a directory"):
        read_machine(tmp_path)


def test_a_deeply_nested_machine_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text("x = " + "[" * 100_000)
    with pytest.raises(InputError, match="not a TOML machine file"):
        read_machine(file)
