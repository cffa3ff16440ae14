"""What a second edition has in common with the first is not read from the download again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from competitions.preparing.archives.containers import TarContainer
from competitions.preparing.archives.zips import ZipContainer
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from tests.prepared import PreparedCompetitions

MEDIA = (".jpg", ".png", ".bmp", ".wav", ".tif", ".aif", ".dcm", ".npy")
PACKED = "kuzushiji-recognition", "iwildcam-2019-fgvc6", "inaturalist-2019-fgvc6"
"""Competitions whose images v1 publishes in archives: both editions have some, and v2 others, or with other images."""
PLAIN = "dog-breed-identification"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    """How often each image, recording or scan of the download is read."""
    found: Counter[str] = Counter()

    def note(container: Any, name: str) -> None:
        if not container.label.startswith(str(tmp_path)) and name.endswith(MEDIA):
            found[f"{container.label}!/{name}"] += 1

    for kind, names in ((ZipContainer, ("open", "read", "checked")), (TarContainer, ("open",))):
        for method in names:
            original = getattr(kind, method)

            def counted(self: Any, name: str, original: Any = original) -> Any:
                note(self, name)
                return original(self, name)

            monkeypatch.setattr(kind, method, counted)
    streamed = TarContainer.stream

    def stream(self: TarContainer, names: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
        for name, file in streamed(self, names):
            if not self.random_access:
                note(self, name)
            yield name, file

    monkeypatch.setattr(TarContainer, "stream", stream)
    return found


def job(prepared: PreparedCompetitions, name: str, out: Path, edition: Any, **how: Any) -> Job:
    found = prepared.get(name, "v1")
    return Job(name, str(found.raw), str(out), edition, found.params or {}, key=out.name, **how)


def bytes_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for part in ("public", "private")
        for path in (folder / part).rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", [*PACKED, PLAIN])
def test_both_editions_read_each_image_of_the_download_once(
    prepared: PreparedCompetitions, name: str, tmp_path: Path, reads: Counter[str]
) -> None:
    first = job(prepared, name, tmp_path / "one", "v1")
    reads.clear()
    materialise(first)
    once = set(reads)
    made = materialise(job(prepared, name, tmp_path / "two", "v2", like=first.out, like_edition="v1"))
    assert once
    assert set(reads.values()) == {1}, [each for each, count in reads.items() if count > 1]
    reads.clear()
    assert made == materialise(job(prepared, name, tmp_path / "three", "v2"))
    assert set(reads) & once, "without the first edition they have to be read"
    assert bytes_of(tmp_path / "two") == bytes_of(tmp_path / "three")


def test_archives_of_other_code_are_made_of_the_download(
    prepared: PreparedCompetitions, tmp_path: Path, reads: Counter[str]
) -> None:
    first = job(prepared, PACKED[0], tmp_path / "one", "v1")
    materialise(first)
    reads.clear()
    materialise(job(prepared, PACKED[0], tmp_path / "two", "v2", like=first.out))
    assert reads
