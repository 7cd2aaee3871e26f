"""Byte-addressed memory with bounds, alignment and, where nothing is written beforehand, a note of what is.

Every space but global begins at address 0 of its own; a generic address adds the window of the space. All addresses fit
in 32 bits, so that modules with short addresses work alike.
"""

from bisect import bisect_right

import numpy as np

from tests.ptx_interpreter.faults import KernelFault
from tests.ptx_interpreter.values import LANES, Array, Mask

WINDOWS = {"shared": 0x0100_0000, "local": 0x0200_0000, "const": 0x0300_0000, "param": 0x0400_0000, "global": 0}
WINDOW_BYTES = 0x0100_0000
GLOBAL_START = 0x1000_0000
FIRST_BYTE = 256
"""Nothing lies at the very beginning of a space, so that stray zeros are found out."""
ALL_BYTES = {1: 0x01, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}
"""What an integer of this width is when each of its bytes is one."""


def window_of(address: int) -> str:
    """The space of a generic address."""
    for space, base in WINDOWS.items():
        if base and base <= address < base + WINDOW_BYTES:
            return space
    return "global"


class Segment:
    """Some bytes; `written` is None where all have a value from the beginning."""

    def __init__(self, base: int, data: Array, *, tracked: bool) -> None:
        self.base = base
        self.data = data
        self.written = np.zeros(data.size, bool) if tracked else None
        self.views: dict[int, Array] = {}
        self.marks: dict[int, Array] = {}

    def view(self, width: int) -> Array:
        """The bytes as unsigned integers of this width."""
        if width not in self.views:
            self.views[width] = self.data[: self.data.size // width * width].view(f"u{width}")
        return self.views[width]

    def mark(self, slots: Array, width: int) -> None:
        """Note that these integers are written."""
        if self.written is not None:
            self._marks(width)[slots] = ALL_BYTES[width]

    def is_written(self, slots: Array, width: int) -> bool:
        return self.written is None or bool((self._marks(width)[slots] == ALL_BYTES[width]).all())

    def _marks(self, width: int) -> Array:
        assert self.written is not None
        if width not in self.marks:
            self.marks[width] = self.written[: self.data.size // width * width].view(f"u{width}")
        return self.marks[width]


class Space:
    """One state space that all lanes share."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.end = GLOBAL_START if name == "global" else FIRST_BYTE

    def allocate(self, data: Array, *, align: int = 256, tracked: bool = False) -> int:
        """Place these bytes, which stay the caller's, and tell their address."""
        base = -(-self.end // align) * align
        gap = 256 if self.name == "global" else 0
        self.end = base + data.size + gap
        self.segments.append(Segment(base, data, tracked=tracked))
        self.bases.append(base)
        return base

    def load(self, addresses: Array, mask: Mask, width: int) -> Array:
        """An unsigned integer of `width` bytes for every lane of the mask; zero elsewhere."""
        out = np.zeros(LANES, f"u{width}")
        for segment, lanes, slots in self._placed(addresses, mask, width):
            if not segment.is_written(slots, width):
                raise KernelFault(f"reads {self.name} memory that nothing has written")
            out[lanes] = segment.view(width)[slots]
        return out

    def store(self, addresses: Array, mask: Mask, values: Array) -> None:
        """Store unsigned integers; where lanes meet, the highest wins."""
        width = values.itemsize
        for segment, lanes, slots in self._placed(addresses, mask, width):
            segment.view(width)[slots] = values[lanes]
            segment.mark(slots, width)

    def _placed(self, addresses: Array, mask: Mask, width: int) -> list[tuple[Segment, Array, Array]]:
        """For every segment hit: the lanes that hit it and the elements that they hit."""
        lanes = np.array(mask.indices)
        wanted = addresses[lanes].astype(np.int64)
        if (wanted % width).any():
            raise KernelFault(
                f"an address in {self.name} memory is no multiple of {width}: {_shown(wanted, wanted % width)}"
            )
        found = []
        while lanes.size:
            segment = self._segment(int(wanted[0]), width)
            offsets = wanted - segment.base
            inside = (offsets >= 0) & (offsets <= segment.data.size - width)
            found.append((segment, lanes[inside], offsets[inside] // width))
            lanes, wanted = lanes[~inside], wanted[~inside]
        return found

    def _segment(self, address: int, width: int) -> Segment:
        at = bisect_right(self.bases, address) - 1
        segment = self.segments[at] if at >= 0 else None
        if segment is None or address + width > segment.base + segment.data.size:
            raise KernelFault(f"{width} bytes at {address:#x} are outside of {self.name} memory")
        return segment


class Local:
    """The private memory of every lane of a warp: a stack."""

    def __init__(self) -> None:
        self.end = FIRST_BYTE
        self.data = np.zeros((LANES, 4096), np.uint8)
        self.written = np.zeros((LANES, 4096), bool)

    def allocate(self, size: int, align: int) -> int:
        base = -(-self.end // align) * align
        self.end = base + size
        if self.end > WINDOW_BYTES:
            raise KernelFault("local memory is exhausted")
        if self.end > self.data.shape[1]:
            grown = 2 * self.end + 8 - 2 * self.end % 8
            self.data = np.pad(self.data, ((0, 0), (0, grown - self.data.shape[1])))
            self.written = np.pad(self.written, ((0, 0), (0, grown - self.written.shape[1])))
        return base

    def release(self, end: int) -> None:
        """Give back everything from `end` on."""
        self.written[:, end : self.end] = False
        self.end = end

    def load(self, addresses: Array, mask: Mask, width: int) -> Array:
        out = np.zeros(LANES, f"u{width}")
        for lane, start in self._placed(addresses, mask, width):
            if not self.written[lane, start : start + width].all():
                raise KernelFault("reads local memory that nothing has written")
            out[lane] = self.data[lane, start : start + width].view(f"u{width}")[0]
        return out

    def store(self, addresses: Array, mask: Mask, values: Array) -> None:
        width = values.itemsize
        for lane, start in self._placed(addresses, mask, width):
            self.data[lane, start : start + width].view(f"u{width}")[0] = values[lane]
            self.written[lane, start : start + width] = True

    def _placed(self, addresses: Array, mask: Mask, width: int) -> list[tuple[int, int]]:
        found = [(lane, int(addresses[lane])) for lane in mask.indices]
        for _, start in found:
            if start % width:
                raise KernelFault(f"an address in local memory is no multiple of {width}: {start:#x}")
            if not FIRST_BYTE <= start <= self.end - width:
                raise KernelFault(f"{width} bytes at {start:#x} are outside of local memory")
        return found


def _shown(addresses: Array, wrong: Array) -> str:
    return f"{int(addresses[wrong != 0][0]):#x}"
