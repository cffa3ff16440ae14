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

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parents[1] / "storage" / "runs" / "version_1"
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
    "plan": ["plan", "old-process"],
    "du": ["du"],
    "gc": ["gc", "--orphans"],
    "plagiarism": ["examine", "--only", "plagiarism", "old-process"],
    "violations": ["examine", "--only", "violations", "old-process"],
    "export of submissions": ["export", "--format", "submissions", "old-process"],
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
    monkeypatch.setattr(remote, "RETRYING_CLIENT", {**remote.QUICK_CLIENT, "retries": {"max_attempts": 0}})
    monkeypatch.setattr(S3FileSystem, "retries", 1)
    opened = Store.require_usable
    monkeypatch.setattr(Store, "require_usable", lambda own, **how: opened(own, **{**how, "seconds": 0.0}))
    store = Store(faulty_s3.url)
    put_dataset(store, "digits")
    for folder in ("runs/old-process", "manifests/old-process"):
        copy(store, folder)
    return store


def copy(store: Store, folder: str) -> None:
    """Copy a folder of the recorded store."""
    for path in (RECORDED / folder).rglob("*"):
        if path.is_file():
            store.write(store.url(path.relative_to(RECORDED).as_posix()), path.read_bytes())


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


READING = {
    "ls": (["ls", "old-process"], "old-process/digits/0"),
    "show": (["show", "old-process/digits/0"], "run.json"),
    "logs": (["logs", "old-process/digits/0"], ""),
    "verify": (["verify", "old-process"], "1 of 1 runs verified"),
    "compare": (["compare", "old-process", "old-process@v1"], "1 same"),
    "report": (["report", "old-process", "--out", "{folder}/out"], "/out/report.html"),
    "export": (["export", "old-process", "--output-dir", "{folder}/out"], "grading_report.json"),
    "du": (["du"], "in total"),
}
WRITING = {
    "report": (["report", "old-process"], "--out DIR"),
    "plagiarism": (["examine", "--only", "plagiarism", "old-process"], "--store"),
    "violations": (["examine", "--only", "violations", "old-process"], "--store"),
    "split-noise": (["examine", "--only", "split-noise", "old-process"], "--store"),
    "regrade": (["regrade", "old-process"], "--store"),
    "rm": (["rm", "old-process", "--yes"], "--store"),
    "run": (["run", "-c", "digits", "--agent", "dummy"], "--store"),
    "prepare": (["prepare", "-c", "diabetes"], "--store"),
}


def test_a_store_that_may_only_be_read(
    store: Store, faulty_s3: FaultyBucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only reads it works; what writes to it says so at once, names no temporary file, and says what to do."""
    copy(store, "tables")
    for method in ("PUT", "POST", "DELETE"):
        faulty_s3.faults.status(403, method, times=ALWAYS)
    wrong = {}
    for kind, cases in ((0, READING), (1, WRITING)):
        for name, (arguments, says) in cases.items():
            S3FileSystem.clear_instance_cache()
            code = main([*(each.format(folder=tmp_path) for each in arguments), "--store", store.root])
            said = capsys.readouterr()
            told = said.out if kind == 0 else said.err
            bad = kind == 1 and (said.err.count("\n") != 1 or "cannot be written" not in said.err)
            if code != kind or says not in told or "probe" in said.err or bad:
                wrong[name] = (code, said.err[-2000:], said.out[-300:])
    assert not wrong, json.dumps(wrong, indent=1)
    assert (tmp_path / "out" / "report.md").is_file()


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
