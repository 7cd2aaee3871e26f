"""A prediction by a cost table in the words of a terminal, the table itself, and how good its predictions are.

Here q is the predicted time over that of the device.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from makespan.estimates.opencl_cost_table.evaluation import Quality
from makespan.estimates.opencl_cost_table.prediction import METHOD, TOTAL, Prediction, estimate
from makespan.estimates.opencl_cost_table.table import OpenClCostTable
from makespan.estimates.report import estimate as estimates
from makespan.report.lines import align_columns

_HEADINGS = ("cost type", "number in kernel", "time, us")


def text(prediction: Prediction, *, explain: bool = False, cpu_seconds: float | None = None) -> str:
    """Return the table; the verdict comes last.

    Args:
        explain: all quantities with their origins, too.
        cpu_seconds: what the same work takes without the device.
    """
    estimated = estimate(prediction)
    lines = [f"method {METHOD}: {estimates.NOT_A_BOUND}", _subject(prediction), *_table(prediction)]
    if explain:
        lines += [estimates.text(estimated, explain=True)]
    else:
        lines += [f"warning: {warning}" for warning in prediction.warnings]
        lines += [estimates.verdict(estimated)]
    return "\n".join([*lines, *([] if cpu_seconds is None else [decision(prediction, cpu_seconds)])])


def document(prediction: Prediction, cpu_seconds: float | None = None) -> dict[str, Any]:
    """Return the estimate as plain data, with the rows of the table, and the decision if there is one."""
    rows = [{"name": row.name, "count": row.count, "microseconds": row.microseconds} for row in prediction.rows]
    decided = (
        {} if cpu_seconds is None else {"on_device": prediction.on_device(cpu_seconds), "cpu_seconds": cpu_seconds}
    )
    return {
        **estimates.document(estimate(prediction)),
        "cost_table": {"device": prediction.table.device, "rows": rows, "factor": prediction.factor},
        "kernel_microseconds": prediction.kernel,
        "total_microseconds": prediction.total,
        **decided,
    }


def decision(prediction: Prediction, cpu_seconds: float) -> str:
    """Run it on the device, or not."""
    times = f"{prediction.total:.3f} us on the device, {cpu_seconds * 1e6:.3f} us on the CPU"
    return f"{'run on the device' if prediction.on_device(cpu_seconds) else 'stay on the CPU'}: {times}"


def cost_table_text(table: OpenClCostTable) -> str:
    """Return a measured table, with the doubts of its fits."""
    lines = [f"cost table of {table.device} ({table.driver}), {table.date}"]
    rows = [("row", "per item, ns", "fixed, us", "error, ns", "R^2", "")]
    costs = {"BASE_COST": table.base, **table.ops, **table.access}
    for name, cost in costs.items():
        doubt = "too cheap to be resolved" if cost.unresolved else ""
        se, r2 = (cost.se or 0.0) * 1e3, cost.r2 or 0.0
        rows.append((name, f"{cost.slope * 1e3:.6f}", f"{cost.icept:.3f}", f"{se:.6f}", f"{r2:.4f}", doubt))
    lines += align_columns(rows, right=(1, 2, 3, 4))
    for name, operation in table.ops.items():
        law = operation.saturation
        begin = f" from {law.x_sat} on" if law.x_sat else ""
        tau = f", {law.tau * 1e3:.6f} ns each" if law.tau is not None else ""
        lines.append(f"several {name}: {law.kind}{begin}{tau}")
    for way, line in (("to", table.transfer.to), ("from", table.transfer.back)):
        rate = f"{1 / line.slope:.1f} MB/s" if line.slope else "not resolved"
        lines.append(f"transfer {way} the device: {rate} + {line.icept:.3f} us")
    return "\n".join(lines)


def _subject(prediction: Prediction) -> str:
    work = prediction.work
    group = "" if work.group is None else f" in work-groups of {work.group}"
    return f"{work.work_items} work-items{group} on {prediction.table.device}"


def _table(prediction: Prediction) -> Iterator[str]:
    rows = [(row.name, str(row.count), f"{row.microseconds:.6f}") for row in prediction.rows]
    factor = prediction.factor
    tail = [] if factor == 1 else [("work-group factor", "", f"{factor:.10f}")]
    tail.append((TOTAL, "", f"{prediction.kernel:.6f}"))
    moves = (
        ("transfer to the device", prediction.work.bytes_in, prediction.to_device),
        ("transfer from the device", prediction.work.bytes_out, prediction.from_device),
    )
    known = [(name, f"{size} B", f"{time:.6f}") for name, size, time in moves if time is not None]
    if known:
        tail += [*known, ("total", "", f"{prediction.total:.6f}")]
    yield from align_columns([_HEADINGS, *rows, *tail], right=(1, 2))


def quality_text(name: str, quality: Quality) -> str:
    """Return the statistics of q, and the ten predictions that are off by most."""
    ratio = f"q = predicted / {'time of the virtual device' if quality.is_virtual else 'measured'}"
    source = "on the virtual device" if quality.is_virtual else "measured"
    shown = ", ".join(f"{probability:.0%} {q:.3f}" for probability, q in quality.quantiles().items())
    lines = [
        f"{name}: {ratio} over {len(quality.samples)} samples",
        f"  median {quality.median:.3f}, mean {quality.mean:.3f}, geometric mean {quality.geometric_mean:.3f}",
        f"  quantiles: {shown}",
        f"  0.5 < q < 2 in {quality.within_factor_2:.1%}",
        "  off by most:",
    ]
    for sample in quality.worst():
        times = f"{sample.predicted:.1f} us predicted, {sample.measured:.1f} us {source}"
        lines.append(f"    q {sample.q:.3f} ({times}): {sample.expression}")
    if rough := sum(not sample.converged for sample in quality.samples):
        kind = "virtual" if quality.is_virtual else "measured"
        lines.append(f"  warning: {rough} {kind} times were still uncertain when their time was over")
    return "\n".join(lines)


def quality_csv(qualities: Mapping[str, Quality]) -> str:
    """Return the histograms, with a header line; a bin holds its lower end and not its upper one."""
    rows = [
        f"{name},{low:.6g},{high:.6g},{samples}"
        for name, quality in qualities.items()
        for low, high, samples in quality.histogram()
    ]
    return "\n".join(["set,q_from,q_to,samples", *rows]) + "\n"


def quality_document(qualities: Mapping[str, Quality]) -> dict[str, Any]:
    """Return statistics and samples as plain data."""
    return {
        "schema": "makespan.prediction-quality/1",
        "is_bound": False,
        "sets": {
            name: {
                "samples": len(quality.samples),
                "median": quality.median,
                "mean": quality.mean,
                "geometric_mean": quality.geometric_mean,
                "quantiles": {f"{probability:g}": q for probability, q in quality.quantiles().items()},
                "within_factor_2": quality.within_factor_2,
                "device": quality.device,
                "is_virtual": quality.is_virtual,
                "all": [
                    {
                        "expression": sample.expression,
                        "predicted_us": sample.predicted,
                        "virtual_us" if quality.is_virtual else "measured_us": sample.measured,
                        "q": sample.q,
                    }
                    for sample in quality.samples
                ],
            }
            for name, quality in qualities.items()
        },
    }
