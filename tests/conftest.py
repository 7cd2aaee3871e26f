"""Reproducible examples in `make test`; `make soak` draws new ones and says with which seed."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from tests.cpu_report import Meter

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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-report", type=int, metavar="N", help="name the N tests that took most CPU time")


def pytest_configure(config: pytest.Config) -> None:
    if rows := config.getoption("--cpu-report"):
        config.pluginmanager.register(Meter(rows))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long campaigns run only when they are asked for."""
    if "soak" in config.option.markexpr:
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=soak)
    items[:] = [item for item in items if item not in soak]


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector of garbage need not look at them again and again."""
    gc.freeze()
