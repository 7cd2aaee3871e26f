"""The suite on an OpenCL device, such as PoCL, which every computer can have: what holds even on a busy one."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from makespan.estimates import opencl
from makespan.estimates.opencl_cost_table import fits, opencl_device
from makespan.estimates.opencl_cost_table.device import Benchmark, TimedDevice, repeat_run
from makespan.estimates.opencl_cost_table.evaluation import evaluate, iterations
from makespan.estimates.opencl_cost_table.expression import Array, Iteration, Type
from makespan.estimates.opencl_cost_table.language import iteration
from makespan.estimates.opencl_cost_table.suite import COPIES, EMPTY, FIXED_ITEMS, Plan, measure, tabulate
from makespan.estimates.opencl_cost_table.table import OpenClCostTable
from makespan.host.errors import InputError, MeasurementError
from tests.command import Runner
from tests.estimates.opencl_cost_table import reference

pytestmark = pytest.mark.pocl
SIZES = [1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22]
RUNS = 9


@pytest.fixture(scope="module")
def device() -> TimedDevice:
    try:
        return opencl_device.OpenCLDevice(0)
    except MeasurementError as error:
        pytest.skip(str(error))


def fastest(device: TimedDevice, kernel: Benchmark, items: int = FIXED_ITEMS, group: int = 256) -> float:
    """Microseconds of the fastest of several runs: others were held up."""
    run = device.benchmark(kernel, items, group)
    return min(run() for _ in range(RUNS))


def slope(device: TimedDevice, more: Benchmark, less: Benchmark) -> float:
    times = [fastest(device, more, size) - fastest(device, less, size) for size in SIZES]
    return fits.line(SIZES, times).slope


def test_an_empty_kernel_is_linear_in_work_items(device: TimedDevice) -> None:
    assert (fits.line(SIZES, [fastest(device, EMPTY, size) for size in SIZES]).r2 or 0) > 0.9


def test_small_work_groups_are_slow(device: TimedDevice) -> None:
    kernel = COPIES["float"]
    assert fastest(device, kernel, group=1) > 3 * fastest(device, kernel, group=256)


def test_complex_reads_are_dearer_than_continuous_ones(device: TimedDevice) -> None:
    found = {d.row: slope(device, d.more, d.less) for d in Plan().differences if d.row.endswith("GLOBAL_READ")}
    assert found["COMPLEX_GLOBAL_READ"] > 3 * found["GLOBAL_READ"] > 0


def test_dividing_integers_is_dearer_than_adding_them(device: TimedDevice) -> None:
    found = {d.row: slope(device, d.more, d.less) for d in Plan().differences if d.row in ("INT_DIV", "INT_ADD")}
    assert found["INT_DIV"] > 3 * found["INT_ADD"]


def test_chains_of_additions_saturate(device: TimedDevice) -> None:
    times = {n: fastest(device, Plan().chains(n)[0].more) for n in (1, 4, 128)}  # of floats that are added
    assert times[128] > 4 * times[4]
    assert times[4] < 2 * times[1]


def test_transfers_take_time(device: TimedDevice) -> None:
    for back in (False, True):
        small, large = (repeat_run(device.transfer(size, back=back)).median for size in (1 << 17, 1 << 24))
        assert 0 < small < large


def agrees(found: Iteration, group: int) -> bool:
    """Whether the device computes what numpy does, up to rounding."""
    opened = opencl.Opened()
    data = {array.name: opencl_device.values(array) for array in found.arrays}
    expected = reference.evaluate(found, data)
    result = np.empty_like(expected)
    out = opened.buffer(result.nbytes)
    buffers = [opened.buffer(data[array.name].nbytes, data[array.name]) for array in found.arrays]
    kernel = opened.kernel(found.opencl, "iteration")
    opened.nanoseconds(kernel, opened.queue, (found.work_items,), (group,), *buffers, out)
    opened.cl.enqueue_copy(opened.queue, result, out)
    return np.allclose(result, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    "body",
    [
        "m[x,y,z]",
        "m[z % 5, y, x % 6]*x - y / (z + 1)",
        "g(m[1,2,3]) + x % 2 - n[y,z] % 7",
        "-m[x,y,z]/(n[z,x] + 0.5f) + -7/2",
        "n[n[1,2] % 7, x] - (x - y)/3 - (y - z)%2",
    ],
)
def test_results_are_those_of_numpy(body: str) -> None:
    arrays = [Array("m", Type.FLOAT, (5, 6, 8)), Array("n", Type.INT, (9, 8))]
    found = iteration(rf"m.\(x,y,z){{ {body} }}", arrays=arrays, functions=["g(v)=v*v-1"])
    assert agrees(found, 8)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("kind", ["random", "realistic"])
def test_results_of_samples_are_those_of_numpy(kind: Any) -> None:
    array = Array("matrix", Type.FLOAT, (48, 32))
    for sample in islice(iterations(array, kind=kind, seed=7), 12):
        assert agrees(sample, 32), sample


@pytest.fixture(scope="module")
def measured(device: TimedDevice) -> OpenClCostTable:
    from datetime import date

    plan = Plan(quick=True)
    return tabulate(device, plan, measure(device, plan, seconds=8), date(2026, 1, 1))


def test_predictions_of_realistic_samples_are_of_the_right_size(device: TimedDevice, measured: OpenClCostTable) -> None:
    array = Array("matrix", Type.FLOAT, (1024, 1024))
    drawn = list(islice(iterations(array, kind="realistic", seed=1), 40))
    found = evaluate(device, measured, drawn, group=256, seconds=6)
    assert 0.4 < found.median < 2.5


def test_a_kernel_that_does_not_build_shows_its_log(device: TimedDevice) -> None:
    from dataclasses import replace

    with pytest.raises(MeasurementError, match=r"(?s)a kernel does not build; its build log:\n.*nonsense"):
        device.benchmark(replace(EMPTY, body="nonsense = 1;"), 256, 256)


def test_a_work_group_that_is_too_large_is_a_failed_measurement(device: TimedDevice) -> None:
    run = device.benchmark(EMPTY, 1 << 20, device.max_work_group * 2)
    with pytest.raises(MeasurementError, match="running failed"):
        run()


def test_a_device_that_cannot_be_timed_is_refused(device: TimedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    class Untimed:
        name, queue_properties = "d", 0

    monkeypatch.setattr(opencl, "devices", lambda: [Untimed])
    with pytest.raises(MeasurementError, match="d: its driver cannot time what it does"):
        opencl_device.OpenCLDevice()


def test_a_device_that_is_not_there(device: TimedDevice, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--device 99: no such device; there are 0: "):
        opencl_device.OpenCLDevice(99)
    done = Runner("measure", capsys)("opencl", "--device", "99", "-o", tmp_path / "t.json")
    assert done.code == 2


def test_double_precision_is_measured_where_there_is_some(device: TimedDevice) -> None:
    if not device.has_double:
        pytest.skip("no floats of 64 bits")
    chain = next(chain for chain in Plan(double=True).chains(4) if chain.row == "DOUBLE_ADD")
    assert fastest(device, chain.more) > 0
