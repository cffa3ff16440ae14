"""`mlebench ls --episodes`: the episodes in a store, and how their rewards develop."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from storage.tables import write_table
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


def test_mean_rewards_are_those_of_ten_episodes_each(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    lines = listed(store, capfd, "grown")
    assert [line.split() for line in lines[-4:]] == [
        ["EPISODES", "MEAN", "REWARD", "VALID"],
        ["1-10", "0.055", "100%"],
        ["11-20", "0.155", "100%"],
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
