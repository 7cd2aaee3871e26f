# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The paper, reproduced
#
# K. Berezovskyi, K. Bletsas and B. Andersson, *Makespan computation for GPU threads running on a single streaming
# multiprocessor*, ECRTS 2012: how many cycles can the warps of a thread block take, at most, if the scheduler is only
# known to be work-conserving? Here are its model, its integer programme and its pessimistic bound, and what can be
# proven today where the programme is too large. Every number that the text names is asserted.
#
# **You will see** the model that all of this project is about, what was computed then, and what can be proven now. It
# takes half a minute; the last cell is for you to change.

# %%
# %load_ext makespan
import random
from pathlib import Path

from matplotlib.figure import Figure

from makespan import Instance, Limits, Machine, Status, replay, solve
from makespan.kernels import ptx
from makespan.proof.bounds import pairs, pessimistic
from makespan.proof.engines.ilp import model as ilp_model
from makespan.proof.engines.ilp import solver as ilp
from makespan.report.jupyter import gantt
from makespan.report.result import bundle
from makespan.verify import Outcome, verify

# %% [markdown]
# ## Instruction strings
#
# A warp is a string: C needs a core, L a load/store unit, each for one cycle. The base case has one unit of each. The
# paper's kernel searches the nearest point. Counted instruction by instruction its listing has 26 letters; the string
# that the paper goes on with has 22.

# %%
LISTING = Path("../ptx/nearest_point_paper.ptx")
letters = "".join(line.unit for line in ptx.listing(ptx.read(LISTING).kernel()) if line.unit)
NEAREST = "LLLLCCCCCCCCCLLCCCCCCC"
assert letters == "LLLLLCCCCCCCCCLLCCCCCCCCCC"
assert (len(letters), len(NEAREST)) == (26, 22)

# %% [markdown]
# ## The longest schedule
#
# Two warps `CLLCLL` take 10 cycles if the scheduler chooses badly, and 9 if it chooses well. In no cycle is a unit
# idle that a ready warp could use.

# %%
small = solve(Instance.of("CLLCLL", warps=2), best_case=True)
assert small.bounds.lower == small.bounds.upper == 10
assert small.best_case.upper == 9
small

# %%
gantt(small)

# %% [markdown]
# ## The pessimistic bound
#
# `M^L + M^C`: the worst case of the loads alone and that of the rest alone, as if the two never overlapped. For n
# instructions of one class on σ units that is n cycles for fewer than σ other warps, and n + ⌊(W-1) n / σ⌋ otherwise.


# %%
def alone(instructions, warps, units):
    """M^X: the worst case of a string of one class."""
    return instructions + ((warps - 1) * instructions // units if warps - 1 >= units else 0)


def paper_bound(string, warps, cores=1, load_units=1):
    """M^L + M^C."""
    return alone(string.count("L"), warps, load_units) + alone(string.count("C"), warps, cores)


for cores, load_units in ((1, 1), (2, 1), (4, 2)):
    machine = Machine.of({"C": cores, "L": load_units})
    for string in ("CLLCLL", NEAREST):
        for warps in range(1, 49):
            assert paper_bound(string, warps, cores, load_units) == pessimistic(Instance.of(string, warps, machine))

for warps in range(1, 11):
    assert solve(Instance.of("C" * 6, warps)).bounds.upper == alone(6, warps, 1)  # sharp for a single class
assert paper_bound("CLLCLL", warps=2) == 12  # and not for two: the worst case is 10

# %% [markdown]
# ## The integer programme
#
# Binary variables say which instruction of which warp executes in which cycle, and which one is not left waiting: `4 W
# I T + 2 T` of them for W warps of I instructions and a horizon of T cycles. For two warps `CLLCLL` these are 600, and
# CBC proves 10. For 48 warps of 420 instructions they would be more than a billion.


# %%
def binaries(warps, instructions, horizon):
    """How many variables the programme has."""
    return 4 * warps * instructions * horizon + 2 * horizon


pair = small.instance
model = ilp_model.build(pair, 12, "published", lambda: False)
assert model.problem.numVariables() == binaries(2, 6, 12) == 600
found = ilp.solve(pair, Limits(seconds=60), horizon=12, form="published")
assert found.upper == replay(pair, found.witness) == 10
assert binaries(48, 420, 48 * 420) > 10**9

# %% [markdown]
# ## Beyond its reach
#
# With one unit of each class and at least three equal warps there is a formula: `W I - (W-1) k`, where k is the
# largest number of disjoint neighbours that differ (theorem E of `docs/theory.md`), and a schedule that attains it. So
# the worst case of the paper's string is exact for every number of warps; at 48 warps it is 915 cycles, where the
# pessimistic bound says 1056.

# %%
assert pairs(NEAREST) == 3
curve = {warps: solve(Instance.of(NEAREST, warps)) for warps in range(1, 49)}
assert all(result.status is Status.EXACT for result in curve.values())
assert all(result.bounds.upper == 22 * warps - 3 * (warps - 1) for warps, result in curve.items() if warps >= 3)
assert (curve[48].bounds.upper, curve[48].pessimistic) == (915, 1056)

figure = Figure(figsize=(7, 3.5), layout="constrained")
axes = figure.subplots()
axes.plot(list(curve), [result.pessimistic for result in curve.values()], "--", color="#5A5A5A", label="M^L + M^C")
axes.plot(list(curve), [result.bounds.upper for result in curve.values()], color="#0072B2", label="worst case, exact")
axes.set(xlabel="warps", ylabel="cycles", title=NEAREST, xlim=(0, 49), ylim=(0, None))
axes.legend(frameon=False)
figure

# %% [markdown]
# 420 random letters and 48 warps: 20,160 instructions. The schedule is replayed, and the independent checker proves
# the bound again.

# %%
long_string = "".join(random.Random(2012).choices("CL", k=420))
large = solve(Instance.of(long_string, warps=48))
assert large.status is Status.EXACT
assert replay(large.instance, large.witness) == large.bounds.upper < large.pessimistic == 48 * 420
assert verify(bundle.result_bundle(large)).outcome is Outcome.ACCEPTED
large

# %% [markdown]
# With more units no formula is known. Then a search over counts of warps is exact for small instances, here 6 warps
# and two cores, and certificates bound the large ones (`certificates.py`).

# %%
two_cores = Machine.of({"C": 2, "L": 1})
searched = solve(Instance.of(NEAREST, 6, two_cores), backend="search")
assert searched.status is Status.EXACT
assert searched.bounds.upper < searched.pessimistic == paper_bound(NEAREST, 6, cores=2)
searched

# %% [markdown]
# ## Now change something
#
# Which string of six letters gains most from the sharper bound? Try `CLCLCL`, `LLLCCC` and `CCCLLL`, and more warps.

# %%
STRING, WARPS = "CLCLCL", 3
changed = solve(Instance.of(STRING, WARPS))
print(f"{WARPS} x {STRING}: {changed.bounds}, M^L + M^C {changed.pessimistic}")
gantt(changed)
