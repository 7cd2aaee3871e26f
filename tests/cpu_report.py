"""`pytest --cpu-report N`: the N tests that took most CPU time, their child processes included.

CPU time and not wall time: it is the same on a loaded machine, and what parallel workers share.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from operator import itemgetter

import pytest

_KEY = "cpu seconds"


def _spent() -> float:
    """CPU seconds of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


class Meter:
    """Notes beside each phase of a test (where the tests run) what it took, and adds up (where they are reported)."""

    def __init__(self, rows: int) -> None:
        self.rows, self._before = rows, 0.0
        self.total: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._before = _spent()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report, now = (yield), _spent()
        report.user_properties.append((_KEY, now - self._before))
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.total[report.nodeid] += sum(float(str(value)) for key, value in report.user_properties if key == _KEY)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        heaviest = sorted(self.total.items(), key=itemgetter(1), reverse=True)[: self.rows]
        terminalreporter.section(f"CPU seconds: {sum(self.total.values()):.1f} in {len(self.total)} tests")
        for name, seconds in heaviest:
            terminalreporter.line(f"{seconds:8.2f}  {name}")
