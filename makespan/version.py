"""The version of the package, and of what it computes."""

__version__ = "0.2.0"

THEORY = 4
"""A whole number that is raised with every change after which any bound may be another one, for better or worse.

Results that are kept by what was asked (`makespan sweep`) are computed again when it is raised.
"""


def versions() -> dict[str, str]:
    """Return the versions of this package and of Python, as every document states them."""
    import platform

    return {"makespan": __version__, "python": platform.python_version()}
