"""The commands of the estimators, a table of measurements and an OpenCL device, as fixtures."""

from pathlib import Path

import pytest

from makespan.estimates.opencl import Opened
from makespan.host.errors import InputError, MeasurementError
from tests.command import command_fixture
from tests.estimates.dual_issue.test_measurements import ROWS

estimate = command_fixture("estimate")
measure = command_fixture("measure")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "k20.csv"
    path.write_text("\n".join(ROWS))
    return path


@pytest.fixture
def opencl_device() -> Opened:
    pytest.importorskip("pyopencl")
    try:
        return Opened()
    except (MeasurementError, InputError) as error:
        pytest.skip(str(error))
