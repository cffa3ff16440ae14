"""What a run has used of its time and of its budget for language models."""

from __future__ import annotations

import contextlib
import time

from common.progress import Meter, Share
from sandbox.backend import RunSpec
from sandbox.services.run_services import RunServices
from sandbox.supervision.control import Layout


def meter(spec: RunSpec, services: RunServices) -> Meter:
    """A function that measures the time since the start of a run, even if it was found running, and its budget."""
    started, allowance = time.time(), services.allowance
    with contextlib.suppress(OSError):
        started = Layout(spec.workdir.absolute()).task.stat().st_mtime

    def measure() -> list[Share]:
        shares = [Share("time", max(0.0, time.time() - started), float(spec.limits.time_limit_seconds))]
        if allowance.language_models:
            spent = services.counts()
            shares += [
                Share("requests", spent["gateway_requests"], allowance.llm_requests),
                Share("tokens", spent["gateway_tokens"], allowance.llm_tokens),
                Share("dollars", spent["gateway_cost_usd"] or 0.0, allowance.llm_dollars),
            ]
        return shares

    return measure
