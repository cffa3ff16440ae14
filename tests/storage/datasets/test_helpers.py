"""Helper processes copy what this process would: the same files, the same errors, and none of them is left behind."""

from __future__ import annotations

import io
import os
import random
import signal
import threading
import zipfile
from pathlib import Path

import psutil
import pytest

from competitions import registry
from competitions.errors import DownloadError
from competitions.preparing.archives import nested
from competitions.preparing.declaration import Archive, Derived
from competitions.preparing.download import Download, Member
from storage.datasets import helpers, prepare
from storage.datasets.helpers import Helpers, has_files_to_copy, helpers_for
from storage.datasets.manifest import Columns, Done, columns_of
from storage.datasets.plan import Chunk, Copies, Several, Task, pack
from tests.processes import descendants
from tests.waiting import until

PREPARE = """from competitions.preparing.declaration import Preparation
def prepare(raw, edition, params):
    out = Preparation()
    outer, nested = raw.names("images"), raw.archive("nested.zip")
    out.public.copies((name, raw.file(name)) for name in outer)
    out.public.copies((f"nested/{name}", nested.file(name)) for name in nested.names())
    out.public.archive("images.zip", {name: nested.file(name) for name in nested.names()[::2]})
    out.private.derived("size.txt", size)
    out.public.text("a.txt", "computed")
    return out
def size(raw):
    yield b"%d" % len(raw.names())
"""


def row_of(path: str) -> Columns:
    """A row of a manifest."""
    return columns_of([Done("public", path, 10, "", None, "")])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "pictures"
    folder.mkdir()
    digits = registry.get("digits").folder
    (folder / "competition.yaml").write_text(
        (digits / "competition.yaml").read_text().replace("id: digits", f"id: {folder.name}")
    )
    for name in ("description.md", "grade.py"):
        (folder / name).write_bytes((digits / name).read_bytes())
    (folder / "prepare.py").write_text(PREPARE)
    return folder


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = random.Random(0)
    nested = io.BytesIO()
    with zipfile.ZipFile(nested, "w", zipfile.ZIP_DEFLATED) as out:
        for number in range(60):
            out.writestr(f"{number:03d}.bin", generator.randbytes(2000))
    path = tmp_path_factory.mktemp("raw") / "pictures.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for number in range(60):
            out.writestr(f"images/{number:03d}.bin", generator.randbytes(100) * 20)
        out.writestr("nested.zip", nested.getvalue())
    return path


def contents(out: Path) -> dict[str, bytes]:
    parts = [path for part in ("public", "private") for path in (out / part).rglob("*") if path.is_file()]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in parts}


def running() -> list[psutil.Process]:
    return descendants(psutil.Process(), helpers.__name__)


@pytest.fixture
def with_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_WORTHWHILE", 0)
    monkeypatch.setattr(helpers.os, "cpu_count", lambda: 2)


@pytest.mark.usefixtures("with_helpers")
@pytest.mark.parametrize("shared", [None, "_SMALL", "IN_MEMORY"])  # as files in memory or on the disk
def test_the_files_are_those_of_one_process(
    pictures: Path, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str | None
) -> None:
    if shared:  # the nested archive is decompressed once
        monkeypatch.setattr(nested, shared, 0)
    assert helpers_for(str(raw), str(tmp_path), Download.open(str(raw))) == 1
    together = prepare("pictures", raw, tmp_path / "together", folder=pictures)
    monkeypatch.setattr(helpers, "_WORTHWHILE", 1 << 40)
    alone = prepare("pictures", raw, tmp_path / "alone", folder=pictures)
    assert together.equals(alone)
    assert contents(tmp_path / "together") == contents(tmp_path / "alone")
    assert not running()


@pytest.mark.usefixtures("with_helpers")
def test_damage_that_a_helper_finds_is_raised_here(pictures: Path, raw: Path, tmp_path: Path) -> None:
    damaged = bytearray(raw.read_bytes())
    damaged[damaged.index(b"images/030.bin") + 40] ^= 1
    (tmp_path / "pictures.zip").write_bytes(damaged)
    with pytest.raises(DownloadError, match=r"images/030.bin"):
        prepare("pictures", tmp_path / "pictures.zip", tmp_path / "out", folder=pictures)
    assert not (tmp_path / "out/commit.json").exists()
    assert not running()


@pytest.mark.usefixtures("with_helpers")
@pytest.mark.parametrize(("large", "copied", "started"), [(0, True, 1), (1 << 40, True, 0), (0, False, 0)])
def test_few_files_start_helpers_only_if_these_have_something_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int, copied: bool, started: int
) -> None:
    with zipfile.ZipFile(tmp_path / "tables.zip", "w") as out:
        out.writestr("train.csv", "id,label\n1,2\n")
    download = Download.open(str(tmp_path / "tables.zip"))
    assert not has_files_to_copy(download)
    monkeypatch.setattr(helpers, "_WORTHWHILE", large)
    copies = Chunk(1, 15, ["copies", "", ["public"], ["train.csv"], ["train.csv"], [15], [False]])
    computed = Chunk(1, 15, ["derived", "private", "size.txt", False, "size", [], 15])
    with Helpers(str(tmp_path / "tables.zip"), str(tmp_path / "out"), 1) as one:
        assert not running()
        with one.executing([copies if copied else computed], download, lambda chunk: row_of(chunk.task[0])) as finish:
            until(lambda: len(running()) == started, what="the start of helpers")
            assert len(finish()) == 1


def test_pictures_and_archives_start_them_at_once(raw: Path, tmp_path: Path) -> None:
    assert has_files_to_copy(Download.open(str(raw))), "there is an archive in it"
    for count in (500, 501):
        with zipfile.ZipFile(tmp_path / f"{count}.zip", "w") as out:
            for number in range(count):
                out.writestr(f"{number}.png", b"")
        assert has_files_to_copy(Download.open(str(tmp_path / f"{count}.zip"))) == (count > 500)


@pytest.mark.parametrize("killed", [True, False])
def test_the_chunk_of_a_helper_that_failed_is_executed_here(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    download = Download.open(str(raw))
    names = [*download.container.sizes][:20]
    chunks = [Chunk(1, 10, ["copies", "", ["public"], [name], [name], [10], []]) for name in names]
    died = threading.Event()

    def die(chunk: Chunk, download: Download) -> dict[str, str]:
        died.set()
        if not killed:
            raise TypeError("its answer is no object here")
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        return {}

    def here(chunk: Chunk) -> Columns:
        assert died.wait(60)
        return row_of(chunk.task[3][0])

    monkeypatch.setattr(helpers, "_scratch_files", die)  # called when a helper has got a chunk
    with Helpers(str(raw), str(tmp_path), 1) as one:
        one.start()
        (child,) = until(running, what="the start of a helper")  # its command line is empty for a moment
        with one.executing(chunks, download, here) as finish:
            rows = finish()
    assert sorted(row["path"][0].as_py() for row in rows) == sorted(names)


def test_helpers_read_a_sequential_archive_for_several_files() -> None:
    copies = Copies("x.7z", ["public"], ["a"], ["a"], [1], [])
    archive = Task("public", "b.zip", Archive("zip", (("b", Member("x.7z", "b", 1)),)))
    derived = Task("public", "c", Derived("of_the_competition", (), 1))
    assert helpers._is_portable(pack(Several([copies, archive])))
    assert not helpers._is_portable(pack(Several([archive, derived])))
