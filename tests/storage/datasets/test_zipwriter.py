"""Archives that this project writes: any reader inflates their members."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from competitions.preparing.declaration import Archive, Content
from competitions.preparing.download import Download
from storage.datasets.archives import build
from storage.datasets.zipwriter import ZipWriter
from storage.writers import Destination


def text(size: int) -> bytes:
    rng = random.Random(size)
    words = [f"word{rng.randint(0, 999)}" for _ in range(size // 5 + 1)]
    return " ".join(words).encode()[:size]


def written(content: bytes, folder: Path, step: int) -> bytes:
    destination = Destination(str(folder))
    with destination.open("out.zip", False, len(content)) as sink:
        writer = ZipWriter(sink)
        writer.add("a.txt", (content[start : start + step] for start in range(0, len(content), step)), stored=False)
        writer.add("empty.txt", [], stored=False)
        writer.add("plain.txt", [content[:100]], stored=True)
        writer.close()
    return (folder / "out.zip").read_bytes()


@pytest.mark.parametrize("size", [0, 10, 123_456])
@pytest.mark.parametrize("step", [700, 1 << 20])
def test_any_stream_is_read_back(size: int, step: int, tmp_path: Path) -> None:
    content = text(size)
    with zipfile.ZipFile(io.BytesIO(written(content, tmp_path, step))) as archive:
        assert archive.testzip() is None
        assert [archive.read(name) for name in archive.namelist()] == [content, b"", content[:100]]


def test_it_compresses_almost_as_well_as_zlib(tmp_path: Path) -> None:
    content = text(5 << 20)
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", content)
    assert len(written(content, tmp_path, 1 << 16)) < 1.25 * len(plain.getvalue())


def test_what_the_source_raises_is_raised(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield text(3 << 20)
        raise OSError("the source is gone")

    (tmp_path / "download").mkdir()
    download = Download.open(str(tmp_path / "download"))
    with pytest.raises(OSError, match="the source is gone"):
        build("out.zip", Archive("zip", (("a.txt", Content(pieces)),)), download, Destination(str(tmp_path)))
    assert not (tmp_path / "out.zip").exists()
