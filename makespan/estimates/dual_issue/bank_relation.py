"""Test B: which registers share a bank, from the throughput of `FMUL Rd, Ra, Rb` in single-issue mode."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise
from statistics import fmean, median, pstdev

from makespan.estimates.dual_issue.device import SINGLE_ISSUE, IssueDevice, IssueInstruction, Opcode
from makespan.estimates.dual_issue.registers import MAX_REGISTERS, ZERO, BankFunction, function_of
from makespan.estimates.dual_issue.timing import Reference, reference, throughput
from makespan.host.errors import InputError, MeasurementError

PATENT_LIMIT = 0.995  # of what single issue gives in theory: at or below is a conflict. Source: the patent
_SURE_GAP = 3  # standard deviations of a measurement that the two groups of throughputs must be apart
_SURE_MARGIN = 3.7  # standard deviations that pairs without a conflict must be above the fixed limit
_FAST_MARGIN, _LEAST_MARGIN = 6, 0.002  # standard deviations, and a share of the clean throughput
_SAME = 1e-6  # relative: equal but for rounding
_ENOUGH = 8  # values that tell their own noise
_DEVIATION = 1.4826  # standard deviation over median absolute deviation, of normal noise

Pair = tuple[int, int]


class Threshold(StrEnum):
    """The throughput at or below which a pair of registers counts as a conflict."""

    PATENT = "patent"  # at 99.5 % of the theoretical throughput of single issue
    AUTO = "auto"  # in the middle of the largest gap between sorted throughputs


@dataclass(frozen=True, slots=True)
class BankResult:
    """The registers of each bank, as the test finds them.

    Args:
        classes: registers that conflict, by their lowest register; a bank each.
        function: bits of the register number that give the bank, if any do.
        violations: three registers of which the first conflicts with the second, the second with the third, and the
            first not with the third: no banks do that.
        limit: throughput at or below which a pair is a conflict, as a share of theory.
        slowdown: issue time of a pair with a conflict over that of one without, less 1; None if one kind is missing.
        runs: measured pairs.
        complete: whether every pair was measured; otherwise nothing is known of violations.
    """

    classes: tuple[tuple[int, ...], ...]
    function: BankFunction | None
    violations: tuple[tuple[int, int, int], ...]
    limit: float
    slowdown: float | None
    runs: int
    complete: bool

    def required(self) -> "BankResult":
        """Return the result itself.

        Raises:
            MeasurementError: the relation is not that of banks.
        """
        if self.violations:
            a, b, c = self.violations[0]
            raise MeasurementError(
                f"R{a} conflicts with R{b} and R{b} with R{c}, but R{a} not with R{c}: noisy or not bank-like"
                f" ({len(self.violations)} such triples); measure again, or with the other threshold"
            )
        return self


def check_registers(registers: Sequence[int]) -> None:
    """Refuse what is no set of registers to compare.

    Raises:
        InputError: fewer than 2 or more than 255, one twice, or no register.
    """
    if not 2 <= len(registers) <= MAX_REGISTERS:
        raise InputError(f"registers: 2..{MAX_REGISTERS} can be compared, not {len(registers)}")
    if len(set(registers)) < len(registers) or not all(0 <= register < ZERO for register in registers):
        raise InputError(f"registers are different ones of R0..R{ZERO - 1}")


def all_pairs(registers: Sequence[int]) -> list[Pair]:
    """Return every unordered pair, the lower register first: n (n - 1) / 2."""
    return list(combinations(sorted(registers), 2))


def destination_for(registers: Sequence[int]) -> int:
    """Return a register outside of the tested ones, which no pair can depend on; RZ if they are all tested."""
    return next((register for register in range(ZERO - 1, -1, -1) if register not in registers), ZERO)


def banks(
    device: IssueDevice,
    registers: Sequence[int],
    threshold: Threshold = Threshold.AUTO,
    *,
    fast: bool = False,
    code: int = SINGLE_ISSUE,
) -> BankResult:
    """Find the banks of `registers`.

    Args:
        fast: compare each register with one of each bank found so far, instead of all pairs.
        code: the control code of single issue.

    Raises:
        InputError: see `check_registers`.
        MeasurementError: the noise hides conflicts, or the relation is not that of banks.
    """
    check_registers(registers)
    known = reference(device)
    probe = _PairThroughput(device, destination_for(registers), code)
    if fast:
        return _fast(probe, sorted(registers), threshold, known)
    rates = {pair: probe(pair) for pair in all_pairs(registers)}
    limit = _limit(list(rates.values()), threshold, device.sm.theory, known)
    check_levels(rates.values(), limit, known.noise, clean=known.rate / device.sm.theory)
    return classify(rates, limit).required()


@dataclass(frozen=True, slots=True)
class _PairThroughput:
    device: IssueDevice
    destination: int
    code: int

    def __call__(self, pair: Pair) -> float:
        return (
            throughput(self.device, IssueInstruction(Opcode.FMUL, self.destination, pair, self.code))
            / self.device.sm.theory
        )


def _limit(shares: Sequence[float], threshold: Threshold, theory: float, known: Reference) -> float:
    if threshold is Threshold.PATENT:
        return _patent_limit(known.rate / theory, known.noise)
    return auto_limit([*shares, known.rate / theory], known.noise)


def _patent_limit(clean: float, noise: float) -> float:
    """Return the fixed limit, or refuse it where noise may push pairs without a conflict below it."""
    if clean - PATENT_LIMIT < _SURE_MARGIN * noise:
        raise MeasurementError(
            f"unresolved: without conflicts this device reaches {clean:.2%} of theory, with a noise of {noise:.3%} too"
            f" close to the limit of {PATENT_LIMIT:.1%}; take the threshold auto"
        )
    return PATENT_LIMIT


def auto_limit(shares: Sequence[float], noise: float | None) -> float:
    """Return the middle of the largest gap between sorted throughputs; below all of them if they are all equal.

    Args:
        shares: of theory, one of them known to be free of conflicts.
        noise: relative standard deviation of one; None takes that within the two groups.

    Raises:
        MeasurementError: a gap below three standard deviations.
    """
    ranked = sorted(shares)
    if ranked[-1] - ranked[0] <= _SAME * ranked[-1]:
        return ranked[0] / 2  # all are equal, and one is known to be clean: no conflict
    gap, low, high = max((high - low, low, high) for low, high in pairwise(ranked))
    if noise is None:
        groups = [[share for share in ranked if share <= low], [share for share in ranked if share >= high]]
        noise = max(pstdev(group) / high for group in groups)
    if gap < _SURE_GAP * noise:
        raise MeasurementError(
            f"unresolved: the largest gap between throughputs is {gap:.2%} of theory, below {_SURE_GAP} times the noise"
            f" of {noise:.2%}; either no two registers conflict, or noise hides it: quieten the device"
        )
    return (low + high) / 2


def check_levels(shares: Collection[float], limit: float, noise: float | None, *, clean: float = 1.0) -> None:
    """Refuse throughputs above the limit that are no measurements of one value: some of them may be conflicts, too.

    Args:
        noise: relative standard deviation of one; None takes that of the values above the limit, if they are enough.
        clean: without conflicts, of theory; unused without `noise`.

    Raises:
        MeasurementError: a pair between conflict and none.
    """
    above = [share for share in shares if share > limit]
    if noise is None:
        if len(above) < _ENOUGH:
            return
        clean = median(above)
        # robust: conflicts among the values do not move a median
        noise = _DEVIATION * median(abs(share - clean) for share in above) / clean
    least = clean * (1 - max(_FAST_MARGIN * noise, _LEAST_MARGIN))
    if doubtful := [share for share in above if share < least]:
        raise MeasurementError(
            f"unresolved: {len(doubtful)} of {len(shares)} pairs lie between conflict and none, such as"
            f" {min(doubtful):.2%} of theory, where {clean:.2%} is free of conflicts; conflicts of different cost?"
        )


def classify(shares: Mapping[Pair, float], limit: float) -> BankResult:
    """Return the banks: the connected components of the graph of the pairs that conflict."""
    registers = sorted({register for pair in shares for register in pair})
    conflicts = {pair for pair, share in shares.items() if share <= limit}
    classes = _conflict_classes(registers, conflicts)
    violations = tuple(found for members in classes for found in _violations(members, conflicts))
    slowdown = _slowdown(shares.values(), limit)
    return BankResult(classes, function_of(classes), violations, limit, slowdown, len(shares), complete=True)


def _slowdown(shares: Collection[float], limit: float) -> float | None:
    slow, clean = [share for share in shares if share <= limit], [share for share in shares if share > limit]
    return fmean(clean) / fmean(slow) - 1 if slow and clean else None


def _conflict_classes(registers: Sequence[int], conflicts: set[Pair]) -> tuple[tuple[int, ...], ...]:
    home = {register: register for register in registers}
    for a, b in sorted(conflicts):
        old, new = max(home[a], home[b]), min(home[a], home[b])
        if old != new:
            home = {register: new if at == old else at for register, at in home.items()}  # unites two classes
    return tuple(
        tuple(register for register in registers if home[register] == first) for first in sorted(set(home.values()))
    )


def _violations(members: Sequence[int], conflicts: set[Pair]) -> list[tuple[int, int, int]]:
    """Return a triple for every two registers of a class that do not conflict, with one between if there is one."""
    found = []
    for a, c in combinations(members, 2):
        if (a, c) not in conflicts:
            between = (b for b in members if _pair(a, b) in conflicts and _pair(b, c) in conflicts)
            found.append((a, next(between, a), c))
    return sorted(found, key=lambda triple: triple[0] == triple[1])  # those with a register between come first


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)


def _fast(probe: _PairThroughput, registers: Sequence[int], threshold: Threshold, known: Reference) -> BankResult:
    """Compare each register with the first of each class; the provisional limit must lie in the largest gap, too."""
    clean = known.rate / probe.device.sm.theory
    margin = max(_FAST_MARGIN * known.noise, _LEAST_MARGIN)
    limit = _patent_limit(clean, known.noise) if threshold is Threshold.PATENT else clean * (1 - margin)
    classes: list[list[int]] = []
    shares: dict[Pair, float] = {}
    for register in registers:
        home = None
        for members in classes:
            pair = (members[0], register)
            shares[pair] = probe(pair)
            if shares[pair] <= limit:
                home = members
                break
        if home is None:
            classes.append([register])
        else:
            home.append(register)
    found = tuple(map(tuple, classes))
    if threshold is Threshold.AUTO:
        final = auto_limit([*shares.values(), clean], known.noise)
        if any((share <= final) != (share <= limit) for share in shares.values()):  # the classes would be others
            raise MeasurementError("unresolved: throughputs lie between conflict and none; measure without --fast")
        limit = final
    slowdown = _slowdown(shares.values(), limit)
    return BankResult(found, function_of(found), (), limit, slowdown, len(shares), complete=False)
