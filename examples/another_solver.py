"""Another solver on the library of instances: a few lines that find long schedules, checked by `makespan benchmark`.

It reads what `makespan benchmark show` prints, runs every instance under random priorities, and writes the longest
schedule of each as a line of results. It knows nothing else of this program; any language would do.
"""

import json
import random
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from makespan import cli

LIBRARY = str(Path(__file__).parents[1] / "benchmarks" / "library")
RUNS = 10

Cycles = list[list[Any]]


def run(strings: list[str], units: dict[str, int], draw: random.Random) -> Cycles:
    """Who issues in each cycle, if priorities are drawn once: a unit is idle only if no ready warp needs it."""
    warps = draw.sample(range(len(strings)), len(strings))
    done, cycles = [0] * len(strings), []
    while any(done[warp] < len(strings[warp]) for warp in warps):
        free, issuing = dict(units), []
        for warp in warps:
            if done[warp] < len(strings[warp]) and free[letter := strings[warp][done[warp]]]:
                free[letter] -= 1
                issuing.append(warp)
        for warp in issuing:
            done[warp] += 1
        cycles.append([1, sorted(issuing)])
    return cycles


def claim(line: str, draw: random.Random) -> dict[str, Any]:
    """The longest of some runs of an instance, as a line of results."""
    shown = json.loads(line)
    question = shown["question"]
    strings = [group["string"] for group in question["groups"] for _ in range(group["warps"])]
    cycles = max((run(strings, question["machine"]["capacity"], draw) for _ in range(RUNS)), key=len)
    return {
        "instance": shown["instance"],
        "digest": shown["digest"],
        "solver": "random priorities",
        "version": "1",
        "seconds": 0,
        "lower": len(cycles),
        "schedule": {"paths": None, "latencies": None, "cycles": cycles},
    }


def main() -> None:
    """Solve a family, and have the claims checked."""
    draw = random.Random(1)  # noqa: S311 - the same schedules every time
    with redirect_stdout(StringIO()) as shown:
        cli.run(["benchmark", "show", LIBRARY, "--family", "paper", "--family", "anomalies"])
    claims = [claim(line, draw) for line in shown.getvalue().splitlines()]
    with TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        results.write_text("".join(f"{json.dumps(line)}\n" for line in claims))
        cli.run(["benchmark", "check", LIBRARY, str(results), "--family", "paper", "--family", "anomalies"])
        for line in claims[:: len(claims) // 5]:
            print(f"{line['instance']:24}at least {line['lower']:3} cycles, says {line['solver']}")


if __name__ == "__main__":
    main()
