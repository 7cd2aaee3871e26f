"""Kernels for tests, made from their body."""

from pathlib import Path

from makespan.kernels.ptx import PtxKernel, parse

SAMPLES = sorted((Path(__file__).parents[2] / "ptx").glob("*.ptx"))
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def entry(body: str) -> str:
    """A module with one kernel `k`; its body begins in line 5."""
    return f".version 8.0\n.target sm_75\n.visible .entry k()\n{{\n{body}\n}}\n"


def kernel(body: str, after: str = "") -> PtxKernel:
    """The kernel with this body; `after` is what follows in the module."""
    return parse(entry(body) + after, "k.ptx").kernel()
