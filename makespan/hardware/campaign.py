"""Many runs of a kernel with records on a device, under conditions that change, and the file that keeps them.

The file has JSON lines: first a `Campaign`, which says what was run and where, and then one `CampaignRun` for every
launch, with what every warp wrote down.
"""

import hashlib
import re
import struct
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec

from makespan.hardware.device import (
    CacheState,
    DeviceIdentity,
    DeviceLaunch,
    LaunchExtent,
    MeasuredDevice,
    NeighbourLoad,
)
from makespan.hardware.instrument import RECORD_BYTES
from makespan.host.errors import InputError, MeasurementError
from makespan.host.text_file import decode_text, read_bytes
from makespan.kernels.flow import WARP_LANES

SCHEMA = "makespan.runs/1"
MAX_RUNS = 1_000_000
MAX_THREADS = 1 << 20
MAX_BUFFER_BYTES = 1 << 30
MAX_FILE_BYTES = 1 << 28
MAX_RECORDS = 4_000_000
"""The most records of warps in all runs together, which a file can keep and memory can hold."""
INPUTS = ("zeros", "random")
_OFFSET = re.compile(r"\d{1,3}", re.ASCII)
_RECORD = struct.Struct("<QIIQQ")
_SLACK = 256
_UNSEEN, _MISSING = b"\xff", (1 << 64) - 1

_LineT = TypeVar("_LineT")


class RunCondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The condition under which a run was made.

    Args:
        inputs: the content of buffers without a file: `zeros`, or `random` bytes that differ in every run.
        offset: the bytes by which buffers begin after a multiple of 256.
    """

    inputs: str
    offset: int
    cache: CacheState
    neighbours: NeighbourLoad

    def __post_init__(self) -> None:
        if self.inputs not in INPUTS:
            raise InputError(f"inputs are {' or '.join(INPUTS)}, not {self.inputs!r:.40}")
        if not 0 <= self.offset < _SLACK:
            raise InputError(f"an offset of buffers is 0..{_SLACK - 1} bytes, not {self.offset}")


class WarpRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The record of a warp: its SM, its slot there, and the clock of the SM at its begin and its end."""

    block: int
    warp: int
    sm: int
    slot: int
    start: int
    end: int


class CampaignRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch. `others` are the SMs on which neighbours ran."""

    number: int
    condition: RunCondition
    warps: tuple[WarpRecord, ...]
    others: tuple[int, ...] = ()


class Campaign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The kernel that was run, and the device.

    Args:
        file: the file of the kernel.
        kernel: the name of the kernel.
        code: the SHA-256 of the machine code that ran, including records.
        compiler: the compiler that made it.
        parameters: the parameters by name: numbers, and for buffers their bytes.
        shared: the bytes of dynamic shared memory.
        seed: the seed of random inputs.
    """

    schema: str
    device: DeviceIdentity
    file: str
    kernel: str
    code: str
    compiler: str
    grid: LaunchExtent
    block: LaunchExtent
    shared: int
    parameters: dict[str, str]
    seed: int

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise InputError(f"these are no runs: the schema is {self.schema!r:.40}, not {SCHEMA!r}")
        if min(*self.grid, *self.block) < 1 or self.blocks * self.threads > MAX_THREADS:
            raise InputError(
                f"a launch of {self.blocks} blocks of {self.threads} threads: records can be left by 1..{MAX_THREADS}"
                " threads; launch fewer blocks"
            )

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return prod(self.block)

    @property
    def blocks(self) -> int:
        """Return the number of blocks of the grid."""
        return prod(self.grid)

    @property
    def warps_per_block(self) -> int:
        """Return the number of warps of a block. The last one may have unused lanes."""
        return -(-self.threads // WARP_LANES)

    def check(self, runs: int) -> None:
        """Refuse more runs than can be kept.

        Raises:
            InputError: there are too many. The message says how many can be kept.
        """
        each = self.blocks * self.warps_per_block
        if runs * each > MAX_RECORDS:
            raise InputError(
                f"{runs} runs of {each} warps each leave more than {MAX_RECORDS} records: --runs {MAX_RECORDS // each},"
                " or launch fewer blocks"
            )


class KernelBuffer(msgspec.Struct, frozen=True):
    """Memory whose address a kernel takes. `content` is its content in every run; None leaves it to the inputs."""

    size: int
    content: bytes | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MAX_BUFFER_BYTES:
            raise InputError(f"a buffer has 1..{MAX_BUFFER_BYTES} bytes, not {self.size}")

    def __str__(self) -> str:
        return f"{self.size} bytes" + ("" if self.content is None else f", SHA-256 {code_hash(self.content)}")


def code_hash(image: bytes) -> str:
    """Return the SHA-256 by which machine code is recognised."""
    return hashlib.sha256(image).hexdigest()


def run_conditions(
    inputs: Sequence[str], offsets: Sequence[str], caches: Sequence[str], neighbours: Sequence[str]
) -> tuple[RunCondition, ...]:
    """Return all combinations of these words. Runs go through them in turn.

    Raises:
        InputError: a word that is none of these.
    """
    for name, given, known in (("caches", caches, CacheState), ("neighbours", neighbours, NeighbourLoad)):
        for word in given:
            if word not in list(known):
                raise InputError(f"--{name}: there are {', '.join(known)}, not {word!r:.40}")
    for word in offsets:
        if _OFFSET.fullmatch(word) is None:
            raise InputError(f"--offsets are numbers of bytes with commas between, not {word!r:.40}")
    chosen = product(inputs, map(int, offsets), map(CacheState, caches), map(NeighbourLoad, neighbours))
    return tuple(RunCondition(*each) for each in chosen)


def launch_runs(
    device: MeasuredDevice,
    campaign: Campaign,
    image: bytes,
    arguments: Sequence[bytes | KernelBuffer],
    under: Sequence[RunCondition],
) -> Iterator[CampaignRun]:
    """Launch once for each of these conditions, and yield the runs.

    Args:
        arguments: the bytes of every parameter except the records, or the buffer whose address it is.

    Raises:
        MeasurementError: the device fails, or a thread has left no record.
    """
    threads = campaign.blocks * campaign.threads
    records, draws = device.allocate(threads * RECORD_BYTES), Random(campaign.seed)  # noqa: S311 - inputs, no secrets
    # the slack leaves room for every offset
    places = [device.allocate(each.size + _SLACK) if isinstance(each, KernelBuffer) else 0 for each in arguments]
    device.load(image, campaign.kernel)
    for number, condition in enumerate(under):
        passed = [
            each if isinstance(each, bytes) else (place + condition.offset).to_bytes(8, "little")
            for each, place in zip(arguments, places, strict=True)
        ]
        passed.append(records.to_bytes(8, "little"))
        contents = [
            (place + condition.offset, _content(each, condition.inputs, draws))
            for each, place in zip(arguments, places, strict=True)
            if isinstance(each, KernelBuffer)
        ]
        # a first launch on the same buffers warms the caches, and its records are overwritten
        launches = 2 if condition.cache is CacheState.WARM else 1
        for last in range(launches - 1, -1, -1):
            for address, content in contents:
                device.write(address, content)
            # a record that stays unseen shows a thread that never ended
            device.write(records, _UNSEEN * (threads * RECORD_BYTES))
            if condition.cache is CacheState.COLD:
                device.load(image, campaign.kernel)
            if condition.cache is not CacheState.WARM:
                device.overwrite_cache()
            neighbours = NeighbourLoad.IDLE if last else condition.neighbours  # not while caches warm
            others = device.launch(DeviceLaunch(campaign.grid, campaign.block, campaign.shared, passed), neighbours)
        data = device.read(records, threads * RECORD_BYTES)
        yield CampaignRun(number, condition, tuple(_warp_records(data, campaign)), others)


def _content(buffer: KernelBuffer, inputs: str, draws: Random) -> bytes:
    if buffer.content is not None:
        return buffer.content
    return bytes(buffer.size) if inputs == "zeros" else draws.randbytes(buffer.size)


def _warp_records(data: bytes, campaign: Campaign) -> Iterator[WarpRecord]:
    threads, each = list(_RECORD.iter_unpack(data)), campaign.threads
    for block in range(campaign.blocks):
        for warp in range(campaign.warps_per_block):
            lanes = threads[block * each + warp * WARP_LANES : block * each + min(each, (warp + 1) * WARP_LANES)]
            starts, sms, slots, ends, _ = zip(*lanes, strict=True)
            if _MISSING in (*starts, *ends):
                raise MeasurementError(f"a thread of warp {warp} of block {block} has left no record: it never ended")
            yield WarpRecord(block, warp, sms[0], slots[0], min(starts), max(ends))


def campaign_line(one: Campaign | CampaignRun) -> bytes:
    """Return a line of the file."""
    return msgspec.json.encode(one) + b"\n"


def read_campaign(path: Path) -> tuple[Campaign, tuple[CampaignRun, ...]]:
    """Return the campaign that a file keeps, with at least one run.

    Raises:
        InputError: a file that cannot be read or is too large, or a wrong line; the message has its number.
    """
    first, *others = decode_text(read_bytes(path, "runs", MAX_FILE_BYTES), "runs", str(path)).splitlines() or [""]
    if not 1 <= len(others) <= MAX_RUNS:
        raise InputError(f"{path}: {len(others)} runs below the line of the campaign; expected 1..{MAX_RUNS}")
    campaign = _decode_line(first, Campaign, f"{path}:1")
    about = campaign.device
    texts = campaign.file, campaign.kernel, campaign.compiler, *campaign.parameters, *campaign.parameters.values()
    if not all(text.isprintable() for text in (*texts, about.name, about.driver, about.capability)):
        raise InputError(f"{path}:1: a text has letters that do not print")
    if campaign.shared < 0 or about.sms < 1:
        raise InputError(f"{path}:1: {campaign.shared} bytes of shared memory, {about.sms} SMs: no launch has these")
    runs = tuple(_decode_line(each, CampaignRun, f"{path}:{number}") for number, each in enumerate(others, 2))
    expected = {(block, warp) for block in range(campaign.blocks) for warp in range(campaign.warps_per_block)}
    for number, run in enumerate(runs, 2):
        if len(run.warps) != len(expected) or {(each.block, each.warp) for each in run.warps} != expected:
            raise InputError(f"{path}:{number}: the warps are not those of the launch, each once")
        if any(min(each.sm, each.slot, each.start, each.end) < 0 for each in run.warps):
            raise InputError(f"{path}:{number}: a negative number of an SM, a slot or a clock")
    return campaign, runs


def _decode_line(text: str, kind: type[_LineT], where: str) -> _LineT:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{where}: {error}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
