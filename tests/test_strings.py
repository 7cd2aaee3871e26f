"""Instance files: both formats, and what is refused."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given

from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass
from makespan.model.program import InstructionTiming, Program
from makespan.model.strings import choose_instance, parse_instances, parse_string, read_instances
from tests.strategies import letters

GOOD = '{"string": "CLLCLL", "warps": 2, "capacity": {"C": 1, "L": 1}}'
UNITS = '"capacity": {"C": 1, "L": 1}'


@given(letters())
def test_white_space_in_a_string_is_ignored(string: str) -> None:
    assert parse_string(" ".join(string) + "\n", PAPER) == Program.chain(string)


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("", "the instruction string is empty; write one letter per instruction, such as CLLC"),
        (" \n", "the instruction string is empty"),
        ("CLX", "'X' at position 3 is no unit class of machine 'paper'; use C, L"),
        ("cl", "'c' at position 1 is no unit class"),
        ("C,L", "',' at position 2 is no unit class"),
        (
            "L@900C",
            r"'@' at position 2 is no unit class of .*; a latency or a stall stands behind parentheses",
        ),
        ("C\0L", r"'\\x00' at position 2 is no unit class"),
        ("C" * 1_000_001, "has 1000001 letters; the limit is 1000000"),
    ],
)
def test_a_string_that_is_none_is_refused_with_the_position(string: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_string(string, PAPER)


def test_json_lines_are_read_in_order_with_line_numbers() -> None:
    text = f'{GOOD}\n\n{{"string": "C", "warps": 1, {UNITS}, "makespan": 1, "name": "one", "source": "hand"}}\r\n'
    first, second = parse_instances(text, "a.jsonl", ".jsonl")
    assert (first.instance, first.where, first.makespan) == (
        Instance.of("CLLCLL", 2, Machine.of(PAPER.capacities)),
        "a.jsonl:1",
        None,
    )
    assert (second.where, second.name, second.makespan, second.source) == ("a.jsonl:3", "one", 1, "hand")


def test_groups_are_warps_with_different_strings() -> None:
    groups = [{"string": "C", "warps": 1}, {"string": "L", "warps": 2}, {"string": "C", "warps": 3}]
    text = json.dumps({"groups": groups, "capacity": {"C": 1, "L": 1}})
    (named,) = parse_instances(text, "a.jsonl", ".jsonl")
    assert [(group.program.letters, group.warps) for group in named.instance.groups] == [("C", 4), ("L", 2)]


def test_toml_tables_and_inline_tables_say_the_same() -> None:
    tables = '# two\n[[instance]]\nstring = "CL"\nwarps = 2\ncapacity = { C = 1, L = 1 }\nmakespan = 3\n'
    inline = 'instance = [\n  # two\n  { string = "CL", warps = 2, capacity = { C = 1, L = 1 }, makespan = 3 },\n]\n'
    assert parse_instances(tables, "a.toml", ".toml") == parse_instances(inline, "a.toml", ".toml")


def test_an_instance_of_a_file_is_chosen_by_name_or_number() -> None:
    lines = [
        '{"string": "C", "warps": 1, "capacity": {"C": 1}, "name": "2"}',
        '{"string": "CC", "warps": 1, "capacity": {"C": 1}, "name": "twice"}',
        '{"string": "CCC", "warps": 1, "capacity": {"C": 1}, "name": "twice"}',
        '{"string": "CCCC", "warps": 1, "capacity": {"C": 1}}',
    ]
    found = parse_instances("\n".join(lines), "a.jsonl", ".jsonl")
    assert [choose_instance(found, which, "a.jsonl").where for which in ("1", "2", "4")] == [
        "a.jsonl:1",
        "a.jsonl:1",  # a name comes first
        "a.jsonl:4",
    ]
    for which, message in (
        ("twice", "a.jsonl: 2 instances have the name 'twice': choose one by its number"),
        ("5", "a.jsonl: no instance '5' in it; it has 4, numbered from 1"),
        ("0", "a.jsonl: no instance '0' in it; it has 4, numbered from 1"),
        ("twic", "a.jsonl: no instance 'twic' in it; did you mean 'twice'?"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            choose_instance(found, which, "a.jsonl")


def test_a_line_separator_inside_a_name_does_not_end_a_line_of_json() -> None:
    with pytest.raises(InputError, match=r"^a:1: name must be 1..500 printable characters on one line, not 'a.u2028b"):
        parse_instances(f'{{"string": "C", "warps": 1, {UNITS}, "name": "a\u2028b\u0085c"}}', "a", ".jsonl")


@pytest.mark.parametrize("text", ["a\\nb", "\\u001b[31m", "\\ud800", ""])
def test_a_name_or_source_that_no_terminal_can_show_is_refused(text: str) -> None:
    for key in ("name", "source"):
        with pytest.raises(InputError, match=rf"^a:1: {key} must be 1..500 printable characters"):
            parse_instances(f'{{"string": "C", "warps": 1, {UNITS}, "{key}": "{text}"}}', "a", ".jsonl")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "a.jsonl: no instance in it"),
        ("[]", "a.jsonl:1: not an instance: Expected `object`, got `array`"),
        ("{", "a.jsonl:1: not an instance: Expecting property name"),
        ("nonsense", "a.jsonl:1: not an instance: Expecting value"),
        (GOOD[:-1] + ', "bogus": 1}', "a.jsonl:1: not an instance: Object contains unknown field `bogus`"),
        ('{"string": "C", "warps": 1}', "missing required field `capacity`"),
        (f'{{"string": "C", {UNITS}}}', "a.jsonl:1: give either string and warps, or groups"),
        (f'{{"warps": 1, {UNITS}}}', "a.jsonl:1: give either string and warps, or groups"),
        (f'{{"string": "C", "groups": [], {UNITS}}}', "a.jsonl:1: give either string and warps, or groups"),
        (f'{{"groups": [], {UNITS}}}', "a.jsonl:1: an instance needs at least one warp"),
        (f'{{"groups": [{{"string": "C"}}], {UNITS}}}', r"missing required field `warps` - at `\$.groups\[0\]`"),
        (f'{{"groups": [{{"string": "C", "warps": 1, "x": 1}}], {UNITS}}}', "unknown field `x`"),
        (f'{{"string": "C", "warps": 1.5, {UNITS}}}', "Expected `int | null`, got `float`"),
        (f'{{"string": "C", "warps": true, {UNITS}}}', "Expected `int | null`, got `bool`"),
        (f'{{"string": "C", "warps": "2", {UNITS}}}', "Expected `int | null`, got `str`"),
        (
            f'{{"string": "C", "warps": 0, {UNITS}}}',
            "a.jsonl:1: the number of warps must be a whole number from 1, not 0",
        ),
        (f'{{"string": "C", "warps": {10**30}, {UNITS}}}', "warps exceed the limit of 65536"),
        (f'{{"string": "", "warps": 1, {UNITS}}}', "a.jsonl:1: the instruction string is empty"),
        (f'{{"string": "CX", "warps": 1, {UNITS}}}', "a.jsonl:1: instruction string: 'X' at position 2"),
        (
            f'{{"string": "C", "warps": 1, {UNITS}, "makespan": 0}}',
            "a.jsonl:1: makespan must be at least 1 cycle, not 0",
        ),
        ('{"string": "C", "warps": 1, "capacity": {}}', "a.jsonl:1: machine 'custom' has no unit class"),
        ('{"string": "C", "warps": 1, "capacity": {"C": 0}}', "a.jsonl:1: capacity of C must be 1..1024, not 0"),
        ('{"string": "C", "warps": 1, "capacity": {"core": 1}}', "one capital letter A-Z, not 'core'"),
        (f'{{"string": "C", "warps": 1, "warps": 2, {UNITS}}}', "field 'warps' is given twice"),
        ("[" * 100_000, "a.jsonl:1: not an instance"),
        ('{"string":' * 100_000, "a.jsonl:1: not an instance"),
    ],
)
def test_a_line_that_is_no_instance_is_refused_by_file_and_line(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_instances(line, "a.jsonl", ".jsonl")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a.toml: no instance in it; write a table \[\[instance\]\] with string, warps and capacity for each"),
        ("# nothing", "a.toml: no instance in it"),
        ("instance = []", "a.toml: no instance in it"),
        ("instance = 1", "Expected `array`, got `int`"),
        ("title = 'x'\n[[instance]]\nstring = 'C'\nwarps = 1\ncapacity = { C = 1 }", "unknown field `title`"),
        ("= =", "a.toml: not a TOML instance file"),
        ("[[instance]]\nstring = 'CX'\nwarps = 1\ncapacity = { C = 1 }", "a.toml: instance 1: instruction string: 'X'"),
        ("x = " + "[" * 100_000, "a.toml: not a TOML instance file"),
    ],
)
def test_a_toml_file_that_is_no_instance_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_instances(text, "a.toml", ".toml")
    assert "\n" not in str(caught.value)


def test_an_error_in_the_last_line_refuses_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(f"{GOOD}\n" * 3 + "oops\n")
    with pytest.raises(InputError, match=r"some.jsonl:4: not an instance"):
        read_instances(file)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\x80\x81")
    with pytest.raises(InputError, match="cannot read the file of instances: it is not UTF-8 text"):
        read_instances(binary)
    with pytest.raises(InputError, match="cannot read the file of instances: No such file or directory"):
        read_instances(tmp_path / "missing.jsonl")
    with pytest.raises(InputError, match="cannot read the file of instances: Is a directory"):
        read_instances(tmp_path)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "sparse.jsonl"
    with file.open("wb") as stream:
        stream.truncate((256 << 20) + 1)
    with pytest.raises(InputError, match="larger than 256 MiB"):
        read_instances(file)


@pytest.mark.parametrize("suffix", [".toml", ".jsonl"])
def test_an_endless_device_is_read_up_to_the_limit(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makespan.model.strings.MAX_FILE_BYTES", 1 << 20)
    link = tmp_path / f"zero{suffix}"
    link.symlink_to("/dev/zero")
    with pytest.raises(InputError, match=rf"zero\{suffix}: larger than 1 MiB, too large for a file of instances"):
        read_instances(link)


SLOW = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(3, 5))))


def test_a_letter_with_parentheses_runs_ahead() -> None:
    program = parse_string("L() C(1)@4..6+2 | C L|(3)L(1,3)", SLOW)
    assert [place.unit for place in program.places] == list("LC|CL|L")
    assert program.timings == (
        InstructionTiming(1, (3, 5), (0,), ()),
        InstructionTiming(2, (4, 6), (1,), (0,)),
        InstructionTiming(0, (0, 0), (), ()),
        InstructionTiming(1, (1, 1), (2,), ()),
        InstructionTiming(1, (3, 5), (3,), (2,)),
        InstructionTiming(0, (0, 0), (), (2, 3)),
        InstructionTiming(1, (3, 5), (4,), (0, 2)),
    )
    assert program.letters is None


def test_letters_alone_block() -> None:
    assert parse_string("CLC", SLOW).timings == ()


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("C()L(2)", "'L' at position 4 needs the results of instructions 1..1 before it, not (2)"),
        ("C(1)", "'C' at position 1 is the first instruction, which needs no result: write C(), not (1)"),
        ("C()@0", "'C' at position 1: a latency is a range from 1 to 100000, not (0, 0)"),
        ("C()@5..4", "a latency is a range from 1 to 100000, not (5, 4)"),
        ("C()+0", "a stall of 0 cycles"),
        ("C()+200000", "a stall of 200000 cycles"),
        ("C()|()@3C", "'|' at position 4: a barrier has neither a latency nor a stall"),
        ("C()@", "'@' at position 4 is no unit class"),
        ("C@3()", "'@' at position 2 is no unit class"),
        ("C(-1)", "'(' at position 2 is no unit class"),
        ("C(²)", "'(' at position 2 is no unit class"),
        ("C()(1)", "'(' at position 4 is no unit class"),
    ],
)
def test_a_timing_that_is_none_is_told_with_its_position(string: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        parse_string(string, SLOW)
