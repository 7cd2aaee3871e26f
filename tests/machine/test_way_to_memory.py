"""How often the way to memory of shipped GPUs takes an access: no more often than was measured, whoever asks.

Source: R. Huerta et al., "Analyzing Modern NVIDIA GPU Cores", MICRO 2025, 5.4 and table 1 (RTX A6000).
"""

from pathlib import Path

import pytest

from makespan import Limits, solve
from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.machine import MachineFile, find_machine, given_intervals, narrow_intervals, shipped_machines
from makespan.model.strings import parse_string
from tests.command import Runner

PARTITIONED = {
    name: file for name, file in shipped_machines().items() if "path" in {r.name for r in file.machine.resources}
}
MEASURED = {1: 53 - 2 + 32, 4: 99 - 2 + 32}
"""Cycles from the first issue to the last result of 16 loads of each warp that hit after 32 cycles, by the number of
partitions that have a warp: the first is issued in cycle 2, the last one in cycle 13 + 10 * 4, or 19 + 10 * 8."""


def held(file: MachineFile, unit: str) -> dict[str, tuple[int, int]]:
    (found,) = (each for each in file.machine.units if each.name == unit)
    return {use.resources[0]: (use.least, use.most) for use in found.uses}


@pytest.mark.parametrize("warps", MEASURED)
@pytest.mark.parametrize("holds", [(), ("memory=2",), ("memory=2", "path=..4")])
def test_no_bound_is_below_what_was_measured(warps: int, holds: tuple[str, ...]) -> None:
    machine = narrow_intervals(find_machine("ampere-ga10x").machine, given_intervals(holds))
    loads = parse_string("L()@32" * 16, machine)
    assert solve(Instance.of(loads, warps, machine), limits=Limits(0.5)).bounds.upper >= MEASURED[warps]


@pytest.mark.parametrize("file", PARTITIONED.values(), ids=PARTITIONED)
def test_every_gpu_with_partitions_has_the_published_rates_in_its_ranges(file: MachineFile) -> None:
    """A partition alone takes 4 cycles for an access to global and 2 for one to shared memory, all together take 2."""
    loads = held(file, "L")
    assert (loads["memory"][0], loads["path"][0]) == (2, 2)
    assert loads["path"][1] >= 4
    for unit in "KX":
        assert held(file, unit)["memory"] == (1, 2)
    unconfirmed = {datum.key for datum in file.unverified}
    assert {f"units.{unit}.uses.{name}" for unit in "LKX" for name in ("path", "memory")} <= unconfirmed


@pytest.mark.parametrize("file", PARTITIONED.values(), ids=PARTITIONED)
@pytest.mark.parametrize("text", ["memory=1", "memory=..1", "memory=1..4"])
def test_less_than_the_least_is_refused(file: MachineFile, text: str) -> None:
    with pytest.raises(InputError, match=r"class L holds memory for 2\.\.32 cycles, not for "):
        narrow_intervals(file.machine, given_intervals([text]))


def test_what_is_said_of_memory_is_said_of_its_longest_users() -> None:
    """Parameters and exchanges hold it for two cycles at most, and keep their range."""
    machine = narrow_intervals(find_machine("turing").machine, given_intervals(["memory=4", "path=..3"]))
    uses = {unit.name: [str(use) for use in unit.uses] for unit in machine.units}
    assert uses["L"] == ["path/2..3", "memory/4"]
    assert uses["K"] == uses["X"] == ["path/1..3", "memory/1..2"]
    said = [str(note).partition(";")[0].removeprefix("interval as given: ") for note in machine.caveats[-4:]]
    assert said == [
        "class L holds memory for 4 cycles",
        *(f"class {unit} holds path for at most 3 cycles" for unit in "LXK"),
    ]


LAUNCH = "--machine", "ampere-ga10x", "--hold", "memory=1"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("solve", ("--string", "L", "--warps", 1, *LAUNCH)),
        ("solve", ("--string", "L", "--warps", 1, "--gpu", "rtx-3070", "--grid", 1, "--hold", "memory=1")),
        ("simulate", ("--string", "L", "--warps", 1, *LAUNCH)),
        ("compare", ("--string", "L", "--warps", 1, *LAUNCH)),
        ("report", ("--string", "L", "--warps", 1, *LAUNCH)),
    ],
)
def test_every_command_refuses_it(
    command: str, arguments: tuple[object, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    written = ("-o", tmp_path / "page.html") if command == "report" else ()
    told = Runner(command, capsys)(*arguments, *written)
    assert (told.code, told.out) == (2, "")
    assert "class L holds memory for 2..32 cycles, not for 1 cycle" in told.err
    assert len(told.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_tasks_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = Path(__file__).parents[2] / "ptx" / "vecadd.ptx"
    file = tmp_path / "tasks.toml"
    file.write_text(
        f"""
        clock = "1GHz"
        [[partition]]
        name = "gpu"
        policy = "fifo"
        sms = 1
        [[task]]
        name = "a"
        period = "1ms"
        deadline = "1ms"
        partition = "gpu"
        kernel = "{kernel}"
        block = 32
        grid = 1
        machine = "turing"
        latency = ["global=..400"]
        hold = ["memory=1"]
        """
    )
    told = Runner("schedulability", capsys)(file)
    assert (told.code, told.out) == (2, "")
    assert "class L holds memory for 2..32 cycles, not for 1 cycle" in told.err
