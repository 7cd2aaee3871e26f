"""Every reader takes honest input, and ends damaged input in a value or a refusal; `python -m tests.fuzz` does more."""

from pathlib import Path
from random import Random

import pytest

from makespan.host.errors import BrokenPromiseError, MakespanError
from tests.fuzz.formats import FORMATS, seeds
from tests.fuzz.mutants import mutant
from tests.fuzz.readers import ROOT, Command, Options

ELSEWHERE = "ptx", "cubin", "launches", "question"
QUICK = [
    name
    for name, form in FORMATS.items()
    if name not in ELSEWHERE and not isinstance(form.read, Command | Options) and not any(map(callable, form.seeds))
]
CASES = 12


@pytest.mark.parametrize("name", QUICK)
def test_honest_input_is_read_and_damaged_input_read_or_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "ptx").symlink_to(ROOT / "ptx")
    (tmp_path / "here").mkdir()
    form, draw, honest = FORMATS[name], Random(26), [*seeds(name)]
    path = tmp_path / "here" / f"fuzzed{form.suffix}"
    for data in honest:
        path.write_bytes(data)
        assert form.read(path) not in form.refusals
    for _ in range(CASES):
        path.write_bytes(mutant(draw.choice(honest), draw.choice((*honest, *form.parts)), draw))
        try:
            form.read(path)
        except MakespanError as refusal:
            if isinstance(refusal, BrokenPromiseError):
                raise


def test_mutants_differ_from_what_they_are_made_of() -> None:
    draw, data = Random(1), b"string = 'CLC'\nwarps = 2\n" * 3
    made = [mutant(data, b"[a]\nb = 1", draw) for _ in range(200)]
    assert len({*made} - {data}) > 150
