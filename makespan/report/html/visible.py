"""Text from outside, made safe to read: nothing in it can hide, reorder or overrun what stands around it."""

import unicodedata

MOST_LETTERS = 2000
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, formatting such as bidi overrides, surrogates, private and unassigned letters, separators of lines."""


def make_visible(text: str, most: int = MOST_LETTERS) -> str:
    r"""Return the text with every letter that prints nothing written as its number, cut to `most` letters.

    >>> make_visible("a\u202eb\n"), make_visible("abcdef", 3)
    ('a\\u{202e}b\\u{a}', 'abc... (6 letters)')
    """
    shown = "".join(
        f"\\u{{{ord(letter):x}}}" if unicodedata.category(letter) in _HIDDEN else letter for letter in text[:most]
    )
    return shown if len(text) <= most else f"{shown}... ({len(text)} letters)"
