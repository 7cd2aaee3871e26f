"""A virtual SM as a device: it hides its `Truth`, and answers with noise."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from makespan.errors import InputError
from makespan.estimators.dual_issue import closed_form, cycle_level
from makespan.estimators.dual_issue.arbiter import Arbiter, Bubbles
from makespan.estimators.dual_issue.codec import CODES, SINGLE_ISSUE
from makespan.estimators.dual_issue.device import Run, check_run
from makespan.estimators.dual_issue.gaps import field_gaps
from makespan.estimators.dual_issue.program import Program
from makespan.estimators.dual_issue.registers import ZERO
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
    def lanes(self) -> int:
        """32-bit floating-point lanes of the SM."""
        return self._truth.lanes

    @property
    def schedulers(self) -> int:
        """Warp schedulers of the SM."""
        return self._truth.schedulers

    @property
    def warp(self) -> int:
        """Threads of a warp."""
        return self._truth.warp

    @property
    def max_warps(self) -> int:
        """Resident warps at most."""
        return self._truth.max_warps

    @property
    def icache_instructions(self) -> int:
        """Instructions that the L1 instruction cache holds."""
        return self._truth.icache_instructions

    def run(self, program: Program, warps: int, loops: int) -> Run:
        """Let `warps` warps execute the program `loops` times each.

        Raises:
            InputError: see `check_run`.
        """
        check_run(self, program, warps, loops)
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
            given[key] = _OPTIONS[key](value)
        except (ValueError, OverflowError):
            raise InputError(f"device option {key}={value!r} is no value of it; such as {_EXAMPLES[key]}") from None
    seed = given.pop("seed", 0)
    return VirtualSm(replace(Truth(), **given), seed)


def _bubbles(text: str) -> Bubbles:
    start, end = map(int, text.split("/"))
    return Bubbles(start, end)


_OPTIONS: dict[str, Callable[[str], object]] = {
    "noise": float,
    "seed": int,
    "conflicts": Conflicts,
    "arbiter": Arbiter,
    "bubbles": _bubbles,
    "latency": int,
}
_EXAMPLES = {
    "noise": "0.0002",
    "seed": "1",
    "conflicts": "strict",
    "arbiter": "round-robin",
    "bubbles": "1/4",
    "latency": "9",
}


def random_truth(seed: int) -> Truth:
    """An SM of which nobody knows anything but that code 0x20 is single issue.

    Banks: 1 to 8, any map. One stall field at bit 0..3, 3..5 bits wide, of slope 1 or 2, behind a bit that turns it
    on; any other code opens dual issues; any bubbles.
    """
    draw = random.Random(seed)  # noqa: S311 - a sample, not a secret
    count = draw.randint(1, 8)
    shift, width = draw.choice(list(product(range(4), range(3, 6))))
    gates = [bit for bit in range(8) if not shift <= bit < shift + width and 1 << bit != SINGLE_ISSUE]
    gate = 1 << draw.choice(gates)
    dual = draw.choice([code for code in range(CODES) if code != SINGLE_ISSUE])
    slope = draw.randint(1, 2)
    return Truth(
        banks=tuple(draw.randrange(count) for _ in range(ZERO)),
        gaps=field_gaps(shift=shift, width=width, slope=slope, dual=dual, applies=lambda code: bool(code & gate)),
        keeps=frozenset((dual,)),
        bubbles=Bubbles(draw.randint(0, 5), draw.randint(0, 5)),
        latency=draw.randint(4, 20),
        conflicts=draw.choice(list(Conflicts)),
    )
