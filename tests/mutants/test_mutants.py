"""Mutants of a module of a few lines: which of them its only test notices can be told by hand."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.mutants.operators import mutants

ROOT = Path(__file__).parents[2]
SMALL = """
'Words are left alone: 1 < 2.'

def spare(have: int, need: int = 0) -> int:
    if need > 9:
        raise ValueError(f'{need + 1} are too many')
    while not have:
        have = need
    return have - need
"""
TEST = """
def test_spare():
    from small.module import spare  # which nobody has loaded before
    assert spare(5, 2) == 3
"""
RUN = (
    "from tests.mutants import __main__, child; __main__.LIBRARIES = (); child.SECONDS, child.SLOWER = 1, 0;"
    " __main__.main()"
)
OUTCOMES = {
    "0 -> 1": "survived",
    "0 -> -1": "survived",
    "if need > 9: -> if not need > 9:": "killed",
    "if need > 9: -> pass": "survived",
    "need > 9 -> need >= 9": "survived",
    "9 -> 10": "survived",
    "9 -> 8": "survived",
    "raise ValueError(f'{need + 1} are too many') -> pass": "unreached",
    "not have -> have": "limit",
    "return have - need -> return None": "killed",
    "have - need -> have + need": "killed",
    "have - need -> have": "killed",
}


def test_what_the_only_test_of_a_small_module_notices(tmp_path: Path) -> None:
    for name, text in {"small/__init__.py": "", "small/module.py": SMALL, "checks/test_small.py": TEST}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-c", RUN, "small", "--tests", "checks"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", "TMPDIR": str(tmp_path)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    records = [json.loads(line) for line in (tmp_path / "mutants.jsonl").read_text().splitlines()]
    assert {record["mutant"].partition(": ")[2]: record["outcome"] for record in records} == OUTCOMES
    assert {record["by"] for record in records if record["outcome"] == "killed"} == {"checks/test_small.py::test_spare"}
    assert "all 12 4 1 6 1" in " ".join(run.stdout.split())


def test_what_is_assigned_to_a_name_of_a_function_can_be_compiled(tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text("box.floor = box.max = min(1, box.any)")
    for number in range(len(mutants(str(file)))):
        mutant = mutants(str(file))[number]
        mutant.apply()
        compile(ast.fix_missing_locations(mutant.tree), "", "exec")
