"""The commands of the estimators, as fixtures."""

import pytest

from tests.command import Runner


@pytest.fixture
def estimate(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("estimate", capsys)


@pytest.fixture
def microbench(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("microbench", capsys)


@pytest.fixture
def evaluate(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("evaluate", capsys)


@pytest.fixture
def listings(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner("dual-issue", capsys)
