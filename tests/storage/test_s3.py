"""The root in a bucket."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from common.errors import UserError
from competitions.preparing.download import Download
from storage import remote
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets import prepare
from storage.datasets.commit import MARKER
from storage.datasets.executors import Serial
from storage.datasets.job import Job
from storage.datasets.local_copy import local_copy
from storage.datasets.materialise import materialise
from storage.remote import S3Options, configure, is_transient
from storage.runs.evidence.verify import find_unexpected
from storage.store import Store
from storage.tables import read_table, write_table
from storage.writers import StoreError
from tests import plain_http
from tests.bundles import bundle
from tests.s3.fixtures import Bucket
from tests.stores import put_dataset

DIGITS = Dataset("v1", "digits", "k")
FOLDER = "prepared/v1/digits/k"


@pytest.fixture
def store(s3: Bucket) -> Store:
    return Store(s3.url)


@pytest.fixture
def prepared_store(store: Store) -> Store:
    """A bucket with digits prepared from an archive in the bucket."""
    store.write(store.raw("digits"), bundle("digits"))
    put_dataset(store, "digits")
    return store


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", limit=10**9)


class Watching:
    """An executor that looks after each call."""

    def __init__(self, look: Callable[[], None]) -> None:
        self.look = look

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        for value in Serial().map(function, values, *fixed):
            self.look()
            yield value


def test_what_lies_in_the_bucket_is_what_lies_on_a_disk(
    prepared_store: Store, digits_zip: Path, tmp_path: Path
) -> None:
    here = prepare("digits", digits_zip, tmp_path / "out")
    folder = prepared_store.prepared(DIGITS)
    there = pd.read_parquet(prepared_store.prepared(DIGITS) + "/manifest.parquet")
    pd.testing.assert_frame_equal(here, there)
    for row in here.itertuples():
        name = f"{row.part}/{row.path}"
        content = prepared_store.read(f"{folder}/{name}")
        assert content == (tmp_path / "out" / name).read_bytes(), name


def test_the_marker_comes_last_and_the_dataset_is_not_made_again(store: Store, s3: Bucket) -> None:
    store.write(store.raw("digits"), bundle("digits"))
    raw, out, marker = store.raw("digits"), store.prepared(DIGITS), f"{FOLDER}/{MARKER}"

    def look() -> None:
        assert marker not in s3.names()

    manifest = materialise(Job("digits", raw, out, key="k"), executor=Watching(look)).to_pandas()
    assert marker in s3.names()
    again = materialise(Job("digits", raw, out, key="k"), executor=Watching(look)).to_pandas()
    pd.testing.assert_frame_equal(again, manifest)
    times = {each["Key"]: each["LastModified"] for each in s3.client.list_objects_v2(Bucket=s3.name)["Contents"]}
    assert max(times, key=lambda key: (times[key], key.endswith(MARKER))).endswith(MARKER)
    assert not [key for key in s3.names() if ".progress" in key]


def test_reading_one_member_does_not_fetch_the_archive(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for number in range(60):
            archive.writestr(f"{number}.bin", bytes([number]) * (1 << 20))
    store.write(store.raw("digits"), buffer.getvalue())
    fetched = []
    original = s3fs.core.S3File._fetch_range

    def count(self: Any, start: int, end: int) -> bytes:
        data: bytes = original(self, start, end)
        fetched.append(len(data))
        return data

    monkeypatch.setattr(s3fs.core.S3File, "_fetch_range", count)
    download = Download.open(store.raw("digits"))
    assert download.read_bytes("30.bin") == bytes([30]) * (1 << 20)
    assert sum(fetched) < 12 << 20, "of 60 MiB, the directory and the neighbourhood of the member"


@pytest.mark.parametrize(
    ("name", "content_type", "disposition"),
    [
        ("reports/a/report.html", "text/html; charset=utf-8", 'inline; filename="report.html"'),
        ("reports/a/other.html", "text/plain; charset=utf-8", 'inline; filename="other.html.txt"'),
        ("runs/a/digits/0/logs/report.html", "text/plain; charset=utf-8", 'inline; filename="report.html.txt"'),
        ('runs/a/digits/0/logs/a;"\u202e.svg', "text/plain; charset=utf-8", 'inline; filename="a___.svg.txt"'),
    ],
)
def test_signed_addresses_show_what_agents_left_as_text(
    store: Store, name: str, content_type: str, disposition: str
) -> None:
    store.top.fs.pipe_file(store.top.path(name), b"<script>", ContentType="text/html")
    answer = plain_http.get(store.browser_url(f"{store.root}/{name}"))
    assert (answer.status_code, answer.text) == (200, "<script>")
    assert answer.headers["content-type"] == content_type
    assert answer.headers["content-disposition"] == disposition


def test_what_lies_beside_the_runs_of_a_group_is_told(store: Store, s3: Bucket) -> None:
    for path in ("digits/0/run.json", "digits/0/code/main.py", "digits/x/run.json", "digit/0/run.json", "notes.txt"):
        store.write(store.url("runs", "g", path), b"{}")
    for folder in ("g", "g/digits"):  # as consoles make folders
        s3.client.put_object(Bucket=s3.name, Key=f"some/prefix/runs/{folder}/")
    assert [*find_unexpected(store, "g")] == ["digit", "digits/x", "notes.txt"]
    assert find_unexpected(store, "another") == {}


def test_tables_are_read_with_one_call_of_pandas(store: Store) -> None:
    for group, score, message in (("one", 0.5, None), ("two", 0.25, "late")):
        row = {"run_group": group, "competition_id": "digits", "score": score, "message": message}
        write_table(store, "grades", group, [row])
    table = pd.read_parquet(store.url("tables", "grades"))
    assert dict(zip(table["run_group"], table["score"], strict=True)) == {"one": 0.5, "two": 0.25}
    assert dict(zip(table["run_group"], table["message"], strict=True)) == {"one": None, "two": "late"}
    assert read_table(store, "grades", ["two"])["score"].tolist() == [0.25]


class TestLocalCopies:
    def test_they_are_verified_read_only_and_made_once(self, prepared_store: Store, s3: Bucket, cache: Cache) -> None:
        with local_copy(prepared_store, DIGITS, "public", cache) as folder:
            files = [path for path in (folder / "public").rglob("*") if path.is_file()]
            assert {path.name for path in files} >= {"train.csv", "description.md", "sample_submission.csv"}
            assert not [path for path in files if path.stat().st_mode & 0o222]
            assert not (folder / "private").exists(), "answers are not what an agent's machine needs"
        for key in s3.names():
            if key.startswith(f"{FOLDER}/public/"):
                s3.client.delete_object(Bucket=s3.name, Key=f"some/prefix/{key}")
        with local_copy(prepared_store, DIGITS, "public", cache) as again:
            assert again == folder

    def test_a_changed_object_is_found(self, prepared_store: Store, cache: Cache) -> None:
        url = prepared_store.prepared(DIGITS) + "/public/sample_submission.csv"
        size = len(prepared_store.read(url))
        prepared_store.write(url, b"x" * size)
        with (
            pytest.raises(StoreError, match=r"sample_submission\.csv differs from the prepared file"),
            local_copy(prepared_store, DIGITS, "public", cache),
        ):
            pass

    def test_a_cache_of_bounded_size_keeps_the_newest(self, prepared_store: Store, tmp_path: Path) -> None:
        cache = Cache(tmp_path, limit=1)
        with local_copy(prepared_store, DIGITS, "public", cache) as public:
            with local_copy(prepared_store, DIGITS, "private", cache) as private:
                assert public.exists(), "in use"
            assert private.exists(), "nobody has asked for its room yet"
        with local_copy(prepared_store, DIGITS, "private", cache):
            pass


class TestAServerThatIsAway:
    def test_it_is_said_at_once_and_in_one_line(self, store: Store, s3: Bucket) -> None:
        store.require_usable()
        assert [name.rpartition("/")[2] for name in s3.names()] == ["store.json"], "the probe is gone"
        s3.stop()
        try:
            with pytest.raises(StoreError, match="AWS_ENDPOINT_URL") as caught:
                store.require_usable(0)
            assert "\n" not in str(caught.value)
        finally:
            s3.start()
        store.require_usable()

    def test_a_short_absence_in_the_middle_of_preparing_is_waited_for(self, store: Store, s3: Bucket) -> None:
        import threading

        store.write(store.raw("digits"), bundle("digits"))
        back: list[threading.Thread] = []

        def go_away_once() -> None:
            if not back:
                s3.stop()
                back.append(threading.Thread(target=s3.start))
                back[0].start()  # while the next request is already being tried

        manifest = materialise(
            Job("digits", store.raw("digits"), store.prepared(DIGITS), key="k"),
            executor=Watching(go_away_once),
        ).to_pandas()
        back[0].join()
        assert len(manifest) == 5
        assert f"{FOLDER}/{MARKER}" in s3.names()

    def test_a_long_one_fails_cleanly_and_the_next_run_goes_on(
        self, store: Store, s3: Bucket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from storage import remote

        monkeypatch.setattr(remote, "RETRYING_CLIENT", remote.QUICK_CLIENT)
        store = Store(s3.url)
        store.write(store.raw("digits"), bundle("digits"))
        raw, out, calls = store.raw("digits"), store.prepared(DIGITS), []

        def go_away() -> None:
            calls.append(1)
            if len(calls) == 2:  # declared, and one chunk of two
                s3.stop()

        with pytest.raises(Exception, match=r".") as caught:
            materialise(Job("digits", raw, out, key="k"), executor=Watching(go_away))
        assert is_transient(caught.value), "the task is tried again"
        s3.start()
        assert f"{FOLDER}/{MARKER}" not in s3.names()

        rest: list[int] = []
        manifest = materialise(Job("digits", raw, out, key="k"), executor=Watching(lambda: rest.append(1))).to_pandas()
        assert len(rest) == 1, "what was done before is kept"
        assert len(manifest) == 5


def test_a_bucket_that_is_not_there_is_named(s3: Bucket) -> None:
    with pytest.raises(StoreError, match="bucket"):
        Store("s3://there-is-no-such-bucket/x").require_usable()


def test_endpoint_and_credentials_may_be_configured(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_options", S3Options())
    for name in s3.environment:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    endpoint, key, secret = (
        s3.environment[name] for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    )
    configure(S3Options(endpoint))
    with pytest.raises(UserError, match="AWS_ACCESS_KEY_ID"):
        Store(s3.url).require_usable()
    options = S3Options(endpoint, key, secret)
    configure(options)
    Store(s3.url).require_usable()
    assert secret not in repr(options) or secret == "test"
