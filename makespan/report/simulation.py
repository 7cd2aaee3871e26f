"""One run of a policy, in words and as data."""

from collections.abc import Iterator
from typing import Any

from makespan.model.conditions import conditions
from makespan.model.instance import Instance
from makespan.model.simulate import Choices
from makespan.model.simulate.statistics import Statistics
from makespan.model.wording import cycle_words, scope_words
from makespan.version import versions

_RULES = {
    "lrr": "loose round robin: first the warps after the one that issued last, in a circle",
    "gto": "greedy-then-oldest: the greedy warp as long as it can, then the smallest number",
    "gty": "greedy-then-youngest: the greedy warp as long as it can, then the largest number",
    "oldest": "the smallest number first",
    "youngest": "the largest number first",
    "two-level": "the current fetch group first, in round robin, then the groups after it",
    "random": "each warp that can issue with the same probability",
}


def simulation_verdict(instance: Instance, policy: str, makespan: int) -> str:
    """Return one line: the makespan, and that it is no bound."""
    said = scope_words(conditions(instance.assumptions))
    return f"simulated{said}: {cycle_words(makespan)} under {policy}, in one run; this is not a bound"


def run_head() -> str:
    """Return the head of a table of runs.

    >>> print(run_head()); print(run_row(12, 345, "gto", "mix"))
    warps         cycles  policy, one run each; this is not a bound
       12            345  gto        mix
    """
    return f"{'warps':>5}{'cycles':>15}  policy, one run each; this is not a bound"


def run_row(warps: int, makespan: int, policy: str, name: str = "") -> str:
    """Return the row of a run in such a table."""
    return f"{warps:>5}{makespan:>15}  {policy:<11}{name}".rstrip()


def describe_settings(instance: Instance, choices: Choices) -> str:
    """Return one line: the choices that no policy makes, as far as the instance leaves them open."""
    said = []
    if not instance.fixed_latencies:
        said.append(f"latency: {choices.latency}")
    if not instance.machine.fixed_uses:
        said.append(f"intervals: {choices.interval}")
    if instance.partition_of_warp is None:
        said.append(f"partitions: {choices.assignment}")
    if any(not group.program.is_chain for group in instance.groups):
        said.append(f"route: {choices.path}")
    return f"runs with {', '.join([*said, f'seed {choices.seed}', f'fetch groups of {choices.group_size}'])}"


def simulation_report(instance: Instance, policy: str, choices: Choices, counts: Statistics) -> str:
    """Return the whole report, with the verdict first."""
    lines = [
        simulation_verdict(instance, policy, counts.makespan),
        str(instance),
        f"policy {policy}: {_RULES[policy]}",
        describe_settings(instance, choices),
        *_cycle_lines(counts),
        *_class_lines(counts),
        *_way_lines(counts),
    ]
    return "\n".join(lines)


def simulation_document(
    name: str | None, instance: Instance, policy: str, choices: Choices, counts: Statistics
) -> dict[str, Any]:
    """Return one run of a policy as plain data, schema `makespan.simulation/1`; `name` is that of the instance."""
    ways = counts.warps
    return {
        "schema": "makespan.simulation/1",
        "name": name,
        "warps": instance.warps,
        "blocks": instance.blocks,
        "machine": instance.machine.name,
        "policy": policy,
        "choices": settings_document(choices),
        "makespan": counts.makespan,
        "is_bound": False,
        "cycles_by_issues": {str(issues): cycles for issues, cycles in counts.issues.items()},
        "issue_slots": counts.issue_slots,
        "classes": {
            name: {"instructions": use.instructions, "port_cycles": use.port_cycles, "offered": use.offered}
            for name, use in counts.classes.items()
        },
        "warp_cycles": {
            "issuing": ways.issuing,
            "latency": ways.latency,
            "waiting_for_ports": ways.ports,
            "waiting_for_issue_slot": ways.issue_slot,
            "barrier": ways.barrier,
            "finished": ways.finished,
        },
        "versions": versions(),
    }


def settings_document(choices: Choices) -> dict[str, Any]:
    """Return the choices that no policy makes, as plain data."""
    return {
        "latency": choices.latency,
        "route": choices.path,
        "seed": choices.seed,
        "group_size": choices.group_size,
        "intervals": choices.interval,
        "assignment": choices.assignment,
    }


def run_csv_row(instance: Instance, policy: str, makespan: int) -> str:
    """Return the run as a row of the CSV of `report.policy_gap.csv_rows`."""
    return f"{instance.warps},{policy},run,{makespan},{makespan},one run"


def _cycle_lines(counts: Statistics) -> Iterator[str]:
    yield f"{'cycles':<24}{counts.makespan:>12}"
    for issues, spent in counts.issues.items():
        yield _line(f"with {issues} issue{'s' * (issues != 1)}", spent, counts.makespan)
    if counts.issue_slots is not None:
        yield _line("issue slots used", counts.warps.issuing, counts.issue_slots)


def _class_lines(counts: Statistics) -> Iterator[str]:
    offered = sum(use.offered for use in counts.classes.values())
    yield f"{'port-cycles':<24}{offered:>12}"
    for name, use in counts.classes.items():
        yield f"{_line(f'{name} held', use.port_cycles, use.offered)}  {use.instructions} instructions"


def _way_lines(counts: Statistics) -> Iterator[str]:
    ways = counts.warps
    rows = {
        "issuing": ways.issuing,
        "latency passes": ways.latency,
        **{f"waiting for {_port_words(name)}": cycles for name, cycles in ways.ports.items()},
        "waiting for an issue slot": ways.issue_slot,
        "waiting at a barrier": ways.barrier,
        "finished": ways.finished,
    }
    yield f"{'warp-cycles':<24}{ways.total:>12}"
    for name, spent in rows.items():
        if spent:
            yield _line(name, spent, ways.total)


def _port_words(name: str) -> str:
    return f"a port of {name}" if name.isupper() else name


def _line(name: str, part: int, whole: int) -> str:
    return f"  {name:<26}{part:>8}  {100 * part / whole:>5.1f} %"
