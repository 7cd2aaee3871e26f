"""`makespan benchmark`: a library of instances, what is known of them, and who is better."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click
import msgspec

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.lazy import CommandRow, LazyGroup
from makespan.cli.options import SOLVE_OPTIONS, engine_options
from makespan.cli.output import DATA, format_option, render
from makespan.cli.parameters import FILE
from makespan.cli.progress import notice, progress
from makespan.cli.question import from_folder, question_instance
from makespan.cli.running import BAD_INPUT, BUG, DONE, INTERRUPTED, NO
from makespan.host.errors import InputError
from makespan.host.output_file import make_folder, write_whole
from makespan.many.commands.answering import CLAIM, VERSION
from makespan.many.commands.asking import WORKERS, QuestionRun, bundles_option, table_option
from makespan.many.library import claims
from makespan.many.library.claims import BoundClaim
from makespan.many.library.judgement import (
    ClaimContradiction,
    ClaimEvidence,
    ClaimJudgement,
    backed_claim,
    best_claims,
    check_claim,
    judge_claims,
)
from makespan.many.report.library import (
    KNOWN,
    LibraryRow,
    family_rows,
    instance_rows,
    library_document,
    library_markdown,
    library_text,
)
from makespan.many.spec import SpecQuestion, choose_questions, read_library
from makespan.many.sweep.job import FailureCause, JobOutcome
from makespan.many.sweep.store import is_store, open_store
from makespan.report.result.bundle import bundle_bytes
from makespan.verify import Refused, digest

COMMANDS = (
    CommandRow("run", "solve the instances, and hold what comes out against what is known", f"{__name__}:run"),
    CommandRow("table", "instances solved, gaps and times, by family and solver", f"{__name__}:table"),
    CommandRow("check", "execute schedules, verify bundles, compare claims", f"{__name__}:check"),
    CommandRow("show", "the instances as JSON lines, for other solvers", f"{__name__}:show"),
)
_EFFORT = {option.name for option in SOLVE_OPTIONS.values() if option.group == "effort"}
_SECONDS_BESIDE = 600.0
"""To load and to compile, and for an engine to notice that its time is up; then its process is killed."""


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    no_args_is_help=False,
    epilog=examples("makespan benchmark table benchmarks/library"),
)
def command() -> None:
    """A library of instances, what is known of each, and what solvers claim of them."""


# What the commands share

_library_options = section(
    "Library",
    click.argument("folder", metavar="LIBRARY", type=FILE),
    click.option("--family", "families", multiple=True, metavar="NAME", help="the instances of this family alone"),
    click.option("--instance", "names", multiple=True, metavar="NAME", help="this instance alone"),
)
_update_options = section(
    "Library",
    click.option("--update", is_flag=True, help=f"write bounds that are better than known ones into {claims.KNOWN}"),
    click.option(
        "--evidence",
        type=FILE,
        default=Path(),
        metavar="DIR",
        help="where contradictions are kept as files [default: here]",
    ),
)
_results_argument = click.argument("results", nargs=-1, type=FILE)


@dataclass(frozen=True)
class ChosenInstances:
    """Chosen instances of a library, and what is known of them."""

    folder: Path
    every: tuple[SpecQuestion, ...]
    entries: tuple[SpecQuestion, ...]
    known: tuple[BoundClaim, ...]

    @classmethod
    def of(cls, folder: Path, families: Sequence[str], names: Sequence[str]) -> "ChosenInstances":
        """Return the instances that the options of a library ask for.

        Raises:
            InputError: no library, no such family or instance, or a line that is no claim.
        """
        every, known = read_library(folder), folder / claims.KNOWN
        return cls(
            folder,
            every,
            choose_questions(every, families, names, folder),
            claims.read_claims(known, rewritten=True) if known.exists() else (),
        )

    @property
    def names(self) -> list[str]:
        """Return the names of the instances, in order."""
        return [entry.name for entry in self.entries]

    def posed(self) -> tuple[dict[str, dict[str, Any]], bool]:
        """Return the instances by name, each as in a bundle, and whether some cannot be asked here, which is told."""
        found: dict[str, dict[str, Any]] = {}
        for entry in self.entries:
            try:
                found[entry.name] = question_instance(from_folder(entry.ask, self.folder))
            except InputError as error:
                click.echo(f"makespan: {self.folder / entry.place}: {error}", err=True)
        return found, len(found) < len(self.entries)

    def about(self, found: Iterable[BoundClaim]) -> tuple[BoundClaim, ...]:
        """Return those claims that are about the chosen instances.

        Raises:
            InputError: a claim about an instance that the library lacks.
        """
        every, mine = {entry.name for entry in self.every}, set(self.names)
        claimed = tuple(found)
        for claim in claimed:
            if claim.instance not in every:
                raise InputError(f"{claim.where}: no instance {claim.instance!r} in {self.folder}")
        return tuple(claim for claim in claimed if claim.instance in mine)

    def results(self, path: Path) -> tuple[BoundClaim, ...]:
        """Return the claims about the chosen instances in lines of any solver, or in a table of `benchmark run`.

        Raises:
            InputError: a file that is neither, or a claim about an instance that the library lacks.
        """
        if not is_store(path):
            return self.about(claims.read_claims(path))
        with open_store(path) as store:
            return tuple(
                claim
                for asked in store.asked()
                if asked.document is not None and CLAIM in asked.document
                for claim in self.of_answer(asked.question, asked.document, str(asked.digest), path)
            )

    @cached_property
    def _by_essence(self) -> dict[str, list[SpecQuestion]]:
        found: dict[str, list[SpecQuestion]] = {}
        for entry in self.entries:
            found.setdefault(_essence(entry.ask), []).append(entry)
        return found

    def asking(self, question: Mapping[str, Any]) -> list[SpecQuestion]:
        """Return the chosen instances that a question of a table is about, whatever engines may spend on it."""
        return self._by_essence.get(_essence(question), [])

    def of_answer(
        self, question: Mapping[str, Any], document: Mapping[str, Any], bundle: str, path: Path
    ) -> Iterator[BoundClaim]:
        """Yield a claim for each chosen instance that a question of a table asks."""
        backend = question.get("backend", "auto")
        for entry in self.asking(question):
            fields = {
                **document[CLAIM],
                **{name: document[name] for name in ("lower", "upper")},
                "instance": entry.name,
                "solver": "makespan" if backend == "auto" else f"makespan {backend}",
                "limit": question.get("time-limit"),
                "seconds": round(document["seconds"], 3),
                "evidence": document["evidence"]["upper"],
                "bundle": bundle,
                "where": str(path),
            }
            try:
                yield msgspec.convert(fields, BoundClaim)
            except msgspec.ValidationError as error:
                raise InputError(f"{path}: {entry.name}: not a result: {error}") from None

    def judge(self, new: Sequence[BoundClaim], evidence: Path, more: Mapping[str, Any]) -> ClaimJudgement:
        """Tell what new claims beat and contradict, and keep each contradiction as a file.

        Args:
            evidence: the folder of these files.
            more: what such a file keeps besides, by instance.

        Raises:
            InputError: a file that cannot be written.
        """
        found = judge_claims(self.names, self.about(self.known), new)
        for beaten in found.beaten:
            click.echo(str(beaten))
        for contradiction in found.contradictions:
            click.echo(str(contradiction))
            click.echo(f"kept in {_keep_contradiction(contradiction, evidence, more.get(contradiction.instance))}")
        return found

    def update(self, new: Sequence[BoundClaim], contradictions: Sequence[ClaimContradiction]) -> None:
        """Write what is better than known into the library, except for instances whose claims contradict each other.

        Raises:
            InputError: the file cannot be written.
        """
        # Of two claims that exclude each other it is not known which is wrong: neither becomes known.
        wrong = {contradiction.instance for contradiction in contradictions}
        good = [claim for claim in new if claim.instance not in wrong]
        text = claims.claim_lines(best_claims([entry.name for entry in self.every], [*self.known, *good]))
        write_whole(self.folder / claims.KNOWN, text.encode(), "what is known")


def _essence(question: Mapping[str, Any]) -> str:
    """Return a question without what engines may spend on it, as text."""
    return json.dumps({name: value for name, value in question.items() if name not in _EFFORT}, sort_keys=True)


def _keep_contradiction(contradiction: ClaimContradiction, folder: Path, more: Any) -> Path:
    """Return one file for each pair of claims: the same pair has the same name."""
    lower, upper = (msgspec.to_builtins(claim) for claim in (contradiction.lower, contradiction.upper))
    content = {"instance": contradiction.instance, "lower": lower, "upper": upper, "more": more}
    path = folder / f"contradiction-{contradiction.instance}-{digest(content):.12}.json"
    make_folder(folder, "contradictions")
    write_whole(path, bundle_bytes(content), "the contradiction")
    return path


# The commands


@click.command(
    "run",
    cls=HelpCommand,
    epilog=examples(
        "makespan benchmark run benchmarks/library --time-limit 10 -o results.sqlite",
        "makespan benchmark run benchmarks/library --family random --backend cpsat -o cpsat.sqlite",
    ),
)
@_library_options
@engine_options
@section("Output", table_option, bundles_option)
@section(
    "Effort",
    click.option(
        "--workers", type=WORKERS, default=1, show_default=True, help="processes; several take each other time"
    ),
)
@_update_options
def run(
    folder: Path,
    families: tuple[str, ...],
    names: tuple[str, ...],
    table: Path,
    bundles: Path | None,
    workers: int,
    update: bool,
    evidence: Path,
    **effort: Any,
) -> int:
    """Solve the instances of LIBRARY and hold every result against what is known.

    An answer is in the table as soon as it is proven; what the table has with these limits is not solved again.
    Exit code 1: some result contradicts what is known; 2: some instance cannot be asked here.
    """
    asked = ChosenInstances.of(folder, families, names)
    if table.suffix == ".jsonl":
        raise InputError(f"{table}: results are a table, as of a sweep: give a name such as results.sqlite")
    posed, failed = asked.posed()
    digests = {name: digest(instance) for name, instance in posed.items()}
    # Claims about an instance that was another question then say nothing about the one of today.
    for claim in (other := [one for one in asked.known if one.digest != digests.get(one.instance, one.digest)]):
        click.echo(f"left out: {claim.where}: {claim.instance} was another question then", err=True)
    asked = replace(asked, known=tuple(claim for claim in asked.known if claim not in other))
    more: dict[str, Any] = dict(posed)

    causes = set[FailureCause]()

    def keep(outcome: JobOutcome) -> None:
        question, found = outcome.job.question, outcome.found
        if found is None:
            last = outcome.failures[-1]
            causes.add(last.cause)
            notice(f"{', '.join(entry.name for entry in asked.asking(question))}: not solved: {last.reason}")
            return
        # The whole bundle of an answer that contradicts what is known is evidence of a bug.
        new = [*asked.of_answer(question, found.document, found.digest, table)]
        for contradiction in judge_claims(asked.names, asked.known, new).contradictions:
            more[contradiction.instance] = json.loads(str(found.bundle))

    said = {name.replace("_", "-"): value for name, value in effort.items()}
    asking = QuestionRun(
        folder,
        folder.resolve(),
        table,
        effort["time_limit"] + _SECONDS_BESIDE,
        workers,
        retry=True,
        bundles=bundles,
        wants_schedules=True,
        kept=keep,
    )
    asking.check()
    if asking.answer([{**entry.ask, **said} for entry in asked.entries if entry.name in posed]) is None:
        return INTERRUPTED
    # Results of another version or of an instance that has changed are no results of this run.
    mine = [one for one in asked.results(table) if (one.version, one.digest) == (VERSION, digests.get(one.instance))]
    judged = asked.judge(mine, evidence, more)
    if update:
        asked.update(mine, judged.contradictions)
    click.echo(f"{len(mine)} results, {len(judged.beaten)} bounds beaten, {len(judged.contradictions)} contradictions")
    return NO if judged.contradictions else BUG if FailureCause.BUG in causes else BAD_INPUT if failed else DONE


@click.command(
    "check",
    cls=HelpCommand,
    epilog=examples(
        "makespan benchmark check benchmarks/library",
        "makespan benchmark check benchmarks/library theirs.jsonl --bundles evidence --update",
    ),
)
@_library_options
@_results_argument
@click.option("--bundles", type=FILE, metavar="DIR", help="evidence as DIGEST.json, to be verified")
@_update_options
def check(
    folder: Path,
    families: tuple[str, ...],
    names: tuple[str, ...],
    results: tuple[Path, ...],
    bundles: Path | None,
    update: bool,
    evidence: Path,
) -> int:
    """Ask every instance of LIBRARY, execute every schedule, and hold all claims against each other.

    RESULTS are lines of any solver, or tables of 'benchmark run'. Exit code 1: a claim is wrong or contradicts another
    one; 2: some instance cannot be asked here. With --update a bound becomes known if a schedule or a bundle proves it
    again; a word alone never does.
    """
    asked = ChosenInstances.of(folder, families, names)
    questions, failed = asked.posed()
    counted: Counter[ClaimEvidence] = Counter()
    wrong = set[int]()
    proven: list[BoundClaim] = []
    claimed = [claim for path in results for claim in asked.results(path)]
    every = (*claimed, *asked.about(asked.known))
    with progress() as show:
        for number, claim in enumerate(every):
            if claim.instance not in questions:
                continue
            show(f"{number} of {len(every)} claims checked; next: {claim.instance}")
            try:
                found = check_claim(claim, questions[claim.instance], bundles)
            except Refused as refusal:
                click.echo(f"WRONG: {claim.where}: {claim.instance}: {str(refusal).removeprefix('not a bundle: ')}")
                wrong.add(id(claim))
                continue
            counted.update(found)
            # Known claims are checked as well, but only new ones can become known.
            if number < len(claimed) and (good := backed_claim(claim, found)) is not None:
                proven.append(good)
    asked = replace(asked, known=tuple(claim for claim in asked.known if id(claim) not in wrong))
    new = [claim for claim in claimed if id(claim) not in wrong]
    judged = asked.judge(new, evidence, questions)
    if update:
        asked.update(proven, judged.contradictions)
    said = f"{len(questions)} instances, {len(asked.about(asked.known))} claims known and {len(new)} new"
    click.echo(
        f"{said}: {counted[ClaimEvidence.SCHEDULE]} schedules executed,"
        f" {counted[ClaimEvidence.BUNDLE]} bounds proven by bundles;"
        f" {len(wrong)} wrong, {len(judged.beaten)} better, {len(judged.contradictions)} contradictions"
    )
    return NO if wrong or judged.contradictions else BAD_INPUT if failed else DONE


@click.command(
    "table",
    cls=HelpCommand,
    epilog=examples(
        "makespan benchmark table benchmarks/library",
        "makespan benchmark table benchmarks/library theirs.jsonl --each --format markdown",
    ),
)
@_library_options
@_results_argument
@click.option("--each", is_flag=True, help="a line for each instance, with the best of all claims")
@format_option("markdown")
def table(
    folder: Path, families: tuple[str, ...], names: tuple[str, ...], results: tuple[Path, ...], each: bool, output: str
) -> None:
    """Show what is known of LIBRARY and what RESULTS claim. Nothing is checked here, but by 'benchmark check'."""
    asked = ChosenInstances.of(folder, families, names)
    solvers: dict[str, list[BoundClaim]] = {KNOWN: list(asked.about(asked.known))}
    for path in results:
        for claim in asked.results(path):
            solvers.setdefault(claim.who, []).append(claim)
    every = [claim for found in solvers.values() for claim in found]
    rows: list[LibraryRow] = [*instance_rows(asked.entries, every)] if each else [*family_rows(asked.entries, solvers)]
    click.echo(
        render(
            output,
            text=lambda: library_text(rows),
            data=lambda: library_document(rows),
            markdown=lambda: library_markdown(rows),
        )
    )


@click.command("show", cls=HelpCommand, epilog=examples("makespan benchmark show benchmarks/library --family paper"))
@_library_options
def show(folder: Path, families: tuple[str, ...], names: tuple[str, ...]) -> int:
    """The instances of LIBRARY as JSON lines: name, digest, and the instance as in a bundle (docs/bundle.md)."""
    posed, failed = ChosenInstances.of(folder, families, names).posed()
    for name, instance in posed.items():
        click.echo(DATA["json"]({"instance": name, "digest": digest(instance), "question": instance}))
    return BAD_INPUT if failed else DONE
