# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a kernel to a verdict
#
# A CUDA kernel, a GPU, a clock and a deadline: is the kernel always in time? Every step is exact, every assumption is
# listed, and every number that the text names is asserted.
#
# **You will see** how a kernel becomes a string, how the string becomes a proven number of cycles, and how far that
# number carries. It needs no GPU and takes some seconds; the last cell is for you to change.

# %%
# %load_ext makespan
from fractions import Fraction
from math import ceil
from pathlib import Path

from makespan import Instance, Launch, Status, read_kernel, replay, solve
from makespan.model.machine import find_machine
from makespan.report.jupyter import gantt

# %% [markdown]
# ## The kernel
#
# `polynomial` evaluates a polynomial of degree 7 in each thread. Blocks have 128 threads, that is 4 warps.

# %%
FOLDER = Path("../ptx")
print((FOLDER / "polynomial.cu").read_text().partition("\n\n")[2])

# %% [markdown]
# nvcc compiles it to PTX. There is no branch in it, so every warp executes one string, which the pictures and messages
# lead back to the lines of the PTX.

# %%
(group,) = read_kernel(FOLDER / "polynomial.ptx", Launch(block=(128, 1, 1))).instance().groups
program, warps = group.program, group.warps
assert warps == 4
assert program.letters == "LLLLCCCCCCCCCLCCCLCCCLCCLCCLCCLCCLCCLCCLCCL"
assert (len(program.letters), program.letters.count("L")) == (43, 14)
for origin, letter in list(zip(program.origins, program.letters, strict=True))[:6]:
    print(letter, f"line {origin.line}", origin.text)

# %% [markdown]
# ## The GPU
#
# A Fermi GF104, from the machine files of the package: three ports for C, each held for two cycles by an instruction,
# a port for L held as long, and one instruction issued per cycle. The file has a source for every number, and says
# what it does not know. Its cycles are those of the shader clock.

# %%
file = find_machine("fermi-gf104")
units = {unit.name: (unit.capacity, unit.interval) for unit in file.machine.units}
assert (units["C"], units["L"], file.machine.issue_width) == ((3, 2), (1, 2), 1)
assert file.clock.startswith("shader clock")
for caveat in file.caveats:
    print("-", caveat)

# %% [markdown]
# ## The worst case
#
# 187 cycles, exactly: a schedule takes so long, and a certificate proves that none takes longer. The pessimistic bound
# is 295.

# %%
result = solve(Instance.of(program, warps, file.machine))
assert result.status is Status.EXACT
assert replay(result.instance, result.witness) == result.bounds.upper == 187
assert result.pessimistic == 295
result

# %%
gantt(result)

# %% [markdown]
# ## Seconds
#
# At 1.35 GHz, the shader clock of a GeForce GTX 460, 187 cycles are 138.5 nanoseconds. Fractions keep that exact;
# rounding is for print only.

# %%
CLOCK_HZ = 1_350_000_000
NANOSECOND = Fraction(1, 10**9)
seconds = Fraction(result.bounds.upper, CLOCK_HZ)
assert seconds == Fraction(187, 1_350_000_000)
assert round(float(seconds / NANOSECOND), 1) == 138.5

# %% [markdown]
# ## The deadline
#
# One SM executes four blocks of this kernel, one at a time, and must have ended them 600 ns after the launch. Blocks
# are not preempted: when the launch comes, a block of the same kernel from another stream may just have begun, and it
# ends first. So the response time is, with C the worst case of a block and D the deadline,
#
#     R = blocking + 4 C = C + 4 C,    in time if R <= D.
#
# 692.6 ns are too late. Without blocking it would be 554.1 ns, in time.

# %%
DEADLINE = 600 * NANOSECOND
BLOCKS = 4


def response(cycles, blocking):
    """Seconds from the launch until the last block has ended."""
    return blocking + BLOCKS * Fraction(cycles, CLOCK_HZ)


blocked = response(result.bounds.upper, blocking=seconds)
alone = response(result.bounds.upper, blocking=0)
assert alone < DEADLINE < blocked
print(f"alone {float(alone / NANOSECOND):.1f} ns, blocked {float(blocked / NANOSECOND):.1f} ns")
assert (round(float(alone / NANOSECOND), 1), round(float(blocked / NANOSECOND), 1)) == (554.1, 692.6)

# %% [markdown]
# Which clock would do? `5 C / f <= D` needs `f >= 5 C / D`: 1559 MHz, rounded up. By the pessimistic bound it would
# have to be 2459 MHz, and even without blocking the kernel would be refused although it is in time.


# %%
def least_mhz(cycles):
    """The least whole number of MHz at which five times so many cycles are in time."""
    return ceil((BLOCKS + 1) * cycles / DEADLINE / 10**6)


assert (least_mhz(result.bounds.upper), least_mhz(result.pessimistic)) == (1559, 2459)
assert (BLOCKS + 1) * Fraction(result.bounds.upper, 1_559_000_000) <= DEADLINE
assert (BLOCKS + 1) * Fraction(result.bounds.upper, 1_558_000_000) > DEADLINE
assert response(result.pessimistic, blocking=0) > DEADLINE > alone

# %% [markdown]
# ## What was assumed
#
# The verdict is one of the model: PTX is not what the hardware executes, and this machine has no latencies, because no
# source gives any. The result says so itself.

# %%
assert {*program.assumptions, *file.caveats} <= set(result.assumptions)
assert any("no latency is known" in str(assumption) for assumption in result.assumptions)
for assumption in result.assumptions:
    print("-", assumption)

# %% [markdown]
# ## Now change something
#
# How does the worst case grow with the number of warps? Try 1, 3, 6 and 8: up to where is it exact, and how far is the
# pessimistic bound off? Then try `find("paper")` in place of the Fermi. If you want latencies, and the instructions
# that a GPU really executes, go on with `machine_code.py`.

# %%
WARPS = 2
changed = solve(Instance.of(program, WARPS, file.machine))
print(f"{WARPS} warps: {changed.bounds}, pessimistic {changed.pessimistic}")
gantt(changed)
