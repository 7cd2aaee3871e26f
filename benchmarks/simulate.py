"""How fast policies run: warp-instructions a second on one core, compiled and plain, with known makespans asserted.

    python -m benchmarks.simulate

One JSON line per measurement: the makespan alone, the same with its schedule, and, as `plain`, without compiled code.
Seconds are processor time without compiling, the best of several. The string has 400 letters, drawn with a fixed seed.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median
from unittest.mock import patch

from benchmarks.kernels import COALESCED, KERNELS, LATENCIES
from makespan.cli.source import kernel_question
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass, find_machine, given_intervals, narrow_intervals
from makespan.model.program import Program
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, Choices, replay, runs
from makespan.model.simulate.choices import choose_routes
from makespan.model.simulate.policies import partition_policies
from makespan.model.simulate.runner import Runner
from makespan.model.simulate.runs import simulate_policies
from makespan.proof.engines.construct import greedy, ranking
from makespan.proof.engines.limits import Limits

LETTERS, WARPS, SHORT = 400, 48, 40
MACHINES = {
    "basic": PAPER,
    "two ports": Machine.of({"C": 2, "L": 1}),
    "general": Machine("general", (UnitClass("C", 2, 1, Latency(4, 4)), UnitClass("L", 1, 4, Latency(20, 400))), 2),
}
KNOWN = {
    "basic": {
        "lrr": 10565, "gto": 10094, "gty": 10094, "oldest": 10094, "youngest": 10094, "two-level": 10663,
        "random": 10521,
    },
    "two ports": {
        "lrr": 9382, "gto": 9499, "gty": 9499, "oldest": 9499, "youngest": 9499, "two-level": 9381, "random": 9364,
    },
    "general": {
        "lrr": 79259, "gto": 79131, "gty": 79131, "oldest": 79131, "youngest": 79131, "two-level": 79226,
        "random": 79188,
    },
}  # fmt: skip
"""Makespans in cycles; the plain runs of the same question agree."""

REAL_KERNEL = "matmul_tiled"
REAL = {
    "turing": {
        "lrr": 35000,
        "gto": 40253,
        "gty": 40253,
        "oldest": 40181,
        "youngest": 40181,
        "two-level": 34760,
        "random": 35915,
        "greedy": 42746,
        "climbed": 38940,
    },
    "ampere-ga10x": {
        "lrr": 35079,
        "gto": 40265,
        "gty": 40265,
        "oldest": 40231,
        "youngest": 40231,
        "two-level": 34864,
        "random": 36001,
        "greedy": 42829,
        "climbed": 38930,
    },
}
"""Makespans of 48 warps of the kernel on real multiprocessors: of policies, and the longest by rules and climbing."""

ORDERS = (122, 127)
"""The fewest and the most cycles of 2,000 random orders of two kinds of warps."""


def fastest(work: Callable[[], object], times: int) -> float:
    """Seconds of processor time, the best of several."""
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def measure(name: str, policy: str) -> dict[str, object]:
    """The compiled runner on the long string."""
    instance = Instance.of("".join(random.Random(1).choices("CL", k=LETTERS)), WARPS, MACHINES[name])
    runner = Runner(instance)
    schedule = runner.schedule(policy)
    assert runner.makespan(policy) == replay(instance, schedule) == KNOWN[name][policy]
    seconds, with_schedule = (
        fastest(lambda: runner.makespan(policy), 9),
        fastest(lambda: runner.schedule(policy), 3),
    )
    return {
        "what": "compiled",
        "machine": name,
        "policy": policy,
        "warps": WARPS,
        "letters": LETTERS,
        "makespan": schedule.makespan,
        "seconds": round(seconds, 5),
        "million_instructions_per_second": round(WARPS * LETTERS / seconds / 1e6, 2),
        "seconds_with_schedule": round(with_schedule, 5),
    }


def compare(name: str) -> dict[str, object]:
    """The plain runs of a short string beside the compiled ones, over all policies."""
    instance = Instance.of("".join(random.Random(1).choices("CL", k=SHORT)), WARPS, MACHINES[name])
    chosen, runner = choose_routes(instance, Choices()), Runner(instance)
    ratios = []
    for policy in POLICIES:
        plain = simulate_policies(instance, partition_policies(instance, policy, Choices(), chosen), chosen)
        assert plain == runner.schedule(policy)

        def once(name: str = policy) -> object:
            return simulate_policies(instance, partition_policies(instance, name, Choices(), chosen), chosen)

        slow = fastest(once, 1)
        quick = fastest(lambda policy=policy: runner.makespan(policy), 9)  # type: ignore[misc]
        ratios.append(slow / quick)
    return {"what": "plain", "machine": name, "letters": SHORT, "warps": WARPS, "times_slower": round(median(ratios))}


def question(name: str) -> Instance:
    """48 warps of the kernel, coalesced, with the latencies of `kernels` where the machine knows none."""
    machine = narrow_intervals(find_machine(name).machine, given_intervals(COALESCED))
    ends = {each.name: each.most or LATENCIES.get(each.name) for each in machine.operations}
    latencies = [f"{operation}={most}" for operation, most in ends.items() if most is not None]
    asked = kernel_question(f"ptx/{REAL_KERNEL}.ptx", latencies=latencies, **KERNELS[REAL_KERNEL])  # type: ignore[arg-type]
    return replace(asked, warps=WARPS).instance(machine)


def real(name: str) -> Iterator[dict[str, object]]:
    """All policies on a real multiprocessor, then all greedy schedules, compiled and plain; then climbing."""
    instance = question(name)
    chosen, runner = choose_routes(instance, Choices()), Runner(instance)
    issues = sum(map(len, chosen.latencies))
    about = {"machine": name, "kernel": REAL_KERNEL, "warps": WARPS, "instructions": issues}

    def plain(policy: str) -> Schedule:
        return simulate_policies(instance, partition_policies(instance, policy, Choices(), chosen), chosen)

    for policy in POLICIES:
        schedule = runner.schedule(policy)
        assert schedule == plain(policy)
        assert runner.makespan(policy) == replay(instance, schedule) == REAL[name][policy]
        quick = fastest(lambda policy=policy: runner.makespan(policy), 9)  # type: ignore[misc]
        slow = fastest(lambda policy=policy: plain(policy), 1)  # type: ignore[misc]
        yield about | {
            "what": "real",
            "policy": policy,
            "makespan": schedule.makespan,
            "million_instructions_per_second": round(issues / quick / 1e6, 2),
            "times_slower": round(slow / quick),
        }
    seconds = []
    for small in (0, 1 << 60):
        with patch.object(runs, "SMALL", small):
            made = greedy.schedules(instance, Limits())
            assert max(schedule.makespan for schedule in made) == REAL[name]["greedy"]
            seconds.append(fastest(lambda: greedy.schedules(instance, Limits()), 1))
    yield about | {"what": "greedy", "seconds": round(seconds[0], 3), "times_slower": round(seconds[1] / seconds[0])}
    ranking.load()
    climber = ranking._climber(instance, None, ranking.RULES[0])  # noqa: SLF001 - a run takes too long to end by itself
    began = time.process_time()
    tried = sum(climber.climb() for _ in range(20))
    assert climber.makespan == REAL[name]["climbed"]
    rate = tried * climber.runs / (time.process_time() - began)
    yield about | {"what": "climbing", "makespan": climber.makespan, "rankings_per_second": round(rate)}


def orders() -> dict[str, object]:
    """How many orders of warps a local search can try in a second."""
    loads, sums = Program.chain("LLLLCCCCCCCCCLLCCCCCCC"), Program.chain("CCLLCCLCLCCLCCCLLCCCLC")
    runner, draw = Runner(Instance.merged([(loads, 4), (sums, 4)])), random.Random(1)
    some = [draw.sample(range(8), 8) for _ in range(2_000)]
    assert (min(map(runner.ranked, some)), max(map(runner.ranked, some))) == ORDERS
    seconds = fastest(lambda: [runner.ranked(order) for order in some], 3)
    return {"what": "orders", "warps": 8, "letters": 22, "orders_per_second": round(len(some) / seconds)}


def main() -> None:
    """Measure and print."""
    for name in MACHINES:
        for policy in POLICIES:
            print(json.dumps(measure(name, policy)), flush=True)
        print(json.dumps(compare(name)), flush=True)
    print(json.dumps(orders()), flush=True)
    for name in REAL:
        for row in real(name):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
