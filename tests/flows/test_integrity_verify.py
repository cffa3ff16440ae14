"""`mlebench verify`: every run has a ledger, and what was changed in the store afterwards is told, with the place."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from storage.tables import read_table
from storage.training_mark import mark
from tests.flows.ledgers import edit, finished_store, run, signed, verify
from tests.stores import Store

__all__ = ["finished_store", "run", "verify"]


def test_an_untouched_run_verifies(
    run: Path, verify: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = verify()
    assert (code, text.splitlines()[-1]) == (0, "1 of 1 runs verified (no key, signatures not checked)")
    monkeypatch.setenv("MLEBENCH_LEDGER_KEY", "the operator's")
    get_settings.cache_clear()
    assert verify()[1].splitlines()[-1] == "1 of 1 runs verified (signatures checked)"
    monkeypatch.setenv("MLEBENCH_LEDGER_KEY", "another's")
    get_settings.cache_clear()
    code, text = verify()
    assert code == 1
    assert "signature: was not made with MLEBENCH_LEDGER_KEY" in text


def test_the_ledger_tells_what_happened(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    by_kind = {line["kind"]: line for line in lines}
    assert by_kind["run"]["record"]["agent"] == "asks"
    assert {"backend", "cpus", "memory_bytes", "time_limit_seconds"} <= set(by_kind["run"]["record"])
    assert by_kind["validation"]["call"]["verdict"] == "valid"
    paths = {line["path"] for line in lines if line["kind"] == "file"}
    assert {"submission.csv", "logs/agent.log", "code/main.py", "validation.jsonl"} <= paths
    record = json.loads((run / "run.json").read_text())
    assert record["ledger_head"] == hashlib.sha256((run / "ledger.jsonl").read_bytes()).hexdigest()
    store = Store(str(run.parents[3]))
    assert read_table(store, "runs")["ledger_head"].tolist() == [record["ledger_head"]]


def test_what_was_validated_is_a_table_also_of_a_regraded_copy(run: Path) -> None:
    store = Store(str(run.parents[3]))
    assert main(["regrade", "g", "--as", "again", "--store", store.root]) == 0
    for group in ("g", "again"):
        found = read_table(store, "validations", [group])
        assert found["verdict"].tolist() == ["valid"]
        assert found["at_seconds"].between(0, 600).all()


FILES = ["submission.csv", "code/main.py", "logs/agent.log", "validation.jsonl", "ledger.jsonl", "run.json"]


@pytest.mark.parametrize("name", FILES)
def test_one_changed_byte_in_any_file_is_told(run: Path, verify: Callable[..., tuple[int, str]], name: str) -> None:
    path = run / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    code, text = verify()
    assert code == 1
    assert any(line.startswith(f"        {name}") for line in text.splitlines()), text


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda run: (run / "submission.csv").unlink(), "submission.csv: is missing"),
        (lambda run: (run / "code" / "more.py").write_text("y"), "code/more.py: was added"),
        (lambda run: (run / "ledger.jsonl").unlink(), "ledger.jsonl: is missing"),
        (lambda run: (run / "run.json").write_text("no"), "run.json: was changed: it is not a JSON object"),
        (lambda run: edit(run, seed=7), "run.json: seed is 7, the ledger says 0"),
        (lambda run: edit(run, duration_seconds=1.5), "run.json: duration_seconds is 1.5, the ledger says"),
        (lambda run: edit(run, ledger_head="0" * 64), "tables/runs: has the head"),
        (lambda run: shutil.rmtree(run), "no runs"),
    ],
)
def test_what_was_done_to_a_run_is_told(
    run: Path, verify: Callable[..., tuple[int, str]], harm: Callable[[Path], object], says: str
) -> None:
    harm(run)
    code, text = verify()
    assert code == 1
    assert says in text or "is in tables/runs, but not in the store" in text
    assert "Traceback" not in text


def test_what_was_planted_beside_a_run_is_told(run: Path, verify: Callable[..., tuple[int, str]]) -> None:
    shutil.copytree(run, run.with_name("x"))
    shutil.copytree(run, run.parents[1] / "diabetis" / "x")
    (run.parents[1] / "notes.txt").touch()
    code, text = verify()
    assert code == 1
    assert [line.split()[:2] for line in text.splitlines() if not line.startswith(" ")] == [
        ["ok", "g/diabetes/0"],
        ["FAILED", "g/diabetes/x"],
        ["FAILED", "g/diabetis"],
        ["FAILED", "g/notes.txt"],
        ["manifest:", "4"],
        ["1", "of"],
    ]
    assert text.count("is not part of the group") == 3
    assert "1 of 1 runs verified, 3 not part of the group" in text


def test_a_regraded_copy_is_verified_by_the_run_it_is_of(
    run: Path, verify: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    assert main(["regrade", "g", "--as", "again", "--store", str(tmp_path / "store")]) == 0
    record = tmp_path / "store" / "runs" / "again" / "diabetes" / "0" / "run.json"
    content = json.loads(record.read_text())
    assert verify("again")[0] == 0
    record.write_bytes(Store.json_bytes({**content, "agent": "somebody else"}))
    code, text = verify("again")
    assert code == 1
    assert "agent is 'somebody else', the original run has 'asks'" in text
    (run / "submission.csv").write_text("id\n")
    assert "runs/g/diabetes/0: submission.csv: was changed" in verify("again")[1]


def test_grading_again_breaks_no_ledger(run: Path, verify: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    assert main(["regrade", "g", "--store", str(tmp_path / "store")]) == 0
    assert verify()[0] == 0


def test_an_unknown_group_is_one_line(run: Path, verify: Callable[..., tuple[int, str]]) -> None:
    code, text = verify("nobody")
    assert code == 1
    assert text.startswith(f"mlebench: no runs of group 'nobody' in {Store(str(run.parents[3])).root}; ")


def test_a_run_in_an_object_store_verifies(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "store"
    remote = Store(f"memory://{tmp_path.name}")
    for path in (
        path for folder in ("runs", "tables", "manifests") for path in (root / folder).rglob("*") if path.is_file()
    ):
        remote.put(remote.url(*path.relative_to(root).parts), path)
    assert main(["verify", "g", "--store", remote.root]) == 0
    remote.write(remote.url("runs", "g", "diabetes", 0, "code", "main.py"), b"x = 2\n")
    assert main(["verify", "g", "--store", remote.root]) == 1
    assert "code/main.py: was changed" in capfd.readouterr().out


class TestRecordsThatWereMoved:
    """What is done to whole runs, each of which is intact."""

    def test_the_folder_of_another_seed(self, run: Path, verify: Callable[..., tuple[int, str]]) -> None:
        shutil.copytree(run, run.parent / "1")
        code, text = verify()
        assert code == 1
        assert "run.json: is of seed 0, but lies in the folder of 1" in text
        assert "grade.json: is of seed 0, but lies in the folder of 1" in text

    def test_a_run_of_another_group(self, run: Path, verify: Callable[..., tuple[int, str]]) -> None:
        shutil.copytree(run, run.parents[2] / "other" / "diabetes" / "0")
        code, text = verify("other")
        assert code == 1
        assert "run.json: is of run_group 'g', but lies in the folder of 'other'" in text

    def test_a_bad_run_that_was_removed(self, run: Path, verify: Callable[..., tuple[int, str]]) -> None:
        shutil.rmtree(run)
        shutil.rmtree(run.parents[3] / "tables")
        code, text = verify()
        assert code == 1
        assert "run: is in the manifest, but not in the store: it was removed" in text

    def test_a_manifest_that_was_removed_or_cut(self, run: Path, verify: Callable[..., tuple[int, str]]) -> None:
        manifest = run.parents[3] / "manifests" / "g"
        kinds = [json.loads(path.read_text())["kind"] for path in sorted(manifest.iterdir())]
        assert kinds == ["present", "planned", "started", "recorded"]
        (manifest / "000001.json").unlink()
        code, text = verify()
        assert code == 1
        assert "manifest entry 2: does not follow the one before" in text
        (manifest / "000003.json").unlink()
        assert "manifest: does not have this run" in verify()[1]
        shutil.rmtree(manifest)
        assert "manifest: is missing" in verify()[1]

    def test_a_forged_grade(
        self, run: Path, verify: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        signed(monkeypatch)
        assert verify()[0] == 0
        grade = json.loads((run / "grade.json").read_text())
        (run / "grade.json").write_bytes(Store.json_bytes({**grade, "gold_medal": True, "any_medal": True}))
        code, text = verify()
        assert code == 1
        assert "grade.json: was changed, or was not signed with this key" in text
        (run / "grade.json").write_bytes(Store.json_bytes({k: v for k, v in grade.items() if k != "signature"}))
        assert "grade.json: is not signed" in verify()[1]

    def test_forged_versions_of_a_submission(self, run: Path, verify: Callable[..., tuple[int, str]]) -> None:
        rows = json.loads((run / "snapshots.json").read_text())
        (run / "snapshots.json").write_bytes(Store.json_bytes([{**row, "any_medal": True} for row in rows]))
        assert "snapshots.json: differs from what grade.json says" in verify()[1]

    def test_planted_versions_of_a_submission(self, run: Path, verify: Callable[..., tuple[int, str]]) -> None:
        rows, grade = ((run / name).read_bytes() for name in ("snapshots.json", "grade.json"))
        (run / "snapshots-v2.json").write_bytes(rows)
        code, text = verify()
        assert code == 1
        assert "snapshots-v2.json: has no grade that it belongs to" in text
        (run / "snapshots-v2.json").unlink()
        without = {name: value for name, value in json.loads(grade).items() if name != "snapshots_hash"}
        (run / "grade.json").write_bytes(Store.json_bytes(without))
        assert "snapshots.json: differs from what grade.json says" in verify()[1]

    def test_a_planted_copy(
        self, run: Path, verify: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        signed(monkeypatch)
        store = Store(str(run.parents[3]))
        assert main(["regrade", "g", "--as", "again", "--store", store.root]) == 0
        assert verify("again")[0] == 0
        record = store.read_json(store.run("again", "diabetes", 0) + "/run.json")
        url = store.run("again", "diabetes", 1)
        planted = {**record, "seed": 1, "run_id": "again-diabetes-1"}
        store.write_json(f"{url}/run.json", planted)
        code, text = verify("again")
        assert code == 1
        assert "run.json: was changed, or was not signed with this key" in text
        assert "manifest: does not have this run" in text

    def test_grading_again_finds_what_no_key_protects(self, run: Path, capfd: pytest.CaptureFixture[str]) -> None:
        store = str(run.parents[3])
        assert main(["verify", "g", "--regrade", "--store", store]) == 0
        before = (run / "grade.json").read_bytes()
        grade = json.loads(before)
        (run / "grade.json").write_bytes(Store.json_bytes({**grade, "score": 1.0}))
        capfd.readouterr()
        assert main(["verify", "g", "--regrade", "--store", store]) == 1
        assert f"grade: score is 1.0, graded again it is {grade['score']}" in capfd.readouterr().out


def test_training_with_test_scores_in_the_store_is_told(
    run: Path, verify: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    store = Store(str(tmp_path / "store"))
    mark(store, "diabetes", "here", "training")
    mark(store, "digits", "there", None)  # the first one stays
    code, text = verify()
    assert code == 0
    told = next(line for line in text.splitlines() if "were trained in this store" in line)
    assert "first diabetes on host here (episodes/TEST_SCORES.json)" in told
    assert main(["report", "g", "--store", store.root]) == 0
    page = (tmp_path / "store" / "reports" / "g" / "report.html").read_text()
    assert "Agents trained with test scores" in page
    assert "first diabetes on host here" in page
