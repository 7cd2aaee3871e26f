"""Commands, each run within the process of a test."""

import pytest

from tests.command import Runner


@pytest.fixture
def solve(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("solve", capsys)


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("compare", capsys)


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("simulate", capsys)


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("report", capsys)
