"""Numbers that people and benchmarks write down, before they are converted."""

_DIGITS = 40  # longer numbers are refused


def number(text: str) -> float | None:
    """The number, possibly infinite or NaN; None if it is none in ASCII, without underscores, of at most 40 characters.

    >>> number("1.5e-6"), number("1_000"), number("٣")
    (1.5e-06, None, None)
    """
    if len(text) > _DIGITS or not text.isascii() or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None
