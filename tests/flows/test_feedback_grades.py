"""What commands do with the grade of a run with feedback: it is that of the private part, and marked as such."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.settings import get_settings
from storage.runs.folders import RunFolder
from storage.tables import read_table
from tests.feedback_runs import FeedbackRun
from tests.flows.graded import dataset, mlebench
from tests.stores import Store, put_dataset
from tests.tasks.test_run_feedback import AGENT

__all__ = ["dataset"]


@pytest.fixture
def run(store: Store, dataset: Path) -> FeedbackRun:
    made = FeedbackRun(store, dataset)
    made.finish(final=["3", "2"])
    assert mlebench("regrade", "g", store=store) == 0
    return made


def test_regrade_and_listings_mark_the_score(run: FeedbackRun, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{run.source}/grade.json"
    run.store.write_json(url, {**run.store.read_json(url), "score": 4.0})
    assert mlebench("regrade", "g", store=run.store) == 0
    assert "diabetes seed 0: 4 (private) gold -> 5 (private) gold" in capsys.readouterr().out
    for command in (("ls", "g"), ("show", "g/diabetes/0")):
        assert mlebench(*command, store=run.store) == 0
        assert "5 (private)" in capsys.readouterr().out
    assert mlebench("ls", "g", "--json", store=run.store) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["score"], row["feedback"]) == (5.0, 0.3)


def test_groups_with_feedback_are_marked(run: FeedbackRun, capsys: pytest.CaptureFixture[str]) -> None:
    RunFolder(run.store, "plain", "diabetes", 0).write_run(run.record.replace(run_group="plain", feedback=None))
    RunFolder(run.store, "g", "diabetes", 1).write_run(run.record.replace(run_id="other", seed=1, feedback=None))
    assert mlebench("ls", store=run.store) == 0
    header, marked, plain, *_ = capsys.readouterr().out.splitlines()
    assert "FEEDBACK" in header
    assert "30 % (1 of 2 runs)" in marked
    assert "%" not in plain


def test_show_says_what_was_told_and_what_counts(run: FeedbackRun, capsys: pytest.CaptureFixture[str]) -> None:
    run.finish(final=["3", "2"], feedback_calls_per_day=5)
    assert mlebench("show", "g/diabetes/0", store=run.store) == 0
    shown = capsys.readouterr().out
    (grade,) = read_table(run.store, "grades").to_dict("records")
    for name, value in (
        ("public rows", "30 % of the test units; the score is on the others"),
        ("public scores a day", "5"),
        ("final choice", "3, 2"),
        ("file that counts", "public_scores/2.csv"),
        ("public score", "7, does not count"),
        ("score on all rows", f"{grade['score_with_public_rows']:g}"),
    ):
        assert f"{name:<20}{value}" in shown
    assert "not comparable with other scores" in shown


def test_tables_and_the_published_report_say_it(run: FeedbackRun) -> None:
    (grade,) = read_table(run.store, "grades").to_dict("records")
    assert (grade["score"], grade["public_score"], grade["feedback"]) == (5.0, 7.0, 0.3)
    files = read_table(run.store, "snapshots").to_dict("records")
    assert [(each["submission"], each["chosen"]) for each in files] == [(1, False), (2, True), (3, True)]
    assert read_table(run.store, "aggregates/over_time").empty, "they need not have been the submission"
    summary = json.loads(run.store.local("reports", "g", "summary.json").read_text())
    assert summary["competition_reports"][0]["feedback"] == 0.3


def test_a_copy_in_another_edition_is_graded_by_its_private_part(run: FeedbackRun) -> None:
    """Both editions of diabetes have the same test set, and so the same parts."""
    assert mlebench("regrade", "g", "--edition", "v2", "--as", "again", store=run.store) == 0
    (grade,) = read_table(run.store, "grades", ["again"]).to_dict("records")
    assert (grade["score"], grade["public_score"], grade["edition"]) == (5.0, 7.0, "v2")
    assert grade["submission_path"].endswith("runs/g/diabetes/0/public_scores/2.csv")


def test_equal_submissions_with_and_without_feedback_are_equal(
    run: FeedbackRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """One is scored on all rows, the other on the private ones."""
    plain = run.record.replace(run_group="plain", feedback=None, feedback_id=None)
    folder = RunFolder(run.store, "plain", "diabetes", 0)
    folder.write_run(plain)
    run.store.write(f"{folder.url}/submission.csv", run.content(7, 5))
    assert mlebench("regrade", "plain", store=run.store) == 0
    assert mlebench("compare", "plain", "g", store=run.store) == 0
    out = capsys.readouterr().out
    assert "0 better, 0 worse, 0 mixed, 1 same" in out
    assert "Runs with feedback: scores and medals are those on all test rows" in out
    assert mlebench("compare", "g", "plain", "--json", store=run.store) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["competitions"]
    assert (found["on_all_rows"], row["score_difference"]) == (["diabetes"], 0.0)


def test_an_imported_report_keeps_the_mark(run: FeedbackRun) -> None:
    report = run.store.local("reports", "g", "summary.json")
    assert mlebench("import-report", report, "--group", "imported", store=run.store) == 0
    (grade,) = read_table(run.store, "grades", ["imported"]).to_dict("records")
    assert (grade["score"], grade["feedback"]) == (5.0, 0.3)
    assert mlebench("compare", "g", "imported", store=run.store) == 0, "on the same rows"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("score", 4.0, "grade: score is 4.0, graded again it is 5.0"), ("feedback", 0.2, "graded again it is 0.3")],
)
def test_verify_grades_by_the_private_part_again(
    run: FeedbackRun, capsys: pytest.CaptureFixture[str], name: str, value: float, says: str
) -> None:
    mlebench("verify", "g", "--regrade", store=run.store)
    assert "graded again" not in capsys.readouterr().out
    url = f"{run.source}/grade.json"
    run.store.write_json(url, {**run.store.read_json(url), name: value})
    mlebench("verify", "g", "--regrade", store=run.store)
    assert says in capsys.readouterr().out


def test_what_does_not_know_the_parts_says_so(
    run: FeedbackRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = ("export", "--format", "submissions", "g", "--output", tmp_path / "lines.jsonl")
    assert mlebench(*export, store=run.store) == 0
    assert "note: 1 run had feedback, whose scores leave the public rows out" in capsys.readouterr().out
    mlebench("examine", "g", "--only", "split-noise", store=run.store)
    (row,) = read_table(run.store, "split_noise").to_dict("records")
    assert row["message"] == "the run had feedback, and its score is that on the private part alone"


def test_from_the_command_to_the_grade(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent chooses its second file, the sample submission, and `submission.csv`, which is the same."""
    agent = tmp_path / "agents" / "asking"
    agent.mkdir(parents=True)
    (agent / "agent.yaml").write_text("description: Asks.\ntrusted: true\nlimits: {time_limit_seconds: 300}\n")
    (agent / "start.sh").write_text(AGENT)
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(agent.parent)]))
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    get_settings.cache_clear()
    put_dataset(store, "diabetes")
    arguments = ("run", "-c", "diabetes", "--agent", "asking", "--run-group", "g", "--feedback", "0.3")
    assert mlebench(*arguments, store=store) == 0
    (grade,) = read_table(store, "grades").to_dict("records")
    assert (grade["outcome"], grade["feedback"]) == ("valid", 0.3)
    both = 0.3 * grade["public_score"] ** 2 + 0.7 * grade["score"] ** 2
    assert both == pytest.approx(grade["score_with_public_rows"] ** 2, rel=0.01), "the metric is a root mean square"
    files = read_table(store, "snapshots").sort_values("submission")
    files = files[files["submission"].notna()]
    assert files["chosen"].tolist() == [False, True, False]
    assert files["score"].tolist()[1] == grade["score"] < files["score"].tolist()[0]
    journal = store.local("runs", "g", "diabetes", 0, "public_scores.jsonl").read_text().splitlines()
    assert files["told"].tolist() == [json.loads(line)["told"] for line in journal]
    assert files["public_score"].tolist() == pytest.approx([json.loads(line)["score"] for line in journal], abs=1e-5)
    capsys.readouterr()
    assert mlebench("verify", "g", "--regrade", store=store) == 0
    assert "1 of 1 runs verified" in capsys.readouterr().out
