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
    loops = [file.with_name(file.name.replace("_compiled", "")) for file in PACKAGE.rglob("*_compiled.py")]
    modules = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in loops]
    for name in modules:
        monkeypatch.setattr(import_module(name), "load", lambda name=name: loaded.append(name))
    done = Runner("doctor", capsys)()
    assert (done.code, sorted(loaded)) == (0, sorted(modules))
    assert len(modules) >= 7
    assert f"makespan {makespan.__version__}, Python 3." in done.out
