"""Every reader takes honest input, and ends damaged input in a value or a refusal; `python -m tests.fuzz` does more."""

from pathlib import Path
from random import Random

import pytest

from makespan.errors import BrokenPromiseError, MakespanError
from tests.fuzz.formats import FORMATS, MADE, ROOT, seeds
from tests.fuzz.mutants import mutant

ELSEWHERE = {*MADE, "ptx", "cubin", "launches"}
COMMANDS = "-strings", "-estimate", "-show", "-solve", "-answer", "-verify", "-words"
QUICK = [name for name in FORMATS if name not in ELSEWHERE and not name.endswith(COMMANDS)]
CASES = 12


@pytest.mark.parametrize("name", QUICK)
def test_damaged_input_is_read_or_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "ptx").symlink_to(ROOT / "ptx")
    (tmp_path / "here").mkdir()
    draw, honest = Random(26), [*seeds(name)]
    path = tmp_path / "here" / f"fuzzed{FORMATS[name].suffix}"
    path.write_bytes(honest[0])
    FORMATS[name].read(path)
    for _ in range(CASES):
        path.write_bytes(mutant(draw.choice(honest), draw.choice(honest), draw))
        try:
            FORMATS[name].read(path)
        except MakespanError as refusal:
            if isinstance(refusal, BrokenPromiseError):
                raise


def test_mutants_differ_from_what_they_are_made_of() -> None:
    draw, data = Random(1), b"string = 'CLC'\nwarps = 2\n" * 3
    made = [mutant(data, b"[a]\nb = 1", draw) for _ in range(200)]
    assert len({*made} - {data}) > 150
