"""What the commands of a library share: options, instances as questions, and the judgement of new claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from makespan.cli.help_page import section
from makespan.cli.question import QuestionData, from_folder, question_instance
from makespan.host.errors import InputError
from makespan.host.output_file import make_folder, write_whole
from makespan.many.library import claims, collection
from makespan.many.library.claims import BoundClaim
from makespan.many.library.collection import Library, LibraryEntry
from makespan.many.library.judgement import ClaimContradiction, ClaimJudgement, best_claims, judge_claims
from makespan.report.result.bundle import bundle_bytes
from makespan.verify import digest

library_options = section(
    "Library",
    click.argument("folder", metavar="LIBRARY", type=click.Path(path_type=Path)),
    click.option("--family", "families", multiple=True, metavar="NAME", help="the instances of this family alone"),
    click.option("--instance", "names", multiple=True, metavar="NAME", help="this instance alone"),
)

update_options = section(
    "Library",
    click.option("--update", is_flag=True, help=f"write bounds that are better than known ones into {claims.KNOWN}"),
    click.option(
        "--evidence",
        type=click.Path(path_type=Path),
        default=Path(),
        metavar="DIR",
        help="where contradictions are kept as files [default: here]",
    ),
)


@dataclass(frozen=True, slots=True)
class ChosenInstances:
    """Chosen instances of a library, and what is known of them."""

    library: Library
    entries: tuple[LibraryEntry, ...]
    known: tuple[BoundClaim, ...]

    @classmethod
    def of(cls, folder: Path, families: Sequence[str], names: Sequence[str]) -> "ChosenInstances":
        """Return the instances that `library_options` ask for.

        Raises:
            InputError: no library, no such family or instance, or a line that is no claim.
        """
        library = collection.read_library(folder)
        known = folder / claims.KNOWN
        return cls(
            library,
            library.chosen(families, names),
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
                found[entry.name] = question_instance(entry_question(entry, self.library))
            except InputError as error:
                place = f"{self.library.folder / entry.family}.toml: instance {entry.name!r}"
                click.echo(f"makespan: {place}: {error}", err=True)
        return found, len(found) < len(self.entries)

    def without_other_questions(self, digests: Mapping[str, str]) -> "ChosenInstances":
        """Return the same without claims about instances that were other questions then; a line says so of each."""
        other = [claim for claim in self.known if claim.digest != digests.get(claim.instance, claim.digest)]
        for claim in other:
            click.echo(f"left out: {claim.where}: {claim.instance} was another question then", err=True)
        return replace(self, known=tuple(claim for claim in self.known if claim not in other))

    def about(self, found: Iterable[BoundClaim]) -> tuple[BoundClaim, ...]:
        """Return those claims that are about the chosen instances.

        Raises:
            InputError: a claim about an instance that the library lacks.
        """
        every, mine = {entry.name for entry in self.library.entries}, set(self.names)
        claimed = tuple(found)
        for claim in claimed:
            if claim.instance not in every:
                raise InputError(f"{claim.where}: no instance {claim.instance!r} in {self.library.folder}")
        return tuple(claim for claim in claimed if claim.instance in mine)


def entry_question(entry: LibraryEntry, library: Library) -> QuestionData:
    """Return the question of an instance, with names of files as from the folder of the library."""
    return from_folder(entry.ask, library.folder)


def tell_judgement(
    names: Sequence[str],
    known: Sequence[BoundClaim],
    new: Sequence[BoundClaim],
    *,
    folder: Path,
    more: Mapping[str, Any],
) -> ClaimJudgement:
    """Say what new claims about some instances beat and contradict.

    Args:
        folder: where contradictions are kept, each as a file of its own.
        more: what such a file keeps besides, by instance.

    Raises:
        InputError: a file that cannot be written.
    """
    found = judge_claims(names, known, new)
    for beaten in found.beaten:
        click.echo(str(beaten))
    for contradiction in found.contradictions:
        click.echo(str(contradiction))
        click.echo(f"kept in {_keep(contradiction, folder, more.get(contradiction.instance))}")
    return found


def update_known(
    asked: ChosenInstances, new: Sequence[BoundClaim], contradictions: Sequence[ClaimContradiction]
) -> None:
    """Write what is better than known into the library, except for instances whose claims contradict each other.

    Raises:
        InputError: the file cannot be written.
    """
    # Of two claims that exclude each other it is not known which is wrong: neither becomes known.
    wrong = {contradiction.instance for contradiction in contradictions}
    good = [claim for claim in new if claim.instance not in wrong]
    every = [entry.name for entry in asked.library.entries]
    text = claims.claim_lines(best_claims(every, [*asked.known, *good]))
    write_whole(asked.library.folder / claims.KNOWN, text.encode(), "what is known")


def _keep(contradiction: ClaimContradiction, folder: Path, more: Any) -> Path:
    """Return one file for each pair of claims: the same pair has the same name."""
    lower, upper = (msgspec.to_builtins(claim) for claim in (contradiction.lower, contradiction.upper))
    content = {"instance": contradiction.instance, "lower": lower, "upper": upper, "more": more}
    path = folder / f"contradiction-{contradiction.instance}-{digest(content):.12}.json"
    make_folder(folder, "contradictions")
    write_whole(path, bundle_bytes(content), "the contradiction")
    return path
