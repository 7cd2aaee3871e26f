"""One run of a policy in the words of a terminal."""

from collections.abc import Iterator

from makespan.instance import Instance
from makespan.simulate import Choices
from makespan.simulate.statistics import Statistics
from makespan.wording import caveats, cycles, scope

_RULES = {
    "lrr": "loose round robin: first the warps after the one that issued last, in a circle",
    "gto": "greedy-then-oldest: the greedy warp as long as it can, then the smallest number",
    "oldest": "the smallest number first",
    "youngest": "the largest number first",
    "two-level": "the current fetch group first, in round robin, then the groups after it",
    "random": "each warp that can issue with the same probability",
}


def verdict(instance: Instance, policy: str, makespan: int) -> str:
    """One line: the number, and what it is worth."""
    said = scope(caveats(instance.machine, instance.assumptions))
    return f"simulated{said}: {cycles(makespan)} under {policy}, in one run; this is not a bound"


def settings(instance: Instance, choices: Choices) -> str:
    """One line: what no policy decides, as far as the instance leaves it open."""
    said = []
    if not instance.machine.fixed_latencies:
        said.append(f"latency: {choices.latency}")
    if any(not group.program.is_chain for group in instance.groups):
        said.append(f"route: {choices.path}")
    return f"runs with {', '.join([*said, f'seed {choices.seed}', f'fetch groups of {choices.group_size}'])}"


def report(instance: Instance, policy: str, choices: Choices, counts: Statistics) -> str:
    """The whole report; the verdict comes first."""
    lines = [
        verdict(instance, policy, counts.makespan),
        str(instance),
        f"policy {policy}: {_RULES[policy]}",
        settings(instance, choices),
        *_cycles(counts),
        *_classes(counts),
        *_ways(counts),
    ]
    return "\n".join(lines)


def _cycles(counts: Statistics) -> Iterator[str]:
    yield f"{'cycles':<24}{counts.makespan:>12}"
    for issues, spent in counts.issues.items():
        yield _line(f"with {issues} issue{'s' * (issues != 1)}", spent, counts.makespan)
    if counts.issue_slots is not None:
        yield _line("issue slots used", counts.warps.issuing, counts.issue_slots)


def _classes(counts: Statistics) -> Iterator[str]:
    offered = sum(use.offered for use in counts.classes.values())
    yield f"{'port-cycles':<24}{offered:>12}"
    for name, use in counts.classes.items():
        yield f"{_line(f'{name} held', use.port_cycles, use.offered)}  {use.instructions} instructions"


def _ways(counts: Statistics) -> Iterator[str]:
    ways = counts.warps
    rows = {
        "issuing": ways.issuing,
        "latency passes": ways.latency,
        **{f"waiting for a port of {name}": cycles for name, cycles in ways.ports.items()},
        "waiting for an issue slot": ways.issue_slot,
        "waiting at a barrier": ways.barrier,
        "finished": ways.finished,
    }
    yield f"{'warp-cycles':<24}{ways.total:>12}"
    for name, spent in rows.items():
        if spent:
            yield _line(name, spent, ways.total)


def _line(name: str, part: int, whole: int) -> str:
    return f"  {name:<26}{part:>8}  {100 * part / whole:>5.1f} %"
