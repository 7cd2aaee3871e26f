"""A machine that times operations, for tests: one partition, numbers that nobody measured."""

from makespan.model.machine import OPERATIONS, Machine, TimedOperation, UnitClass

_SERVED: dict[str, dict[str, tuple[int, int | None]]] = {
    "C": {"fp32": (4, 4), "int": (3, 3), "int-multiply": (5, 5), "predicate": (7, 7), "vote": (6, 6)},
    "L": {
        "global": (20, None),
        "atomic": (20, None),
        "shared": (9, 12),
        "constant": (2, 8),
        "parameter": (2, 8),
        "local": (20, 30),
    },
    "S": {"sfu": (8, 11), "convert": (6, 6), "special": (5, 9), "shuffle": (10, 10), "fence": (4, 30)},
    "B": {"branch": (1, 5), "barrier": (2, 2)},
}

TIMED = Machine(
    "timed",
    tuple(UnitClass(name, 1) for name in _SERVED),
    issue_width=1,
    operations=tuple(
        TimedOperation(name, unit, *cycles) for unit, served in _SERVED.items() for name, cycles in served.items()
    ),
)

assert {operation.name for operation in TIMED.operations} < OPERATIONS.keys()
