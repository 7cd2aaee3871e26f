"""Processes forked from one that has loaded the libraries and nothing of the package, each with a mutant of its own."""

import ast
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any, cast

import pytest
from hypothesis import Phase, settings
from numba.core import caching

OPTIONS = "--exitfirst", "--rootdir=.", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"
MOST_BYTES = 8 << 30
SLOWER, SECONDS = 5, 10
"""A test may take so many times longer than without a mutant, and some seconds for what only the first one loads."""
PATIENCE = 3600
"""Seconds on the wall after which a process ends that waits for something and takes no CPU."""


def fork(folder: Path, work: Callable[[], object]) -> int:
    """Do the work in another process; `reap` has its answer."""
    sys.stdout.flush()
    if (pid := os.fork()) != 0:
        return pid
    try:
        os.setpgid(0, 0)
        for stream in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        signal.alarm(PATIENCE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.RLIM_INFINITY))
        _keep(folder, work())
    except BaseException:  # noqa: BLE001 - the parent raises it
        _keep(folder, {"error": traceback.format_exc()})
    finally:
        os._exit(0)


def _keep(folder: Path, answer: object) -> None:
    (folder / str(os.getpid())).write_text(json.dumps(answer))


def reap(folder: Path) -> tuple[int, Any]:
    """The next process that ended, and its answer; None if it was ended by a limit.

    Raises:
        RuntimeError: the work raised an exception, or something else ended the process.
    """
    pid, status = os.waitpid(-1, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what a test has started and left behind
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
            return pid, None
        if os.WTERMSIG(status) in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE):
            return pid, {"by": f"signal {os.WTERMSIG(status)}"}
        raise RuntimeError(f"a process was ended by signal {os.WTERMSIG(status)}")
    answer = json.loads((folder / str(pid)).read_text())
    (folder / str(pid)).unlink()
    if isinstance(answer, dict) and "error" in answer:
        raise RuntimeError(answer["error"])
    return pid, answer


class _Tests:
    """Runs the chosen tests in their order, each within its time; nothing is made smaller that fails anyway."""

    def __init__(self, chosen: Mapping[str, float]) -> None:
        self.chosen, self.failed = chosen, ""

    def pytest_sessionstart(self) -> None:
        cast(Any, caching.FunctionCache).save_overload = lambda *_: None  # what a mutant makes numba compile is lost
        settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = {test: place for place, test in enumerate(self.chosen)}
        items[:] = sorted((i for i in items if i.nodeid in places), key=lambda item: places[item.nodeid])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        spent = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        most = spent + SECONDS + SLOWER * self.chosen[item.nodeid]
        resource.setrlimit(resource.RLIMIT_CPU, (int(most), resource.RLIM_INFINITY))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = report.nodeid


class _Changed(SourceFileLoader):
    """Loads one module from a tree instead of its file."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self.tree = tree

    def get_code(self, fullname: str) -> CodeType:
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec", dont_inherit=True)

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None


def noticed(file: str, tree: ast.Module, chosen: Mapping[str, float]) -> dict[str, str]:
    """What noticed that a file is another: a test, the import of the module, or nothing.

    Args:
        file: relative to the folder in which the tests run.
        tree: what it is now.
        chosen: tests in their order, with their seconds.
    """
    name = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
    changed = _Changed(name, str(Path(file).resolve()), tree)
    changed.get_code(name)
    sys.meta_path.insert(0, changed)
    resource.setrlimit(resource.RLIMIT_CPU, (3 * SECONDS, resource.RLIM_INFINITY))
    try:
        import_module(name)
    except Exception:  # noqa: BLE001 - a mutant may do anything
        return {"by": "import"}
    tests = _Tests(chosen)
    code = pytest.main([*dict.fromkeys(test.partition("::")[0] for test in chosen), *OPTIONS], plugins=[tests])
    if code == pytest.ExitCode.OK:
        return {"by": ""}
    if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):  # interrupted by what cannot be imported
        return {"by": tests.failed or "collection"}
    raise RuntimeError(f"{code!r}")
