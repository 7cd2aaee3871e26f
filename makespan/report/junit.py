"""Deadlines as JUnit XML, which CI systems show beside a change."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from makespan.model.deadline import DeadlineOutcome

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The letters that XML 1.0 cannot hold. Source: Extensible Markup Language 1.0, fifth edition, production 2."""


@dataclass(frozen=True, slots=True)
class DeadlineCheck:
    """One deadline: its name, its outcome, a line about it, and the seconds. No outcome means that it was refused."""

    name: str
    outcome: DeadlineOutcome | None
    line: str
    seconds: float = 0.0


def junit_document(suite: str, checks: Sequence[DeadlineCheck]) -> bytes:
    """Return a document in which a missed or undecided deadline is a failure, and a refused question an error.

    Source: the schema of the Jenkins xUnit plugin, junit-10.xsd, in the part that GitLab and GitHub's actions read.

    >>> checks = [DeadlineCheck("k.ptx", DeadlineOutcome.MET, "")]
    >>> b'<testcase classname="g.toml" name="k.ptx" time="0.000">' in junit_document("g.toml", checks)
    True
    """
    refused = sum(check.outcome is None for check in checks)
    failed = len(checks) - refused - sum(check.outcome is DeadlineOutcome.MET for check in checks)
    counts = {"tests": len(checks), "failures": failed, "errors": refused}
    seconds = f"{sum(check.seconds for check in checks):.3f}"
    root = Element(
        "testsuite", {"name": _xml_text(suite), **{key: str(n) for key, n in counts.items()}, "time": seconds}
    )
    for check in checks:
        of = {"classname": _xml_text(suite), "name": _xml_text(check.name), "time": f"{check.seconds:.3f}"}
        case, line = SubElement(root, "testcase", of), _xml_text(check.line)
        match check.outcome:
            case DeadlineOutcome.MET:
                SubElement(case, "system-out").text = line
            case None:
                SubElement(case, "error", type="refused", message=line)
            case outcome:
                SubElement(case, "failure", type=str(outcome), message=line)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _xml_text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
