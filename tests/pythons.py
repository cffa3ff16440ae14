"""Whether the wheel works in other versions of Python: `make test-pythons`.

    PYTHONS="python3.12 python3.13" python -m tests.pythons

The wheel has every file of the packages but `benchmarks`. In each version, an environment of its own gets the locked
versions of all dependencies and the wheel. There every module is imported, a benchmark of one small competition runs
from a directory that has a `flows` and a `tasks` of its own, and tests of metrics, statistics and stores run. Versions
that are not installed are named and skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.test_architecture import ROOMS, ROOT

# `benchmarks` measures the checkout; users do not get it.
PACKAGED = sorted(ROOMS.keys() - {"benchmarks"})
TESTS = ("tests/common", "tests/competitions/scoring", "tests/grading/statistics", "tests/storage/test_store.py")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_IMPORT = """
import importlib, pathlib, sys
import flows
top = pathlib.Path(flows.__file__).parents[1]
assert "site-packages" in str(top), top
files = [path.relative_to(top) for room in sys.argv[1:] for path in (top / room).rglob("*.py")]
own = ("competitions/catalog/", "competitions/template/", "sandbox/agents/")
names = [path.with_suffix("").as_posix() for path in files if not path.as_posix().startswith(own)]
names = [name.replace("/", ".") for name in names if not name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names), "modules imported")
"""


def main() -> int:
    """Try every version that is installed; returns the exit code."""
    with tempfile.TemporaryDirectory() as place:
        wheel = built(Path(place))
        for name in os.environ.get("PYTHONS", "python3.12 python3.13").split():
            found = next(candidates(name), None)
            if found is None:
                print(f"{name}: not installed, skipped", flush=True)
                continue
            started = time.monotonic()
            try:
                check(found, wheel, Path(place) / name)
            except subprocess.CalledProcessError as error:
                print(f"{name}: failed: {error}", file=sys.stderr)
                return 1
            print(f"{name}: works ({time.monotonic() - started:.0f} s)", flush=True)
    return 0


def built(folder: Path) -> Path:
    """The wheel of this checkout. Raises `SystemExit` if a file of our packages is not in it."""
    # The wheel is made from the source archive, not from files that only lie in this checkout.
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    either((uv(), "build", "--quiet", "--out-dir", folder, ROOT), pip)
    wheel = next(folder.glob("*.whl"))
    ours = run(
        "git", "ls-files", *PACKAGED, "mlebench_command.py", "mlebench_pipeline.py", capture_output=True
    ).stdout.split("\n")
    missing = {each for each in ours if each} - set(zipfile.ZipFile(wheel).namelist())
    if missing:
        raise SystemExit(f"not in the wheel: {', '.join(sorted(missing))}")
    return wheel


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


def check(command: str, wheel: Path, home: Path) -> None:
    """Raises `CalledProcessError` if anything of this wheel does not work in this Python."""
    python, mlebench = home / "bin" / "python", home / "bin" / "mlebench"
    run(command, "-m", "venv", home)
    for what in (("--require-hashes", "--requirement", ROOT / "requirements-dev.txt"), (wheel,)):
        options = ("install", "--quiet", "--no-deps", *what)
        either((uv(), "pip", *options, "--python", python), (python, "-m", "pip", *options))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "flows").mkdir()
        for own in ("flows/__init__.py", "tasks.py", "storage.py"):
            (folder / own).write_text("raise ImportError('this is the folder of a user')\n")
        run(python, "-P", "-c", _IMPORT, *PACKAGED, cwd=folder)
        run(mlebench, "run", "-c", "digits", "--run-group", "try", "--store", folder / "store", cwd=folder)
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)


def uv() -> Path:
    """Installs the locked versions in seconds, from its cache in the second environment."""
    return Path(sys.executable).parent / "uv"


def either(first: Sequence[str | Path], second: Sequence[str | Path]) -> None:
    """Run a command, and if it fails another one: uv does not know the package indexes in pip's configuration."""
    try:
        run(*first)
    except subprocess.CalledProcessError:
        run(*second)


def run(*command: str | Path, cwd: Path = ROOT, capture_output: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command without the settings of this one's environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MLEBENCH_"))}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, check=True, text=True, capture_output=capture_output
    )


if __name__ == "__main__":
    raise SystemExit(main())
