"""Lines of least squares."""

from fractions import Fraction

import numpy as np
import pytest

from makespan.estimates.line import fit_line
from makespan.host.errors import InputError


def test_a_line_tells_how_sure_it_is() -> None:
    """By hand: x = 1, 2, 3 and y = 1, 3, 2 have slope 1/2, residuals -1/2, 1, -1/2 and R^2 = 1/4."""
    line = fit_line([(1, Fraction(1)), (2, Fraction(3)), (3, Fraction(2))])
    assert (line.slope, line.intercept, line.r_squared) == (Fraction(1, 2), Fraction(1), Fraction(1, 4))
    assert line.slope_error == pytest.approx((1.5 / 1 / 2) ** 0.5)
    assert line.scatter == pytest.approx(1.5**0.5)
    assert line.intercept_error == pytest.approx((1.5 * (1 / 3 + 4 / 2)) ** 0.5)


def test_two_points_leave_no_doubt_to_measure() -> None:
    line = fit_line([(1, 1), (2, 3)])
    assert (line.slope_error, line.intercept_error) == (None, None)


def test_what_does_not_vary_is_not_explained() -> None:
    line = fit_line([(1, 5), (2, 5), (3, 5)])
    assert (float(line.slope), float(line.at(9)), line.slope_error) == (0, 5, 0)
    assert line.r_squared is None


def test_lines_agree_with_numpy() -> None:
    x = np.arange(1.0, 33)
    y = 2.5 * x + 7 + np.random.default_rng(1).normal(0, 0.3, 32)
    line = fit_line(zip(x.tolist(), y.tolist(), strict=True))
    coefficients, covariance = np.polyfit(x, y, 1, cov=True)
    assert [float(line.slope), float(line.intercept)] == pytest.approx(coefficients.tolist())
    assert [line.slope_error, line.intercept_error] == pytest.approx(np.sqrt(np.diag(covariance)).tolist())
    assert float(line.r_squared or 0) == pytest.approx(float(np.corrcoef(x, y)[0, 1] ** 2))


def test_one_abscissa_is_no_line() -> None:
    with pytest.raises(InputError, match="two different x"):
        fit_line([(1, 2), (1, 3)])
