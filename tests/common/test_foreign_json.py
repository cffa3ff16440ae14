"""Each way in which a file can fail to be JSON is one error, whose message names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import UserError
from common.plain_json import parse_json, read_json

WRONG = {
    "deeply nested": b"[" * 100_000,
    "deeply nested objects": b'{"a":' * 100_000,
    "number with thousands of digits": b"1" * 10_000,
    "not UTF-8": b'"\xff"',
    "NUL": b'{"a": \0 1}',
    "empty": b"",
    "cut": b'{"a": ',
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_what_is_no_json_is_one_line_that_names_the_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z"):
        parse_json(content)
    with pytest.raises(UserError, match=r"\A\S*a\.json (is not JSON: |is not UTF-8 |has a NUL )[^\n]{1,200}\Z"):
        read_json(path)


def test_a_folder_and_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(UserError, match="cannot be read: "):
            read_json(path)


def test_a_byte_order_mark_is_no_part_of_the_value(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(tmp_path / "a") == [1]
