"""The two ways in which an execution stops early; both messages begin with the address and the instruction."""


class KernelFault(Exception):
    """The kernel reads what was never there, deadlocks, runs off its end, or exceeds the limit of instructions."""


class UnsupportedInstruction(NotImplementedError):
    """The interpreter does not know what this instruction, or this form of it, does."""
