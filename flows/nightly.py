"""The nightly flow: a small benchmark with a deterministic agent, which fails if scores have changed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from prefect import flow, get_client, runtime
from pydantic import Field

from common.causes import explain
from common.errors import UserError
from common.markdown import Markdown
from common.units import counted
from competitions import registry
from flows.fleet.notifications import NIGHTLY_FAILED, Message, announce
from flows.forms import AgentName, Data, Seeds, Split, chosen_ids, group_part, run_request, words_of_form
from flows.unattended import run_benchmark
from flows.watching.naming import agent_name, chosen_name, parameters
from storage.store import Store, check_run_group
from storage.tables import read_table
from tasks.wiring.artifacts import show
from tasks.wiring.backends import agents_time_limit
from tasks.wiring.context import open_store
from tasks.wiring.prefect_server import shown, wait_for_server

if TYPE_CHECKING:
    import pandas as pd

# A nightly must have ended before the next one starts. Its agents are stopped after this time. Prefect's own time-out
# comes later: it cannot stop agents, and ends a flow run that hangs elsewhere.
LONGEST = 20 * 3600.0
_GRACE_SECONDS = 1800.0


def _prefix(split: str, agent: str, edition: str) -> str:
    return f"nightly-{split}-{agent.replace('@', '-')}-{edition}"


def _group(prefix: str) -> str:
    """The run group. Its name has the creation time of the flow run, so that a resubmitted flow run continues it."""
    with get_client(sync_client=True) as client:
        created = client.read_flow_run(runtime.flow_run.id).created
    assert created is not None
    return check_run_group(f"{prefix}-{created:%Y%m%dT%H%M%S%f}Z")


def _name() -> str:
    given = parameters()
    agent = agent_name(given["agent"])
    group = _group(_prefix(given["split"], agent, Data.model_validate(given["data"]).edition))
    return f"nightly: {agent} on {chosen_name()}, group {group}"


@flow(name="nightly", flow_run_name=_name, timeout_seconds=LONGEST + _GRACE_SECONDS)
def nightly(
    split: Split = "low",
    agent: AgentName = "dummy",
    seeds: Seeds = 1,
    tolerance: Annotated[float, Field(ge=0)] = 0.0,
    competition_ids: list[str] | None = None,
    data: Data = Data(),  # noqa: B008  # frozen
) -> str:
    """Run a deterministic agent, and fail if a score differs from the last nightly run with the same parameters.

    The run group is named after split, agent and the time of the flow run. The first run has nothing to compare
    with and passes. Raises `UserError`, and `PartlyFailed` if something could not be run.

    Args:
        split: Which competitions: low (the 22 of Lite), medium, high, all 75, dev, the small demo, systemcard, or
            one of your own (`splits` in the worker's mlebench.toml).
        agent: An agent with deterministic scores, dummy or baseline, or the path of the folder of your own on the
            worker. It must be trusted: in MLEBENCH_AGENT_DIRS of the worker.
        seeds: Number of runs of each competition.
        tolerance: Accepted difference of scores, relative to the larger one.
        competition_ids: Only these competitions, instead of a split.
        data: Edition, store and downloads.
    """
    wait_for_server()
    store = open_store(data.store)
    prefix = _prefix(split, group_part(agent), data.edition)
    group = _group(prefix)
    before = last_group(store, prefix, group)
    ids = chosen_ids(split, competition_ids)
    request = run_request(agent, group, seeds, data, split=registry.recorded_split(split, ids))
    with _announced(group), words_of_form(Data):
        with agents_time_limit(LONGEST, "the nightly"):
            run_benchmark(request, ids, data, priority="high")
        _compare(store, before, group, ids, seeds, tolerance)
    return group


@contextlib.contextmanager
def _announced(group: str) -> Iterator[None]:
    """Announce an error of the block, for notifications."""
    try:
        yield
    except Exception as error:
        message = Message(f"The nightly {group} failed", explain(error))
        announce(NIGHTLY_FAILED, f"mlebench.group.{group}", message)
        raise


def _compare(store: Store, before: str | None, group: str, ids: Sequence[str], seeds: int, tolerance: float) -> None:
    """Show the differences from the group `before`. Raises `UserError` if there are any."""
    now = read_table(store, "grades", [group])
    ran = len(set(now["competition_id"])) if len(now) else 0
    part = "" if ran == len(ids) else f" Run: {ran} of {counted(len(ids), 'competition')}."
    if before is None:
        with shown("the nightly's summary"):
            show("nightly", f"First nightly: {group}. Nothing to compare with.{part}", group)
        return
    old = read_table(store, "grades", [before])
    old = old[old["competition_id"].isin(ids) & (old["seed"] < seeds)]
    moved = moves(old, now, tolerance)
    lines = [f"{group} against {before}: {len(moved)} of {counted(len(old), 'score')} moved.{part}", ""]
    lines += [Markdown("- {}").format(line) for line in moved]
    with shown("the nightly's summary"):
        show("nightly", Markdown("\n").join(lines), group)
    if moved:
        raise UserError(f"{len(moved)} scores moved since {before}: " + "; ".join(moved[:3]))


def last_group(store: Store, prefix: str, group: str) -> str | None:
    """The newest group of that prefix that was graded before `group`; None if it is the first."""
    urls = store.glob(f"tables/grades/run_group={prefix}-*/*.parquet")
    earlier = {url.split("run_group=", 1)[1].split("/", 1)[0] for url in urls}
    return max((name for name in earlier if name < group and name.count("-") == group.count("-")), default=None)


def moves(before: pd.DataFrame, now: pd.DataFrame, tolerance: float = 0.0) -> list[str]:
    """The differences between two tables of grades, one line per run: scores, outcomes, and missing runs.

    New runs do not count as differences.
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
