"""Cells that pandas would write otherwise than Kaggle: ids such as `007`, `1e5` and `NA` stay as they are."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from competitions.competition import Competition
from competitions.preparing.download import Download
from competitions.proposals import layout
from competitions.proposals.about import About
from competitions.proposals.folder import write_folder
from competitions.proposals.layout import read_layout
from competitions.proposals.propose import propose
from competitions.tables.csv_blocks import MAX_HEADER
from storage.datasets import prepare

COUNT = 60
NUMBERS = range(COUNT)
CELLS = {
    "zeros": [f"{number:04}" for number in NUMBERS],
    "plus": [f"+{number}" for number in NUMBERS],
    "exponents": [f"{number % 10}e{number // 10}" for number in NUMBERS],
    "long beside a gap": ["", *(f"12345678901234567{number:02}" for number in NUMBERS[1:])],
    "longer": [f"1234567890123456789012{number:02}" for number in NUMBERS],
    "hexadecimal": [f"0x{number:02X}" for number in NUMBERS],
    "the same number": [f"{number // 2:0{2 + 2 * (number % 2)}}" for number in NUMBERS],
    "missing": ["NA", "nan", "None", "null", *(f"c{number}" for number in NUMBERS[4:])],
    "missing beside numbers": ["NA", *(f"{number}" for number in NUMBERS[1:])],
    "gap": ["", *(f"{number}" for number in NUMBERS[1:])],
    "dates": [f"2024-01-{1 + number % 28:02}" for number in NUMBERS],
}
IDENTIFYING = [name for name in CELLS if name not in ("long beside a gap", "gap", "dates")]
CLASSES = {
    "zeros": ["01", "02", "10"],
    "missing": ["None", "mild", "bad"],
    "booleans": ["True", "False", "True"],
    "capitals": ["TRUE", "FALSE", "TRUE"],
}


def text(**columns: list[str]) -> str:
    return pd.DataFrame(columns).to_csv(index=False)


def prepared(top: Path, files: dict[str, str]) -> tuple[Competition, Path]:
    """The competition that is proposed for a download, and its prepared dataset."""
    raw, folder, about = top / "raw", top / "own" / "some", About("some", pages=(("evaluation", "Accuracy."),))
    for name, content in files.items():
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_text(content)
    download = Download.open(str(raw))
    layout = read_layout(download)
    assert write_folder(folder, about, propose(layout, about), layout, download) is None
    prepare("some", raw, top / "prepared", "v1", None, folder)
    return Competition.load(folder), top / "prepared"


def cells(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def train_and_sample(ids: list[str], classes: list[str], **further: list[str]) -> dict[str, str]:
    y = [classes[number % len(classes)] for number in range(len(ids))]
    size = [str(number * 37 % 101 / 7) for number in range(len(ids))]
    half = len(ids) // 2
    return {
        "train.csv": text(id=ids[:half], size=size[:half], y=y[:half], **{k: v[:half] for k, v in further.items()}),
        "test.csv": text(id=ids[half:], size=size[half:], **{k: v[half:] for k, v in further.items()}),
        "sample_submission.csv": text(id=ids[half:], y=y[half:]),
    }


@pytest.mark.parametrize("name", IDENTIFYING)
def test_ids_are_those_of_kaggle_and_are_told_apart(name: str, tmp_path: Path) -> None:
    ids = CELLS[name]
    files = train_and_sample([*ids, *(f"9{cell}" for cell in ids)], ["cat", "dog", "cow"])
    competition, dataset = prepared(tmp_path, files)
    train, test = (cells(dataset / "public" / f"{part}.csv") for part in ("train", "test"))
    assert sorted([*train["id"], *test["id"]]) == sorted(ids)
    for role in ("sample_submission", "gold_submission"):
        assert set(cells(dataset / getattr(competition.facts.files, role))["id"]) == {*test["id"]}
    gold = dataset / competition.facts.files.gold_submission
    assert competition.grade(gold, dataset) == 1
    backwards = tmp_path / "submission.csv"
    cells(gold)[::-1].to_csv(backwards, index=False)
    assert competition.grade(backwards, dataset) == 1


def test_ids_that_an_agent_has_read_as_numbers_are_accepted(tmp_path: Path) -> None:
    competition, dataset = prepared(tmp_path, train_and_sample(CELLS["zeros"], ["cat", "dog", "cow"]))
    submission = tmp_path / "submission.csv"
    pd.read_csv(dataset / competition.facts.files.gold_submission).to_csv(submission, index=False)
    assert "\n0" not in submission.read_text()
    assert competition.grade(submission, dataset) == 1


@pytest.mark.parametrize("name", CELLS)
def test_other_columns_that_name_something(name: str, tmp_path: Path) -> None:
    files = train_and_sample([f"r{number}" for number in range(2 * COUNT)], ["a", "b"], owner_id=CELLS[name] * 2)
    _, dataset = prepared(tmp_path, files)
    found = pd.concat([cells(dataset / "public" / f"{part}.csv") for part in ("train", "test")])
    theirs = cells(tmp_path / "raw" / "train.csv")
    assert dict(zip(found["id"], found["owner_id"], strict=True)) == dict(
        zip(theirs["id"], theirs["owner_id"], strict=True)
    )


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str, tmp_path: Path) -> None:
    ids = [f"r{number}" for number in range(2 * COUNT)]
    competition, dataset = prepared(tmp_path, train_and_sample(ids, CLASSES[name]))
    assert set(cells(dataset / "public" / "train.csv")["y"]) == {*CLASSES[name]}
    gold = dataset / competition.facts.files.gold_submission
    assert set(cells(gold)["y"]) <= {*CLASSES[name]}
    assert competition.grade(gold, dataset) == 1


def test_measurements_stay_numbers_and_code_stays_short(tmp_path: Path) -> None:
    further = {"age": CELLS["gap"] * 2, "weight": ["0.50", "1e-05", "+2.5"] * 40, "week": ["01", "02"] * 60}
    files = train_and_sample([f"r{number}" for number in range(2 * COUNT)], ["a", "b"], **further)
    competition, _ = prepared(tmp_path, files)
    assert 'table = raw.read_csv("train.csv")\n' in (competition.folder / "prepare.py").read_text()


def test_files_are_found_by_ids_with_zeros(tmp_path: Path) -> None:
    files = train_and_sample([f"{number:06}" for number in range(2 * COUNT)], ["a", "b"])
    pictures = {f"{'train' if number < COUNT else 'test'}/{number:06}.png": "" for number in range(2 * COUNT)}
    _, dataset = prepared(tmp_path, files | pictures)
    for part in ("train", "test"):
        names = {path.stem for path in (dataset / "public" / part).iterdir()}
        assert names == set(cells(dataset / "public" / f"{part}.csv")["id"])


def test_tables_are_joined_by_ids_of_the_same_spelling(tmp_path: Path) -> None:
    files = train_and_sample([f"{number:03}" for number in range(70, 70 + 2 * COUNT)], ["a", "b"])
    later = [str(number) for number in range(100, 70 + 2 * COUNT)]
    _, dataset = prepared(tmp_path, files | {"events.csv": text(id=later, event=["x"] * len(later))})
    known = cells(dataset / "public" / "events.csv")["id"]
    assert set(known) == {*later}.intersection(cells(tmp_path / "raw" / "train.csv")["id"])


def test_ids_that_tables_spell_in_two_ways_are_compared_as_numbers(tmp_path: Path) -> None:
    files = train_and_sample([str(number) for number in range(2 * COUNT)], ["a", "b"])
    ids = cells_of(files["sample_submission.csv"])["id"].str.zfill(6)
    files["sample_submission.csv"] = text(id=list(ids), y=["a"] * COUNT)
    pictures = {f"{'train' if number < COUNT else 'test'}/{number:06}.png": "" for number in range(2 * COUNT)}
    _, dataset = prepared(tmp_path, files | pictures)
    assert len([*(dataset / "public" / "train").iterdir()]) == len(cells(dataset / "public" / "train.csv"))


def cells_of(content: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(content), dtype=str, keep_default_na=False)


def test_texts_of_json_lines(tmp_path: Path) -> None:
    files = train_and_sample([f"{number:04}" for number in range(2 * COUNT)], ["a", "b"])
    rows = [{**row, "date": "2024-01-02"} for row in cells_of(files.pop("train.csv")).to_dict("records")]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    _, dataset = prepared(tmp_path, files | {"train.jsonl": lines})
    found = [json.loads(line) for line in (dataset / "public" / "train.jsonl").read_text().splitlines()]
    by_id = {row["id"]: row for row in rows}
    assert found
    assert all(row == by_id.get(row["id"]) for row in found)


def test_lines_as_long_as_a_file_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = train_and_sample([f"r{number}" for number in range(2 * COUNT)], ["a", "b"])
    files["wide.csv"] = "a," * MAX_HEADER
    files["long.csv"] = f"id,text\nr1,x\nr2,{'x' * 5000}\n" + "r3,x\n" * 9
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(layout, "_MOST_BYTES", 4000)
    found = {table.name: table for table in read_layout(Download.open(str(tmp_path))).tables}
    assert "wide.csv" not in found
    assert found["long.csv"].rows["id"].tolist() == ["r1"]
    assert found["long.csv"].count > 1
    assert 1 < len(found["train.csv"].rows) <= COUNT
