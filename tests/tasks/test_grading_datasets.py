"""A run is graded with the answers of the dataset that it was made on, and with no others; with the current graders."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from competitions import fingerprints, registry
from competitions.editions import EDITIONS, Edition
from flows.cli import main
from flows.unattended import grading
from flows.watching.outcome import PartlyFailed
from grading.medals import Thresholds
from storage.dataset import Dataset
from storage.datasets.current import make_current, share
from storage.datasets.job import Recipe
from storage.runs.folders import RunFolder
from storage.schemas import SCHEMA_VERSION
from storage.upkeep import gc
from tasks.agent_run import run_agent
from tasks.grading import grade_run
from tasks.wiring.attempts import attempts_of, finished_run
from tasks.wiring.context import RunContext, open_store
from tasks.wiring.grades import Ungradable, finished_grade, grade_key, grade_request, grade_requests
from tasks.wiring.requests import GradeRequest, RunRequest
from tests.competitions.test_registry import copy_of
from tests.stores import Store, put_dataset

pytestmark = pytest.mark.slow

COPY_DESCRIPTION = """#!/bin/sh
cp "$DATA_DIR/description.md" "$LOGS_DIR/"; echo "$COMPETITION_ID" > "$LOGS_DIR/id"
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
"""


@pytest.fixture
def own(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The competition "own" of a user, like diabetes, prepared in the store; an agent "copy". Returns its folder."""
    folder = copy_of("diabetes", tmp_path / "competitions" / "own")
    agent = tmp_path / "agents" / "copy"
    agent.mkdir(parents=True)
    (agent / "agent.yaml").write_text(
        "description: Copies.\ntrusted: true\nlimits: {time_limit_seconds: 120, grace_seconds: 1}\n"
    )
    (agent / "start.sh").write_text(COPY_DESCRIPTION)
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(folder.parent))
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(agent.parent)]))
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    get_settings.cache_clear()
    open_store(store.root)
    put_dataset(store, "own", key="one")
    return folder


def run(store: Store, group: str = "g", **how: Any) -> RunFolder:
    request = RunRequest(agent="copy", run_group=group, store=store.root, **how)
    (attempt,) = attempts_of(RunContext.of(request), "own")
    assert run_agent(attempt) == "completed"
    folder = RunFolder(store, group, "own", 0)
    grade_run(grade_request(attempt))
    return folder


def request_of(store: Store, group: str = "g") -> GradeRequest:
    (request,) = grade_requests(store, group, "stored")
    assert isinstance(request, GradeRequest), request
    return request


def keys_of_grades(store: Store, *, has_feedback: bool = False) -> dict[Edition, str]:
    """The keys of the grades that a run would have in each edition."""
    thresholds = Thresholds(gold=1, silver=2, bronze=3, median=4, teams=9, lower_is_better=True)
    return {
        edition: grade_key("a run", Dataset(edition, "own", "one"), thresholds, has_feedback=has_feedback)
        for edition in EDITIONS
    }


