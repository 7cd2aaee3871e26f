"""Random structured kernels that end and store what they compute.

Each has some of what there is: nested loops, branches, switches, calls, early ends, barriers, shuffles, divisions.
"""

import random
from collections.abc import Callable

REGISTERS = 6
SLOTS = 8
"""Numbers of 32 bits that a thread stores."""


class _Writer:
    """Writes the body of a kernel; the counters of loops belong to nobody else."""

    def __init__(self, seed: int, steps: int, iterations: int) -> None:
        self.choose = random.Random(seed)
        self.lines: list[str] = []
        self.labels = iter(range(10_000))
        self.counters = 0
        self.inside: list[tuple[str, str]] = []  # where continue and break lead, of the loops around
        self.together = True  # whether all lanes of all warps are here
        self.has_ended = False  # whether some may have ended
        self.left = self.choose.randint(1 + steps // 10, steps)
        self.iterations = iterations
        parts = ("store", "load", "switch", "divide", "call", "end", "exchange", "shuffle", "leave_loop", "guarded")
        self.parts = {part for part in parts if self.choose.random() < 0.5}

    def say(self, *lines: str) -> None:
        self.lines += lines

    def register(self) -> str:
        return f"r{self.choose.randrange(REGISTERS)}"

    def value(self) -> str:
        return self.choose.choice([self.register(), self.register(), "n", str(self.choose.choice([1, 2, 3, 5, 8, -1]))])

    def label(self) -> str:
        return f"X{next(self.labels)}"

    def test(self) -> str:
        """Set p; on numbers that all lanes share, or on any."""
        first = "n" if self.choose.random() < 0.25 else self.register()
        kind = self.choose.choice(["lt.s32", "ne.s32", "ge.u32", "gt.s32", "eq.u32"])
        if self.choose.random() < 0.5:
            self.say(f"and.b32 t, {first}, {self.choose.choice([1, 3, 7])};")
            first = "t"
        self.say(f"setp.{kind} p, {first}, {self.choose.choice([0, 1, 2, 3])};")
        return self.choose.choice(["@p", "@!p"])

    def block(self, depth: int) -> None:
        for _ in range(self.choose.randint(1, 3)):
            if self.left <= 0:
                return
            self.left -= 1
            kinds: list[Callable[[int], None]] = [self.sum, self.branch, self.branch]
            kinds += [self.loop, self.loop] if depth < 3 else []
            others: list[Callable[[int], None]] = [
                self.store,
                self.load,
                self.guarded,
                self.switch,
                self.divide,
                self.call,
            ]
            others += [self.leave_loop, self.leave_loop] if self.inside else []
            others += [self.end] if self.choose.random() < 0.3 else []
            others += [self.exchange, self.shuffle] if self.together and not depth else []
            self.choose.choice(kinds + [other for other in others if other.__name__ in self.parts])(depth)

    def sum(self, depth: int) -> None:
        opcode = self.choose.choice(
            ["add.u32", "sub.s32", "mul.lo.u32", "and.b32", "xor.b32", "min.s32", "max.u32", "shr.u32", "shl.b32"]
        )
        by = str(self.choose.randrange(1, 9)) if opcode.startswith("sh") else self.value()
        self.say(f"{opcode} {self.register()}, {self.register()}, {by};")

    def guarded(self, depth: int) -> None:
        guard = self.test()
        self.say(f"{guard} add.u32 {self.register()}, {self.register()}, {self.value()};")

    def divide(self, depth: int) -> None:
        """By a number from 1 to 8."""
        opcode = self.choose.choice(["div.u32", "rem.s32"])
        self.say(f"and.b32 t, {self.value()}, 7;", "add.u32 t, t, 1;")
        self.say(f"{opcode} {self.register()}, {self.register()}, t;")

    def call(self, depth: int) -> None:
        target, argument = self.register(), self.register()
        self.say(
            "{ .param .b32 a; .param .b32 b;",
            f"st.param.b32 [a], {argument};",
            "call (b), f, (a);",
            f"ld.param.b32 {target}, [b]; }}",
        )

    def store(self, depth: int) -> None:
        self.say(f"st.global.u32 [o+{4 * self.choose.randrange(SLOTS)}], {self.register()};")

    def load(self, depth: int) -> None:
        self.say(f"ld.global.u32 {self.register()}, [d];")

    def parted(self, body: Callable[[], None]) -> None:
        """Within a branch or loop lanes may be elsewhere, and behind it, too, if some have ended there."""
        before, self.together = self.together, False
        body()
        self.together = before and not self.has_ended

    def branch(self, depth: int) -> None:
        other, after = self.label(), self.label()
        self.say(f"{self.test()} bra {other};")
        self.parted(lambda: self.block(depth + 1))
        if self.choose.random() < 0.5:
            self.say(f"bra {after};", f"{other}:")
            self.parted(lambda: self.block(depth + 1))
            self.say(f"{after}:")
        else:
            self.say(f"{other}:")

    def switch(self, depth: int) -> None:
        ways = [self.label() for _ in range(self.choose.randint(2, 5))]
        after, default, table = self.label(), self.label(), self.label()
        self.say(f"and.b32 t, {self.register()}, 7;", f"setp.ge.u32 p, t, {len(ways)};", f"@p bra {default};")
        self.say(f"{table}: .branchtargets {', '.join(ways)};", f"brx.idx t, {table};")
        for way in [*ways, default]:
            self.say(f"{way}:")
            if self.choose.random() < 0.8:
                self.say(f"add.u32 {self.register()}, {self.register()}, {self.choose.randrange(1, 99)};")
                self.parted(lambda: self.block(depth + 2))
            self.say(f"bra {after};")
        self.say(f"{after}:")

    def loop(self, depth: int) -> None:
        counter, bound = f"c{self.counters}", f"b{self.counters}"
        self.counters += 1
        head, again, behind = self.label(), self.label(), self.label()
        most = self.choose.choice(["3", "4", "n", "n", self.register()])
        self.say(f"mov.u32 {counter}, 0;", f"mov.u32 {bound}, {most};", f"and.b32 {bound}, {bound}, {self.iterations};")
        tests_first = self.choose.random() < 0.5
        if tests_first:
            self.say(f"setp.ge.u32 p, {counter}, {bound};", f"@p bra {behind};")
        self.say(f"{head}:")
        self.inside.append((again, behind))
        self.parted(lambda: self.block(depth + 1))
        self.inside.pop()
        self.say(f"{again}:", f"add.u32 {counter}, {counter}, {self.choose.choice([1, 1, 1, 2, 3])};")
        self.say(f"setp.lt.u32 p, {counter}, {bound};", f"@p bra {head};", f"{behind}:")

    def leave_loop(self, depth: int) -> None:
        self.say(f"{self.test()} bra {self.choose.choice(self.choose.choice(self.inside))};")

    def end(self, depth: int) -> None:
        guard = self.test()
        self.say(f"{guard} st.global.u32 [o], {self.register()};", f"{guard} exit;")
        self.together, self.has_ended = False, True

    def exchange(self, depth: int) -> None:
        """Through shared memory: what the thread of the same number in the other warp has."""
        mine, got = self.register(), self.register()
        self.say(f"st.shared.u32 [s], {mine};", "bar.sync 0;", f"ld.shared.u32 {got}, [s2];", "bar.sync 0;")

    def shuffle(self, depth: int) -> None:
        kind = self.choose.choice(["shfl", "ballot", "any"])
        if kind == "shfl":
            self.say(
                f"shfl.sync.bfly.b32 {self.register()}, {self.register()}, {self.choose.choice([1, 4, 16])}, 31, -1;"
            )
            return
        self.test()
        if kind == "ballot":
            self.say(f"vote.sync.ballot.b32 {self.register()}, p, -1;")
        else:
            self.say("vote.sync.any.pred p, p, -1;", f"@p add.u32 {self.register()}, {self.register()}, 1;")


def random_kernel(seed: int, *, steps: int = 40, iterations: int = 7) -> str:
    """A module with the kernel `k(data, out, n)`, of so many steps at most, whose loops make so many iterations.

    The latter is a power of two less one. The kernel runs with blocks of 64 threads; `data` has a number for each
    thread, `out` SLOTS for each.
    """
    writer = _Writer(seed, steps, iterations)
    writer.say(
        "ld.param.u64 d, [data]; ld.param.u64 o, [out]; ld.param.u32 n, [n_];",
        "mov.u32 r0, %tid.x; mul.wide.u32 w, r0, 4; add.u64 d, d, w; mul.wide.u32 w, r0, 32; add.u64 o, o, w;",
        "mov.u32 s2, shared; shl.b32 t, r0, 2; add.u32 s, s2, t; xor.b32 t, t, 128; add.u32 s2, s2, t;",
        "ld.global.u32 r1, [d]; mov.u32 r2, n; and.b32 r3, r0, 7; mov.u32 r4, 1; shr.u32 r5, r1, 3;",
    )
    while writer.left > 0:
        writer.block(0)
    writer.say(*(f"st.global.u32 [o+{4 * number}], r{number};" for number in range(REGISTERS)), "ret;")
    counters = writer.counters + 1
    return f""".version 8.0
.target sm_75
.address_size 64
.func (.param .b32 b) f(.param .b32 a)
{{
.reg .u32 x; .reg .pred p;
ld.param.b32 x, [a];
setp.gt.s32 p, x, 9;
@p mul.lo.u32 x, x, 5;
xor.b32 x, x, 3;
st.param.b32 [b], x;
ret;
}}
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 n_)
{{
.shared .b32 shared[64];
.reg .u32 r<{REGISTERS}>, c<{counters}>, b<{counters}>, n, t, s, s2; .reg .pred p; .reg .u64 d, o, w;
{chr(10).join(writer.lines)}
}}
"""
