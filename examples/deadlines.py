"""Three kernels share one SM: whose deadlines are proven depends on which of the waiting ones may begin.

The tasks are those of tasks.toml. Their execution times are solved from the PTX, then the same system is analysed with
each policy that an SM may have. First in, first out lets the most urgent one wait for both of the others.
"""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from makespan import Limits
from makespan.deadlines.analysis import analyse
from makespan.deadlines.description import task_set
from makespan.deadlines.files import read
from makespan.deadlines.task import ServerPolicy
from makespan.deadlines.wcet import Solver, execution_times

FILE = Path(__file__).with_name("tasks.toml")
NANOSECOND = Fraction(1, 10**9)


def main() -> None:
    """Print execution times, and what is proven by policy."""
    description = read(FILE)
    wcets = execution_times(description, Solver(Limits))
    for name, wcet in wcets.items():
        print(f"{name:6}  at most {wcet.cycles} cycles, {wcet.kind}")
    tasks, tick = task_set(description, {name: wcet.time() for name, wcet in wcets.items()})
    for policy in ServerPolicy:
        partitions = tuple(replace(partition, policy=policy) for partition in tasks.partitions)
        print(f"\n{policy}")
        for task in analyse(replace(tasks, partitions=partitions), evidence=False).tasks:
            if task.response is None:
                raise SystemExit(f"{task.task}: {task.method}")
            due = tasks.by_name[task.task].deadline
            late = "in time, proven" if task.response <= due else "no proof"
            times = [float(ticks * tick / NANOSECOND) for ticks in (task.response, due)]
            print(f"  {task.task:6}  at most {times[0]:6.1f} ns, deadline {times[1]:7.1f} ns: {late}")


if __name__ == "__main__":
    main()
