"""Keep graders open between calls, so that the answers are parsed only once for runs graded one by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from grading.workers.pool import GradingPool

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition
    from grading.medals import Thresholds

IDLE_GRADERS = 2  # number of unused graders kept open; each has the answers of a competition in memory


@dataclass
class _OpenGrader:
    grader: GradingPool
    users: int = 0


class GraderCache:
    """Open graders by competition, dataset and grader code. The creator of the cache must close it."""

    def __init__(self, idle: int = IDLE_GRADERS) -> None:
        """Keep at most `idle` unused graders open."""
        self._idle = idle
        self._graders: dict[tuple[object, ...], _OpenGrader] = {}  # least recently used first
        self._lock = threading.Lock()

    @contextmanager
    def grader(
        self,
        competition: Competition,
        prepared: Path,
        edition: Edition,
        version: str = "",
        thresholds: Thresholds | None = None,
    ) -> Iterator[GradingPool]:
        """A grader that stays open afterwards; a new one if `version` of the answers or the grader's code changed.

        `version` identifies the content of the answers.
        """
        code = competition.grader_fingerprint(edition)
        key = (str(competition.folder), str(prepared), edition, version, code, thresholds)
        with self._lock:
            entry = self._graders.pop(key, None)
            if entry is None:
                entry = _OpenGrader(GradingPool(competition, prepared, edition, thresholds=thresholds))
            self._graders[key] = entry
            entry.users += 1
        try:
            yield entry.grader
        finally:
            with self._lock:
                entry.users -= 1
                self._close_unused(keep=self._idle)

    def close(self) -> None:
        """End the processes of all unused graders."""
        with self._lock:
            self._close_unused(keep=0)

    def __enter__(self) -> GraderCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _close_unused(self, keep: int) -> None:
        unused = [key for key, open_grader in self._graders.items() if open_grader.users == 0]
        for key in unused[: max(0, len(self._graders) - keep)]:
            self._graders.pop(key).grader.close()
