"""Which attempts a host takes from a work pool."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from flows.fleet.choice import REATTACH_SECONDS, Candidate, chosen
from flows.fleet.hosts import from_json, to_json
from flows.fleet.queues import rank_of
from flows.fleet.worker import PAGE, further_pages
from sandbox.host.placement import Host, Need, unplaceable

ONE = Host("one", slots=2, cpus=4)


def waits(
    *, seconds: float = 0.0, agent_at: str | None = None, queue: str = "cpu", seconds_needed: float = 0.0, **need: int
) -> Candidate:
    return Candidate(uuid4(), f"run {uuid4()}", Need(seconds=seconds_needed, **need), seconds, agent_at, rank_of(queue))  # type: ignore[arg-type]


def take(
    *candidates: Candidate,
    me: Host = ONE,
    free: int = 2,
    online: tuple[str, ...] = ("one", "other"),
    here: tuple[Candidate, ...] = (),
) -> list[UUID]:
    return chosen(me, free, online, candidates, [candidate.run for candidate in here])


def test_a_host_takes_as_many_as_it_has_free_slots_in_the_order_in_which_they_were_handed_out() -> None:
    a, b, c = waits(), waits(), waits()
    assert take(a, b, c) == [a.id, b.id]
    assert take(a, free=0) == take(a, free=-1) == []


def test_an_attempt_is_left_to_the_host_that_has_its_agent_while_that_is_online() -> None:
    left = waits(agent_at="other")
    assert take(left) == []
    assert take(left, online=("one",)) == [left.id], "that host is gone"
    late = waits(seconds=REATTACH_SECONDS, agent_at="other")
    assert take(late) == [late.id]


def test_an_agent_that_is_here_needs_no_further_slot() -> None:
    mine, other = waits(agent_at="one"), waits()
    assert take(other, mine, free=0, here=(mine,)) == [mine.id]


def test_what_a_host_cannot_take_is_left() -> None:
    two, one = waits(gpus=2), waits(gpus=1)
    host = Host("host", slots=2, gpus=1, cpus=4)
    assert take(two, one, me=host) == [one.id]
    assert take(waits(cpus=8), me=host) == []
    assert take(waits(memory_bytes=1 << 40), me=host) == []


def test_what_cannot_end_before_the_job_of_a_host_is_left() -> None:
    long, short = waits(seconds_needed=7200), waits(seconds_needed=60)
    host = Host("host", slots=2, cpus=4, leaves_at=time.time() + 3600)
    assert take(long, short, me=host) == [short.id]
    why = unplaceable([host], Need(seconds=7200))
    assert why is not None
    assert "lacks 2 hours (its job leaves in " in why


def test_hosts_are_advertised_and_read_back() -> None:
    host = Host("h", slots=2, gpus=1, labels=frozenset({"gpu"}), backends=frozenset({"process"}))
    assert from_json(to_json("agents", host), "agents") == host
    assert from_json(to_json("agents", host), "others") is None
    assert from_json({"pool": "agents", "of another version": 1}, "agents") is None


def test_attempts_of_high_priority_come_first() -> None:
    low, normal, high = waits(queue="cpu-low"), waits(), waits(queue="cpu-high")
    assert take(low, normal, high, free=3) == [high.id, normal.id, low.id]


def test_a_host_looks_beyond_what_it_cannot_take() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    queues = {
        "gpu": [_due(start + timedelta(seconds=number // 3)) for number in range(2 * PAGE + 10)],  # some at one time
        "cpu": [_due(start)],
        "cpu-low": [],
    }

    def waiting(queue: str, due: datetime | None) -> list[Any]:
        return [each for each in queues[queue] if due is None or each.flow_run.next_scheduled_start_time >= due][:PAGE]

    found = [each for page in further_pages(waiting, list(queues)) for each in page]
    assert found == queues["gpu"] + queues["cpu"]


def test_more_that_are_due_at_one_time_than_an_answer_holds_end_the_look() -> None:
    same = [_due(datetime(2026, 1, 1, tzinfo=UTC)) for _ in range(PAGE + 1)]
    assert list(further_pages(lambda _queue, _due: same[:PAGE], ["cpu"])) == [same[:PAGE]]


def _due(time: datetime) -> Any:
    return SimpleNamespace(flow_run=SimpleNamespace(id=uuid4(), next_scheduled_start_time=time))
