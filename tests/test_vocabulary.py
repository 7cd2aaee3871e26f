"""One noun for one thing, and docstrings that are sentences: what docs/style.md promises of the package.

The lists of exceptions only shrink: a test fails as well when an exception is no longer needed.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import makespan

PACKAGE = Path(makespan.__file__).parent

NAMESAKES: frozenset[str] = frozenset()
"""Names that classes or type aliases of two modules still share."""

PARTICIPLES: frozenset[str] = frozenset()
"""Functions of modules whose name is still a bare participle, which does not say what they return."""

LONG_MODULES: frozenset[str] = frozenset()
"""Modules of more than `MOST_LINES` lines."""

SCHEMAS = """
benchmark/1 bundle/1 bundle/2 bundle/3 comparison/2 dual-issue/2 estimate/1 estimates/1 gpu-bundle/1 gpu-bundle/2
gpu-page/1 gpu-result/2 gpu/1 machine/1 microbench-sm/1 microbench/1 opencl-points/1 page/2 policy-gap/1
prediction-quality/1 result/1 result/2 runs/1 schedulability-page/1 schedulability/2 schedule/1 simulation/1
validation/2 verdict/1
"""
"""What the documents that the package reads and writes say that they are."""

MOST_LINES = 600
LEAST_COMMENTS = 0.02
"""The share of the lines that carry a comment."""

ELLIPTIC = re.compile(
    "What|Whether|How|Who|Whom|Whose|Where|Why|When|Which|Those|As|None|That|Of|By|See|In|At|For|From|With|Without|On|To"
    "|So|If|Per|About|Beside|Below|Above|Before|After|Under|Than|Whatever"
)
"""Words with which no docstring begins, because what follows them is no sentence."""

PARTICIPLE = re.compile(
    "(?!need|feed|seed|speed|exceed|shed|embed)[a-z]+ed|begun|bought|broken|brought|built|chosen|done|drawn|found|given"
    "|grown|held|kept|known|laid|left|made|met|paid|said|seen|sent|shown|sought|spent|spoken|taken|thought|told|written"
)


@cache
def modules() -> dict[str, ast.Module]:
    """All modules of the package, by their path in it."""
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}


def type_names(module: ast.Module) -> Iterator[str]:
    """The classes and type aliases of a module, without leading underscores."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
    for node in module.body:
        names: list[str] = []
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        yield from (name.lstrip("_") for name in names if re.match("_?[A-Z][a-z]", name))


def test_no_two_classes_have_one_name() -> None:
    holders = defaultdict(set)
    for path, module in modules().items():
        for name in type_names(module):
            holders[name].add(path)
    assert {name: paths for name, paths in holders.items() if len(paths) > 1}.keys() == NAMESAKES


def test_functions_say_what_they_return_or_do() -> None:
    nodes = (node for module in modules().values() for node in module.body)
    functions = (node.name for node in nodes if isinstance(node, ast.FunctionDef))
    assert {name for name in functions if PARTICIPLE.fullmatch(name.lstrip("_"))} == PARTICIPLES


def test_docstrings_begin_as_sentences_do() -> None:
    elliptic = [
        f"{path}:{node.lineno}: {text.splitlines()[0]}"
        for path, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and (text := ast.get_docstring(node))
        and ELLIPTIC.fullmatch(text.split()[0])
    ]
    assert elliptic == []


def test_docstrings_name_who_acts() -> None:
    """Warps, instructions, users and checkers act; "nobody" and "somebody" hide who it is."""
    vague = [
        f"{path}:{getattr(node, 'lineno', 1)}"
        for path, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module)
        and re.search(r"\b(nobody|somebody)\b", ast.get_docstring(node) or "", re.IGNORECASE)
    ]
    assert vague == []


def test_modules_are_short_enough_to_be_read() -> None:
    long = {path for path in modules() if len((PACKAGE / path).read_text("utf-8").splitlines()) > MOST_LINES}
    assert long == LONG_MODULES


def test_comments_say_why() -> None:
    texts = [(PACKAGE / path).read_text("utf-8") for path in modules()]
    tokens = (token for text in texts for token in tokenize.generate_tokens(io.StringIO(text).readline))
    comments = sum(token.type == tokenize.COMMENT for token in tokens)
    assert comments >= LEAST_COMMENTS * sum(len(text.splitlines()) for text in texts)


def test_documents_keep_the_names_of_their_schemas() -> None:
    """What others wrote by these names must be found by them, whatever the modules are called."""
    texts = " ".join((PACKAGE / path).read_text("utf-8") for path in modules())
    assert sorted(set(re.findall(r'"makespan\.([a-z-]+(?:/[a-z-]+)?/[0-9]+)"', texts))) == SCHEMAS.split()
