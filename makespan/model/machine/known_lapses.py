"""The lapses of the schedulers of a GPU, its caches of code and constants, and its queues, as far as sources tell.

    KnownLapses     the table `[lapses]` of a machine file
    UnitQueue       a table `[queues.NAME]`
    FETCHES         the waits that no machine file knows, and that a user gives

docs/machines.md, "Lapses and queues", says how the numbers are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

FETCHES: Mapping[str, str] = MappingProxyType(
    {
        "fetch": "the first fetch of a line of code",
        "constant-miss": "the first fetch of a line of constants",
    }
)
"""The waits for lines that no cache of the SM has yet. They are no operations, and only a user knows their length.

A user names them like operations. They count where a machine knows a cache of such lines (`KnownLapses`).
"""

FETCH, CONSTANT_MISS = FETCHES


class RegisterReads(NamedTuple):
    """The ports of a register file, from which follow the lapses of an instruction that reads several registers.

    An instruction whose latency is fixed and that reads at most n registers of each bank gives a credit of
    `ceil(n / ports) - 1`, and one that reads its operands from a queue of `ceil(n / ports)` if `is_variable`. An
    operand that is named twice counts twice, and one of 64 bits is two registers.

    Args:
        banks: the number of banks; register n lies in bank n mod this.
        ports: the registers that a bank delivers in one cycle.
        is_variable: whether instructions that read their operands from a queue may make a scheduler lapse, too.
    """

    banks: int
    ports: int
    is_variable: bool

    def credit(self, registers: int, *, from_queue: bool) -> int:
        """Return the cycles of lapses for an instruction.

        Args:
            registers: the most registers that it reads in one bank.
            from_queue: whether it reads them from a queue, as loads and stores do.

        >>> reads = RegisterReads(banks=2, ports=1, is_variable=True)
        >>> [reads.credit(3, from_queue=waits) for waits in (False, True)]
        [2, 3]
        """
        if from_queue and not self.is_variable:
            return 0
        return max(0, -(-registers // self.ports) - (not from_queue))


class CacheSize(NamedTuple):
    """The size of a cache. Line n lies in set n mod `sets`.

    Args:
        line: the bytes of a line.
        sets: the number of sets.
        ways: the lines of a set.
    """

    line: int
    sets: int
    ways: int


class LineCache(NamedTuple):
    """A cache of lines of code or constants of a partition, and how late a line of it may be.

    A line that stays is fetched once by each partition; `FETCHES` has what that takes. A line that does not stay is
    fetched at each visit of a place that needs it. Such a fetch takes `window`, and it is a request that keeps all
    other requests of the SM waiting for `gap`, as do those of the lines that are fetched ahead with it. As nothing
    tells which request comes first, it gives the whole SM a credit of `crowd` cycles.

    Args:
        line: the bytes of a line.
        sets: the number of sets; line n lies in set n mod this.
        ways: the lines of a set.
        window: the most cycles until a line is there that the next cache has, if no other request is on its way.
        gap: the cycles for which a request may keep all other requests waiting, those of other partitions, too.
        ahead: the lines behind a line that a prefetcher may fetch with it. They may fill the cache, too.
        next: the cache of the SM from which lines come, for code and constants together. None means that it is not
            known, so that no line may be supposed to stay there.
    """

    line: int
    sets: int
    ways: int
    window: int
    gap: int = 0
    ahead: int = 0
    next: CacheSize | None = None

    @property
    def crowd(self) -> int:
        """Return the cycles for which a fetch may keep all other requests of the SM waiting.

        >>> LineCache(line=128, sets=8, ways=32, window=86, gap=1, ahead=8).crowd
        9
        """
        return self.gap * (1 + self.ahead)


@dataclass(frozen=True)
class KnownLapses:
    """The lapses of the schedulers of a GPU, as far as sources tell: the table `[lapses]`.

    Args:
        registers: of reads of registers; None where nothing is known, as for all that follows.
        multiply: the lapses of an integer multiply-add.
        constant: the lapses of an instruction for each line of constants among its operands.
        constants: the cache of constants that are operands, of each partition.
        code: the cache of instructions of each partition.
        fence: the lapses of the whole SM at a fence, by its scope: `block`, `gpu` and `system`.
        expiry: the cycles from the end of a warp on in which its credit may still be spent.
        carried_over: the architecture whose lapses these are; empty if they were found on this one.
        is_verified: whether sources confirm all of them.
    """

    registers: RegisterReads | None = None
    multiply: int | None = None
    constant: int | None = None
    constants: LineCache | None = None
    code: LineCache | None = None
    fence: Mapping[str, int] = field(default_factory=dict, hash=False)
    expiry: int = 0
    carried_over: str = ""
    is_verified: bool = False

    @property
    def fetches(self) -> tuple[str, ...]:
        """Return those of `FETCHES` whose lines lie in a cache that is known."""
        caches = ((FETCH, self.code), (CONSTANT_MISS, self.constants))
        return tuple(name for name, cache in caches if cache is not None)


class UnitQueue(NamedTuple):
    """A queue of each partition between its scheduler and the ports of some classes (docs/model.md, "Queues").

    Args:
        name: its name.
        units: the classes whose instructions go through it.
        places: the most instructions that wait in it.
        blocks: whether the scheduler may issue nothing at all while it is full.
    """

    name: str
    units: tuple[str, ...]
    places: int
    blocks: bool
