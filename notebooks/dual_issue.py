# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Dual issue
#
# How many 32-bit multiply-adds (FFMA) per cycle can an SM sustain? A GK110 has 192 lanes, of which single issue reaches
# 128. The rest takes two instructions of a warp in the same cycle, registers in the right banks, and single and dual
# issues in the right order. Four tests find out how. Here are their published results for a Tesla K20;
# `docs/dual_issue.md` has the sources.
#
# **You will see** how banks, codes and the best order follow from throughputs and distances alone. It takes some
# seconds; the last cell is for you to change.

# %%
# %load_ext makespan
import random
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

from makespan import Instance, solve
from makespan.estimates import dual_issue
from makespan.estimates.dual_issue.register_banks import find_banks
from makespan.estimates.report.dual_issue import machine_file
from makespan.model import machine

k20 = dual_issue.find("tesla-k20")
assert (k20.latency, k20.single) == (9.0, 127.5)
print(f"latency {k20.latency} cycles, single issue {k20.single} of 128 lane-operations per cycle")

# %% [markdown]
# ## Register banks
#
# Two registers of a bank cannot be read in one cycle. Multiply every pair of 32 registers, and there are two groups of
# throughputs, from which the banks follow.

# %%
assert [len(members) for members in k20.banks.classes] == [8, 8, 8, 8]
print("bank of register r:", k20.banks.function)

# %% [markdown]
# A clock is noisy. Here are the 496 throughputs again, sorted, with 0.1 % of noise: the limit belongs into the gap
# between the groups, not at 99.5 % of theory, where such a noise already mixes them up.


# %%
def noisy_rates(noise, seed):
    """Return the throughput of every pair, of theory, as a noisy clock would measure it."""
    draw, bank = random.Random(seed), k20.banks.function
    pairs = [(a, b) for b in range(32) for a in range(b)]
    return {(a, b): (119.17 if bank(a) == bank(b) else 127.5) / 128 / (1 + draw.gauss(0, noise)) for a, b in pairs}


rates = noisy_rates(0.001, seed=5)
figure = Figure(figsize=(7.5, 3), layout="constrained")
axes = figure.subplots()
axes.plot(sorted(100 * rate for rate in rates.values()), ".", color="#0072B2", markersize=3, label="pair of registers")
axes.axhline(99.5, color="#D55E00", linestyle="--", linewidth=1, label="99.5 % of theory")
axes.set(xlabel="pairs, slowest first", ylabel="throughput (% of theory)")
axes.legend(frameon=False)
figure

# %%
assert find_banks(rates, clean=127.5 / 128).function == k20.banks.function

# %% [markdown]
# ## Control codes
#
# Every instruction has a byte that says when the next one may follow. Measured one by one, one of them opens a dual
# issue, and fields of bits count stall cycles, up to 20; what is beyond waits for 32.

# %%
codes = k20.codes
assert codes.dual == (0x04,)
assert len(codes.fields) == 10
figure = Figure(figsize=(7.5, 3), layout="constrained")
axes = figure.subplots()
axes.plot(codes.gaps, ".", color="#0072B2", markersize=4)
axes.set(xlabel="control code", ylabel="cycles to the next instruction")
axes.set_xticks(range(0, 257, 32), [f"{code:#04x}" for code in range(0, 257, 32)])
figure

# %% [markdown]
# ## Order of single and dual issues
#
# Six FFMAs in four cycles are the peak: two single issues and two dual ones. Why their six orders differ on a Tesla K20
# has not been explained.

# %%
assert [str(result)[:7] for result in k20.best] == ["1-2-2-1"]
for result in k20.patterns:
    print(result)

# %% [markdown]
# ## What it means
#
# An estimate, never a bound: 10^9 multiply-adds, if nothing else is in their way.

# %%
estimate = dual_issue.estimate(k20, dual_issue.FfmaWork(1e9), sms=13, clock_ghz=0.706)
assert 0.00057 < estimate.seconds < 0.0006
print(f"{estimate.cycles:.0f} cycles, {1e6 * estimate.seconds:.0f} us")

# %% [markdown]
# And a machine for the worst case, which does not trust dual issues: six ports, four issues per cycle, and 1 to 9
# cycles from an FFMA to the next instruction of its warp, whichever hurts most.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "k20.toml"
    path.write_text(machine_file(k20))
    measured = machine.find_machine(str(path)).machine
assert measured.capacities == {"C": 6}
assert measured.issue_width == 4
result = solve(Instance.of("C", 5, measured))
result

# %% [markdown]
# ## Now change something
#
# How much noise do the banks stand? Try 0.005 and 0.01: beyond, the method says that it cannot tell.

# %%
NOISE, SEED = 0.002, 6
print(f"noise {NOISE:.1%}: bank of register r: {find_banks(noisy_rates(NOISE, SEED), clean=127.5 / 128).function}")
