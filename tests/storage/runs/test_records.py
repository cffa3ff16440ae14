"""Records: what is written is what is read, and each field has its column."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from grading.report import CompetitionReport, GradedSubmission
from storage.runs.evidence.signatures import check_record, fingerprint, sign_record, snapshots_hash
from storage.runs.folders import RunFolder, finished_folders, graded_folders, stored_runs
from storage.runs.records import (
    ExaminationRecord,
    GradeRecord,
    Record,
    RecordError,
    RunRecord,
    SnapshotRecord,
    UsageRecord,
)
from storage.schemas import SCHEMA_VERSION, TABLES
from tests.stores import Store

RECORDS: list[type[Record]] = [RunRecord, GradeRecord, SnapshotRecord, UsageRecord, ExaminationRecord]
RUN: dict[str, Any] = {"run_group": "g", "run_id": "g-x-0", "competition_id": "x", "seed": 0, "agent": "a"}
RUN |= {"edition": "v1", "key": "k"}
NO_COLUMN = {"signature", "snapshots_hash", "schema_version", "run_group", "key", "detail", "feedback_id", "final"}


@pytest.mark.parametrize("record", RECORDS)
def test_each_field_has_a_column_and_each_column_a_field(record: type[Record]) -> None:
    assert set(record.model_fields) - NO_COLUMN == set(TABLES[record.table].names)


@pytest.mark.parametrize("record", RECORDS)
def test_types_of_fields_are_those_of_the_columns(record: type[Record]) -> None:
    types = {"string": str, "int64": int, "float64": float, "bool": bool, "timestamp": datetime}
    for column in TABLES[record.table]:
        annotation = record.model_fields[column.name].annotation
        if column.name != "edition":
            assert annotation in (types[column.type], types[column.type] | None), column.name


def test_a_grade_record_has_every_field_of_a_graded_submission() -> None:
    own = {name for name in GradedSubmission.__dataclass_fields__ if name != "report"}
    assert own | set(CompetitionReport.model_fields) <= set(GradeRecord.model_fields)


class TestJson:
    def test_what_was_written_is_read(self) -> None:
        start = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
        record = RunRecord(**RUN, started_at=start, network="none", message=None)
        content = json.loads(json.dumps(record.to_json()))
        assert content["schema_version"] == SCHEMA_VERSION
        assert content["started_at"] == "2026-01-02T03:04:05.678901+00:00"
        assert RunRecord.from_json(content) == record

    def test_only_what_applies_to_a_run_is_in_its_file(self) -> None:
        content = RunRecord(**RUN, message=None).to_json()
        assert set(content) == {"schema_version", *RUN, "message"}

    def test_a_score_of_nan_is_kept(self, tmp_path: Path) -> None:
        store = Store(str(tmp_path))
        folder = RunFolder(store, "g", "x", 0)
        grade = _grade(score=math.nan)
        folder.write_grade(grade)
        read = folder.read_grade()
        assert read is not None
        assert read.score is not None
        assert math.isnan(read.score)

    def test_fields_that_are_not_known_are_kept(self) -> None:
        content = {**RUN, "another": {"a": 1}}
        record = RunRecord.from_json(content).replace(run_group="h")
        assert record.to_json() == {**content, "run_group": "h", "schema_version": SCHEMA_VERSION}
        assert "another" not in record.to_row()

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ({**RUN, "schema_version": SCHEMA_VERSION + 1}, "this version of mlebench reads up to"),
            ({**RUN, "seed": "first"}, "seed"),
            ({"run_group": "g"}, "competition_id"),
            ([], "is not a JSON object"),
        ],
    )
    def test_what_is_no_record_is_an_error_with_the_place(self, content: Any, says: str) -> None:
        with pytest.raises(RecordError, match=rf"runs/g/x/0/run\.json.*{says}"):
            RunRecord.from_json(content, "runs/g/x/0/run.json")

    def test_records_cannot_be_changed(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            RunRecord(**RUN).seed = 1

    def test_times_of_other_zones_are_the_same_moments(self) -> None:
        east = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
        record = RunRecord(**RUN, started_at=east)
        assert RunRecord.from_json(record.to_json()).started_at == datetime(2026, 1, 1, tzinfo=UTC)


class TestAStoreOfVersion1:
    def test_runs_are_read_with_all_they_say(self, recorded_store: Store) -> None:
        runs = {run.record.run_group: run.record for run in stored_runs(recorded_store)}
        assert set(runs) == {"old-copy", "old-docker", "old-process", "old-services"}
        assert {record.schema_version for record in runs.values()} == {SCHEMA_VERSION}
        assert (runs["old-docker"].network, runs["old-docker"].obfuscated) == ("gateway", True)
        assert (runs["old-process"].network, runs["old-process"].gpus) == (None, None)
        assert runs["old-services"].gateway_tokens == 2100
        started = runs["old-process"].started_at
        assert started is not None
        assert started.tzinfo is not None
        assert str(runs["old-copy"].submission_from).endswith("runs/old-process/digits/0")

    def test_rewriting_a_file_changes_nothing(self, recorded_store: Store) -> None:
        for folder in finished_folders(recorded_store):
            before = recorded_store.read_json(folder.run_url)
            record = folder.read_run()
            assert record is not None
            folder.write_run(record)
            assert recorded_store.read_json(folder.run_url) == before
        for folder in graded_folders(recorded_store, "*"):
            before = recorded_store.read_json(folder.grade_url())
            grade = folder.read_grade()
            assert grade is not None
            folder.write_grade(grade)
            assert recorded_store.read_json(folder.grade_url()) == before

    def test_snapshots_and_requests_are_read(self, recorded_store: Store) -> None:
        (snapshot,) = RunFolder(recorded_store, "old-docker", "digits", 0).read_snapshots()
        assert (snapshot.at_seconds, snapshot.score) == (0.0, 0.075)
        usage = list(RunFolder(recorded_store, "old-services", "diabetes", 0).read_usage())
        assert [request.model for request in usage] == ["gpt-4o", "claude-3-5-sonnet"]
        assert {request.run_id for request in usage} == {"old-services-diabetes-0"}
        assert all(request.started_at.tzinfo for request in usage)


def _grade(**fields: Any) -> GradeRecord:
    flags = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "submission_exists")
    values: dict[str, Any] = dict.fromkeys((*flags, "valid_submission", "is_lower_better"), False)
    values |= {**RUN, "outcome": "valid", "complexity": "low", "category": "Tabular", "created_at": datetime.now(UTC)}
    return GradeRecord(**{**values, **fields})


class TestAScoreThatIsNoNumberOfJson:
    @pytest.mark.parametrize("score", [math.inf, -math.inf, math.nan])
    @pytest.mark.parametrize("signed", [True, False])
    def test_is_a_text_in_the_files_and_a_number_in_the_record(self, store: Store, score: float, signed: bool) -> None:
        key = "0123456789abcdef" if signed else None
        flags = dict.fromkeys(("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median"), True)
        common: dict[str, Any] = {
            "run_group": "g",
            "run_id": "g-x-0",
            "competition_id": "x",
            "seed": 0,
            "agent": "a",
            **flags,
        }
        common |= {"score": score, "valid_submission": True}
        facts: dict[str, Any] = {
            "complexity": "demo",
            "category": "Tabular",
            "submission_exists": True,
            "is_lower_better": False,
        }
        grade = GradeRecord(
            **common, **facts, edition="v1", outcome="valid", created_at=datetime.now(UTC), gold_threshold=-score
        )
        snapshot = SnapshotRecord(**common, at_seconds=1.0)
        folder = RunFolder(store, "g", "x", 0)
        grade = sign_record(grade.replace(snapshots_hash=snapshots_hash([snapshot])), key)
        folder.write_grade(grade)
        folder.write_snapshots([snapshot])
        for name in ("grade.json", "snapshots.json"):
            json.loads(store.read(f"{folder.url}/{name}"), parse_constant=pytest.fail)
        found = folder.read_grade()
        assert found is not None
        assert repr((found.score, found.gold_threshold)) == repr((score, -score))
        assert repr([each.score for each in folder.read_snapshots()]) == repr([score])
        content = store.read_json(folder.grade_url())
        assert check_record(content, "grade.json", folder, key) == []
        assert fingerprint(store.read_json(f"{folder.url}/snapshots.json")) == content["snapshots_hash"]

    @pytest.mark.parametrize("token", ["Infinity", "-Infinity", "NaN"])
    def test_is_read_as_python_writes_it(self, store: Store, token: str) -> None:
        text = json.dumps({"score": 0.5, "valid_submission": True, "at_seconds": 1.0, **RUN})
        text = text.replace("0.5", token).replace(
            "{", '{"any_medal": false, "gold_medal": false, "silver_medal": false,'
        )
        text = text.replace("{", '{"bronze_medal": false, "above_median": false,')
        folder = RunFolder(store, "g", "x", 0)
        store.write(f"{folder.url}/snapshots.json", f"[{text}]".encode())
        [snapshot] = folder.read_snapshots()
        assert repr(snapshot.score) == repr(float(token))


def test_a_negative_duration_is_not_known() -> None:
    """The clock was set back while the agent ran. The record stays as it was written."""
    record = RunRecord.from_json({**RUN, "duration_seconds": -5.0})
    assert record.to_row()["duration_seconds"] is None
    assert record.to_json()["duration_seconds"] == -5.0
    assert RunRecord.from_json({**RUN, "duration_seconds": 0.0}).to_row()["duration_seconds"] == 0.0


@pytest.mark.parametrize("name", ["", " ", None, math.nan])
def test_an_agent_has_a_name(name: Any) -> None:
    with pytest.raises(RecordError, match="not a valid record: agent"):
        RunRecord.from_json({**RUN, "agent": name})
