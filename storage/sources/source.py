"""The interface of a download source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

Report = Callable[[str], None]
"""Receives short texts about the progress of a download."""
NETWORK_TIMEOUT = 60.0
"""Seconds without data after which a connection is closed and resumed."""


BUNDLED = "bundled"
"""Name of the source whose downloads are made by code of this installation, from installed libraries."""


class SourceChanged(Exception):
    """The source no longer serves the archive that was partly downloaded, so the download must start again."""


class Downloadable(Protocol):
    """What has to be known of a competition to download it."""

    @property
    def id(self) -> str:
        """Kaggle's name of it."""
        ...

    @property
    def archive_md5(self) -> str | None:
        """MD5 of the published archive, if it is known."""
        ...

    @property
    def archive_bytes(self) -> int | None:
        """Its approximate size, if it is known."""
        ...


class Source(Protocol):
    """Provides the archives of competitions."""

    name: str

    def version(self, competition: Downloadable) -> str | None:
        """A cheap identity of the current download (size and time, or code); None if only a download can provide it."""
        ...

    def at_hand(self, competition: Downloadable) -> bool:
        """Whether `fetch` needs no network. Cheap: nothing of the download is read."""
        ...

    def fetch(self, competition: Downloadable, folder: Path, report: Report = ...) -> Path:
        """The path of a complete local archive, in `folder` or elsewhere. Raises `DownloadError` with the remedy."""
        ...


@runtime_checkable
class RemoteSource(Source, Protocol):
    """A source on the network. A `fetch` to the same folder resumes a failed one."""

    def pieces(self, competition: Downloadable, report: Report = ...) -> Iterator[bytes]:
        """Yield the archive's bytes, for stores that are not on a local file system.

        Raises `DownloadError`, or `SourceChanged` if the download has to start again.
        """
        ...
