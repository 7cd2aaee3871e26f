"""Solves that are stopped at random moments, run by `make soak`: what they print is proven all the same."""

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from makespan.model.strings import NamedInstance, read_instances

SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
STOPS = 100
LONG = read_instances(Path(__file__).parents[2] / "instruction_strings" / "long.jsonl")
START_UP = 0.7
"""Seconds after which the signal handler is in place, on a slow machine too."""


def command(named: NamedInstance, *options: str) -> list[str]:
    capacity = ",".join(f"{unit}={units}" for unit, units in named.instance.machine.capacities.items())
    string = named.instance.groups[0].program.letters or ""
    given = ["--string", string, "--warps", str(named.instance.warps), "--capacity", capacity]
    return [sys.executable, "-m", "makespan", "solve", *given, "--format", "json", "--best-case", *options]


def checked(named: NamedInstance, ran: "subprocess.Popen[str]", allowed: set[int]) -> str:
    """What the process printed is a correct interval, without a traceback; its status."""
    out, err = ran.communicate(timeout=120)
    assert "Traceback" not in err, err
    assert ran.returncode in allowed, (ran.returncode, err)
    result = json.loads(out)
    assert named.makespan is not None
    assert result["lower"] <= named.makespan <= result["upper"], result
    assert result["status"] == ("exact" if result["lower"] == result["upper"] else "bounded")
    best = result["best_case"] if isinstance(result["best_case"], list) else [result["best_case"]] * 2
    assert best[0] <= best[1] <= result["lower"] <= named.makespan
    assert ran.returncode == 130 or (ran.returncode == 0) == (result["status"] == "exact")
    return str(result["status"])


def start(arguments: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.soak
def test_an_interval_is_correct_whenever_and_however_the_solve_is_stopped() -> None:
    print(f"MAKESPAN_SEED={SEED}")
    draw = random.Random(SEED)
    statuses: dict[str, list[str]] = {"time": [], "memory": [], "interrupt": []}
    for number in range(STOPS):
        named, backend = draw.choice(LONG), draw.choice(("auto", "auto", "search", "certificate", "cpsat"))
        how = list(statuses)[number % 3]
        options = ["--backend", backend, "--threads", str(draw.choice((1, 2)))]
        if how == "time":
            ran = start(command(named, *options, "--time-limit", str(draw.uniform(0.01, 8))))
            allowed = {0, 3}
        elif how == "memory":
            size = f"{draw.randint(1, 200)}MiB"
            ran = start(command(named, *options, "--memory-limit", size, "--time-limit", "10"))
            allowed = {0, 3}
        else:
            ran = start(command(named, *options, "--time-limit", "60"))
            time.sleep(START_UP + draw.uniform(0, 8))
            ran.send_signal(signal.SIGINT)
            allowed = {0, 3, 130}
        statuses[how].append(checked(named, ran, allowed))
    print({how: {status: found.count(status) for status in set(found)} for how, found in statuses.items()})
