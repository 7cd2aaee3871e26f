"""Registers, patterns and instructions as values.

Published numbers carry a letter in the names of these tests and those beside them: P from the patent, Z from text and
tables of Zhang et al. (PPoPP 2017), F read from its figures (+-0.1 unit, bars +-5 Gflop/s). N1..N13 are the numbers
that an implementation has to reproduce; N8 is of scheduling words, which this one does not write.
"""

import re

import pytest

from makespan.estimates.dual_issue.arbiter import PATTERNS, Bubbles, parse_pattern, spell
from makespan.estimates.dual_issue.device import IssueInstruction, IssueProgram, Opcode
from makespan.estimates.dual_issue.registers import GK110_BANKS, ZERO, BankFunction, function_of, ways
from makespan.host.errors import InputError


def test_n3_z_the_banks_of_gk110() -> None:
    members = [[register for register in range(32) if GK110_BANKS(register) == bank] for bank in range(4)]
    assert members == [
        [0, 2, 8, 10, 16, 18, 24, 26],
        [1, 3, 9, 11, 17, 19, 25, 27],
        [4, 6, 12, 14, 20, 22, 28, 30],
        [5, 7, 13, 15, 21, 23, 29, 31],
    ]
    assert function_of(members) == BankFunction((0, 2))
    assert str(GK110_BANKS) == "(r & 1) | ((r >> 2) & 1) << 1"


def test_the_fewest_bits_that_tell_banks_apart_are_taken_and_none_if_none_do() -> None:
    assert function_of([range(8)]) == BankFunction(())
    assert function_of([range(4), range(4, 8)]) == BankFunction((2,))
    assert function_of([[0, 3], [1, 2]]) is None  # an XOR of two bits


@pytest.mark.parametrize("bits", [(2, 0), (0, 0), (8,), (-1,)])
def test_bank_bits_are_different_bits_of_a_register_number(bits: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="bank bits"):
        BankFunction(bits)


def test_registers_count_once_and_rz_never() -> None:
    assert ways([0, 0, 2], GK110_BANKS) == 2
    assert ways([0, ZERO, ZERO], GK110_BANKS) == 1
    assert ways([], GK110_BANKS) == 0


def test_the_six_patterns_and_their_spelling() -> None:
    assert list(map(spell, PATTERNS)) == ["1-1-2-2", "1-2-1-2", "1-2-2-1", "2-1-1-2", "2-1-2-1", "2-2-1-1"]
    assert all(parse_pattern(spell(pattern), ranked=True) == pattern for pattern in PATTERNS)
    assert parse_pattern("1-1-1-1") == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [("1-3", "no pattern"), ("", "no pattern"), ("1-1-1-1-1-1-1", "no pattern"), ("2-2-2-2", "has 8 FFMAs")],
)
def test_patterns_that_are_none(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_pattern(text)


def test_the_ranking_takes_two_1s_and_two_2s_only() -> None:
    with pytest.raises(InputError, match="not in the ranking"):
        parse_pattern("1-1-1-1", ranked=True)


def test_bubbles_are_for_blocks_that_start_or_end_with_a_dual_issue() -> None:
    assert [Bubbles(1, 4).of(pattern) for pattern in PATTERNS] == [4, 4, 0, 5, 1, 1]
    with pytest.raises(InputError, match="bubbles"):
        Bubbles(-1, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IssueInstruction(Opcode.FMUL, 4, (1, 0), 256), "one byte"),
        (lambda: IssueInstruction(Opcode.FFMA, 4, (1, 0)), "3 source registers, not 2"),
        (lambda: IssueInstruction(Opcode.FADD, 256, (1, 0)), "R0..R254"),
        (lambda: IssueProgram(()), "at least one instruction"),
    ],
)
def test_instructions_that_are_none(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=re.escape(message)):
        make()
