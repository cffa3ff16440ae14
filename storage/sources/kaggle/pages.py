"""Kaggle's own description of a competition, laid beside ours for agents on request."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from competitions.competition import Competition
from competitions.editions import Edition
from storage.sources.kaggle.errors import KaggleError, competition_page
from storage.store import Store

OFFICIAL = "description_official.md"
_FIRST = ("description", "overview", "abstract", "evaluation", "data-description")
_NEVER = ("rules", "prizes", "timeline", "winners", "how to cite", "citation")  # of a contest that is over

_HEADER = """\
> **What differs in this benchmark.** The text below is Kaggle's own, of {page}; `description.md` beside it is the
> benchmark's, and where the two disagree, `description.md` holds.
>
> - The data are a new split of the competition's public training data ({split}): files, counts and ids differ from what
>   is described below, and the answers of Kaggle's test set are not used.
> - Submissions are graded here, on this benchmark's test set ({metric}, {direction} is better). Nothing is submitted to
>   Kaggle; limits on submissions, teams, notebooks and dates below do not apply.
> - There is no internet access.
> - Write the predictions for the test set in `/home/data` to `/home/submission/submission.csv`, in the format of the
>   sample submission there.
"""


def fetch_pages(competition_id: str) -> list[tuple[str, str]]:
    """The competition's pages that an agent can use, as (name, content). Raises `KaggleError`."""
    from storage.sources.kaggle.retry import retrying

    page = competition_page(competition_id)
    answer = retrying(competition_id, page, partial(_list, competition_id))
    pages = [(str(each.name), str(each.content or "")) for each in answer.pages or []]
    useful = [(name, text) for name, text in pages if text.strip() and not name.lower().startswith(_NEVER)]
    if not useful:
        raise KaggleError(f"{competition_id}: Kaggle shows no description; see {page}")
    return sorted(useful, key=lambda each: _rank(each[0]))


def compose(competition: Competition, pages: Iterable[tuple[str, str]]) -> str:
    """description_official.md: what differs here, then Kaggle's pages as they are (Markdown or HTML)."""
    facts = competition.facts
    header = _HEADER.format(
        page=competition_page(competition.id),
        split=facts.holdout,
        metric=facts.metric.name,
        direction=facts.metric.direction,
    )
    parts = (f"## {name.replace('-', ' ').capitalize()}\n\n{text.strip()}\n" for name, text in pages)
    return "\n".join([f"# {facts.name}\n", header, *parts])


def lay_official(store: Store, competition: Competition, edition: Edition) -> str:
    """Fetch the pages and write them beside description.md of the prepared dataset; returns the file's URL.

    The file is no part of the dataset: manifest, checksums and content keys stay as they are. Raises `KaggleError`.
    """
    url = f"{store.prepared(edition, competition.id)}/public/{OFFICIAL}"
    store.write(url, compose(competition, fetch_pages(competition.id)).encode())
    return url


def _rank(name: str) -> tuple[int, str]:
    lower = name.lower().replace(" ", "-")
    return (_FIRST.index(lower) if lower in _FIRST else len(_FIRST)), lower


def _list(competition_id: str) -> Any:
    from kagglesdk.competitions.types.competition_api_service import ApiListCompetitionPagesRequest

    from storage.sources.kaggle.client import connect

    request = ApiListCompetitionPagesRequest()
    request.competition_name = competition_id
    with connect() as client:
        return client.competitions.competition_api_client.list_competition_pages(request)
