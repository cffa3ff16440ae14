"""Folders of forks in the published format through the commands that people use, from the download to the report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from tests.agents import write_agent
from tests.published_folders import IDS, copy_forks, write_downloads

CHOSEN = [word for name in IDS for word in ("-c", name)]


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_downloads(tmp_path_factory.mktemp("published") / "raw")


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(copy_forks(tmp_path / "forks")))
    monkeypatch.setenv("MLEBENCH_STORE", str(tmp_path / "store"))
    get_settings.cache_clear()
    return tmp_path / "forks"


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_from_the_download_to_the_report(
    forks: Path, downloads: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", *CHOSEN, "--json"]) == 0
    listed = json_lines(capfd.readouterr().out)
    assert [(each["id"], each["complexity"], each["category"]) for each in listed] == [
        (name, "unknown", "unknown") for name in IDS
    ]
    assert main(["prepare", *CHOSEN, "--raw-dir", str(downloads)]) == 0
    assert main(["prepare", "-c", "hourly-load", "--raw-dir", str(downloads), "--edition", "v2"]) == 0
    shared = json.loads((tmp_path / "store" / "prepared" / "v2" / "hourly-load" / "current.json").read_text())
    assert "v1" in shared.values()
    assert main(["check", "hourly-load"]) == 0, "its download is kept in the store"
    shutil.rmtree(tmp_path / "store" / "raw" / "hourly-load")
    assert main(["check", "hourly-load"]) == 1
    (there,) = (tmp_path / "store" / "prepared" / "v1" / "hourly-load").glob("*/")
    assert f"or a prepared dataset with --prepared {there}" in capfd.readouterr().err

    capfd.readouterr()
    sample = next((tmp_path / "store" / "prepared" / "v1" / "cell-types").rglob("sample_submission.csv"))
    assert main(["grade-sample", str(sample), "cell-types", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["valid_submission"] is True
    assert (report["gold_threshold"], report["is_lower_better"]) == (0.95, False)
    (tmp_path / "submission.csv").write_text("cell\ncell001\n")
    assert main(["grade-sample", str(tmp_path / "submission.csv"), "cell-types"]) == 0
    assert "invalid: Expected columns cell, types Got Index(['cell']" in capfd.readouterr().err

    agent = write_agent(tmp_path / "copying", 'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\n')
    run = ["run", *CHOSEN, "--agent", str(agent), "--run-group", "forks", "--backend", "process"]
    assert main([*run, "--raw-dir", str(downloads)]) == 0
    capfd.readouterr()
    assert main(["report", "forks"]) == 0
    text = (tmp_path / "store" / "reports" / "forks" / "report.md").read_text()
    for name in IDS:
        assert name.replace("-", "\\-") in text
    assert "invalid" not in text.partition("## Failures")[2]
    assert main(["verify", "forks"]) == 0


def test_check_says_what_the_format_does_not_promise(
    forks: Path, downloads: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *IDS, "--raw-dir", str(downloads), "--json"]) == 0
    results = json_lines(capfd.readouterr().out)
    verdicts = {(each["competition_id"], each["check"]): each["verdict"] for each in results}
    assert "failed" not in verdicts.values()
    assert {verdicts[name, "prepare"] for name in IDS} == {verdicts[name, "sample"] for name in IDS} == {"ok"}
    assert {verdicts[name, "format"] for name in IDS} == {"noted"}
    assert verdicts["signal-strength", "gold"] == verdicts["signal-strength", "order"] == "ok"
    hostile = next(each for each in results if (each["competition_id"], each["check"]) == ("hourly-load", "hostile"))
    assert hostile["verdict"] == "noted"
    assert re.match(
        r"the grader dies of \d+ submissions: TypeError in hourly-load/grade.py, line 8, ", hostile["problems"][0]
    )
    facts = next(each for each in results if each["check"] == "facts")
    assert "section" not in str(facts["about"]), "the description is not read for sections in this format"
    assert verdicts["cell-types", "gold"] == "skipped"  # its answers are JSON lines


def test_check_only_notes_what_published_graders_do_not_promise_either(
    forks: Path, downloads: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = forks / "hourly-load" / "grade.py"
    by_place = "answers.join(submission, lsuffix='_true', rsuffix='_pred')"
    path.write_text(
        path.read_text().replace('answers.merge(submission, on="id", suffixes=("_true", "_pred"))', by_place)
    )
    assert main(["check", "hourly-load", "--raw-dir", str(downloads), "--json"]) == 0
    noted = {str(each["check"]): each for each in json_lines(capfd.readouterr().out)}
    assert noted["order"]["verdict"] == "noted"  # it matches rows by their places
    assert "with its rows in another order" in str(noted["order"]["problems"])


def test_check_finds_answers_that_prepare_leaves_public(
    forks: Path, downloads: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = forks / "signal-strength" / "prepare.py"
    path.write_text(path.read_text().replace('test.drop(columns=["rssi"]).to_csv', "test.to_csv"))
    assert main(["check", "signal-strength", "--raw-dir", str(downloads)]) == 1
    out = capfd.readouterr().out
    assert "private/test.csv is public/test.csv as well" in out
    assert "public/test.csv has the answers rssi" in out


def test_a_prepare_that_runs_forever_ends_by_the_setting(
    forks: Path, downloads: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_PREPARE_TIME_LIMIT", "2s")
    get_settings.cache_clear()
    (forks / "hourly-load" / "prepare.py").write_text("def prepare(raw, public, private):\n    while True: pass\n")
    assert main(["prepare", "-c", "hourly-load", "--raw-dir", str(downloads)]) == 1
    told = capfd.readouterr()
    assert "hourly-load: prepare took more than 2 s and was ended; raise MLEBENCH_PREPARE_TIME_LIMIT" in told.out
    assert "Traceback" not in told.out + told.err


def test_a_folder_that_cannot_be_used_hides_no_other(forks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (forks / "hourly-load" / "leaderboard.csv").unlink()
    assert main(["list"]) == 0
    told = capfd.readouterr()
    assert "signal-strength" in told.out
    assert "leaderboard.csv is missing: medals and the metric's direction follow from it" in told.err
    assert main(["prepare", "-c", "hourly-load"]) == 1
    assert capfd.readouterr().err.count("\n") == 1


def test_checksums_are_not_overwritten_in_the_format_of_others(
    forks: Path, downloads: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["-c", "hourly-load", "--raw-dir", str(downloads), "--overwrite-checksums"]
    assert main(["prepare", *options]) == 1
    assert "hourly-load is in the published format: --overwrite-checksums writes competition.yaml" in (
        capfd.readouterr().err
    )


def test_new_makes_a_folder_of_ours(
    forks: Path, downloads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(own))
    get_settings.cache_clear()
    for name in IDS:
        assert main(["new", f"my-{name}", "--from-published", str(forks / name), "--into", str(own)]) == 0
    assert "3 places marked with CHECK" in capfd.readouterr().out

    # The marked places are refused until somebody has decided.
    raw = str(downloads / "signal-strength")
    assert main(["check", "my-signal-strength", "--raw", raw]) == 1
    out = capfd.readouterr().out
    assert "competition.yaml, line 3: choose one of Audio Classification, Forecasting," in out
    assert "competition.yaml, line 8: say how the test set is drawn" in out
    assert "published_grade.py, line 10: copy this module into the folder" in out

    folder = own / "decided"
    shutil.copytree(own / "my-signal-strength", folder)
    facts = (folder / "competition.yaml").read_text().replace("unknown  # CHECK: choose", "Tabular  # I chose", 1)
    facts = facts.replace("id: my-signal-strength", "id: decided")
    (folder / "competition.yaml").write_text(facts.replace("# CHECK: say", "# they say"))
    (folder / "telecom_metrics.py").write_text((forks / "telecom_metrics.py").read_text())
    (folder / "published_grade.py").write_text(
        "import numpy as np\n"
        "from competitions.scoring.cells import numbers\n"
        "from competitions.scoring.checks import align\n"
        "from .telecom_metrics import rmse\n"
        "def grade(submission, answers):\n"
        "    submission, answers = align(submission, answers, on='Id', columns=['rssi'])\n"
        "    return rmse(answers['rssi'], numbers(submission, 'rssi'))\n"
    )
    assert main(["check", "decided", "--raw", raw]) == 0
    assert registry.get("decided").facts.leaderboard == registry.load(forks / "signal-strength").facts.leaderboard


def test_new_refuses_what_is_not_in_the_published_format(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    assert main(["new", "mine", "--from-published", str(tmp_path / "other"), "--into", str(tmp_path)]) == 1
    assert "is no competition in the published format: it has no config.yaml" in capfd.readouterr().err
    assert not (tmp_path / "mine").exists()
    (tmp_path / "file").write_text("")
    fork = copy_forks(tmp_path / "forks") / "hourly-load"
    assert main(["new", "mine", "--from-published", str(fork), "--into", str(tmp_path / "file" / "below")]) == 1
    assert "cannot be created: Not a directory; choose another directory with --into" in capfd.readouterr().err
