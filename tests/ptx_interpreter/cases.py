"""Kernels with arguments, launches and the results that numpy finds for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tests.ptx_interpreter.launch import Argument, Launch, Trace, run

PROJECT = Path(__file__).parents[2]
SAMPLES = PROJECT / "ptx"
CORPUS = PROJECT.parent / "shared" / "corpus" / "gtcasl__gpuocelot" / "tests"

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Fresh arguments in the order of the parameters, and what some of them, by place, must hold in the end.

    Args:
        rtol: the relative error that is allowed; 0 means equal.
    """

    arguments: Sequence[Argument]
    expected: Mapping[int, NDArray[Any]]
    rtol: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, a launch, and what makes arguments for it."""

    name: str
    path: Path
    kernel: str
    prepare: Callable[[], Prepared] = field(repr=False)
    block: Launch = (32, 1, 1)
    grid: Launch = (1, 1, 1)
    block_index: Launch = (0, 0, 0)
    dynamic_shared_bytes: int = 0

    @property
    def is_here(self) -> bool:
        """Whether the file is: the corpus does not stand beside every checkout."""
        return self.path.is_file()

    def run(self, order: Literal["taken-first", "fall-first", "random"] = "taken-first", seed: int = 0) -> Trace:
        """Execute the block with fresh arguments and check what it computes."""
        prepared = self.prepare()
        trace = run(
            self.path,
            self.kernel,
            block=self.block,
            grid=self.grid,
            block_index=self.block_index,
            arguments=prepared.arguments,
            dynamic_shared_bytes=self.dynamic_shared_bytes,
            order=order,
            seed=seed,
        )
        for place, expected in prepared.expected.items():
            np.testing.assert_allclose(
                np.asarray(prepared.arguments[place]), expected, prepared.rtol, err_msg=f"{self.name}: {place}"
            )
        return trace


CLOSE = 2e-5


def numbers(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(-1, 1, count).astype(np.float32)


def integers(count: int, low: int = -1000, high: int = 1000, seed: int = 0) -> Integers:
    return np.random.default_rng(seed).integers(low, high, count, dtype=np.int32)


# ---- the samples


def _vecadd(n: int, first: int, threads: int) -> Prepared:
    a, b, c = numbers(n, 1), numbers(n, 2), np.zeros(n, np.float32)
    expected = c.copy()
    here = slice(first, min(first + threads, n))
    expected[here] = a[here] + b[here]
    return Prepared([a, b, c, n], {2: expected})


def _saxpy(threads: int) -> Prepared:
    x, y = numbers(4 * threads, 1), numbers(4 * threads, 2)
    return Prepared([np.float32(2.5), x, y], {2: 2.5 * x + y}, CLOSE)


def _polynomial(stride: int, first: int, threads: int) -> Prepared:
    x, c, y = numbers(stride, 1), numbers(8 * stride, 2), np.zeros(stride, np.float32)
    expected = y.copy()
    here = slice(first, first + threads)
    values = np.polynomial.polynomial.polyval(x.astype(np.float64), c.reshape(8, -1).astype(np.float64), tensor=False)
    expected[here] = values[here]
    return Prepared([x, c, y, stride], {2: expected}, 1e-3)


def _fir(threads: int) -> Prepared:
    x, h, y = np.abs(numbers(threads + 15, 1)), np.abs(numbers(16, 2)), np.zeros(threads, np.float32)
    return Prepared([x, h, y], {2: np.convolve(x, h[::-1], "valid")}, CLOSE)


def _matmul(n: int, tile: tuple[int, int]) -> Prepared:
    a, b = np.abs(numbers(n * n, 1)).reshape(n, n), np.abs(numbers(n * n, 2)).reshape(n, n)
    c = np.zeros((n, n), np.float32)
    expected = c.copy()
    rows, columns = (slice(16 * t, 16 * t + 16) for t in (tile[1], tile[0]))
    expected[rows, columns] = (a @ b)[rows, columns]
    return Prepared([a, b, c, n], {2: expected}, CLOSE)


def _reduction() -> Prepared:
    values, out = np.abs(numbers(1024)), np.zeros(2, np.float32)
    return Prepared([values, out], {1: np.array([0, values[512:].sum()], np.float32)}, CLOSE)


def _warp_reduction(warps: int) -> Prepared:
    values, out = np.abs(numbers(32 * warps)), np.zeros(warps, np.float32)
    return Prepared([values, out], {1: values.reshape(warps, 32).sum(axis=1)}, CLOSE)


def _stencil(width: int, height: int, block: tuple[int, int]) -> Prepared:
    grid = numbers(width * height).reshape(height, width)
    out = np.full((height, width), 7, np.float32)
    expected = out.copy()
    for y in range(max(1, 16 * block[1]), min(height - 1, 16 * block[1] + 16)):
        for x in range(max(1, 16 * block[0]), min(width - 1, 16 * block[0] + 16)):
            expected[y, x] = 0.25 * (grid[y - 1, x] + grid[y + 1, x] + grid[y, x - 1] + grid[y, x + 1])
    return Prepared([grid, out, width, height], {1: expected}, 1e-3)


def _fft(q: int) -> Prepared:
    data = (numbers(4 * q, 1) + 1j * numbers(4 * q, 2)).astype(np.complex64)
    tw = np.exp(-2j * np.pi * np.arange(q) / (4 * q)).astype(np.complex64)
    parts = data.reshape(4, q).astype(np.complex128) * tw.astype(np.complex128) ** np.arange(4)[:, None]
    expected = np.fft.fft(parts, axis=0).reshape(-1)
    return Prepared([data, tw], {0: expected}, 1e-4)


def _nbody(n: int, threads: int) -> Prepared:
    body, acc = numbers(4 * n).reshape(n, 4), np.zeros((n, 4), np.float32)
    wide = body.astype(np.float64)
    difference = wide[None, :, :3] - wide[:, None, :3]
    inverse = 1 / np.sqrt((difference**2).sum(axis=2) + 1e-6)
    expected = np.zeros((n, 4))
    expected[:threads, :3] = ((wide[None, :, 3] * inverse**3)[:, :, None] * difference).sum(axis=1)[:threads]
    return Prepared([body, acc, n], {1: expected}, 1e-3)


def _nearest(n: int, threads: int) -> Prepared:
    qx, qy, xs, ys = numbers(threads, 1), numbers(threads, 2), numbers(n, 3), numbers(n, 4)
    nearest = np.zeros(threads, np.int32)
    distance = (qx[:, None].astype("f8") - xs) ** 2 + (qy[:, None].astype("f8") - ys) ** 2
    return Prepared([qx, qy, xs, ys, nearest, n], {4: distance.argmin(axis=1)})


def _sha256(threads: int) -> Prepared:
    words = np.random.default_rng(5).integers(0, 2**32, (16, threads), dtype=np.uint32)
    state, message = words[:8].copy(), words[8:].copy()
    return Prepared([state, message, threads], {0: _sha256_rounds(state, message)})


def _sha256_rounds(state: NDArray[np.uint32], message: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Source: FIPS PUB 180-4, section 6.2.2, step 3; the constants are of section 4.2.2."""

    def turned(x: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
        return x >> np.uint32(by) | x << np.uint32(32 - by)

    primes = (2, 3, 5, 7, 11, 13, 17, 19)
    a, b, c, d, e, f, g, h = state.copy()
    for prime, word in zip(primes, message, strict=True):
        k = np.uint32(_cube_root_bits(prime))
        first = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + k + word
        second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        a, b, c, d, e, f, g, h = first + second, a, b, c, d + first, e, f, g
    return np.stack([a, b, c, d, e, f, g, h])


def _cube_root_bits(prime: int) -> int:
    """The first 32 bits behind the point of the cube root of a prime."""
    root = 0
    for bit in reversed(range(34)):
        if (root | 1 << bit) ** 3 <= prime << 96:
            root |= 1 << bit
    return root % 2**32


def _histogram(n: int) -> Prepared:
    data = np.random.default_rng(3).integers(0, 256, n, dtype=np.uint8)
    return Prepared([data, np.zeros(256, np.uint32), n], {1: np.bincount(data[:256], minlength=256)})


def _bitonic_merge(warps: int) -> Prepared:
    keys = np.sort(integers(32 * warps).reshape(warps, 32), axis=1)
    bitonic = np.concatenate([keys[:, ::2], keys[:, 1::2][:, ::-1]], axis=1)
    return Prepared([bitonic.reshape(-1).copy()], {0: keys.reshape(-1)})


def _mandelbrot(x0: float, y0: float, step: float) -> Prepared:
    count = np.zeros((16, 16), np.int32)
    return Prepared([count, x0, y0, step], {0: _escape_times(x0, y0, step)})


def _escape_times(x0: float, y0: float, step: float) -> Integers:
    """With the same floats as the kernel: sums and products that are fused there are rounded once here too."""
    f4, f8 = np.float32, np.float64
    place = np.arange(16, dtype=f8)
    cx, cy = np.meshgrid(*((place * f4(step) + f4(start)).astype(f4) for start in (x0, y0)))
    x, y = np.zeros((16, 16), f4), np.zeros((16, 16), f4)
    out, running = np.zeros((16, 16), np.int32), np.ones((16, 16), bool)
    with np.errstate(all="ignore"):
        for _ in range(64):
            xx, yy = x * x, y * y
            running &= ~(xx + yy > 4)
            out += running
            y = ((x + x).astype(f8) * y + cy).astype(f4)
            x = (xx - yy) + cx
    return out


def _spmv(rows: int, longest: int) -> Prepared:
    random = np.random.default_rng(7)
    lengths = random.integers(0, longest + 1, rows)
    row_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    col = random.integers(0, 50, row_ptr[-1], dtype=np.int32)
    val, x, y = np.abs(numbers(len(col), 1)), np.abs(numbers(50, 2)), np.zeros(rows, np.float32)
    products = (val * x[col]).astype(np.float64)
    ends = np.concatenate([[0.0], np.cumsum(products)])[row_ptr]
    return Prepared([row_ptr, col, val, x, y, rows], {4: np.diff(ends)}, 1e-3)


def _sample(kernel: str, variant: str, prepare: Callable[[], Prepared], block: int | Launch, **launch: Any) -> Case:
    shape = (block, 1, 1) if isinstance(block, int) else block
    return Case(f"{kernel}-{variant}", SAMPLES / f"{kernel}.ptx", kernel, prepare, shape, **launch)


TILE = (16, 16, 1)
SAMPLE_CASES = (
    _sample("vecadd", "all", lambda: _vecadd(64, 0, 64), 64),
    _sample("vecadd", "part-of-a-warp", lambda: _vecadd(50, 0, 64), 64),
    _sample("vecadd", "none", lambda: _vecadd(50, 64, 64), 64, grid=(2, 1, 1), block_index=(1, 0, 0)),
    _sample("vecadd", "odd-block", lambda: _vecadd(100, 41, 41), 41, grid=(3, 1, 1), block_index=(1, 0, 0)),
    _sample("saxpy_unrolled", "64", lambda: _saxpy(64), 64),
    _sample("polynomial", "32", lambda: _polynomial(64, 32, 32), 32, grid=(2, 1, 1), block_index=(1, 0, 0)),
    _sample("fir", "64", lambda: _fir(64), 64),
    _sample("matmul_tiled", "n-16", lambda: _matmul(16, (0, 0)), TILE),
    _sample("matmul_tiled", "n-48", lambda: _matmul(48, (2, 1)), TILE, grid=(3, 3, 1), block_index=(2, 1, 0)),
    _sample("reduction", "second-block", _reduction, 256, grid=(2, 1, 1), block_index=(1, 0, 0)),
    _sample("warp_reduction", "3-warps", lambda: _warp_reduction(3), 96),
    _sample("stencil", "corner", lambda: _stencil(20, 18, (1, 1)), TILE, grid=(2, 2, 1), block_index=(1, 1, 0)),
    _sample("stencil", "inner", lambda: _stencil(48, 48, (1, 1)), TILE, grid=(3, 3, 1), block_index=(1, 1, 0)),
    _sample("fft_butterfly", "64", lambda: _fft(64), 64),
    _sample("nbody", "n-32", lambda: _nbody(32, 32), 32),
    _sample("nbody", "n-3", lambda: _nbody(3, 3), 3),
    _sample("nbody", "n-39", lambda: _nbody(39, 32), 32),
    _sample("nbody", "n-64", lambda: _nbody(64, 64), 64),
    _sample("nearest_point", "n-1", lambda: _nearest(1, 32), 32),
    _sample("nearest_point", "n-33", lambda: _nearest(33, 64), 64),
    _sample("sha256_round", "64", lambda: _sha256(64), 64),
    _sample("histogram", "part", lambda: _histogram(200), 256),
    _sample("histogram", "all", lambda: _histogram(256), 256),
    _sample("bitonic", "2-warps", lambda: _bitonic_merge(2), 64),
    _sample("mandelbrot", "whole-set", lambda: _mandelbrot(-2.0, -1.5, 0.1875), TILE),
    _sample("mandelbrot", "inside", lambda: _mandelbrot(-0.1, -0.1, 0.01), TILE),
    _sample("spmv_csr", "short-rows", lambda: _spmv(70, 5), 96),
    _sample("spmv_csr", "long-rows", lambda: _spmv(32, 32), 32),
    _sample("spmv_csr", "empty-rows", lambda: _spmv(32, 0), 32),
)


# ---- the corpus: compilers of the years 2008 to 2011


def _add_vectors(n: int) -> Prepared:
    a, b = numbers(n, 1), numbers(n, 2)
    return Prepared([a, b, np.zeros(n, np.float32), n], {2: a + b})


def _sorted(count: int) -> Prepared:
    keys = integers(count)
    return Prepared([keys], {0: np.sort(keys)})


def _multiply(a_width: int, b_width: int, tile: tuple[int, int]) -> Prepared:
    a, b = np.abs(numbers(32 * a_width, 1)).reshape(32, -1), np.abs(numbers(a_width * b_width, 2)).reshape(a_width, -1)
    c = np.zeros((32, b_width), np.float32)
    expected = c.copy()
    rows, columns = (slice(16 * t, 16 * t + 16) for t in (tile[1], tile[0]))
    expected[rows, columns] = (a @ b)[rows, columns]
    return Prepared([c, a, b, a_width, b_width], {0: expected}, CLOSE)


def _exclusive_scan(n: int) -> Prepared:
    values = np.abs(numbers(n))
    expected = np.concatenate([[0], np.cumsum(values[:-1], dtype=np.float64)])
    return Prepared([np.zeros(n, np.float32), values, n], {0: expected}, CLOSE)


def _dot_products(vectors: int, elements: int) -> Prepared:
    a, b = (np.abs(numbers(vectors * elements, seed)).reshape(vectors, elements) for seed in (1, 2))
    return Prepared([np.zeros(vectors, np.float32), a, b, vectors, elements], {0: (a * b).sum(axis=1)}, CLOSE)


def _transposed(repetitions: int) -> Prepared:
    values = numbers(32 * 32).reshape(32, 32)
    return Prepared([np.zeros((32, 32), np.float32), values, 32, 32, repetitions], {0: values.T})


def _atomics() -> Prepared:
    """64 threads, after the description of every operation in the PTX manual; the last thread is the last to come."""
    out = np.array([0, 0, -1, -5, 100, 0, 3, 40, 0x7FFFFFFF, 0, 0], np.int32)
    values = [640, -640, 63, 63, 0, 64 % 18, 0, 63, 0, -1, 0]
    wrapped = 3
    for _ in range(64):
        wrapped = 137 if wrapped == 0 or wrapped > 137 else wrapped - 1
    masked = 0x7FFFFFFF
    for thread in range(64):
        masked &= 2 * thread + 7
    values[6], values[8] = wrapped, masked
    return Prepared([out], {0: np.array(values, np.int32)})


def _decomposed(n: int) -> Prepared:
    """The first 16 x 16 block of a matrix, decomposed without pivoting into L (ones on its diagonal) and U."""
    matrix = (np.abs(numbers(n * n)).reshape(n, n) + n * np.eye(n)).astype(np.float32)
    expected = matrix.astype(np.float64)
    part = expected[:16, :16]
    for k in range(16):
        part[k + 1 :, k] /= part[k, k]
        part[k + 1 :, k + 1 :] -= np.outer(part[k + 1 :, k], part[k, k + 1 :])
    return Prepared([matrix, n, 0], {0: expected}, 1e-4)


def _initialised(repetitions: int) -> Prepared:
    factor = np.array([9], np.int32)
    start = integers(64)
    return Prepared([start, factor, repetitions], {0: start + 9 * repetitions})


def _magnitudes(n: int) -> Prepared:
    real, imaginary = numbers(n, 1), numbers(n, 2)
    return Prepared([real, imaginary, np.zeros(n, np.float32), n], {2: real**2 + imaginary**2}, CLOSE)


def _aligned(cols: int, penalty: int) -> Prepared:
    """One 16 x 16 tile of the Needleman-Wunsch matrix of scores."""
    similarity = integers(cols * cols, -5, 6).reshape(cols, cols)
    matrix = np.zeros((cols, cols), np.int32)
    matrix[0, :] = matrix[:, 0] = -penalty * np.arange(cols)
    expected = matrix.copy()
    for y in range(1, 17):
        for x in range(1, 17):
            diagonal = expected[y - 1, x - 1] + similarity[y, x]
            expected[y, x] = max(diagonal, expected[y, x - 1] - penalty, expected[y - 1, x] - penalty)
    return Prepared([similarity, matrix, np.zeros_like(matrix), cols, penalty, 1, 1], {1: expected})


def _corpus(name: str, file: str, kernel: str, prepare: Callable[[], Prepared], block: Launch, **launch: Any) -> Case:
    return Case(f"corpus-{name}", CORPUS / file, kernel, prepare, block, **launch)


CORPUS_CASES = (
    _corpus("vectorAdd", "cuda3.2/data/vectorAdd.ptx", "VecAdd", lambda: _add_vectors(50), (64, 1, 1)),
    _corpus("bitonicSort", "ptx/sdk2.2/bitonic_kernel.ptx", "bitonicSort", lambda: _sorted(256), (256, 1, 1),
            dynamic_shared_bytes=1024),
    _corpus("matrixMul", "cuda3.2/tests/matrixMulDynlinkJIT/extras/matrixMul_kernel.ptx", "matrixMul",
            lambda: _multiply(48, 32, (1, 1)), TILE, grid=(2, 2, 1), block_index=(1, 1, 0)),
    _corpus("scan-best", "ptx/sdk2.2/scan_best_kernel.ptx", "scan_best", lambda: _exclusive_scan(128), (64, 1, 1),
            dynamic_shared_bytes=4 * (128 + 16)),
    _corpus("scan-workefficient", "ptx/sdk2.2/scan_workefficient_kernel.ptx", "scan_workefficient",
            lambda: _exclusive_scan(64), (32, 1, 1), dynamic_shared_bytes=256),
    _corpus("scalarProd", "ptx/sdk2.2/scalarProd_kernel.ptx", "scalarProdGPU", lambda: _dot_products(2, 1500),
            (256, 1, 1)),
    _corpus("transpose-naive", "ptx/sdk2.2/transposeNew.ptx", "transposeNaive", lambda: _transposed(2),
            (32, 8, 1)),
    _corpus("atomics", "ptx/sdk2.2/simpleAtomicIntrinsics_kernel.ptx", "testKernel", _atomics, (64, 1, 1)),
    _corpus("lud", "ptx/rodinia/lud_kernel.ptx", "lud_diagonal", lambda: _decomposed(32), (16, 1, 1)),
    _corpus("init-array", "ptx/sdk2.2/simpleStreams.ptx", "init_array", lambda: _initialised(5), (64, 1, 1)),
    _corpus("phi-mag", "ptx/parboil/mri-q.ptx", "ComputePhiMag_GPU", lambda: _magnitudes(40), (64, 1, 1)),
    _corpus("needle", "ptx/rodinia/needle_kernel.ptx", "needle_cuda_shared_1", lambda: _aligned(17, 3), (16, 1, 1)),
)  # fmt: skip

CASES = (*SAMPLE_CASES, *CORPUS_CASES)
