"""A command of the command line, run within this process."""

import json
from typing import Any, NamedTuple

import pytest

from makespan import cli
from tests.schemas import published


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    def documents(self) -> list[dict[str, Any]]:
        """The JSON results of `makespan solve`, one a line, each valid by the published schema."""
        found = [json.loads(line) for line in self.out.splitlines()]
        for document in found:
            published("result-2").validate(document)
            assert (document["status"] == "exact") == (document["lower"] == document["upper"])
        return found


class Runner:
    """`makespan NAME ...`."""

    def __init__(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.name, self.capsys = name, capsys

    def __call__(self, *arguments: object) -> Outcome:
        code = cli.run([*self.name.split(), *map(str, arguments)])
        return Outcome(code, *self.capsys.readouterr())


def command_fixture(name: str) -> Any:
    """A fixture that runs `makespan NAME ...`."""

    @pytest.fixture
    def command(capsys: pytest.CaptureFixture[str]) -> Runner:
        return Runner(name, capsys)

    return command
