"""Commands on a store that fails: one clear line, the right exit code, and never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s3fs import S3FileSystem

from flows.cli import main
from storage import remote
from storage.runs.folders import RunFolder
from storage.store import Store
from tests.s3.faults import ALWAYS
from tests.s3.fixtures import FaultyBucket
from tests.stores import put_dataset

RECORD = Path(__file__).parents[1] / "storage" / "runs" / "version_0" / "runs" / "old-process"
COMMANDS = {
    "ls": ["ls"],
    "ls of a group": ["ls", "old-process"],
    "show": ["show", "old-process/digits/0"],
    "logs": ["logs", "old-process/digits/0"],
    "report": ["report", "old-process"],
    "verify": ["verify", "old-process"],
    "regrade": ["regrade", "old-process"],
    "export": ["export", "old-process"],
    "compare": ["compare", "old-process", "other"],
    "du": ["du"],
    "gc": ["gc", "--orphans"],
    "plagiarism": ["plagiarism", "old-process"],
    "violations": ["violations", "old-process"],
    "make-submission": ["make-submission", "old-process"],
    "grade": ["grade", "--submission", "{jsonl}", "--output-dir", "out"],
}
FAULTS: dict[str, Callable[[FaultyBucket], Any]] = {
    "503": lambda s3: s3.faults.status(503, times=ALWAYS),
    "away": lambda s3: s3.stop(),
    "cut short": lambda s3: s3.faults.truncate(3, times=ALWAYS),
    "refused": lambda s3: s3.faults.status(403, times=ALWAYS),
}


@pytest.fixture
def store(faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with a dataset and a run, behind the proxy, with clients that give up at once."""
    monkeypatch.setattr(remote, "_PATIENT", {**remote._QUICK, "retries": {"max_attempts": 0}})
    monkeypatch.setattr(S3FileSystem, "retries", 1)
    opened = Store.require_usable
    monkeypatch.setattr(Store, "require_usable", lambda own, **how: opened(own, **{**how, "patience": 0.0}))
    store = Store(faulty_s3.url)
    put_dataset(store, "digits")
    for path in RECORD.rglob("*"):
        if path.is_file():
            store.write(store.url("runs", "old-process", path.relative_to(RECORD).as_posix()), path.read_bytes())
    return store


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    """A file with a submission on this disk."""
    (tmp_path / "submission.csv").write_text("id,label\n1,1\n")
    line = {"competition_id": "digits", "submission_path": str(tmp_path / "submission.csv")}
    (tmp_path / "submissions.jsonl").write_text(json.dumps(line) + "\n")
    return tmp_path / "submissions.jsonl"


@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_says_it_in_a_line(
    store: Store, faulty_s3: FaultyBucket, jsonl: Path, fault: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(jsonl.parent)
    assert RunFolder(store, "old-process", "digits", 0).read_run() is not None
    FAULTS[fault](faulty_s3)
    wrong = {}
    for name, arguments in COMMANDS.items():
        S3FileSystem.clear_instance_cache()
        given = [each.format(jsonl=jsonl) for each in arguments]
        try:
            code: int | str = main([*given, "--store", store.root])
        except Exception as error:
            code = f"{type(error).__name__}: {error}"
        said = capsys.readouterr()
        lines = [line for line in said.err.splitlines() if line.strip()]
        if code != 1 or not lines or "Traceback" in said.err + said.out or len(lines) > 3:
            wrong[name] = (code, said.err[-2000:], said.out[-300:])
    assert not wrong, json.dumps(wrong, indent=1)


@pytest.mark.parametrize("fault", ["503", "away", "refused"])
def test_doctor_names_the_store_among_its_findings(
    store: Store, faulty_s3: FaultyBucket, fault: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("MLEBENCH_PATIENCE", "0")
    FAULTS[fault](faulty_s3)
    assert main(["doctor", "--split", "demo", "--store", store.root]) == 1
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    (line,) = [line for line in said.out.splitlines() if line.split()[1:2] == ["store"]]
    assert "fail" in line
