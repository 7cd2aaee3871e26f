"""`makespan doctor`: what is there, and no inner loop left for later."""

from importlib import import_module
from pathlib import Path

import pytest

import makespan
from tests.command import Runner

PACKAGE = Path(makespan.__file__).parent


def test_all_inner_loops_are_compiled_so_that_none_is_missing_from_a_read_only_image(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    owners = [file for file in PACKAGE.rglob("*.py") if "\ndef load() -> None:" in file.read_text()]
    modules = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in owners]
    loops = {file.stem for file in PACKAGE.rglob("*_compiled.py")}
    assert {name for name in loops for file in owners if name in file.read_text()} == loops
    for name in modules:
        monkeypatch.setattr(import_module(name), "load", lambda name=name: loaded.append(name))
    done = Runner("doctor", capsys)()
    assert (done.code, sorted(loaded)) == (0, sorted(modules))
    assert len(modules) >= 7
    assert f"makespan {makespan.__version__}, Python 3." in done.out
