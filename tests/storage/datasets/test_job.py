"""Downloads that are kept open between the chunks of a job."""

from __future__ import annotations

import io
import os
import weakref
import zipfile
from pathlib import Path

import pytest

from storage.datasets import job
from storage.datasets.job import Job, download_of, forget_downloads


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    inner, path = io.BytesIO(), tmp_path / "download.zip"
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("text.txt", "text")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("table.csv", "id\n1\n")
        file.writestr("inner.zip", inner.getvalue())
    return path


def is_open(path: Path) -> bool:
    folder = Path("/proc/self/fd")
    return any(os.path.realpath(each) == str(path) for each in folder.iterdir())


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
def test_no_download_stays_open(archive: Path, nested: bool) -> None:
    download = download_of(Job("digits", str(archive), "out"))
    assert download.read_text("table.csv") == "id\n1\n"
    if nested:
        assert download.archive("inner.zip").read_text("text.txt") == "text"
    del download
    assert is_open(archive), "for the next chunk"
    forget_downloads()
    assert not is_open(archive)


def test_garbage_is_only_looked_for_where_nothing_else_closes_a_download(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a tenth of a second in a process that has imported Prefect, and more in one that holds much."""
    forget_downloads()
    monkeypatch.setattr(job, "_opened", weakref.WeakSet())  # other tests may still have theirs
    monkeypatch.setattr(job.gc, "collect", lambda: pytest.fail("garbage was looked for"))
    download_of(Job("digits", str(archive), "out")).read_csv("table.csv")
    forget_downloads()
    assert not is_open(archive)


def test_a_download_that_an_error_refers_to_is_closed(archive: Path) -> None:
    def fail() -> None:
        download = download_of(Job("digits", str(archive), "out"))
        error = RuntimeError(download.names())
        try:
            raise error  # its traceback refers to this frame, which refers to it
        except RuntimeError:
            pass

    fail()
    assert is_open(archive)
    forget_downloads()
    assert not is_open(archive)


def test_a_download_that_is_in_use_keeps_its_archives_when_it_is_forgotten(archive: Path) -> None:
    """Another thread may do that. A helper may be reading the archive by the number of its open file."""
    download = download_of(Job("digits", str(archive), "out"))
    inner = download.archive("inner.zip")
    forget_downloads()
    assert download.archive("inner.zip") is inner
    assert inner.view("inner.zip").read_text("text.txt") == "text"
    del download, inner
    forget_downloads()
    assert not is_open(archive)
