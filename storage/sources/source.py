"""What a download source is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from competitions.competition import Competition

Tell = Callable[[str], None]


class SourceChanged(Exception):
    """The source serves another archive than the one of which a part is held: begin anew."""


class Source(Protocol):
    """Fetches a competition's archive."""

    name: str

    def version(self, competition: Competition) -> str | None:
        """What the source would serve now, cheaply (size and time, code); None if only fetching can tell."""
        ...

    def fetch(self, competition: Competition, folder: Path, tell: Tell = ...) -> Path:
        """A complete local archive, in `folder` or elsewhere. Raises `DownloadError` naming what to do."""
        ...


@runtime_checkable
class Remote(Source, Protocol):
    """A source behind a network: what it left in the folder of a failed fetch, the next one goes on from."""

    def pieces(self, competition: Competition, tell: Tell = ...) -> Iterator[bytes]:
        """The archive's bytes front to back, for stores that are not on this machine.

        Raises `DownloadError`, or `SourceChanged` if it has to be begun anew.
        """
        ...
