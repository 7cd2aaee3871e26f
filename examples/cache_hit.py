"""A cache hit can make a kernel slower than a miss, and neither "all hit" nor "all miss" is a safe assumption.

A load that hits takes 1 cycle here, one that misses 2. For every short instruction string and three warps on one core
and one load/store unit, the worst case is computed three times: if every load hits, if every load misses, and if each
load may do either. Printed are the strings for which misses everywhere are *faster* than hits everywhere.
"""

from itertools import product

from makespan import Instance, Latency, Machine, Result, UnitClass, solve

WARPS = 3
MOST_LETTERS = 5
HIT, MISS = 1, 2


def worst_case(string: str, latency: Latency) -> Result:
    """The worst case if every load has this latency, or any of this range."""
    units = UnitClass("C", capacity=1), UnitClass("L", capacity=1, latency=latency)
    return solve(Instance.of(string, WARPS, Machine("one core, one cache", units)))


def main() -> None:
    """Print the anomalies, and the schedule of the smallest one."""
    print(f"{WARPS} warps; a hit takes {HIT} cycle, a miss {MISS}; worst cases in cycles")
    print("string   all hit  all miss  any mixture")
    found = []
    for length in range(1, MOST_LETTERS + 1):
        for string in map("".join, product("CL", repeat=length)):
            hit, miss = (worst_case(string, Latency(cycles, cycles)).bounds for cycles in (HIT, MISS))
            if hit.lower > miss.upper:
                mixture = worst_case(string, Latency(HIT, MISS))
                found.append((string, mixture))
                print(f"{string:8} {hit.upper:7}  {miss.upper:8}  {mixture.bounds.upper:11}")
    string, mixture = found[0]
    print(f"\nThe longest schedule of {string}: which warps issue in each cycle, and the latency of every instruction")
    print("  cycles:", " ".join("+".join(map(str, warps)) or "-" for warps in mixture.witness.cycles))
    for warp, latencies in enumerate(mixture.witness.latencies):
        print(f"  warp {warp}:", " ".join(f"{unit}={cycles}" for unit, cycles in zip(string, latencies, strict=True)))


if __name__ == "__main__":
    main()
