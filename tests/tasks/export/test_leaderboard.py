"""The submission to the public leaderboard: what the records say, and what is asked for instead of invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from common.units import counted
from competitions import registry
from storage.tables import write_table
from tasks.export.facts import Fact, Record
from tests.flows.test_published_figures import report
from tests.stores import Store
from tests.tasks.export.groups import GROUP, asked, dataset, main, mlebench, once

__all__ = ["asked", "dataset", "once"]


def submission(store: Store, folder: Path, *options: str, run_group: str = GROUP) -> str:
    arguments = ("export", run_group, "--format", "leaderboard", "--output-dir", folder / "out", *options)
    assert mlebench(*arguments, store=store) == 0
    (path,) = (folder / "out").glob("*.leaderboard.md")
    return path.read_text().replace("\\", "")


def row(text: str) -> dict[str, str]:
    """The cells of the leaderboard's row by column."""
    header, _, cells = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line.startswith("|")
    ][:3]
    return dict(zip(header, cells, strict=True))


def recorded(store: Store, **fields: Any) -> None:
    for seed in range(3):
        url = f"{store.run(GROUP, 'diabetes', seed)}/run.json"
        store.write_json(url, {**store.read_json(url), **fields})
    assert mlebench("regrade", GROUP, store=store) == 0


