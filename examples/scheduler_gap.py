"""How far the worst case is above what schedulers do, on a machine with latencies.

One port each for C and L and one instruction issued per cycle; an instruction C takes 4 cycles, a load 8 to 20, and
holds its port for 2. All policies are run with every load as slow as it can be, as fast, and at random. Then the worst
case of every work-conserving scheduler with every mixture of load times is proven: it is above all of these runs.
"""

from makespan import Instance, Latency, Machine, Status, UnitClass, replay, solve
from makespan.model.simulate import POLICIES, Choices, run

STRING, WARPS = "LCCLC", 6
UNITS = UnitClass("C", 1, latency=Latency(4, 4)), UnitClass("L", 1, interval=2, latency=Latency(8, 20))
MACHINE = Machine("one scheduler", UNITS, issue_width=1)
LOADS = {"most": "all loads 20", "least": "all loads 8", "random": "random"}


def main() -> None:
    """Print the runs, and the worst case beside them."""
    instance = Instance.of(STRING, WARPS, MACHINE)
    print(f"{WARPS} warps {STRING}; C takes 4 cycles, L 8 to 20; one issue per cycle")
    print(f"{'policy':10}" + "".join(f"{name:>14}" for name in LOADS.values()))
    slowest = 0
    for policy in POLICIES:
        runs = [replay(instance, run(instance, policy, Choices(latency=loads))) for loads in LOADS]
        print(f"{policy:10}" + "".join(f"{cycles:14}" for cycles in runs))
        slowest = max(slowest, *runs)
    result = solve(instance, backend="cpsat")
    if result.status is not Status.EXACT:
        raise SystemExit(f"not exact within the time limit: {result.bounds}")
    worst = result.bounds.upper
    print(f"\nslowest of these runs  {slowest:3} cycles")
    print(f"worst case             {worst:3} cycles, {100 * (worst - slowest) / slowest:.0f} % above")
    print(f"pessimistic bound      {result.pessimistic:3} cycles")


if __name__ == "__main__":
    main()
