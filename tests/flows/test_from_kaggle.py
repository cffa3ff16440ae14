"""`mlebench new --from-kaggle`, from a slug on a local Kaggle server to a graded run."""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.settings import get_settings
from competitions.proposals.about import About
from flows.cli import main
from flows.commands import from_kaggle
from storage.store import Store
from storage.tables import read_table
from tests.flows.test_integrity_violations import provided
from tests.kaggle_server import KaggleServer
from tests.sandbox.gateway.llm import OPENAI_USAGE, ScriptedLLM

ID = "planted-passengers"
EVALUATION = """<h2>Evaluation</h2><p>Submissions are evaluated on <b>classification accuracy</b>, the percentage of
predicted labels that are correct.</p><script>track()</script>"""


@pytest.fixture
def planted(kaggle: KaggleServer, packs: Path) -> KaggleServer:
    """A competition that is in no catalog."""
    kaggle.archives[ID] = (packs / "spaceship-titanic" / "raw.zip").read_bytes()
    kaggle.about[ID] = {
        "title": "Planted Passengers",
        "category": "Playground",
        "reward": "Swag",
        "deadline": "2023-04-30T23:59:00Z",
        "teamCount": 3,
        "evaluationMetric": "Categorization Accuracy",
    }
    kaggle.files[ID] = [
        {"name": name, "totalBytes": 1000} for name in ("sample_submission.csv", "test.csv", "train.csv")
    ]
    kaggle.teams[ID] = [
        {"teamId": n, "teamName": f"t{n}", "score": score} for n, score in enumerate(["0.9", "0.8", "0.4"])
    ]
    kaggle.pages[ID] = [
        {"name": "Description", "content": "<p>Find who was <i>transported</i>.</p>"},
        {"name": "Evaluation", "content": EVALUATION},
        {"name": "data-description", "content": "- `train.csv`: the passengers"},
        {"name": "rules", "content": "Do not share."},
    ]
    return kaggle


def text_of(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.iterdir()) if path.is_file())


def test_from_a_slug_to_a_graded_submission(
    planted: KaggleServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, own = tmp_path / "store", tmp_path / "own"
    new = ["new", "--from-kaggle", ID, "--into", str(own), "--store", str(store)]
    assert main(new) == 2, "nobody can be asked"
    shown = capsys.readouterr()
    assert "download: 3 files, 3.0 kB" in shown.out
    assert "give --yes to download" in shown.err
    assert not planted.asked("storage"), "nothing is downloaded before the plan is accepted"

    assert main([*new, "--yes"]) == 0
    shown = capsys.readouterr()
    assert "metric: accuracy  (the evaluation page says 'categorization')" in shown.out
    folder = own / ID
    text = text_of(folder)
    assert "ended: 2023-04" in text
    assert "gold: 0.9" in text
    assert "Find who was *transported*." in text
    assert "track()" not in text, "scripts are no text"
    assert "Do not share" not in text
    assert "accuracy(" in (folder / "grade.py").read_text()
    marks = [line for line in text.splitlines() if "CHECK: " in line]
    assert len(marks) == 1, "the person has to read the texts"

    check, run = _next_steps(shown.out)
    assert f"  export MLEBENCH_COMPETITIONS={own}\n" in shown.out
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(own))
    get_settings.cache_clear()
    assert main(check) == 1
    assert "description.md, line 1: the texts are those of Kaggle" in capsys.readouterr().out
    assert main([*run, "--dry-run"]) == 0
    assert f"mlebench: {ID} has 1 place marked with CHECK, not decided yet" in capsys.readouterr().err
    assert main([*run, "--run-group", "marked"]) == 0
    note = f"1 competition had 1 CHECK mark when it was run: {ID}"
    assert f"\n{note}\n" in capsys.readouterr().out
    assert read_table(Store(str(store)), "runs", ["marked"])["check_marks"].tolist() == [1]
    assert note in (store / "reports" / "marked" / "report.html").read_text()
    description = folder / "description.md"
    description.write_text(description.read_text().partition("\n")[2])
    assert main(check) == 0, capsys.readouterr()
    assert main([*run, "--run-group", "first"]) == 0
    shown = capsys.readouterr()
    assert ID in shown.out
    assert "not decided yet" not in shown.out + shown.err
    assert "CHECK mark" not in shown.out

    downloads = len(planted.asked("storage"))
    (folder / "prepare.py").write_text((folder / "prepare.py").read_text() + "# edited\n")
    prepare = [sys.executable, "-m", "flows.cli", "prepare", "-c", ID, "--store", str(store)]
    again = subprocess.run(prepare, capture_output=True, text=True)  # this process has imported the first prepare.py
    assert again.returncode == 0, again.stderr
    assert "other code" not in again.stdout, "it was prepared anew by itself, from the download that is kept"
    assert len(planted.asked("storage")) == downloads
    prepared = next(store.glob(f"prepared/**/{ID}/**/private/test.csv"))
    with prepared.open(newline="") as file:
        assert next(csv.reader(file)) == ["PassengerId", "Transported"]
    capsys.readouterr()
    assert main(["grade-sample", str(prepared), ID, "--store", str(store)]) == 0
    assert json.loads(capsys.readouterr().out)["score"] == 1.0

    assert main(["report", "first", "--store", str(store)]) == 0
    (grade,) = read_table(Store(str(store)), "grades", ["first"]).to_dict("records")
    assert (grade["competition_id"], grade["outcome"]) == (ID, "valid")
    assert 0.0 <= grade["score"] <= 1.0
    page = (store / "reports" / "first" / "report.html").read_text()
    assert ID in page
    assert "CHECK mark" not in page


