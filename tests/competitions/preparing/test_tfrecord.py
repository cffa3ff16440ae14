"""Reading TFRecord files without TensorFlow."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from competitions.errors import DownloadError
from competitions.preparing.download import Download
from competitions.preparing.tfrecord import shards, texts


def varint(value: int) -> bytes:
    pieces = []
    while value >= 0x80:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*pieces, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def bytes_feature(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def int_feature(value: int) -> bytes:
    return field(3, field(1, varint(value)))


def example(*features: tuple[str, bytes]) -> bytes:
    return field(1, b"".join(field(1, field(1, key.encode()) + field(2, feature)) for key, feature in features))


def record(payload: bytes) -> bytes:
    return struct.pack("<Q", len(payload)) + b"\0" * 4 + payload + b"\0" * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image = b"\xff\xd8" + bytes(300)  # longer than one byte of a varint can say
    records = [
        example(("image", bytes_feature(image)), ("image_name", bytes_feature(b"a.jpg")), ("target", int_feature(300))),
        example(("image_name", bytes_feature("ü.jpg".encode(), b"second")), ("image", bytes_feature(image))),
        # Numbers of other wire types between the fields are stepped over.
        b"\x10\x96\x01" + b"\x1d" + bytes(4) + b"\x21" + bytes(8) + example(("image_name", bytes_feature(b""))),
    ]
    (tmp_path / "train03-3.tfrec").write_bytes(b"".join(map(record, records)))
    return tmp_path


def test_yields_the_first_value_of_the_feature_of_each_record(folder: Path) -> None:
    assert list(texts(Download.open(str(folder)), "train03-3.tfrec", "image_name")) == ["a.jpg", "ü.jpg", ""]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "x-0.tfrec").touch()
    assert list(texts(Download.open(str(tmp_path)), "x-0.tfrec", "image_name")) == []


@pytest.mark.parametrize("lost", [1, 5, 30])
def test_a_file_that_is_cut_off_is_a_download_error(folder: Path, lost: int) -> None:
    path = folder / "train03-3.tfrec"
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(DownloadError, match=r"train03-3\.tfrec is not a complete TFRecord file.*download it again"):
        list(texts(Download.open(str(folder)), path.name, "image_name"))


def test_a_record_without_the_feature_is_a_download_error(folder: Path) -> None:
    with pytest.raises(DownloadError, match="a record has no patient"):
        list(texts(Download.open(str(folder)), "train03-3.tfrec", "patient"))


def test_a_file_that_is_none_is_a_download_error(tmp_path: Path) -> None:
    (tmp_path / "x-1.tfrec").write_bytes(b"<html>" + b"\xff" * 100)
    with pytest.raises(DownloadError):
        list(texts(Download.open(str(tmp_path)), "x-1.tfrec", "image_name"))


def test_shards_are_numbered_anew_and_keep_their_count(folder: Path) -> None:
    pairs = list(shards(Download.open(str(folder)), ["train03-3.tfrec"], to="records/test{:02}-{}.tfrec"))
    assert [(path, member.name) for path, member in pairs] == [("records/test00-3.tfrec", "train03-3.tfrec")]
