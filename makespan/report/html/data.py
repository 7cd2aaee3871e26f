"""The pages of results as plain data: each number is computed here, once, and only shown elsewhere."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.model import assumptions
from makespan.model.deadline import Deadline
from makespan.model.gpu import GpuResult
from makespan.model.instance import Instance
from makespan.model.machine import Machine, MachineFile
from makespan.model.result import Result
from makespan.model.simulate import Choices
from makespan.model.wording import pessimistic_meaning, pessimistic_name
from makespan.proof.policy_gap import PolicyGap, PolicyRow
from makespan.report import simulation
from makespan.report.gantt.chart import Gantt
from makespan.report.gpu.document import GpuClock, gpu_result_document
from makespan.report.gpu.picture import describe_chart, gpu_chart
from makespan.report.gpu.text import explain_bound
from makespan.report.html.chart import chart_data, occupancy_data, warp_table
from makespan.report.html.page import render_gpu_page
from makespan.report.lines import make_visible
from makespan.report.policy_gap import gap_summary
from makespan.report.result import text
from makespan.report.result.document import deadline_document, result_document
from makespan.report.schedule.activity import ScheduleTrace
from makespan.report.schedule.costs import Cost, InstructionCost, KernelCosts, kernel_costs
from makespan.report.schedule.explanation import explain_trace, explanation_document
from makespan.report.schedule.explanation import explanation_words as sentence
from makespan.report.schedule.timeline import timeline_text
from makespan.verify import digest

if TYPE_CHECKING:
    from makespan.kernels import ptx, sass
    from makespan.kernels.flow import LoopInfo
    from makespan.verify import Verdict

SCHEMA = "makespan.page/2"
MOST_TABLE_ROWS = 256
MOST_INSTRUCTIONS = 1000
_MOST_OF_A_LINE = 200
_COLUMNS_OF_LETTERS = 120


class PageInput(NamedTuple):
    """An input of the command: its kind, its name as it was given, and its content."""

    what: str
    name: str
    content: bytes


class PageCommand(NamedTuple):
    """A command line that makes a part of this page again."""

    what: str
    line: str


@dataclass(frozen=True, slots=True)
class PageContext:
    """The facts about a page that the caller knows and the result does not have.

    Args:
        name: the subject of the page, as it was given.
        choices: the choices that no policy makes.
        inputs: everything that was read.
        commands: the commands that do all this again.
        machine: the file of the machine. None means that its numbers come from elsewhere.
        kernel: the kernel. None means that the source is no kernel.
        loops: the loops of the kernel. None means that there is no kernel.
        curve: results for several numbers of warps, in increasing order. None means that it was not asked for.
        missing: the numbers of warps that were asked for but not computed.
        verdict: the verdict of the independent checker. None means that it was not asked for.
        deadline: the deadline. None means that there is none.
    """

    name: str
    choices: Choices
    inputs: tuple[PageInput, ...] = ()
    commands: tuple[PageCommand, ...] = ()
    machine: MachineFile | None = None
    kernel: "ptx.PtxKernel | sass.SassKernel | None" = None
    loops: "tuple[LoopInfo, ...] | None" = None
    curve: tuple[Result, ...] | None = None
    missing: tuple[int, ...] = ()
    verdict: "Verdict | None" = None
    deadline: Deadline | None = None


def page_data(gap: PolicyGap, context: PageContext, evidence: str) -> dict[str, Any]:
    """Return the page as plain data, with the SHA-256 of its canonical JSON.

    Text from outside has passed `make_visible`, and what is not known is None. `result` is the JSON of `makespan
    solve`.

    Args:
        gap: the result and the runs of policies that it encloses.
        evidence: the SHA-256 in the bundle of the result.
    """
    result = gap.result
    trace = ScheduleTrace.of(result.instance, result.witness)
    instance, witness = trace.instance, trace.schedule
    explained, name = explain_trace(trace), pessimistic_name(instance.machine, runs_ahead=instance.runs_ahead)
    costs = kernel_costs(instance, trace.bars, trace.waits, context.kernel, _texts(context.inputs))
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": make_visible(context.name),
        "verdict": text.verdict_line(result),
        "subject": make_visible(text.subject_line(result)),
        "bound": {"name": name, "remark": pessimistic_meaning(name, lapses=result.lapses is not None)},
        "result": {**result_document(result), "explanation": explanation_document(explained)},
        "explanation": sentence(explained),
        "verification": None if context.verdict is None else verification(context.verdict),
        "deadline": deadline_data(context.deadline, result),
        "ladder": list(_ladder(gap)),
        **_lapses(result),
        "policies": {"settings": simulation.describe_settings(instance, context.choices), "summary": gap_summary(gap)},
        "assumptions": [make_visible(str(note)) for note in result.assumptions],
        "loops": None if context.loops is None else list(map(_loop, context.loops)),
        "instance": _instance(instance),
        "machine": machine_data(instance.machine, context.machine),
        "occupancy": occupancy_data(trace),
        "warps": {
            "listed": list(warp_table(trace, MOST_TABLE_ROWS)),
            "left_out": max(0, instance.warps - MOST_TABLE_ROWS),
            "more": instance.is_multiprocessor,
        },
        "costs": None if costs is None else _costs(costs),
        "curve": None if context.curve is None else list(map(_point, context.curve)),
        "curve_missing": list(context.missing),
        "letters": timeline_text(instance, witness, width=_COLUMNS_OF_LETTERS),
        "chart": chart_data(trace),
        "inputs": list(map(input_data, context.inputs)),
        "bundle_sha256": evidence,
        "commands": [{"what": what, "line": make_visible(line)} for what, line in context.commands],
    }
    return {**content, "sha256": digest(content)}


def _ladder(gap: PolicyGap) -> Iterator[dict[str, Any]]:
    """Yield the rows of the ladder, from the best case to the most robust bounds.

    If there is a certificate, a row has what its potentials alone prove.
    """
    *rows, last = gap.rows()
    for row in rows:
        yield row._asdict()
    if certificate := gap.result.certificate:
        upper, remark = certificate.upper, "potentials alone, checked by themselves"
        yield PolicyRow("certificate", "bound", upper, upper, remark)._asdict()
    yield last._asdict()
    for name, cycles, remark in text.robust_rows(gap.result):
        yield PolicyRow(name, "bound", cycles, cycles, remark)._asdict()


def _lapses(result: Result) -> dict[str, Any]:
    """Return the parts of a bound that holds with lapses; empty if there are none."""
    if result.lapses is None:
        return {}
    parts = text.lapse_rows(result.instance, result.lapses)
    return {"lapses": [{"name": name, "cycles": cycles, "remark": remark} for name, cycles, remark in parts]}


def verification(verdict: "Verdict") -> dict[str, Any]:
    """Return the verdict of the independent checker as plain data."""
    return {
        "outcome": str(verdict.outcome),
        "reason": make_visible(verdict.reason),
        "lower": verdict.lower,
        "upper": verdict.upper,
    }


def deadline_data(gate: Deadline | None, result: Result | GpuResult) -> dict[str, Any] | None:
    """Return whether the worst case is in time, with a sentence that says so."""
    if gate is None:
        return None
    said = make_visible(text.deadline_verdict(gate, result.bounds, result.caveats))
    return {"words": said, **deadline_document(gate, result.bounds)}


def _loop(loop: "LoopInfo") -> dict[str, Any]:
    bound = loop.bound
    return {
        "label": make_visible(loop.label),
        # a loop of machine code has no line: its label is its address
        "line": None if str(loop.line) == loop.label else loop.line,
        "source_line": None if loop.source_line is None else make_visible(str(loop.source_line)),
        "depth": loop.depth,
        "bound": None if bound is None else bound.maximum,
        "exact": None if bound is None else bound.exact,
        "bound_source": None
        if bound is None
        else make_visible("".join([bound.source, *(f", or {b}" for b in loop.others)])),
        "origin": None if loop.origin is None else make_visible(loop.origin),
    }


def _instance(instance: Instance) -> dict[str, Any]:
    return {
        "warps": instance.warps,
        "blocks": instance.blocks,
        "groups": [
            {
                "warps": group.warps,
                "letters": None if group.program.letters is None else make_visible(group.program.letters),
                "places": group.program.end,
                "least": group.program.least(),
                "most": group.program.most(),
                "per_class": [
                    {"unit": unit, "least": group.program.least(unit), "most": group.program.most(unit)}
                    for unit in instance.machine.capacities
                ],
            }
            for group in instance.groups
        ],
    }


def machine_data(machine: Machine, file: MachineFile | None) -> dict[str, Any]:
    """Return a machine, and the sources of its numbers if it comes from a file."""
    untimed = [assumptions.untimed_classes(machine.name, machine.untimed)] if machine.untimed else []
    return {
        "name": make_visible(machine.name),
        "issue_width": machine.issue_width,
        "units": [
            {"name": u.name, "capacity": u.capacity, "interval": u.interval, "latency": str(u.latency)}
            for u in machine.units
        ],
        "caveats": [make_visible(str(note)) for note in (*machine.caveats, *untimed)],
        "source": None if file is None or file.source is None else make_visible(file.source),
        "figures": None if file is None else [
            {
                "key": make_visible(datum.key),
                "value": str(datum.value),
                "source": None if datum.source is None else make_visible(datum.source),
                "verified": datum.verified,
            }
            for datum in file.data
        ],
    }  # fmt: skip


def _costs(table: KernelCosts) -> dict[str, Any]:
    """Return the costs of a kernel; they may leave out the cheapest instructions.

    `file` is the only file of the source, if there is one.
    """
    # the costliest instructions are listed, in the order of the text
    hot = sorted(range(len(table.instructions)), key=lambda at: -table.instructions[at].cost.cycles)
    listed = sorted(hot[:MOST_INSTRUCTIONS])
    numbered = {at: number for number, at in enumerate(listed)}
    files = {row.source.place.rpartition(":")[0] for row in table.sources if row.source.place}
    return {
        "total": _cost(table.total),
        "file": make_visible(files.pop()) if len(files) == 1 else None,
        "instructions": [_instruction(table.instructions[at]) for at in listed],
        "left_out": len(table.instructions) - len(listed),
        "sources": [
            {
                "source": make_visible(row.source.place),
                "text": make_visible(row.source.text, _MOST_OF_A_LINE),
                "instructions": [numbered[at] for at in row.instructions if at in numbered],
                **_cost(row.cost),
            }
            for row in table.sources[:MOST_INSTRUCTIONS]
        ],
    }


def _instruction(row: InstructionCost) -> dict[str, Any]:
    return {
        "line": make_visible(row.instruction.place),
        "text": make_visible(row.instruction.text, _MOST_OF_A_LINE),
        "control": row.control,
        "ptx": row.ptx.place,
        "ptx_text": make_visible(row.ptx.text, _MOST_OF_A_LINE),
        "source": make_visible(row.source.place),
        "source_text": make_visible(row.source.text, _MOST_OF_A_LINE),
        **_cost(row.cost),
    }


def _cost(cost: Cost) -> dict[str, int]:
    return {**cost._asdict(), "cycles": cost.cycles}


def _texts(inputs: Sequence[PageInput]) -> dict[str, list[str]]:
    return {each.name: each.content.decode("utf-8", "replace").split("\n") for each in inputs}


def _point(result: Result) -> dict[str, Any]:
    return {
        "warps": result.instance.warps,
        "status": str(result.status),
        "lower": result.bounds.lower,
        "upper": result.bounds.upper,
        "pessimistic": result.pessimistic,
        "evidence": str(result.upper_evidence),
    }


def input_data(given: PageInput) -> dict[str, Any]:
    """Return an input with its digest."""
    return {
        "what": given.what,
        "name": make_visible(given.name),
        "bytes": len(given.content),
        "sha256": hashlib.sha256(given.content).hexdigest(),
    }


GPU_SCHEMA = "makespan.gpu-page/1"


def gpu_page(
    result: GpuResult, context: PageContext, evidence: str, *, name: str | None, clock: GpuClock | None
) -> str:
    """Return the HTML of a result, with its picture; equal arguments give equal text.

    Args:
        evidence: the SHA-256 in the bundle of the result.
        name: the name of the GPU.
    """
    chart = None if result.witness is None else gpu_chart(result)
    return render_gpu_page(gpu_page_data(result, context, evidence, chart, name=name, clock=clock), chart)


def gpu_page_data(
    result: GpuResult,
    context: PageContext,
    evidence: str,
    chart: Gantt | None,
    *,
    name: str | None,
    clock: GpuClock | None,
) -> dict[str, Any]:
    """Return all but the picture, with the SHA-256 of its canonical JSON. Text from outside is made visible."""
    gpu = result.instance
    told = gpu_result_document(result, name=name, clock=clock)
    content: dict[str, Any] = {
        "schema": GPU_SCHEMA,
        "name": make_visible(context.name),
        "verdict": str(result),
        "subject": make_visible(f"{name}: {gpu}" if name else str(gpu)),
        "policy": result.policy,
        "time": None if clock is None else clock.time(result.bounds),
        "clock": None if clock is None else make_visible(str(clock)),
        "best_case": None if result.best_case is None else text.interval_text(result.best_case),
        "result": told,
        "explanation": list(explain_bound(result)),
        "picture": None if chart is None else describe_chart(chart),
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
