# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What the compiler makes of a kernel
#
# A GPU does not execute PTX. `ptxas` orders instructions anew and writes into each how long its warp waits: that is
# what this notebook analyses, beside the PTX, on one machine. It needs a disassembler (`pip install 'makespan[sass]'`),
# no GPU.
#
# **You will see** the control bits of a kernel, its worst case, and why a number of PTX is no bound of what runs. It
# takes some seconds; the last cell is for you to change.

# %%
# %load_ext makespan
from dataclasses import replace
from pathlib import Path

from makespan import Launch, Limits, Status, read_kernel, replay, solve
from makespan.model.machine import find_machine, given_latencies
from makespan.report.jupyter import gantt

# %% [markdown]
# ## The code
#
# `polynomial`, compiled for sm_86: its loads, and the first instruction that needs one. B: the counters that an
# instruction awaits; R and W: those that it sets until its operands have been read, and until its result is there; then
# whether it yields, and its stall in cycles.

# %%
FOLDER = Path("../ptx")
GLOBAL = given_latencies(["global=..600"])
WARP = Launch(block=(32, 1, 1))
asked = replace(read_kernel(FOLDER / "polynomial.sm_86.cubin", WARP), blocks_per_sm=1, warm=True, latencies=GLOBAL)
kernel = asked.module().kernel("polynomial")
loads = [each for each in kernel.code if each.name == "LDG"]
needs = next(each for each in kernel.code if loads[0].control.write_counter in each.control.awaited)
assert len(loads) == 9
assert loads[-1].address < needs.address
for each in (*loads, needs):
    print(each.line, each.control, each)

# %% [markdown]
# ## Its worst case
#
# How long can one warp take, if an access to global memory takes at most 600 cycles? On a scheduler that never idles
# while the warp could go, exactly 955. Real ones do idle: while registers of one bank are read, behind multiply-adds,
# for constants and in queues. All that is known of it is in the upper end, and `without_lapses` is the result without.
# `warm=True` says that code and constants are in their caches, because the same kernel has just run.

# %%
result = solve(asked.instance())
plain = result.without_lapses
assert (result.status, plain.status) == (Status.BOUNDED, Status.EXACT)
assert replay(result.instance, result.witness) == result.bounds.lower == plain.bounds.upper == 955
assert result.bounds.upper == 1324
result

# %%
gantt(result)

# %% [markdown]
# ## The same kernel as PTX
#
# The PTX loads, multiplies and loads again, and a warp that executes it as it stands waits for seven loads, one
# after the other. The compiler has moved the loads up: their latencies overlap.

# %%
written = replace(read_kernel(FOLDER / "polynomial.ptx", WARP), latencies=GLOBAL)
as_ptx = solve(written.instance(find_machine("ampere-ga10x").machine), limits=Limits(1))
assert as_ptx.bounds.lower > 7 * 600 > 3 * result.bounds.upper
as_ptx

# %% [markdown]
# Neither is a bound for the other: the larger number is not the safe one, because it is about another program. The
# conditions of the first result say which code it is about.

# %%
assert any("compiled by ptxas" in str(assumption) for assumption in result.assumptions)
for assumption in result.assumptions:
    print("-", assumption)

# %% [markdown]
# ## Now change something
#
# How much of the worst case is memory? Try 100, 300 and 1200 cycles for a load. Is the worst case a straight line? Then
# two warps, `Launch(block=(64, 1, 1))`: they are on two partitions, and what do they still share? And what does a first
# launch cost: `warm=False`, with `fetch=..600` and `constant-miss=..600` among the latencies?

# %%
LOAD = "global=..300"
changed = solve(replace(asked, latencies=given_latencies([LOAD])).instance())
print(f"{LOAD}: {changed.bounds}")
