"""The independent checker of bundles: it shares no code with the engines, only the types of the values.

`parse` reads JSON strictly, `verify` re-proves: the lower bound by executing the witness, the upper bound by its own
computation of whatever the evidence names. What it cannot re-prove within its limits it says. A digest is no proof, so
it protects from accidents only: every claim is checked as if the digest were made to fit. `execute` takes a schedule
alone, as others may have found it.
"""

from makespan.verify.outcome import UNCHECKED, Outcome, Verdict
from makespan.verify.reading import digest, parse
from makespan.verify.refusal import Refused
from makespan.verify.verdict import execute, verify

__all__ = ["UNCHECKED", "Outcome", "Refused", "Verdict", "digest", "execute", "parse", "verify"]
