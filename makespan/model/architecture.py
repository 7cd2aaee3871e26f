"""Names of architectures, and the architecture for which CUDA source is compiled if the user names none."""

import re
from dataclasses import dataclass

from makespan.host import tool
from makespan.host.errors import InputError, MissingInputsError, ParseError, begins, meant
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.machine import Machine, gpus, shipped_machines
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.occupancy import residency

OLDEST_MACHINE_CODE = 70
"""The oldest architecture whose machine code this package reads: the encoding of older ones differs."""

_NAME = re.compile(r"(?:sm|compute)_[1-9][0-9]{1,2}[af]?", re.ASCII)
_NUMBER = re.compile(r"(?:sm|compute|cc)?([1-9][0-9]{1,2})([af]?)", re.ASCII)
_TOOLS = "ptxas", "nvdisasm"


def is_machine_code(name: str) -> bool:
    """Return whether a name asks for machine code, as `sm_86` does; `compute_86` asks for PTX.

    >>> is_machine_code("sm_86"), is_machine_code("compute_86")
    (True, False)
    """
    return name.startswith("sm_")


def virtual_architecture(name: str) -> str:
    """Return the architecture of the PTX from which machine code for `name` is made.

    >>> virtual_architecture("sm_90a"), virtual_architecture("compute_75")
    ('compute_90a', 'compute_75')
    """
    return name.replace("sm_", "compute_")


def check_architecture(name: str, option: str) -> None:
    """Accept the name of an architecture, whether or not there is such a GPU.

    Args:
        option: the name of the option, for the message.

    Raises:
        InputError: another text; the message says which names are near.

    >>> check_architecture("ampere", "--arch")
    Traceback (most recent call last):
    makespan.host.errors.InputError: --arch 'ampere' is no architecture; did you mean 'sm_80', 'sm_86' or 'sm_87'?\
 expected sm_NN for machine code or compute_NN for PTX
    """
    if _NAME.fullmatch(name) is None:
        near = meant(_near_names(name)) or ";"
        raise InputError(
            f"{option} {name[:40]!r} is no architecture{near} expected sm_NN for machine code or compute_NN for PTX"
        )


def _near_names(name: str) -> list[str]:
    """Return the architectures that a user may mean by `sm86`, by `8.6`, or by the name of a GPU or of a family."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if (number := _NUMBER.fullmatch(plain)) is not None:
        kind = "compute" if plain.startswith("compute") else "sm"
        return [f"{kind}_{number[1]}{number[2]}"] if int(number[1]) in residency() else []
    families = {name: file.machine.capabilities for name, file in shipped_machines().items()}
    cards = {name: () if card.sm is None else (card.sm,) for name, card in gpus.shipped_gpus().items()}
    # a name of a family or of a card is taken for its architecture
    named = {sm for known, sms in (families | cards).items() for sm in sms if begins(name, known)}
    return [f"sm_{sm}" for sm in sorted(named & residency().keys())]


@dataclass(frozen=True, slots=True)
class DefaultArchitecture:
    """The architecture for which source is compiled if the user names none: that of the GPU or machine.

    Args:
        sm: its compute capability as a number, such as 86 for 8.6.
        because: the reason for this one, as a clause.
        lacking: the reason why PTX stands in for machine code. None means that machine code can be made and read.
    """

    sm: int
    because: str
    lacking: str | None = None

    @property
    def name(self) -> str:
        """Return the name as `--arch` takes it."""
        return f"sm_{self.sm}" if self.lacking is None else f"compute_{self.sm}"

    @property
    def lacks_tools(self) -> bool:
        """Return whether PTX stands in for machine code that could be read if the tools were there."""
        return self.lacking is not None and self.sm >= OLDEST_MACHINE_CODE

    @property
    def assumption(self) -> Assumption:
        """Return the assumption that a result states about the architecture."""
        return assumptions.compiled_for(f"the kernel is compiled for {self.name}, because {self.because}", self.lacking)

    def telling(self, error: InputError, option: str) -> InputError:
        """Return the same error with a hint: the program that it is about, and the option to ask about another one."""
        if self.lacking is None:
            hint = (
                f"this is about the machine code for {self.name}, because {self.because};"
                f" {option} {virtual_architecture(self.name)} asks about the PTX"
            )
        else:
            hint = f"this is about the PTX for {self.name}, because {self.because}; {option} asks about another program"
        # an error may pass several callers that all add the hint
        if hint in str(error):
            return error
        if isinstance(error, ParseError):
            return error.adding(hint)
        first, newline, rest = str(error).partition("\n")
        told = f"{first} ({hint}){newline}{rest}"
        return MissingInputsError(told, error.missing) if isinstance(error, MissingInputsError) else type(error)(told)


def default_architecture(machine: Machine | None, card: Gpu | None) -> DefaultArchitecture | None:
    """Return the architecture of the GPU, or else of the machine. None means that neither is known.

    If there are several compute capabilities, the least is taken: its machine code runs on later ones of the same major
    number (see `machine.is_compatible`). If machine code cannot be made or read, the architecture is that of PTX.

    >>> from makespan.model.machine import PAPER, find_machine
    >>> found = default_architecture(find_machine("ampere-ga10x").machine, None)
    >>> found.sm, found.because
    (86, 'machine ampere-ga10x has compute capability 8.6 or 8.7')
    >>> default_architecture(PAPER, None)
    """
    if card is not None and card.sm is not None:
        sm, because = card.sm, f"GPU {card.name} has compute capability {card.compute_capability}"
    elif machine is not None and machine.capabilities:
        sm, *others = sorted(set(machine.capabilities))
        because = f"machine {machine.name} has "
        because += f"compute capability {_capability_text(sm)}" + "".join(
            f" or {_capability_text(other)}" for other in others
        )
    else:
        return None
    if sm < OLDEST_MACHINE_CODE:
        return DefaultArchitecture(sm, because, "none for GPUs before sm_70 can be read")
    return DefaultArchitecture(sm, because, "ptxas or nvdisasm is missing" if None in map(tool.find, _TOOLS) else None)


def _capability_text(sm: int) -> str:
    return f"{sm // 10}.{sm % 10}"
