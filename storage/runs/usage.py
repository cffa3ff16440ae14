"""What runs asked of language models, from the gateway's journals in the runs' folders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from common.jsonlines import parse
from storage.runs.paths import RUN
from storage.store import Store

JOURNAL = "gateway.jsonl"
_COLUMNS = (
    "model",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "latency_seconds",
    "started_at",
    "status",
    "estimated",
)


def usage_rows(store: Store, run_group: str) -> Iterator[dict[str, Any]]:
    """Rows of `tables/usage`: one a request that reached a provider or tried to; refusals stay in the journal."""
    for url in store.glob(f"runs/{run_group}/*/*/{JOURNAL}"):
        run = store.read_json(url.removesuffix(JOURNAL) + RUN)
        if run is None:  # a run that is still being stored
            continue
        who = {name: run[name] for name in ("run_group", "run_id", "competition_id", "seed")}
        for call in parse(store.top.fs.cat_file(store.top.path(store.relative(url)))):
            if call["status"] != "refused":
                yield {**who, **{name: call[name] for name in _COLUMNS}}
