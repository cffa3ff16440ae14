"""`mlebench adopt`, and a run on adopted data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from flows.cli import main
from tests.prepared import PreparedCompetitions
from tests.stores import Store


def test_adopt_and_run(
    store: Store,
    prepared: PreparedCompetitions,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    published = tmp_path / "published"
    for name in ("digits", "diabetes"):
        shutil.copytree(prepared[name].path, published / name / "prepared")
    (published / "diabetes" / "prepared" / "private" / "test.csv").unlink()
    (published / "not a competition" / "prepared" / "public").mkdir(parents=True)
    assert main(["adopt", str(published), "--store", store.root]) == 1
    out = capfd.readouterr().out
    assert "done    digits: " in out
    assert "3 published checksums equal" in out
    assert "failed  diabetes: private/ missing in" in out
    assert "1 done, 1 failed" in out
    arguments = ["run", "-c", "digits", "--agent", "dummy", "--run-group", "adopted", "--store", store.root]
    assert main(arguments) == 0
    assert "prepared already" in capfd.readouterr().out
    shutil.rmtree(published / "digits" / "prepared" / "public")
    assert main(["adopt", str(published), "-c", "digits", "--store", store.root, "--json"]) == 0
    (outcome,) = map(json.loads, capfd.readouterr().out.splitlines())
    assert (outcome["kind"], outcome["what"], outcome["result"]) == ("outcome", "digits", "reused")
    assert main([*arguments, "--json"]) == 0
    *outcomes, result = map(json.loads, capfd.readouterr().out.splitlines())
    assert {each["result"] for each in outcomes} == {"reused"}
    assert (result["kind"], result["run_group"], len(result["grades"])) == ("result", "adopted", 1)
    assert main(["prepare", "-c", "digits", "--store", store.root, "--json"]) == 0
    (outcome,) = map(json.loads, capfd.readouterr().out.splitlines())
    assert (outcome["kind"], outcome["result"]) == ("outcome", "reused")


def test_nothing_to_adopt_is_one_line(store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["adopt", str(tmp_path), "--store", store.root]) == 1
    assert "has no folder <competition id>/prepared of a known competition" in capfd.readouterr().err
