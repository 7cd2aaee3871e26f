"""Processes forked from one that has loaded the libraries and nothing of the package, each with a mutant of its own."""

import ast
import gc
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

import pytest
from hypothesis import Phase, settings
from numba.core import caching

OPTIONS = "--exitfirst", "--rootdir=.", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"
MOST_BYTES = 8 << 30
SLOWER, SECONDS = 5, 4
"""A test may take so many times longer than without a mutant, and some seconds for what only the first one loads."""
PATIENCE = 3600
"""Seconds on the wall after which a process ends that waits for something and takes no CPU."""

Noticed = Callable[[str, ast.Module, Mapping[str, float]], dict[str, str]]


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
        os._exit(0)  # without what Python does at the end, for the tests that were loaded, too


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
    """The chosen tests in their order, each within its time; nothing is made smaller that fails anyway."""

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
        resource.setrlimit(resource.RLIMIT_CPU, (int(most) + 1, resource.RLIM_INFINITY))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = report.nodeid


# A mutant of what runs when a module is imported: nothing of the package is loaded yet


class _Changed(SourceFileLoader):
    """Loads one module from a tree instead of its file."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self.tree = tree

    def get_code(self, fullname: str) -> CodeType:
        return _compiled(self.tree, self.path)

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None


def imported(file: str, tree: ast.Module, chosen: Mapping[str, float]) -> dict[str, str]:
    """What notices that a file is another: the first test that fails, the import of the module, or nothing.

    Args:
        file: relative to the folder in which the tests run.
        tree: what it is now.
        chosen: tests in their order, with their seconds.
    """
    name = _module(file)
    changed = _Changed(name, str(Path(file).resolve()), tree)
    changed.get_code(name)
    sys.meta_path.insert(0, changed)
    resource.setrlimit(resource.RLIMIT_CPU, (3 * SECONDS, resource.RLIM_INFINITY))
    try:
        import_module(name)
    except Exception:  # noqa: BLE001 - a mutant may do anything
        return {"by": "import"}
    tests = _Tests(chosen)
    code = pytest.main([*_files(chosen), *OPTIONS], plugins=[tests])
    if code == pytest.ExitCode.OK:
        return {"by": ""}
    if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):  # interrupted by what cannot be imported
        return {"by": tests.failed or "collection"}
    raise RuntimeError(f"{code!r}")


# A mutant of a function: tests are loaded once, and the function gets other code


class _Collected(_Tests):
    """Hands over how to try a mutant once the tests are there, instead of running them."""

    def __init__(self, chosen: Mapping[str, float], files: Iterable[str], use: Callable[[Noticed], None]) -> None:
        super().__init__(chosen)
        self.files, self.use = files, use

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for file in self.files:
            import_module(_module(file))  # some are imported by functions only, which nobody has called yet
        gc.unfreeze()  # what is frozen is not among the objects
        functions: dict[str, list[FunctionType]] = {}
        for function in (each for each in gc.get_objects() if isinstance(each, FunctionType)):
            functions.setdefault(function.__code__.co_filename, []).append(function)
        gc.freeze()

        def noticed(file: str, tree: ast.Module, chosen: Mapping[str, float]) -> dict[str, str]:
            _exchange(functions[str(Path(file).resolve())], tree)
            self.chosen = chosen
            session.config.pluginmanager.unregister(name="terminalreporter")
            some = [items[test] for test in chosen]
            for item, after in zip_longest(some, some[1:]):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
                if self.failed:
                    break
            return {"by": self.failed}

        self.use(noticed)
        return True


def collected(tests: Mapping[str, float], files: Iterable[str], use: Callable[[Noticed], None]) -> None:
    """Load these tests, and call `use` with a function like `imported` for mutants of functions of these files."""
    code = pytest.main([*_files(tests), *OPTIONS], plugins=[_Collected(tests, files, use)])
    if code != pytest.ExitCode.OK:
        raise RuntimeError(f"{code!r}")


def _exchange(functions: Iterable[FunctionType], tree: ast.Module) -> None:
    """Give functions of a file their code in the tree, which has the same names and lines."""
    codes: dict[tuple[str, int], CodeType] = {}
    waiting = [_compiled(tree, "")]
    twice = set()
    while waiting:
        code = waiting.pop()
        waiting += (inside for inside in code.co_consts if isinstance(inside, CodeType))
        key = code.co_qualname, code.co_firstlineno
        twice |= {key} & codes.keys()
        codes[key] = code
    for function in functions:
        key = function.__code__.co_qualname, function.__code__.co_firstlineno
        if key in twice:
            raise LookupError(f"{key[0]} of line {key[1]} is not the only one")
        function.__code__ = codes[key].replace(co_filename=function.__code__.co_filename)


def _module(file: str) -> str:
    return ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")


def _compiled(tree: ast.Module, path: str) -> CodeType:
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _files(tests: Iterable[str]) -> list[str]:
    """Doctests last: the first module that pytest itself loads takes the place of a function of its name."""
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    return sorted(files, key=lambda file: not Path(file).name.startswith("test_"))
