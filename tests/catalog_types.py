"""mypy for competition folders: `python -m tests.catalog_types`.

The name of a folder is the id of its competition, which has dashes and is therefore no name of a package. mypy reads
the folders through links with names that are, and its messages show the paths of the folders themselves.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "competition_folders"


def folders() -> list[Path]:
    """The folders of the catalog, and the template."""
    return [*sorted((ROOT / "competitions" / "catalog").glob("*/")), ROOT / "competitions" / "template"]


def link(folders: Iterable[Path], tree: Path) -> dict[Path, Path]:
    """Make `tree` anew, with a package of links for each folder; returns folder by package."""
    shutil.rmtree(tree, ignore_errors=True)
    packages = {tree / PACKAGE / re.sub(r"\W", "_", f"of_{folder.name}"): folder for folder in folders}
    for package, folder in packages.items():
        package.mkdir(parents=True)
        for path in folder.glob("*.py"):
            (package / path.name).symlink_to(path)
    return packages


# mypy caches by path: the default place never changes, so that only changed files are checked again.
def check(folders: Iterable[Path], tree: Path = ROOT / ".mypy_cache" / "folders") -> tuple[int, str]:
    """mypy's exit code and output for these folders, read through links below `tree`."""
    packages = link(folders, tree)
    files = sorted(str(path) for package in packages for path in package.glob("*.py"))
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--show-absolute-path", *files],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": f"{tree}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = result.stdout + result.stderr
    for package, folder in packages.items():
        output = output.replace(f"{package}{os.sep}", f"{os.path.relpath(folder, ROOT)}{os.sep}")
    return result.returncode, output


if __name__ == "__main__":
    code, text = check(folders())
    print(text, end="")
    sys.exit(code)
