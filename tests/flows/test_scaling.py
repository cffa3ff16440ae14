"""Estimates of the full benchmark: schedules that can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from competitions import registry
from flows.scaling import Job, Scenario, estimate, jobs, main, shares

ROOT = Path(__file__).parents[2]
DAY = 24 * 3600.0
FREE = Scenario(uplink=math.inf, connection=math.inf, disk=math.inf, seeds=1, agent_seconds=0)


def small(count: int, size: float = 0.0, rate: float = math.inf) -> list[Job]:
    return [Job(f"c{number:02}", size, rate) for number in range(count)]


def test_225_slots_take_a_day_and_75_take_three() -> None:
    benchmark = Scenario(agents=225, prepared=True)
    found = estimate(small(75), benchmark)
    assert (found.seconds, found.runs, found.busy(benchmark)) == (DAY, 225, 1.0)
    assert estimate(small(75), replace(benchmark, agents=75)).seconds == 3 * DAY
    assert estimate(small(75), replace(benchmark, agents=76)).seconds == 3 * DAY


def test_downloads_are_bound_by_the_link_or_by_each_connection() -> None:
    by_connection = replace(FREE, uplink=100, connection=10, downloads=4)
    assert estimate(small(10, 1000), by_connection).prepare_seconds == pytest.approx(300)  # 4 + 4 + 2 at one time
    by_link = replace(by_connection, connection=1000)
    assert estimate(small(10, 1000), by_link).prepare_seconds == pytest.approx(100)


def test_machines_share_the_link_but_not_their_disks() -> None:
    by_disk = replace(FREE, machines=4, disk=100)
    assert estimate(small(8, 1000), by_disk).seconds == pytest.approx(2 * 1000 * (1 + 1.3) / 100)
    by_link = replace(FREE, machines=4, connection=100, uplink=100)
    assert estimate(small(8, 1000), by_link).seconds == pytest.approx(80)


def test_a_split_uses_all_cores_and_overlaps_with_the_next_download() -> None:
    scenario = replace(FREE, cores=4, connection=100, downloads=1)
    # 10 s a download, 5 s a split on four cores: the split of one is done while the next is downloaded.
    assert estimate(small(3, 1000, 50), scenario).prepare_seconds == pytest.approx(35)


def test_agents_wait_for_all_preparations_of_their_machine_but_in_a_pool_for_their_own() -> None:
    scenario = replace(FREE, connection=100, downloads=1, agents=1, agent_seconds=100)
    assert estimate(small(3, 1000), scenario).seconds == pytest.approx(330)
    assert estimate(small(3, 1000), replace(scenario, pool=True)).seconds == pytest.approx(310)


def test_a_pool_keeps_all_slots_taken() -> None:
    found = estimate(small(3), Scenario(machines=3, agents=4, seeds=75, agent_seconds=1.0, prepared=True, pool=True))
    assert (found.runs, found.seconds) == (225, 19)  # 225 runs in 12 slots


def test_each_machine_is_paid_until_its_end() -> None:
    scenario = Scenario(agents=3, seeds=3, agent_seconds=3600, prepared=True, machine_hour=20)
    assert estimate(small(2), scenario).machine_dollars(scenario) == pytest.approx(2 * 20)
    two = replace(scenario, machines=2)
    assert estimate(small(2), two).machine_dollars(two) == pytest.approx(2 * 20)  # twice as fast, the same work


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=75), st.integers(1, 40))
def test_every_competition_has_one_machine_and_machines_have_alike_many(sizes: list[float], machines: int) -> None:
    dealt = shares([Job(str(number), size, 1.0) for number, size in enumerate(sizes)], machines)
    assert sorted(job.name for part in dealt for job in part) == sorted(map(str, range(len(sizes))))
    counts = [len(part) for part in dealt]
    assert max(counts) - min(counts) <= 1
    assert len(dealt) == min(machines, len(sizes))


def test_sizes_come_from_the_registry() -> None:
    sizes = {job.name: job.download_bytes for job in jobs("all", unknown_bytes=7.0)}
    assert len(sizes) == 75
    facts = {name: registry.get(name).facts.size_bytes for name in sizes}
    assert all(size == (facts[name] or 7.0) for name, size in sizes.items())


def test_the_table_in_the_documents_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed in (ROOT / "docs" / "scaling.md").read_text("utf-8"), "put its output into docs/scaling.md"
