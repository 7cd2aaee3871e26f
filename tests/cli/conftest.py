"""Commands, each run within the process of a test."""

from tests.command import command_fixture

solve = command_fixture("solve")
compare = command_fixture("compare")
simulate = command_fixture("simulate")
report = command_fixture("report")
