"""What made a document."""

import platform

from makespan.version import __version__


def versions() -> dict[str, str]:
    """Return the versions of this package and of Python, as every document states them."""
    return {"makespan": __version__, "python": platform.python_version()}
