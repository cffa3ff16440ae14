"""Splits of one's own, in mlebench.toml: wherever a split is named, in the records of runs, and in reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from flows.forms import chosen_ids
from flows.unattended import benchmark
from flows.watching.naming import selection_name
from grading.conditions import mark_notes
from storage.tables import read_table, write_frame
from tasks.report import write_tables
from tests.agents import write_agent
from tests.flows.graded import GROUP, dataset, graded, group, mlebench
from tests.stores import Store, copy_dataset

__all__ = ["dataset", "graded", "group"]

Define = Callable[..., None]
SENTENCE = "fresh: 2 competitions that ended after 2026-01 (version 1 of 2026-02-15)"


@pytest.fixture
def define(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Define:
    """Write a split into mlebench.toml of the current directory."""
    monkeypatch.chdir(tmp_path)

    def write(*ids: str, name: str = "fresh", version: str = "1", more: str = "") -> None:
        lines = [f"[splits.{name}]", f"version = {version}", "date = 2026-02-15", f"competitions = {json.dumps(ids)}"]
        lines += ['description = "competitions that ended after 2026-01"', more]
        (tmp_path / "mlebench.toml").write_text("\n".join(lines))
        get_settings.cache_clear()

    return write


def test_it_can_be_named_wherever_a_split_is(define: Define, capsys: pytest.CaptureFixture[str]) -> None:
    define("digits", "diabetes")
    assert main(["list", "--split", "fresh"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["diabetes", "digits", "fresh:"]
    assert SENTENCE in out
    assert chosen_ids("fresh", None) == ["diabetes", "digits"] == registry.list("fresh")
    assert selection_name(["digits", "diabetes"]) == "fresh"
    assert "fresh" in benchmark_form()["enum"]


def benchmark_form() -> dict[str, list[str]]:
    """The field for the split in the form of a deployment that is registered now."""
    from prefect.utilities.callables import parameter_schema

    return parameter_schema(benchmark.fn).properties["split"]


def test_competitions_of_ones_own_have_dates_for_the_cutoffs_of_models(
    define: Define, group: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["new", "mine", "--into", str(tmp_path / "own")]) == 0
    facts = tmp_path / "own" / "mine" / "competition.yaml"
    facts.write_text(facts.read_text().replace("ended: null ", "ended: 2026-03 "))
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "own"))
    define("mine")
    url = group.run(GROUP, "diabetes", 0)
    for name in ("run", "grade"):
        record = group.read_json(f"{url}/{name}.json") | {"competition_id": "mine"}
        group.write_json(f"{group.run(GROUP, 'mine', 0)}/{name}.json", record)
    write_tables(group, GROUP)
    assert mlebench("report", GROUP, "--split", "fresh", "--cutoff", "mine=2026-01", store=group) == 0
    page = group.local("reports", GROUP, "report.html").read_text()
    assert "the model’s training data" in page.split('id="contamination"')[1]


@pytest.mark.parametrize(
    ("name", "ids", "more", "code", "says"),
    [
        ("low", ["digits"], "", 1, "'low' is a split of the benchmark; give yours another name"),
        ("unknown", ["digits"], "", 1, "'unknown' is a split of the benchmark"),
        ('"a b"', ["digits"], "", 1, "'a b' is no name; use letters, digits"),
        ("fresh", ["digit"], "", 2, "split 'fresh' of the settings: unknown competition 'digit'. Did you mean digits?"),
        ("fresh", [], "", 1, "mlebench.toml: splits.fresh.competitions: must be of at least 1 entries"),
        ("fresh", ["digits"], "versions = 2", 1, "unknown setting splits.fresh.versions"),
        (
            "fresh",
            ["digits"],
            "[splits.other]",
            1,
            "splits.other.version: missing; splits.other.date: missing; spl",
        ),
        ("fresh", ["digits"], "[splits.other]\nversion = 1.10", 1, "splits.other.version: must be in quotes"),
        ("other", ["digits"], "", 2, "unknown split 'fresh'; splits are low, lite, medium, high, all, dev, demo, sys"),
    ],
)
def test_what_is_wrong_with_it_is_one_line(
    name: str, ids: list[str], more: str, code: int, says: str, define: Define, capsys: pytest.CaptureFixture[str]
) -> None:
    define(*ids, name=name, more=more)
    assert main(["list", "--split", "fresh"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_the_other_commands_work_although_it_names_an_unknown_competition(define: Define) -> None:
    define("nowhere")
    assert main(["list", "--split", "demo"]) == 0
    assert selection_name(["diabetes", "digits"]) == "2 competitions"


def test_a_run_records_its_version_and_a_hash_of_the_ids(
    define: Define, store: Store, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    define("diabetes")
    copy_dataset(store, "diabetes", dataset)
    agent = write_agent(tmp_path / "mine", "true")
    assert mlebench("run", "--split", "fresh", "--agent", agent, "--run-group", "of", store=store) == 0
    out = capsys.readouterr().out
    assert "fresh: 1 competitions that ended" in out
    assert "any medal, fresh: 0.0 %" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("diabetes ")] == ["fresh"]
    assert read_table(store, "aggregates/rates", ["of"])["split"].unique().tolist() == ["fresh", "Tabular", "all"]
    (row,) = read_table(store, "runs", ["of"]).to_dict("records")
    assert (row["split"], row["split_version"], len(row["split_digest"])) == ("fresh", "1", 16)


def test_a_report_says_what_it_is_and_whether_it_was_changed(
    define: Define, group: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    def made_for(seed: int) -> None:
        url = f"{group.run(GROUP, 'diabetes', seed)}/run.json"
        get_settings.cache_clear()
        assert main(["list", "--split", "fresh"]) == 0  # applies the settings
        group.write_json(url, group.read_json(url) | registry.own_splits()["fresh"].model_dump())
        write_tables(group, GROUP)

    def told(*options: str) -> str:
        assert mlebench("report", GROUP, *options, store=group) == 0
        texts = [group.local("reports", GROUP, f"report.{kind}").read_text() for kind in ("md", "html")]
        text = texts[0].replace("\\", "")
        assert all(line in texts[1] for line in text.splitlines() if "version 1" in line)
        return text

    define("diabetes", "digits")
    made_for(0)
    assert SENTENCE in told()
    assert "was changed" not in told()
    assert "fresh: over 1 of 2 competitions" in told("--split", "fresh")
    define("diabetes", "digits", "breast-cancer", version="2")
    assert "was changed" not in told(), "it has another version"
    define("diabetes", "digits", "breast-cancer")
    assert "version 1 has other competitions in the settings than in these runs" in told()
    made_for(1)
    assert "version 1 has other competitions in some of these runs than in others" in told()


def test_a_report_says_which_competitions_had_marks_when_they_were_run(group: Store) -> None:
    def told() -> str:
        write_tables(group, GROUP)
        assert mlebench("report", GROUP, store=group) == 0
        return group.local("reports", GROUP, "report.md").read_text()

    assert "CHECK" not in told(), "records from before there was the field"
    url = f"{group.run(GROUP, 'diabetes', 0)}/run.json"
    group.write_json(url, group.read_json(url) | {"check_marks": 2})
    assert "1 competition had 2 CHECK marks when it was run: diabetes" in told()


def test_competitions_with_marks_are_named_once_with_the_most_that_they_had() -> None:
    runs = pd.DataFrame({"competition_id": ["digits", "digits", "diabetes", "other"], "check_marks": [1, 3, 2, None]})
    assert mark_notes(runs) == ["2 competitions had CHECK marks when they were run: diabetes (2), digits (3)"]


def test_groups_are_compared_and_comparisons_planned_for_it(
    define: Define, group: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    define("diabetes", "digits")
    assert mlebench("regrade", GROUP, "--as", "new", store=group) == 0
    capsys.readouterr()
    assert mlebench("compare", GROUP, "new", "--split", "fresh", store=group) == 0
    out = capsys.readouterr().out
    assert SENTENCE in out
    assert "fresh (1)" in out
    assert "demo (1)" not in out
    assert mlebench("compare", GROUP, "new", "--split", "low", store=group) == 1
    assert "no competition of split low in common" in capsys.readouterr().err
    assert mlebench("plan", GROUP, "--split", "fresh", store=group) == 0
    for_fresh = capsys.readouterr().out
    assert [line.split()[0] for line in for_fresh.splitlines()[1:6]] == ["2"] * 5

    for name in (GROUP, "new"):
        runs = read_table(group, "runs", [name]).drop(columns="run_group")
        write_frame(group, "runs", name, runs.assign(**registry.own_splits()["fresh"].model_dump()))
    assert mlebench("compare", GROUP, "new", store=group) == 0
    out = capsys.readouterr().out
    assert "fresh (1)" in out
    assert "demo (1)" not in out
    assert read_table(group, "comparisons", [f"{GROUP}..new"])["complexity"].tolist() == ["demo"]
    assert mlebench("plan", GROUP, store=group) == 0
    assert capsys.readouterr().out == for_fresh
