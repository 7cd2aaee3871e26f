"""Statistics of q = predicted / measured, and their histogram."""

from itertools import islice

import numpy as np
import pytest

from makespan.estimates.opencl_cost_table import table as tables
from makespan.estimates.opencl_cost_table.device import VirtualOpenClDevice
from makespan.estimates.opencl_cost_table.evaluation import PredictionSample, Quality, evaluate, iterations
from makespan.estimates.opencl_cost_table.expression import Array, Type
from makespan.estimates.report import cost_prediction
from makespan.host.errors import InputError

PUBLISHED = tables.find("rmbp-gt650m")
ARRAY = Array("matrix", Type.FLOAT, (64, 32))


def quality_of(*qs: float) -> Quality:
    samples = tuple(PredictionSample(f"e{at}", q * 10, 10.0, True) for at, q in enumerate(qs))
    return Quality(samples, "GPU $1", is_virtual=False)


def test_a_table_that_is_right_predicts_right() -> None:
    device = VirtualOpenClDevice(PUBLISHED, noise=0.01, seed=1)
    for kind in ("random", "realistic"):
        drawn = list(islice(iterations(ARRAY, kind=kind, seed=2), 60))
        found = evaluate(device, PUBLISHED, drawn, group=64)
        assert found.median == pytest.approx(1, abs=0.01)
        assert found.within_factor_2 == 1


def test_a_table_that_is_twice_as_dear_predicts_twice_as_much() -> None:
    import msgspec

    both = {"slope": 2 * PUBLISHED.base.slope, "icept": 2 * PUBLISHED.base.icept}
    dear = msgspec.structs.replace(
        PUBLISHED,
        base=msgspec.structs.replace(PUBLISHED.base, **both),
        ops={r: msgspec.structs.replace(o, slope=2 * o.slope, icept=2 * o.icept) for r, o in PUBLISHED.ops.items()},
        access={
            r: msgspec.structs.replace(o, slope=2 * o.slope, icept=2 * o.icept) for r, o in PUBLISHED.access.items()
        },
    )
    drawn = list(islice(iterations(ARRAY, kind="random", seed=2), 20))
    found = evaluate(VirtualOpenClDevice(PUBLISHED, noise=0), dear, drawn, group=64)
    assert found.qs == pytest.approx([2] * 20)


def test_statistics() -> None:
    found = quality_of(0.25, 0.5, 1, 1.5, 2, 4)
    assert found.mean == pytest.approx(9.25 / 6)
    assert found.median == 1.25
    assert found.geometric_mean == pytest.approx((0.25 * 0.5 * 1 * 1.5 * 2 * 4) ** (1 / 6))
    assert found.within_factor_2 == pytest.approx(2 / 6)
    assert found.quantiles()[0.95] == pytest.approx(float(np.quantile([0.25, 0.5, 1, 1.5, 2, 4], 0.95)))
    assert {sample.expression for sample in found.worst()[:2]} == {"e0", "e5"}
    assert quality_of(0, 1).geometric_mean == 0
    assert quality_of(0, 1).worst()[0].q == 0
    with pytest.raises(InputError, match="no sample"):
        Quality((), "GPU", is_virtual=False)


def test_the_histogram_holds_every_sample_once() -> None:
    found = quality_of(0, 0.3, 0.99, 1, 1.01, 1.2, 7)
    bins = found.histogram()
    assert sum(samples for _, _, samples in bins) == 7
    for low, high, samples in bins[1:]:
        assert samples == sum(low <= q < high for q in found.qs)
    lines = cost_prediction.quality_csv({"random": found}).splitlines()
    assert lines[0] == "set,q_from,q_to,samples"
    assert lines[1] == "random,0,0,1"
    assert len(lines) == 1 + len(bins)


def test_the_report_names_the_worst_samples() -> None:
    shown = cost_prediction.quality_text("random", quality_of(0.5, 1, 3))
    assert "random: q = predicted / measured over 3 samples" in shown
    assert "median 1.000" in shown
    assert "q 3.000 (30.0 us predicted, 10.0 us measured): e2" in shown


def test_where_nothing_was_measured_words_say_virtual_device() -> None:
    device = VirtualOpenClDevice(PUBLISHED, noise=0.01, seed=1)
    found = evaluate(device, PUBLISHED, list(islice(iterations(ARRAY, kind="random", seed=2), 12)), group=64)
    assert found.is_virtual
    shown = cost_prediction.quality_text("random", found)
    assert shown.startswith("random: q = predicted / time of the virtual device over 12 samples\n")
    assert "us on the virtual device): " in shown
    assert "measured" not in shown
    (told,) = cost_prediction.quality_document({"random": found})["sets"].values()
    assert (told["device"], told["is_virtual"]) == (device.name, True)
    assert not any("measured_us" in sample for sample in told["all"])


@pytest.mark.parametrize("array", [Array("m", Type.INT, (4, 4)), Array("m", Type.FLOAT, (16,))])
def test_samples_need_a_matrix_of_floats(array: Array) -> None:
    with pytest.raises(InputError, match="samples read a float array of two dimensions"):
        next(iterations(array, kind="random", seed=1))
    with pytest.raises(InputError, match="--depth 9"):
        next(iterations(ARRAY, kind="random", seed=1, depth=9))
