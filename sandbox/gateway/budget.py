"""Log a run's requests to language models, and check each against what is left of the run's budget.

A request is written to a journal before it is sent. If the gateway ends before the answer, it counts the request as the
most that it can have used, when it is opened again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from common.jsonlines import JsonLinesLog
from common.providers import Provider
from sandbox.gateway.dialects import Problem
from sandbox.gateway.max_usage import MIN_OUTPUT_TOKENS, MaxUsage
from sandbox.gateway.policy import Budget
from sandbox.gateway.prices import Rates
from sandbox.gateway.tokens import Usage
from sandbox.limits import MIB

REFUSALS_RECORDED = 1000
LOG, UNDER_WAY = "gateway.jsonl", "gateway-under-way.jsonl"
CRASHED = "the gateway ended before the answer; counted as the most that it can have used"


class OverBudget(Exception):
    """A request that may exceed a limit; `problem` selects the error that the agent gets."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


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
class LoggedRequest:
    """One request, as it is logged."""

    provider: str
    path: str
    model: str
    stream: bool
    status: str = "cut"
    """ok; error (from the provider); credentials; unreachable; timeout; cut (connection lost); refused (budget)."""
    http_status: int | None = None
    usage: Usage = field(default_factory=Usage)
    tier: str = ""
    """Tier of service that the provider reports; it changes the price."""
    cost_usd: float | None = 0.0
    message: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=monotonic)

    def record(self) -> dict[str, Any]:
        """The request as a record of ``gateway.jsonl``."""
        return {
            "id": self.id,
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
            "tier": self.tier,
            "cost_usd": self.cost_usd,
            "latency_seconds": round(monotonic() - self.began, 3),
            "message": self.message,
        }


class BudgetTracker:
    """Counts the requests of one run, across restarts and crashes, and logs them. Not thread-safe."""

    def __init__(self, folder: Path, budget: Budget, since: str) -> None:
        """Continue the log in `folder`, or start it.

        Args:
            folder: folder of `gateway.jsonl`.
            budget: limits of the run.
            since: ISO time from which on requests count towards the budget.
        """
        self.log = JsonLinesLog(folder / LOG, 256 * MIB)
        self.budget = budget
        self.spent, self.total = Spending(), Spending()
        self._journal = JsonLinesLog(folder / UNDER_WAY, 64 * MIB)
        self._under_way = Spending()
        self.used_up = False
        """Whether the last request was refused because of the budget."""
        self._refused = 0
        _settle(self.log, self._journal)
        for record in self.log.records():
            if record.get("status") != "refused":
                tokens = record["input_tokens"] + record["output_tokens"]
                self.total.add(tokens, record["cost_usd"])
                if record["started_at"] >= since:
                    self.spent.add(tokens, record["cost_usd"])

    def reset(self) -> None:
        """Count only requests from now on towards the budget."""
        self.spent, self.used_up = Spending(), False

    def left(self) -> dict[str, float | None]:
        """The rest of each limit, not counting what requests under way may use; None without a limit."""
        budget, spent = self.budget, self.spent
        return {
            name: None if limit is None else max(0, limit - used)
            for name, limit, used in (
                ("requests", budget.requests, spent.requests),
                ("tokens", budget.tokens, spent.tokens),
                ("dollars", budget.dollars, spent.dollars),
            )
        }

    def admit(self, bound: MaxUsage, provider: Provider, rates: Rates | None) -> MaxUsage:
        """The most that the request can use, with its output limited so that it fits into what is left.

        Raises:
            OverBudget: not even its input and a short answer fit.
        """
        budget, spent, under_way = self.budget, self.spent, self._under_way
        if self.log.full or self._journal.full:
            raise OverBudget("budget", "the log of this run's requests to language models is full")
        if budget.requests is not None and spent.requests + under_way.requests >= budget.requests:
            raise _used_up(f"{budget.requests:,} requests to language models")
        maximum = bound.usage(provider, rates)
        for limit, used, reserved, cost_of, unit in (
            (budget.tokens, spent.tokens, under_way.tokens, _tokens, "tokens of language models"),
            (budget.dollars, spent.dollars, under_way.dollars, _dollars(rates), "US dollars for language models"),
        ):
            if limit is None or (maximum.total == 0 and used < limit):
                continue
            remaining = limit - used - reserved
            input_cost = cost_of(Usage(maximum.input_tokens))
            cost_per_token = (cost_of(Usage(maximum.input_tokens, 1_000_000)) - input_cost) / 1e6 * bound.answers
            affordable_tokens = (
                int((remaining - input_cost) / cost_per_token)
                if cost_per_token
                else (10**9 if input_cost <= remaining else -1)
            )
            required_tokens = MIN_OUTPUT_TOKENS if bound.limit is None else min(bound.limit, MIN_OUTPUT_TOKENS)
            if used >= limit:
                raise _used_up(f"{limit:,} {unit}")
            if input_cost > remaining or affordable_tokens < required_tokens:
                raise _too_expensive(f"{limit:,} {unit}", waiting=used + reserved > used)
            if bound.limit is None and affordable_tokens * bound.answers < maximum.output_tokens:
                bound = bound.limited(min(affordable_tokens, provider.output_tokens))
            elif bound.limit is not None:
                bound = bound.limited(affordable_tokens)
        if maximum.total:
            self.used_up = False
        return bound

    @contextmanager
    def under_way(self, entry: LoggedRequest, most: Usage, dollars: float | None) -> Iterator[None]:
        """Count a request as the most that it can use during the block, and afterwards as its entry says.

        The entry is complete at the end of the block. The request is in the journal when the block begins.
        """
        entry.usage, entry.cost_usd = most, dollars
        self._journal.append({**entry.record(), "message": CRASHED}, durable=True)
        self._under_way.add(most.total, dollars)
        try:
            yield
        finally:
            self._under_way.add(-most.total, None if dollars is None else -dollars, requests=-1)
            for sums in (self.spent, self.total):
                sums.add(entry.usage.total, entry.cost_usd)
            self.log.append(entry.record())
            if self._under_way.requests == 0:
                self._journal.clear()

    def refuse(self, entry: LoggedRequest, reason: OverBudget) -> None:
        """Log that a request was refused. Only the first thousand are logged, as an agent may retry without end."""
        self._refused += 1
        self.used_up |= reason.problem == "budget"
        if self._refused <= REFUSALS_RECORDED:
            entry.status, entry.message = "refused", str(reason)
            self.log.append(entry.record())


def _settle(log: JsonLinesLog, journal: JsonLinesLog) -> None:
    """Move requests from the journal of a gateway that crashed to the log."""
    unfinished = {record["id"]: record for record in journal.records() if "id" in record}
    if unfinished:
        finished = {record.get("id") for record in log.records()}
        for number, record in unfinished.items():
            if number not in finished:
                log.append(record, durable=True)
    journal.clear()


def _tokens(usage: Usage) -> float:
    return float(usage.total)


def _dollars(rates: Rates | None) -> Any:
    return rates.most if rates is not None else lambda _usage: 0.0


def _used_up(limit: str) -> OverBudget:
    return OverBudget("budget", f"the budget of this run, {limit}, is used up")


def _too_expensive(limit: str, *, waiting: bool) -> OverBudget:
    if waiting:
        return OverBudget("busy", f"the requests under way may use up the budget of this run, {limit}: wait")
    return OverBudget(
        "budget",
        f"what is left of the budget of this run, {limit}, does not cover the most that this request can cost: "
        "shorten it, or limit its output",
    )
