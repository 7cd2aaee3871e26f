"""Programs in C++ that stand beside those of the package."""

import shutil
import subprocess
from pathlib import Path


def built(source: str, folder: Path, *options: str) -> Path:
    """The program of a file of this folder, compiled into another one.

    Raises:
        FileNotFoundError: there is no compiler.
    """
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise FileNotFoundError(f"there is no g++ and no c++ on this machine, which {source} needs")
    made = folder / Path(source).stem
    subprocess.run([compiler, "-std=c++17", *options, "-o", made, Path(__file__).with_name(source)], check=True)
    return made
