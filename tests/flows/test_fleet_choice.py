"""Which attempts a host takes from a work pool."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from flows.fleet.choice import PREFERENCE_SECONDS, REATTACH_SECONDS, Candidate, chosen
from flows.fleet.hosts import from_json, to_json
from flows.fleet.queues import rank_of
from flows.fleet.worker import PAGE, further_pages
from sandbox.host.placement import Host, Need

EMPTY = Host("empty", slots=2, cpus=4)
FILLED = Host("filled", slots=2, cpus=4, datasets=frozenset({"digits"}))


def waits(dataset: str, *, seconds: float = 0.0, agent_at: str | None = None, **need: int) -> Candidate:
    return Candidate(uuid4(), f"run {uuid4()}", Need(dataset=dataset, **need), seconds, agent_at)  # type: ignore[arg-type]


def take(me: Host, hosts: list[Host], *candidates: Candidate, here: tuple[Candidate, ...] = ()) -> list[UUID]:
    return chosen(me, hosts, candidates, frozenset(each.run for each in here))


def test_those_whose_data_are_here_come_first_and_then_competition_by_competition() -> None:
    a, b, c = waits("diabetes"), waits("digits"), waits("digits")
    assert take(FILLED, [FILLED], a, b, c) == [b.id, c.id]
    assert take(EMPTY, [EMPTY], a, b, c) == [a.id, b.id], "as they were handed out"


def test_a_host_with_the_data_and_room_is_preferred_for_a_while() -> None:
    assert take(EMPTY, [EMPTY, FILLED], waits("digits")) == []
    late = waits("digits", seconds=PREFERENCE_SECONDS)
    assert take(EMPTY, [EMPTY, FILLED], late) == [late.id]
    full = Host("filled", slots=1, cpus=4, used_slots=1, datasets=FILLED.datasets)
    now = waits("digits")
    assert take(EMPTY, [EMPTY, full], now) == [now.id], "nobody waits for a host without room"


def test_an_attempt_is_left_to_the_host_that_has_its_agent_while_that_is_online() -> None:
    left = waits("digits", seconds=PREFERENCE_SECONDS, agent_at="filled")
    assert take(EMPTY, [EMPTY, FILLED], left) == []
    assert take(EMPTY, [EMPTY], left) == [left.id], "that host is gone"
    late = waits("digits", seconds=REATTACH_SECONDS, agent_at="filled")
    assert take(EMPTY, [EMPTY, FILLED], late) == [late.id]


def test_an_agent_that_is_here_needs_no_further_slot() -> None:
    full = Host("full", slots=1, cpus=4, used_slots=1)
    mine, other = waits("digits", agent_at="full"), waits("digits")
    assert take(full, [full, FILLED], other, mine, here=(mine,)) == [mine.id]


def test_what_a_host_cannot_take_is_left() -> None:
    two, one = waits("digits", gpus=2), waits("digits", gpus=1)
    host = Host("host", slots=2, gpus=1, cpus=4)
    assert take(host, [host], two, one) == [one.id]
    assert take(host, [host], waits("digits", cpus=8)) == []
    big = waits("digits", memory_bytes=1 << 40)
    assert take(host, [host], big) == []


def test_hosts_are_advertised_and_read_back() -> None:
    host = Host(
        "h", slots=2, gpus=1, labels=frozenset({"gpu"}), backends=frozenset({"process"}), datasets=FILLED.datasets
    )
    assert from_json(to_json("agents", host), "agents") == host
    assert from_json(to_json("agents", host), "others") is None
    assert from_json({"pool": "agents", "of another version": 1}, "agents") is None
    many = Host("h", slots=2, datasets=frozenset(f"competition-with-a-long-name-{n} v1 public" for n in range(400)))
    kept = from_json(to_json("agents", many), "agents")
    assert kept is not None
    assert kept.datasets < many.datasets
    assert len(str(to_json("agents", many))) < 5000, "Prefect refuses longer values"


def test_priority_comes_before_data_that_are_here() -> None:
    low, normal, high = (
        replace(waits(dataset), rank=rank_of(queue))
        for dataset, queue in (("digits", "cpu-low"), ("diabetes", "cpu"), ("wine", "cpu-high"))
    )
    three = replace(FILLED, slots=3)
    assert take(three, [three], low, normal, high) == [high.id, normal.id, low.id]


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
