"""What machine code tells control flow."""

import pytest

from makespan.sass.instruction_set import machine_code, place


@pytest.mark.parametrize(
    ("sm", "block", "grid"),
    [
        (75, "c[0x0][0x0]", "c[0x0][0xc]"),
        (86, "c[0x0][0x0]", "c[0x0][0xc]"),
        (90, "c[0x0][0x0]", "c[0x0][0xc]"),
        (100, "c[0x0][0x360]", "c[0x0][0x370]"),
        (120, "c[0x0][0x360]", "c[0x0][0x370]"),
    ],
)
def test_sizes_of_block_and_grid_lie_below_the_parameters(sm: int, block: str, grid: str) -> None:
    registers = machine_code(sm).registers
    assert (registers.block_size[0], registers.grid_size[0]) == (block, grid)


def test_a_place_in_constants_is_told_only_where_no_register_has_a_say() -> None:
    texts = ["c[0x0][0x160]", "c[0x0][RZ]", "c[0x0][URZ]", "c[0x2][R4]", "c[0x0][R4+0x8]", "cx[UR4][0x160]", "R4"]
    assert [place(text) for text in texts] == [(0, 0x160), (0, 0), (0, 0), None, None, None, None]
