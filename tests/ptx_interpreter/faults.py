"""The two ways in which an execution stops early; both messages begin with file:line and the instruction."""


class KernelFault(Exception):
    """The kernel does what the manual leaves undefined, deadlocks, traps, or exceeds the limit of instructions."""


class UnsupportedInstruction(NotImplementedError):
    """The interpreter does not know what this instruction, or this form of it, computes."""
