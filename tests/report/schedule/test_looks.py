"""Colours and hatches: a letter has its own on every machine, and what differs can be told apart."""

from itertools import combinations
from string import ascii_uppercase

import pytest

from makespan.report.gantt.chart import IDLE
from makespan.report.schedule.activity import Why
from makespan.report.schedule.picture import span_look

PAPER_AND_GPUS = "CLSDT"
WAITS = (Why.STALLED, Why.SLOT, Why.BARRIER)


def luminance(colour: str) -> float:
    """Relative luminance. Source: WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1 to 21. Source: WCAG 2.2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def as_seen_by(colour: str, kind: str) -> tuple[float, float, float]:
    """Linear RGB for a dichromat. Source: Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009, severity 1."""
    matrix = {
        "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
        "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    }[kind]
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    red, green, blue = (sum(a * b for a, b in zip(row, linear, strict=True)) for row in matrix)
    return red, green, blue


def test_no_two_letters_look_alike_whether_they_execute_or_wait() -> None:
    for why in (None, Why.PORT):
        looks = [span_look(why, letter) for letter in ascii_uppercase]
        assert len({(look.face, look.hatch) for look in looks}) == 26


def test_a_wait_has_the_hatch_of_its_class_on_a_tint() -> None:
    for letter in ascii_uppercase:
        assert span_look(Why.PORT, letter).hatch == span_look(None, letter).hatch
        assert span_look(Why.PORT, letter).face != span_look(None, letter).face


@pytest.mark.parametrize("kind", ["protan", "deutan", "tritan"])
def test_the_classes_of_gpus_differ_for_the_colour_blind_in_colour_and_else_in_their_hatch(kind: str) -> None:
    for one, other in combinations([span_look(None, letter) for letter in PAPER_AND_GPUS], 2):
        seen = zip(as_seen_by(one.face, kind), as_seen_by(other.face, kind), strict=True)
        assert max(abs(a - b) for a, b in seen) > 0.1 or one.hatch != other.hatch


def test_in_grey_neighbours_differ_by_their_lightness_or_their_hatch() -> None:
    """A print without colours: 1.3 is a step that the eye sees between two areas that touch."""
    rows = [span_look(why, letter) for why in (None, Why.PORT) for letter in PAPER_AND_GPUS]
    rows += [span_look(why, "") for why in WAITS]
    for one, other in combinations(rows, 2):
        assert contrast(one.face, other.face) >= 1.3 or one.hatch != other.hatch, (one, other)


def test_the_greys_are_apart() -> None:
    assert contrast(IDLE, span_look(Why.BARRIER, "|").face) > 2
    assert contrast(IDLE, "#FFFFFF") > 1.15
    for letter in PAPER_AND_GPUS:
        face = span_look(Why.PORT, letter).face
        assert len({face[1:3], face[3:5], face[5:7]}) > 1, "a tint is no grey"


def test_an_execution_stands_out_from_the_wait_before_it() -> None:
    for letter in PAPER_AND_GPUS:
        assert contrast(span_look(None, letter).face, span_look(Why.PORT, letter).face) > 1.9


def test_text_can_be_read_on_every_class() -> None:
    for letter in ascii_uppercase:
        look = span_look(None, letter)
        assert contrast(look.face, look.ink) >= 4.5
