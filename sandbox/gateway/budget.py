"""Log a run's requests to language models, and count them towards its budget."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from common.jsonlines import JsonLinesLog
from sandbox.gateway.dialects import Problem
from sandbox.gateway.policy import Budget
from sandbox.gateway.tokens import Usage
from sandbox.limits import MIB

REFUSALS_RECORDED = 1000


@dataclass
class Spending:
    """Sums over requests."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    """Cost of the requests with a known price."""
    unpriced: int = 0
    """Number of requests whose cost is unknown."""

    def add(self, tokens: int, dollars: float | None, requests: int = 1) -> None:
        """Add a request."""
        self.requests += requests
        self.tokens += tokens
        self.dollars += dollars or 0.0
        self.unpriced += requests if dollars is None else 0

    @property
    def cost(self) -> float | None:
        """Cost of all requests in US dollars; None if the cost of any of them is unknown."""
        return None if self.unpriced else self.dollars


@dataclass
class Entry:
    """One request, as it is logged."""

    provider: str
    path: str
    model: str
    stream: bool
    status: str = "cut"
    """ok; error (from the provider); credentials; unreachable; timeout; cut (connection lost); refused (budget)."""
    http_status: int | None = None
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    message: str | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=monotonic)

    def record(self) -> dict[str, Any]:
        """The request as a record of ``gateway.jsonl``."""
        return {
            "started_at": self.started_at.isoformat(),
            "provider": self.provider,
            "path": self.path,
            "model": self.model,
            "stream": self.stream,
            "status": self.status,
            "http_status": self.http_status,
            "input_tokens": self.usage.input_tokens,
            "cached_tokens": self.usage.cache_read_tokens,
            "output_tokens": self.usage.output_tokens,
            "estimated": self.usage.estimated,
            "cost_usd": self.cost_usd,
            "latency_seconds": round(monotonic() - self.began, 3),
            "message": self.message,
        }


class BudgetTracker:
    """Counts the requests of one run, across restarts, and logs them. Not thread-safe."""

    def __init__(self, folder: Path, budget: Budget, since: str) -> None:
        """Continue the log in `folder`, or start it.

        Args:
            folder: folder of `gateway.jsonl`.
            budget: limits of the run.
            since: ISO time from which on requests count towards the budget.
        """
        self.log = JsonLinesLog(folder / "gateway.jsonl", 256 * MIB)
        self.budget = budget
        self.spent, self.total = Spending(), Spending()
        self._under_way = Spending()
        self._refused = 0
        for record in self.log.records():
            if record.get("status") != "refused":
                tokens = record["input_tokens"] + record["output_tokens"]
                self.total.add(tokens, record["cost_usd"])
                if record["started_at"] >= since:
                    self.spent.add(tokens, record["cost_usd"])

    def reset(self) -> None:
        """Count only requests from now on towards the budget."""
        self.spent = Spending()

    def exhausted(self) -> tuple[Problem, str] | None:
        """The limit that is reached, if any; requests under way are counted by their estimates."""
        budget, spent, under_way = self.budget, self.spent, self._under_way
        for limit, used, reserved, unit in (
            (budget.requests, spent.requests + under_way.requests, 0, "requests to language models"),
            (budget.tokens, spent.tokens, under_way.tokens, "tokens of language models"),
            (budget.dollars, spent.dollars, under_way.dollars, "US dollars for language models"),
        ):
            if limit is not None and used >= limit:
                return "budget", f"the budget of this run, {limit:,} {unit}, is used up"
            if limit is not None and used + reserved >= limit:
                return "busy", f"the requests under way may use up the budget of this run, {limit:,} {unit}: wait"
        return None

    @contextlib.contextmanager
    def under_way(self, entry: Entry, tokens: int, dollars: float | None) -> Iterator[None]:
        """Count a request by its estimate during the block, and afterwards by its entry, which is complete by then."""
        self._under_way.add(tokens, dollars)
        try:
            yield
        finally:
            self._under_way.add(-tokens, -(dollars or 0.0), requests=-1)
            for sums in (self.spent, self.total):
                sums.add(entry.usage.total, entry.cost_usd)
            self.log.append(entry.record())

    def refuse(self, entry: Entry, reason: str) -> None:
        """Log that a request was refused. Only the first thousand are logged, as an agent may retry without end."""
        self._refused += 1
        if self._refused <= REFUSALS_RECORDED:
            entry.status, entry.message = "refused", reason
            self.log.append(entry.record())
