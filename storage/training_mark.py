"""The mark of a store in which agents were trained with scores on the benchmark's own test sets.

Scores of such agents are not comparable with others, and nobody can tell from a run which agent it had. Therefore,
`mlebench verify` and reports mention it of all groups in that store.
"""

from __future__ import annotations

from datetime import UTC, datetime

from common.cleaning import clean
from storage.store import Store

MARK = "episodes/TEST_SCORES.json"


def mark(store: Store, competition_id: str, host: str, name: str | None) -> None:
    """Mark a store at the first such episode; a mark that exists stays. Raises `StoreError` if it cannot be written.

    Args:
        store: the store with the dataset.
        competition_id: the competition.
        host: the name of the machine.
        name: the name under which episodes are recorded; None if they are not.
    """
    url = store.url(*MARK.split("/"))
    if not store.exists(url):
        now = datetime.now(UTC).isoformat(timespec="seconds")
        store.write_json(url, {"first": now, "competition_id": competition_id, "host": host, "name": name})


def marked(store: Store) -> str | None:
    """Since when a store is marked, and where, in words; None if it is not. Raises `InvalidJson` for a damaged mark."""
    content = store.read_json(store.url(*MARK.split("/")))
    if content is None:
        return None
    first = content if isinstance(content, dict) else {}
    words = f"since {first.get('first')}, first {first.get('competition_id')} on host {first.get('host')} ({MARK})"
    return clean(words)
