"""How many blocks of a launch an SM holds at once: machine code tells, of PTX the user says it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from makespan.host.errors import InputError, MissingInput, MissingInputsError, Naming
from makespan.kernels import ptx, sass
from makespan.kernels.flow import WARP_LANES
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.machine.occupancy import Occupancy, ResourceShare, SmLimits, occupancy

RESIDENT = MissingInput("blocks_per_sm", "N", "the blocks that are resident on an SM at once")


@dataclass(frozen=True, slots=True)
class Residency:
    """The facts that decide how many blocks of a launch are resident on an SM.

    Args:
        kernel: what is launched.
        asked: the number of blocks that the user gives, if any.
        threads: of a block, where they are known.
        dynamic_shared: bytes of shared memory that the launch gives each block, where they are known.
        named: what the user calls these fields.
        telling: lets errors say which program they are about.
    """

    kernel: ptx.PtxKernel | sass.SassKernel
    asked: int | None
    threads: int | None
    dynamic_shared: int | None
    named: Naming
    telling: Callable[[], AbstractContextManager[None]]

    def occupancy(self, warps: int, limits: SmLimits | None = None) -> Occupancy:
        """Return how many blocks of machine code, each of `warps` warps, an SM can hold.

        Args:
            limits: of the SM; None for those of the architecture of the code.

        Raises:
            InputError: see `sass.residency`; where the number of blocks is given the least shared memory counts that
                the launch can give.
        """
        if isinstance(self.kernel, ptx.PtxKernel):
            raise InputError(f"{self.kernel.source}: how many blocks are resident is known of machine code alone")
        # With a given number of blocks the least that the launch may add decides whether they can fit at all.
        least = 0 if self.dynamic_shared is None and self.asked is not None else self.dynamic_shared
        # The last warp may have one thread: fewer threads never need more of an SM.
        threads = self.threads or (warps - 1) * WARP_LANES + 1
        with self.telling():
            return sass.residency(self.kernel, threads, least, limits)

    def on_one_sm(self, warps: int, launched: int | None) -> tuple[int, tuple[Assumption, ...]]:
        """Return how many blocks of `warps` warps start together on an SM by itself, and why.

        Args:
            launched: the blocks of the grid; None where they are not known.
        """
        if isinstance(self.kernel, ptx.PtxKernel):
            # PTX does not tell how many blocks fit, so a given number is an assumption; a grid of one block needs none.
            is_assumed = launched is not None and launched > 1
            told = (assumptions.given_blocks(self.asked, None),) if self.asked is not None and is_assumed else ()
            return self.asked or 1, told
        room = self.occupancy(warps)
        check_resident(self.asked or 1, room, self.named)
        # A small grid does not fill the SM: no more blocks than it has start together.
        most = room.blocks_per_sm if launched is None else launched
        blocks = self.asked or min(room.blocks_per_sm, most)
        then = "one of them runs alone" if blocks == 1 else f"{blocks} of them start together"
        return blocks, self._notes(room, most, f"{room}; {then}")

    def on_gpu(self, warps: int, launched: int, limits: SmLimits | None) -> tuple[int, tuple[Assumption, ...]]:
        """Return how many blocks of `warps` warps are resident on each SM, of `launched` blocks, and why.

        Args:
            limits: of the SMs of the GPU; None where it is not known.

        Raises:
            InputError: the number is not known, or an SM does not hold so many.
        """
        if isinstance(self.kernel, ptx.PtxKernel):
            # PTX does not tell registers and shared memory: the number is the user's, and an assumption of the bound.
            count = given_resident(self.asked, warps, limits, self.named)
            return count, (assumptions.given_blocks(count, None),) if launched > 1 else ()
        room = self.occupancy(warps, limits)
        if self.asked is None:
            self._check_known(room, self.named("blocks_per_sm"))
        check_resident(self.asked or room.blocks_per_sm, room, self.named)
        return self.asked or room.blocks_per_sm, self._notes(room, launched, str(room))

    def _notes(self, room: Occupancy, launched: int, fits: str) -> tuple[Assumption, ...]:
        """Return the assumptions about how many blocks fit, and that fewer are there if the user says so."""
        told = (assumptions.residency(fits),)
        if self.asked is None or self.asked >= min(room.blocks_per_sm, launched):
            return told
        return (*told, assumptions.given_blocks(self.asked, room.blocks_per_sm))

    def shares(self, warps: int, limits: SmLimits | None) -> dict[str, ResourceShare]:
        """Return what a block of machine code takes of each resource of an SM.

        Raises:
            InputError: it is PTX, or something that limits is not known.
        """
        if isinstance(self.kernel, ptx.PtxKernel):
            raise InputError(
                f"{self.kernel.source}: what a block of PTX takes of an SM is not known: say room and takes (machine"
                " code tells: a .cubin, or arch sm_NN)"
            )
        held = self.occupancy(warps, limits)
        self._check_known(held, "room and takes")
        return dict(held.shares)

    def _check_known(self, room: Occupancy, remedy: str) -> None:
        if unknown := _unknown(room):
            raise InputError(
                f"{self.kernel.source}: what limits the resident blocks is not known of this GPU ({unknown}): say"
                f" {remedy}"
            )

    @property
    def missing_shared(self) -> tuple[MissingInput, ...]:
        """Return the shared memory that the launch adds, if it is missing and decides how many blocks are resident."""
        if isinstance(self.kernel, ptx.PtxKernel) or self.asked is not None:
            return ()
        return sass.missing_shared(self.kernel, self.dynamic_shared)

    def missing_on_gpu(self, warps: int, limits: SmLimits | None) -> tuple[MissingInput, ...]:
        """Return what is missing for the number of resident blocks; 0 warps mean that theirs is not known either."""
        if self.asked is not None:
            return ()
        if isinstance(self.kernel, ptx.PtxKernel):
            return (RESIDENT._replace(instead=(("arch", "sm_NN"),)),)
        if not warps or self.missing_shared:
            return self.missing_shared
        unknown = _unknown(self.occupancy(warps, limits))
        return (RESIDENT._replace(what=f"{RESIDENT.what}, for nobody knows {unknown} of this GPU"),) if unknown else ()


def given_resident(asked: int | None, warps: int, limits: SmLimits | None, named: Naming) -> int:
    """Return the number of blocks that a user says to be resident on an SM, where nothing else tells it.

    Raises:
        MissingInputsError: none are said.
        InputError: more than an SM of the GPU holds whatever the kernel.
    """
    if asked is None:
        raise MissingInputsError.of("a whole GPU", [RESIDENT], named)
    if limits is not None:
        check_resident(asked, occupancy(limits, warps_per_block=warps), named)
    return asked


def given_shares(
    takes: Mapping[str, int], room: Mapping[str, int], warps: int, limits: SmLimits | None
) -> dict[str, ResourceShare]:
    """Return what a block takes of each resource of an SM as a user says it.

    Raises:
        InputError: the user says it of other resources, or more blocks fit than an SM of the GPU holds.
    """
    if takes.keys() != room.keys():
        raise InputError(f"takes says what a block takes of each resource of room: {', '.join(room)}")
    found = {name: ResourceShare(takes[name], most, name) for name, most in room.items()}
    fit = min((share.room // share.takes for share in found.values() if share.takes), default=0)
    # Room may be less than a GPU has, never more: a bound for too many blocks says nothing of it.
    if limits is not None and fit > (whole := occupancy(limits, warps_per_block=warps)).blocks_per_sm:
        raise InputError(f"room and takes let {fit} blocks be resident: only {whole}")
    return found


def check_resident(blocks: int, room: Occupancy, named: Naming) -> None:
    """Refuse to have more blocks on an SM than there is room for.

    Raises:
        InputError: it names what was asked for, and what limits.
    """
    if blocks > room.blocks_per_sm:
        raise InputError(f"{named('blocks_per_sm')} {blocks}: only {room}")


def _unknown(room: Occupancy) -> str:
    return ", ".join((*room.unknown, *room.unrounded))
