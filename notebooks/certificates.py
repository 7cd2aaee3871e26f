# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Potential certificates
#
# A schedule found proves that the worst case is *at least* so long. What proves *at most*? A number for every state,
# the potential, that falls by at least 1 in every cycle, whatever the scheduler chooses: then no schedule is longer
# than the potential of the start. A certificate is such a function written down in integers. Here is one by hand, one
# by the solver, and what the checker does with both. `docs/theory.md` (theorem H) has the proof.
#
# **You will see** what a potential is, a certificate made by hand, one by a solver, and a forged one rejected. It takes
# some seconds; the last cell is for you to change.

# %%
# %load_ext makespan
import json
import random
from functools import cache
from itertools import chain, pairwise, product

from matplotlib.figure import Figure

from makespan import Instance, Machine, Status, solve
from makespan.model.certificate import Certificate, Potential, PotentialNode, PotentialTable
from makespan.model.simulate.semantics import has_finished, next_states, ready_warps, start_states
from makespan.report.result import bundle
from makespan.verify import Outcome, Refused, digest, verify
from makespan.verify.potential import bound

TWO_CORES = Machine.of({"C": 2, "L": 1})


def warps_of(number):
    """Warps CLL, two cores, one load/store unit."""
    return Instance.of("CLL", number, TWO_CORES)


# %% [markdown]
# ## The best potential there is
#
# The longest way from a state to the end is a potential itself. Of four warps it can be computed, by going through all
# states. The picture shows it in thirty runs whose scheduler throws dice: each begins at 22, and falls by 1 at least in
# every cycle. Where a line falls by more, the scheduler has given away cycles that it never gets back: no line gets
# above the dashed one, so none is longer than 22 cycles. Any other function that is 0 at the end and falls by 1 at
# least in every cycle lies above this one, and proves a bound, too.

# %%
four = Instance.of("LCCLCCCLCL", 4, TWO_CORES)


@cache
def longest(state):
    """Cycles from a state to the end, at most."""
    return max((1 + longest(after) for after in next_states(four, state)), default=0)


dice = random.Random(1)
figure = Figure(figsize=(7.5, 3), layout="constrained")
axes = figure.subplots()
for _ in range(30):
    (state,) = start_states(four)
    left = [longest(state)]
    while not has_finished(four, state):
        state = dice.choice(list(next_states(four, state)))
        left.append(longest(state))
    assert all(after <= before - 1 for before, after in pairwise(left))
    axes.plot(left, color="#0072B2", alpha=0.3)
(begin,) = start_states(four)
assert longest(begin) == solve(four).bounds.upper == 22
axes.plot([0, 22], [22, 0], color="#D55E00", linestyle="--", label="no cycle given away")
axes.set(xlabel="cycle", ylabel="cycles left at most", xlim=(0, 23), ylim=(0, 23))
axes.legend(frameon=False)
figure

# %% [markdown]
# ## By hand
#
# Of 48 warps nobody can go through all states: a potential is wanted that takes few numbers to write down. An example,
# for warps CLL: take the loads that are left, all warps together, and add 1 while no warp is ready for a load. One
# load/store unit executes a load in every cycle in which a warp is ready for one, so the first part falls by 1. If no
# warp is, some are ready for a core, and one cycle later somebody is ready for a load: the 1 goes away. It comes back
# only if the last ready load executes and no C does, and then nothing is left.
#
# W warps begin with 2 W loads and nobody ready for one: at most 2 W + 1 cycles. For three warps all states can be
# enumerated, and it is true in every cycle of each.

# %%
LOADS_LEFT = (2, 2, 1, 0)  # at the places of C, L, L, and at the end


def potential(instance, state):
    """The loads that are left, and 1 while nobody is ready for one."""
    if has_finished(instance, state):
        return 0
    return sum(LOADS_LEFT[place] for place in state.places) + (not ready_warps(instance, state)["L"])


three = warps_of(3)
reached, frontier = set(), set(start_states(three))
while frontier:
    reached |= frontier
    for state in frontier:
        assert all(potential(three, state) >= potential(three, after) + 1 for after in next_states(three, state))
    frontier = set(chain.from_iterable(next_states(three, state) for state in frontier)) - reached

(begin,) = start_states(three)
assert potential(three, begin) == 7
print(len(reached), "states; from the start at most", potential(three, begin), "cycles")

# %% [markdown]
# ## Written down
#
# Enumeration ends at a few warps. A certificate is checked for any number of them, because what a cycle does depends
# only on how many warps are ready, up to the number of units. A *node* is what the warp that finishes last is ready
# for, 0 for C and 1 for L, and the *kind* of the others: how many of them are ready, (C, L). Each node has a table:
# what one of the others contributes at each place, the same for the warp that finishes last, and a constant. (Nodes may
# also look ahead to what will run short; then they have a table for each such *label*. Here none has to.)

