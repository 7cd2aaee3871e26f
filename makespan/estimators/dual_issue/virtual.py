"""A virtual SM as a device: it hides its `Truth`, and answers with noise."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from makespan.errors import InputError
from makespan.estimators.dual_issue import closed_form, cycle_level
from makespan.estimators.dual_issue.arbiter import Arbiter, Bubbles
from makespan.estimators.dual_issue.device import Run, Sm, check_run
from makespan.estimators.dual_issue.program import Program
from makespan.estimators.dual_issue.truth import Conflicts, Truth

NAME = "vgk110"


@dataclass(slots=True)
class VirtualSm:
    """A virtual SM; equal seeds and equal sequences of runs give equal measurements.

    Args:
        formula: whether to use the closed form where there is one; both agree within half a percent.
    """

    _truth: Truth = field(default_factory=Truth)
    seed: int = 0
    formula: bool = True
    _random: random.Random = field(init=False, repr=False)
    _known: dict[tuple[Program, int, int], Run] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - noise, not a secret

    @property
    def sm(self) -> Sm:
        """What it says of itself."""
        return self._truth.sm

    def run(self, program: Program, warps: int, loops: int) -> Run:
        """Let `warps` warps execute the program `loops` times each."""
        check_run(self.sm, program, warps, loops)
        exact = self._exact(program, warps, loops)
        factor = max(1 + self._random.gauss(0, self._truth.noise), 0.0) if self._truth.noise else 1.0
        return Run(exact.cycles * factor, tuple(sample * factor for sample in exact.clock_samples))

    def _exact(self, program: Program, warps: int, loops: int) -> Run:
        cycles = closed_form.cycles(self._truth, program, warps, loops) if self.formula else None
        if cycles is not None:
            return Run(cycles, ())
        key = (program, warps, loops)
        if key not in self._known:
            self._known[key] = cycle_level.simulate(self._truth, program, warps, loops)
        return self._known[key]


def parse_device(text: str) -> VirtualSm:
    """The device that `vgk110[:option=value,...]` names.

    Raises:
        InputError: another device, an unknown option, or a value that is none.
    """
    name, _, rest = text.partition(":")
    if name != NAME:
        raise InputError(f"unknown device {name!r}; there is {NAME}, as {NAME}:noise=0.0002,seed=1; or --import a CSV")
    given: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        if key not in _OPTIONS or key in given:
            raise InputError(f"device option {key!r} is unknown or given twice; there are {', '.join(_OPTIONS)}")
        try:
            given[key] = _OPTIONS[key][0](value)
        except (ValueError, OverflowError):
            raise InputError(f"device option {key}={value!r} is no value of it; such as {_OPTIONS[key][1]}") from None
    seed = given.pop("seed", 0)
    return VirtualSm(replace(Truth(), **given), seed)


def _bubbles(text: str) -> Bubbles:
    start, end = map(int, text.split("/"))
    return Bubbles(start, end)


_OPTIONS: dict[str, tuple[Callable[[str], object], str]] = {
    "noise": (float, "0.0002"),
    "seed": (int, "1"),
    "conflicts": (Conflicts, "strict"),
    "arbiter": (Arbiter, "round-robin"),
    "bubbles": (_bubbles, "1/4"),
    "latency": (int, "9"),
}
"""How each is read, and an example."""
