"""The JSON of an assessment, schema `makespan.schedulability/2`."""

from fractions import Fraction
from typing import Any

from msgspec import to_builtins

from makespan.deadlines.assessment import Assessment
from makespan.deadlines.assignment import KernelAssignment
from makespan.deadlines.report.text import executions
from makespan.deadlines.sensitivity import FewestSms, Margin
from makespan.deadlines.task import GpuPartition, GpuTask, JobSegment, Slices, TaskChain
from makespan.deadlines.verdict import ChainVerdict, Miss, ResourceLoad, TaskVerdict
from makespan.deadlines.wcet import Wcet, WcetGround
from makespan.version import versions

SCHEMA = "makespan.schedulability/2"


def document(assessment: Assessment) -> dict[str, Any]:
    """Return an assessment as plain data; times are whole ticks, of which `tick` says how long one is."""
    verdict, assignment = assessment.verdict, assessment.assignment
    found = {} if verdict is None else {task.task: task for task in verdict.tasks}
    return {
        "schema": SCHEMA,
        "answer": str(assessment.answer),
        "supposes": list(assessment.supposes),
        "caveats": list(assessment.caveats),
        "assumed_spin": list(assessment.assumed_spin),
        "interrupted": assessment.is_interrupted,
        "file": assessment.where,
        "tick": str(assessment.tick),
        "clock_hz": None if assessment.clock is None else str(assessment.clock),
        "priorities": None if assessment.priorities is None else str(assessment.priorities),
        "gpu": assessment.gpu,
        "partitions": [_partition(p, assessment.sms[p.name]) for p in assessment.task_set.partitions],
        "copy_engines": [{"name": e.name, "policy": str(e.policy)} for e in assessment.task_set.engines],
        "tasks": [_task(task, assessment, found.get(task.name)) for task in assessment.task_set.tasks],
        "loads": [_load(load) for load in ((assessment.demand,) if verdict is None else verdict.loads)],
        "chains": [] if verdict is None else [*map(_chain, assessment.task_set.chains, verdict.chains)],
        "assignment": None if assignment is None else _fields(assignment, "questions"),
        "margins": [_fields(margin) for margin in assessment.margins],
        "fewest_sms": [_fewest(each) for each in assessment.fewest],
        "assumptions": list(assessment.notes),
        "versions": versions(),
    }


def _fields(value: Margin | Miss | KernelAssignment | Slices, *less: str) -> dict[str, Any]:
    """Return the fields of a value but these, as the schema calls them, with exact ratios as text."""
    return {k: v for k, v in to_builtins(value, enc_hook=str).items() if k not in less}


def _partition(partition: GpuPartition, sms: int) -> dict[str, Any]:
    slices = partition.slices
    return {
        "name": partition.name,
        "policy": str(partition.policy),
        "slices": None if slices is None else _fields(slices),
        "sms": sms,
    }


def _task(task: GpuTask, assessment: Assessment, about: TaskVerdict | None) -> dict[str, Any]:
    response = None if about is None else about.response
    return {
        "name": task.name,
        "core": task.core,
        "wait": None if task.wait is None else str(task.wait),
        "context": task.context,
        "priority": task.priority,
        "period": task.period,
        "deadline": task.deadline,
        "jitter": task.jitter,
        "offset": task.offset,
        "wcet": sum(segment.wcet for segment in task.segments),
        "segments": [_segment(segment, wcet) for segment, wcet in executions(task, assessment.wcets)],
        "answer": None if about is None else str(about.answer),
        "response": response,
        "slack": None if response is None else task.deadline - response,
        "parts": [] if about is None else [{"name": name, "ticks": ticks} for name, ticks in about.parts],
        "response_is_exact": about is not None and about.is_exact,
        "response_is_attained": about is not None and about.is_attained,
        "method": None if about is None else about.method,
        "miss": None if about is None or about.miss is None else _fields(about.miss, "task"),
    }


def _segment(segment: JobSegment, wcet: Wcet | None) -> dict[str, Any]:
    """Return a segment; CPU time is given with the task, and no execution time stands beside it."""
    return {
        "kind": str(segment.kind),
        "place": segment.resource,
        "delay": segment.delay,
        "wcet": segment.wcet,
        "wcet_cycles": None if wcet is None else wcet.cycles,
        "wcet_by": str(WcetGround.GIVEN if wcet is None else wcet.kind),
        "wcet_is_exact": wcet is not None and wcet.is_exact,
        "wcet_attained": segment.attained if segment.is_shown else None,
        "evidence": None if wcet is None else wcet.evidence,
        "caveats": [] if wcet is None else list(wcet.caveats),
    }


def _load(load: ResourceLoad) -> dict[str, Any]:
    return {
        "name": load.name,
        "demand": str(Fraction(load.numerator, load.denominator)),
        "overload": load.is_overload,
        "attained": str(load.attained),
        "supposes": list(load.supposes),
    }


def _chain(asked: TaskChain, chain: ChainVerdict) -> dict[str, Any]:
    return {
        "name": chain.chain,
        "tasks": list(asked.tasks),
        "activation": str(asked.activation),
        "deadline": asked.deadline,
        "slack": None if asked.deadline is None or chain.reaction is None else asked.deadline - chain.reaction,
        "reaction": chain.reaction,
        "age": chain.age,
        "answer": str(chain.answer),
        "method": chain.method,
    }


def _fewest(fewest: FewestSms) -> dict[str, Any]:
    found = fewest.found
    return {
        "partition": fewest.partition,
        "most": fewest.most,
        "sms": None if found is None else dict(found.sms),
        "tried": [
            {
                "sms": dict(tried.sms),
                "unproven": list(tried.unproven),
                "wcet_seconds": {name: str(seconds) for name, seconds in tried.seconds.items()},
            }
            for tried in fewest.tried
        ],
    }
