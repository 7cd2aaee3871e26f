"""Reproducible examples in `make test`; `make soak` draws new ones and says with which seed."""

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks.explorer import Explorer, built
from tests.cpu_report import Meter

ROOT = Path(__file__).parents[1]

settings.register_profile(
    "makespan",
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("makespan")
os.environ.pop("FORCE_COLOR", None)  # nor in colour
os.environ.pop("COLUMNS", None)  # commands print as into a pipe, whatever the workers of pytest-xdist set


class Doctests:
    """Imports a module with doctests as users do, before pytest, which would load it beside its package again."""

    def pytest_collect_file(self, file_path: Path) -> None:
        path = file_path.relative_to(ROOT) if file_path.is_relative_to(ROOT) else file_path
        if path.suffix == ".py" and path.parts[0] == "makespan" and path.stem != "__main__":
            importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-report", type=int, metavar="N", help="name the N tests that took most CPU time")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Doctests())  # a hook of this file itself would see the files of this folder only
    if rows := config.getoption("--cpu-report"):
        config.pluginmanager.register(Meter(rows))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long campaigns run only when they are asked for."""
    if "soak" in config.option.markexpr:
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=soak)
    items[:] = [item for item in items if item not in soak]


@pytest.fixture(scope="session")
def explorer_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second program of the model, compiled once: it has every schedule."""
    try:
        return built(tmp_path_factory.mktemp("explorer"))
    except FileNotFoundError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def explorer(explorer_program: Path) -> Iterator[Explorer]:
    """It runs for the tests of one module, as others look whether a process is left behind."""
    with closing(Explorer(explorer_program)) as running:
        yield running


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector of garbage need not look at them again and again."""
    gc.freeze()
