"""A command of the command line, run within this process."""

from typing import NamedTuple

import pytest

from makespan import cli


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Runner:
    """`makespan NAME ...`."""

    def __init__(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.name, self.capsys = name, capsys

    def __call__(self, *arguments: object) -> Outcome:
        code = cli.run([*self.name.split(), *map(str, arguments)])
        return Outcome(code, *self.capsys.readouterr())
