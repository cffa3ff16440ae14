"""What Kaggle says of a competition: its facts, files, pages and leaderboard."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from common.cleaning import visible
from common.html_text import markdown_of
from competitions.proposals.about import About
from storage.sources.kaggle.access import access
from storage.sources.kaggle.errors import KaggleError, competition_page
from storage.sources.kaggle.leaderboard import fetch_leaderboard
from storage.sources.kaggle.pages import fetch_pages
from storage.sources.source import NETWORK_TIMEOUT

Answer = TypeVar("Answer")
_FILES_PER_PAGE, _MOST_FILES = 200, 2000
_ENDLESS_YEARS = 3
"""Competitions for beginners have a deadline that is moved, or decades away."""


def fetch_about(competition_id: str, timeout: float = NETWORK_TIMEOUT) -> About:
    """All that Kaggle says, in about five small requests. Raises `KaggleError`, also for kinds that cannot be used.

    `notes` say what makes it harder: a running competition, a code competition, pages or a leaderboard not shown.
    """
    facts = _asked(competition_id, timeout, _competition)
    files, complete = _files(competition_id, timeout)
    page = competition_page(competition_id)
    if not files:
        raise KaggleError(
            f"{competition_id}: it has no data to download, as simulations, hackathons and private competitions have "
            f"not; no test set can be made of it, see {page}"
        )
    notes = []
    deadline = facts.deadline.replace(tzinfo=facts.deadline.tzinfo or UTC) if facts.deadline else None
    now = datetime.now(UTC)
    endless = deadline is None or deadline.year > now.year + _ENDLESS_YEARS
    if deadline is not None and deadline > now and not endless:
        notes.append(f"it runs until {deadline:%Y-%m-%d}: the leaderboard is not final, and its rules apply")
    if facts.is_kernels_submissions_only:
        notes.append("it is a code competition: its test data are hidden, so that test files are examples only")
    if not facts.evaluation_metric:
        notes.append("Kaggle has no metric in its record: the pages may name one, or people judge")
    if not complete:
        notes.append(f"it has more than {len(files)} files, of which only these are counted in the size")
    asked = access([competition_id], timeout)[0]
    if asked.state == "rules":
        notes.append(asked.message)
    pages = _unless_refused(notes, "pages", lambda: fetch_pages(competition_id, timeout), [])
    teams = _unless_refused(notes, "leaderboard", lambda: fetch_leaderboard(competition_id, timeout), [])
    return About(
        id=competition_id,
        title=_line(facts.title),
        ended=f"{deadline:%Y-%m}" if deadline and deadline <= now else None,
        teams=facts.team_count,
        metric=_line(facts.evaluation_metric),
        reward=_line(facts.reward),
        category=_line(facts.category),
        notes=tuple(map(_line, notes)),
        pages=tuple((_line(name), _page_text(text)) for name, text in pages),
        scores=tuple(team.score for team in teams if team.score is not None and math.isfinite(team.score)),
        files=tuple((_line(name), size) for name, size in files),
    )


def _line(text: object) -> str:
    """Kaggle's words on one line, without characters that no file takes or that move the cursor."""
    return " ".join(visible(text or "").split())


def _page_text(text: str) -> str:
    """A page as Markdown, in which nothing is a mark of ours."""
    return re.sub(r"(#|<!--) CHECK: ", r"\1 Check: ", visible(markdown_of(text)))


def _asked(competition_id: str, timeout: float, ask: Callable[..., Answer], *arguments: Any) -> Answer:
    from storage.sources.kaggle.retry import retrying

    return retrying(competition_id, competition_page(competition_id), partial(ask, competition_id, timeout, *arguments))


def _unless_refused(notes: list[str], what: str, fetch: Callable[[], list[Any]], otherwise: list[Any]) -> list[Any]:
    try:
        return fetch()
    except KaggleError as error:
        notes.append(f"no {what}: {error}")
        return otherwise


def _competition(competition_id: str, timeout: float) -> Any:
    from kagglesdk.competitions.types.competition_api_service import ApiGetCompetitionRequest

    from storage.sources.kaggle.client import connect

    request = ApiGetCompetitionRequest()
    request.competition_name = competition_id
    with connect(timeout) as client:
        facts = client.competitions.competition_api_client.get_competition(request)
    facts.team_count = int(facts.team_count or 0)  # the SDK takes any value for a number
    return facts


def _files(competition_id: str, timeout: float) -> tuple[list[tuple[str, int]], bool]:
    """The first files of the download with their bytes, and whether these are all."""
    found: list[tuple[str, int]] = []
    token, seen = "", {""}
    while len(found) < _MOST_FILES:
        files, token = _asked(competition_id, timeout, _page, token)
        found += files
        if token in seen:
            return found, True
        seen.add(token)
    return found, False


def _page(competition_id: str, timeout: float, token: str) -> tuple[list[tuple[str, int]], str]:
    from kagglesdk.competitions.types.competition_api_service import ApiListDataFilesRequest

    from storage.sources.kaggle.client import connect

    request = ApiListDataFilesRequest()
    request.competition_name, request.page_size = competition_id, _FILES_PER_PAGE
    if token:
        request.page_token = token
    with connect(timeout) as client:
        answer = client.competitions.competition_api_client.list_data_files(request)
    files = [(str(each.name), int(each.total_bytes or 0)) for each in answer.files or []]
    return files, str(answer.next_page_token or "")
