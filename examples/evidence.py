"""Evidence for a certification file: written, checked, forged, and rejected.

`makespan` leaves a bundle: the claim, a schedule that takes so long, and what proves that none takes longer. The
checker shares no code with the solver. Then the bundle is changed in three ways: the claim, the schedule, the proof.
Each is rejected, also with a digest made to fit: the checker believes nobody, and proves every claim again.
"""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from makespan import Instance, Machine, solve
from makespan.report.result import bundle
from makespan.verify import Verdict, digest, parse, verify

Document = dict[str, Any]


def smaller_claim(document: Document) -> None:
    """Claim one cycle less."""
    for side in ("lower", "upper"):
        document["result"][side] -= 1


def shorter_witness(document: Document) -> None:
    """Claim one cycle less, of the certificate too, and leave out the last cycle of the schedule."""
    smaller_claim(document)
    document["certificate"]["upper"] -= 1
    document["witness"]["cycles"][-1][0] -= 1  # of so many equal ones


def smaller_potential(document: Document) -> None:
    """Take a little from the numbers of the states that look ahead to a shortage; the claim stays."""
    potential = document["certificate"]["potentials"][0]
    for number in {table for _, _, label, table in potential["nodes"] if label is not None}:
        potential["tables"][number]["constant"] -= 10**7


def forged(document: Document, change: Callable[[Document], None]) -> Document:
    """The document after a change."""
    copy: Document = json.loads(json.dumps(document))
    change(copy)
    return copy


def short(verdict: Verdict) -> str:
    """The outcome, and what is wrong without the details."""
    return f"{verdict.outcome}: {verdict.reason.partition(':')[0]}"


def main() -> None:
    """Print what the checker says of the bundle, and of three forgeries."""
    result = solve(Instance.of("LLCLCCCC", 6, Machine.of({"C": 2, "L": 1})), backend="certificate")
    most, proof = result.bounds.upper, result.upper_evidence
    print(f"claim: 6 warps LLCLCCCC on C=2, L=1 take at most {most} cycles, proven by {proof}")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "evidence.json"
        bundle.write_bundle(result, file)
        document = parse(file.read_bytes())
    print(verify(document))
    if not isinstance(document, dict):
        raise SystemExit("a bundle is an object")
    for change in (smaller_claim, shorter_witness, smaller_potential):
        copy = forged(document, change)
        print(f"\n{change.__name__.replace('_', ' ')}\n  {short(verify(copy))}")
        copy["sha256"] = digest(copy)
        print(f"the same with a digest that fits\n  {short(verify(copy))}")


if __name__ == "__main__":
    main()
