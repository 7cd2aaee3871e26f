"""Names of kernel parameters from CUDA source."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.kernels.flow import launch
from makespan.kernels.ptx import fit_launch, parse
from makespan.kernels.ptx.module import Compilation, PtxKernel
from makespan.kernels.ptx.parameters import signatures, source_parameter_names

SAMPLES = sorted((Path(__file__).parents[2] / "ptx").glob("*.cu"))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("__global__ void k(float *x, int n) {}", (("k", ("x", "n")),)),
        ("extern \"C\" __global__ void __launch_bounds__(256, 2) k(int n);", (("k", ("n",)),)),
        ("__launch_bounds__(256) __global__ static void k(int n = f(1, 2), int m) {}", (("k", ("n", "m")),)),
        ("template <int N> __global__ void k(T<N, 2> *a, int (&b)[8], int (*f)(int, int))", (("k", ("a", "b", "f")),)),
        ("__global__ void k(int a[], const float *__restrict__ b[4])", (("k", ("a", "b")),)),
        ("__global__ void k(void) {} __global__ void j() {}", (("k", ()), ("j", ()))),
        ("__global__ void k(int, float *)", (("k", (None, None)),)),
        ("// __global__ void no(int n);\n/* __global__ void no(int n); */ s = \"__global__ void no(int n)\";", ()),
        ("// goes on \\\n __global__ void no(int n);\n__global__ void k(int n);", (("k", ("n",)),)),
        ('auto s = R"x(__global__ void no(int n); )" )x"; __global__ void k(int n);', (("k", ("n",)),)),
        ("int i = 1'000; char c = '\"'; __global__ void k(int n);", (("k", ("n",)),)),
        ("__global__ void k(int n, int m); __global__ void k(int n, int l) {}", (("k", ("n", None)),)),
        ("__global__ void k(int n); __global__ void k(int n, int l) {}", (("k", ()),)),
        ("__global__ void k(int n", ()),
        ("__global__", ()),
        ("x = __global__ ; void k(int n)", ()),
    ],
)  # fmt: skip
def test_parameters_by_kernel(source: str, told: object) -> None:
    assert signatures(source) == told


def test_a_kernel_is_known_by_its_plain_and_its_mangled_name() -> None:
    known = signatures("__global__ void scale(float *x, int n); __global__ void le(int a, int b);")
    assert source_parameter_names("scale", known, 2) == ("x", "n")
    assert source_parameter_names("_Z5scalePfi", known, 2) == ("x", "n")
    assert source_parameter_names("_ZN4math5scaleEPfi", known, 2) == ("x", "n")
    assert source_parameter_names("_Z15scalePfi", known, 2) == (None, None)
    assert source_parameter_names("_Z5scalePfi", known, 3) == (None, None, None)
    assert source_parameter_names("_Z5scale2lei", known, 2) == (None, None)  # it could be either


def compiled(source: str) -> PtxKernel:
    text = ".version 7.0\n.target sm_75\n.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1) { ret; }"
    told = Compilation("k.cu", "nvcc", (), signatures(source))
    return PtxKernel(
        **{**{f: getattr(parse(text, "k").kernels[0], f) for f in PtxKernel.__slots__}, "compilation": told}
    )


def test_a_parameter_may_be_called_as_in_the_source() -> None:
    kernel = compiled("__global__ void k(float *x, int n) {}")
    assert fit_launch(launch(None, None, ["n=7"]), kernel).parameters == {"k_param_1": 7}
    with pytest.raises(InputError, match=r"no such parameter .* 0 is x or k_param_0, 1 is n or k_param_1"):
        fit_launch(launch(None, None, ["m=7"]), kernel)
    with pytest.raises(InputError, match="two values for parameter k_param_1"):
        fit_launch(launch(None, None, ["n=7", "1=8"]), kernel)


def test_a_name_that_occurs_twice_is_not_believed() -> None:
    with pytest.raises(InputError, match="no such parameter"):
        fit_launch(launch(None, None, ["n=7"]), compiled("__global__ void k(int n, int n) {}"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_samples_name_all_their_parameters(path: Path) -> None:
    ((name, parameters),) = signatures(path.read_text())
    assert name == path.stem
    assert parameters
    assert all(parameters)


@given(st.text("_gloabv k(),;<>{}[]=*&\"'/\\\nint R0", max_size=200))
def test_any_text_is_survived(text: str) -> None:
    for name, parameters in signatures(f"{text}__global__ void k({text})"):
        assert name
        assert all(parameter is None or parameter.isidentifier() for parameter in parameters)
