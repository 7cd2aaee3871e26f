"""PTX as control flow knows it: the registers by which a thread knows where it is, and the words of messages."""

from makespan.kernels.flow import InstructionSet, ThreadRegisters


def _axes(name: str) -> tuple[str, str, str]:
    return f"{name}.x", f"{name}.y", f"{name}.z"


PTX = InstructionSet(
    ThreadRegisters(
        thread=_axes("%tid"),
        block_size=_axes("%ntid"),
        block=_axes("%ctaid"),
        grid_size=_axes("%nctaid"),
        lane="%laneid",
        lane_masks={relation: f"%lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")},
    ),
    ends="ret or exit",
    aligned_barrier="bar.sync",
)
