"""The bundle of a whole GPU: a result with all evidence as JSON, schema `makespan.gpu-bundle/2`, for `makespan verify`.

The reader is `makespan.verify.gpu_reading`; both follow docs/schema/gpu-bundle-2.schema.json and share no code.
"""

import hashlib
from pathlib import Path
from typing import Any

from makespan.model.gpu import BlockTrace, GpuInstance, GpuResult, GpuSchedule, Grid, RepeatedCycles, SmHistory
from makespan.model.instance import Instance
from makespan.model.machine import WarpAssignment
from makespan.model.program import merge_groups
from makespan.model.result import Result
from makespan.report.result.bundle import (
    canonical_json,
    group_document,
    named_machine_document,
    piece_document,
    run_lengths,
    uses_document,
    weights_document,
    write_json,
)
from makespan.version import versions

SCHEMA = "makespan.gpu-bundle/2"


def gpu_bundle(result: GpuResult) -> dict[str, Any]:
    """Return instance, claim and evidence as plain data, with the SHA-256 of their canonical JSON.

    Of a GPU with lapses the evidence is that of the result without them. What lapses add follows from the instance, and
    from the weights of pairs.
    """
    gpu, proven = result.instance, result.without_lapses or result
    # the bound with lapses may count pairs where the one without them does not, or by other weights
    parts = [each.last_dispatch for each in (proven, result) if each.last_dispatch is not None]
    weights = dict.fromkeys(item for last in parts for item in last.weights)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "instance": gpu_question_data(gpu),
        "result": _claim_data(result),
        "witness": None if result.witness is None else _schedule_data(gpu, result.witness),
        "shortest": None if result.shortest is None else _schedule_data(gpu, result.shortest),
        "weights": [weights_document(item) for item in weights],
        "sms": [_sm_piece(gpu, each) for each in result.sms],
    }
    return {**content, "sha256": hashlib.sha256(canonical_json(content)).hexdigest()}


def write_gpu_bundle(result: GpuResult, path: Path) -> None:
    """Write the bundle of `result` to `path`, whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    write_json(gpu_bundle(result), path)


def gpu_question_data(gpu: GpuInstance) -> dict[str, Any]:
    """Return only the question as plain data. Equal instances give equal data."""
    known = gpu.machine.lapses
    return {
        "machine": named_machine_document(gpu.machine),
        "grids": list(map(_grid_data, gpu.grids)),
        "sms": gpu.sms,
        "room": list(gpu.room),
        "dispatch": gpu.dispatch,
        **({"dram": gpu.dram} if gpu.dram else {}),
        **({"expiry": known.expiry} if known is not None and gpu.has_lapses else {}),
    }


def _grid_data(grid: Grid) -> dict[str, Any]:
    programs = merge_groups(grid.block)
    number = {program: number for number, (program, _) in enumerate(programs)}
    order = [[number[program], warps] for program, warps in grid.block]
    return {
        "block": [group_document(program, warps) for program, warps in programs],
        **({"order": order} if len(order) > len(programs) else {}),
        "blocks": grid.blocks,
        "takes": list(grid.takes),
    }


def _claim_data(result: GpuResult) -> dict[str, Any]:
    plain = result.without_lapses
    return {
        **_numbers(result),
        **({} if plain is None else {"without_lapses": _numbers(plain)}),
        "seconds": round(result.seconds, 6),
        "interrupted": result.interrupted,
        "assumptions": [note.document for note in result.assumptions],
        "versions": versions(),
    }


def _numbers(result: GpuResult) -> dict[str, Any]:
    best = result.best_case
    return {
        "status": str(result.status),
        "lower": result.bounds.lower,
        "upper": result.bounds.upper,
        "evidence": result.upper_evidence,
        "best_case": None if best is None else best.lower if best.lower == best.upper else [best.lower, best.upper],
    }


def _schedule_data(gpu: GpuInstance, schedule: GpuSchedule) -> dict[str, Any]:
    return {
        "courses": [_course_data(gpu, course) for course in schedule.courses],
        "histories": [_history_data(gpu, history) for history in schedule.histories],
    }


def _course_data(gpu: GpuInstance, course: BlockTrace) -> dict[str, Any]:
    grid = gpu.grids[course.grid]
    chains = all(program.is_chain for program, _ in grid.block)
    return {
        "grid": course.grid,
        "paths": None if chains else run_lengths(course.paths),
        "latencies": None if _fixed_latencies(gpu, grid) else run_lengths(course.latencies),
        **({} if gpu.machine.fixed_uses else {"uses": run_lengths(list(map(uses_document, course.uses)))}),
    }


def _fixed_latencies(gpu: GpuInstance, grid: Grid) -> bool:
    return Instance.merged(grid.block, gpu.machine).fixed_latencies


def _history_data(gpu: GpuInstance, history: SmHistory) -> dict[str, Any]:
    machine = gpu.machine
    is_free = machine.partitions > 1 and (len(gpu.grids) > 1 or machine.assignment is WarpAssignment.ANY)
    return {
        "sms": history.sms,
        **({"partitions": [list(row) for row in history.partitions]} if is_free else {}),
        "stretches": list(map(_stretch_data, history.stretches)),
    }


def _stretch_data(stretch: RepeatedCycles) -> dict[str, Any]:
    cycles = [[count, [list(warp) for warp in warps]] for count, warps in run_lengths(stretch.cycles)]
    return {"repeat": stretch.repeat, "begins": [list(begin) for begin in stretch.begins], "cycles": cycles}


def _sm_piece(gpu: GpuInstance, result: Result) -> dict[str, Any]:
    found = result.without_lapses or result
    weights = dict.fromkeys((*found.weights, *(result.lapses.base.weights if result.lapses else ())))
    return {
        "blocks": result.instance.warps // gpu.grid.warps,
        **piece_document(found.proven),
        "weights": [weights_document(item) for item in weights],
        "phases": [piece_document(phase) for phase in found.phases],
    }
