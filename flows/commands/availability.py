"""Competitions that not everybody can download: named before the work begins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from common.units import counted, listed
from competitions import registry
from competitions.editions import Edition

if TYPE_CHECKING:
    from competitions.facts import Availability
    from storage.store import Store


def not_for_everybody(
    store: Store, competition_ids: Iterable[str], editions: Sequence[Edition], raw_dir: str | None
) -> dict[str, Availability]:
    """Why not everybody can download them: of the competitions whose download is needed and not at hand.

    Those with a mistake in their folder are left out; preparing them reports it.
    """
    found = {}
    for name in competition_ids:
        with contextlib.suppress(Exception):
            stated = registry.get(name).facts.availability
            if stated is not None and not _is_at_hand(store, name, editions, raw_dir):
                found[name] = stated
    return found


def _is_at_hand(store: Store, competition_id: str, editions: Sequence[Edition], raw_dir: str | None) -> bool:
    """Whether its datasets can be had without asking Kaggle."""
    from storage.dataset import Dataset
    from tasks.wiring.context import data_for, download_source

    if all(data_for(store, Dataset(edition, competition_id), raw_dir).state != "missing" for edition in editions):
        return True
    return download_source(competition_id, raw_dir).at_hand(registry.get(competition_id))


REMEDY = "archives that you have are taken from --raw-dir; what cannot be downloaded is left out"


def notices(found: dict[str, Availability], selected: int) -> list[str]:
    """A line for each reason, with the competitions; `selected` is the number of all. `REMEDY` says what to do."""
    ids_by_reason: dict[str, list[str]] = {}
    for name, stated in found.items():
        ids_by_reason.setdefault(str(stated), []).append(name)
    return [
        f"not everybody can download {len(ids)} of {counted(selected, 'competition')}: {reason}: {listed(ids, 5)}"
        for reason, ids in ids_by_reason.items()
    ]


def say_availability(
    store: Store, competition_ids: Sequence[str], editions: Sequence[Edition], raw_dir: str | None
) -> None:
    """Print the notices about a selection before its competitions are prepared."""
    from flows.commands.answers import say

    for line in notices(not_for_everybody(store, competition_ids, editions, raw_dir), len(competition_ids)):
        say(f"{line}; {REMEDY}")
