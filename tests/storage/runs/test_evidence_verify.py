"""Evidence of recorded runs: sealed, and verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.runs.evidence.ledger import seal
from storage.runs.evidence.verify import find_unexpected, verify_group, verify_run
from storage.runs.folders import RunFolder
from storage.runs.records import RunRecord
from storage.store import Store
from tests.stores import Store as LocalStore

GROUPS = ("old-process", "old-docker", "old-copy", "old-services")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run with one file, sealed with the key "k"."""
    folder = RunFolder(Store(str(tmp_path / "store")), "g", "x", 0)
    (tmp_path / "main.py").write_text("x = 1\n")
    folder.store.put(f"{folder.url}/code/main.py", tmp_path / "main.py")
    record = RunRecord(run_group="g", run_id="g-x-0", competition_id="x", seed=0, agent="a", edition="v1")
    folder.write_run(seal(folder, record, {"code/main.py": tmp_path / "main.py"}, "k"))
    return folder


@pytest.mark.parametrize(("key", "problems"), [("k", []), (None, []), ("", []), ("other", ["signature"])])
def test_a_signature_is_checked_with_the_key_that_is_given(
    folder: RunFolder, key: str | None, problems: list[str]
) -> None:
    assert [each.where for each in verify_run(folder, key)] == problems


def test_without_a_key_a_run_is_sealed_and_not_signed(folder: RunFolder) -> None:
    run = folder.read_run()
    assert run is not None
    assert seal(folder, run.replace(ledger_signature=None), {}, None).ledger_signature is None


@pytest.mark.parametrize("group", GROUPS)
def test_runs_of_version_1_verify(recorded_store: Store, group: str) -> None:
    assert not any(verify_group(recorded_store, group, None).problems.values())


def test_a_group_without_its_manifest_is_told(recorded_store: Store) -> None:
    recorded_store.remove(recorded_store.url("manifests", "old-docker"))
    found = verify_group(recorded_store, "old-docker", None).problems
    assert {name: [str(each) for each in problems] for name, problems in found.items() if problems} == {
        "manifest": ["manifest: is missing"]
    }


def test_a_copy_agrees_with_its_run(recorded_store: Store) -> None:
    folder = RunFolder(recorded_store, "old-copy", "digits", 0)
    copy = folder.read_run()
    assert copy is not None
    folder.write_run(copy)
    assert verify_run(folder, None) == []
    folder.write_run(copy.replace(agent="another"))
    assert [each.what for each in verify_run(folder, None)] == ["agent is 'another', the original run has 'dummy'"]


def test_a_copy_of_a_run_that_is_not_in_the_store_is_told(recorded_store: Store) -> None:
    folder = RunFolder(recorded_store, "old-copy", "digits", 0)
    copy = folder.read_run()
    assert copy is not None
    folder.write_run(copy.replace(submission_from="file:///elsewhere/runs/a/b/0"))
    assert "not a run in this store" in str(verify_run(folder, None)[0])


@pytest.mark.parametrize("protocol", ["file", "memory"])
@pytest.mark.parametrize(
    ("planted", "stranger"),
    [
        ("digits/x/run.json", "digits/x"),
        ("digits/00/run.json", "digits/00"),
        ("digits/.1/run.json", "digits/.1"),
        ("digits/٣/run.json", "digits/٣"),
        ("digits/notes.txt", "digits/notes.txt"),
        ("digits/7", "digits/7"),
        ("digit/0/run.json", "digit"),
        ("digit/x", "digit"),
        ("run.json", "run.json"),
        (".hidden/a/b", ".hidden"),
    ],
)
def test_what_lies_beside_the_runs_of_a_group_is_told(
    recorded_store: LocalStore, tmp_path: Path, protocol: str, planted: str, stranger: str
) -> None:
    store: Store = recorded_store
    if protocol == "memory":
        store = Store(f"memory://{tmp_path.name}")
        for path in (path for path in recorded_store.local("runs").rglob("*") if path.is_file()):
            store.put(store.url(*path.relative_to(recorded_store.local()).parts), path)
    for group in GROUPS:
        assert find_unexpected(store, group) == {}
    store.write(store.url("runs", "old-process", planted), b"{}")
    assert [*find_unexpected(store, "old-process")] == [stranger]
    assert find_unexpected(store, "old-docker") == {}


def test_a_grade_without_a_run_is_told(recorded_store: Store) -> None:
    grade = recorded_store.read(RunFolder(recorded_store, "old-process", "digits", 0).grade_url())
    recorded_store.write(RunFolder(recorded_store, "old-process", "digits", 9).grade_url(), grade)
    found = {
        name: [str(each) for each in problems]
        for name, problems in verify_group(recorded_store, "old-process", None).problems.items()
    }
    moved = "grade.json: is of seed 0, but lies in the folder of 9"
    alone = "snapshots.json: differs from what grade.json says"
    assert found == {"digits/0": [], "digits/9": ["run.json: is missing", moved, alone]}
    assert verify_group(recorded_store, "old-import", None).problems == {}