class TestTheDataset:
    def test_its_key_is_in_the_records(self, own: Path, store: Store) -> None:
        folder = run(store)
        record, grade = folder.read_run(), folder.read_grade()
        assert record is not None
        assert grade is not None
        assert (record.dataset_key, record.schema_version, grade.dataset_key) == ("one", SCHEMA_VERSION, "one")

    def test_a_run_is_graded_with_its_own_after_another_one_is_current(self, own: Path, store: Store) -> None:
        folder = run(store)
        before = folder.read_grade()
        put_dataset(store, "own", key="two")
        (store.local("prepared", "v1", "own", "two", "private", "test.csv")).write_text("other answers")
        assert finished_grade(store, request_of(store)) == before, "graded already"
        assert main(["regrade", "g", "--store", store.root]) == 0
        after = folder.read_grade()
        assert before is not None
        assert after is not None
        assert (after.score, after.dataset_key, after.key) == (before.score, "one", before.key)

    def test_no_other_answers_are_taken_when_it_is_gone(
        self, own: Path, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = run(store)
        before = folder.read_grade()
        put_dataset(store, "own", key="two")
        assert [each.state for each in gc.old_datasets(store, gc.everything(store), None, dry=False)] == ["old"]
        (refused,) = grade_requests(store, "g", "stored")
        assert isinstance(refused, Ungradable)
        expected = "run g/own/0 was made on the dataset one of own (v1), which"
        assert refused.reason.startswith(expected)
        assert "no longer has (now: two); its submission cannot be graded with other answers" in refused.reason
        assert main(["regrade", "g", "--store", store.root]) == 1
        assert expected in capsys.readouterr().err
        with pytest.raises(PartlyFailed, match="cannot be graded with other answers"):
            grading("g", store=store.root)
        assert folder.read_grade() == before

    def test_a_file_of_submissions_names_it_as_well(
        self, own: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run(store)
        put_dataset(store, "own", key="two")
        (store.local("prepared", "v1", "own", "two", "private", "test.csv")).write_text("other answers")
        lines = tmp_path / "lines.jsonl"
        assert main(["export", "--format", "submissions", "g", "--output", str(lines), "--store", store.root]) == 0
        arguments = ["grade", "--submission", str(lines), "--output-dir", str(tmp_path), "--store", store.root]
        assert main(arguments) == 0, "with the answers of its own dataset"
        assert [each.state for each in gc.old_datasets(store, gc.everything(store), None, dry=False)] == ["old"]
        capsys.readouterr()
        assert main(arguments) == 1
        assert "line 1: its run was made on the dataset one of own (v1), which" in capsys.readouterr().err


class TestAnotherEdition:
    @pytest.fixture(autouse=True)
    def _with_other_files(self, own: Path) -> None:
        """Editions with the same files have the same dataset."""
        code = (own / "prepare.py").read_text()
        (own / "prepare.py").write_text(code.replace("    return", "    assert edition\n    return"))

    def test_of_the_same_download_grades_and_its_copy_can_be_graded_again(self, own: Path, store: Store) -> None:
        run(store)
        second = put_dataset(store, "own", edition="v2", key="other")
        make_current(store, Dataset("v1", "own", "one"), Recipe("v1", "a download", "code", {}))
        make_current(store, second, Recipe("v2", "a download", "code", {}))
        assert main(["regrade", "g", "--edition", "v2", "--as", "h", "--store", store.root]) == 0
        record = RunFolder(store, "h", "own", 0).read_run()
        assert record is not None
        assert (record.edition, record.dataset_key) == ("v2", "other")
        assert main(["regrade", "h", "--store", store.root]) == 0

    def test_of_another_download_is_refused(self, own: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        run(store)
        second = put_dataset(store, "own", edition="v2", key="other")
        make_current(store, Dataset("v1", "own", "one"), Recipe("v1", "a download", "code", {}))
        make_current(store, second, Recipe("v2", "another download", "code", {}))
        assert main(["regrade", "g", "--edition", "v2", "--store", store.root]) == 1
        assert "was made on a dataset of own (v1) from another download" in capsys.readouterr().err

    @pytest.mark.parametrize("named", [{"edition": "v1"}, {}])
    @pytest.mark.parametrize("graded", [[], ["--edition", "v2"]])
    def test_a_line_whose_key_is_that_of_another_edition_is_refused(
        self,
        own: Path,
        store: Store,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        named: dict[str, str],
        graded: list[str],
    ) -> None:
        folder = run(store)
        put_dataset(store, "own", edition="v2", key="other")
        lines = tmp_path / "lines.jsonl"
        arguments = ["grade", "--submission", str(lines), "--output-dir", str(tmp_path), "--store", store.root, *graded]
        line = {"competition_id": "own", "submission_path": f"{folder.url}/submission.csv"}
        right = "v2" if graded and not named else "v1"
        lines.write_text(json.dumps({**line, **named, "dataset_key": {"v1": "other", "v2": "one"}[right]}))
        assert main(arguments) == 1
        wrong = {"v1": "the dataset other is one of own (v2), not of own (v1)", "v2": "one is one of own (v1), not of"}
        assert wrong[right] in capsys.readouterr().err
        lines.write_text(json.dumps({**line, **named, "dataset_key": {"v1": "one", "v2": "other"}[right]}))
        assert main(arguments) == 0

    def test_a_dataset_that_both_editions_had_once_is_no_mistake(
        self, own: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = run(store)
        share(store, Dataset("v2", "own"), "v1")
        put_dataset(store, "own", edition="v2", key="other")
        lines = tmp_path / "lines.jsonl"
        line = {"competition_id": "own", "submission_path": f"{folder.url}/submission.csv", "edition": "v2"}
        lines.write_text(json.dumps({**line, "dataset_key": "one"}))
        arguments = ["grade", "--submission", str(lines), "--output-dir", str(tmp_path), "--edition", "v2"]
        assert main([*arguments, "--store", store.root]) == 0, capsys.readouterr().err


def test_another_edition_with_the_same_files_is_graded_with_the_same_dataset(own: Path, store: Store) -> None:
    folder = run(store)
    put_dataset(store, "own", key="two")
    assert main(["regrade", "g", "--edition", "v2", "--store", store.root]) == 0, "nothing has to be prepared for it"
    grade = folder.read_grade("v2")
    assert grade is not None
    assert (grade.edition, grade.dataset_key) == ("v2", "one")


def mend(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """Change the digest of the files whose paths end so."""
    read = fingerprints.source

    def mended(path: Path) -> fingerprints.Source:
        found = read(path)
        changed = path.as_posix().endswith(file)
        return fingerprints.Source(found.digest[::-1], found.imports, found.text) if changed else found

    monkeypatch.setattr(fingerprints, "source", mended)


class TestGradeKeys:
    def test_a_mended_shared_metric_grades_again_and_prepares_nothing(
        self, own: Path, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run(store)
        assert finished_grade(store, request_of(store)) is not None
        prepare = registry.get("own").fingerprint("prepare")
        mend(monkeypatch, "/metrics/regression.py")
        assert finished_grade(store, request_of(store)) is None, "it has to be graded again"
        assert registry.get("own").fingerprint("prepare") == prepare
        grade_run(request_of(store))
        assert finished_grade(store, request_of(store)) is not None

    @pytest.mark.parametrize(
        ("module", "again"),
        [
            ("scoring/reading.py", {"v1", "v2"}),
            ("grading/report.py", {"v1", "v2"}),
            ("competitions/policy.py", {"v2"}),
            ("metrics/ranking.py", set()),  # not the metric of this competition
        ],
    )
    def test_mended_code_between_submission_and_medal_grades_again(
        self, own: Path, store: Store, monkeypatch: pytest.MonkeyPatch, module: str, again: set[Edition]
    ) -> None:
        before = keys_of_grades(store)
        mend(monkeypatch, f"/{module}")
        after = keys_of_grades(store)
        assert {edition for edition in EDITIONS if after[edition] != before[edition]} == again

    @pytest.mark.parametrize("module", ["workers/cutting.py", "workers/parts.py", "feedback/private_part.py"])
    def test_mended_code_of_the_private_part_grades_again_with_feedback_alone(
        self, own: Path, store: Store, monkeypatch: pytest.MonkeyPatch, module: str
    ) -> None:
        before = [keys_of_grades(store, has_feedback=each) for each in (False, True)]
        mend(monkeypatch, f"/grading/{module}")
        without, having = (keys_of_grades(store, has_feedback=each) for each in (False, True))
        assert without == before[0]
        assert not set(having.values()) & set(before[1].values())

    def test_a_run_whose_test_set_was_not_divided_is_graded_once(
        self, own: Path, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        facts = own / "competition.yaml"
        facts.write_text(facts.read_text() + "resampling: {unknown: nobody knows}\n")
        registry.reread()
        request = RunRequest(agent="copy", run_group="g", store=store.root, feedback=0.3)
        (attempt,) = attempts_of(RunContext.of(request), "own")
        run_agent(attempt)
        grade_run(grade_request(attempt))
        assert finished_grade(store, grade_request(attempt)) is not None
        assert grade_request(attempt).key == request_of(store).key

    def test_a_stricter_policy_of_v2_is_applied_to_what_was_graded_before(self, own: Path, store: Store) -> None:
        folder = run(store)
        assert main(["regrade", "g", "--edition", "v2", "--store", store.root]) == 0
        first = folder.read_grade("v2")
        v1 = keys_of_grades(store)["v1"]
        facts = own / "competition.yaml"
        changed = facts.read_text().replace("progression: {values: number}", "progression: {values: number, high: -1}")
        assert changed != facts.read_text()
        facts.write_text(changed)
        registry.reread()
        assert main(["regrade", "g", "--edition", "v2", "--store", store.root]) == 0
        second = folder.read_grade("v2")
        assert first is not None
        assert second is not None
        assert (first.outcome, second.outcome) == ("valid", "invalid")
        assert keys_of_grades(store)["v1"] == v1, "which has no policy"

    def test_thresholds_count(self, own: Path, store: Store) -> None:
        run(store)
        facts = own / "competition.yaml"
        gold = registry.get("own").facts.leaderboard.gold
        assert f"gold: {gold}" in facts.read_text()
        facts.write_text(facts.read_text().replace(f"gold: {gold}", f"gold: {gold / 2}"))
        registry.reread()
        assert finished_grade(store, request_of(store)) is None

    def test_a_grade_under_another_key_is_made_again(self, own: Path, store: Store) -> None:
        folder = run(store)
        store.write_json(folder.grade_url(), {**store.read_json(folder.grade_url()), "key": "another key"})
        assert finished_grade(store, request_of(store)) is None


class TestDescriptions:
    def test_a_run_reads_the_text_of_its_day(self, own: Path, store: Store) -> None:
        (own / "description.md").write_text("# Better words\n")
        folder = run(store)
        assert store.read(f"{folder.url}/logs/description.md") == b"# Better words\n"
        assert store.read(f"{folder.url}/logs/id") == b"own\n", "it is told which competition it is"
        assert store.local("prepared", "v1", "own", "one", "public", "description.md").read_text() != "# Better words\n"


def test_a_run_whose_dataset_is_replaced_meanwhile_goes_on_with_its_own(own: Path, store: Store) -> None:
    request = RunRequest(agent="copy", run_group="g", store=store.root)
    (attempt,) = attempts_of(RunContext.of(request), "own")
    put_dataset(store, "own", key="two")
    assert run_agent(attempt) == "completed"
    record = finished_run(store, attempt)
    assert record is not None
    assert record.dataset_key == "one"
    assert grade_run(grade_request(attempt)).dataset_key == "one"


@pytest.fixture(autouse=True)
def _reload() -> None:
    for module in [module for module in sys.modules if module.startswith("competition_own_")]:
        del sys.modules[module]
