# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A cost table: is it worth moving this loop to the device?
#
# A cost table says what a device takes for one operation or one access of a work-item, and for moving a byte. It is
# measured once; afterwards every data-parallel loop is priced by counting. The answer is an *estimate*: an average,
# with a tendency upwards. It bounds nothing, and the last section shows how different a bound is.
# `docs/opencl_cost_table.md` has the model.
#
# **You will see** a loop priced, a table measured, and how good the predictions are. It takes some seconds; the last
# cell is for you to change.

# %%
# %load_ext makespan
from datetime import date
from itertools import islice

from matplotlib.figure import Figure

from makespan import Bounds, Instance, solve
from makespan.estimates.opencl_cost_table import table
from makespan.estimates.opencl_cost_table.counting import count
from makespan.estimates.opencl_cost_table.device import VirtualOpenClDevice
from makespan.estimates.opencl_cost_table.evaluation import evaluate, iterations
from makespan.estimates.opencl_cost_table.expression import Array, Type
from makespan.estimates.opencl_cost_table.language import iteration
from makespan.estimates.opencl_cost_table.prediction import LaunchWork, estimate, predict
from makespan.estimates.opencl_cost_table.suite import Plan, measure, tabulate
from makespan.estimates.report import cost_prediction

# %% [markdown]
# ## The published example
#
# One work-item per element of a matrix: its row number plus the element. The kernel recovers `x` and `y` from the
# number of the work-item, which costs divisions.

# %%
matrix = Array("matrix", Type.FLOAT, (4096, 4096))
loop = iteration(r"matrix.\(x,y){ x + matrix[x,y] }", arrays=[matrix])
print(loop.opencl)

# %%
published = table.find("rmbp-gt650m")
counts = count(loop, interval_bytes=published.interval_bytes)
work = LaunchWork(counts, loop.work_items, bytes_in=loop.bytes_in, bytes_out=loop.bytes_out)
prediction = predict(published, work)
assert round(prediction.kernel, 6) == 13651.415337
print(cost_prediction.text(prediction, cpu_seconds=0.2))

# %% [markdown]
# The kernel takes 14 ms, and the transfers 277: for one pass over the data the CPU is the better place.
#
# ## Measuring a table
#
# The suite runs the same on a real device (`makespan measure opencl -o mine.json`). Here it meets a device that
# exists only as a table, which it does not see, and whose times have noise of 1 %.

# %%
hidden = table.find("rmbp-gt650m")
device = VirtualOpenClDevice(hidden, noise=0.01, seed=1)
plan = Plan(quick=True, tolerance=0.002)
mine = tabulate(device, plan, measure(device, plan), date(2026, 1, 1))
print(cost_prediction.cost_table_text(mine))

# %% [markdown]
# What is expensive is found to a percent. What is lost in the noise of a kernel around it, such as a single addition of
# 3 ps, is marked as unresolved and taken as 0 rather than guessed.

# %%
for row in ("GLOBAL_READ", "COMPLEX_GLOBAL_READ", "LOCAL_ACCESS"):
    assert abs(mine.access[row].slope / hidden.access[row].slope - 1) < 0.03
for size in (1, 2, 4, 8, 16, 32, 64, 128, 256):
    assert abs(mine.wg.factor(size) / hidden.wg.factor(size) - 1) < 0.03

# %% [markdown]
# ## How good are predictions?
#
# Random expressions are predicted with the measured table and then run. q is the predicted time divided by that
# of the device. A virtual device behaves exactly as the model says, so q is close to 1; on real devices it is not, see
# the documentation.

# %%
small = Array("matrix", Type.FLOAT, (256, 256))
found = {
    kind: evaluate(device, mine, list(islice(iterations(small, kind=kind, seed=1), 100)), group=256)
    for kind in ("random", "realistic")
}
for quality in found.values():
    assert 0.9 < quality.median < 1.1
figure = Figure(figsize=(7.5, 3), layout="constrained")
axes = figure.subplots()
for kind, quality in found.items():
    axes.hist(quality.qs, bins=20, alpha=0.5, label=kind)
axes.set(xlabel="q = predicted / time of the virtual device", ylabel="samples")
axes.legend(frameon=False)
figure

# %% [markdown]
# ## An estimate is not a bound
#
# The prediction is an `Estimate`. Worst cases are `Bounds`, they come with a proof, and neither passes for the other.

# %%
estimated = estimate(prediction)
assert not isinstance(estimated, Bounds)
print(estimated.seconds, "s, perhaps")

# %%
solve(Instance.of("CLLCLL", 2))

# %% [markdown]
# ## Now change something
#
# Which loop is worth moving? Try `matrix[x,y] * matrix[x,y]`, or read a neighbour, `matrix[y,x]`: what does an access
# across the rows cost?

# %%
EXPRESSION = "matrix[x,y] * matrix[x,y]"
changed = iteration(rf"matrix.\(x,y){{ {EXPRESSION} }}", arrays=[matrix])
priced = LaunchWork(
    count(changed, interval_bytes=published.interval_bytes),
    changed.work_items,
    bytes_in=changed.bytes_in,
    bytes_out=changed.bytes_out,
)
print(f"{EXPRESSION}: {predict(published, priced).kernel / 1000:.2f} ms for the kernel")
