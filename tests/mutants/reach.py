"""Which tests run which lines of a package, and how long each takes: learned once, and again of what has changed."""

import hashlib
import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import coverage
import pytest

from tests.mutants import child
from tests.mutants.operators import Mutant


@dataclass(frozen=True)
class Reach:
    """`seconds` of CPU of each test; of each file of the package the tests that run each of its lines."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, frozenset[str]]]

    def tests(self, mutant: Mutant, kills: Mapping[str, int], most: float = inf) -> dict[str, float]:
        """With their seconds, `most` in all; first those that are cheap for what they have noticed so far.

        What runs when a module is imported is reached by all that need the module.
        """
        here = self.lines.get(mutant.file, {})
        wanted = range(mutant.first, mutant.last + 1) if mutant.in_function else here
        reached = {test for line in wanted for test in here.get(line, ())}
        ordered = sorted((self.seconds[test] / (1 + kills.get(test, 0)), test) for test in reached)
        sums = accumulate(self.seconds[test] for _, test in ordered)
        return {test: self.seconds[test] for (_, test), total in zip(ordered, sums, strict=True) if total <= most}


class _Watch:
    """Tells coverage whose turn it is, and the clock."""

    def __init__(self, watcher: coverage.Coverage) -> None:
        self.watcher = watcher
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.watcher.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - began
            self.watcher.switch_context("")


def learned(kept: Path, sources: Iterable[str], tests: Iterable[str]) -> Reach:
    """What is known from `kept`, and of the files of tests that are not there or were changed since, learned now.

    Raises:
        RuntimeError: a test fails without any mutant.
    """
    package = _digest(sources)
    facts = json.loads(kept.read_text()) if kept.exists() else {}
    if facts.get("package") != package:
        facts = {"package": package, "files": {}}
    for path in _files(tests):
        known = facts["files"].get(path)
        if known is None or known["digest"] != _digest([path]):
            facts["files"][path] = {"digest": _digest([path]), "tests": _run(path, sources)}
            kept.write_text(json.dumps(facts))
    seconds: dict[str, float] = {}
    lines: dict[str, dict[int, set[str]]] = {}
    for path in _files(tests):
        for test, (took, reached) in facts["files"][path]["tests"].items():
            seconds[test] = took
            for file, numbers in reached.items():
                for number in numbers:
                    lines.setdefault(file, {}).setdefault(number, set()).add(test)
    return Reach(seconds, {f: {n: frozenset(some) for n, some in by.items()} for f, by in lines.items()})


def _run(path: str, sources: Iterable[str]) -> dict[str, Any]:
    """All tests of a file, in a process of their own."""

    def inside() -> object:
        watcher = coverage.Coverage(
            data_file=None, config_file=False, include=[str(Path(s).resolve()) for s in sources]
        )
        watch = _Watch(watcher)
        watcher.start()
        code = pytest.main([path, *child.OPTIONS], plugins=[watch])
        watcher.stop()
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return {"failed": f"{code!r}"}
        data = watcher.get_data()
        found: dict[str, tuple[float, dict[str, list[int]]]] = {t: (took, {}) for t, took in watch.seconds.items()}
        for source in sources:
            for line, contexts in data.contexts_by_lineno(str(Path(source).resolve())).items():
                for test in filter(None, contexts):
                    found[test][1].setdefault(source, []).append(line)
        return found

    with TemporaryDirectory() as folder:
        child.fork(Path(folder), inside)
        _, found = child.reap(Path(folder))
    if found is None or "failed" in found:
        raise RuntimeError(f"{path} fails without any mutant: {found}")
    print(f"{path}: {len(found)} tests", flush=True)
    return cast(dict[str, Any], found)


def _files(tests: Iterable[str]) -> Iterator[str]:
    """Those that hold a test, of folders."""
    for test in tests:
        for path in sorted(Path(test).rglob("*.py")) if Path(test).is_dir() else [Path(test)]:
            if path.name.startswith("test_") or ">>> " in path.read_text():
                yield str(path)


def _digest(paths: Iterable[str]) -> str:
    return hashlib.sha256(b"\0".join(Path(path).read_bytes() for path in paths)).hexdigest()
