"""Control bits are those of published listings, and encode to the words that they come from."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.kernels.sass.elf import read_elf
from makespan.kernels.sass.module import Control, control, with_control

SAMPLES = sorted((Path(__file__).parents[2] / "ptx").glob("*.cubin"))
LISTINGS = [
    line for line in (Path(__file__).parent / "data" / "listings.tsv").read_text().splitlines() if line[0] != "#"
]
PUBLISHED = [(row["source"], int(row["word"], 16), row["control"]) for row in csv.DictReader(LISTINGS, delimiter="\t")]

COUNTER = st.none() | st.integers(0, 6)  # six counters; the field holds one number more
CONTROLS = st.builds(
    Control, st.integers(0, 15), st.booleans(), COUNTER, COUNTER, st.integers(0, 63), st.integers(0, 15)
)


def in_short(found: Control) -> str:
    """As maxas and its descendants write it: wait mask, read and write counter, yield, stall, numbers in hex."""
    read, write = ("-" if counter is None else str(counter) for counter in (found.read_counter, found.write_counter))
    waits = f"{found.waits:02x}" if found.waits else "--"
    return f"{waits}:{read}:{write}:{'Y' if found.yields else '-'}:{found.stall:x}"


@pytest.mark.parametrize("source", ["cuassembler", "turingas", "nbasm"])
def test_published_listings_print_the_same(source: str) -> None:
    rows = [(word, printed) for name, word, printed in PUBLISHED if name == source]
    for word, printed in rows:
        found = control(word)
        assert printed in {str(found), in_short(found)}
    assert rows


@given(CONTROLS, st.integers(0, 2**128 - 1))
def test_control_bits_survive_encoding(bits: Control, word: int) -> None:
    encoded = with_control(word, bits)
    assert control(encoded) == bits
    assert with_control(encoded, control(word)) == word
    assert (encoded ^ word) >> 105 < 1 << 21
    assert not (encoded ^ word) & ((1 << 105) - 1)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_words_of_samples_encode_to_themselves(path: Path) -> None:
    image = read_elf(path.read_bytes(), path.name)
    (code,) = (section.data for section in image.sections if section.name.startswith(".text."))
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    for word in words:
        found = control(word)
        assert with_control(word, found) == word
        assert all(counter is None or counter < 6 for counter in (found.write_counter, found.read_counter))
        assert not word >> 126
    assert any(control(word).write_counter is not None for word in words)
    assert any(control(word).waits for word in words)


def test_there_is_a_sample_for_each_architecture() -> None:
    assert {read_elf(path.read_bytes(), path.name).sm for path in SAMPLES} == {75, 80, 86, 90, 100, 120}
