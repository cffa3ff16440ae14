"""Reading submissions: everything is a table, a frame without columns, or rejected in one line."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pandas as pd
import pytest

from competitions.scoring.reading import Reads, read_answers, read_submission
from competitions.tables import columns
from grading import InvalidSubmission


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "submission.csv"
    path.write_bytes(content)
    return path


def test_reads_numbers_exactly(tmp_path: Path) -> None:
    frame = read_submission(write(tmp_path, b"id,p\na,0.30000000000000004\nb,\n"))
    assert frame["p"][0] == 0.1 + 0.2
    assert frame["p"].isna().tolist() == [False, True]


def test_options_reach_pandas(tmp_path: Path) -> None:
    path = write(tmp_path, b"id,p\n007,NA\n")
    assert read_submission(path, dtype=str, keep_default_na=False).iloc[0].tolist() == ["007", "NA"]


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_a_file_without_content_has_no_columns(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    for frame in (read_submission(path), read_answers(path)):
        assert frame.shape == (0, 0)


def test_a_header_alone_has_columns_and_no_rows(tmp_path: Path) -> None:
    frame = read_submission(write(tmp_path, b"id,p\n"))
    assert list(frame.columns) == ["id", "p"]
    assert len(frame) == 0


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"id,p\n\xff\xfe,1\n", "UTF-8"),
        (bytes(range(128, 256)) * 20, "UTF-8"),
        (b'id,p\n"a,1\n', "EOF inside string"),
        (b"id,p\na,1\nb,1,2,3,4\n", "Expected 2 fields"),
    ],
)
def test_what_is_no_table_is_rejected_in_one_line(tmp_path: Path, content: bytes, hint: str) -> None:
    with pytest.raises(InvalidSubmission, match=hint) as caught:
        read_submission(write(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_missing_file_directory_and_pipe_are_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "pipe.csv", tmp_path / "none" / "none.csv"):
        with pytest.raises(InvalidSubmission, match="CSV file"):
            read_submission(path)


def test_nul_bytes_never_surface_as_another_error(tmp_path: Path) -> None:
    with contextlib.suppress(InvalidSubmission):
        assert isinstance(read_submission(write(tmp_path, b"id,p\n\x00,1\n\x00\x00")), pd.DataFrame)


def test_broken_answers_are_our_mistake(tmp_path: Path) -> None:
    with pytest.raises(pd.errors.ParserError):
        read_answers(write(tmp_path, b"id,p\na,1\nb,1,2,3,4\n"))
    with pytest.raises(FileNotFoundError):
        read_answers(tmp_path / "none.csv")


@pytest.mark.parametrize("small", [0, 1 << 40])
def test_columns_that_do_not_count_in_an_edition_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(columns, "SMALL", small)
    path, reads = tmp_path / "submission.csv", Reads(columns={"v1": ("id", "tag")})
    path.write_text('id,body,tag\n1,"a,b",x\n2,c,y\n')
    table = read_submission(path, reads=reads, edition="v1")
    assert list(table.columns) == ["id", "tag"]
    assert table["tag"].tolist() == ["x", "y"]
    for edition in ("v2", None):
        assert list(read_submission(path, reads=reads, edition=edition).columns) == ["id", "body", "tag"]

    path.write_text("id,body,tags\n1,b,x\n")
    assert list(read_submission(path, reads=reads, edition="v1").columns) == ["id", "body", "tags"], "to name them"

    for broken in (b"id,body,tag\n1,\xff,x\n", b"id,body,tag\n1,b,x\n2,b,x,z\n", b'id,body,tag\n1,"b,x\n'):
        path.write_bytes(broken)
        with pytest.raises(InvalidSubmission) as of_all:
            read_submission(path)
        with pytest.raises(InvalidSubmission) as of_some:
            read_submission(path, reads=reads, edition="v1")
        assert str(of_some.value) == str(of_all.value)
