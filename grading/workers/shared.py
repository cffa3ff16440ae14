"""Graders that stay open between calls, so that runs graded one by one parse the answers once as well."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grading.workers.pool import IsolatedGrader

if TYPE_CHECKING:
    from competitions.competition import Competition
    from competitions.editions import Edition
    from grading.medals import Thresholds

_KEPT = 2  # idle graders hold a competition's answers in memory


@dataclass
class _Shared:
    grader: IsolatedGrader
    users: int = 0


_graders: dict[tuple[object, ...], _Shared] = {}  # the least recently used first
_lock = threading.Lock()


@contextmanager
def shared_grader(
    competition: Competition,
    prepared: Path,
    edition: Edition,
    version: str = "",
    thresholds: Thresholds | None = None,
) -> Iterator[IsolatedGrader]:
    """A grader that this process keeps; another `version` of the answers, or other code of the grader, is another."""
    key = (str(competition.folder), str(prepared), edition, version, competition.fingerprint("grade"), thresholds)
    with _lock:
        shared = _graders.pop(key, None) or _Shared(
            IsolatedGrader(competition, prepared, edition, thresholds=thresholds)
        )
        _graders[key] = shared
        shared.users += 1
    try:
        yield shared.grader
    finally:
        with _lock:
            shared.users -= 1
            idle = [key for key, each in _graders.items() if each.users == 0]
            for old in idle[: max(0, len(_graders) - _KEPT)]:
                _graders.pop(old).grader.close()


def close_shared() -> None:
    """End the processes of all graders that nobody uses now."""
    with _lock:
        for key in [key for key, each in _graders.items() if each.users == 0]:
            _graders.pop(key).grader.close()


atexit.register(close_shared)
