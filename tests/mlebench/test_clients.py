"""What programs of the field do with the interface: each test is a snippet as they have it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import multiprocessing
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mlebench.data import download_and_prepare_dataset, get_leaderboard, is_dataset_prepared
from mlebench.grade import aggregate_reports, grade_csv, grade_jsonl, validate_submission
from mlebench.grade_helpers import CompetitionReport, Grader, InvalidSubmissionError
from mlebench.registry import Competition, registry
from mlebench.utils import load_answers, read_csv
from tests.prepared import Prepared, PreparedCompetitions

ID, OTHER = "spaceship-titanic", "random-acts-of-pizza"


@pytest.fixture(scope="module")
def data_dir(prepared: PreparedCompetitions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory in the published layout, with two competitions."""
    folder = tmp_path_factory.mktemp("data")
    for name in (ID, OTHER):
        for part in ("public", "private"):
            shutil.copytree(prepared[name].path / part, folder / name / "prepared" / part)
    return folder


@pytest.fixture(scope="module")
def pack(prepared: PreparedCompetitions) -> Prepared:
    return prepared[ID]


@pytest.fixture(scope="module")
def submissions(pack: Prepared) -> list[Path]:
    """Three valid ones, then invalid ones."""
    names = ("noisy", "perfect", "extra_column", "duplicate_id", "empty", "missing_column", "nan_value")
    return [pack.submission(name) for name in names]


@pytest.fixture
def competition(data_dir: Path) -> Competition:
    return registry.set_data_dir(data_dir).get_competition(ID)


def plain(report: CompetitionReport) -> dict[str, Any]:
    """The report without the time, which differs."""
    return {name: value for name, value in report.to_dict().items() if name != "created_at"}


def with_own_registry(data_dir: Path, path: Path) -> CompetitionReport:
    return grade_csv(path, registry.set_data_dir(data_dir).get_competition(ID))


def pool(kind: str) -> Executor:
    if kind == "threads":
        return ThreadPoolExecutor(4)
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind))


@pytest.mark.parametrize("kind", ["threads", "fork", "spawn"])
def test_submissions_are_graded_in_pools(
    kind: str, competition: Competition, data_dir: Path, submissions: list[Path]
) -> None:
    one_by_one = [plain(grade_csv(path, competition)) for path in submissions]
    assert {report["valid_submission"] for report in one_by_one} == {True, False}
    with pool(kind) as workers:
        assert list(map(plain, workers.map(partial(grade_csv, competition=competition), submissions))) == one_by_one
        assert list(map(plain, workers.map(partial(with_own_registry, data_dir), submissions))) == one_by_one


@pytest.mark.parametrize("kind", [str, Path])
def test_a_data_directory_is_a_text_or_a_path(kind: Callable[[Path], Any], data_dir: Path) -> None:
    before = registry.get_data_dir()
    new = registry.set_data_dir(kind(data_dir))
    assert new.get_data_dir() == data_dir.resolve()
    assert registry.get_data_dir() == before
    assert new.get_competition(ID).public_dir == data_dir / ID / "prepared" / "public"


def test_paths_of_a_competition_exist(competition: Competition, data_dir: Path) -> None:
    folder = data_dir / ID
    assert (competition.public_dir, competition.private_dir) == (
        folder / "prepared/public",
        folder / "prepared/private",
    )
    assert competition.raw_dir == folder / "raw"
    for path in (competition.answers, competition.sample_submission, competition.gold_submission):
        assert path.is_file()
    assert (competition.id, competition.competition_type) == (ID, "simple")
    assert "Transported" in competition.description
    assert grade_csv(competition.gold_submission, competition).score == 1.0


@pytest.mark.parametrize("submit", [validate_submission, grade_csv])
def test_submissions_are_validated_and_graded_in_a_running_event_loop(
    submit: Callable[[Path, Competition], Any], competition: Competition, submissions: list[Path]
) -> None:
    """Directly, as a tool of an agent does, and in threads of the loop."""

    async def main() -> tuple[list[Any], list[Any]]:
        directly = [submit(path, competition) for path in submissions]
        return directly, await asyncio.gather(*(asyncio.to_thread(submit, path, competition) for path in submissions))

    directly, in_threads = asyncio.run(main())
    if submit is grade_csv:
        directly, in_threads = ([plain(report) for report in reports] for reports in (directly, in_threads))
    assert directly == in_threads


