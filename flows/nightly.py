"""The nightly flow: a small benchmark with an agent whose scores are known not to change, and an alarm if they do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from prefect import flow, get_client, runtime
from prefect.artifacts import create_markdown_artifact
from pydantic import Field

from common.errors import UserError
from competitions.editions import Edition
from flows.full_benchmark import full_benchmark
from flows.naming import agent_name, chosen_name, parameters
from flows.unattended import Seeds, Split, chosen_ids, chosen_store, name_of
from storage.store import Store, check_run_group
from storage.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

# An agent may take its time, but a night that has not ended must not meet the next one.
LONGEST = 20 * 3600.0


class ScoresMoved(UserError):
    """The scores are not those of the last nightly."""


def _prefix(split: str, agent: str, edition: str) -> str:
    return f"nightly-{split}-{agent.replace('@', '-')}-{edition}"


def _group(prefix: str) -> str:
    """Named after the flow run's creation: resubmitted after a crash, it goes on with the same group."""
    with get_client(sync_client=True) as client:
        created = client.read_flow_run(runtime.flow_run.id).created
    assert created is not None
    return check_run_group(f"{prefix}-{created:%Y%m%dT%H%M%S%f}Z")


def _name() -> str:
    given = parameters()
    agent = agent_name(given["agent"])
    group = _group(_prefix(given["split"], agent, given["edition"]))
    return f"nightly: {agent} on {chosen_name()}, group {group}"


@flow(name="nightly", flow_run_name=_name, timeout_seconds=LONGEST)
def nightly(
    split: Split = "low",
    agent: str = "dummy",
    seeds: Seeds = 1,
    tolerance: Annotated[float, Field(ge=0)] = 0.0,
    competition_ids: list[str] | None = None,
    edition: Edition = "v1",
    store: str | None = None,
    raw_dir: str | None = None,
    skip_verification: bool = False,
) -> str:
    """Run a deterministic agent, and fail if any score is not that of the last nightly with the same parameters.

    The run group is named after split, agent and the time of the flow run; the first nightly has nothing to compare
    with and passes. Raises `ScoresMoved`, and `PartlyFailed` if something could not be run.

    Args:
        split: Which competitions: low (the 22 of Lite), medium, high, all 75, dev, the small demo, or systemcard.
        agent: An agent whose scores do not change by themselves: dummy or baseline.
        seeds: Runs of each competition.
        tolerance: Difference of scores that is no alarm, relative to the larger one.
        competition_ids: Only these competitions, instead of a split.
        edition: v1 is the published benchmark bit for bit; v2 has its known issues fixed.
        store: Root URL of everything. Default: MLEBENCH_STORE of the worker.
        raw_dir: Directory of downloaded archives on the worker. Default: Kaggle.
        skip_verification: Do not compare with the published checksums.
    """
    place = chosen_store(store)
    prefix = _prefix(split, name_of(agent), edition)
    group = _group(prefix)
    before = last_group(place, prefix, group)
    ids = chosen_ids(split, competition_ids)
    full_benchmark.fn(ids, agent, group, place.root, seeds, edition, raw_dir, skip_verification=skip_verification)
    if before is None:
        create_markdown_artifact(f"First nightly: {group}. Nothing to compare with.", key="nightly")
        return group
    old = read_table(place, "grades", [before])
    old = old[old["competition_id"].isin(ids) & (old["seed"] < seeds)]
    moved = moves(old, read_table(place, "grades", [group]), tolerance)
    lines = [f"{group} against {before}: {len(moved)} of {len(ids) * seeds} scores moved.", ""]
    create_markdown_artifact("\n".join([*lines, *(f"- {line}" for line in moved)]), key="nightly")
    if moved:
        raise ScoresMoved(f"{len(moved)} scores moved since {before}: " + "; ".join(moved[:3]))
    return group


def last_group(store: Store, prefix: str, group: str) -> str | None:
    """The newest group of that prefix that was graded before `group`; None if it is the first."""
    urls = store.glob(f"tables/grades/run_group={prefix}-*/*.parquet")
    earlier = {url.split("run_group=", 1)[1].split("/", 1)[0] for url in urls}
    return max((name for name in earlier if name < group and name.count("-") == group.count("-")), default=None)


def moves(before: pd.DataFrame, now: pd.DataFrame, tolerance: float = 0.0) -> list[str]:
    """What differs between two tables of grades, one line a run: scores, outcomes, and runs that are gone.

    A run that is new is no difference: there is nothing that it could differ from.
    """
    keys = ["competition_id", "seed"]
    old, new = (
        {tuple(record[key] for key in keys): record for record in frame.to_dict("records")} for frame in (before, now)
    )
    lines = []
    for key, record in sorted(old.items()):
        row = f"{key[0]} seed {key[1]}"
        if key not in new:
            lines.append(f"{row}: {_shown(record)}, now not graded")
        elif not _same(record, new[key], tolerance):
            lines.append(f"{row}: {_shown(record)}, now {_shown(new[key])}")
    return lines


def _same(old: dict[Any, Any], new: dict[Any, Any], tolerance: float) -> bool:
    if old["outcome"] != new["outcome"]:
        return False
    a, b = (float("nan") if record["score"] is None else float(record["score"]) for record in (old, new))
    return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=tolerance)


def _shown(record: dict[Any, Any]) -> str:
    return f"{record['score']:.5f}" if record["outcome"] == "valid" else str(record["outcome"])
