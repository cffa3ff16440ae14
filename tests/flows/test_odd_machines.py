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
from tests import machines
from tests.disks import SmallDisk, small_disk
from tests.machines import noexec_disk
from tests.prefect_home import make_home
from tests.stores import Store

__all__ = ["noexec_disk", "small_disk"]

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


def command(
    arguments: list[str], env: dict[str, str], prefix: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with these variables and no others of `mlebench` and Prefect but those of the tests."""
    return subprocess.run(
        [*(prefix or []), sys.executable, "-m", "flows.cli", *arguments],
        env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=400, check=False,
    )  # fmt: skip


def outcomes(store: Path) -> list[str]:
    return list(read_table(Store(str(store)), "grades")["outcome"])


def test_a_user_that_nobody_knows_without_a_home_or_links_in_a_dumb_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `docker run --user 1234`, on a file system such as SMB, in a locale that is not installed."""
    monkeypatch.delenv("PREFECT_HOME", raising=False)
    (tmp_path / "home").mkdir(mode=0o555)
    env = {"HOME": str(tmp_path / "home"), "TERM": "dumb", "LC_ALL": "tr_TR.ISO8859-9"}
    env |= {"MLEBENCH_SCRATCH": str(tmp_path / "scratch"), **machines.without("LINKS", tmp_path)}
    arguments = ["run", "-c", "digits", "--agent", "dummy", "--run-group", "odd", "--store", str(tmp_path / "store")]
    done = command(arguments, env, machines.unknown_user())
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(tmp_path / "store") == ["valid"]
    assert "digits seed 0: graded" in done.stderr


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PREFECT_HOME", "MLEBENCH_SCRATCH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir(mode=0o555)
    arguments = ["prepare", "-c", "digits", "--store", str(tmp_path / "store")]
    done = command(arguments, {"HOME": str(tmp_path / "home")}, machines.unknown_user())
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    said = f"cannot write its database in {tmp_path}/home/.prefect (Permission denied): set MLEBENCH_SCRATCH or PREFECT"
    assert said in done.stderr


def test_a_full_directory_for_temporary_files_is_named(small_disk: SmallDisk, tmp_path: Path) -> None:
    small_disk.fill()
    arguments = ["prepare", "-c", "digits", "--store", str(tmp_path / "store")]
    done = command(arguments, {"TMPDIR": str(small_disk.path)})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert f"mlebench: {small_disk.path}, the directory for temporary files, is full (0 B are free)" in done.stderr


def test_nothing_can_be_executed_where_agents_run(tmp_path: Path, noexec_disk: Path) -> None:
    agent = tmp_path / "agents" / "python"
    agent.mkdir(parents=True)
    (agent / "agent.yaml").write_text("description: Starts with another interpreter than bash.\ntrusted: true\n")
    (agent / "start.sh").write_text(
        "#!/usr/bin/env python3\nimport os, shutil\n"
        "shutil.copy(os.environ['SAMPLE_SUBMISSION'], os.environ['SUBMISSION_DIR'] + '/submission.csv')\n"
    )
    (agent / "start.sh").chmod(0o755)
    (noexec_disk / "tmp").mkdir()
    env = {"TMPDIR": str(noexec_disk / "tmp"), "MLEBENCH_SCRATCH": str(noexec_disk / "scratch")}
    env["MLEBENCH_AGENT_DIRS"] = str(agent.parent)
    arguments = ["run", "-c", "digits", "--agent", "python", "--run-group", "odd", "--store", str(tmp_path / "store")]
    done = command(arguments, env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(tmp_path / "store") == ["valid"]


def test_a_disk_without_file_locks_is_named(tmp_path: Path) -> None:
    env = machines.without("LOCKS", tmp_path)
    done = command(["prepare", "-c", "digits", "--store", str(tmp_path / "store")], env)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"the file system of {tmp_path}/store has no file locks (Function not implemented)" in done.stderr
    assert done.stderr.count("\n") == 1