def _next_steps(shown: str) -> list[list[str]]:
    """The commands that are printed, as a person enters them."""
    lines = [line.strip() for line in shown.splitlines() if line.startswith("  mlebench ")]
    return [shlex.split(line)[1:] for line in lines]


def test_without_kaggle_a_local_download_is_enough(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path))
    (tmp_path / f"{ID}.zip").write_bytes((packs / "dog-breed-identification" / "raw.zip").read_bytes())
    own = tmp_path / "own"
    assert main(["new", "--from-kaggle", ID, "--raw-dir", str(tmp_path), "--into", str(own)]) == 0
    shown = capsys.readouterr().out
    assert "note: title, pages and leaderboard are missing: " in shown
    assert "the cells of breed are the names of the submitted columns" in shown
    assert "  competition.yaml, line 12: Kaggle's leaderboard is not known" in shown


def test_a_name_that_kaggle_does_not_know_is_no_error_with_a_local_download(
    planted: KaggleServer, packs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del planted.about[ID]
    (tmp_path / f"{ID}.zip").write_bytes(planted.archives[ID])
    own, here = tmp_path / "own", ["--raw-dir", str(tmp_path), "--store", str(tmp_path / "store")]
    assert main(["new", "--from-kaggle", ID, "--into", str(own), *here]) == 0
    shown = capsys.readouterr().out
    assert "pages and leaderboard are missing: planted-passengers: Kaggle has nothing of that name" in shown
    check, run = _next_steps(shown)
    assert check == ["check", ID, *here]
    assert run == ["run", "-c", ID, "--agent", "baseline", *here]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["other", "--from-kaggle", ID], 2, f"--from-kaggle takes no other ID: it is {ID}, because the download has"),
        (["--from-kaggle", "here"], 1, "here exists already; remove it, or choose another directory with --into"),
        (["--from-kaggle", "https://www.kaggle.com/competitions/here/overview"], 1, "here exists already; remove it"),
        (["--from-kaggle", "kaggle.com/c/here?tab=data"], 1, "here exists already"),
        (["--from-kaggle", ID, "--raw-dir", "nowhere"], 2, "--raw-dir nowhere is not a directory"),
        (
            ["--from-kaggle", ID, "--raw-dir", "here"],
            1,
            f"here/{ID}.zip does not exist; put the download of {ID} there",
        ),
    ],
)
def test_what_is_asked_for_wrongly_is_refused_before_kaggle_is_asked(
    kaggle: KaggleServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert main(["new", *arguments, "--store", str(tmp_path / "store")]) == code
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out
    assert not kaggle.requests


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files": []}, "it has no data to download, as simulations, hackathons and private competitions"),
        ({"about": None}, "Kaggle has nothing of that name"),
    ],
)
def test_what_cannot_be_used_is_refused_before_a_download(
    planted: KaggleServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], message: str
) -> None:
    if "files" in change:
        planted.files[ID] = []
    else:
        del planted.about[ID]
    assert main(["new", "--from-kaggle", ID, "--into", str(tmp_path), "--store", str(tmp_path / "s"), "--yes"]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / ID).exists()


UNREADABLE = f"{ID}: Kaggle's answer cannot be read ("


@pytest.mark.parametrize("change", [{"deadline": "soon"}, {"deadline": 5}, {"teamCount": "many"}])
def test_facts_that_cannot_be_read_are_one_line(
    planted: KaggleServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object]
) -> None:
    planted.about[ID] |= change
    new = ["new", "--from-kaggle", ID, "--into", str(tmp_path), "--store", str(tmp_path / "s"), "--yes"]
    assert main(new) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith(f"mlebench: {UNREADABLE}")
    assert shown.err.count("\n") == 1
    assert not shown.out
    (tmp_path / f"{ID}.zip").write_bytes(planted.archives[ID])
    assert main([*new, "--raw-dir", str(tmp_path)]) == 0, "a download is enough"
    assert f"pages and leaderboard are missing: {UNREADABLE}" in capsys.readouterr().out


