"""The endpoints of the validation service: what an agent sends to each, and where its calls are journalled.

`sandbox.validation.service` counts, limits and journals the calls of each endpoint in the same way. A further endpoint
is a line in `ENDPOINTS`. It is served in runs whose `RunServices` get a `Check` under its name, and then:

- its calls so far are `NAME_calls` in the run's record (a field of `storage.runs.records.RunRecord`),
- its limits are `NAME_calls` and `NAME_calls_per_minute` of `sandbox.backend.Allowance`, for the instructions,
- its journal is kept with the run, counted across restarts and checkpoints (`sandbox.services`), and part of the ledger
  (`storage.runs.evidence.ledger`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.validation.checker import PublicScore, Scored, Verdict


@dataclass(frozen=True)
class Endpoint:
    """An endpoint of the validation service."""

    path: str
    files: Mapping[str, str]
    """The files that a request has: field of the form, and how messages call the file."""
    journal: str
    """The log of its calls, in a run's folder for records."""
    calls: str
    """What its calls are called in messages, such as "validations"."""
    refused: str
    """The beginning of the message about a request over the limits."""
    verdict: type[Verdict] = Verdict
    """The class of the results of its checker."""
    in_steps: bool = False
    """Whether answers come after a few fixed times only, because the time that one takes may depend on the answers."""


ENDPOINTS: Mapping[str, Endpoint] = {
    "validation": Endpoint(
        path="/validate",
        files={"file": "the file"},
        journal="validation.jsonl",
        calls="validations",
        refused="Not validated",
        in_steps=True,
    ),
    "scorer": Endpoint(
        path="/score",
        files={"predictions": "PREDICTIONS", "truth": "TRUTH"},
        journal="scorer.jsonl",
        calls="calls of the scorer",
        refused="Not scored",
        verdict=Scored,
    ),
    "public_score": Endpoint(
        path="/public-score",
        files={"file": "the file"},
        journal="public_score.jsonl",
        calls="requests for public scores",
        refused="Not scored",
        verdict=PublicScore,
        in_steps=True,
    ),
}
JOURNALS = tuple(endpoint.journal for endpoint in ENDPOINTS.values())


def response(endpoint: Endpoint, verdict: Verdict) -> tuple[dict[str, Any], int]:
    """The answer to a request, and its HTTP status. What has failed is not among the answers."""
    if verdict.outcome == "refused":
        return {"error": f"{endpoint.refused}: {verdict.message}."}, 429
    if verdict.told:
        if verdict.outcome == "valid":
            return verdict.told | ({"note": verdict.message} if verdict.message else {}), 200
        return {"error": verdict.message}, 400
    valid = verdict.outcome == "valid"
    return {"result": "Submission is valid." if valid else f"Submission invalid! {verdict.message}"}, 200
