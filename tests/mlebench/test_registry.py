"""Competitions by id, and paths that exist when they are read."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import NoCredentialsError

from common.errors import UserError
from common.settings import get_settings
from competitions import registry as catalog
from mlebench._files import leaderboard_of
from mlebench.data import download_and_prepare_dataset, get_leaderboard, is_dataset_prepared
from mlebench.grade_helpers import Grader
from mlebench.registry import DEFAULT_DATA_DIR, Competition, Registry, registry
from storage.datasets.published_layout import link_published_layout
from storage.store import Store as AnyStore
from tests.prepared import PreparedCompetitions
from tests.s3.fixtures import Bucket
from tests.stores import Store, put_dataset

ID = "leaf-classification"
BENCHMARK = [name for split in ("low", "medium", "high", "dev") for name in catalog.list(split)]


def test_splits_are_those_of_the_catalog() -> None:
    lists = {path.stem: path.read_text().split() for path in registry.get_splits_dir().iterdir()}
    for split in ("low", "medium", "high", "dev", "systemcard", "all"):
        assert sorted(lists[split]) == catalog.list(split)
    assert lists["split75"] == lists["all"]
    assert registry.get_lite_competition_ids() == lists["low"]


def test_all_competitions_of_the_benchmark_are_listed() -> None:
    ids = registry.list_competition_ids()
    assert (len(ids), ids) == (82, sorted(BENCHMARK))
    assert all((registry.get_competitions_dir() / name).is_dir() for name in ids)


def test_an_unknown_id_is_an_error_that_names_close_matches() -> None:
    with pytest.raises(FileNotFoundError, match="leaf-classification"):
        registry.get_competition("leaf-clasification")


def test_competitions_of_a_user_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(catalog.get("digits").folder, tmp_path / "own" / "my-digits")
    facts = folder / "competition.yaml"
    facts.write_text(facts.read_text().replace("id: digits", "id: my-digits"))
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "own"))
    get_settings.cache_clear()
    assert registry.get_competition("my-digits").id == "my-digits"
    assert "my-digits" in registry.list_competition_ids()
    get_settings.cache_clear()  # of this variable


def test_another_data_directory_is_another_registry(tmp_path: Path) -> None:
    other = registry.set_data_dir(tmp_path)
    assert (other.get_data_dir(), registry.get_data_dir()) == (tmp_path, DEFAULT_DATA_DIR)
    assert registry.set_data_dir(str(tmp_path)).get_competition(ID) == other.get_competition(ID)


def test_paths_are_those_of_the_published_layout(tmp_path: Path) -> None:
    competition = Registry(tmp_path).get_competition(ID)
    prepared = tmp_path / ID / "prepared"
    assert competition.public_dir == prepared / "public"
    assert competition.private_dir == prepared / "private"
    assert competition.answers == prepared / "private" / "test.csv"
    assert competition.sample_submission == prepared / "public" / "sample_submission.csv"
    assert competition.raw_dir == tmp_path / ID / "raw"
    assert not list(tmp_path.iterdir()), "naming a place makes nothing"


class TestCompetition:
    @pytest.fixture
    def competition(self, tmp_path: Path) -> Competition:
        return Registry(tmp_path).get_competition(ID)

    def test_it_is_a_frozen_value(self, competition: Competition, tmp_path: Path) -> None:
        with pytest.raises(FrozenInstanceError):
            competition.id = "other"  # type: ignore[misc]
        assert pickle.loads(pickle.dumps(competition)) == competition
        assert replace(competition, answers=tmp_path / "mine.csv").answers == tmp_path / "mine.csv"

    def test_it_can_be_made_of_a_dictionary(self, competition: Competition) -> None:
        values = {field.name: getattr(competition, field.name) for field in fields(competition)}
        texts = {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
        texts["grader"] = {"name": competition.grader.name, "grade_fn": competition.grader.source}
        texts["preparer"] = f"mlebench.competitions.{ID}.prepare:prepare"
        del texts["prepare_fn"]
        assert Competition.from_dict(texts) == competition

    def test_checksums_are_those_of_the_facts(self, competition: Competition) -> None:
        known = catalog.get(ID).facts.checksums
        content = yaml.safe_load(competition.checksums.read_text())
        assert content["zip"] == known.download
        assert {f"private/{name}": md5 for name, md5 in content["private"].items()}.items() <= known.prepared.items()

    def test_what_cannot_be_written_beside_the_data_is_written_to_the_cache(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mlebench._files.CACHE", tmp_path / "cache")
        (tmp_path / "data").write_text("a file where a folder would have to be")
        path = Registry(tmp_path / "data").get_competition(ID).leaderboard
        assert path.is_relative_to(tmp_path / "cache")
        assert path.read_text().startswith("rank,score,source")

    def test_where_nothing_can_be_written_it_lasts_as_long_as_the_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setattr("mlebench._files.CACHE", tmp_path / "file")
        path = Registry(tmp_path / "file").get_competition(ID).leaderboard
        assert path.read_text().startswith("rank,score,source")

    def test_its_function_prepares_the_published_files(
        self,
        competition: Competition,
        prepared: PreparedCompetitions,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        made = prepared[ID]
        raw = tmp_path / "unpacked"
        shutil.unpack_archive(made.raw, raw)
        monkeypatch.setattr(os, "rename", _across_file_systems(os.rename, tmp_path / "b"))
        competition.prepare_fn(raw, tmp_path / "a" / "public", tmp_path / "b" / "private")
        for part, folder in (("public", tmp_path / "a" / "public"), ("private", tmp_path / "b" / "private")):
            expected = {path.name for path in (made.path / part).iterdir()}
            assert {path.name for path in folder.iterdir()} == expected


def _across_file_systems(rename: Callable[..., None], folder: Path) -> Callable[..., None]:
    """`os.rename` if `folder` lay on a file system of its own."""

    def call(source: Any, target: Any, **options: Any) -> None:
        if Path(source).is_relative_to(folder) != Path(target).is_relative_to(folder):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target, **options)

    return call


@pytest.mark.parametrize("competition_id", BENCHMARK)
def test_a_leaderboard_of_thresholds_earns_the_same_medals(competition_id: str) -> None:
    ours = catalog.get(competition_id)
    board, frame = ours.facts.leaderboard, leaderboard_of(ours)
    grader = Grader("any", "any:any")
    ranks = grader.rank_score(None, frame)
    thresholds = (board.gold, board.silver, board.bronze, board.median)
    assert tuple(ranks[f"{name}_threshold"] for name in ("gold", "silver", "bronze", "median")) == thresholds
    assert grader.is_lower_better(frame) == ours.facts.lower_is_better
    assert len(frame) == board.teams
    assert frame["score"].is_monotonic_increasing if ours.facts.lower_is_better else True
    assert frame["score"].is_monotonic_decreasing if not ours.facts.lower_is_better else True
    assert set(frame["source"]) == {"thresholds of competition.yaml"}


class TestFilesOfFacts:
    """A leaderboard and checksums in the data directory."""

    @pytest.fixture
    def own(self, tmp_path: Path) -> Iterator[Path]:
        """The folder of a competition whose facts can be changed."""
        folder = shutil.copytree(catalog.get("digits").folder, tmp_path / "own" / "my-digits")
        self.change(folder, "id: digits", "id: my-digits")
        yield folder
        catalog.extend([])

    def change(self, folder: Path, old: str, new: str) -> None:
        facts = folder / "competition.yaml"
        facts.write_text(facts.read_text().replace(old, new))
        catalog.extend([folder.parent])
        catalog.reread()  # as a new process does

    def test_they_follow_the_facts(self, own: Path, tmp_path: Path) -> None:
        competition = Registry(tmp_path / "data").get_competition("my-digits")
        first, gold = competition.leaderboard, catalog.get("my-digits").facts.leaderboard.gold
        modified = first.stat().st_mtime_ns
        assert (competition.leaderboard, first.stat().st_mtime_ns) == (first, modified), "nothing is written twice"
        assert competition.checksums.is_file()
        self.change(own, f"gold: {gold}", "gold: 0.9671")
        assert 0.9671 in set(get_leaderboard(competition)["score"])
        competition.checksums.write_text("# MD5s of competition.yaml\nzip: of earlier facts\n")
        assert "earlier" not in competition.checksums.read_text()

    def test_those_of_the_user_stay(self, own: Path, tmp_path: Path) -> None:
        competition = Registry(tmp_path / "data").get_competition("my-digits")
        competition.leaderboard.write_text("score\n0.5\n0.4\n")
        competition.checksums.write_text("zip: mine\n")
        assert get_leaderboard(competition)["score"].tolist() == [0.5, 0.4]
        assert competition.checksums.read_text() == "zip: mine\n"
        generated = tmp_path / "mine.csv"
        generated.write_text("rank,score,source\n1,0.5,thresholds of competition.yaml\n")
        assert get_leaderboard(replace(competition, leaderboard=generated))["score"].tolist() == [0.5]

    def test_a_file_without_scores_is_named(self, own: Path, tmp_path: Path) -> None:
        competition = Registry(tmp_path / "data").get_competition("my-digits")
        for content in ("", "score\n", "rank\n1\n"):
            competition.leaderboard.write_text(content)
            with pytest.raises(ValueError, match=r"leaderboard\.csv has no scores"):
                get_leaderboard(competition)


class TestStores:
    def test_a_dataset_of_a_local_store_is_found(self, store: Store) -> None:
        put_dataset(store, "digits")
        competition = Registry(store.local()).get_competition("digits")
        assert competition.answers.read_text().startswith("id,")
        assert (competition.public_dir / "train.csv").is_file()
        assert is_dataset_prepared(competition)

    def test_the_store_may_lie_in_a_folder_of_any_name(self, tmp_path: Path) -> None:
        store = Store(str(tmp_path / "prepared" / "public"))
        put_dataset(store, "digits")
        assert Registry(store.local()).get_competition("digits").answers.is_file()

    def test_other_programs_find_it_in_the_published_layout(self, store: Store) -> None:
        put_dataset(store, "digits", key="one")
        link = link_published_layout(store, "digits")
        assert link == store.local("digits", "prepared")
        assert (link / "private" / "test.csv").is_file()
        put_dataset(store, "digits", key="two")
        link_published_layout(store, "digits")
        assert link.resolve().name == "two"
        moved = store.local().rename(store.local().with_name("moved"))
        assert (moved / "digits" / "prepared" / "private" / "test.csv").is_file(), "the whole directory can be moved"

    def test_folders_that_a_container_has_mounted_already_are_filled(self, store: Store) -> None:
        folders = [store.local("digits", "prepared", part) for part in ("public", "private")]
        for folder in folders:
            folder.mkdir(parents=True)
        mounted = [folder.stat().st_ino for folder in folders]
        put_dataset(store, "digits")
        for _ in range(2):  # also if they are filled
            assert link_published_layout(store, "digits") == store.local("digits", "prepared")
        assert [folder.stat().st_ino for folder in folders] == mounted
        assert is_dataset_prepared(Registry(store.local()).get_competition("digits"))
        answers = store.local("digits", "prepared", "private", "test.csv")
        answers.unlink()
        answers.write_text("of the user")
        with pytest.raises(UserError, match="other files"):
            link_published_layout(store, "digits")
        assert answers.read_text() == "of the user"

    def test_a_published_data_directory_is_read(self, prepared: PreparedCompetitions, tmp_path: Path) -> None:
        made = prepared[ID]
        shutil.copytree(made.path, tmp_path / ID / "prepared")
        assert is_dataset_prepared(Registry(tmp_path).get_competition(ID))

    def test_a_dataset_of_an_object_store_is_fetched_when_it_is_read(self, s3: Bucket, tmp_path: Path) -> None:
        put_dataset(AnyStore(f"{s3.url}/store"), "digits")
        competition = Registry(f"{s3.url}/store").get_competition("digits")
        assert is_dataset_prepared(competition)
        assert len({competition, Registry(f"{s3.url}/store").get_competition("digits")}) == 1
        assert repr(competition).startswith("Competition(id='digits'")
        cache = get_settings().scratch / "cache"
        assert not cache.exists() or not list(cache.rglob("test.csv")), "to ask fetches nothing"
        assert competition.answers.read_text().startswith("id,")
        assert not (competition.private_dir.parent / "public").exists(), "only what is read"
        assert (competition.public_dir / "train.csv").is_file()

    def test_without_credentials_is_one_line(self, s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
        competition = Registry(f"{s3.url}/store").get_competition("digits")

        def refused(*_: object) -> None:
            raise NoCredentialsError

        monkeypatch.setattr("storage.datasets.current.find", refused)
        with pytest.raises(UserError, match="cannot be read: Unable to locate credentials; check credentials"):
            is_dataset_prepared(competition)

    def test_a_forked_process_deletes_nothing(self, tmp_path: Path) -> None:
        code = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "import mlebench._files as files\n"
            "from contextlib import contextmanager\n"
            "@contextmanager\n"
            "def copy():\n"
            "    try: yield\n"
            "    finally: os.write(1, b'closed in the ' + (b'parent' if os.getpid() == parent else b'child'))\n"
            "parent = os.getpid()\n"
            "files._copies().enter_context(copy())\n"
            "folder = files._temporary()\n"
            "child = os.fork()\n"
            "if child == 0: sys.exit()\n"
            "os.waitpid(child, 0)\n"
            "assert folder.is_dir()\n"
            "print(folder, flush=True)\n"
        )
        root = Path(__file__).parents[2]
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
        folder, said = result.stdout.splitlines()
        assert said.split() == ["closed", "in", "the", "parent"]
        assert not Path(folder).exists()


def test_a_path_of_an_url_is_that_url() -> None:
    urls = {Registry(url).get_competition(ID).store for url in ("s3://bucket/data", Path("s3://bucket/data"))}
    assert urls == {"s3://bucket/data"}
    assert Registry("file:///data").get_data_dir() == Path("/data")


class TestBothInstalled:
    def run(self, *path: Path, code: str = "import mlebench") -> subprocess.CompletedProcess[str]:
        root = Path(__file__).parents[2]
        env = {"PYTHONPATH": ":".join(map(str, (*path, root)))}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=path[0])

    def test_the_published_package_in_front_of_ours_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "mlebench").mkdir()
        (tmp_path / "mlebench" / "__init__.py").touch()
        result = self.run(tmp_path, code="from mlebench_command import main; raise SystemExit(main())")
        assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
        assert str(tmp_path / "mlebench") in result.stderr

    def test_the_published_package_in_the_same_environment_is_named(self, tmp_path: Path) -> None:
        found = "import mlebench_command; mlebench_command._PUBLISHED = 'pyproject.toml'"
        assert self.run(tmp_path).returncode == 0
        last = self.run(tmp_path, code=f"{found}\nimport mlebench").stderr.splitlines()[-1]
        assert last.startswith("ImportError: mlebench: the published benchmark is installed here too")


def test_preparing_in_a_data_directory_makes_the_published_layout(tmp_path: Path) -> None:
    competition = Registry(tmp_path).get_competition("digits")
    assert not is_dataset_prepared(competition)
    download_and_prepare_dataset(competition)
    assert is_dataset_prepared(competition)
    assert competition.public_dir == tmp_path / "digits" / "prepared" / "public"
    assert {path.name for path in competition.raw_dir.iterdir()} == {"train.csv", "images.zip"}
    assert not list(tmp_path.glob("raw/digits/*.zip")), "the unpacked download is kept, not the archive as well"
