# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From three kernels to a verdict
#
# A camera pipeline: a filter, edges, and a search for the peak, three CUDA kernels that share one SM of a GPU. Each
# comes again and again and has a deadline. Is every job of every task in time, whatever the warp scheduler does and
# whenever the jobs arrive? Every number that the text names is asserted.
#
# **You will see** how execution times become a verdict, what breaks first, and what evidence against a deadline looks
# like. It takes some seconds; the last cell is for you to change.

# %%
# %load_ext makespan
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from IPython.display import SVG

from makespan import Launch, Limits, Status, read_kernel, solve
from makespan.deadlines.analysis import analyse
from makespan.deadlines.assessment import assessments
from makespan.deadlines.evidence import find_miss, worst_window
from makespan.deadlines.files import read
from makespan.deadlines.report.chart import draw_window
from makespan.deadlines.report.text import report
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.deadlines.wcet import Solver, execution_times

FILE = Path("../examples/tasks.toml")
print(FILE.read_text())

# %% [markdown]
# ## One kernel
#
# What the file asks for is what `solve` answers: the longest time that the warps can take under any work-conserving
# scheduler. `filter` runs two blocks of four warps, both on the SM at once: 930 cycles, exactly.

# %%
kernel = read_kernel("../ptx/fir.ptx", Launch(block=(128, 1, 1), grid=(2, 1, 1)))
result = solve(replace(kernel, blocks_per_sm=2).instance())
assert result.status is Status.EXACT
assert result.bounds.upper == 930
result

# %% [markdown]
# ## All execution times
#
# At 1.4 GHz these are 664.3, 227.1 and 418.6 nanoseconds. Fractions keep them exact.

# %%
description = read(FILE)
wcets = execution_times(description, Solver(Limits))
assert {name: wcet.cycles for name, wcet in wcets.items()} == {"filter": 930, "edges": 318, "peak": 586}
assert wcets["filter"].seconds == Fraction(930, 1_400_000_000)
assert all(wcet.is_exact for wcet in wcets.values())

# %% [markdown]
# ## The verdict
#
# Kernels are not preempted, so `filter`, the most urgent, may wait for one kernel of `peak` that has just begun:
# 418.6 ns of blocking and 664.3 ns of its own make 1082.9 ns, and its deadline is 1200 ns.

# %%
*_, found = assessments(description, wcets, with_margins=True)
print(report(found))

# %%
assert found.answer is DeadlineAnswer.YES
bounds = {task.task: task.response for task in found.verdict.tasks}
nanoseconds = {name: round(float(ticks * found.tick * 10**9), 1) for name, ticks in bounds.items()}
assert nanoseconds == {"filter": 1082.9, "edges": 1810.0, "peak": 1810.0}

# %% [markdown]
# ## What breaks first
#
# All kernels may take 1.108 times as long. With 1.109 times there is a schedule in which `filter` is late.

# %%
margin = found.margins[0]
assert (margin.holds, margin.fails) == (Fraction(1108, 1000), Fraction(1109, 1000))
assert margin.breaks == ("filter",)
assert margin.refuted

# %% [markdown]
# ## A deadline that does not hold
#
# With a deadline of 1 us the analysis has no proof for `filter`. That alone is no refutation, for analyses only
# suffice. But a simulation of legal schedules finds a job that is late, and this is one.

# %%
tasks = found.task_set
micro = int(Fraction(1, 10**6) / found.tick)
hasty = replace(tasks, tasks=tuple(replace(t, deadline=micro) if t.name == "filter" else t for t in tasks.tasks))
verdict = analyse(hasty)
assert verdict.answer is DeadlineAnswer.NO
miss = find_miss(hasty, "filter")
assert miss is not None
assert miss.completion - miss.arrival > micro
print(miss.scenario)

# %% [markdown]
# The picture shows that schedule: `peak` has just begun when `filter` is released.

# %%
draw_window(worst_window(hasty, names=("filter",)), found.tick, Path("late.svg"), title="filter is late")
picture = Path("late.svg").read_text()
Path("late.svg").unlink()
assert "end after the deadline" in picture
SVG(picture)

# %% [markdown]
# ## Now change something
#
# What is the shortest deadline of `filter` that is proven? Try 1.05, 1.1 and 1.2 microseconds. Below it, is there
# always a late job, or does the analysis only lack a proof?

# %%
DEADLINE_US = 1.1
changed = tuple(replace(t, deadline=int(DEADLINE_US * micro)) if t.name == "filter" else t for t in tasks.tasks)
print(f"filter within {DEADLINE_US} us: {analyse(replace(tasks, tasks=changed)).answer.name}")
