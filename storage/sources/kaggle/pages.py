"""Kaggle's own description of a competition, added to a prepared dataset on request."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from competitions.competition import Competition
from storage.dataset import Dataset
from storage.sources.kaggle.errors import KaggleError, competition_page
from storage.sources.source import NETWORK_TIMEOUT
from storage.store import Store

OFFICIAL = "description_official.md"
_FIRST = ("description", "overview", "abstract", "evaluation", "data-description")
# Pages that are irrelevant after the end of a competition.
_NEVER = ("rules", "prizes", "timeline", "winners", "how to cite", "citation")

_HEADER = """\
> **Differences in this benchmark.** The text below is Kaggle's own description from {page}. The description of this
> benchmark is `description.md` in the same folder. Where the two disagree, `description.md` applies.
>
> - The data are a new split of the competition's public training data ({holdout}). Files, counts and ids differ from
>   the text below, and the answers of Kaggle's test set are not used.
> - Submissions are graded on this benchmark's test set ({metric}, {direction} is better). Nothing is submitted to
>   Kaggle, so the limits on submissions, teams, notebooks and dates below do not apply.
> - There is no internet access.
> - Write the predictions for the test set in `/home/data` to `/home/submission/submission.csv`, in the format of the
>   sample submission in `/home/data`.
"""


def fetch_pages(competition_id: str, timeout: float = NETWORK_TIMEOUT) -> list[tuple[str, str]]:
    """The competition's pages that are useful to an agent, as (name, content). Raises `KaggleError`."""
    from storage.sources.kaggle.retry import retrying

    page = competition_page(competition_id)
    answer = retrying(competition_id, page, partial(_list, competition_id, timeout))
    pages = [(str(page.name), str(page.content or "")) for page in answer.pages or []]
    useful = [(name, text) for name, text in pages if text.strip() and not name.lower().startswith(_NEVER)]
    if not useful:
        raise KaggleError(f"{competition_id}: Kaggle shows no description; see {page}")
    return sorted(useful, key=lambda page: _rank(page[0]))


def compose(competition: Competition, pages: Iterable[tuple[str, str]]) -> str:
    """The text of description_official.md: the differences in this benchmark, then Kaggle's unchanged pages."""
    facts = competition.facts
    header = _HEADER.format(
        page=competition_page(competition.id),
        holdout=facts.holdout,
        metric=facts.metric.name,
        direction=facts.metric.direction,
    )
    parts = (f"## {name.replace('-', ' ').capitalize()}\n\n{text.strip()}\n" for name, text in pages)
    return "\n".join([f"# {facts.name}\n", header, *parts])


def write_official_description(
    store: Store, dataset: Dataset, competition: Competition, timeout: float = NETWORK_TIMEOUT
) -> str:
    """Fetch the pages and write them next to description.md of the prepared dataset. Returns the file's URL.

    The file is not part of the dataset, so manifest, checksums and content keys do not change. Raises `KaggleError`.
    """
    url = f"{store.prepared(dataset)}/public/{OFFICIAL}"
    store.write(url, compose(competition, fetch_pages(competition.id, timeout)).encode())
    return url


def _rank(name: str) -> tuple[int, str]:
    lower = name.lower().replace(" ", "-")
    return (_FIRST.index(lower) if lower in _FIRST else len(_FIRST)), lower


def _list(competition_id: str, timeout: float) -> Any:
    from kagglesdk.competitions.types.competition_api_service import ApiListCompetitionPagesRequest

    from storage.sources.kaggle.client import connect

    request = ApiListCompetitionPagesRequest()
    request.competition_name = competition_id
    with connect(timeout) as client:
        return client.competitions.competition_api_client.list_competition_pages(request)
