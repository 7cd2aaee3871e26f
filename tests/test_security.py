"""What docs/security.md promises: limits as in the code, bundles that two runs make alike, signatures that hold."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from makespan import cli

PAGE = (Path(__file__).parents[1] / "docs" / "security.md").read_text()
LIMITS = {
    "PTX": "kernels.ptx.parser:MAX_BYTES",
    "CUDA source": "kernels.ptx.cuda:MAX_SOURCE_BYTES",
    "cubin, fat binary": "kernels.sass.elf:MAX_BYTES",
    "machine code, instructions": "kernels.sass.disassembler:MAX_INSTRUCTIONS",
    "output of nvdisasm": "kernels.sass.disassembler:MAX_OUTPUT_BYTES",
    "file of instances": "model.strings:MAX_FILE_BYTES",
    "instruction string, letters": "model.program:MAX_PLACES",
    "machine file": "model.machine.files:MAX_FILE_BYTES",
    "GPU file": "model.machine.gpus:MAX_FILE_BYTES",
    "task file, file of launches": "kernels.toml_table:MAX_FILE_BYTES",
    "bundle": "verify.reading:MOST_BYTES",
    "spec of a sweep, family of a library": "many.spec:MAX_BYTES",
    "questions of a spec": "many.spec:MAX_JOBS",
    "value in the table of a sweep": "many.sweep.store:MAX_VALUE_BYTES",
    "file of results": "many.library.claims:MAX_FILE_BYTES",
    "runs of a validation": "hardware.campaign:MAX_FILE_BYTES",
    "bounds file": "kernels.flow.loops:MAX_BOUNDS_BYTES",
    "classes file": "kernels.ptx.isa:MAX_CLASSES_BYTES",
    "trace": "kernels.flow.branches:MAX_TRACE_BYTES",
    "cost table": "estimates.opencl_cost_table.table:MAX_FILE_BYTES",
    "file of samples": "estimates.microbench.samples:MAX_FILE_BYTES",
    "request of `serve`": "many.serve.server:MOST_BODY_BYTES",
    "dots in a line of TOML": "host.text_file:MAX_DOTS",
}
QUESTION = ["solve", "--string", "CL|LC", "--warps", "4", "--capacity", "C=2,L=1", "--best-case", "-q", "--bundle"]


def constant(place: str) -> int:
    module, _, name = place.partition(":")
    return int(getattr(import_module(f"makespan.{module}"), name))


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| (\d+(?: [KM]iB)?) \|$", PAGE, re.MULTILINE))
    units = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    said = {name: int(text.split()[0]) * units["".join(text.split()[1:])] for name, text in rows.items()}
    assert said == {name: constant(place) for name, place in LIMITS.items()}


def without_times(path: Path) -> dict[str, Any]:
    """A bundle as bytes would tell it, but for what two runs may differ in."""
    document: dict[str, Any] = json.loads(path.read_bytes())
    del document["sha256"], document["result"]["seconds"]
    for step in document["result"]["history"]:
        del step["seconds"]
    return document


def test_two_processes_make_one_bundle_but_for_its_times(tmp_path: Path) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    assert cli.run([*QUESTION, str(one)]) == 0
    command = [sys.executable, "-m", "makespan", *QUESTION, str(two)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    texts = [json.dumps(without_times(path)) for path in (one, two)]  # so the order of keys counts, too
    assert texts[0] == texts[1]
    assert len(without_times(one)["result"]["history"]) > 0


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no OpenSSH")
def test_the_recipe_of_a_signature_holds_and_a_changed_bundle_does_not(tmp_path: Path) -> None:
    bundle = tmp_path / "evidence.json"
    bundle.write_text('{"some": "bundle"}\n')
    (recipe,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    def done(script: str) -> int:
        return subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, check=False).returncode

    assert done(recipe) == 0
    bundle.write_text('{"some": "other"}\n')
    assert done(recipe.splitlines()[-1]) != 0
