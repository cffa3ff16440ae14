"""`mlebench verify`: every run has a ledger, and what was changed in the store afterwards is told, with the place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.stores import Store

SCRIPT = """#!/bin/bash
sh "$VALIDATE_SCRIPT" "$SAMPLE_SUBMISSION"
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
echo 'x = 1' > "$CODE_DIR/main.py"
"""


@pytest.fixture(scope="module")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run whose ledger is signed."""
    from flows.full_benchmark import full_benchmark

    agents = tmp_path_factory.mktemp("agents")
    (agents / "asks").mkdir()
    (agents / "asks" / "agent.yaml").write_text("name: asks\ndescription: validates once\ntrusted: true\n")
    (agents / "asks" / "start.sh").write_text(SCRIPT)
    root = tmp_path_factory.mktemp("ledgers") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(agents)]))
        patch.setenv("MLEBENCH_SCRATCH", str(agents / "scratch"))
        patch.setenv("MLEBENCH_LEDGER_KEY", "the operator's")
        get_settings.cache_clear()
        full_benchmark(["diabetes"], RunRequest(agent=str(agents / "asks"), run_group="g", store=str(root)))
    return root


@pytest.fixture
def run(_finished: Path, tmp_path: Path) -> Path:
    """A copy of the run's folder to do harm to, in a store of its own."""
    shutil.copytree(_finished, tmp_path / "store")
    return tmp_path / "store" / "runs" / "g" / "diabetes" / "0"


@pytest.fixture
def verify(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def verify(group: str = "g") -> tuple[int, str]:
        capfd.readouterr()
        code = main(["verify", group, "--store", str(tmp_path / "store")])
        return code, "".join(capfd.readouterr())

    return verify


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
    entries = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    by_kind = {entry["kind"]: entry for entry in entries}
    assert by_kind["begin"]["agent"] == "asks"
    assert {"backend", "cpus", "memory_bytes", "time_limit_seconds"} <= set(by_kind["conditions"])
    assert by_kind["validation"]["call"]["verdict"] == "valid"
    assert all(entry["at_seconds"] >= 0 for entry in entries if entry["kind"] == "snapshot")
    paths = {entry["path"] for entry in entries if entry["kind"] == "file"}
    assert {"submission.csv", "logs/agent.log", "code/main.py", "validation.jsonl"} <= paths
    record = json.loads((run / "run.json").read_text())
    assert record["ledger_head"] == entries[-1]["hash"]
    store = Store(str(run.parents[3]))
    assert read_table(store, "runs")["ledger_head"].tolist() == [record["ledger_head"]]


FILES = ["submission.csv", "code/main.py", "logs/agent.log", "validation.jsonl", "ledger.jsonl", "run.json"]


@pytest.mark.parametrize("name", FILES)
def test_one_changed_byte_in_any_file_is_told(run: Path, verify: Callable[..., tuple[int, str]], name: str) -> None:
    path = run / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    code, text = verify()
    assert code == 1
    where = "line " if name == "ledger.jsonl" else name
    assert any(line.startswith(f"        {where}") for line in text.splitlines()), text


def _edit(run: Path, **fields: object) -> None:
    path = run / "run.json"
    path.write_bytes(Store.json_bytes({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda run: (run / "submission.csv").unlink(), "submission.csv: is missing"),
        (lambda run: (run / "code" / "more.py").write_text("y"), "code/more.py: was added"),
        (lambda run: (run / "ledger.jsonl").unlink(), "ledger: is missing"),
        (lambda run: (run / "run.json").write_text("no"), "run.json: was changed: it is not a JSON object"),
        (lambda run: _edit(run, seed=7), "run.json: seed is 7, the ledger says 0"),
        (lambda run: _edit(run, duration_seconds=1.5), "run.json: was changed: its content differs from the ledger"),
        (lambda run: _edit(run, ledger_head="0" * 64), "tables/runs: has the head"),
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
    assert verify("nobody") == (1, f"mlebench: no runs of group 'nobody' in {Store(str(run.parents[3])).root}\n")


def test_a_run_in_an_object_store_verifies(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "store"
    remote = Store(f"memory://{tmp_path.name}")
    for path in (path for folder in ("runs", "tables") for path in (root / folder).rglob("*") if path.is_file()):
        remote.put(remote.url(*path.relative_to(root).parts), path)
    assert main(["verify", "g", "--store", remote.root]) == 0
    remote.write(remote.url("runs", "g", "diabetes", 0, "code", "main.py"), b"x = 2\n")
    assert main(["verify", "g", "--store", remote.root]) == 1
    assert "code/main.py: was changed" in capfd.readouterr().out
