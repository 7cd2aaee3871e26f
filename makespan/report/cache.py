"""Results kept between runs: bundles in a folder, named by the question, each verified when it is read."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from makespan.host.errors import InputError
from makespan.host.output_file import write_whole
from makespan.host.text_file import read_bytes
from makespan.model.claim import WorstCaseClaim
from makespan.model.gpu import GpuInstance, GpuResult
from makespan.model.instance import Instance
from makespan.model.result import Bounds, Result, Status
from makespan.report.gpu.bundle import gpu_bundle, gpu_question_data
from makespan.report.result.bundle import canonical_json, instance_data, result_bundle
from makespan.verify import Outcome, Refused, parse, verify
from makespan.verify.reading import MOST_BYTES
from makespan.version import __version__


def default_folder() -> Path | None:
    """Return the folder for what a user's programs can compute again. None means that there is no home folder.

    Source: XDG Base Directory Specification 0.8.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given) / "makespan" / "results"
    try:
        return Path.home() / ".cache" / "makespan" / "results"
    except RuntimeError:
        return None


class BundleCache:
    """Bundles by the digest of instance and version. Bundles that are not exact are also told apart by the effort.

    Args:
        effort: the limits of a solve, as a text. A result that is not exact answers only questions with the same
            limits.
        note: a function that is called with one line about a file that cannot be used or written.
    """

    def __init__(self, folder: Path, *, effort: str, note: Callable[[str], None]) -> None:
        self._folder, self._effort, self._note = folder, effort, note
        self._is_told = False

    def load(self, asked: Instance | GpuInstance) -> WorstCaseClaim | None:
        """Return the kept claim, proven anew. None means that there is none, or none that can be proven anew."""
        # an exact result does not depend on the effort, so it is kept, and looked for first, without it
        for effort in ("", self._effort):
            path = self._path(asked, effort)
            if path.exists() and not path.is_file():
                self._note(f"{path}: not used: it is no file")
                continue
            if not path.exists():
                continue
            try:
                content = read_bytes(path, "kept result", MOST_BYTES, rewritten=True)
            except InputError as error:
                self._note(f"{error}; not used")
                continue
            try:
                return _claim(content, asked)
            except Refused as refusal:
                self._note(f"{path}: not used, the kernel is solved again: {refusal}")
        return None

    def save(self, result: Result | GpuResult) -> None:
        """Keep a result. The first failure is noted in one line."""
        path = self._path(result.instance, "" if result.status is Status.EXACT else self._effort)
        if path.exists() and not path.is_file():
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, canonical_json(_bundle(result)) + b"\n", "the result")
        except OSError as error:
            self._tell(f"{self._folder}: {error.strerror or error}")
        except InputError as error:
            self._tell(str(error))

    def _tell(self, problem: str) -> None:
        """Note a problem once: what keeps one result from being kept keeps most of them."""
        if not self._is_told:
            remedy = "keep solved kernels elsewhere by --cache DIR, or not at all by --no-cache"
            self._note(f"not kept: {problem}; {remedy}")
        self._is_told = True

    def _path(self, asked: Instance | GpuInstance, effort: str) -> Path:
        named = {"version": __version__, "effort": effort, "instance": _question(asked)}
        return self._folder / f"{hashlib.sha256(canonical_json(named)).hexdigest()}.json"


def _bundle(result: Result | GpuResult) -> dict[str, Any]:
    return result_bundle(result) if isinstance(result, Result) else gpu_bundle(result)


def _question(asked: Instance | GpuInstance) -> dict[str, Any]:
    return instance_data(asked) if isinstance(asked, Instance) else gpu_question_data(asked)


def _claim(content: bytes, asked: Instance | GpuInstance) -> WorstCaseClaim:
    """Return what a kept bundle proves of the question. Assumptions are those of the question, not of the bundle."""
    document: Any = parse(content)
    verdict = verify(document)
    # nothing in the folder is trusted: the checker proves the kept claim again
    if verdict.outcome is not Outcome.ACCEPTED or verdict.claim is None:
        raise Refused(verdict.reason)
    # the name of a file is no proof: the bundle itself must be about the question
    if canonical_json(document["instance"]) != canonical_json(_question(asked)):
        raise Refused("it answers another question")
    claim = verdict.claim
    return WorstCaseClaim.about(asked, Bounds(claim.lower, claim.upper), str(claim.evidence), asked.assumptions)
