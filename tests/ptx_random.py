"""Random kernels with nested loops and diverging branches."""

import random


def random_body(seed: int) -> str:
    """Nested counted loops over a handful of registers, with guarded and conditional steps, and early ways out.

    The kernel has a parameter `data` with the address of an array of one 32-bit number a thread.
    """
    choose = random.Random(seed)
    labels = iter(range(1000))
    registers = [f"r{number}" for number in range(5)]
    lines = [f"mov.u32 {name}, {choose.choice(['%tid.x', '%ctaid.x', *map(str, range(6))])};" for name in registers]

    def value() -> str:
        return choose.choice([*registers, *map(str, range(1, 9)), "-1"])

    def test(target: str) -> None:
        lines.append(f"setp.{choose.choice(['lt', 'ne', 'ge', 'gt'])}.{choose.choice(['s32', 'u32'])} {target},"
                     f" {choose.choice(registers)}, {value()};")  # fmt: skip

    def steps(depth: int) -> None:
        for _ in range(choose.randint(1, 3)):
            kind = choose.random()
            if kind < 0.35:
                guard = choose.choice(["", "", "@q ", "@!q "])
                opcode = choose.choice(["add.u32", "sub.s32", "and.b32", "shr.u32", "min.s32", "mul.lo.u32"])
                lines.append(f"{guard}{opcode} {choose.choice(registers)}, {choose.choice(registers)}, {value()};")
            elif kind < 0.5:
                test("q")
            elif kind < 0.55:
                lines.append(f"ld.global.u32 {choose.choice(registers)}, [{choose.choice('ab')}];")
            elif kind < 0.75:
                label = f"S{next(labels)}"
                test("q")
                lines.append(f"@q bra {label};")
                steps(depth)
                lines.append(f"{label}:")
            elif depth < 3:
                loop(depth + 1)

    def loop(depth: int) -> None:
        number = next(labels)
        counter = choose.choice(registers)
        if choose.random() < 0.8:
            lines.append(f"mov.u32 {counter}, {choose.choice(['0', '1', *registers])};")
        lines.append(f"L{number}:")
        if choose.random() < 0.3:
            test("p")
            lines.append(f"@p bra E{number};")
        steps(depth)
        if choose.random() < 0.8:
            lines.append(f"add.u32 {counter}, {counter}, {choose.choice([1, 1, 2, 3])};")
            lines.append(f"setp.lt.u32 p, {counter}, {choose.choice([*registers, 3, 6, 9])};")
        else:
            test("p")
        lines.extend([f"@p bra L{number};", f"E{number}:"])

    lines.append("setp.eq.u32 q, 0, 0;")
    lines.append("ld.param.u64 b, [data]; cvt.u64.u32 a, %tid.x; shl.b64 a, a, 2; add.u64 a, a, b;")
    loop(1)
    steps(1)
    lines.append("ret;")
    return "\n".join(lines)


def random_module(seed: int) -> str:
    """The same as the text of a module."""
    registers = ".reg .u32 r<5>; .reg .pred p, q; .reg .u64 a, b;"
    body = f"{{\n{registers}\n{random_body(seed)}\n}}"
    return f".version 8.0\n.target sm_80\n.visible .entry k(.param .u64 data)\n{body}\n"
