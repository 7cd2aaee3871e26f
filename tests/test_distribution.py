"""What the archives of a release hold, by the settings that build them; `make wheel` builds them and runs the wheel."""

import tomllib
from pathlib import Path

import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from makespan.version import __version__

ROOT = Path(__file__).parents[1]


def files(folder: str) -> set[str]:
    """What a folder holds, but for what running it leaves there."""
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in found}


def packed(builder: type[SdistBuilder | WheelBuilder]) -> set[str]:
    return {file.distribution_path for file in builder(str(ROOT)).recurse_included_files()}


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else() -> None:
    found = packed(WheelBuilder)
    assert found == files("makespan")
    assert {"makespan/py.typed", "makespan/data/opcodes.tsv", "makespan/kernels/ptx/grammar.lark"} < found


def test_the_source_archive_holds_all_that_builds_explains_and_tests_it() -> None:
    found = packed(SdistBuilder)
    assert found > {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "pyproject.toml"}
    for folder in ("makespan", "tests", "docs", "examples", "ptx", "instruction_strings", "benchmarks", "notebooks"):
        assert {name for name in found if name.startswith(f"{folder}/")} == files(folder)
    assert not {Path(name).parts[0] for name in found} & {".venv", ".hypothesis", ".mypy_cache", "dist"}


def test_what_is_cited_is_what_is_released() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (cited["version"], cited["license"], cited["keywords"]) == (
        __version__,
        project["license"],
        project["keywords"],
    )
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in project["authors"]]


def test_each_change_since_the_release_is_a_sentence_or_two_that_the_release_will_take() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
    kinds = {kind["directory"] for kind in project["type"]}
    for change in (ROOT / project["directory"]).glob("[!.]*"):
        assert change.name.startswith("+"), change
        assert change.suffixes[-2:] in [[f".{kind}", ".md"] for kind in kinds], change
        assert len(change.read_text().split()) <= 90, change
        assert change.read_text().count("\n") <= 1, change


def test_the_changelog_has_this_release_and_a_place_for_the_next_one() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    first = text.index("\n## ")
    assert text[first:].startswith(f"\n## {__version__} (")
    assert "<!-- towncrier release notes start -->" in text[:first]
