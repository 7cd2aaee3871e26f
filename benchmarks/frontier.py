"""How far every method gets: the most warps for which it proves the worst case in time, by string and capacities.

    python -m benchmarks.frontier --results frontier.jsonl
    python -m benchmarks.frontier --seconds 5 --lengths 8,12 --capacities 2,1 --peers auto,didp,cpsat

Our engines as `solve` runs them (`auto`, `certificate`, `search`), beside models with nothing but the bound M^L + M^C:
the published integer programme, by CBC, HiGHS and CP-SAT; its tightened form; our model for CP-SAT; and a dynamic
programme for DIDP (`pip install --group peers`). All get the same random strings, one thread, and the same processor
time and memory, each attempt in a process of its own.

A method gets more warps, along `WARPS`, while it proves *every* string of a cell; the string that took longest comes
first, so that one failure is enough. Where it does not prove two warps, longer strings count as not proven.

Attempts are kept as JSON lines, and not made again, nor with more time what was proven with less. A proof that
contradicts another, or theorem E, ends the run with exit code 1.
"""

import argparse
import json
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from makespan import Instance, Limits, Machine, replay, solve
from makespan.host.tool import temporary_folder
from makespan.model.result import Bounds
from makespan.proof.bounds import pessimistic
from makespan.proof.engines.construct import convoy
from makespan.proof.engines.cpsat import solver as cpsat
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.ilp import model as ilp_model
from makespan.proof.engines.ilp import solver as ilp

WARPS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48)
LENGTHS = "8,12,16,24,40,100"
CAPACITIES = "1,1 2,1 2,2 4,2"
STRINGS = 3

PATIENCE = 20
"""Elapsed over processor time, on a machine with other work, from which on an attempt is given up."""

Answer = tuple[int, int]
"""Proven lower and upper bounds, in cycles."""

Peer = Callable[[Instance, float, int], Answer]
"""Bounds of an instance, given seconds of processor time and bytes."""


