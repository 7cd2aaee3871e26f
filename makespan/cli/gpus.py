"""`makespan machines --gpus`: the GPUs that come with the package, and where their numbers come from."""

from collections.abc import Iterator, Sequence

from makespan.cli.output import render
from makespan.host.errors import InputError
from makespan.model.machine.gpus import Gpu, find_gpu, shipped_gpus
from makespan.report.lines import align_columns, bullet_lines, fact_lines, terminal_width

_HEADER = (
    *("name", "architecture", "capability", "machine", "SMs", "base, GHz", "boost, GHz"),
    *("DRAM, GB/s", "L2, MiB", "MIG"),
)


def gpus_text(name: str | None, output: str) -> str:
    """Return the GPUs that come with the package, or the page of one of this name or file, in a format.

    Raises:
        InputError: there is no such GPU, or no number in its file.
    """
    files = list(shipped_gpus().values()) if name is None else [find_gpu(name)]
    if not all(file.data for file in files):
        raise InputError(f"{name}: there is no number of a GPU in it, such as sms: see docs/gpus.md")
    return render(
        output,
        text=lambda: "\n".join(_table(files) if name is None else _page(files[0])),
        data=lambda: map(_document, files),
    )


def _table(files: Sequence[Gpu]) -> Iterator[str]:
    yield from align_columns([_HEADER, *map(_row, files)], right=(4, 5, 6, 7, 8, 9))


def _row(gpu: Gpu) -> tuple[str, ...]:
    named = gpu.name, gpu.architecture, gpu.compute_capability, _machine(gpu)
    counted = (_number(gpu, key) for key in ("sms", "base_clock_ghz", "clock_ghz", "mem_bw_gbs"))
    cache = None if gpu.missing("l2_bytes") else f"{gpu.whole('l2_bytes') / 2**20:g}"
    return *(text or "-" for text in (*named, *counted, cache)), str(len(gpu.mig) or "-")


def _number(gpu: Gpu, key: str) -> str | None:
    return None if gpu.missing(key) else f"{gpu.datum(key).value}"


def _machine(gpu: Gpu) -> str | None:
    try:
        return gpu.machine.name
    except InputError:
        return None


def _page(gpu: Gpu) -> Iterator[str]:
    yield f"GPU {gpu.name}"
    about = {"architecture": gpu.architecture, "capability": gpu.compute_capability, "machine": _machine(gpu)}
    width = terminal_width()
    yield from fact_lines({name: text or "-" for name, text in about.items()}, width)
    yield from bullet_lines("notes", gpu.notes, width)
    yield "numbers:"
    rows = [
        (f"  {key}", f"{datum.value} {datum.unit}".strip(), datum.status, datum.source)
        for key, datum in gpu.data.items()
    ]
    yield from align_columns(rows, right=[1])


def _document(gpu: Gpu) -> dict[str, object]:
    return {
        "schema": "makespan.gpu/1",
        "name": gpu.name,
        "architecture": gpu.architecture,
        "compute_capability": gpu.compute_capability,
        "machine": _machine(gpu),
        "mig": gpu.mig,
        "notes": list(gpu.notes),
        "figures": [
            {"key": key, "value": each.value, "unit": each.unit, "status": str(each.status), "source": each.source}
            for key, each in gpu.data.items()
        ],
    }
