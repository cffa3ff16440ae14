"""Imported reports give the published figures: mean and standard error over seeds of the share of medals."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from competitions import registry
from flows.cli import main
from storage.runs.evidence.group_manifest import append
from storage.tables import read_table, write_frame
from tests.stores import Store

SEEDS = 3
LOW = registry.list("low")


def report(name: str, medal: bool) -> dict[str, Any]:
    """One competition of a published grading report."""
    board = registry.get(name).facts.leaderboard
    limits = {f"{part}_threshold": getattr(board, part) for part in ("gold", "silver", "bronze", "median")}
    flags = dict.fromkeys(("gold_medal", "silver_medal", "above_median"), False)
    flags |= {"any_medal": medal, "bronze_medal": medal, "submission_exists": True, "valid_submission": True}
    rest = {"is_lower_better": False, "created_at": "2026-01-01T00:00:00", "submission_path": f"runs/{name}_x/s.csv"}
    return {"competition_id": name, "score": 0.5, **limits, **flags, **rest}


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[Path], np.ndarray[Any, Any]]:
    """Three published reports, and the medals in them: a row per competition, a column per seed."""
    draw = random.Random(7)
    medals = np.array([[draw.random() < 0.4 for _ in range(SEEDS)] for _ in LOW], dtype=float)
    paths = []
    for seed in range(SEEDS):
        content = {"competition_reports": [report(name, bool(medals[n, seed])) for n, name in enumerate(LOW)]}
        paths.append(tmp_path / f"{seed}.json")
        paths[-1].write_text(json.dumps(content))
    return paths, medals


def drop(path: Path, name: str) -> None:
    content = json.loads(path.read_text())
    content["competition_reports"] = [r for r in content["competition_reports"] if r["competition_id"] != name]
    path.write_text(json.dumps(content))


def low(store: Store, group: str, *options: str) -> Any:
    assert main(["report", group, "--split", "low", *options, "--store", store.root]) == 0
    rates = read_table(store, "aggregates/rates", [group])
    chosen = rates[(rates["by"] == "complexity") & (rates["split"] == "low") & (rates["rate"] == "any_medal")]
    (row,) = chosen.to_dict("records")
    return row


def test_complete_seeds(store: Store, files: tuple[list[Path], Any]) -> None:
    paths, medals = files
    assert main(["import-report", *map(str, paths), "--group", "theirs", "--store", store.root]) == 0
    row, shares = low(store, "theirs"), medals.mean(axis=0)
    assert row["mean"] == pytest.approx(shares.mean())
    assert row["sem"] == pytest.approx(stats.sem(shares))
    assert row["sem"] < row["mean"] - row["both_low"], "other competitions would differ by more"


def test_a_competition_that_a_report_lacks_is_padded_with_a_failure(
    store: Store, files: tuple[list[Path], Any]
) -> None:
    paths, medals = files
    drop(paths[0], LOW[0])
    for seeds, group in (("file", "by-file"), ("compact", "compact")):
        options = ["--group", group, "--seeds", seeds, "--store", store.root]
        assert main(["import-report", *map(str, paths), *options]) == 0
    padded = medals.copy()
    padded[0, 0] = 0
    shares = padded.mean(axis=0)
    assert low(store, "by-file", "--incomplete", "fail")["mean"] == pytest.approx(shares.mean())
    assert low(store, "by-file", "--incomplete", "fail")["sem"] == pytest.approx(stats.sem(shares))
    assert low(store, "by-file", "--incomplete", "exclude")["seeds"] == 2
    assert low(store, "by-file")["missing"] == 1
    moved = medals.copy()
    moved[0] = [medals[0, 1], medals[0, 2], 0]  # the n-th report of a competition is its seed n
    shares = moved.mean(axis=0)
    assert low(store, "compact", "--incomplete", "fail")["sem"] == pytest.approx(stats.sem(shares))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("competition_id", "../../x", "is not the id of a competition"),
        ("competition_id", "a" * 300, "is not the id of a competition"),
        ("competition_id", "x\0", "is not the id of a competition"),
        ("gold_threshold", math.nan, f"{LOW[0]} has no finite gold_threshold"),
        ("created_at", "9999-12-31T23:59:59", f"{LOW[0]} was created in the year 9999"),
        ("submission_path", "\ud800", f"the submission_path of {LOW[0]} is no text"),
        (None, None, "has no competition_reports to import"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_is(
    store: Store, tmp_path: Path, field: str | None, value: Any, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids are names of folders: one with dots led out of the group's."""
    sound = report(LOW[0], medal=True)
    content = [sound, {**sound, field: value}] if field else []
    (tmp_path / "x.json").write_text(json.dumps({"competition_reports": content}))
    assert main(["import-report", str(tmp_path / "x.json"), "--group", "g", "--store", store.root]) == 1
    assert says in capsys.readouterr().err
    assert not list(tmp_path.rglob("grade*.json"))


