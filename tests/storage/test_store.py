"""The root: any URL, checked before work starts, one clear line when it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from common.errors import UserError
from storage.store import Store, check_run_group
from storage.tables import read_table, write_table
from storage.writers import StoreError


def test_plain_paths_and_urls_are_roots(tmp_path: Path) -> None:
    assert Store(str(tmp_path)).root == tmp_path.as_uri()
    assert Store("s3://bucket/prefix/").raw("digits") == "s3://bucket/prefix/raw/digits/digits.zip"


def test_of_the_probe_of_a_sound_store_nothing_is_left(tmp_path: Path) -> None:
    Store(str(tmp_path / "new")).require_usable()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["store.json"]


def test_a_store_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        Store(str(tmp_path / "file" / "store")).require_usable()


def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(StoreError, match="nonsense"):
        Store("nonsense://x").require_usable()


def test_json_round_trip_and_removal(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    url = store.url("a", "b.json")
    assert store.read_json(url) is None
    store.write_json(url, {"x": [1, None]})
    assert store.read_json(url) == {"x": [1, None]}
    assert store.glob("a/*.json") == [url]
    store.remove(store.url("a"))
    store.remove(store.url("a"))
    assert not store.exists(url)


@pytest.mark.parametrize("content", [b"", b'{"key": ', b"\xff"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    store = Store(str(tmp_path))
    store.write(store.url("a", "b.json"), content)
    with pytest.raises(StoreError, match=r"a/b\.json in .* is not valid JSON"):
        store.read_json(store.url("a", "b.json"))


@pytest.mark.parametrize("name", ["", "../up", "a/b", "-x", "a b", "x" * 101, "a\n", "a\nb", "a\0", "a\x1b[2J", "ü"])
def test_a_run_group_names_a_folder(name: str) -> None:
    with pytest.raises(UserError, match="run group"):
        check_run_group(name)


def test_tables_are_read_with_one_call_of_pandas(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    for group, score in (("one", 0.5), ("two", None), ("one", 0.7)):
        write_table(store, "grades", group, [{"run_group": group, "competition_id": "digits", "score": score}])

    table = pd.read_parquet(f"{store.local()}/tables/grades")

    assert sorted(zip(table["run_group"].astype(str), table["score"].fillna(-1), strict=True)) == [
        ("one", 0.7),
        ("two", -1),
    ]
    assert read_table(store, "grades", ["one"])["score"].tolist() == [0.7]
    assert read_table(store, "runs").empty


def test_a_part_of_a_table_does_not_touch_the_others(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    for stage, runs in (("plagiarism", 1), ("violations", 2), ("plagiarism", 3)):
        write_table(store, "examinations", "g", [{"stage": stage, "runs": runs}], part=stage)

    table = read_table(store, "examinations")

    assert dict(zip(table["stage"], table["runs"], strict=True)) == {"plagiarism": 3, "violations": 2}
