"""Control flow: from the graph of a kernel to the programs of its warps."""

import makespan.ptx  # noqa: F401 - the instruction set, for the time being, is read first
