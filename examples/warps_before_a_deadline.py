"""How many warps may one SM run before a deadline? Three ways to ask, three answers, and only one of them is right.

A kernel of ten instructions runs on two cores and one load/store unit and has 35 cycles. The pessimistic bound
M^L + M^C is safe and gives capacity away. The slowest of all simulated scheduling policies looks fine for one warp too
many: there is a schedule that a work-conserving scheduler may choose, and that misses the deadline.
"""

from collections.abc import Mapping

from makespan import Instance, Machine, Result, Status, replay, solve
from makespan.model.simulate import POLICIES, run

STRING = "LCCLCCCLCL"
MACHINE = Machine.of({"C": 2, "L": 1})
DEADLINE = 35  # cycles


def slowest_run(instance: Instance) -> int:
    """Cycles of the slowest policy; each is one schedule, and bounds nothing."""
    return max(run(instance, policy).makespan for policy in POLICIES)


def most_warps(cycles: Mapping[int, int]) -> int:
    """The largest number of warps up to which everybody is in time, by cycles for every number."""
    warps = 0
    while cycles.get(warps + 1, DEADLINE + 1) <= DEADLINE:
        warps += 1
    return warps


def main() -> None:
    """Print the curves, and what they allow."""
    print(f"{STRING} on C=2, L=1, deadline {DEADLINE} cycles")
    print("warps  slowest policy  worst case  M^L + M^C")
    simulated: dict[int, int] = {}
    proven: dict[int, Result] = {}
    for warps in range(1, 10):
        instance = Instance.of(STRING, warps, MACHINE)
        simulated[warps], proven[warps] = slowest_run(instance), solve(instance, backend="search")
        result = proven[warps]
        if result.status is not Status.EXACT:
            raise SystemExit(f"not exact within the time limit: {result.bounds}")
        print(f"{warps:5}  {simulated[warps]:14}  {result.bounds.upper:10}  {result.pessimistic:9}")
    exact = {warps: result.bounds.upper for warps, result in proven.items()}
    pessimistic = {warps: result.pessimistic for warps, result in proven.items()}
    print(f"\nin time by M^L + M^C         {most_warps(pessimistic)} warps  safe, too few")
    print(f"in time by the worst case    {most_warps(exact)} warps  safe, and no more are")
    believed = most_warps(simulated)
    print(f"in time by {len(POLICIES)} policies        {believed} warps  unsafe")
    missed = proven[believed]
    cycles = replay(missed.instance, missed.witness)
    print(f"\na work-conserving schedule of {believed} warps, replayed: {cycles} cycles, {cycles - DEADLINE} too late")


if __name__ == "__main__":
    main()
