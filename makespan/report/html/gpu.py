"""The page about a whole GPU, as plain data and as text."""

from typing import Any

from makespan.model.gpu import GpuResult
from makespan.report.gpu.clock import Clock
from makespan.report.gpu.document import document
from makespan.report.gpu.picture import NARROW, WIDTH, chart, in_words, rendered_gpu
from makespan.report.gpu.text import explanation
from makespan.report.html.data import Context, deadline_data, input_data, machine_data, verification
from makespan.report.html.page import render_gpu
from makespan.report.html.visible import visible
from makespan.report.result import text
from makespan.verify import digest

SCHEMA = "makespan.gpu-page/1"


def gpu_page(result: GpuResult, context: Context, evidence: str, *, name: str | None, clock: Clock | None) -> str:
    """Return the HTML of a result, with its picture; equal arguments give equal text.

    Args:
        evidence: the SHA-256 in the bundle of the result.
        name: of the GPU.
    """
    widths = () if result.witness is None else (WIDTH, NARROW)
    pictures = [rendered_gpu(result, ".png", width=width, is_titled=False) for width in widths]
    return render_gpu(gpu_page_data(result, context, evidence, name=name, clock=clock), pictures)


def gpu_page_data(
    result: GpuResult, context: Context, evidence: str, *, name: str | None, clock: Clock | None
) -> dict[str, Any]:
    """Return all but the picture, with the SHA-256 of its canonical JSON; text from outside has passed `visible`."""
    gpu = result.instance
    told = document(result, name=name, clock=clock)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": visible(context.name),
        "verdict": str(result),
        "subject": visible(f"{name}: {gpu}" if name else str(gpu)),
        "policy": result.policy,
        "time": None if clock is None else clock.time(result.bounds),
        "clock": None if clock is None else visible(str(clock)),
        "best_case": None if result.best_case is None else text.interval(result.best_case),
        "result": told,
        "explanation": list(explanation(result)),
        "picture": None if result.witness is None else in_words(chart(result, width=WIDTH)),
        "verification": None if context.verdict is None else verification(context.verdict),
        "deadline": deadline_data(context.deadline, result),
        "assumptions": [visible(note["text"]) for note in told["assumptions"]],
        "machine": machine_data(gpu.machine, context.machine),
        "more": gpu.sm(1).is_multiprocessor,
        "inputs": list(map(input_data, context.inputs)),
        "bundle_sha256": evidence,
        "commands": [{"what": what, "line": visible(line)} for what, line in context.commands],
    }
    return {**content, "sha256": digest(content)}
