"""What is known of a competition besides its data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """What Kaggle says of a competition; without a connection, its id alone.

    Attributes:
        metric: Kaggle's name of the metric, "" if it has none.
        pages: (name, text in Markdown) of the pages, the description first.
        scores: the scores of the final leaderboard, best first; empty if it is not shown.
        files: (name, bytes) of the files of the download.
    """

    id: str
    title: str = ""
    ended: str | None = None
    teams: int = 0
    metric: str = ""
    reward: str = ""
    category: str = ""
    notes: tuple[str, ...] = ()
    pages: tuple[tuple[str, str], ...] = ()
    scores: tuple[float, ...] = ()
    files: tuple[tuple[str, int], ...] = ()

    def page(self, *names: str) -> str:
        """The text of the first page whose name begins with one of these."""
        return next((text for start in names for name, text in self.pages if name.lower().startswith(start)), "")

    @property
    def archive_md5(self) -> None:
        """Kaggle does not say."""

    @property
    def archive_bytes(self) -> int:
        """Bytes of all files of the download."""
        return sum(size for _, size in self.files)