def test_validation_says_what_is_wrong(competition: Competition, submissions: list[Path], tmp_path: Path) -> None:
    for path in submissions:
        valid, message = validate_submission(path, competition)
        assert valid == grade_csv(path, competition).valid_submission
        assert message == "Submission is valid." if valid else message.startswith("Submission invalid!")
    (tmp_path / "x.txt").write_text("a\n")
    for path in (tmp_path, tmp_path / "x.txt", tmp_path / "none.csv"):
        valid, message = validate_submission(path, competition)
        assert not valid
        assert message.startswith("Submission invalid!")


def test_a_competition_is_sent_to_other_processes(competition: Competition, submissions: list[Path]) -> None:
    received = pickle.loads(pickle.dumps(competition))
    assert received == competition
    assert plain(grade_csv(submissions[0], received)) == plain(grade_csv(submissions[0], competition))


def test_fields_of_a_competition_are_replaced(
    competition: Competition, data_dir: Path, submissions: list[Path], tmp_path: Path
) -> None:
    """Other answers give another score; another leaderboard gives other thresholds."""
    answers = read_csv(competition.answers)
    answers["Transported"] = ~answers["Transported"]
    answers.to_csv(tmp_path / "answers.csv", index=False)
    score = grade_csv(competition.gold_submission, dataclasses.replace(competition, answers=tmp_path / "answers.csv"))
    assert score.score == 0.0
    pd.DataFrame({"score": [0.9, 0.8, 0.7]}).to_csv(tmp_path / "leaderboard.csv", index=False)
    other = dataclasses.replace(competition, leaderboard=tmp_path / "leaderboard.csv")
    assert grade_csv(submissions[0], other).gold_threshold == 0.9
    assert dataclasses.replace(competition, id=OTHER).id == OTHER
    with pytest.raises(dataclasses.FrozenInstanceError):
        competition.id = "x"  # type: ignore[misc]


def test_the_score_of_frames_is_a_reward(competition: Competition, pack: Prepared, submissions: list[Path]) -> None:
    answers = load_answers(competition.answers)
    for path in submissions:
        report = grade_csv(path, competition)
        assert competition.grader(read_csv(path), answers) == report.score
        if report.valid_submission:
            assert round(competition.grader.grade_fn(read_csv(path), answers), 5) == report.score
        else:
            with pytest.raises(InvalidSubmissionError):
                competition.grader.grade_fn(read_csv(path), answers)


def test_a_grader_ranks_scores(competition: Competition) -> None:
    board = pd.DataFrame({"score": [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]})
    grader = Grader(name="accuracy", grade_fn=f"mlebench.competitions.{ID}.grade:grade")
    assert grader.is_lower_better(board) is False
    assert grader.is_lower_better(board[::-1]) is True
    rank = competition.grader.rank_score(0.85, board)
    assert rank == {
        "gold_medal": False,
        "silver_medal": True,
        "bronze_medal": False,
        "above_median": True,
        "gold_threshold": 0.9,
        "silver_threshold": 0.8,
        "bronze_threshold": 0.6,
        "median_threshold": 0.45,
    }
    assert not any(value for name, value in grader.rank_score(None, board).items() if "threshold" not in name)


def test_files_of_splits_are_read() -> None:
    folder = registry.get_splits_dir()
    splits = {path.stem: path.read_text().splitlines() for path in folder.glob("*.txt")}
    assert {"low", "medium", "high", "all", "dev", "split75", "spaceship-titanic"} <= splits.keys()
    assert splits["low"] == registry.get_lite_competition_ids()
    assert (len(splits["low"]), len(splits["all"]), len(splits["dev"])) == (22, 75, 7)
    assert sorted(splits["low"] + splits["medium"] + splits["high"]) == sorted(splits["all"])
    everything = registry.list_competition_ids()
    assert everything == sorted(everything)
    assert len(everything) == 82
    assert all(set(ids) <= set(everything) for ids in splits.values())


