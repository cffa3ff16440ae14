"""Every directory can be the root of a store: whatever its name, and however it is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.errors import UserError
from common.locations import absolute_url
from competitions.competition import Competition
from competitions.preparing.archives.containers import open_container
from storage.dataset import Dataset
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.datasets.verify import verify
from storage.lease import lease
from storage.store import Store
from storage.tables import read_table, write_table

ODD = (
    "my store",
    "100%",
    "a%20b",
    "a#b",
    "a?b",
    "a*[b]",
    "Übung",
    "Ubung\u0308",
    "x::y",
    "s3:",
    "~",
    "a\\b",
    os.fsdecode(b"latin-\xfc"),
)


@pytest.mark.parametrize("name", ODD)
def test_a_directory_of_any_name_is_a_store(tmp_path: Path, name: str, digits: Competition, digits_zip: Path) -> None:
    store = Store(str(tmp_path / name))
    store.require_usable()
    store.write_json(store.url("runs", "g", "digits", 0, "run.json"), {})
    assert store.glob("runs/*/*/*/run.json") == [store.run("g", "digits", 0) + "/run.json"]
    write_table(store, "grades", "g", [{"competition_id": "digits", "score": 0.5}])
    assert read_table(store, "grades")["score"].tolist() == [0.5]
    with lease(store, "download/digits") as mine, lease(store, "download/digits", wait=False) as second:
        assert mine
        assert second is None
    store.put(store.raw("digits"), digits_zip)
    assert open_container(store.raw("digits")).sizes
    dataset = Dataset("v1", "digits", "k")
    materialise(Job("digits", store.raw("digits"), store.prepared(dataset), key="k"))
    assert not verify(store, dataset, digits).damaged
    store.remove(store.url("prepared"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({name, "digits.zip"}), "something lies elsewhere"
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
        "locks",
        "raw",
        "runs",
        "store.json",
        "tables",
    ]


@pytest.mark.parametrize("name", ODD)
def test_a_root_read_twice_is_the_same_root(tmp_path: Path, name: str) -> None:
    root = Store(str(tmp_path / name)).root
    assert Store(root).root == Store(Store(root).root).root == root
    assert Store(root).local() == Store(str(tmp_path / name)).local() == tmp_path / name


def test_every_spelling_of_a_directory_is_one_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "my store"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    spellings = [
        str(place),
        f"{place}//",
        f"{tmp_path}/./link/../my store/",
        "my store",
        "./my store",
        "link",
        "~/my store",
        f"file://{place}",
        f"file://{tmp_path}/my%20store/",
        f"file://localhost{tmp_path}/my%20store",
        f"file:{place}",
        f"FILE://{place}",
        f"local://{place}",
        "file://~/my%20store",
    ]
    assert {Store(each).root for each in spellings} == {f"{tmp_path.as_uri()}/my%20store"}


def test_urls_elsewhere_keep_their_text() -> None:
    assert Store("S3://bucket/a b/%20/#x//").root == "s3://bucket/a b/%20/#x"


@pytest.mark.parametrize("root", ["s3://bucket/a*", "s3://bucket/[1]", "s3://bucket/a?", "simplecache::s3://bucket"])
def test_a_url_that_names_several_places_is_refused(root: str) -> None:
    with pytest.raises(UserError, match="choose a URL without"):
        Store(root)


@pytest.mark.parametrize("root", ["", "  ", "a\0b"])
def test_what_names_no_place_is_refused(root: str) -> None:
    with pytest.raises(UserError, match="neither a directory nor a URL"):
        Store(root)


def test_the_home_of_nobody_and_a_lost_working_directory_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="write the whole path"):
        absolute_url("~nobody-of-this-name/store")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UserError, match="write the whole path"):
        absolute_url("store")
