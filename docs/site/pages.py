"""What the site adds to the pages: their order, what the program says of itself, and notebooks with what they show."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import command_line
import interface
import notebook
from sphinx.application import Sphinx

REPOSITORY = Path(__file__).parents[2]
ROOT = "docs/README"
SOURCES = ["*.md", "docs/*.md", "*/README.md", "notebooks/*.py", "examples/*.py"]
WITHOUT = [".*", "build", "dist", "makespan", "benchmarks"]
GENERATED = {"commands": command_line.reference, "interface": interface.reference}
"""What takes the place of `<!-- generated: NAME -->` in a page."""


def complete(app: Sphinx, name: str, content: list[str]) -> None:
    """Make of a page what the site shows; the event `source-read` of Sphinx."""
    (text,) = content
    source = app.env.doc2path(name)
    if source.parent.name == "notebooks" and source.suffix == ".py":
        text = notebook.markdown(text, source.parent, execute=app.config.execute)
    elif source.suffix == ".py":
        text = example(source.stem, text, source.with_suffix(".txt").read_text())
    if name == ROOT:
        text += "".join(tables_of_contents(text))
    text = re.sub(r"<!-- generated: (\w+) -->", lambda match: GENERATED[match[1]](), text)
    content[0] = re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)\)", lambda match: _link(source.parent, *match.groups()), text)


def example(name: str, code: str, printed: str) -> str:
    """A script as a page: what it is about, its code and what it prints."""
    first, _, about = (ast.get_docstring(ast.parse(code)) or "").partition("\n")
    title = f"# {name.replace('_', ' ').capitalize()}\n\n**{first}**\n{about}"
    return f"{title}\n\n```python\n{code}```\n\nIt prints:\n\n```text\n{printed}```\n"


def tables_of_contents(text: str) -> Iterator[str]:
    """For each section of the first page a table of the pages that it links to, each where it is named first."""
    seen = {ROOT}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        caption, _, body = section.partition("\n")
        links = (str(_resolved(link)) for link in re.findall(r"\]\(([^)#:]+)\.(?:md|py)\)", body))
        new = [link for link in dict.fromkeys(links) if link not in seen]
        seen |= {*new}
        listed = "\n".join(f"/{link}" for link in new)
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def _link(folder: Path, text: str, target: str) -> str:
    """A link as the site has it: of Python code that is no page its reader gets the file, and a folder has no page."""
    aim = folder.joinpath(target).resolve()
    if aim.is_dir():
        return text
    is_file = aim.suffix == ".py" and aim.parent.name not in {"notebooks", "examples"}
    return f"[{text}]({'path:' * is_file}{target})"


def _resolved(link: str) -> Path:
    """A link of the first page, from the root of the repository."""
    return (REPOSITORY / ROOT).parent.joinpath(link).resolve().relative_to(REPOSITORY)