def own(backend: str) -> Peer:
    """An engine as `solve` runs it."""

    def answer(instance: Instance, seconds: float, memory_bytes: int) -> Answer:
        limits = Limits(seconds=seconds, memory_bytes=memory_bytes // 2, clock=time.process_time)
        bounds = solve(instance, backend=backend, limits=limits).bounds
        return bounds.lower, bounds.upper

    return answer


def alone(model: Callable[..., Finding], **options: str) -> Peer:
    """A model by itself, with the pessimistic bound as its horizon; the system ends it at its time."""

    def answer(instance: Instance, seconds: float, memory_bytes: int) -> Answer:
        horizon, limits = pessimistic(instance), Limits(seconds=PATIENCE * seconds, memory_bytes=memory_bytes)
        found = model(instance, limits, horizon=horizon, **options)
        lower = 0 if found.witness is None else replay(instance, found.witness)
        return lower, horizon if found.upper is None else found.upper

    return answer


def published_by_cpsat(instance: Instance, limits: Limits, *, horizon: int) -> Finding:
    """CP-SAT, as it comes, on the published programme."""
    from ortools.sat.python import cp_model

    programme = ilp_model.build(instance, horizon, "published")
    assert programme is not None
    problem, target = programme.problem, cp_model.CpModel()
    literals = {variable.name: target.new_bool_var(variable.name) for variable in problem.variables()}

    def summed(terms: Any) -> Any:
        return cp_model.LinearExpr.weighted_sum([literals[v.name] for v in terms], [int(terms[v]) for v in terms])

    for row in problem.constraints.values():
        total, right = summed(row), -int(row.constant)
        target.add(total <= right if row.sense < 0 else total >= right if row.sense > 0 else total == right)
    target.minimize(summed(problem.objective))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = limits.remaining
    if solver.solve(target) != cp_model.OPTIMAL:
        return Finding()
    witness = programme.schedule({name: solver.value(literal) for name, literal in literals.items()})
    return Finding(witness, -round(solver.objective_value))


def by_highs(instance: Instance, limits: Limits, *, horizon: int, form: str) -> Finding:
    """HiGHS, as it comes with OR-Tools, on an integer programme."""
    from ortools.linear_solver.python import model_builder_helper as engine

    programme, model = ilp_model.build(instance, horizon, form), engine.ModelBuilderHelper()
    assert programme is not None
    with temporary_folder() as folder:
        file = str(folder / "model.mps")
        _, names, _, _ = programme.problem.writeMPS(file, rename=1)
        assert model.import_from_mps_file(file)
    solver = engine.ModelSolverHelper("highs")
    solver.set_solver_specific_parameters("threads=1\nmip_rel_gap=0")
    solver.set_time_limit_in_seconds(max(0.01, limits.remaining))
    solver.solve(model)
    if solver.status() != engine.SolveStatus.OPTIMAL:
        return Finding()
    values = {model.var_name(v): solver.variable_value(v) for v in range(model.num_variables())}
    witness = programme.schedule({name: values[short] for name, short in names.items()})
    return Finding(witness, witness.makespan)


def by_didp(instance: Instance, _: Limits, **__: int) -> Finding:
    """DIDP, which has the same bound for what is left, in every state."""
    from benchmarks import didp

    return didp.solve(instance)


PEERS: dict[str, Peer] = {
    "auto": own("auto"),
    "certificate": own("certificate"),
    "search": own("search"),
    "didp": alone(by_didp),
    "cpsat": alone(cpsat.solve),
    "published-cpsat": alone(published_by_cpsat),
    "published-highs": alone(by_highs, form="published"),
    "published-cbc": alone(ilp.solve, form="published"),
    "tightened-highs": alone(by_highs, form="tightened"),
    "tightened-cbc": alone(ilp.solve, form="tightened"),
}


class Question(NamedTuple):
    """A string on so many warps and units of C and L."""

    string: str
    warps: int
    capacities: tuple[int, int]

    @property
    def instance(self) -> Instance:
        """What the methods get."""
        return Instance.of(self.string, self.warps, Machine.of(dict(zip("CL", self.capacities, strict=True))))


class Budget(NamedTuple):
    """What an attempt may take: seconds of processor time, all processes together, and bytes each."""

    seconds: float
    memory_bytes: int


class Attempt(NamedTuple):
    """What came of it: proven bounds, if any, in cycles, and seconds of processor time."""

    peer: str
    question: Question
    limit_seconds: float
    seconds: float
    lower: int
    upper: int | None

    @property
    def proven(self) -> bool:
        """Whether the worst case is known, in time."""
        return self.lower == self.upper and self.seconds <= self.limit_seconds

    @classmethod
    def read(cls, line: str) -> "Attempt":
        """From a line that `str` wrote."""
        peer, (string, warps, capacities), *figures = json.loads(line)
        return cls(peer, Question(string, warps, (capacities[0], capacities[1])), *figures)

    def __str__(self) -> str:
        return json.dumps(self)


def attempt(peer: str, question: Question, budget: Budget) -> Attempt:
    """In a process of its own, which has loaded what we have, and ends with its processor time."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    began = _seconds_of_children()
    process = fork.Process(target=_answer, args=(PEERS[peer], question, budget, sender))
    process.start()
    sender.close()
    try:
        lower, upper = receiver.recv() if receiver.poll(PATIENCE * budget.seconds) else (0, None)
    except EOFError:  # out of time or memory
        lower, upper = 0, None
    process.join(1)
    process.kill()
    process.join()
    return Attempt(peer, question, budget.seconds, round(_seconds_of_children() - began, 2), lower, upper)


def _answer(peer: Peer, question: Question, budget: Budget, sender: Connection) -> None:
    whole = int(1.05 * budget.seconds) + 1  # the system counts ticks; what was in time is seen afterwards
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    resource.setrlimit(resource.RLIMIT_AS, (budget.memory_bytes, budget.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sender.send(peer(question.instance, *budget))


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Contradiction(Exception):
    """Two proofs exclude each other."""


class Attempts:
    """All that were made, those of the file among them, and what they prove together."""

    def __init__(self, file: Path | None, budget: Budget) -> None:
        self.file, self.budget = file, budget
        self.known: dict[tuple[str, Question, float], Attempt] = {}
        self.soonest: dict[tuple[str, Question], Attempt] = {}
        self.proofs: dict[Question, Bounds] = {}
        for line in file.read_text("utf-8").splitlines() if file is not None and file.exists() else ():
            self._add(Attempt.read(line))

    def __call__(self, peer: str, question: Question) -> Attempt:
        """Make it, unless it is known."""
        key = peer, question, self.budget.seconds
        if (sooner := self.soonest.get((peer, question))) is not None and sooner.seconds <= self.budget.seconds:
            return sooner
        if key not in self.known:
            made = attempt(peer, question, self.budget)
            print(made, file=sys.stderr, flush=True)
            if self.file is not None:
                with self.file.open("a", encoding="utf-8") as out:
                    print(made, file=out)
            self._add(made)
        return self.known[key]

    def _add(self, made: Attempt) -> None:
        before = self.proofs.get(made.question) or _to_begin_with(made.question.instance)
        lower, upper = max(before.lower, made.lower), min(before.upper, made.upper or before.upper)
        if lower > upper:
            raise Contradiction(f"{before.lower}..{before.upper} cycles are proven, and then {made}")
        self.proofs[made.question] = Bounds(lower, upper)
        self.known[made.peer, made.question, made.limit_seconds] = made
        if made.proven:  # more time is not needed
            both = made, self.soonest.get((made.peer, made.question), made)
            self.soonest[made.peer, made.question] = min(both, key=lambda one: one.seconds)


def _to_begin_with(instance: Instance) -> Bounds:
    worst = replay(instance, convoy.schedule(instance)) if convoy.applies(instance) else None
    return Bounds(worst or 0, worst or pessimistic(instance))


def frontier(peer: str, strings: Sequence[str], capacities: tuple[int, int], attempts: Attempts) -> int:
    """The most warps in `WARPS` before the first that it does not prove for every string; 0 if none."""
    most, order = 0, list(strings)
    for warps in WARPS:
        seconds = {}
        for string in order:
            made = attempts(peer, Question(string, warps, capacities))
            if not made.proven:
                return most
            seconds[string] = made.seconds
        order.sort(key=lambda string: -seconds[string])
        most = warps
    return most


def frontiers(
    peers: Sequence[str], lengths: Sequence[int], capacities: Sequence[tuple[int, int]], attempts: Attempts
) -> Iterator[tuple[tuple[int, int], int, dict[str, int]]]:
    """For every capacities and length, the frontiers of all peers."""
    lost = set()
    for units, letters in product(capacities, lengths):
        strings = ["".join(random.Random(f"{letters} {n}").choices("CL", k=letters)) for n in range(STRINGS)]
        row = {}
        for peer in peers:
            row[peer] = 0 if (peer, units) in lost else frontier(peer, strings, units, attempts)
            if not row[peer]:
                lost.add((peer, units))
        yield units, letters, row


def main() -> int:
    """Read the command line, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time for an attempt")
    parser.add_argument("--gigabytes", type=float, default=8.0, help="of memory for an attempt")
    parser.add_argument("--lengths", default=LENGTHS, help="of strings, ascending")
    parser.add_argument("--capacities", default=CAPACITIES, help="units of C and L, pairs separated by spaces")
    parser.add_argument("--peers", default=",".join(PEERS), help="separated by commas")
    parser.add_argument("--results", type=Path, help="a file of attempts, which is read and added to")
    given = parser.parse_args()
    peers, lengths = given.peers.split(","), [int(length) for length in given.lengths.split(",")]
    if unknown := sorted(set(peers) - set(PEERS)):
        parser.error(f"unknown peer {unknown[0]!r}; known: {', '.join(PEERS)}")
    pairs = [pair.split(",") for pair in given.capacities.split()]
    for backend in ("certificate", "search"):  # loads what they compile, for all attempts
        solve(Instance.of("CLLCCLLLCC", 5, Machine.of({"C": 2, "L": 1})), backend=backend, limits=Limits(seconds=600))
    print("\n".join(f"| {' | '.join(cells)} |" for cells in (["C, L", "I", *peers], ["---"] * (len(peers) + 2))))
    try:
        attempts = Attempts(given.results, Budget(given.seconds, int(given.gigabytes * 2**30)))
        for (c, l), letters, row in frontiers(peers, lengths, [(int(c), int(l)) for c, l in pairs], attempts):  # noqa: E741
            best = max(row.values())
            cells = [f"**{most}**" if most == best else str(most or "-") for most in row.values()]
            print(f"| {c}, {l} | {letters} | {' | '.join(cells)} |", flush=True)
    except Contradiction as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
