"""What users also do: one line that says what to do, the right exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli import main
from tests.docs.blocks import ROOT

AWAY = "the Prefect server http://127.0.0.1:9/api"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with odd files, and a store that does not exist yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLEBENCH_STORE", str(tmp_path / "store"))
    (tmp_path / "file").touch()
    (tmp_path / "binary").write_bytes(b"\xd7\xff\x00")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ls", "--store", "s3://"], "store s3:// names no bucket; write s3://BUCKET/PREFIX"),
        (["run", "-c", "digits", "--store", "s3:///prefix"], "names no bucket"),
        (["run", "-c", "digits", "--store", "file"], "file is a file; choose a directory with --store"),
        (["run", "-c", "digits", "--run-group", ""], "run group '': use letters"),
        (["run", "-c", "digits", "--run-group", "my group"], "run group 'my group': use letters"),
        (["run", "-l", "nowhere"], "--list nowhere cannot be read: No such file or directory"),
        (["run", "-l", "folder"], "--list folder cannot be read: Is a directory"),
        (["run", "-l", "binary"], "--list binary is not UTF-8 (line 1, byte 0xd7): save it as UTF-8"),
        (["run", "-l", "file"], "--list file is empty"),
        (["run", "-c", "digits", "--feedback", "30"], "'30' is not a share between 0 and 1, such as 0.3"),
        (["run", "-c", "digits", "--feedback-required"], "--feedback-required needs --feedback"),
        (["run", "-c", "digits", "--feedback-calls", "5"], "--feedback-calls needs --feedback"),
        (["run", "-c", "../etc"], "unknown competition '../etc'"),
        (["run", "-c", "digits", "--agent", "./folder"], "it has no agent.yaml"),
        (["new", "mine", "--into", "/proc"], "/proc/mine cannot be created: "),
        (["agent", "new", "mine", "--into", "/proc"], "/proc/mine cannot be created: "),
        (["grade", "--submission", "nowhere.jsonl", "--output-dir", "out"], "nowhere.jsonl does not exist"),
    ],
)
def test_a_mistake_is_one_line(here: Path, arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) in (1, 2)
    err = capfd.readouterr().err
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["run", "-c", "digits", "--agent", "dummy"], ["cancel", "x"], ["notify", "--off"]]
)
def test_a_prefect_server_that_is_away_is_named(here: Path, arguments: list[str]) -> None:
    env = {**os.environ, "PREFECT_API_URL": "http://127.0.0.1:9/api", "PYTHONPATH": str(ROOT), "MLEBENCH_PATIENCE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments], env=env, cwd=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert AWAY in done.stderr, done.stderr
    assert "make up" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [(1,), (1, 2)], ids=["output", "output and error"])
def test_a_closed_standard_output_is_no_error(here: Path, closed: tuple[int, ...]) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m flows.cli agents {" ".join(f"{each}>&-" for each in closed)}', sys.executable],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_early_is_no_traceback(here: Path) -> None:
    script = '"$0" -m flows.cli issues | head -1'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
