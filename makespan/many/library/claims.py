"""Claims of solvers about the instances of a library, as JSON lines, of this program and of any other.

{"instance": "cllcll-8", "digest": "...", "lower": 34, "upper": 34, "solver": "makespan", "version": "0.1.0",
 "seconds": 0.01, "evidence": "theorem-e", "schedule": {...}}
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from makespan.host.errors import InputError
from makespan.host.text_file import read_bytes
from makespan.verify import Refused, parse

KNOWN = "known.jsonl"
"""The claims that a library ships, in its folder: the best that is known."""

MAX_FILE_BYTES = 256 << 20
MAX_LINES = 100_000

_Cycles = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class BoundClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A claim about the worst case of an instance: bounds in cycles, with who says so and what speaks for it.

    Args:
        digest: of the instance, as `makespan benchmark show` tells it: a claim about another question is none.
        lower: some schedule takes so long; `schedule` is one, as the `witness` of a bundle.
        upper: no schedule takes longer; `evidence` says how that is proven.
        seconds: of wall-clock time that were used, of the `limit` that there was.
        bundle: SHA-256 of a file of evidence for `makespan verify`.
    """

    instance: _Text
    digest: _Digest
    solver: _Text
    version: _Text
    seconds: _Seconds
    lower: _Cycles | None = None
    upper: _Cycles | None = None
    limit: _Seconds | None = None
    evidence: _Text | None = None
    bundle: _Digest | None = None
    schedule: dict[str, Any] | None = None
    where: str = ""

    @property
    def who(self) -> str:
        """Return the solver and its version."""
        return f"{self.solver} {self.version}"


def read_claims(path: Path, *, rewritten: bool = False) -> tuple[BoundClaim, ...]:
    """Return the claims in a file; `where` of each is its file and line.

    Args:
        rewritten: this program keeps the file and may write it again.

    Raises:
        InputError: the file cannot be read, is too large, or a line is no claim.
    """
    content = read_bytes(path, "file of results", MAX_FILE_BYTES, rewritten=rewritten)
    lines = content.split(b"\n")
    if len(lines) > MAX_LINES:
        raise InputError(f"{path}: {len(lines)} lines exceed the limit of {MAX_LINES}")
    return tuple(_claim(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip())


def claim_lines(claims: Iterable[BoundClaim]) -> str:
    """Return claims as lines of a file."""
    fields = (msgspec.to_builtins(msgspec.structs.replace(claim, where="")) for claim in claims)
    return "".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in fields)


def _claim(line: bytes, where: str) -> BoundClaim:
    try:
        fields = parse(line)
        if isinstance(fields, dict) and "where" in fields:
            raise msgspec.ValidationError("Object contains unknown field `where`")
        claim = msgspec.structs.replace(msgspec.convert(fields, BoundClaim), where=where)
        if claim.lower is None and claim.upper is None:
            raise ValueError("neither lower nor upper is given")
        if claim.lower is None and claim.schedule is not None:
            raise ValueError("a schedule without the lower bound that it proves")
        for name in ("instance", "solver", "version", "evidence"):
            if not (getattr(claim, name) or "").isprintable():
                raise ValueError(f"{name} has letters that do not print")
    except (Refused, ValueError) as error:  # also a name that no encoding has
        raise InputError(f"{where}: not a result: {str(error).removeprefix('not a bundle: ')}") from None
    return claim
