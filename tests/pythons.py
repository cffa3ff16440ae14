"""Whether the wheel works in other versions of Python: `make test-pythons`.

    PYTHONS="python3.12 python3.13" python -m tests.pythons

Each version has an environment of its own, `.venv-<version>`, with the locked versions of all dependencies. There the
wheel is installed, every module imported, a benchmark of one small competition run from a directory that has a `flows`
and a `tasks` of its own, and the tests of metrics and units run. Versions that are not installed are named and skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("tests/common", "tests/competitions/scoring", "tests/grading/statistics", "tests/storage/test_store.py")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_IMPORT = """
import importlib, pathlib, sys
import flows
top = pathlib.Path(flows.__file__).parents[1]
assert "site-packages" in str(top), top
rooms = "common competitions grading storage sandbox tasks flows deployments benchmarks".split()
files = [path.relative_to(top) for room in rooms for path in (top / room).rglob("*.py")]
own = ("competitions/catalog/", "competitions/template/", "sandbox/agents/")
names = [path.with_suffix("").as_posix() for path in files if not path.as_posix().startswith(own)]
names = [name.replace("/", ".") for name in names if not name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names), "modules imported")
"""


def main() -> int:
    """Try every version that is installed; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(Path(folder))
        for name in os.environ.get("PYTHONS", "python3.12 python3.13").split():
            found = next(candidates(name), None)
            if found is None:
                print(f"{name}: not installed, skipped")
                continue
            try:
                check(found, wheel)
            except subprocess.CalledProcessError as error:
                print(f"{name}: failed: {error}", file=sys.stderr)
                return 1
    return 0


def built(folder: Path) -> Path:
    """The wheel of this checkout."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    return next(folder.glob("*.whl"))


def candidates(name: str) -> Iterator[str]:
    """Commands that start this Python: its name, or one of pyenv's versions."""
    series = name.removeprefix("python")
    for command in (name, *map(str, Path.home().glob(f".pyenv/versions/{series}*/bin/python"))):
        try:
            answer = subprocess.run([command, "-c", _VERSION], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            continue
        if answer.returncode == 0 and answer.stdout.strip() == series:
            yield command


def check(command: str, wheel: Path) -> None:
    """Raises `CalledProcessError` if anything of this wheel does not work in this Python."""
    version = run(command, "-c", _VERSION, capture_output=True).stdout.strip()
    home = ROOT / f".venv-{version}"
    python = home / "bin" / "python"
    if not python.exists():
        run(command, "-m", "venv", home)
    install = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*install, "--no-deps", "--require-hashes", "--requirement", ROOT / "requirements-dev.txt")
    run(*install, "--no-deps", "--force-reinstall", wheel)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "flows").mkdir()
        for own in ("flows/__init__.py", "tasks.py", "storage.py"):
            (folder / own).write_text("raise ImportError('this is the folder of a user')\n")
        run(python, "-P", "-c", _IMPORT, cwd=folder)
        mlebench = home / "bin" / "mlebench"
        run(mlebench, "run", "-c", "digits", "--run-group", "try", "--store", folder / "store", cwd=folder)
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=ROOT)
    print(f"Python {version}: works", flush=True)


def run(*command: str | Path, cwd: Path = ROOT, capture_output: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command without the settings of this one's environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MLEBENCH_"))}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, check=True, text=True, capture_output=capture_output
    )


if __name__ == "__main__":
    raise SystemExit(main())
