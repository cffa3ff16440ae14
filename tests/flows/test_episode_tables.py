"""What commands do with episodes: list them and how their rewards develop, show one, write a report, remove them."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from storage.tables import read_table, write_table
from tests.stores import Store

ROOT = Path(__file__).parents[2]


def row(number: int, **fields: Any) -> dict[str, Any]:
    """An episode whose reward grows with its number."""
    return {
        "episode_id": f"e{number:03}",
        "competition_id": "digits--rows50-seed0",
        "division": "train",
        "started_at": datetime(2026, 1, 2, tzinfo=UTC) + timedelta(minutes=number),
        "duration_seconds": 75.0,
        "steps": 3,
        "end": "submitted",
        "valid": True,
        "reward": number / 100,
        **fields,
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(str(tmp_path_factory.mktemp("episodes")))
    # Two servers of the same name; the files of one are not in the order of time.
    write_table(store, "episodes", "grown", [row(number) for number in range(1, 25, 2)], "a-000000")
    rows = [*(row(number) for number in range(2, 25, 2)), row(0, end="abandoned", valid=None, reward=None)]
    write_table(store, "episodes", "grown", rows, "b-000000")
    write_table(store, "episodes", "one", [row(7)], "c-000000")
    return store


def listed(store: Store, capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["ls", "--episodes", *arguments, "--store", store.root]) == 0
    return capfd.readouterr().out.splitlines()


def test_episodes_are_listed_in_the_order_of_time(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    lines = listed(store, capfd, "grown")
    assert lines[0].split() == ["EPISODE", "COMPETITION", "DIVISION", "STEPS", "END", "REWARD", "TIME"]
    assert lines[1].split() == ["e000", "digits--rows50-seed0", "train", "3", "abandoned", "-", "1", "min", "15", "s"]
    assert [line.split()[0] for line in lines[1:26]] == [f"e{number:03}" for number in range(25)]
    assert lines[3].split()[4:6] == ["submitted", "0.020"]


def test_mean_rewards_are_those_of_batches(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    lines = listed(store, capfd, "grown")
    assert [line.split() for line in lines[-6:]] == [
        ["EPISODES", "MEAN", "REWARD", "VALID"],
        ["1-5", "0.030", "100%"],
        ["6-10", "0.080", "100%"],
        ["11-15", "0.130", "100%"],
        ["16-20", "0.180", "100%"],
        ["21-24", "0.225", "100%"],
    ]
    assert len(listed(store, capfd, "one")) == 2


def test_programs_get_all_columns(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    episodes = [json.loads(line) for line in listed(store, capfd, "grown", "--json")]
    assert len(episodes) == 25
    assert (episodes[0]["reward"], episodes[1]["reward"]) == (None, 0.01)
    assert episodes[1]["started_at"] == "2026-01-02T00:01:00+00:00"


def test_without_a_name_names_are_listed(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    lines = listed(store, capfd)
    assert lines[1].split() == ["grown", "25", "digits--rows50-seed0", "0.125", "2026-01-02", "00:24"]
    assert lines[2].split()[:2] == ["one", "1"]


def test_an_unknown_name_is_an_error(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--episodes", "none", "--store", store.root]) == 1
    assert "no episodes of 'none' in" in capfd.readouterr().err


def test_prefect_is_not_needed(store: Store) -> None:
    code = "import sys; sys.modules['prefect'] = None; from flows.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "ls", "--episodes", "grown", "--store", store.root]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "e001" in ended.stdout


def test_the_report_has_the_curve_and_leads_to_the_trajectories(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "curve.html"
    assert listed(store, capfd, "grown", "--report", str(page))[-1] == str(page)
    text = page.read_text()
    assert "24 episodes of 25 have a reward" in text
    assert text.count("<polyline") == 1
    assert (store.local("episodes", "grown", "e001.json").absolute().as_uri()) in text
    listed(store, capfd, "one", "--report", str(page))
    assert "too few episodes for a curve" in page.read_text()
    assert main(["ls", "--report", str(page), "--store", store.root]) == 2
    assert main(["ls", "--episodes", "one", "--report", "/proc/curve.html", "--store", store.root]) == 1
    assert "name another file with --report" in capfd.readouterr().err


def test_an_episode_is_shown_with_its_actions(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    call = {"function_name": "run", "arguments": {"command": "ls\x1b[2J\nls"}}
    steps = [
        {"step_id": 1},
        {"step_id": 2, "tool_calls": [call], "observation": {"results": [{"content": "It ended."}]}},
    ]
    store.write_json(store.url("episodes", "grown", "e002.json"), {"steps": steps})
    assert main(["show", "grown/e002", "--store", store.root]) == 0
    out = capfd.readouterr().out
    assert "reward              0.02\n" in out
    assert "\x1b" not in out
    assert out.splitlines()[-3].split()[:3] == ["1", "run", "ls"]
    assert main(["show", "grown/e002", "--json", "--store", store.root]) == 0
    assert json.loads(capfd.readouterr().out)["trajectory"] == {"steps": steps}
    assert main(["show", "grown/e0002", "--store", store.root]) == 1
    assert "Did you mean" in capfd.readouterr().err
    assert main(["show", "unknown/e0002", "--store", store.root]) == 2


def test_episodes_are_counted_and_removed_by_their_name(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = Store(str(tmp_path / "store"))
    for name in ("a", "b"):
        write_table(other, "episodes", name, [row(1)])
        other.write_json(other.url("episodes", name, "e001.json"), {})
    where = ["--store", other.root]
    assert main(["ls", *where]) == 1
    assert "mlebench ls --episodes" in capfd.readouterr().err
    other.write_json(other.url("runs", "a", "digits", "0", "run.json"), {})
    assert main(["du", "--json", *where]) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(each["name"], each["files"]) for each in found if each["kind"] == "episodes"] == [("a", 1), ("b", 1)]
    assert main(["rm", "a", "-y", *where]) == 0  # the run group
    assert len(read_table(other, "episodes")) == 2
    assert main(["rm", "--episodes", "a", "-y", *where]) == 0
    assert list(read_table(other, "episodes")["run_group"]) == ["b"]
    assert other.folder_names("episodes") == ["b"]
    capfd.readouterr()
    assert main(["rm", "--episodes", "a", "-y", *where]) == 1
    assert "no episodes of 'a'" in capfd.readouterr().err
