"""A sequential archive is decompressed once for all that is made of it, and the files are those of many passes."""

from __future__ import annotations

import gzip
import io
import random
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import py7zr
import pytest

from competitions.competition import Competition
from competitions.errors import DownloadError
from competitions.preparing.archives import containers
from competitions.preparing.declaration import Archive, Preparation
from competitions.preparing.download import Download, Member
from storage.datasets import execute, prepare
from storage.datasets.archives import build
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.datasets.plan import Task
from storage.datasets.reuse import difference
from storage.writers import Destination

CLASSES = ("ant", "bee", "cat")
FILES = {f"{kind}/{number}.bin": f"{kind} {number}".encode() * 50 for kind in CLASSES for number in range(20)}
TEST = random.Random(0).sample(sorted(FILES), 18)
TRAIN = [name for name in FILES if name not in TEST]
ARCHIVES = ["zip", "tar", "7z"]
LISTING = {"7z": 0, "tar.gz": 1}
"""Passes that it takes to know the members: a compressed tar has no index."""


@pytest.fixture(params=LISTING)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def raw(kind: str, tmp_path: Path) -> Path:
    packed = io.BytesIO()
    if kind == "7z":
        with py7zr.SevenZipFile(packed, "w") as seven:
            for name, content in FILES.items():
                seven.writestr(content, name)
    else:
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, content in FILES.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as file:
        file.writestr(f"x.{kind}", packed.getvalue())
    return tmp_path / "raw.zip"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a decoder is started."""
    found: Counter[str] = Counter()
    extract = py7zr.SevenZipFile.extract

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        found["7z"] += 1
        return extract(self, *args, **options)

    class Counted(gzip.GzipFile):
        def __init__(self, *args: Any, **options: Any) -> None:
            found["tar.gz"] += 1
            super().__init__(*args, **options)

    monkeypatch.setattr(py7zr.SevenZipFile, "extract", counted)
    monkeypatch.setattr(containers.gzip, "GzipFile", Counted)
    return found


@pytest.fixture(autouse=True)
def declared(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def declare(_: Any, raw: Download, *__: object) -> Preparation:
        archive = raw.archive(f"x.{kind}")
        out = Preparation()
        out.public.copies(archive.each("{}", TRAIN, to="train/{}"))
        out.public.copies(archive.each("{}", TEST, map(str, range(len(TEST))), to="test/{1}.bin"))
        out.public.copy("example.bin", archive.file(TRAIN[0]))
        for suffix in ARCHIVES:
            out.public.archive(f"train.{suffix}", archive.each("{}", TRAIN))
            out.private.archive(f"test.{suffix}", [*archive.each("{}", TEST), ("again", archive.file(TEST[0]))])
        return out

    monkeypatch.setattr(Competition, "declare", declare)


def require_files(out: Destination, kind: str, raw: Path) -> None:
    """Require the bytes of a dataset to be those that each file gets alone."""
    expected = {f"public/train/{name}": FILES[name] for name in TRAIN}
    expected |= {f"public/test/{number}.bin": FILES[name] for number, name in enumerate(TEST)}
    expected |= {"public/example.bin": FILES[TRAIN[0]]}
    found = {name: out.fs.cat_file(out.path(name)) for name in expected}
    assert found == expected
    alone = Destination(str(raw.parent / "alone"))
    for part, names in (("train", {name: name for name in TRAIN}), ("test", {"again": TEST[0]})):
        names |= {name: name for name in TEST} if part == "test" else {}
        for suffix in ("zip", "tar"):
            entries = [(name, Member(f"x.{kind}", member, len(FILES[member]))) for name, member in names.items()]
            if part == "test":
                entries = [*entries[1:], entries[0]]
            build(f"{part}.{suffix}", Archive(suffix, tuple(entries)), Download.open(str(raw)), alone)
            place = f"{'public' if part == 'train' else 'private'}/{part}.{suffix}"
            assert out.fs.cat_file(out.path(place)) == Path(alone.path(f"{part}.{suffix}")).read_bytes(), place


def test_one_pass_makes_everything(kind: str, raw: Path, tmp_path: Path, passes: Counter[str]) -> None:
    prepare("digits", raw, tmp_path / "out")
    assert passes == {kind: LISTING[kind] + 1}
    require_files(Destination(str(tmp_path / "out")), kind, raw)


@pytest.mark.parametrize("out", ["{}/store", "memory://one-pass-{}"])
def test_one_chunk_makes_everything(out: str, kind: str, raw: Path, tmp_path: Path, passes: Counter[str]) -> None:
    job = Job("digits", str(raw), out.format(tmp_path), key="k")
    materialise(job)
    assert passes == {kind: LISTING[kind] + 1}
    require_files(Destination(job.out), kind, raw)


def test_a_proof_takes_one_pass_for_all_archives(
    kind: str, raw: Path, tmp_path: Path, passes: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ARCHIVES", ["zip", "tar"])  # a 7z has the time of the day in it
    prepare("digits", raw, tmp_path / "out")
    passes.clear()
    assert difference(Job("digits", str(raw), str(tmp_path / "again")), str(tmp_path / "out")) is None
    assert passes[kind] <= LISTING[kind] + 1


def test_the_file_system_does_not_tell_the_order_of_the_archive(raw: Path, tmp_path: Path) -> None:
    prepare("digits", raw, tmp_path / "out")
    images = sorted((tmp_path / "out/public/test").iterdir())
    shown = {path: path.stat() for path in images}
    assert {(stat.st_nlink, stat.st_mtime_ns) for stat in shown.values()} == {(1, execute.HIDDEN_MTIME * 10**9)}
    assert sorted(images, key=lambda path: shown[path].st_ctime_ns) == images, "they change in the order of names"
    kinds = [path.read_bytes()[:3] for path in sorted(images, key=lambda path: shown[path].st_ino)]
    assert kinds != sorted(kinds), "files of a class are not next to each other"


def test_many_archives_are_not_open_at_the_same_time(
    kind: str, raw: Path, tmp_path: Path, passes: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "MAX_OPEN_ARCHIVES", 4)
    members = [Member(f"x.{kind}", name, len(FILES[name])) for name in TRAIN[:10]]
    tasks = [Task("public", f"{n}.zip", Archive("zip", (("x", each),))) for n, each in enumerate(members)]
    execute.execute(tasks, None, Download.open(str(raw)), Destination(str(tmp_path)))
    assert passes == {kind: 3}
    for number, member in enumerate(members):
        with zipfile.ZipFile(tmp_path / f"public/{number}.zip") as found:
            assert found.read("x") == FILES[member.name]


def test_a_damaged_archive_leaves_none_of_the_files(
    kind: str, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = containers.TarContainer.stream if kind == "tar.gz" else containers.SevenZipContainer.stream

    def broken(self: Any, names: Iterable[str]) -> Any:
        for number, each in enumerate(stream(self, names)):
            if number == 30:
                raise DownloadError("damaged")
            yield each

    for container in (containers.TarContainer, containers.SevenZipContainer):
        monkeypatch.setattr(container, "stream", broken)
    with pytest.raises(DownloadError, match="damaged"):
        prepare("digits", raw, tmp_path / "out")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.suffix in (".zip", ".tar", ".7z", ".partial")]
