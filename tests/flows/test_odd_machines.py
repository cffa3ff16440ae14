"""The whole pipeline on machines that are set up oddly: locale, links, and where temporary files lie."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.tables import read_table
from tests.prefect_home import make_home
from tests.stores import Store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than the store's."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="mlebench-tests-", dir="/dev/shm"))
    except OSError:
        pytest.skip("there is no memory disk")
    if folder.stat().st_dev == tmp_path.stat().st_dev:
        shutil.rmtree(folder)
        pytest.skip("it is on the same file system")
    yield folder
    shutil.rmtree(folder)


def test_names_links_and_temporary_files_do_not_matter(tmp_path: Path, elsewhere: Path, prefect_database: Path) -> None:
    """A store called ü behind a link, in a locale without an ü; scratch behind a link; TMPDIR on another disk."""
    for name in ("store", "scratch"):
        (tmp_path / "real" / f"{name} ü").mkdir(parents=True)
        (tmp_path / f"{name}-ü").symlink_to(tmp_path / "real" / f"{name} ü")
    env = {**os.environ, **ASCII, "TMPDIR": str(elsewhere), "MLEBENCH_SCRATCH": str(tmp_path / "scratch-ü")}
    env["PREFECT_HOME"] = str(make_home(tmp_path / "prefect", prefect_database))
    arguments = ["run", "-c", "digits", "--agent", "dummy", "--run-group", "odd"]
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments, "--store", str(tmp_path / "store-ü")],
        env=env, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(read_table(Store(str(tmp_path / "real" / "store ü")), "grades")["outcome"]) == ["valid"]
    assert not list((tmp_path / "real" / "scratch ü" / "runs").glob("*")), "the run's folder was removed"
    assert (tmp_path / "store-ü").is_symlink()
    assert not list(elsewhere.glob("mlebench-*")), "no temporary file is left"
