"""Launches of PTX kernels: the names and values of their parameters, and the blocks that they allow."""

import pytest

from makespan.host.errors import InputError
from makespan.kernels import ptx
from makespan.kernels.flow import Launch, ParameterValue
from makespan.kernels.ptx import PtxKernel, fit_launch, known_parameters

PARAMETERS = ".param .u64 _Z1kPfif_param_0, .param .u32 _Z1kPfif_param_1, .param .f32 _Z1kPfif_param_2, .param .b8 s[4]"


def kernel(body: str, parameters: str = "", outside: str = "", attributes: str = "") -> PtxKernel:
    text = f".version 8.0\n.target sm_80\n{outside}\n.visible .entry k({parameters}) {attributes} {{ {body} }}"
    return ptx.parse(text, "k.ptx").kernel()


@pytest.mark.parametrize("name", ["1", "param_1", "_param_1", "_Z1kPfif_param_1"])
def test_a_parameter_has_several_names(name: str) -> None:
    named = fit_launch(Launch(parameters={name: 7}), kernel("ret;", PARAMETERS))
    assert dict(named.parameters) == {"_Z1kPfif_param_1": 7}
    assert fit_launch(named, kernel("ret;", PARAMETERS)) == named


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n": 1}, r"no such parameter of kernel k; give .*0 is _Z1kPfif_param_0, 1 is _Z1kPfif_param_1"),
        ({"4": 1}, "no such parameter"),
        ({"1": 1, "param_1": 2}, "two values"),
        ({"1": 2**32}, r"holds -2147483648..4294967295"),
        ({"1": 1.5}, "expected a whole number"),
        ({"2": 1e39}, "too large"),
        ({"2": 10**39}, "too large"),
        ({"s": 1}, "holds more than a number"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(parameters: dict[str, int | float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit_launch(Launch(parameters=parameters), kernel("ret;", PARAMETERS))


def test_an_ambiguous_end_of_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="fits 2 parameters"):
        fit_launch(Launch(parameters={"n": 1}), kernel("ret;", ".param .u32 a_n, .param .u32 b_n"))


def test_parameters_are_bits() -> None:
    found = known_parameters(kernel("ret;", PARAMETERS), Launch(parameters={"1": -1, "2": 1}))
    assert found == {
        "_Z1kPfif_param_1": ParameterValue(2**32 - 1, 32),
        "_Z1kPfif_param_2": ParameterValue(0x3F800000, 32),
    }


@pytest.mark.parametrize(("value", "bits"), [(2, 0x4000), (0.5, 0x3800), (-1.0, 0xBC00), (0.1, 0x2E66)])
def test_half_precision_is_known(value: float, bits: int) -> None:
    found = known_parameters(kernel("ret;", ".param .f16 h"), Launch(parameters={"h": value}))
    assert found == {"h": ParameterValue(bits, 16)}


@pytest.mark.parametrize("value", [65536, 65536.0, -(10**400)])
def test_a_number_too_large_for_half_precision_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"parameters h=-?[0-9.]+: too large for \.param \.f16 h"):
        fit_launch(Launch(parameters={"h": value}), kernel("ret;", ".param .f16 h"))


def test_a_parameter_whose_name_is_declared_anew_is_unknown() -> None:
    assert known_parameters(kernel("{ .param .b32 n; } ret;", ".param .u32 n"), Launch(parameters={"n": 1})) == {}


def test_the_required_block_is_known() -> None:
    limited = kernel("ret;", attributes=".maxntid 128, 2, 1")
    assert fit_launch(Launch(block=(256, 1, 1)), limited).block == (256, 1, 1)  # the product counts
    assert fit_launch(Launch(), limited).block is None
    with pytest.raises(
        InputError, match=r"^block 257x1x1: kernel k allows at most 256 threads .* \(.maxntid 128x2x1\)"
    ):
        fit_launch(Launch(block=(257, 1, 1)), limited)
    required = kernel("ret;", attributes=".reqntid 128, 2, 1")
    assert fit_launch(Launch(), required).block == (128, 2, 1)
    with pytest.raises(InputError, match=r"requires 128x2x1"):
        fit_launch(Launch((64, 1, 1)), required)
