"""Damaged PTX: whatever the text, there is a program or one clear refusal, soon and within memory."""

import os
import random
import resource
import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from makespan.host.errors import InputError
from makespan.kernels.flow.grid import Launch
from makespan.kernels.ptx import bounds_template, decode, parse, program
from tests.effort import TooManyCalls, calls

SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
SAMPLES = [path.read_bytes() for path in sorted((Path(__file__).parents[2] / "ptx").glob("*.ptx"))]
WORDS = (
    *b"{ } ( ) @%p1 ret; $L__BB0_1: $L__BB0_1 :: ;; @ /* */ bra \x00 \xff\xfe".split(),
    *(
        b"\n%s\n" % line
        for line in (b"call f;", b"brx.idx %r1, t;", b"bar.sync 0;", b".loc 1 2 3", b"// makespan: loop 9")
    ),
    *(b'"', b" ", b"9" * 40),
)
MOST_CALLS = 5_000_000
"""Some seconds; the samples themselves take up to 200,000."""
MOST_BYTES = 1 << 30


def damaged(draw: random.Random) -> bytes:
    """A sample with bytes, words or lines changed, moved or taken away."""
    data = bytearray(draw.choice(SAMPLES))
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at, to = sorted((draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)))
        match draw.randrange(7):
            case 0 if at < len(data):
                data[at] = draw.randrange(256)
            case 1:
                data[at:at] = draw.choice(WORDS)
            case 2:
                del data[at : min(to, at + 40)]
            case 3:
                data[at:at] = data[at : min(to, at + 400)]
            case 4:
                lines = bytes(data).split(b"\n")
                first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
                lines[first], lines[second] = lines[second], lines[first]
                data = bytearray(b"\n".join(lines))
            case 5:
                data = data[:at] if draw.random() < 0.2 else data
            case _:
                data = data.replace(b"$L__BB0_%d" % draw.randrange(8), b"$L__BB0_%d" % draw.randrange(8))
    return bytes(data)


def outcomes(count: int, draw: random.Random) -> Iterator[str]:
    """What becomes of so many damaged texts: `text`, `module` or `program`, as far as it got."""
    for number in range(count):
        data, reached = damaged(draw), ["text"]
        said = "a program"
        try:
            calls(partial(read, data, reached, whole=number % 4 == 0), MOST_CALLS)
        except InputError as refusal:
            said = str(refusal)
        except TooManyCalls:
            pytest.fail(f"too much to do: {data!r}")
        assert said
        yield reached[-1]


def read(data: bytes, reached: list[str], *, whole: bool) -> None:
    """What a command does with a text, up to the programs of its kernels; notes how far it got."""
    module = parse(decode(data, "damaged.ptx"), "damaged.ptx")
    reached.append("module")
    for kernel in module.kernels:
        bounds_template(kernel)
        if whole:
            program(kernel, launch=Launch((64, 1, 1)), unknown="C")
            reached.append("program")


def check(count: int, seed: int) -> dict[str, int]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # other tests have run in this process
    found = list(outcomes(count, random.Random(seed)))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES
    return {stage: found.count(stage) for stage in sorted(set(found))}


def test_damaged_text_ends_in_a_program_or_a_refusal() -> None:
    assert set(check(150, seed=3)) == {"text", "module", "program"}


@pytest.mark.soak
def test_damaged_text_ends_in_a_program_or_a_refusal_in_a_long_campaign() -> None:
    print(f"MAKESPAN_SEED={SEED}", check(50_000, SEED))
