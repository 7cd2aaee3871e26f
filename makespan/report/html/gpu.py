"""The page about a whole GPU, as plain data and as text."""

from typing import Any

from makespan.model.gpu import GpuResult
from makespan.report.gpu.clock import GpuClock
from makespan.report.gpu.document import gpu_result_document
from makespan.report.gpu.picture import NARROW, WIDTH, describe_chart, gpu_chart, render_gpu_picture
from makespan.report.gpu.text import explain_bound
from makespan.report.html.data import PageContext, deadline_data, input_data, machine_data, verification
from makespan.report.html.page import render_gpu_page
from makespan.report.html.visible import make_visible
from makespan.report.result import text
from makespan.verify import digest

SCHEMA = "makespan.gpu-page/1"


def gpu_page(
    result: GpuResult, context: PageContext, evidence: str, *, name: str | None, clock: GpuClock | None
) -> str:
    """Return the HTML of a result, with its picture; equal arguments give equal text.

    Args:
        evidence: the SHA-256 in the bundle of the result.
        name: of the GPU.
    """
    widths = () if result.witness is None else (WIDTH, NARROW)
    pictures = [render_gpu_picture(result, ".png", width=width, is_titled=False) for width in widths]
    return render_gpu_page(gpu_page_data(result, context, evidence, name=name, clock=clock), pictures)


def gpu_page_data(
    result: GpuResult, context: PageContext, evidence: str, *, name: str | None, clock: GpuClock | None
) -> dict[str, Any]:
    """Return all but the picture, with the SHA-256 of its canonical JSON; text from outside is made visible."""
    gpu = result.instance
    told = gpu_result_document(result, name=name, clock=clock)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": make_visible(context.name),
        "verdict": str(result),
        "subject": make_visible(f"{name}: {gpu}" if name else str(gpu)),
        "policy": result.policy,
        "time": None if clock is None else clock.time(result.bounds),
        "clock": None if clock is None else make_visible(str(clock)),
        "best_case": None if result.best_case is None else text.interval_text(result.best_case),
        "result": told,
        "explanation": list(explain_bound(result)),
        "picture": None if result.witness is None else describe_chart(gpu_chart(result, width=WIDTH)),
        "verification": None if context.verdict is None else verification(context.verdict),
        "deadline": deadline_data(context.deadline, result),
        "assumptions": [make_visible(note["text"]) for note in told["assumptions"]],
        "machine": machine_data(gpu.machine, context.machine),
        "more": gpu.sm(1).is_multiprocessor,
        "inputs": list(map(input_data, context.inputs)),
        "bundle_sha256": evidence,
        "commands": [{"what": what, "line": make_visible(line)} for what, line in context.commands],
    }
    return {**content, "sha256": digest(content)}