def test_a_leaderboard_gives_percentiles(competition: Competition, submissions: list[Path]) -> None:
    board = pd.read_csv(competition.leaderboard)
    assert board["score"].is_monotonic_decreasing
    report = grade_csv(submissions[0], competition)
    assert 0 <= (board["score"] < report.score).mean() <= 1
    rank = competition.grader.rank_score(report.score, get_leaderboard(competition))
    assert rank == {name: getattr(report, name) for name in rank}


def test_the_private_half_suffices_for_grading(
    data_dir: Path, competition: Competition, submissions: list[Path], tmp_path: Path
) -> None:
    assert is_dataset_prepared(competition)
    shutil.copytree(competition.private_dir, tmp_path / ID / "prepared" / "private")
    half = registry.set_data_dir(tmp_path).get_competition(ID)
    assert is_dataset_prepared(half, grading_only=True)
    assert not is_dataset_prepared(half)
    assert plain(grade_csv(submissions[0], half)) == plain(grade_csv(submissions[0], competition))


@pytest.mark.parametrize("submit", [validate_submission, grade_csv])
def test_nothing_is_graded_that_is_not_prepared(submit: Callable[..., Any], tmp_path: Path) -> None:
    absent = registry.set_data_dir(tmp_path / "absent").get_competition(ID)
    assert not is_dataset_prepared(absent, grading_only=True)
    with pytest.raises(ValueError, match="prepare"):
        submit(tmp_path / "submission.csv", absent)


def test_an_unknown_competition_raises() -> None:
    with pytest.raises(Exception, match="spaceship-titanic"):
        registry.get_competition("spaceship-titanik")


def test_a_submission_is_a_file_whose_name_ends_in_csv(
    competition: Competition, pack: Prepared, tmp_path: Path
) -> None:
    content = competition.gold_submission.read_bytes()
    for name, exists in {"a.csv": True, "b.CSV": True, "c.txt": False, "d": False, "e.csv.gz": False}.items():
        (tmp_path / name).write_bytes(content)
        report = grade_csv(tmp_path / name, competition)
        assert (report.submission_exists, report.valid_submission) == (exists, exists), name
        assert report.score == (1.0 if exists else None)
        assert report.submission_path == str(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    for path in (tmp_path / "folder.csv", tmp_path / "none.csv"):
        assert not grade_csv(path, competition).submission_exists


def test_a_report_is_plain_json_and_back(competition: Competition, submissions: list[Path]) -> None:
    for path in submissions:
        report = grade_csv(path, competition)
        assert CompetitionReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_a_file_of_submissions_is_graded(data_dir: Path, submissions: list[Path], tmp_path: Path) -> None:
    lines = [json.dumps({"competition_id": ID, "submission_path": str(path)}) for path in submissions]
    (tmp_path / "all.jsonl").write_text("\n".join(["# comment", "", "// another", *lines]) + "\n")
    grade_jsonl(tmp_path / "all.jsonl", tmp_path / "out", registry.set_data_dir(data_dir))
    (written,) = (tmp_path / "out").iterdir()
    assert written.name.endswith("_grading_report.json")
    content = json.loads(written.read_text())
    reports = [CompetitionReport.from_dict(each) for each in content["competition_reports"]]
    assert [report.submission_path for report in reports] == [str(path) for path in submissions]
    assert content == json.loads(json.dumps(aggregate_reports(reports)))
    assert content["total_runs"] == len(submissions)
    assert content["total_valid_submissions"] == sum(report.valid_submission for report in reports)


def test_a_dataset_is_prepared_in_a_running_event_loop(tmp_path: Path) -> None:
    """As the Inspect port does it; the download of this competition is part of the package."""
    competition = registry.set_data_dir(tmp_path).get_competition("digits")

    async def main() -> None:
        if not is_dataset_prepared(competition):
            download_and_prepare_dataset(competition)

    asyncio.run(main())
    assert is_dataset_prepared(competition)
    assert grade_csv(competition.gold_submission, competition).any_medal
