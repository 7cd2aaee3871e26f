"""Features of an instance that go beyond the plainest one. Code that does not know a feature refuses the instance."""

from enum import Enum


class Feature(Enum):
    """A property that sets instances apart from equal strings over C and L on ports that are held for one cycle.

    Every bound, engine and simulator states the features that it knows. `Instance.require` refuses an instance that has
    any other. The values are words for messages.
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
    LAPSES = "lapses of schedulers, or lines of code and constants that are late"
    QUEUES = "queues before shared units"


Features = frozenset[Feature]

# A new feature joins none of these sets, so that every bound, engine and simulator refuses it until its author has
# thought about it and added it there.
PROGRAMS: Features = frozenset({Feature.CLASSES, Feature.GROUPS, Feature.CHOICES})
TIMES: Features = frozenset({Feature.LATENCIES, Feature.INTERVALS, Feature.ISSUE_WIDTH})
BARRIERS: Features = frozenset({Feature.BARRIERS})
DELAYS: Features = frozenset({Feature.DELAYS})
MULTIPROCESSOR: Features = frozenset({Feature.PARTITIONS, Feature.RESOURCES, Feature.STALL_ON_USE})
"""What the sub-partitions of a real SM bring; `Instance.is_multiprocessor` says whether an instance has any of it."""
LAPSES: Features = frozenset({Feature.LAPSES, Feature.QUEUES})
"""What simulators and replays know: a schedule without lapses and queues is one of the machine with them. An upper
bound that does not know them would be too small."""
SCHEDULER: Features = frozenset({Feature.SCHEDULER})
"""The feature that replays and plain bounds know: a bound for any scheduler also holds for one with a promise."""