def test_a_stated_cutoff_divides_the_competitions(
    store: Store, files: tuple[list[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Competitions that ended up to the month of the cutoff are before it."""
    paths, medals = files
    assert main(["import-report", *map(str, paths), "--group", "g", "--agent", "mine", "--store", store.root]) == 0
    pages = store.local("reports", "g")
    assert "Before and after the cutoff" not in (pages / "report.html").read_text()
    month = "2019-07"
    assert main(["report", "g", "--cutoff", f"mine={month}", "--store", store.root]) == 0
    page = (pages / "report.html").read_text()
    before = np.array([str(registry.get(name).facts.ended) <= month for name in LOW])
    shares = [f"{100 * medals[side].mean():.1f} ({side.sum()})" for side in (before, ~before)]
    row = next(line for line in page.split("<h3>Before and after the cutoff")[1].splitlines() if month in line)
    cells = [cell.rpartition(">")[2] for cell in row.split("</td>")]
    assert cells[:4] == [month, "Any medal", *shares]
    capsys.readouterr()
    for wrong in ("mine", "mine=2019", "=2019-07", "mine=2019-13"):
        assert main(["report", "g", "--cutoff", wrong, "--store", store.root]) == 2
        assert "is not of the form AGENT=YYYY-MM" in capsys.readouterr().err


def test_ten_groups_are_reported_together(store: Store, files: tuple[list[Path], Any]) -> None:
    paths, _ = files
    groups = [f"a-run-group-with-a-rather-long-name-of-the-kind-that-people-choose-{n}" for n in range(10)]
    for group in groups:
        assert main(["import-report", str(paths[0]), "--group", group, "--store", store.root]) == 0
    assert main(["report", *groups, "--store", store.root]) == 0
    (page,) = Path(str(store.local("reports"))).glob("*others*/report.html")
    assert groups[9] in page.read_text()


def test_a_group_that_lacks_planned_runs_is_not_called_complete(store: Store, files: tuple[list[Path], Any]) -> None:
    paths, _ = files
    assert main(["import-report", *map(str, paths), "--group", "theirs", "--store", store.root]) == 0
    pages = store.local("reports", "theirs")
    assert pages is not None
    assert "Every run is graded." in (pages / "report.md").read_text()
    plan = {"competitions": sorted([*LOW, "AI4Code"]), "seeds": SEEDS, "agent": "theirs", "edition": "v1"}
    append(store, "theirs", None, "planned", **plan)
    assert main(["report", "theirs", "--store", store.root]) == 0
    for name in ("report.md", "report.html"):
        text = (pages / name).read_text()
        assert "Every run is graded" not in text
        assert "Not complete: 3 planned runs" in text
    assert "seed 2: planned and never run" in (pages / "report.html").read_text()
    gaps = read_table(store, "aggregates/gaps", ["theirs"])
    assert set(zip(gaps["competition_id"], gaps["treatment"], strict=True)) == {("AI4Code", "not counted")}


def as_json(store: Store, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main(["report", *arguments, "--json", "--store", store.root]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_has_the_published_figures(
    store: Store, files: tuple[list[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    paths, medals = files
    assert main(["import-report", *map(str, paths), "--group", "theirs", "--store", store.root]) == 0
    (found,) = as_json(store, capsys, "theirs")
    assert (found["experiment_id"], found["num_seeds"], list(found["splits"])) == ("theirs", SEEDS, ["low"])
    shares = 100 * medals.mean(axis=0)
    assert found["splits"]["low"]["any_medal"] == pytest.approx({"mean": shares.mean(), "sem": stats.sem(shares)})
    assert found["splits"]["low"]["padded"] == 0
    assert found["splits"]["low"]["valid_submission"] == {"mean": 100.0, "sem": 0.0}


def test_an_imported_agent_has_a_name(
    store: Store, files: tuple[list[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["import-report", str(files[0][0]), "--group", "g", "--agent", " ", "--store", store.root]
    assert main(arguments) == 2
    assert "--agent: an agent needs a name" in capsys.readouterr().err


def test_each_split_has_seeds_of_its_own(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the published script counts, which is called once for each split: three seeds of Low, one of the others."""
    medals = {"low": 11, "medium": 18, "high": 5}
    files = []
    for seed in range(SEEDS):
        reports = [
            report(name, place < medals[split])
            for split in (medals if seed == 0 else ["low"])
            for place, name in enumerate(registry.list(split))
        ]
        files.append(tmp_path / f"{seed}.json")
        files[-1].write_text(json.dumps({"competition_reports": reports}))
    assert main(["import-report", *map(str, files), "--group", "theirs", "--store", store.root]) == 0
    (found,) = as_json(store, capsys, "theirs")
    figures = {split: (each["num_seeds"], each["any_medal"]) for split, each in found["splits"].items()}
    assert figures["low"] == (3, {"mean": pytest.approx(50.0), "sem": 0.0})
    assert figures["medium"] == (1, {"mean": pytest.approx(100 * 18 / 38), "sem": None})
    assert figures["high"] == (1, {"mean": pytest.approx(100 * 5 / 15), "sem": None})
    assert figures["all"][0] == 3, "the published script pads the seeds of all 75, too"
    page = (store.local("reports", "theirs") or Path()) / "report.md"
    assert "50.00 ± 0.00 | 47.37 ± n/a | 33.33 ± n/a" in page.read_text()


def test_groups_of_an_experiment_are_its_seeds_and_missing_seeds_are_padded(
    store: Store, files: tuple[list[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Three groups with one report each; the first lacks a competition, so its second report becomes the first seed."""
    paths, medals = files
    drop(paths[0], LOW[0])
    for number, path in enumerate(paths):
        assert main(["import-report", str(path), "--group", f"g{number}", "--store", store.root]) == 0
    groups = ["g0", "g1", "g2"]
    assert len(as_json(store, capsys, *groups)) == 3, "each group is an experiment of its own"
    for wanted in (2, 3, 5):
        (found,) = as_json(store, capsys, *groups, "--experiment-id", "x", "--num-seeds", str(wanted))
        padded = np.zeros((len(LOW), 5))
        padded[:, :SEEDS] = medals
        padded[0, :SEEDS] = [medals[0, 1], medals[0, 2], 0]
        shares = 100 * padded[:, :wanted].mean(axis=0)
        low = found["splits"]["low"]
        assert low["any_medal"] == pytest.approx({"mean": shares.mean(), "sem": stats.sem(shares)}), wanted
        assert low["attempts"] + low["padded"] == wanted * len(LOW)
        assert low["competitions"] == len(LOW)
    (one,) = as_json(store, capsys, "g1", "--num-seeds", "1", "--split", "low")
    assert one["splits"]["low"]["any_medal"]["sem"] is None
    assert main(["report", "g1", "--num-seeds", "3", "--store", store.root]) == 2, "only with --json"


def test_agents_of_one_group_are_not_averaged(
    store: Store, files: tuple[list[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    paths, _ = files
    assert main(["import-report", *map(str, paths), "--group", "both", "--agent", "a", "--store", store.root]) == 0
    grades = read_table(store, "grades", ["both"])
    mixed = grades.assign(agent=["ab"[seed % 2] for seed in grades["seed"]]).drop(columns="run_group")
    write_frame(store, "grades", "both", mixed)
    for arguments in (["compare", "both", "both@v1"], ["report", "both", "--json"]):
        capsys.readouterr()
        assert main([*arguments, "--store", store.root]) == 1
        assert "group 'both' has runs of several agents (a, b)" in capsys.readouterr().err
    assert main(["report", "both", "--store", store.root]) == 0


def test_groups_of_several_editions_are_compared_with_a_warning(
    store: Store, files: tuple[list[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    paths, _ = files
    for group, edition in (("old", "v1"), ("new", "v2")):
        options = ["--group", group, "--agent", "same", "--edition", edition, "--store", store.root]
        assert main(["import-report", str(paths[0]), *options]) == 0
    capsys.readouterr()
    assert main(["compare", "old", "new", "--store", store.root]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("Conditions differ: edition (old: v1, new: v2)\nA: old  B: new\n")
    assert "the conditions of imported grades are unknown" in told.err
    assert main(["compare", "old@v2", "new", "--store", store.root]) == 1
    assert "group 'old' is not graded as v2, but as v1" in capsys.readouterr().err
    for name, says in (("old@v3", "unknown edition 'v3'"), ("old/x@v1", "run group 'old/x': use letters")):
        assert main(["compare", name, "new", "--store", store.root]) == 2
        assert says in capsys.readouterr().err
    assert main(["compare", "old", "old", "--store", store.root]) == 2
    assert "old is compared with itself; name two groups" in capsys.readouterr().err
    assert main(["compare", "old@v1", "new@v2", "--store", store.root]) == 0
    assert main(["report", "old", "new", "--store", store.root]) == 0
    page = (store.local("reports", "old+new") or Path()) / "report.md"
    assert "Not a ranking: the conditions differ in what is not known of imported results, edition." in page.read_text()
    assert main(["report", "old", "new", "--json", "--experiment-id", "x", "--store", store.root]) == 1
    assert "scores of editions v1, v2 cannot be added up" in capsys.readouterr().err