def test_further_answers_that_cannot_be_read_are_notes(
    planted: KaggleServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.pages[ID] = [5]  # type: ignore[list-item]
    planted.teams[ID] = [{"teamId": 1, "teamName": "t", "score": "0.9", "submissionDate": "soon"}]
    new = ["new", "--from-kaggle", ID, "--into", str(tmp_path), "--store", str(tmp_path / "s"), "--yes"]
    assert main(new) == 0
    shown = capsys.readouterr().out
    assert f"note: no pages: {UNREADABLE}" in shown
    assert f"note: no leaderboard: {UNREADABLE}" in shown
    planted.files[ID] = [{"name": "train.csv", "totalBytes": "much"}]
    assert main([*new[:4], str(tmp_path / "b"), *new[5:]]) == 1
    assert UNREADABLE in capsys.readouterr().err


def test_rules_that_are_not_accepted_are_named_with_the_plan(
    planted: KaggleServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.refused[ID] = "You must accept this competition's rules before you can download"
    assert main(["new", "--from-kaggle", ID, "--into", str(tmp_path), "--store", str(tmp_path / "s"), "--yes"]) == 1
    shown = capsys.readouterr()
    rules = (
        f"the competition's rules are not accepted yet; accept them at https://www.kaggle.com/competitions/{ID}/rules"
    )
    assert f"note: {ID}: {rules}" in shown.out
    assert rules in shown.err


def test_a_running_code_competition_is_named_as_such(
    planted: KaggleServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.about[ID] |= {"isKernelsSubmissionsOnly": True, "evaluationMetric": ""}
    planted.teams[ID] = []
    assert main(["new", "--from-kaggle", ID, "--into", str(tmp_path), "--store", str(tmp_path / "s"), "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "note: it is a code competition" in shown
    assert "note: Kaggle has no metric in its record" in shown
    assert "note: no leaderboard: " in shown
    assert "metric: accuracy  (the evaluation page says 'accuracy')" in shown, "the page names it"


class Writer(ScriptedLLM):
    """Answers with these files, by their names."""

    files: dict[str, str]

    def _whole(self, path: str, body: Any) -> Any:
        text = "\n".join(f"=== FILE {name} ===\n{content}\n=== END ===" for name, content in self.files.items())
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}], "usage": OPENAI_USAGE}


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    writer = Writer()
    with provided(writer, monkeypatch):
        yield writer


def test_a_model_decides_what_is_marked_and_a_person_is_told_to_read_it(
    planted: KaggleServer,
    writer: Writer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    writer.files = {
        "description.md": "# Passengers\n\n## Overview\n\nFind who arrived elsewhere.\n\n## Data\n\n- `train.csv`\n"
        "- `test.csv`\n- `sample_submission.csv`\n\n## Evaluation\n\nAccuracy; higher is better.\n\n## Submission\n\n"
        "```\nPassengerId,Transported\n0013_01,False\n```\n",
        "prepare.py": "import os\n\n\ndef prepare(raw, edition, params):\n    os.remove('x')\n",
        "grade.py": "def grade(:\n",
        "competition.yaml": "id: other\n",
    }
    own, store = tmp_path / "own", tmp_path / "store"
    new = ["new", "--from-kaggle", ID, "--into", str(own), "--store", str(store), "--yes", "--with-model", "gpt-4o"]
    assert main(new) == 0
    shown = capsys.readouterr().out
    assert "gpt-4o wrote description.md (unknown cost)" in shown, "the provider of tests has no list prices"
    assert "not taken over: prepare.py: line 1 imports os" in shown
    assert "not taken over: grade.py: it is no Python" in shown
    assert "not taken over: competition.yaml: it is none of the files to change" in shown
    assert "0 places marked" in shown
    (request,) = writer.requests
    prompt = request.body["messages"][0]["content"]
    assert "percentage of predicted labels" in " ".join(prompt.split()), "the evaluation page"
    assert "train.csv: PassengerId, HomePlanet" in prompt
    assert "competitions.scoring.metrics.ranking.roc_auc(" in prompt
    record = yaml.safe_load((own / ID / "written_by.yaml").read_text())
    assert (record["model"], record["files"], record["input_tokens"]) == ("gpt-4o", ["description.md"], 1000)
    assert record["marked_before"][0].startswith("description.md, line 1: ")
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(own))
    get_settings.cache_clear()
    main(_next_steps(shown)[0])
    assert "gpt-4o wrote description.md on" in capsys.readouterr().out


def test_without_the_model_the_folder_is_as_proposed(
    planted: KaggleServer, writer: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer.fail = (401, {"error": {"message": "wrong key"}})
    new = ["new", "--from-kaggle", ID, "--into", str(tmp_path), "--store", str(tmp_path / "s"), "--yes"]
    assert main([*new, "--with-model", "gpt-4o"]) == 0
    shown = capsys.readouterr()
    assert "gpt-4o was not asked: " in shown.err
    assert "1 place marked with CHECK" in shown.out
    assert not (tmp_path / ID / "written_by.yaml").exists()


def test_files_of_a_folder_are_one_line_of_the_plan() -> None:
    files = (("train.csv", 1000), *((f"images/{number}.png", 500) for number in range(40)))
    assert from_kaggle._lines(About(ID, files=files))[1:] == [
        "  download: 41 files, 21.0 kB",
        "       20.0 kB  images/*.png (40 files)",
        "        1.0 kB  train.csv",
    ]
