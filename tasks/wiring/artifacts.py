"""Artifacts in the Prefect UI. All of them are made here, since the UI takes their texts for Markdown and HTML.

A text that is not our `Markdown` is escaped, so that texts of agents, models, submissions and downloads neither load a
picture nor become links. Tables are Markdown, too: one of the UI's pages shows the cells of a table artifact as
Markdown, and the other one shows them unchanged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from common import markdown
from common.markdown import Markdown
from storage.datasets.materialise import Progress
from tasks.wiring.prefect_server import shown


def show(key: str | None, text: str, description: str) -> None:
    """Make an artifact with a text."""
    from prefect.artifacts import create_markdown_artifact

    create_markdown_artifact(Markdown.escape(text), key=key, description=Markdown.escape(description))


def show_table(key: str, rows: Sequence[Mapping[str, object]], description: str) -> None:
    """Make an artifact with a table, whose columns are the keys of its rows."""
    header = list(rows[0]) if rows else ["nothing"]
    lines = markdown.table(header, [[row[name] for name in header] for row in rows])
    show(key, Markdown("\n").join(lines), description)


def show_progress(percent: float, description: str) -> UUID | None:
    """Make a progress bar; returns its id."""
    from prefect.artifacts import create_progress_artifact

    artifact_id = create_progress_artifact(percent, description=Markdown.escape(description))
    return artifact_id if isinstance(artifact_id, UUID) else None


def update_progress(artifact: UUID, percent: float, description: str | None = None) -> None:
    """Move a progress bar, and change its description if there is one."""
    from prefect.artifacts import update_progress_artifact

    update_progress_artifact(artifact, percent, None if description is None else Markdown.escape(description))


_RETRY_SECONDS = 60.0


class ProgressBar:
    """A progress bar in the Prefect UI, of a dataset that is being prepared."""

    def __init__(self, description: str) -> None:
        self._description, self._shown, self._failed = description, 0.0, -math.inf
        self._id: Any = None  # a UUID once the bar exists

    def show(self, made: Progress) -> None:
        """Create the bar, or update it if it has moved by 5 %: each update is a request to the server.

        After a failure, it makes no request for a minute, so that the work does not wait for the server.
        """
        if time.monotonic() - self._failed < _RETRY_SECONDS:
            return
        self._failed = time.monotonic()
        with shown(f"the progress of {self._description}"):
            self._show(made)
            self._failed = -math.inf

    def _show(self, made: Progress) -> None:
        share = 100.0 * made.files / max(made.files_total, 1)
        if self._id is None:
            self._id = show_progress(share, self._description)
        elif share - self._shown >= 5 or share == 100.0:
            update_progress(self._id, share)
        else:
            return
        self._shown = share
