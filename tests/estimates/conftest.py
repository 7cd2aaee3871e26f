"""The commands of the estimators, and an OpenCL device, as fixtures."""

import pytest

from makespan.estimates.opencl import Opened
from makespan.host.errors import InputError, MeasurementError
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
def opencl_device() -> Opened:
    pytest.importorskip("pyopencl")
    try:
        return Opened()
    except (MeasurementError, InputError) as error:
        pytest.skip(str(error))
