"""`mlebench logs -f` of a run on another machine: its host uploads the log, and the store is all that both share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from storage.runs.folders import RunFolder
from storage.runs.live import PIECE_BYTES, LiveReader, pieces_url, uploaded
from tests.agents import write_agent
from tests.docs.blocks import ROOT
from tests.s3.fixtures import Bucket
from tests.stores import Store
from tests.waiting import until

RUN = "afar/diabetes/0"


def test_a_run_is_followed_from_another_machine(
    s3: Bucket,
    tmp_path: Path,
    served: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    go, store = tmp_path / "go", Store(s3.url)
    agent = write_agent(tmp_path / "talks", f"echo one\nwhile [ ! -e {go} ]; do sleep 0.1; done\necho two\n")
    command = [sys.executable, "-m", "flows.cli"]
    there = {**os.environ, "MLEBENCH_SCRATCH": str(tmp_path / "there"), "MLEBENCH_HOST_NAME": "there"}
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "here"))
    monkeypatch.setenv("MLEBENCH_HOST_NAME", "here")
    get_settings.cache_clear()

    def logged() -> str:
        capfd.readouterr()
        main(["logs", RUN, "--store", store.root])
        return capfd.readouterr().out

    run = [*command, "run", "-c", "diabetes", "--agent", str(agent), "--run-group", "afar", "--store", store.root]
    with subprocess.Popen(
        [*run, "--allow-untrusted"], env=there, cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            until(lambda: logged() == "one\n", 200, what="the first line in the store", pause=0.5)
            assert main(["ls", "afar", "--store", store.root]) == 0
            row = capfd.readouterr().out.splitlines()[1].split()
            assert row[0] == RUN
            assert "there" in row
            follow = [*command, "logs", "-f", RUN, "--store", store.root]
            with subprocess.Popen(follow, cwd=ROOT, stdout=subprocess.PIPE, text=True) as follower:
                assert follower.stdout is not None
                assert follower.stdout.readline() == "one\n"
                go.touch()
                rest, _ = follower.communicate(timeout=120)
            assert (rest, follower.returncode) == ("two\n", 0)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert not [name for name in s3.names() if name.startswith("live/")]
    assert logged() == "one\ntwo\n"


def test_long_logs_are_uploaded_in_pieces(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.runs.live._FIRST_INTERVAL_SECONDS", 0.02)
    folder, log = RunFolder(store, "g", "diabetes", 0), tmp_path / "agent.log"
    reader, found = LiveReader(folder), bytearray()

    def read() -> int:
        found.extend(reader.more())
        return len(found)

    with uploaded(folder, log, 1):
        content = os.urandom(PIECE_BYTES + 10)
        log.write_bytes(content)
        until(lambda: read() == len(content))
        with log.open("ab") as file:
            file.write(b"more")
        until(lambda: read() == len(content) + 4)
    assert bytes(found) == content + b"more"
    assert reader.of_last_try == len(found)
    assert len(list(store.local("live", "g", "diabetes", "0").iterdir())) == 2
    with uploaded(folder, log, 2):
        until(lambda: read() == 2 * len(content) + 8)
    assert reader.of_last_try == len(content) + 4
    assert store.relative(pieces_url(folder)) == "live/g/diabetes/0"
