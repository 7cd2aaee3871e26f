"""What an instance can have beyond the plainest one, and what is known of it: who forgets a feature refuses it."""

from enum import Enum


class Feature(Enum):
    """What sets instances apart from equal strings over C and L, on ports that an instruction holds for a cycle.

    Every bound, engine and simulator states the features that it knows, and an instance with any other is refused
    (`Instance.require`). The values are words for messages.
    """

    CLASSES = "unit classes besides C and L"
    GROUPS = "warps of different programs"
    CHOICES = "programs with a choice of paths"
    BARRIERS = "barriers between several blocks, or where a warp may skip a phase that others take part in"
    LATENCIES = "latencies"
    INTERVALS = "intervals"
    ISSUE_WIDTH = "an issue width"
    DELAYS = "cycles of delay as places, which need no issue slot"
    SCHEDULER = "a scheduler that promises something"
    PARTITIONS = "partitions"
    RESOURCES = "resources besides the ports of classes"
    STALL_ON_USE = "warps that run ahead of their results"


Features = frozenset[Feature]

# These sets are complete on purpose: a new feature joins none of them, so that nobody knows it before he says so.
PROGRAMS: Features = frozenset({Feature.CLASSES, Feature.GROUPS, Feature.CHOICES})
TIMES: Features = frozenset({Feature.LATENCIES, Feature.INTERVALS, Feature.ISSUE_WIDTH})
BARRIERS: Features = frozenset({Feature.BARRIERS})
DELAYS: Features = frozenset({Feature.DELAYS})
MULTIPROCESSOR: Features = frozenset({Feature.PARTITIONS, Feature.RESOURCES, Feature.STALL_ON_USE})
"""What the sub-partitions of a real SM bring; `Instance.is_multiprocessor` says whether an instance has any of it."""
SCHEDULER: Features = frozenset({Feature.SCHEDULER})
"""Known to what replays schedules, and to plain bounds: those of any scheduler hold for one that promises something."""
