"""Damaged PTX: whatever the text, there is a program or one clear refusal, soon and within memory."""

import os
import random
import resource
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from makespan.errors import InputError
from makespan.ptx import bounds_template, decode, parse, program
from makespan.ptx.launch import Launch

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
MOST_SECONDS = 20.0
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
        data, began = damaged(draw), time.monotonic()
        stage, said = "text", "a program"
        try:
            module = parse(decode(data, "damaged.ptx"), "damaged.ptx")
            stage = "module"
            for kernel in module.kernels:
                bounds_template(kernel)
                if number % 4 == 0:
                    program(kernel, launch=Launch((64, 1, 1)), unknown="C")
                    stage = "program"
        except InputError as refusal:
            said = str(refusal)
        assert said
        spent = time.monotonic() - began
        assert spent < MOST_SECONDS, (spent, data)
        yield stage


def check(count: int, seed: int) -> dict[str, int]:
    found = list(outcomes(count, random.Random(seed)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES
    return {stage: found.count(stage) for stage in sorted(set(found))}


def test_damaged_text_ends_in_a_program_or_a_refusal() -> None:
    assert set(check(150, seed=3)) == {"text", "module", "program"}


@pytest.mark.soak
def test_damaged_text_ends_in_a_program_or_a_refusal_in_a_long_campaign() -> None:
    print(f"MAKESPAN_SEED={SEED}", check(50_000, SEED))
