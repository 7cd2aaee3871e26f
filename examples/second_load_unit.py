"""What a second load/store unit is worth, exactly: often much, sometimes nothing, sometimes less than nothing.

The worst case of three kernels for every number of cores and load/store units up to three. Where a kernel waits for its
loads a second unit pays. Where it does not, a second unit can let warps run ahead, to where they are in each other's
way, and the worst case gets *longer* (Graham, 1969). So the worst case of a small machine bounds no larger one.
"""

from itertools import product

from makespan import Instance, Machine, Status, solve

KERNELS = {"LLCL": 6, "LLCCLCCC": 5, "CCLCC": 3}  # instruction string, warps
MOST_UNITS = 3


def worst_case(string: str, warps: int, cores: int, load_units: int) -> int:
    """The worst case in cycles, exact."""
    result = solve(Instance.of(string, warps, Machine.of({"C": cores, "L": load_units})))
    if result.status is not Status.EXACT:
        raise SystemExit(f"not exact within the time limit: {result.bounds}")
    return result.bounds.upper


def main() -> None:
    """Print a table for each kernel, and what the second unit changes for each number of cores."""
    units = range(1, MOST_UNITS + 1)
    for string, warps in KERNELS.items():
        cycles = {(c, u): worst_case(string, warps, c, u) for c, u in product(units, units)}
        print(f"{warps} warps {string}, worst case in cycles")
        print("          " + "".join(f"{f'L={u}':>5}" for u in units) + "   the second L")
        for c in units:
            change = cycles[c, 2] - cycles[c, 1]
            print(f"  C={c}     " + "".join(f"{cycles[c, u]:5}" for u in units) + f"   {change:+d} cycles")
        print()


if __name__ == "__main__":
    main()
