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
# issues in the right order. Four tests find out how. Here they run on a virtual GK110 that hides its facts; what they
# find says that the method works, not what hardware does. `docs/dual_issue.md` has the sources.
#
# **You will see** how banks, codes and the best order are found from timings alone. It takes some seconds; the last
# cell is for you to change.

# %%
# %load_ext makespan
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

from makespan import Instance, solve
from makespan.estimates import dual_issue
from makespan.estimates.dual_issue import IssueInstruction, Opcode, method, parse_device
from makespan.model import machine

device = parse_device("vgk110:noise=0.001,seed=5")

# %% [markdown]
# ## Latency and throughput
#
# A chain of FFMAs between two clock reads gets 9 cycles longer with each of them, as far as the noise lets one tell.

# %%
cycles = dual_issue.latency(device, noise=0.001)
single = dual_issue.throughput(device, IssueInstruction(Opcode.FMUL, 4, (1, 0)))
assert abs(cycles - 9) < 0.1
assert abs(single - 127.5) < 0.6
print(f"latency {cycles:.2f} cycles, single issue {single:.1f} of 128 lane-operations per cycle")

# %% [markdown]
# ## Register banks
#
# Two registers of a bank cannot be read in one cycle. Multiply every pair of 32 registers and sort the 496
# throughputs: there are two groups, and the limit belongs into the gap between them, not at 99.5 % of theory, where the
# noise of this device already mixes them up.

# %%
rates = sorted(
    dual_issue.throughput(device, IssueInstruction(Opcode.FMUL, 254, (a, b))) / 128 for b in range(32) for a in range(b)
)
figure = Figure(figsize=(7.5, 3), layout="constrained")
axes = figure.subplots()
axes.plot([100 * rate for rate in rates], ".", color="#0072B2", markersize=3, label="pair of registers")
axes.axhline(99.5, color="#D55E00", linestyle="--", linewidth=1, label="99.5 % of theory")
axes.set(xlabel="pairs, slowest first", ylabel="throughput (% of theory)")
axes.legend(frameon=False)
figure

# %%
banks = dual_issue.banks(device, range(32))
assert [len(members) for members in banks.classes] == [8, 8, 8, 8]
print("bank of register r:", banks.function)

# %% [markdown]
# ## Control codes
#
# Every instruction has a byte that says when the next one may follow. Measured one by one, one of them opens a dual
# issue, and fields of bits count stall cycles, up to 20; what is beyond waits for 32.

# %%
codes = dual_issue.codes(device)
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
# Six FFMAs in four cycles are the peak: two single issues and two dual ones. Sharing lanes does not tell the six orders
# apart. Why they differ on a Tesla K20 has not been explained; the virtual device is fitted to the published bars.

# %%
found = dual_issue.characterise(device, range(32), name="vgk110", origin="this notebook", is_virtual=True)
assert [str(result)[:7] for result in found.best] == ["1-2-2-1"]
for result in found.patterns:
    print(result)

# %% [markdown]
# ## What it means
#
# An estimate, never a bound: 10^9 multiply-adds, if nothing else is in their way.

# %%
estimate = dual_issue.estimate(found, dual_issue.FfmaWork(1e9), sms=13, clock_ghz=0.706)
assert 0.00057 < estimate.seconds < 0.0006
print(f"{estimate.cycles:.0f} cycles, {1e6 * estimate.seconds:.0f} us")

# %% [markdown]
# And a machine for the worst case, which does not trust dual issues: six ports, four issues per cycle, and 1 to 9
# cycles from an FFMA to the next instruction of its warp, whichever hurts most.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "vgk110.toml"
    path.write_text(method.machine_file(found))
    measured = machine.find_machine(str(path)).machine
assert measured.capacities == {"C": 6}
assert measured.issue_width == 4
result = solve(Instance.of("C", 5, measured))
result

# %% [markdown]
# ## Now change something
#
# How much noise does the method stand? Try 0.01 and 0.05 for the noise of the device, and another seed.

# %%
NOISE, SEED = 0.002, 6
noisy = parse_device(f"vgk110:noise={NOISE},seed={SEED}")
print(f"noise {NOISE:.1%}: latency {dual_issue.latency(noisy, noise=NOISE):.2f} cycles")
