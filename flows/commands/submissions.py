"""The JSONL files of submissions that `grade` reads and `export --format submissions` writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from common.errors import UserError, explained, one_line
from common.locations import local_path
from common.names import NAME_BYTES, is_text, shown
from common.plain_json import parse_json
from common.texts import typed_wrong
from competitions.editions import Edition
from storage.store import Store

Known = TypeVar("Known")


class Line(BaseModel):
    """One line: a competition and the submission to it. The other fields describe the run.

    Of these, grading only looks at the dataset: a submission is never graded with the answers of another one.
    """

    model_config = ConfigDict(frozen=True)

    competition_id: str
    submission_path: str | None
    logs_path: str | None = None
    code_path: str | None = None

    @field_validator("submission_path", "logs_path", "code_path")
    @classmethod
    def _exists_somewhere(cls, path: str | None) -> str | None:
        if path is not None and (reason := unusable(path)):
            raise ValueError(f"{shown(path)} {reason}")
        return path

    run_id: str | None = None
    seed: int | None = None
    edition: Edition | None = None
    dataset_key: str | None = None
    """The dataset that the run was made on, with its edition. Without it, the current dataset is taken."""


def unusable(path: str) -> str | None:
    """Why no file can have this path; None if one can."""
    if "\0" in path or not is_text(path):
        return "is not the name of a file"
    longest = max(len(part) for part in path.encode().split(b"/"))
    return f"has a part of {longest} bytes, more than {NAME_BYTES}" if longest > NAME_BYTES else None


def parse_line(text: str) -> Line:
    """A line of the file. Raises `UserError` if it is invalid."""
    try:
        return Line.model_validate(parse_json(text))
    except ValueError as error:
        reason = explained(error) if isinstance(error, ValidationError) else ""
        problem = f"not a JSON object with competition_id and submission_path{typed_wrong(text)}"
        raise UserError(f"{problem}: {reason}" if reason else problem) from error


def followed(submission: Path, store: Store) -> Path:
    """The file that a link of the operator leads to, with a line on standard error that says so.

    A link into the store's prepared data is not followed, and graders then refuse it: an agent may have left it to have
    the answers graded.
    """
    if not submission.is_symlink():
        return submission
    target, prepared = submission.resolve(), store.local("prepared")
    if prepared is not None and target.is_relative_to(prepared.resolve()):
        return submission
    click.echo(f"{submission} is a link to {target}", err=True)
    return target


@contextmanager
def local_copies(store: Store, fetch_urls: bool) -> Iterator[Fetch]:
    """A function that makes submissions local. The copies are removed at the end of the `with` block."""
    with tempfile.TemporaryDirectory(prefix="mlebench-submissions-") as folder:
        yield Fetch(Path(folder), store, fetch_urls)


class Fetch:
    """Makes submissions local by copying those at URLs into a folder.

    URLs are read with the operator's credentials, and whoever wrote the file may have chosen them. Without `fetch_urls`
    they are those of runs in the store, as `mlebench export --format submissions` writes them.
    """

    def __init__(self, folder: Path, store: Store, fetch_urls: bool) -> None:
        self.folder, self.count = folder, 0
        self._runs, self._all = f"{store.url('runs')}/", fetch_urls

    def __call__(self, path: str | None) -> Path | None:
        """The local path of a submission, None if there is none. Raises `UserError` for a URL that cannot be read."""
        if not path:
            return None
        if (local := local_path(path)) is not None:
            return local
        if not self._all and not (path.startswith(self._runs) and ".." not in path.split("/")):
            raise UserError(f"{path} is a URL; if you trust the file, --fetch-urls reads it with your credentials")
        import fsspec

        self.count += 1
        target = self.folder / f"{self.count}" / "submission.csv"
        target.parent.mkdir()
        try:
            system, remote_path = fsspec.core.url_to_fs(path)
            system.get_file(remote_path, str(target))
        except FileNotFoundError:
            return None
        except Exception as error:  # each file system has its own errors
            raise UserError(f"{path} cannot be read: {one_line(error)}") from error
        return target
