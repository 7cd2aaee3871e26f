"""Warps that execute: frames of routines, lanes that diverge and meet, barriers, and the block around them.

Lanes that part at a branch run one side after the other, each up to the instruction that all ways from the branch pass
(its immediate post-dominator), where they go on together.

Source: Fung, Sham, Yuan, Aamodt, "Dynamic Warp Formation and Scheduling for Efficient GPU Control Flow", MICRO 2007,
section 2, the stack for reconvergence at immediate post-dominators.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import numpy as np

from makespan.kernels.ptx.module import PtxKernel, PtxModule
from tests.ptx_interpreter.faults import KernelFault, UnsupportedInstruction
from tests.ptx_interpreter.flow import Routine, Scope, routine
from tests.ptx_interpreter.memory import WINDOWS, Local, Space, window_of
from tests.ptx_interpreter.operands import Variable, number, variables
from tests.ptx_interpreter.values import LANES, Array, Mask, mask

QUANTUM = 1000
"""Instructions after which a running warp lets the others run, so that one may wait for another in a loop."""
FUNCTION_START, FUNCTION_STEP = 0x0800_0000, 16
MAX_FRAMES = 200

Action: TypeAlias = Callable[["Warp", Mask], None]
Place: TypeAlias = tuple[str, int, bool]
"""A space, an address in it, and whether that counts from the beginning of the frame."""


@dataclass(frozen=True, slots=True)
class Issue:
    """A warp-instruction.

    Args:
        line: in the file.
        index: of the instruction among those of its routine, in text order.
        active: the lanes that are at this instruction, bit i for lane i.
        enabled: those of them whose guard holds; the branch taken, the instruction executed.
        routine: the kernel, or the function that it called.
    """

    line: int
    index: int
    active: int
    enabled: int
    routine: str


@dataclass(slots=True)
class Entry:
    """Lanes at an instruction, and where they wait for the others: None for nowhere."""

    at: int
    until: int | None
    lanes: int


@dataclass(slots=True)
class Frame:
    """A routine under way: the registers of all lanes, its stack of diverged lanes, its part of local memory."""

    code: "Code"
    base: int
    stack: list[Entry]
    lanes: int
    values: list[Array | None]
    defined: list[int]
    returns: Callable[["Frame"], None]
    carry: Array = field(default_factory=lambda: np.zeros(LANES, bool))
    carries: dict[str, int] = field(default_factory=lambda: {"add": 0, "sub": 0})
    """The lanes whose flag is a carry, and those whose flag is a borrow: the manual does not compare them."""

    def leave(self, lanes: int) -> None:
        for entry in self.stack:
            entry.lanes &= ~lanes


@dataclass(slots=True)
class Arrival:
    """A warp at a barrier; `threads` is None when all of the block must come, `released` gets what all contributed."""

    barrier: int
    threads: int | None
    waits: bool
    contribution: Array | None = None
    released: Callable[[Array], None] | None = None


class Code:
    """A routine, decoded instruction by instruction when first executed."""

    def __init__(self, image: "Image", found: Routine) -> None:
        self.image = image
        self.routine = found
        self.actions: list[Action | None] = [None] * found.end
        self.guards: list[Callable[[Warp, int], int] | None] = [None] * found.end
        self.registers: dict[tuple[int, str], int] = {}
        self.register_count = 0
        self.variables: dict[tuple[int, str], Variable] = {}
        self.offsets: dict[tuple[int, str], int] = {}
        self.frame_bytes = 0
        for scope in found.all_scopes:
            self._declare(scope)

    def _declare(self, scope: Scope) -> None:
        declarations = list(scope.declarations)
        kernel = self.routine.kernel
        formal = () if scope.outer else (*(kernel.returns or ()), *(kernel.parameters or ()))
        for declaration in (*formal, *declarations):
            if declaration.is_register and (".v2" in declaration.text or ".v4" in declaration.text):
                continue  # so that any use of such a vector is reported
            if declaration.is_register:
                for name, count in declaration.names:
                    for one in [name] if count is None else [f"{name}{number}" for number in range(count)]:
                        self.registers[id(scope), one] = self.register_count
                        self.register_count += 1
                continue
            for variable in variables(declaration):
                key = (id(scope), variable.name)
                self.variables[key] = variable
                in_frame = variable.space == ".local" or (variable.space == ".param" and not kernel.is_entry)
                if in_frame or (variable.space == ".param" and declaration not in formal):
                    self.offsets[key] = -(-self.frame_bytes // variable.align) * variable.align
                    self.frame_bytes = self.offsets[key] + variable.bytes

    def register(self, scope: Scope, name: str) -> int | None:
        """The slot of a register; None when the innermost declaration of the name is none of a register."""
        here: Scope | None = scope
        while here is not None:
            if (id(here), name) in self.variables:
                return None
            if (id(here), name) in self.registers:
                return self.registers[id(here), name]
            here = here.outer
        return None

    def place(self, scope: Scope, name: str) -> Place | None:
        """Where a variable lies; None when there is no variable of this name."""
        here: Scope | None = scope
        while here is not None:
            key = (id(here), name)
            if key in self.offsets:
                return "local", self.offsets[key], True
            if key in self.variables:
                if here.outer is None and self.variables[key].space == ".param":
                    return "param", self.image.parameters[name], False
                return self.image.place(self.variables[key], (self.routine.kernel.name, *key))
            here = here.outer
        if name in self.image.variables:
            return self.image.place(self.image.variables[name], (name,))
        return None


class Image:
    """A module in the memory of a block: the variables, and the routines with their addresses."""

    def __init__(
        self, module: PtxModule, kernel: PtxKernel, contents: dict[str, Array], dynamic_shared_bytes: int
    ) -> None:
        self.kernel = kernel
        self.target = module.target or ""
        self.spaces = {name: Space(name) for name in ("global", "shared", "const", "param")}
        bodies = [*module.kernels, *module.functions]
        self.kernels = {k.name: k for k in bodies if k.body is not None}
        self.functions = {name: FUNCTION_START + FUNCTION_STEP * i for i, name in enumerate(self.kernels)}
        self.variables = {v.name: v for d in kernel.variables if not d.is_register for v in _known(d)}
        self.contents = contents
        self.dynamic_shared_bytes = dynamic_shared_bytes
        self.parameters: dict[str, int] = {}
        self._placed: dict[tuple[object, ...], Place] = {}
        self._codes: dict[str, Code] = {}

    def code(self, name: str) -> Code:
        if name not in self.kernels:
            raise UnsupportedInstruction(f"calls {name}, which has no body here")
        if name not in self._codes:
            self._codes[name] = Code(self, routine(self.kernels[name]))
        return self._codes[name]

    def place(self, variable: Variable, key: tuple[object, ...]) -> Place:
        space = variable.space.removeprefix(".")
        if space not in ("global", "shared", "const"):
            raise UnsupportedInstruction(f"the variable {variable.name} in {variable.space}")
        if space == "shared" and variable.bytes == 0:
            key = ("dynamic",)
        if key not in self._placed:
            address = self._allocate(space, variable)
            self._placed[key] = space, address, False
        return self._placed[key]

    def _allocate(self, space: str, variable: Variable) -> int:
        if space == "shared":
            size = variable.bytes or self.dynamic_shared_bytes
            return self.spaces[space].allocate(np.zeros(size, np.uint8), align=max(16, variable.align), tracked=True)
        if variable.name in self.contents:
            return self.spaces[space].allocate(self.contents[variable.name])
        return self.spaces[space].allocate(_initial(variable, self))


def _known(declaration: object) -> tuple[Variable, ...]:
    """The variables of a declaration; textures and samplers are none."""
    try:
        return variables(declaration)  # type: ignore[arg-type]
    except UnsupportedInstruction:
        return ()


def _initial(variable: Variable, image: Image) -> Array:
    data = np.zeros(variable.bytes, np.uint8)
    elements = data.view(variable.type.dtype if variable.type.is_float else f"u{variable.type.bytes}")
    for position, text in enumerate(variable.values):
        if text in image.variables:
            _, address, _ = image.place(image.variables[text], (text,))
            elements[position] = address
            continue
        value = number(text)
        if variable.type.is_float:
            elements[position] = value.value
        elif value.whole is not None:
            elements[position] = value.whole % (1 << variable.type.bits)
        else:
            raise UnsupportedInstruction(f"the initialiser {text} of {variable.name}")
    return data


class Warp:
    """Up to 32 threads of a block in lockstep."""

    def __init__(self, block: "Block", number: int, threads: int) -> None:
        self.block = block
        self.number = number
        first = number * LANES
        linear = np.arange(first, first + LANES)
        x, y, _ = block.shape
        self.thread = (linear % x, linear // x % y, linear // (x * y))
        self.live = (1 << min(LANES, threads - first)) - 1
        self.local = Local()
        self.frames: list[Frame] = []
        self.issues: list[Issue] = []
        self.arrival: Arrival | None = None

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def enter(self, code: Code, lanes: int, returns: Callable[[Frame], None]) -> Frame:
        """Begin a routine for some lanes; `returns` is told when all of them have left it."""
        if len(self.frames) == MAX_FRAMES:
            raise KernelFault(f"calls nest deeper than {MAX_FRAMES}")
        base = self.local.allocate(code.frame_bytes, 16)
        count = code.register_count
        frame = Frame(code, base, [Entry(0, None, lanes)], lanes, [None] * count, [0] * count, returns)
        self.frames.append(frame)
        return frame

    def set_register(self, name: str, values: Array) -> None:
        """Give a register of the running routine raw values."""
        frame = self.frame
        slot = frame.code.register(frame.code.routine.outermost, name)
        if slot is None:
            raise ValueError(f"{frame.code.routine.kernel.name} has no register {name}")
        frame.values[slot], frame.defined[slot] = values, self.live

    def settle(self) -> bool:
        """Drop what is over; whether there is an instruction to execute."""
        while self.frames:
            frame = self.frame
            while frame.stack:
                top = frame.stack[-1]
                if top.lanes and top.at == frame.code.routine.end != top.until:
                    frame.leave(top.lanes)
                elif top.lanes and top.at != top.until:
                    return True
                else:
                    frame.stack.pop()
            frame.returns(frame)
            self.frames.pop()
            self.local.release(frame.base)
        return False

    def step(self) -> None:
        """Issue one warp-instruction."""
        frame = self.frame
        top = frame.stack[-1]
        at, code = top.at, frame.code
        instruction = code.routine.instructions[at]
        try:
            action = code.actions[at]
            if action is None:
                action = self.block.decode(code, at)
            guard = code.guards[at]
            enabled = top.lanes if guard is None else guard(self, top.lanes)
            self.issues.append(Issue(instruction.line, at, top.lanes, enabled, code.routine.kernel.name))
            top.at = at + 1
            if enabled:
                action(self, mask(enabled))
        except (KernelFault, UnsupportedInstruction) as error:
            place = f"{code.routine.kernel.file}:{instruction.line}: {instruction}"
            raise type(error)(f"{place} (warp {self.number}): {error}") from None

    def jump(self, at: int, taken: Sequence[tuple[int, int]]) -> None:
        """Send lanes from the branch `at` to places; those not named go on behind it."""
        frame = self.frame
        top = frame.stack[-1]
        falling = top.lanes
        for _, lanes in taken:
            falling &= ~lanes
        sides: dict[int, int] = {}
        for place, lanes in (*taken, (at + 1, falling)):
            if lanes:
                sides[place] = sides.get(place, 0) | lanes
        if len(sides) == 1:
            top.at = next(iter(sides))
            return
        meet = frame.code.routine.meets[at]
        top.at = meet
        for place, lanes in reversed(self.block.ordered(list(sides.items()))):
            if place != meet:
                frame.stack.append(Entry(place, meet, lanes))

    def leave(self, lanes: int) -> None:
        """Return from the routine."""
        self.frame.leave(lanes)

    def exit(self, lanes: int) -> None:
        self.live &= ~lanes
        for frame in self.frames:
            frame.leave(lanes)

    def load(self, space: str, addresses: Array, m: Mask, width: int) -> Array:
        """An unsigned integer per lane; a generic address tells its space."""
        if space == "generic":
            out = np.zeros(LANES, f"u{width}")
            for name, lanes in _by_window(addresses, m):
                found = self.load(name, addresses - np.uint64(WINDOWS[name]), lanes, width)
                out[lanes.lanes] = found[lanes.lanes]
            return out
        if space == "local":
            return self.local.load(addresses, m, width)
        return self.block.image.spaces[space].load(addresses, m, width)

    def store(self, space: str, addresses: Array, m: Mask, values: Array) -> None:
        if space == "generic":
            for name, lanes in _by_window(addresses, m):
                self.store(name, addresses - np.uint64(WINDOWS[name]), lanes, values)
        elif space == "local":
            self.local.store(addresses, m, values)
        elif space in ("global", "shared"):
            self.block.image.spaces[space].store(addresses, m, values)
        else:
            raise KernelFault(f"stores to {space} memory")


def _by_window(addresses: Array, m: Mask) -> list[tuple[str, Mask]]:
    found: dict[str, int] = {}
    for lane in m.indices:
        space = window_of(int(addresses[lane]))
        found[space] = found.get(space, 0) | 1 << lane
    return [(space, mask(lanes)) for space, lanes in found.items()]


Order: TypeAlias = Callable[[list[tuple[int, int]]], list[tuple[int, int]]]


def order_of(name: str, seed: int) -> Order:
    """In which order the sides of a divergent branch run; given are the sides taken, then the one that goes on."""
    random = Random(seed)
    orders: dict[str, Order] = {
        "taken-first": lambda sides: sides,
        "fall-first": lambda sides: sides[::-1],
        "random": lambda sides: random.sample(sides, len(sides)),
    }
    return orders[name]


class Block:
    """The warps of a block, run to the end."""

    def __init__(
        self,
        image: Image,
        shape: tuple[int, int, int],
        grid: tuple[int, int, int],
        index: tuple[int, int, int],
        ordered: Order,
        decode: Callable[[Code, int], Action],
    ) -> None:
        self.image = image
        self.shape, self.grid, self.index = shape, grid, index
        self.ordered = ordered
        self.decode = decode
        threads = shape[0] * shape[1] * shape[2]
        self.warps = [Warp(self, number, threads) for number in range(-(-threads // LANES))]
        self.arrivals: list[tuple[Warp, Arrival]] = []

    def start(self) -> None:
        """Put all warps at the beginning of the kernel."""
        code = self.image.code(self.image.kernel.name)
        for warp in self.warps:
            warp.enter(code, warp.live, lambda _: None)

    def run(self, max_instructions: int) -> None:
        """Execute everything, after `start`.

        Raises:
            KernelFault: more instructions than allowed, or a deadlock, beside the faults of single instructions.
        """
        left = max_instructions
        running = list(self.warps)
        while running:
            before = left
            for warp in running:
                left -= self._some(warp, min(QUANTUM, left))
            running = [warp for warp in running if warp.arrival is not None or warp.settle()]
            self._release(running)
            if left == 0 and running:
                raise KernelFault(f"{self.image.kernel.name}: more than {max_instructions} warp-instructions")
            if left == before and all(warp.arrival for warp in running) and running:
                raise KernelFault(f"{self.image.kernel.name}: warps wait at barriers that can never be complete")

    def _some(self, warp: Warp, count: int) -> int:
        """Let a warp run; the number of instructions that it issued."""
        for done in range(count):
            if warp.arrival is not None or not warp.settle():
                return done
            warp.step()
        return count

    def arrive(self, warp: Warp, arrival: Arrival) -> None:
        self.arrivals.append((warp, arrival))
        if arrival.waits:
            warp.arrival = arrival

    def _release(self, running: list[Warp]) -> None:
        for barrier in sorted({arrival.barrier for _, arrival in self.arrivals}):
            came = [(warp, arrival) for warp, arrival in self.arrivals if arrival.barrier == barrier]
            expected = {arrival.threads for _, arrival in came}
            if len(expected) > 1:
                raise KernelFault(f"barrier {barrier} is awaited with different numbers of threads")
            threads = expected.pop()
            if len(came) >= (len(running) if threads is None else -(-threads // LANES)):
                self._open(barrier, came)

    def _open(self, barrier: int, came: list[tuple[Warp, Arrival]]) -> None:
        self.arrivals = [(warp, arrival) for warp, arrival in self.arrivals if arrival.barrier != barrier]
        parts = [arrival.contribution for _, arrival in came if arrival.contribution is not None]
        everything = np.concatenate(parts) if parts else np.zeros(0, bool)
        for warp, arrival in came:
            if arrival.waits:
                warp.arrival = None
            if arrival.released:
                arrival.released(everything)
