"""Files that people write, from any editor of any system: they are read, or refused in one line before any work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from tests.kaggle_server import KaggleServer
from tests.stores import Store, put_dataset

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
SAVED: dict[str, Callable[[str], bytes]] = {
    "by Notepad": lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    "by PowerShell": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "with blank lines and NULs": lambda text: text.encode() + b"\n\n\0\0",
}


def said_by(capfd: pytest.CaptureFixture[str], *arguments: str, code: int) -> str:
    capfd.readouterr()
    ended = main(arguments)
    out, err = capfd.readouterr()
    assert ended == code, out + err
    return err if code else out + err


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says that refuses in one line."""
    err = said_by(capfd, *arguments, code=1)
    assert err.count("\n") == 1, err
    return err


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent that was copied from a machine with Windows."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "agent.yaml").write_bytes(SAVED["by PowerShell"]("description: Mine.\ntrusted: true\n"))
    (folder / "start.sh").write_bytes(b'#!/bin/bash\r\nset -e\r\ncp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR"/\r\n')
    (folder / "start.sh").chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "arguments", [["run", "-c", "digits", "--agent", "mine"], ["agents", "mine"], ["agent", "try", "mine"]]
)
def test_an_agent_with_line_ends_of_windows_costs_no_run(
    store: Store, agent: Path, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    stored = [] if arguments[0] == "agents" else ["--store", store.root]
    said = refused(capfd, *arguments, *stored)
    assert f"{agent}/start.sh has Windows line ends, with which Linux cannot run it: convert it with sed -i" in said
    assert not store.exists(store.url("runs"))


def test_an_agent_is_sound_before_a_run_begins(store: Store, agent: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (agent / "start.sh").write_bytes((agent / "start.sh").read_bytes().replace(b"\r", b""))
    (agent / "tool").write_bytes(b"#!/usr/bin/env python\r\nprint(1)\r\n")
    said = refused(capfd, "run", "-c", "digits", "--agent", "mine", "--store", store.root)
    assert f"{agent}/tool has Windows line ends" in said
    (agent / "tool").write_text(POINTER)
    said = refused(capfd, "run", "-c", "digits", "--agent", "mine", "--store", store.root)
    assert f"{agent}/tool is only a pointer of Git LFS" in said
    assert not store.exists(store.url("runs"))


@pytest.mark.parametrize("saved", SAVED)
def test_lists_are_read(store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str], saved: str) -> None:
    (tmp_path / "list.txt").write_bytes(SAVED[saved]("digits\ndiabetes\n"))
    arguments = ["run", "-l", str(tmp_path / "list.txt"), "--agent", "dummy", "--dry-run", "--store", store.root]
    said = said_by(capfd, *arguments, code=0)
    assert "digits" in said
    assert "diabetes" in said


@pytest.mark.parametrize("saved", SAVED)
def test_lists_of_submissions_are_read(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str], saved: str
) -> None:
    put_dataset(store, "digits")
    (tmp_path / "submission.csv").write_text(POINTER)
    line = {"competition_id": "digits", "submission_path": str(tmp_path / "submission.csv")}
    (tmp_path / "list.jsonl").write_bytes(SAVED[saved](f"# mine\n{json.dumps(line)}\n\n"))
    arguments = ["grade", "--submission", str(tmp_path / "list.jsonl"), "--output-dir", str(tmp_path / "out")]
    said = said_by(capfd, *arguments, "--store", store.root, code=0)
    assert "line 2: digits: invalid: submission.csv is only a pointer of Git LFS" in said


@pytest.mark.parametrize("saved", SAVED)
def test_competitions_are_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, saved: str
) -> None:
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path))
    said_by(capfd, "new", "tree-heights", "--into", str(tmp_path), code=0)
    for name in ("competition.yaml", "description.md", "prepare.py", "grade.py"):
        path = tmp_path / "tree-heights" / name
        if path.suffix != ".py" or saved == "by Notepad":
            path.write_bytes(SAVED[saved](path.read_text()))
    assert "1 of 1 competition passed" in said_by(capfd, "check", "tree-heights", code=0)


REPORTS = {
    "a pointer": (POINTER.encode(), "is only a pointer of Git LFS: fetch the file itself with `git lfs pull`"),
    "Latin-1": ('{\n"name": "é"}'.encode("latin-1"), "is not UTF-8 (line 2, byte 0xe9): save it as UTF-8"),
    "a word processor": ('{\n\N{LEFT DOUBLE QUOTATION MARK}a": 1}'.encode(), "; line 2 has typographic quotes"),
}


@pytest.mark.parametrize("kind", REPORTS)
def test_reports_and_lists_that_are_none_are_named(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    content, reason = REPORTS[kind]
    path = tmp_path / "report.json"
    path.write_bytes(content)
    said = refused(capfd, "import-report", str(path), "--group", "published", "--store", store.root)
    assert str(path) in said
    assert reason in said
    if kind != "a word processor":
        output = str(tmp_path / "out")
        said = refused(capfd, "grade", "--submission", str(path), "--output-dir", output, "--store", store.root)
        assert reason in said


CREDENTIALS = {
    "half of it": (b'{"username": "me", "key": ', "kaggle.json is not JSON"),
    "a token": (b'"KGAT_0123"', "kaggle.json is not what Kaggle's settings page gives"),
    "Latin-1": (b'{"username": "caf\xe9", "key": "x"}', "kaggle.json is not UTF-8"),
}


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_broken_kaggle_json_is_not_no_credentials(
    kaggle: KaggleServer, store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, kind: str,
) -> None:  # fmt: skip
    content, reason = CREDENTIALS[kind]
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path))
    get_settings.cache_clear()
    (tmp_path / "kaggle.json").write_bytes(content)
    said = refused(capfd, "prepare", "-c", "leaf-classification", "--store", store.root)
    assert f"{tmp_path}/{reason}" in said
    assert not kaggle.requests


@pytest.mark.parametrize("saved", SAVED)
def test_credentials_are_read(
    kaggle: KaggleServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: str
) -> None:
    from storage.sources.kaggle.credentials import find

    monkeypatch.delenv("KAGGLE_API_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kaggle").mkdir()
    (tmp_path / ".kaggle" / "kaggle.json").write_bytes(SAVED[saved]('{"username": "me",\n"key": "sesame"}\n'))
    found = find()
    assert found is not None
    assert (found.username, found.key and found.key.get_secret_value()) == ("me", "sesame")
    (tmp_path / ".kaggle" / "access_token").write_bytes(SAVED[saved]("KGAT_0123\n"))
    found = find()
    assert found is not None
    assert found.token is not None
    assert found.token.get_secret_value() == "KGAT_0123"
