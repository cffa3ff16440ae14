"""The attempts of a request, and which of them are finished: without Prefect, which takes long to import."""

from __future__ import annotations

from common.settings import get_settings
from sandbox.definitions import load_agent
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key
from storage.keys import content_key
from storage.runs.records import RunRecord
from tasks.wiring.caps import caps_of
from tasks.wiring.making import run_folder
from tasks.wiring.requests import Attempt, RunRequest
from tasks.wiring.stores import open_store


def attempts_of(request: RunRequest, competition_id: str) -> list[Attempt]:
    """The attempts of a request at a competition, one per seed. Raises `UserError` as `RunRequest.require_sound`."""
    request.require_sound([competition_id])
    dataset_key = committed_key(open_store(request.store), Dataset(request.edition, competition_id))
    found = [
        Attempt(
            request=request,
            competition_id=competition_id,
            seed=seed,
            # Without a prepared dataset the key does not matter: the run then fails because of that.
            key=run_key(request, seed, dataset_key or ""),
            dataset_key=dataset_key,
        )
        for seed in request.seed_numbers
    ]
    return [_again(each) for each in found] if request.retry else found


def _again(attempt: Attempt) -> Attempt:
    """The attempt, which replaces the finished run if that ended with one of the statuses that are tried again."""
    record = finished_run(attempt)
    if record is None or record.status not in attempt.request.retry:
        return attempt
    return attempt.model_copy(update={"replaces": str(record.finished_at)})


def run_key(request: RunRequest, seed: int, dataset_key: str) -> str:
    """The content key of a run: the agent, its limits, the seed, the dataset, and what the agent can reach.

    The run group is part of it, because another group is another attempt.
    """
    agent = load_agent(request.agent, get_settings().agent_dirs)
    # What agent and request ask for. The caps of a machine are in the record of the run only.
    wanted = agent.limits.override(time_limit_seconds=request.time_limit_seconds)
    limits = wanted.capped(caps_of(request, wanted)).as_dict()
    del limits["free_bytes"]
    reach = request.isolation.conditions() | ({"obfuscated": True} if request.obfuscated else {})
    return content_key(
        agent.fingerprint(),
        limits,
        seed,
        request.edition,
        dataset_key,
        request.run_group,
        *([reach] if reach else []),
    )


def finished_run(attempt: Attempt) -> RunRecord | None:
    """The record of the attempt if it is finished under the same key, otherwise None.

    A run that was lost or cancelled is made again, and one that the attempt replaces.
    """
    record = run_folder(attempt).read_run()
    if record is None or record.key != attempt.key or record.status in ("lost", "cancelled"):
        return None
    return None if attempt.replaces is not None and str(record.finished_at) == attempt.replaces else record
