"""Texts of any editor are read or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import UserError
from common.plain_json import read_json
from common.texts import read_text

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"

READ = {
    "Windows": b"a\r\n\xc3\xbc\r\n",
    "an old Mac": b"a\r\xc3\xbc\r",
    "a byte order mark": b"\xef\xbb\xbfa\n\xc3\xbc\n",
    "UTF-16 of Windows": "a\r\nü\r\n".encode("utf-16"),
    "UTF-16, big endian": b"\xfe\xff" + "a\nü\n".encode("utf-16-be"),
    "UTF-32": "a\nü\n".encode("utf-32"),
    "a NUL at the end": b"a\n\xc3\xbc\n\0\0\0",
    "the end of file of DOS": b"a\n\xc3\xbc\n\x1a",
}
REFUSED = {
    "Latin-1": (b"a\nb\xe9\n", r"is not UTF-8 \(line 2, byte 0xe9\): save it as UTF-8"),
    "UTF-16 without a mark": ("a\nb\n".encode("utf-16-le"), "has a NUL in line 1"),
    "a damaged disk": (b"a\nb\0\0c\n", "has a NUL in line 2"),
    "half of UTF-16": ("ab".encode("utf-16")[:-1], r"is not UTF-16"),
    "Git LFS": (POINTER, "is only a pointer of Git LFS: .*`git lfs pull`"),
}


@pytest.mark.parametrize("kind", READ)
def test_what_is_harmless_is_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x").write_bytes(READ[kind])
    assert read_text(tmp_path / "x") == "a\nü\n"


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_is_refused_with_the_reason(tmp_path: Path, kind: str) -> None:
    content, said = REFUSED[kind]
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match=f"/x {said}"):
        read_text(tmp_path / "x")
    with pytest.raises(UserError, match=f"^the list {said}"):
        read_text(tmp_path / "x", "the list")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n"a": \N{LEFT DOUBLE QUOTATION MARK}b\N{RIGHT DOUBLE QUOTATION MARK}}', "; line 2 has typographic quotes"),
        ('{\n\n\N{NO-BREAK SPACE}"a": 1}', "; line 3 has an invisible or no-break space"),
        ('{"a": }', ""),
    ],
)
def test_what_a_word_processor_did_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.json").write_text(text, "utf-8")
    with pytest.raises(UserError, match=f"is not JSON: .*{said}"):
        read_json(tmp_path / "x.json")
