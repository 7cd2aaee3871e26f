"""What a bundle is made of, each at its limits: the last that is read, and the first that is refused."""

from hashlib import sha256
from typing import Any

import pytest

from makespan.verify import Refused, fields, parse, reading

MOST = 10**12
WRONG: tuple[object, ...] = (-1, MOST + 1, True, 1.0, "1", None, [])
NO_LISTS: tuple[object, ...] = ((1,), {"a": 1}, "a", [])
NO_OBJECTS: tuple[object, ...] = ([], None, "a", {1: 2}, {"a": 1, 1: 2})


@pytest.mark.parametrize(
    ("value", "limits", "is_read"),
    [
        *((value, (), True) for value in (0, 1, MOST)),
        *((value, (), False) for value in WRONG),
        *((value, (2, 3), 2 <= value <= 3) for value in (1, 2, 3, 4)),
    ],
)
def test_whole_numbers(value: Any, limits: tuple[int, ...], is_read: bool) -> None:
    if is_read:
        assert fields.whole(value, "it", *limits) == value
        return
    least, most = limits or (0, MOST)
    with pytest.raises(Refused, match=rf"^not a bundle: it is not a whole number in {least}\.\.{most}$"):
        fields.whole(value, "it", *limits)


@pytest.mark.parametrize(
    ("value", "limits", "is_read"),
    [
        *((value, (), True) for value in ([0], [0, MOST])),
        *((value, (), False) for value in (*NO_LISTS, *([0, wrong] for wrong in WRONG))),
        *((value, (5, 0), True) for value in ([], [5])),
        *((value, (5, 0), False) for value in ([6], [0, -1])),
        ([1], (5, 2), False),
    ],
)
def test_lists_of_whole_numbers(value: Any, limits: tuple[int, ...], is_read: bool) -> None:
    if is_read:
        assert fields.wholes(value, "they", *limits) == tuple(value)
        return
    with pytest.raises(Refused, match=r"^not a bundle: they (is not a list of|holds something that is not a whole)"):
        fields.wholes(value, "they", *limits)


@pytest.mark.parametrize(("length", "is_read"), [(1, False), (2, True), (3, True), (4, False)])
def test_lists(length: int, is_read: bool) -> None:
    assert fields.items([None], "it") == [None]
    for value in NO_LISTS:
        with pytest.raises(Refused, match=r"^not a bundle: it is not a list of 1\.\.10000000 items$"):
            fields.items(value, "it")
    if is_read:
        assert fields.items([[]] * length, "it", 2, 3) == [[]] * length
        return
    with pytest.raises(Refused, match=r"^not a bundle: it is not a list of 2\.\.3 items$"):
        fields.items([[]] * length, "it", 2, 3)


def test_texts() -> None:
    assert fields.text("x" * 10**6, "it") == "x" * 10**6
    for value in ("x" * (10**6 + 1), 1, None, b"x"):
        with pytest.raises(Refused, match=r"^not a bundle: it is not a text of at most 1000000 letters$"):
            fields.text(value, "it")


def test_objects_have_the_keys_that_are_asked_for_and_no_others() -> None:
    assert fields.table({"a": 1, "b": None}, "it", "b", "a") == {"a": 1, "b": None}
    assert fields.table({"a": 1}, "it", "a", later="b") == {"a": 1, "b": []}
    assert fields.table({"a": 1, "b": 2}, "it", "a", later="b") == {"a": 1, "b": 2}
    assert fields.table({}, "it") == {}
    for value, why in (({"a": 1}, "it lacks 'b'"), ({"a": 1, "b": 1, "c": 1}, "it has the unknown key 'c'")):
        with pytest.raises(Refused, match=f"^not a bundle: {why}$"):
            fields.table(value, "it", "a", "b")
    for no_object in NO_OBJECTS:
        with pytest.raises(Refused, match=r"^not a bundle: an object was expected$"):
            fields.table(no_object, "it", "a")


@pytest.mark.parametrize("text", ["%s", "-%s", '{"a": [%s]}'])
def test_a_number_has_at_most_a_hundred_digits(text: str) -> None:
    """Its sign is one of them, as only a file that has a longer number is looked at digit by digit."""
    parse((text % ("9" * 100)).encode())
    with pytest.raises(Refused, match=r"^not a bundle: a number of over 100 digits$"):
        parse((text % ("9" * 101)).encode())


def test_a_text_of_many_digits_makes_no_number_too_long() -> None:
    assert parse(b'["%s", %s, -%s]' % (b"9" * 200, b"9" * 100, b"9" * 99)) == ["9" * 200, 10**100 - 1, 1 - 10**99]


def test_a_file_is_read_up_to_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reading.MOST_BYTES == 128 * 1024 * 1024
    monkeypatch.setattr(reading, "MOST_BYTES", 6)
    assert parse(b"[1, 2]") == [1, 2]
    with pytest.raises(Refused, match=r"^not a bundle: larger than 0 MiB$"):
        parse(b"[1, 23]")
    monkeypatch.setattr(reading, "MOST_BYTES", 9)
    monkeypatch.setattr(reading, "MOST_BRACKETS", 3)
    assert parse(b"[[{}]]") == [[{}]]
    with pytest.raises(Refused, match=r"^not a bundle: over 3 lists and objects$"):
        parse(b"[[[{}]]]")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, True, False),
        (1, 1.0, False),
        ([1, [2]], [1, [2]], True),
        ([1, [2]], [1, [2.0]], False),
        ([1], [1, 2], False),
        ([1, 2], [1], False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ({"a": 1, "b": 1}, {"a": 1}, False),
        ({"a": 1, "b": 1}, {"a": 1, "b": 2}, False),
        ({}, {}, True),
        ({}, [], False),
        (None, None, True),
    ],
)
def test_what_a_result_repeats_is_the_same_and_not_only_equal(one: object, other: object, is_same: bool) -> None:
    assert reading._same(one, other) is is_same


def test_a_digest_is_that_of_canonical_json_but_for_itself() -> None:
    text = b'{"a":"\\u00e9","b":[1,{"c":null,"d":true}]}'
    for document in ({"a": "é", "b": [1, {"c": None, "d": True}]}, {"b": [1, {"d": True, "c": None}], "a": "é"}):
        assert reading.digest(document) == reading.digest({**document, "sha256": "x"}) == sha256(text).hexdigest()
    with pytest.raises(ValueError, match="not JSON compliant"):
        reading.digest({"a": float("nan")})
