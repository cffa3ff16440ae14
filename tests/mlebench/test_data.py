"""Preparing in a data directory, from Kaggle or from what is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from common.errors import UserError
from common.settings import get_settings
from flows.cli import main
from mlebench.data import (
    download_and_prepare_dataset,
    download_dataset,
    ensure_leaderboard_exists,
    get_checksum,
    get_leaderboard,
    is_dataset_prepared,
)
from mlebench.grade import grade_csv
from mlebench.registry import Registry
from tests.kaggle_server import KaggleServer
from tests.kaggle_server.server import RULES
from tests.prepared import PreparedCompetitions
from tests.stores import Store

ID = "leaf-classification"


def test_a_download_from_kaggle_is_kept_unpacked(kaggle: KaggleServer, packs: Path, tmp_path: Path) -> None:
    kaggle.archives[ID] = (packs / ID / "raw.zip").read_bytes()
    competition = Registry(tmp_path).get_competition(ID)
    with pytest.raises(UserError, match="MD5"):  # that of a miniature
        download_and_prepare_dataset(competition)
    assert not is_dataset_prepared(competition)
    download_and_prepare_dataset(competition, skip_verification=True)
    assert is_dataset_prepared(competition)
    assert (competition.raw_dir / "train.csv.zip").is_file()
    assert grade_csv(competition.sample_submission, competition).valid_submission
    asked = len(kaggle.requests)
    download_and_prepare_dataset(competition, skip_verification=True)
    assert len(kaggle.requests) == asked, "nothing is done again"


def test_without_keep_raw_no_download_is_left(kaggle: KaggleServer, packs: Path, tmp_path: Path) -> None:
    kaggle.archives[ID] = (packs / ID / "raw.zip").read_bytes()
    competition = Registry(tmp_path).get_competition(ID)
    download_and_prepare_dataset(competition, keep_raw=False, skip_verification=True)
    assert is_dataset_prepared(competition)
    assert not competition.raw_dir.exists()
    assert not list(tmp_path.rglob("*.zip")) or {path.name for path in tmp_path.rglob("*.zip")} == {"images.zip"}


def test_downloads_may_lie_in_a_directory_of_the_settings(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(packs / ID / "raw.zip", tmp_path / f"{ID}.zip")
    monkeypatch.setenv("MLEBENCH_RAW_DIR", str(tmp_path))
    get_settings.cache_clear()
    competition = Registry(tmp_path / "data").get_competition(ID)
    download_and_prepare_dataset(competition, skip_verification=True)
    assert is_dataset_prepared(competition)


@pytest.mark.parametrize("form", ["raw", "archive"])
def test_a_download_of_the_published_tool_is_used(packs: Path, tmp_path: Path, form: str) -> None:
    folder = tmp_path / ID
    if form == "raw":
        shutil.unpack_archive(packs / ID / "raw.zip", folder / "raw")
    else:
        folder.mkdir()
        shutil.copy(packs / ID / "raw.zip", folder / f"{ID}.zip")
    competition = Registry(tmp_path).get_competition(ID)
    download_and_prepare_dataset(competition, skip_verification=True)
    assert is_dataset_prepared(competition)


def test_checksums_of_what_was_prepared_can_be_written(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    shutil.copytree(prepared[ID].path, tmp_path / ID / "prepared")
    competition = Registry(tmp_path).get_competition(ID)
    download_and_prepare_dataset(competition, overwrite_checksums=True)
    content = yaml.safe_load(competition.checksums.read_text())
    assert content["private"]["test.csv"] == get_checksum(competition.answers)
    assert content["public"]["train.csv"] == get_checksum(competition.public_dir / "train.csv")


def test_a_fetched_leaderboard_decides_medals(
    kaggle: KaggleServer, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    shutil.copytree(prepared[ID].path, tmp_path / ID / "prepared")
    competition = Registry(tmp_path).get_competition(ID)
    assert set(get_leaderboard(competition)["source"]) == {"thresholds of competition.yaml"}
    assert grade_csv(competition.sample_submission, competition).gold_threshold == 0.0
    kaggle.teams[ID] = [{"teamId": n, "teamName": "t", "score": f"{5 + n}"} for n in range(20)]
    assert ensure_leaderboard_exists(competition, force=True) == competition.leaderboard
    assert set(get_leaderboard(competition)["source"]) == {"kaggle"}
    report = grade_csv(competition.sample_submission, competition)
    assert (report.gold_threshold, report.bronze_threshold, report.gold_medal) == (6.0, 12.0, True)


def test_the_archive_alone_can_be_downloaded(kaggle: KaggleServer, packs: Path, tmp_path: Path) -> None:
    kaggle.archives[ID] = (packs / ID / "raw.zip").read_bytes()
    path = download_dataset(ID, tmp_path)
    assert path.read_bytes() == kaggle.archives[ID]
    asked = len(kaggle.requests)
    assert download_dataset(ID, tmp_path, quiet=True) == path
    assert len(kaggle.requests) == asked


def test_what_kaggle_refuses_is_said(kaggle: KaggleServer, tmp_path: Path) -> None:
    kaggle.refused[ID] = RULES
    with pytest.raises(UserError, match="rules"):
        download_and_prepare_dataset(Registry(tmp_path).get_competition(ID))


def test_the_command_lays_out_the_same(tmp_path: Path) -> None:
    assert main(["prepare", "-c", "digits", "--data-dir", str(tmp_path)]) == 0
    competition = Registry(tmp_path).get_competition("digits")
    assert competition.answers.resolve() == next(tmp_path.glob("prepared/v1/digits/*/private/test.csv"))
    assert (tmp_path / "digits" / "prepared").is_symlink()
    assert main(["adopt", str(tmp_path), "-c", "digits", "--store", str(tmp_path / "other")]) == 0, "and it is read"


def test_a_folder_in_the_way_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "digits" / "prepared" / "public").mkdir(parents=True)
    (tmp_path / "digits" / "prepared" / "public" / "mine.csv").touch()
    assert main(["prepare", "-c", "digits", "--data-dir", str(tmp_path)]) == 1
    assert "is a folder with other files" in capfd.readouterr().err


def test_a_store_is_not_changed_by_a_name(store: Store) -> None:
    Registry(store.root).get_competition("digits")
    assert not store.local().exists()
