"""An edition with the files of another one has its dataset; others take what they have in common from it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from competitions.editions import EDITIONS, Edition
from flows.cli import main
from storage.dataset import Dataset
from storage.datasets.current import find, read_current
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.datasets.prepared import committed_key
from storage.upkeep import gc
from storage.writers import Destination
from tasks.checksum import verify_checksums
from tasks.download import download_archive
from tasks.split import split_dataset, split_recipe
from tasks.wiring.context import already_prepared, data_for, open_store
from tests.competitions.test_registry import copy_of
from tests.kaggle_server import KaggleServer
from tests.s3.fixtures import Bucket
from tests.stores import Store, put_dataset

V1, V2 = Dataset("v1", "diabetes"), Dataset("v2", "diabetes")
WHALES = "whale-categorization-playground"


def prepare(store: Store, name: str, edition: Edition, keep_raw: bool = False) -> str:
    """What the flow does for one edition; returns the key of its dataset."""
    open_store(store.root)
    miniature = name == WHALES  # which has other checksums than the real data
    archive = download_archive(name, store.root, verify=not miniature, edition=edition)
    key = split_dataset(name, store.root, edition, archive)
    if not miniature:
        verify_checksums(name, store.root, edition, key, keep_raw)
    return key


def files(store: Store) -> list[str]:
    top = store.local("prepared")
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())


class TestShared:
    def test_nothing_is_prepared_twice(self, store: Store) -> None:
        key = prepare(store, "diabetes", "v1")
        before = files(store)
        assert not store.exists(store.raw("diabetes"))
        assert data_for(store, V2).state == "made"
        assert not already_prepared(store, V2), "preparing it is asked for, and noted"
        assert prepare(store, "diabetes", "v2") == key
        assert set(files(store)) - set(before) == {"v2/diabetes/current.json"}
        assert not store.exists(store.raw("diabetes")), "the download is not needed"
        assert already_prepared(store, V2)
        found = find(store, V2)
        assert found == Dataset("v2", "diabetes", key, files_of="v1") == find(store, Dataset("v2", "diabetes", key))
        assert store.prepared(found) == store.prepared(Dataset("v1", "diabetes", key))

    def test_the_second_edition_may_come_first(self, store: Store) -> None:
        key = prepare(store, "diabetes", "v2")
        assert already_prepared(store, V1)
        assert already_prepared(store, V2)
        assert committed_key(store, V1) == key

    def test_what_becomes_current_becomes_so_for_both(self, store: Store) -> None:
        prepare(store, "diabetes", "v2", keep_raw=True)
        put_dataset(store, "diabetes", key="other")
        assert committed_key(store, V2) == "other"

    def test_it_is_removed_by_both(self, store: Store) -> None:
        prepare(store, "diabetes", "v2")
        (kept,) = gc.edition_datasets(store, gc.everything(store), "v1", dry=False)
        assert (kept.name, kept.state) == ("v1 diabetes, shared with v2", "in use")
        (noted,) = gc.edition_datasets(store, gc.everything(store), "v2", dry=False)
        assert (noted.name, noted.bytes) == ("v2 diabetes, shared with v1", 0)
        assert (find(store, V2), find(store, V1) is not None) == (None, True)
        (gone,) = gc.edition_datasets(store, gc.everything(store), "v1", dry=False)
        assert (gone.name, gone.state) == ("v1 diabetes", "complete")
        assert files(store) == []


def test_an_edition_that_begins_to_differ_gets_a_dataset_of_its_own(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_of("diabetes", tmp_path / "competitions" / "own")
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(folder.parent))
    monkeypatch.setattr("tasks.split._code", lambda _: "")
    get_settings.cache_clear()
    first, dataset = prepare(store, "own", "v2", keep_raw=True), Dataset("v2", "own")
    assert find(store, dataset) == Dataset("v2", "own", first, files_of="v1")
    code = (folder / "prepare.py").read_text()
    (folder / "prepare.py").write_text(code.replace("    return", "    assert edition\n    return"))
    for module in [module for module in sys.modules if module.startswith("competition_own_")]:
        del sys.modules[module]
    hashed = store.read_json(store.url("raw", "own", "download.json"))["hash"]
    assert read_current(store, dataset).state(split_recipe("own", hashed, "v2")) == "other inputs"
    assert prepare(store, "own", "v2", keep_raw=True) != first
    found = find(store, dataset)
    assert found is not None
    assert (found.home, committed_key(store, Dataset("v1", "own"))) == ("v2", first)
    assert find(store, Dataset("v2", "own", first)) == Dataset("v2", "own", first, files_of="v1"), "runs have its key"


class TestCommonFiles:
    """Editions with other tables, but with the same images: these are not taken from the download again."""

    @pytest.fixture
    def whales(self, kaggle: KaggleServer, packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The miniature of the whales as Kaggle's download, and without its images."""
        kaggle.archives[WHALES] = (packs / WHALES / "raw.zip").read_bytes()
        overrides = json.loads((packs / WHALES / "expected.json").read_text())["overrides"]
        (tmp_path / "params.json").write_text(json.dumps({WHALES: overrides or {}}))
        monkeypatch.setenv("MLEBENCH_PARAMS", str(tmp_path / "params.json"))
        get_settings.cache_clear()
        return tmp_path

    def test_both_editions_of_one_download_in_one_command(
        self, whales: Path, kaggle: KaggleServer, packs: Path, store: Store, capfd: pytest.CaptureFixture[str]
    ) -> None:
        shared = "spooky-author-identification"
        kaggle.archives[shared] = (packs / shared / "raw.zip").read_bytes()
        arguments = ["prepare", "-c", WHALES, "-c", shared, "--edition", "both", "--skip-verification"]
        assert main([*arguments, "--store", store.root]) == 0, capfd.readouterr()
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 2, "each archive once"
        for name in (WHALES, shared):
            assert all(already_prepared(store, Dataset(each, name), verified=False) for each in EDITIONS)
        v1, v2 = (images(store, Dataset(each, WHALES)) for each in EDITIONS)
        kept = {inode for path, inode in v2.items() if "test" not in path}
        assert kept
        assert kept < set(v1.values()), "the same files; test images have no traces of their old names"
        assert set(v1) != set(v2)
        assert main([*arguments, "--store", store.root]) == 0
        assert "2 reused" in capfd.readouterr().out

    def test_they_are_verified_and_equal_to_those_of_the_download(
        self, whales: Path, store: Store, tmp_path: Path
    ) -> None:
        prepare(store, WHALES, "v1")
        key = prepare(store, WHALES, "v2")
        dataset = find(store, Dataset("v2", WHALES))
        assert dataset is not None
        with_reuse = store.read(f"{store.prepared(dataset)}/manifest.parquet")
        shutil.rmtree(store.local("prepared"))
        assert prepare(store, WHALES, "v2") == key
        assert store.read(f"{store.prepared(dataset)}/manifest.parquet") == with_reuse

    def test_archives_of_the_same_code_are_known_to_be_what_it_declares(
        self, whales: Path, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        jobs: list[Job] = []

        def noted(job: Job, **how: Any) -> Any:
            jobs.append(job)
            return materialise(job, **how)

        monkeypatch.setattr("tasks.split.materialise", noted)
        prepare(store, WHALES, "v1")
        prepare(store, WHALES, "v2")
        assert [(each.edition, each.like, each.like_edition) for each in jobs] == [
            ("v1", None, None),
            ("v2", jobs[0].out, "v1"),
        ]

    def test_s3_copies_them_itself(self, s3: Bucket, packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        raw = str(packs / WHALES / "raw.zip")
        first = Job(WHALES, raw, f"{s3.url}/one", "v1", key="one")
        materialise(first)
        second = Job(WHALES, raw, f"{s3.url}/two", "v2", key="two", like=first.out)
        monkeypatch.setattr("storage.datasets.execute._copy", None)  # nothing is read from the download
        made = materialise(second)
        stored = Destination(second.out)
        sizes = stored.fs.find(stored.root, detail=True)
        listed = zip(*(made[name].to_pylist() for name in ("part", "path", "bytes")), strict=True)
        assert {f"{stored.root}/{part}/{path}": size for part, path, size in listed}.items() <= {
            path: info["size"] for path, info in sizes.items()
        }.items()


def images(store: Store, dataset: Dataset) -> dict[str, int]:
    """Inode by name of each image of a dataset."""
    found = find(store, dataset)
    assert found is not None
    folder = store.local(store.relative(store.prepared(found)))
    return {path.relative_to(folder).as_posix(): path.stat().st_ino for path in folder.rglob("*.jpg")}
