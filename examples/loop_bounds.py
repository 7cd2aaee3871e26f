"""Which loop bound matters? The worst case of a kernel as a function of the bounds of its loops.

`nbody` has a loop that the compiler unrolled by four and a loop for what is left over. Both bounds are promises of the
programmer. Printed is what one iteration more of each costs, and how large the first may be before a deadline.
"""

from dataclasses import replace
from pathlib import Path

from makespan import KernelQuestion, Status, read_kernel, solve
from makespan.kernels import flow

KERNEL = Path(__file__).parents[1] / "ptx" / "nbody.ptx"
UNROLLED, REMAINDER = "$L__BB0_3", "$L__BB0_6"
WARPS = 8
DEADLINE = 3000  # cycles


def worst_case(kernel: KernelQuestion, unrolled: int, remainder: int) -> int:
    """The worst case in cycles, exact, over all paths on which the loops run at most so often."""
    bounds = flow.given_bound(f"{UNROLLED}={unrolled}"), flow.given_bound(f"{REMAINDER}={remainder}")
    result = solve(replace(kernel, loop_bounds=bounds).instance())
    if result.status is not Status.EXACT:
        raise SystemExit(f"not exact within the time limit: {result.bounds}")
    return result.bounds.upper


def main() -> None:
    """Print the table of worst cases, the cost of an iteration, and the largest bound that is in time."""
    print(f"nbody, {WARPS} warps, one unit of each class: worst case in cycles")
    print("unrolled loop at most  remainder 1      2      3")
    kernel = read_kernel(KERNEL, warps=WARPS)
    cycles = {(u, r): worst_case(kernel, u, r) for u in (2, 3) for r in (1, 2, 3)}
    for u in (2, 3):
        print(f"{u:21}  {cycles[u, 1]:11}{cycles[u, 2]:7}{cycles[u, 3]:7}")
    print(f"\none iteration more of the unrolled loop   {cycles[3, 3] - cycles[2, 3]:4} cycles")
    print(f"one iteration more of the remainder loop  {cycles[3, 3] - cycles[3, 2]:4} cycles")
    most, found = 3, cycles[3, 3]
    while (following := worst_case(kernel, most + 1, 3)) <= DEADLINE:
        most, found = most + 1, following
    print(f"\nin time for {DEADLINE} cycles up to {most} iterations of it: {found} cycles; with one more {following}")


if __name__ == "__main__":
    main()
