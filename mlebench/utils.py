"""Helpers that programs import."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def get_timestamp() -> str:
    """The time as in names of reports, for example 2026-01-31T12-00-00-UTC."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S-%Z}"


def read_jsonl(file_path: str, skip_commented_out_lines: bool = False) -> list[dict[str, Any]]:
    """The objects of a file with JSON lines; lines that begin with # or // can be skipped."""
    lines = Path(file_path).read_text("utf-8").splitlines()
    marks = ("#", "//") if skip_commented_out_lines else ()
    return [json.loads(line) for line in lines if line.strip() and not line.lstrip().startswith(marks or "\0")]


def load_answers(path_to_answers: Path) -> Any:
    """The answers of a competition: a frame from CSV, or a list of dictionaries from JSON lines."""
    path = Path(path_to_answers)
    if path.suffix == ".jsonl":
        return read_jsonl(str(path))
    from competitions.scoring.reading import read_answers

    return read_answers(path)


def extract(src: Path, dst: Path, recursive: bool = False) -> None:
    """Unpack an archive into a folder."""
    with zipfile.ZipFile(src) as archive:
        archive.extractall(dst)