def test_what_the_records_do_not_say_is_asked_for(
    asked: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = submission(asked, tmp_path)
    said = capsys.readouterr().err
    questions = [line for line in text.splitlines() if line.startswith("- ASK: ")]
    assert [line.split(": ")[1] for line in questions] == [
        "feedback from the test set",
        "external data and pretrained models",
        "use of known leaks",
        "source code",
    ]
    assert said.count("mlebench: ASK: ") == 4
    assert '--fact "external-data=..."' in said
    assert "nothing kept the agent from the answers or the web in 3 runs" in text
    cells = row(text)
    assert cells["Agent"] == "mine"
    assert cells["LLM(s) used"] == "gpt-4o"
    assert (cells["Running Time (hours)"], cells["Date"]) == ("0.166667", "2026-01-01")
    assert (cells["Known Leakage"], cells["Source Code Available"]) == ("ASK", "ASK")
    assert "- [ ] The scaffold shows the agent nothing" in text
    assert "1 GiB of memory, of a machine" in text
    assert "| diabetes | demo | 3 |" in text
    assert "time limit: 10 min (published: 24 h)" in text


def test_facts_are_stated_beside_the_records(asked: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(asked, backend="docker", validation_calls=2)
    who = {"run_id": f"{GROUP}-diabetes-0", "competition_id": "diabetes", "seed": 0, "agent": "mine"}
    write_table(asked, "examinations", GROUP, [{"stage": "violations", "runs": 3, "flagged": 1, "by": "static"}])
    write_table(asked, "violations", GROUP, [{**who, "rule": "leak", "severity": "violation"}])
    facts = ("external-data=none", "source-code=https://example.org/agent", "leakage=none", "models=GPT-4o")
    capsys.readouterr()
    text = submission(asked, tmp_path, *(part for fact in facts for part in ("--fact", fact)))
    assert "ASK" not in text + capsys.readouterr().err
    cells = row(text)
    assert cells["LLM(s) used"] == "GPT-4o"
    assert cells["Known Leakage"] == "✓", "what an examination found cannot be denied"
    assert cells["Source Code Available"] == "✓"
    assert "found in 1 run: diabetes | none |" in text
    assert "- [x] The scaffold shows the agent nothing that is derived from the test set." in text
    assert "says only whether a submission is valid (6 requests)" in text


def test_imported_results_have_no_records(store: Store, tmp_path: Path) -> None:
    """The row follows the published rule: every competition of a split, and what was not graded is a failure."""
    low = registry.list("low")
    leaky = [n for n in low if any(i.needs is None for i in registry.get(n).facts.leaks("v1"))]
    files = []
    for seed in range(2):
        reports = [report(name, name in leaky or place % 2 == 0) for place, name in enumerate(low)]
        files.append(tmp_path / f"{seed}.json")
        files[-1].write_text(json.dumps({"competition_reports": reports[seed:]}))
    assert main(["import-report", *map(str, files), "--group", "theirs", "--store", store.root]) == 0
    text = submission(store, tmp_path, run_group="theirs")
    assert text.count("- ASK: ") == 8
    assert "2 results without a record" not in text
    assert "results without a record of the run, as imported ones are" in text
    medals = [name in leaky or place % 2 == 0 for place, name in enumerate(low)]
    shares = [100 * sum(medals) / 22, 100 * sum(medals[1:]) / 22]
    cells = row(text)
    assert cells["Low == Lite (%)"].startswith(f"{sum(shares) / 2:.2f} ± {abs(shares[0] - shares[1]) / 2:.2f}")
    assert cells["Low == Lite (%)"].endswith("[^padded]")
    assert (cells["Medium (%)"], cells["All (%)"]) == ("-", "-")
    assert "[^padded]: 1 run without a grade, counted as failures." in text
    without = next(line for line in text.splitlines() if "with known leaks |" in line)
    assert without.startswith(f"| without {len(leaky)} competition")
    assert text.count("| low |") == 22


def test_competitions_with_leaks_that_were_not_attempted_are_taken_out_as_well(store: Store, tmp_path: Path) -> None:
    low = registry.list("low")
    leaky = [n for n in low if any(i.needs is None for i in registry.get(n).facts.leaks("v1"))]
    sound = [name for name in low if name not in leaky]
    path = tmp_path / "0.json"
    path.write_text(json.dumps({"competition_reports": [report(name, True) for name in sound]}))
    assert main(["import-report", str(path), "--group", "theirs", "--store", store.root]) == 0
    text = submission(store, tmp_path, run_group="theirs")
    assert f"| without {counted(len(leaky), 'competition')} with known leaks | 100.00 |" in text
    assert f"Known leaks: {', '.join(leaky)}." in text


def test_what_counts_as_a_failure_only_in_all_is_told(store: Store, tmp_path: Path) -> None:
    """Every split is complete, but "all" has the three seeds of one of them."""
    splits = {split: registry.list(split) for split in ("low", "medium", "high")}
    files = []
    for seed in range(3):
        names = [name for split, listed in splits.items() if split == "low" or not seed for name in listed]
        files.append(tmp_path / f"{seed}.json")
        files[-1].write_text(json.dumps({"competition_reports": [report(name, True) for name in names]}))
    assert main(["import-report", *map(str, files), "--group", "theirs", "--store", store.root]) == 0
    text = submission(store, tmp_path, run_group="theirs")
    lacking = 2 * (len(splits["medium"]) + len(splits["high"]))
    assert row(text)["Low == Lite (%)"] == "100.00 ± 0.00"
    assert row(text)["All (%)"].endswith("[^padded]")
    assert f"[^padded]: {lacking} runs without a grade, counted as failures." in text


@pytest.mark.parametrize(
    ("records", "stated", "answer"),
    [
        (None, None, None),
        (None, "no", False),
        (None, "None", False),
        (None, "not known yet", None),
        (None, "not checked", None),
        (None, "No leaks? yes it used leaks", None),
        (None, "yes, it shows the test score", True),
        (None, "https://example.org/agent", True),
        (False, None, False),
        (False, "none", False),
        (False, "yes, it shows the test score", True),
        (False, "not checked", None),
        (True, "none", True),
    ],
)
def test_only_a_plain_no_is_a_denial(records: bool | None, stated: str | None, answer: bool | None) -> None:
    text = None if records is None else "what the records say"
    fact = Fact("leakage", Record(text, "nobody looked", records), stated)
    assert fact.answer is answer
    assert fact.known is (answer is not None)
    if stated and not fact.known:
        assert f"{stated!r} is neither yes nor no" in fact.question


def test_an_unclear_answer_is_asked_for_again(asked: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = ("feedback=not known yet", "leakage=not checked", "source-code=not yet")
    text = submission(asked, tmp_path, *(part for fact in facts for part in ("--fact", fact)))
    assert "- [ ] The scaffold shows the agent nothing" in text
    assert (row(text)["Known Leakage"], row(text)["Source Code Available"]) == ("ASK", "ASK")
    said = capsys.readouterr().err
    assert '\'not checked\' is neither yes nor no. Give it with --fact "leakage=no" or --fact "leakage=yes, ...' in said


def test_a_fact_is_stated_once(asked: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("export", GROUP, "--format", "leaderboard", "--output-dir", tmp_path)
    assert mlebench(*arguments, "--fact", "leakage=no", "--fact", "leakage=yes", store=asked) == 2
    assert "--fact leakage=... is given twice; give one" in capsys.readouterr().err


@pytest.mark.parametrize("fact", ["hours", "hours=", "colour=red"])
def test_a_fact_that_is_none_is_a_wrong_use(
    asked: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], fact: str
) -> None:
    arguments = ("export", GROUP, "--format", "leaderboard", "--output-dir", tmp_path, "--fact", fact)
    assert mlebench(*arguments, store=asked) == 2
    assert f"--fact '{fact}' is not of the form NAME=VALUE with a NAME of models, hours," in capsys.readouterr().err
    assert mlebench("export", GROUP, "--fact", "hours=24", store=asked) == 2
    assert "--fact is for --format leaderboard only" in capsys.readouterr().err
