"""Existing downloads: a directory of `<id>.zip` files."""

from __future__ import annotations

from pathlib import Path

from competitions.competition import Competition
from competitions.errors import DownloadError
from storage.sources.source import Report


class Local:
    """Provides `<id>.zip` from a directory."""

    name = "local"

    def __init__(self, directory: Path) -> None:
        self.directory = directory.expanduser()

    def version(self, competition: Competition) -> str | None:
        """Size and modification time of the file."""
        stat = self.fetch(competition, self.directory).stat()
        return f"{stat.st_size}-{stat.st_mtime_ns}"

    def fetch(self, competition: Competition, folder: Path, report: Report = lambda _: None) -> Path:
        """The path of the file. Nothing is copied."""
        path = self.directory / f"{competition.id}.zip"
        if not self.directory.is_dir():
            raise DownloadError(f"--raw-dir {self.directory} is not a directory")
        if not path.is_file():
            raise DownloadError(f"{path} does not exist; put the download of {competition.id} there")
        return path