# %%
LOAD_READY = PotentialTable(others=((2, 2, 1),), last=(2, 2, 1), constant=0)
NO_LOAD_READY = PotentialTable(
    others=((2, 0, 0),), last=(2, 0, 0), constant=1
)  # warps at 1 or 2 would be ready for a load
TABLES = (LOAD_READY, NO_LOAD_READY)
NODES = tuple(
    (PotentialNode(last, (cores, loads)), int(last == loads == 0))
    for last, cores, loads in product((0, 1), (0, 1, 2), (0, 1))
)


def certificate(number, tables=TABLES, nodes=NODES):
    """The claim of 2 W + 1 cycles, with the tables of the nodes, each by its number, as its proof."""
    only = Potential(last_group=0, classes=("C", "L"), thresholds=(2, 1), front=0, tables=tables, nodes=nodes)
    return Certificate(upper=2 * number + 1, potentials=(only,))


for number in (3, 6, 48, 1000):
    assert bound(warps_of(number), certificate(number)) == 2 * number + 1
for number in (4, 5, 6):
    exact = solve(warps_of(number))
    assert exact.status is Status.EXACT
    assert exact.bounds.upper == 2 * number + 1  # no schedule is longer, and one is as long

# %% [markdown]
# ## One number changed
#
# Let a warp at the second place count one load instead of two in one of the nodes. Then the potential rises when such a
# warp stays there while the others leave the node. The checker goes through all combinations of moves and finds that.

# %%
SPOILT = PotentialTable(others=((2, 1, 1),), last=(2, 2, 1), constant=0)
spoilt = tuple((node, 2 if node == PotentialNode(1, (2, 1)) else table) for node, table in NODES)
try:
    bound(warps_of(6), certificate(6, (*TABLES, SPOILT), spoilt))
except Refused as refusal:
    print("refused:", refusal)
else:
    raise AssertionError("accepted a potential that does not fall")

# %% [markdown]
# ## By the solver
#
# For other strings, such as LCCCL, a linear programme finds the tables. Its solution comes in floats, which are rounded
# to integers, and the decrease d per cycle is measured exactly; the bound is the potential of the start divided by d.
# Nothing that a solver computes in floats is believed.

# %%
result = solve(Instance.of("LCCCL", 6, TWO_CORES), backend="certificate")
assert result.bounds.lower == result.bounds.upper == 14
assert result.upper_evidence == "potential"
result

# %% [markdown]
# The bundle has all of it, and `verify` shares no code with what made it. It executes the schedule, which proves *at
# least*, and goes through all moves of all nodes, which proves *at most*.

# %%
document = bundle.result_bundle(result)
verdict = verify(document)
assert verdict.outcome is Outcome.ACCEPTED
assert (verdict.lower, verdict.upper) == (14, 14)
print(verdict)

# %% [markdown]
# Now every number of the certificate is changed, one after another, and the digest is made to fit. Some changes are
# rejected. Others are accepted, because the changed function is a potential, too: not every number matters. But
# whatever is accepted proves a bound that holds: none is below 14.


# %%
def rows(proof):
    """Every row of numbers of a potential, those written out that stand for an arithmetic progression."""
    for table in proof["tables"]:
        for row in (*table["others"], table["last"]):
            row[:] = chain.from_iterable(progression(*item) if isinstance(item, list) else [item] for item in row)
            yield row


def progression(first, step, count):
    """So many numbers."""
    return (first + step * number for number in range(count))


def with_change(row_number, place, change):
    """The verdict on the bundle with one number changed."""
    copy = json.loads(json.dumps(document))
    row = list(rows(copy["certificate"]["potentials"][0]))[row_number]
    row[place] = change(row[place])
    return verify({**copy, "sha256": digest(copy)})


shapes = [len(row) for row in rows(document["certificate"]["potentials"][0])]
changes = (lambda number: number // 2, lambda number: number + 2**20)
verdicts = [with_change(n, p, change) for n, size in enumerate(shapes) for p in range(size) for change in changes]
rejected = sum(verdict.outcome is Outcome.REJECTED for verdict in verdicts)
assert 0 < rejected < len(verdicts)
assert all(verdict.upper >= 14 for verdict in verdicts if verdict.outcome is Outcome.ACCEPTED)
print(rejected, "of", len(verdicts), "changes are rejected")

# %% [markdown]
# Claiming a cycle less is rejected: the schedule in the bundle takes 14. And what a certificate proves does not depend
# on what it claims.

# %%
smaller = json.loads(json.dumps(document))
smaller["result"] |= {"lower": 13, "upper": 13}
smaller["certificate"]["upper"] = 13
assert verify({**smaller, "sha256": digest(smaller)}).outcome is Outcome.REJECTED
assert bound(warps_of(6), Certificate(upper=12, potentials=certificate(6).potentials)) == 13

# %% [markdown]
# ## Now change something
#
# The tables by hand hold for any number of warps: try a million. Then change a number in `LOAD_READY` above and run all
# cells again: which changes does the checker refuse, and which only make the bound worse?

# %%
NUMBER = 100
print(f"{NUMBER} warps CLL on two cores: at most {bound(warps_of(NUMBER), certificate(NUMBER))} cycles")
