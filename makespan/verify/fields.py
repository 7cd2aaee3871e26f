"""The fields of a bundle: objects, lists, texts and numbers, each within its limits; anything else is refused."""

from typing import Any, NoReturn

from makespan.verify.refusal import Refused

MOST_INSTRUCTIONS = 10_000_000  # warp-instructions of a witness
MOST_DIGITS = 100
MOST_CYCLES = 10**12
_MOST_TEXT = 1_000_000


def bad(reason: str) -> NoReturn:
    """Refuse a document that is no bundle."""
    raise Refused(f"not a bundle: {reason}")


def entries(value: object) -> dict[str, Any]:
    """Return a value that has to be an object."""
    if type(value) is not dict or any(type(key) is not str for key in value):
        bad("an object was expected")
    return value


def table(value: object, name: str, *keys: str, later: str = "") -> dict[str, Any]:
    """Return an object with exactly these keys; one that came `later` may be absent, which is an empty list."""
    found = entries(value)
    if later:
        found, keys = {later: []} | found, (*keys, later)
    if missing := [key for key in keys if key not in found]:
        bad(f"{name} lacks {missing[0]!r}")
    if unknown := sorted(set(found) - set(keys)):
        bad(f"{name} has the unknown key {unknown[0]!r:.40}")
    return found


def items(value: object, name: str, least: int = 1, most: int = MOST_INSTRUCTIONS) -> list[Any]:
    """Return a list with the expected number of items."""
    if type(value) is not list or not least <= len(value) <= most:
        bad(f"{name} is not a list of {least}..{most} items")
    return value


def text(value: object, name: str) -> str:
    """Return a value that has to be a text."""
    if type(value) is not str or len(value) > _MOST_TEXT:
        bad(f"{name} is not a text of at most {_MOST_TEXT} letters")
    return value


def whole(value: object, name: str, least: int = 0, most: int = MOST_CYCLES) -> int:
    """Return a whole number in `least`..`most`."""
    if type(value) is not int or not least <= value <= most:
        bad(f"{name} is not a whole number in {least}..{most}")
    return value


def wholes(value: object, name: str, most: int = MOST_CYCLES, least: int = 1) -> tuple[int, ...]:
    """Return a list of numbers 0..`most`, with at least `least` of them."""
    numbers = items(value, name, least)
    if any(type(number) is not int or not 0 <= number <= most for number in numbers):
        bad(f"{name} holds something that is not a whole number in 0..{most}")
    return tuple(numbers)
