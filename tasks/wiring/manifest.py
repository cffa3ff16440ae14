"""Entries in the manifest of a run group, signed with the key of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.settings import get_settings
from storage.runs.evidence.manifest import append
from storage.store import Store
from tasks.wiring.requests import RunRequest
from tasks.wiring.stores import open_store


def note_in_manifest(store: Store, run_group: str, kind: str, **facts: Any) -> None:
    """Append an entry; see `storage.runs.evidence.manifest`. Raises `UserError` if the key cannot sign."""
    append(store, run_group, get_settings().ledger_key.get_secret_value(), kind, **facts)


def note_plan(request: RunRequest, competition_ids: Sequence[str]) -> None:
    """Note which runs a request plans, so that those that are dropped later show."""
    plan: dict[str, Any] = {"competitions": sorted(competition_ids), "seeds": request.seeds, "agent": request.agent}
    if request.only_seeds:
        plan |= {"seeds": 0, "seed_numbers": request.seed_numbers}
    note_in_manifest(open_store(request.store), request.run_group, "planned", **plan, edition=request.edition)
