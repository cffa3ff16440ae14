"""`mlebench issues`, and `--exclude leaky`."""

from __future__ import annotations

import json

import pytest

from competitions import registry
from flows.cli import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_it_lists_issues_with_severity_effect_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "issues", "tgs-salt-identification-challenge")
    assert "empty-counts-as-full: metric, fixed in v2" in found
    assert "image-bytes-unchanged: labels, kept in v2, needs agents without network" in found
    assert "scored as if it marked the whole image" in " ".join(found.split())


def test_an_edition_shows_what_it_leaves_open_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in printed(capsys, "issues", "--edition", "v2", "--json").splitlines()]
    assert {row["v2"] for row in rows} == {"kept"}
    mine = [row["severity"] for row in rows if row["competition_id"] == "tgs-salt-identification-challenge"]
    assert mine == ["labels", "noise"]
    everything = printed(capsys, "issues", "--json").splitlines()
    assert len(everything) == sum(len(registry.get(name).facts.known_issues) for name in registry.list())


def test_leaky_competitions_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    every, sound = (
        {json.loads(line)["id"] for line in printed(capsys, "list", "--all", "--json", *more).splitlines()}
        for more in ((), ("--exclude", "leaky"))
    )
    left_out = every - sound
    assert left_out == {name for name in registry.list("all") if registry.get(name).facts.leaks("v2")}
    assert "tgs-salt-identification-challenge" in left_out
    kept = [issue for name in left_out for issue in registry.get(name).facts.leaks("v2")]
    assert {issue.needs for issue in kept} == {"no-network"}, "a closed network saves them"


def test_nothing_left_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "-c", "tgs-salt-identification-challenge", "--exclude", "leaky"]) != 0
    assert "leaves no competition" in capsys.readouterr().err
