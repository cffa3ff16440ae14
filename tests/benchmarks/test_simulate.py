"""The simulator against schedules that can be worked out by hand, and bounds that every schedule keeps."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulate import main
from benchmarks.simulation.calibration import SERIAL, Measured, costs_of
from benchmarks.simulation.costs import Costs, Job, jobs
from benchmarks.simulation.engine import Engine, Join, Pipe, Sleep, Slots, Steps, Take, Work
from benchmarks.simulation.load import Load
from benchmarks.simulation.pipeline import Prediction, Scenario, predict, shares
from benchmarks.simulation.pool import ideal_seconds
from competitions import registry

ROOT = Path(__file__).parents[2]
FREE = Costs(start=0, download=0, split=0, checksum=0, turn=0, launch=0, collect=0, grade=0, report=0)
DAY = 24 * 3600.0


def small(count: int, size: float = 0.0, rate: float = math.inf) -> list[Job]:
    return [Job(f"c{number:02}", size, rate) for number in range(count)]


def transfers(capacity: float, *works: tuple[float, float, float]) -> list[float]:
    """When each (begin, amount, limit) ends on one pipe."""
    engine = Engine()
    pipe = Pipe(engine, capacity)

    def one(begin: float, amount: float, limit: float) -> Steps:
        yield Sleep(begin)
        yield Work(pipe, amount, limit)

    processes = [engine.start(one(*work)) for work in works]
    engine.run()
    return [math.nan if process.ended is None else process.ended for process in processes]


def on_slots(lengths: list[float], slots: int) -> float:
    engine, places = Engine(), Slots(slots)

    def one(length: float) -> Steps:
        yield Take(places)
        yield Sleep(length)
        places.release()

    for length in lengths:
        engine.start(one(length))
    return engine.run()


@given(st.integers(1, 40), st.integers(1, 12))
def test_equal_jobs_run_in_full_waves(count: int, slots: int) -> None:
    assert on_slots([10.0] * count, slots) == pytest.approx(10.0 * math.ceil(count / slots))


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=30), st.integers(1, 8))
def test_a_queue_keeps_the_bounds_of_list_scheduling(lengths: list[float], slots: int) -> None:
    """Not shorter than the longest job or the work divided by the slots; at most their sum (Graham 1966)."""
    found = on_slots(lengths, slots)
    least = max(sum(lengths) / slots, max(lengths))
    assert least * (1 - 1e-9) <= found <= (sum(lengths) / slots + max(lengths) * (1 - 1 / slots)) * (1 + 1e-9)


def test_a_shared_link_is_divided_evenly_and_anew_when_somebody_leaves_or_comes() -> None:
    none = math.inf
    # Alone 100 a second until 1 s, then 50 each: the first has 100 left and ends at 3 s, the second then has 100 left.
    assert transfers(100, (0, 200, none), (1, 200, none)) == pytest.approx([3.0, 4.0])


def test_what_one_cannot_use_goes_to_the_others() -> None:
    assert transfers(100, (0, 20, 20), (0, 80, math.inf)) == pytest.approx([1.0, 1.0])


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=20), st.floats(1, 1e9))
def test_a_full_link_never_idles(amounts: list[float], capacity: float) -> None:
    assert max(transfers(capacity, *((0, amount, math.inf) for amount in amounts))) == pytest.approx(
        sum(amounts) / capacity, rel=1e-6, abs=1e-4
    )


def test_a_process_waits_for_all_that_it_joins() -> None:
    engine = Engine()

    def sleeper(seconds: float) -> Steps:
        yield Sleep(seconds)

    def joiner() -> Steps:
        yield engine.all(sleeper(3), sleeper(5))
        yield Join(())
        yield Sleep(1)

    process = engine.start(joiner())
    engine.run()
    assert process.ended == 6


def test_225_slots_take_a_day_and_75_take_three() -> None:
    benchmark = Scenario(agents=225, prepared=True)
    found = predict(small(75), FREE, benchmark)
    assert (found.seconds, found.runs, found.busy(benchmark)) == (DAY, 225, 1.0)
    assert predict(small(75), FREE, replace(benchmark, agents=75)).seconds == 3 * DAY
    assert predict(small(75), FREE, replace(benchmark, agents=76)).seconds == 3 * DAY


def test_downloads_are_bound_by_the_link_or_by_each_connection() -> None:
    scenario = Scenario(uplink=100, connection=math.inf, downloads=4, seeds=1, agent_seconds=0, disk=math.inf)
    assert predict(small(10, 1000), FREE, scenario).prepare_seconds == pytest.approx(100)
    by_connection = replace(scenario, connection=10)
    assert predict(small(10, 1000), FREE, by_connection).prepare_seconds == pytest.approx(300)  # 4 + 4 + 2 at one time


def test_machines_share_the_link_but_not_their_disks() -> None:
    scenario = Scenario(machines=4, uplink=math.inf, connection=math.inf, disk=100, seeds=1, agent_seconds=0)
    costs = replace(FREE, prepared_share=1.0)
    assert predict(small(8, 1000), costs, scenario).seconds == pytest.approx(2 * 1000 * (1 + 1.0) / 100)
    shared = replace(scenario, uplink=100, disk=math.inf)
    assert predict(small(8, 1000), costs, shared).seconds == pytest.approx(80)


def test_a_split_uses_all_cores_and_stages_of_different_competitions_overlap() -> None:
    scenario = Scenario(cores=4, uplink=100, connection=math.inf, downloads=1, seeds=1, agent_seconds=0, disk=math.inf)
    # 10 s a download, 5 s a split on four cores: the split of one is done while the next is downloaded.
    assert predict(small(3, 1000, 50), FREE, scenario).prepare_seconds == pytest.approx(35)


def test_agents_wait_for_the_last_preparation_unless_told_otherwise() -> None:
    scenario = Scenario(
        uplink=100, connection=math.inf, downloads=1, seeds=1, agent_seconds=100, agents=9, disk=math.inf
    )
    assert predict(small(3, 1000), FREE, scenario).seconds == pytest.approx(130)
    assert predict(small(3, 1000), FREE, replace(scenario, together=True)).seconds == pytest.approx(130)
    one_slot = replace(scenario, agents=1)
    assert predict(small(3, 1000), FREE, one_slot).seconds == pytest.approx(330)
    assert predict(small(3, 1000), FREE, replace(one_slot, together=True)).seconds == pytest.approx(310)


def test_what_surrounds_an_agent_takes_cpu_that_others_have_not() -> None:
    costs = replace(FREE, launch=10.0)
    scenario = Scenario(cores=2, agents=8, seeds=8, agent_seconds=5, prepared=True)
    assert predict(small(1), costs, scenario).seconds == pytest.approx(8 * 10 / 2 + 5)


def test_the_data_of_agents_come_once_to_each_machine() -> None:
    costs = replace(FREE, prepared_share=1.0, public_share=0.5)
    scenario = Scenario(agents=3, seeds=3, agent_seconds=7, prepared=True, store=100)
    assert predict(small(1, 1000), costs, scenario).seconds == pytest.approx(5 + 7)


def test_machines_and_language_models_are_paid() -> None:
    scenario = Scenario(agents=3, seeds=3, agent_seconds=3600, prepared=True, machine_hour=20, run_dollars=10)
    found = predict(small(2), FREE, scenario)
    assert found.dollars(scenario) == pytest.approx(2 * 20 + 6 * 10)
    two = replace(scenario, machines=2)
    assert predict(small(2), FREE, two).dollars(two) == pytest.approx(2 * 20 + 6 * 10)  # twice as fast, the same work


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=75), st.integers(1, 40))
def test_every_competition_has_one_machine_and_machines_have_alike_many(sizes: list[float], machines: int) -> None:
    dealt = shares([Job(str(number), size, 1.0) for number, size in enumerate(sizes)], machines)
    assert sorted(job.name for hand in dealt for job in hand) == sorted(map(str, range(len(sizes))))
    counts = [len(hand) for hand in dealt]
    assert max(counts) - min(counts) <= 1
    assert len(dealt) == min(machines, len(sizes))


def test_sizes_come_from_the_registry() -> None:
    found = {job.name: job.download_bytes for job in jobs("all", Costs(), unknown_bytes=7.0)}
    assert len(found) == 75
    facts = {name: registry.get(name).facts.size_bytes for name in found}
    assert all(size == (facts[name] or 7.0) for name, size in found.items())


def test_costs_are_read_off_a_run_that_does_one_thing_at_a_time() -> None:
    told = [(4.0, "a", "queued"), (5.0, "a", "download"), (5.5, "b", "download"), (6.0, "a", "split")]
    told += [(8.0, "a", "checksum"), (8.1, "b", "split"), (10.1, "b", "checksum"), (10.2, "a", "done")]
    told += [(10.4, "b", "done"), (12.4, "a seed 0", "waiting"), (12.5, "b seed 0", "waiting")]
    told += [(26.0, "a seed 0", "graded"), (38.0, "b seed 0", "graded")]
    runs = [
        {"started": 13.0, "finished": 23.0, "stored": 23.5},
        {"started": 25.0, "finished": 35.0, "stored": 35.5},
    ]
    measured = Measured(41.0, told, runs)
    expected = Costs(
        start=5.0, download=0.5, split=2.0, checksum=0.3, turn=2.0, launch=1.5, collect=0.5, grade=2.5, report=3.0
    )
    found = costs_of(measured)
    assert vars(found) == pytest.approx(vars(expected))
    assert measured.agent_seconds == pytest.approx(10.0)
    # What it predicts of the run that it was read off is that run.
    scenario = Scenario(cores=2, agents=1, downloads=1, preparations=1, seeds=1, agent_seconds=10.0)
    assert predict(small(2), found, scenario).seconds == pytest.approx(41.0, rel=0.05)
    assert (SERIAL.agents, SERIAL.downloads, SERIAL.preparations) == (1, 1, 1)


def test_the_command_writes_its_table_as_markdown_parquet_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, svg = tmp_path / "scenarios.parquet", tmp_path / "scenarios.svg"
    assert main(["--machines", "1", "16", "--uplink-gbit", "1", "--out", str(table), "--svg", str(svg)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines] == ["machines", "---:", "1", "16"]
    frame = pd.read_parquet(table)
    assert frame["runs"].tolist() == [225, 225]
    assert frame["seconds"].is_monotonic_decreasing
    assert (frame["seconds"] > 225 * DAY / (frame["machines"] * frame["agents"])).all()
    assert svg.read_text().count('class="agents"') == 3  # the legend and two bars


def test_the_command_writes_what_each_machine_takes_on(tmp_path: Path) -> None:
    assert main(["--machines", "4", "--lists", str(tmp_path)]) == 0
    lists = [path.read_text().split() for path in sorted(tmp_path.iterdir())]
    assert [len(names) for names in lists] == [19, 19, 19, 18]
    assert sorted(name for names in lists for name in names) == registry.list("all")


def test_a_slower_machine_takes_longer_for_all_but_bytes() -> None:
    twice = Costs(start=3.0, grade=2.0).slower(2)
    assert (twice.start, twice.grade, twice.table_bytes) == (6.0, 4.0, Costs().table_bytes)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="only Linux tells who waited for a CPU")
def test_a_process_tree_is_not_quicker_than_its_own_work() -> None:
    with subprocess.Popen([sys.executable, "-c", "input(sum(range(10**7)))"], stdin=subprocess.PIPE) as process:
        load = Load(process.pid)
        process.communicate(b"\n")
        assert load.stop() >= 1.0


def test_costs_survive_a_file(tmp_path: Path) -> None:
    Costs(start=3.0).write(tmp_path / "costs.json")
    assert Costs.read(tmp_path / "costs.json") == Costs(start=3.0)


def test_the_table_in_the_documents_is_what_the_command_prints() -> None:
    command = [sys.executable, "-m", "benchmarks.simulate"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert printed in (ROOT / "docs" / "scaling.md").read_text("utf-8"), "put its output into docs/scaling.md"


def pool(**more: Any) -> Prediction:
    """Three equal competitions in a pool, with attempts that cost nothing but the time of their agents."""
    free = Costs(**{field.name: 0.0 for field in fields(Costs) if field.name not in RATES})
    given: dict[str, Any] = {
        "machines": 3,
        "agents": 4,
        "seeds": 75,
        "agent_seconds": 1.0,
        "prepared": True,
        "pool": True,
    }
    return predict([Job(name, 0.0, 1.0) for name in "abc"], free, Scenario(**{**given, **more}))


RATES = ("table_bytes", "file_bytes", "prepared_share", "public_share")


def test_a_pool_keeps_all_slots_taken() -> None:
    found = pool()
    assert found.runs == 225
    assert found.seconds == pytest.approx(19)  # 225 attempts in 12 slots
    assert ideal_seconds(Scenario(machines=3, agents=4, agent_seconds=1.0), 225) == 19


def test_attempts_in_a_pool_wait_for_their_competition_only() -> None:
    costs = replace(Costs(), poll=0.0)
    jobs = [Job("a", 1e9, 1e9), Job("b", 1e12, 1e9)]
    found = predict(jobs, costs, Scenario(machines=2, agents=2, seeds=1, agent_seconds=1.0, pool=True))
    ends = dict(found.ends)
    assert ends["a"] < found.prepare_seconds < ends["b"]


def test_workers_on_one_machine_share_its_cores() -> None:
    costs = replace(Costs(), **dict.fromkeys(("start", "report", "poll", "hand_out", "server"), 0.0), flow_run=10.0)
    jobs = [Job("a", 0.0, 1.0)]
    given: dict[str, Any] = {"machines": 4, "cores": 1, "agents": 1, "seeds": 4, "agent_seconds": 0.0}
    given |= {"prepared": True, "pool": True}
    apart = predict(jobs, costs, Scenario(**given)).seconds
    together = predict(jobs, costs, Scenario(**given, one_machine=True)).seconds
    assert together == pytest.approx(4 * apart)


def test_hosts_of_a_pool_fetch_a_competition_once() -> None:
    costs = Costs(prepared_share=1.0, public_share=1.0, poll=0.0)
    scenario = Scenario(machines=2, agents=1, seeds=4, agent_seconds=100.0, prepared=True, pool=True, store=1e6)
    jobs = [Job("a", 1e6 * 50, 1.0), Job("b", 1e6 * 50, 1.0)]
    with_copies = predict(jobs, costs, scenario).seconds
    without = predict([replace(job, download_bytes=0.0) for job in jobs], costs, scenario).seconds
    assert with_copies == pytest.approx(without + 2 * 50, rel=0.01), "each host has four attempts at two competitions"
