"""Bundles that earlier code wrote, one for every kind of evidence: each keeps its verdict, word for word."""

import json
from pathlib import Path
from typing import Any

import pytest

from makespan.verify import parse, verify

BEFORE = json.loads((Path(__file__).parent.parent / "data" / "bundles_of_before.json").read_text())


@pytest.mark.parametrize("known", BEFORE, ids=[known["about"] for known in BEFORE])
def test_a_bundle_keeps_its_verdict(known: dict[str, Any]) -> None:
    verdict = verify(parse(json.dumps(known["bundle"]).encode()))
    assert (str(verdict), [list(proven) for proven in verdict.uppers]) == (known["verdict"], known["uppers"])
