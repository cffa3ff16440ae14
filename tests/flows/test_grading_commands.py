"""The commands around grading, on a store with a finished group: no agent runs, nothing is lost on the way."""

from __future__ import annotations

import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from common.settings import get_settings
from competitions import registry
from flows.commands.grade import ProcessOptions
from grading.report import GradingReport
from storage.tables import read_table
from tests.flows.graded import GROUP, dataset, graded, grades_of, group, mlebench, run_record
from tests.stores import Store, copy_dataset

__all__ = ["dataset", "graded", "group"]


class TestRegrade:
    def test_grades_what_the_runs_left(self, group: Store) -> None:
        grades = grades_of(group)
        assert grades["outcome"].tolist() == ["valid", "valid", "missing"]
        assert grades["score"].tolist()[0] == 0
        assert group.local("reports", GROUP, "report.html").is_file()

    def test_with_a_corrected_grader_says_what_changed(
        self, group: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        record = group.run(GROUP, "diabetes", 1) + "/grade.json"
        before = group.read_json(record)
        group.write_json(record, {**before, "score": 1.0})  # as an older grader had it
        capsys.readouterr()
        assert mlebench("regrade", GROUP, store=group) == 0
        output = capsys.readouterr().out
        assert f"diabetes seed 1: 1 no medal -> {before['score']} no medal" in output
        assert "3 runs graded, 1 changed" in output
        assert grades_of(group)["score"].tolist()[1] == before["score"]

    def test_with_another_edition_both_stand_side_by_side(self, group: Store) -> None:
        assert mlebench("regrade", GROUP, "--edition", "v2", store=group) == 0
        assert grades_of(group)["edition"].tolist() == ["v1"] * 3 + ["v2"] * 3

    def test_as_another_group_leaves_the_first_as_it_is(self, group: Store) -> None:
        before = grades_of(group)
        assert mlebench("regrade", GROUP, "--as", "again", "--edition", "v2", store=group) == 0
        pd.testing.assert_frame_equal(grades_of(group), before)
        again = grades_of(group, "again")
        assert again["edition"].tolist() == ["v2"] * 3
        assert again["outcome"].tolist() == before["outcome"].tolist()
        assert mlebench("regrade", "again", store=group) == 0, "its submissions are those of the first"
        assert mlebench("regrade", GROUP, "--as", "again", store=group) == 1, "no group is overwritten"

    def test_versions_of_a_submission_are_graded_in_the_group_that_is_written(
        self, group: Store, dataset: Path
    ) -> None:
        url = group.run(GROUP, "diabetes", 0)
        group.put(f"{url}/snapshots/10.5.csv", dataset / registry.get("diabetes").facts.files.sample_submission)
        assert mlebench("regrade", GROUP, store=group) == 0
        before = group.read_json(f"{url}/snapshots.json")
        assert [(row["run_group"], row["at_seconds"]) for row in before] == [(GROUP, 10.5)]
        assert mlebench("regrade", GROUP, "--as", "again", store=group) == 0
        assert group.read_json(f"{url}/snapshots.json") == before
        assert read_table(group, "snapshots", ["again"])["at_seconds"].tolist() == [10.5]

    def test_an_edition_that_is_not_prepared_ends_with_the_cause(
        self, group: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shutil.rmtree(group.local("prepared", "v2"))
        assert mlebench("regrade", GROUP, "--as", "again", "--edition", "v2", store=group) == 1
        assert "no run could be graded" in capsys.readouterr().err

    def test_a_hostile_submission_is_an_invalid_one(self, group: Store) -> None:
        group.write(group.run(GROUP, "diabetes", 1) + "/submission.csv", b"," * 1_000_000)
        assert mlebench("regrade", GROUP, store=group) == 0
        assert grades_of(group)["outcome"].tolist() == ["valid", "invalid", "missing"]
        assert "columns" in grades_of(group)["message"][1]

    def test_a_bug_of_a_grader_is_ours_and_keeps_its_traceback(
        self, group: Store, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        odd = tmp_path / "own" / "odd"
        shutil.copytree(registry.get("diabetes").folder, odd, ignore=shutil.ignore_patterns("__pycache__"))
        facts = odd / "competition.yaml"
        facts.write_text(facts.read_text().replace("id: diabetes", "id: odd", 1))
        (odd / "grade.py").write_text("def grade(submission, answers, edition):\n    raise KeyError('label')\n")
        monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(odd.parent))
        get_settings.cache_clear()
        copy_dataset(group, "odd", dataset)
        url = group.run(GROUP, "odd", 0)
        group.put(f"{url}/submission.csv", dataset / registry.get("diabetes").facts.files.sample_submission)
        group.write_json(f"{url}/run.json", {**run_record(0, True), "competition_id": "odd", "run_id": "odd-0"})
        assert mlebench("regrade", GROUP, store=group) == 1
        record = group.read_json(f"{url}/grade.json")
        assert (record["outcome"], record["message"]) == (
            "failed",
            "grading failed: KeyError: 'label' (odd/grade.py, line 2)",
        )
        assert "Traceback" in record["detail"]
        assert "raise KeyError('label')" in record["detail"]
        gaps = read_table(group, "aggregates/gaps")
        assert "failed" in set(gaps.loc[gaps["competition_id"] == "odd", "reason"]), "never booked as the agent's"
        assert "KeyError" in group.local("reports", GROUP, "report.html").read_text()

    def test_goes_on_past_a_competition_that_is_not_prepared(
        self, group: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        url = group.run(GROUP, "digits", 0)
        group.write_json(f"{url}/run.json", {**run_record(0, True), "competition_id": "digits"})
        assert mlebench("regrade", GROUP, store=group) == 1
        captured = capsys.readouterr()
        assert "digits (v1) is not prepared" in captured.err
        assert grades_of(group)["outcome"].tolist() == ["valid", "valid", "missing"]

    def test_as_another_group_changes_no_byte_of_the_first(self, group: Store, dataset: Path) -> None:
        url = group.run(GROUP, "diabetes", 0)
        group.put(f"{url}/snapshots/10.5.csv", dataset / registry.get("diabetes").facts.files.sample_submission)
        assert mlebench("regrade", GROUP, store=group) == 0
        before = files_of(group, GROUP)
        assert f"runs/{GROUP}/diabetes/0/snapshots.json" in before
        for number, options in enumerate([[], ["--edition", "v2"]]):
            assert mlebench("regrade", GROUP, "--as", f"again-{number}", *options, store=group) == 0
            assert files_of(group, GROUP) == before

    def test_versions_graded_in_another_edition_stand_beside_the_first(self, group: Store, dataset: Path) -> None:
        url = group.run(GROUP, "diabetes", 0)
        group.put(f"{url}/snapshots/10.5.csv", dataset / registry.get("diabetes").facts.files.sample_submission)
        assert mlebench("regrade", GROUP, store=group) == 0
        before = group.read(f"{url}/snapshots.json")
        assert mlebench("regrade", GROUP, "--edition", "v2", store=group) == 0
        assert group.read(f"{url}/snapshots.json") == before
        table = read_table(group, "snapshots", [GROUP])
        assert sorted(table["edition"]) == ["v1", "v2"]
        assert set(table["outcome"]) == {"valid"}
        assert set(table["leaderboard"]) == {"stored"}

    def test_summaries_never_add_editions_up(self, group: Store) -> None:
        assert mlebench("regrade", GROUP, "--edition", "v2", store=group) == 0
        for name in ("summary.json", "summary-v2.json"):
            content = group.local("reports", GROUP, name).read_text()
            assert GradingReport.model_validate_json(content).total_runs == 3


def files_of(store: Store, group: str) -> dict[str, bytes]:
    """Everything that the store has of a run group."""
    root = store.local()
    tops = [f"runs/{group}", f"reports/{group}", *(str(p.relative_to(root)) for p in root.glob(f"tables/**/*={group}"))]
    found = [path for top in tops for path in (root / top).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


class TestMakeSubmission:
    def test_what_it_writes_is_what_grade_reads(self, group: Store, tmp_path: Path) -> None:
        items = tmp_path / "items.jsonl"
        assert mlebench("export", "--format", "submissions", GROUP, "--output", items, store=group) == 0
        lines = [json.loads(line) for line in items.read_text().splitlines()]
        assert [line["seed"] for line in lines] == [0, 1, 2]
        assert [line["submission_path"] is None for line in lines] == [False, False, True]
        assert all(Path(line["logs_path"]).is_dir() for line in lines)
        assert mlebench("grade", "--submission", items, "--output-dir", tmp_path / "out", store=group) == 0
        (path,) = (tmp_path / "out").glob("*_grading_report.json")
        report = GradingReport.model_validate_json(path.read_text())
        assert [each.score for each in report.competition_reports][:2] == grades_of(group)["score"].tolist()[:2]
        assert (report.total_runs, report.total_runs_with_submissions) == (3, 2)

    def test_copies_for_a_store_elsewhere(self, group: Store, tmp_path: Path) -> None:
        items = tmp_path / "items.jsonl"
        mlebench(
            "export", "--format", "submissions", GROUP, "--output", items, "--copy-to", tmp_path / "copies", store=group
        )
        first = json.loads(items.read_text().splitlines()[0])
        assert Path(first["submission_path"]) == tmp_path / "copies" / GROUP / "diabetes" / "0" / "submission.csv"
        assert Path(first["submission_path"]).is_file()

    def test_published_run_folders_are_read(self, store: Store, dataset: Path, tmp_path: Path) -> None:
        runs = {"diabetes_0a1b": True, "digits_2c3d": False}
        for run, made in runs.items():
            (tmp_path / "runs" / run / "submission").mkdir(parents=True)
            if made:
                (tmp_path / "runs" / run / "submission" / "submission.csv").write_text("id\n")
                (tmp_path / "runs" / run / "logs").mkdir()
                (tmp_path / "runs" / run / "logs" / "agent.log").write_text("")
        metadata = tmp_path / "runs" / "metadata.json"
        metadata.write_text(json.dumps({"run_group": "x", "runs": {run: {} for run in runs}}))
        items = tmp_path / "items.jsonl"
        assert (
            mlebench("export", "--format", "submissions", "--metadata", metadata, "--output", items, store=store) == 0
        )
        first, second = map(json.loads, items.read_text().splitlines())
        assert (first["competition_id"], first["run_id"]) == ("diabetes", "diabetes_0a1b")
        assert first["submission_path"].endswith("diabetes_0a1b/submission/submission.csv")
        assert first["logs_path"].endswith("logs/agent.log")
        assert (second["competition_id"], second["submission_path"]) == ("digits", None)

    def test_says_what_is_wrong(self, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert mlebench("export", "--format", "submissions", "nobody", store=store) == 2, "there is no store"
        Path(str(store.local())).mkdir()
        assert mlebench("export", "--format", "submissions", "nobody", store=store) == 1
        assert mlebench("export", "--format", "submissions", store=store) == 2
        (tmp_path / "metadata.json").write_text("[]")
        assert mlebench("export", "--format", "submissions", "--metadata", tmp_path / "metadata.json", store=store) == 1
        assert "is not a metadata.json" in capsys.readouterr().err
        for content in ("[" * 100_000, json.dumps({"runs": ["x" * 5000]}), json.dumps({"runs": ["\ud800"]})):
            (tmp_path / "metadata.json").write_text(content)
            assert (
                mlebench("export", "--format", "submissions", "--metadata", tmp_path / "metadata.json", store=store)
                == 1
            )
            assert "Traceback" not in capsys.readouterr().err


class TestGrade:
    def test_urls_in_a_file_of_others_are_read_only_if_that_is_asked_for(
        self, group: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        content = group.read(group.run(GROUP, "diabetes", 0) + "/submission.csv")
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}/submission.csv"
        items = tmp_path / "items.jsonl"
        paths = [f"http://{address}", f"simplecache::http://{address}", f"HTTP://{address}"]
        lines = [json.dumps({"competition_id": "diabetes", "submission_path": path}) for path in paths]
        items.write_text("\n".join(lines))
        command = ["grade", "--submission", items, "--output-dir", tmp_path / "out"]
        try:
            assert mlebench(*command, store=group) == 1
            told = capsys.readouterr().err
            assert all(f"line {n}: {path} is a URL; if you trust" in told for n, path in enumerate(paths, 1))
            assert asked == []
            items.write_text(lines[0])
            assert mlebench(*command, "--fetch-urls", store=group) == 0
            assert "line 1: diabetes: 0" in capsys.readouterr().err
            assert asked
        finally:
            server.shutdown()
            server.server_close()

    def test_a_path_that_no_file_has_is_the_outcome_of_its_line(
        self, group: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        good = str(group.local("runs", GROUP, "diabetes", 0) / "submission.csv")
        paths = [good, "x" * 5000, "a/" * 3000, "a\0b", "\ud800", f"{good}/x", good]
        lines = [json.dumps({"competition_id": "diabetes", "submission_path": path}) for path in paths]
        items = tmp_path / "items.jsonl"
        items.write_text("\n".join(lines))
        assert mlebench("grade", "--submission", items, "--output-dir", tmp_path / "out", store=group) == 1
        told = capsys.readouterr().err
        assert "line 1: diabetes: 0" in told
        assert "line 7: diabetes: 0" in told
        assert "line 2: not a JSON object with" in told
        assert "line 3: [Errno 36] File name too long" in told
        assert "line 6: diabetes: missing" in told
        (path,) = (tmp_path / "out").glob("*_grading_report.json")
        assert json.loads(path.read_text())["total_runs"] == 3

    def test_submissions_at_urls_and_bad_ones(
        self, group: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        perfect = group.run(GROUP, "diabetes", 0) + "/submission.csv"
        (tmp_path / "hostile.csv").write_bytes(b"\0" * 100_000)
        paths = [perfect, str(tmp_path / "hostile.csv"), None, "nonsense://x", f"{perfect}.gone"]
        items = tmp_path / "items.jsonl"
        lines = [json.dumps({"competition_id": "diabetes", "submission_path": path, "seed": 3}) for path in paths]
        unknown = json.dumps({"competition_id": "nobody", "submission_path": perfect})
        bad = ['{"competition_id": "diabetes"}', "[" * 100_000, '{"a": "\xff"}', "not json"]
        items.write_text("\n".join([*lines, *bad, unknown]))
        assert mlebench("grade", "--submission", items, "--output-dir", tmp_path / "out", store=group) == 1
        told = capsys.readouterr().err
        for part in (
            "line 1: diabetes: 0",
            "line 2: diabetes: invalid",
            "line 3: diabetes: missing",
            "line 4: nonsense",
        ):
            assert part in told
        assert "line 5: diabetes: missing" in told
        assert all(f"line {number}: not a JSON object" in told for number in (6, 7, 8, 9))
        assert "line 10: unknown competition 'nobody'" in told
        (path,) = (tmp_path / "out").glob("*_grading_report.json")
        assert json.loads(path.read_text())["total_runs"] == 4

    def test_limits_can_be_set(self, group: Store, dataset: Path, tmp_path: Path) -> None:
        (tmp_path / "big.csv").write_bytes(b"id,progression\n" + b"1,2.5\n" * 2_000_000)
        items = tmp_path / "items.jsonl"
        items.write_text(json.dumps({"competition_id": "diabetes", "submission_path": str(tmp_path / "big.csv")}))
        code = mlebench("grade", "--submission", items, "--output-dir", tmp_path, "--memory", 0.01, store=group)
        assert code == 0, "an invalid submission is a result"


@pytest.mark.parametrize(
    ("cores", "free", "count"), [(8, 64 << 30, 8), (8, 5 << 30, 2), (8, 1 << 30, 1), (None, 64 << 30, 1)]
)
def test_grading_uses_the_cores_as_far_as_there_is_memory(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, free: int, count: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free))
    assert ProcessOptions().count == count
    assert ProcessOptions(workers=3).count == 3
