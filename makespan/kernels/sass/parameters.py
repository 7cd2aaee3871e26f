"""The parameters of a kernel of machine code: their names, and the bytes of constants that they make known.

The code does not tell the type of a parameter, only where it lies and how many bytes it has. So where no PTX says that
it is a float, a whole number is taken for an integer, and one with a point, such as 2.0, for a float.
"""

import struct
from collections.abc import Mapping

from makespan.host.errors import InputError, Naming
from makespan.kernels.flow import Launch, ParameterValue, find_parameter
from makespan.kernels.sass.module import SassKernel
from makespan.kernels.sass.module import SassParameter as Declared
from makespan.kernels.sass.operands import constant_name

COMPILER_BANK = 2
"""The bank of the constants that a compiler puts into a kernel; others hold what the host may write before a launch."""

_SIZES = (1, 2, 4, 8)
_FLOATS = {4: "<f", 8: "<d"}


def fit_launch(launch: Launch, kernel: SassKernel) -> Launch:
    """Return the launch with parameters by PTX names or positions, and with the block that the kernel requires.

    A parameter may be called by its position ("3" is the fourth), and where the file tells its PTX name by this, or by
    the end of it from an underscore on. Calling this twice is the same as once.

    Raises:
        InputError: a name that fits no parameter or several, a value that its bytes cannot hold, a block that is not
            the one that the kernel requires, or has more threads than it allows.
    """
    declared = _parameters_by_name(kernel)
    found = launch.with_parameters(
        lambda key: _find_parameter(key, kernel, launch.named),
        lambda name, value: _encode(name, declared[name], value, launch.named),
    )
    return found.with_block(kernel.name, kernel.resources.block, kernel.resources.most_threads)


def known_parameters(kernel: SassKernel, launch: Launch) -> dict[str, ParameterValue]:
    """Return the known parameters of a kernel by the names of `fit_launch`, with the words of constants that hold them.

    Raises:
        InputError: see `fit_launch`.
    """
    declared = _parameters_by_name(kernel)
    found = {}
    for name, value in fit_launch(launch, kernel).parameters.items():
        encoded = _encode(name, declared[name], value, launch.named)
        first = kernel.first_parameter + declared[name].offset
        inside = range(first - first % 4, first + declared[name].size)
        found[name] = encoded._replace(words=tuple(constant_name(0, offset) for offset in inside))
    return found


def numeric_parameter_names(kernel: SassKernel) -> dict[str, str]:
    """Return how a user calls the parameters that can be given as numbers, by the names of `fit_launch`."""
    return {
        name: str(position) if name.endswith(f"_param_{position}") else name
        for position, (name, declared) in enumerate(_parameters_by_name(kernel).items())
        if declared.size in _SIZES
    }


def known_bytes(kernel: SassKernel, parameters: Mapping[str, ParameterValue]) -> dict[tuple[int, int], int]:
    """Return the known bytes of constants, by bank and offset in bytes."""
    # only this bank cannot be changed by the host
    found = {(COMPILER_BANK, at): byte for at, byte in enumerate(kernel.constants.get(COMPILER_BANK, b""))}
    for name, declared in _parameters_by_name(kernel).items():
        if name in parameters:
            packed = parameters[name].value.to_bytes(declared.size, "little")
            found |= {(0, kernel.first_parameter + declared.offset + at): byte for at, byte in enumerate(packed)}
    return found


def _parameters_by_name(kernel: SassKernel) -> dict[str, Declared]:
    names = [declared.name for declared in kernel.parameters]
    return {
        declared.name if declared.name and names.count(declared.name) == 1 else str(position): declared
        for position, declared in enumerate(kernel.parameters)
    }


def _encode(name: str, declared: Declared, value: int | float, named: Naming) -> ParameterValue:
    size, said = declared.size, named("parameters")
    if size not in _SIZES:
        raise InputError(f"{said} {name}: it has {size} bytes, more than a number; its value cannot be given")
    if declared.is_float or isinstance(value, float):  # the code does not tell the type, see above
        if size not in _FLOATS:
            raise InputError(f"{said} {name}={value}: expected a whole number for {size} bytes")
        try:
            return ParameterValue(int.from_bytes(struct.pack(_FLOATS[size], value), "little"), 8 * size)
        except OverflowError:
            raise InputError(f"{said} {name}={value}: too large for a float of {size} bytes") from None
    least, most = -(1 << 8 * size - 1), (1 << 8 * size) - 1
    if not least <= value <= most:
        raise InputError(f"{said} {name}={value}: {size} bytes hold {least}..{most}")
    return ParameterValue(value & most, 8 * size)


def _find_parameter(key: str, kernel: SassKernel, named: Naming) -> str:
    found, problem = find_parameter(key, list(_parameters_by_name(kernel)))
    if found is not None:
        return found
    listed = ", ".join(
        f"{position} is {declared.name or f'the one at byte {declared.offset}'}"
        for position, declared in enumerate(kernel.parameters)
    )
    raise InputError(
        f"{named('parameters')} {key}: {problem} of kernel {kernel.name}; give the position: {listed or 'it has none'}"
    )
