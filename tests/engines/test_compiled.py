"""Compiled code: kept where that is possible, said when it takes time, and never a reason to fail."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from makespan.proof.engines.search import states_compiled

pytest.importorskip("numba")

PROBE = """
from makespan.host.compiled import compiled

@compiled
def half(number: int) -> int:
    return number // 2

@compiled
def quarter(number: int) -> int:
    return half(half(number))
"""

READ_ONLY = """
from numba.core.caching import InTreeCacheLocator
def refuse(self):
    raise OSError(30, "Read-only file system")
InTreeCacheLocator.ensure_cache_path = refuse
"""

CALL = """
import importlib.util, logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
spec = importlib.util.spec_from_file_location("makespan.probe", sys.argv[1])
probe = importlib.util.module_from_spec(spec)
sys.modules["makespan.probe"] = probe
spec.loader.exec_module(probe)
print(probe.quarter(170))
"""

NO_HOME = {"HOME": "/proc/nothing", "XDG_CACHE_HOME": "/proc/nothing"}


def called(folder: Path, text: str = PROBE, *, before: str = "", **settings: str) -> list[str]:
    """What is said on stderr when a compiled function in `folder` is called; the environment has no caches."""
    probe = folder / "probe.py"
    if not probe.exists() or probe.read_text() != text:
        probe.write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", before + CALL, probe],
        env={**environment, **NO_HOME, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    return done.stderr.splitlines()


def test_compiling_is_said_once_for_a_function_and_what_it_needs_and_once_per_installation(tmp_path: Path) -> None:
    assert called(tmp_path) == ["compiling probe.quarter, once per installation"]
    assert called(tmp_path) == []
    assert called(tmp_path, before=READ_ONLY) == [], "what was compiled before it became read-only is used"


def test_where_nothing_can_be_kept_it_still_runs_and_names_the_remedy(tmp_path: Path) -> None:
    for _ in range(2):
        advice, *progress = called(tmp_path, before=READ_ONLY, PYTHONDONTWRITEBYTECODE="1")
        assert "NUMBA_CACHE_DIR" in advice
        assert progress == ["compiling probe.quarter"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["probe.py"]


def test_code_with_types_that_have_other_names_by_now_is_compiled_again(tmp_path: Path) -> None:
    """What is kept names its types, and could not even be read without them."""
    of_a_pair = """
from typing import NamedTuple
from makespan.host.compiled import compiled

class Pair(NamedTuple):
    first: int
    second: int

@compiled
def sum_of(pair: Pair) -> int:
    return pair.first + pair.second

def quarter(number: int) -> int:
    return sum_of(Pair(number // 4, 0))
"""
    for text in (of_a_pair, of_a_pair.replace("Pair", "PairOfNumbers")):
        assert called(tmp_path, text) == ["compiling probe.sum_of, once per installation"]
        assert called(tmp_path, text) == []


def test_code_that_contains_other_modules_is_compiled_again_when_these_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from makespan.host import compiled

    probe = tmp_path / "other.py"
    probe.write_text("")
    other = ModuleType("makespan.other")
    other.__file__ = str(probe)
    monkeypatch.setitem(sys.modules, "makespan.other", other)
    compiled._sources.cache_clear()
    before = compiled._sources("makespan.other")
    compiled._sources.cache_clear()
    probe.write_text("# changed")
    assert compiled._sources("makespan.other") != before
    assert {name for name, *_ in compiled._sources(states_compiled.__name__)} >= {states_compiled.__name__}


def test_the_remedy_is_one(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    assert called(tmp_path, before=READ_ONLY, NUMBA_CACHE_DIR=kept) == [
        "compiling probe.quarter, once per installation"
    ]
    assert called(tmp_path, before=READ_ONLY, NUMBA_CACHE_DIR=kept) == []
