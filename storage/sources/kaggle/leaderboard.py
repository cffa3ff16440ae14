"""Fetch Kaggle's current leaderboard of a competition, and store it as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from storage.frames import read_frame, write_frame
from storage.sources.kaggle.errors import KaggleError, competition_page
from storage.sources.source import NETWORK_TIMEOUT
from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

_PAGE_SIZE = 200


@dataclass(frozen=True)
class Team:
    """One row of a leaderboard; `score` is None for a team without one."""

    rank: int
    team_id: int
    team: str
    submitted_at: str | None
    score: float | None


def fetch_leaderboard(competition_id: str, timeout: float = NETWORK_TIMEOUT) -> list[Team]:
    """All teams, best first, of the private leaderboard if Kaggle shows it, or else of the public one.

    Raises `KaggleError`.
    """
    from storage.sources.kaggle.retry import retrying

    page, rows, token, seen_tokens = competition_page(competition_id), [], "", {""}
    while True:
        answer = retrying(competition_id, page, partial(_page, competition_id, token, timeout))
        rows += list(answer.submissions or [])
        token = answer.next_page_token or ""
        if token in seen_tokens:  # the last page, or a repeated one
            break
        seen_tokens.add(token)
    if not rows:
        raise KaggleError(f"{competition_id}: Kaggle shows no leaderboard; see {page}/leaderboard")
    return [
        Team(
            rank,
            row.team_id,
            row.team_name or "",
            row.submission_date.isoformat() if row.submission_date else None,
            _number(row.score),
        )
        for rank, row in enumerate(rows, 1)
    ]


def write_leaderboard(store: Store, competition_id: str, teams: Sequence[Team]) -> str:
    """Write ``tables/leaderboards/<id>.parquet`` with one row per team, best first. Returns its URL."""
    import pandas as pd

    frame = pd.DataFrame(
        {
            "competition_id": competition_id,
            "rank": [team.rank for team in teams],
            "team_id": [team.team_id for team in teams],
            "team": [team.team for team in teams],
            "submitted_at": pd.array([team.submitted_at for team in teams], dtype="string"),
            "score": pd.array([team.score for team in teams], dtype="Float64"),
            "fetched_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )
    url = _url(store, competition_id)
    write_frame(store, url, frame)
    return url


def read_leaderboard(store: Store, competition_id: str) -> pd.DataFrame | None:
    """The table of `write_leaderboard`; None if the leaderboard was never fetched."""
    return read_frame(store, _url(store, competition_id))


def _url(store: Store, competition_id: str) -> str:
    return store.url("tables", "leaderboards", f"{competition_id}.parquet")


def _page(competition_id: str, token: str, timeout: float) -> Any:
    from kagglesdk.competitions.types.competition_api_service import ApiGetLeaderboardRequest

    from storage.sources.kaggle.client import connect

    request = ApiGetLeaderboardRequest()
    request.competition_name, request.page_size = competition_id, _PAGE_SIZE
    if token:
        request.page_token = token
    with connect(timeout) as client:
        return client.competitions.competition_api_client.get_leaderboard(request)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value
