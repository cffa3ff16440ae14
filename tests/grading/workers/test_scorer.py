"""The metric on files of one's own: for every competition, and without any file of its answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from _pytest.mark import ParameterSet

from common.errors import UserError
from competitions import registry
from competitions.competition import Competition
from competitions.editions import Edition
from competitions.facts import OTHER_COLUMNS
from competitions.truth import TruthForm, require_scorable, truth_form
from grading.workers import GradingLimits, Scorer
from grading.workers.endings import Verdict
from grading.workers.limits import GIB, Bounds
from grading.workers.own_truth import OwnTruth
from tests.parity.editions import fixed_in_v2
from tests.prepared import Prepared, PreparedCompetitions

BOUNDS = Bounds(GIB, 20_000, 1 << 20, 4 * GIB, 60, 60)
PERFECT = {
    ("champs-scalar-coupling", "v1"): -math.inf,
    ("champs-scalar-coupling", "v2"): math.log(1e-9),
    ("osic-pulmonary-fibrosis-progression", "v1"): -math.log(70 * math.sqrt(2)),  # as confident as is rewarded
    ("osic-pulmonary-fibrosis-progression", "v2"): -math.log(70 * math.sqrt(2)),
    ("vinbigdata-chest-xray-abnormalities-detection", "v1"): 0.75,  # its known issue `ids-from-zero`
}
"""Where the best score is neither 0 nor 1."""


def cases() -> Iterator[ParameterSet]:
    """Every competition in v1, and in v2 where that changes the grader."""
    for name in registry.list():
        yield pytest.param(name, "v1")
        if fixed_in_v2(registry.get(name), "grade"):
            yield pytest.param(name, "v2")


def score(prepared: Prepared, predictions: Path, truth: Path, edition: Edition, folder: Path) -> Verdict:
    """What a worker says, in this process."""
    competition = prepared.competition
    answers = folder / "given" / competition.facts.files.answers
    answers.parent.mkdir(parents=True, exist_ok=True)
    answers.write_bytes(truth.read_bytes())
    columns = truth_form(competition, prepared.path / "public").columns
    own = OwnTruth(competition, edition, predictions, folder / "given", columns, BOUNDS)  # type: ignore[arg-type]
    return own.score(lambda phase: None, lambda: None)


@pytest.mark.parametrize(("name", "edition"), cases())
def test_the_right_answers_score_as_when_they_are_graded(
    name: str, edition: Edition, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    """The answers serve as somebody's own truth, which has their form."""
    dataset = prepared.get(name, edition)
    files, grade = dataset.competition.facts.files, dataset.competition.grade
    gold = dataset.path / files.gold_submission
    if edition == "v2" and OTHER_COLUMNS not in (submitted := dataset.competition.facts.submission):
        gold = tmp_path / "gold.csv"  # without the features that some answers have, which v2 refuses
        table = pd.read_csv(dataset.path / files.gold_submission, dtype=str, keep_default_na=False)
        names = [files.gold_columns.get(name, name) for name in submitted]
        table.reindex(columns=names, fill_value="1").set_axis(list(submitted), axis=1).to_csv(gold, index=False)
    verdict = score(dataset, gold, dataset.path / files.answers, edition, tmp_path)
    assert verdict.score == pytest.approx(grade(gold, dataset.path, edition), rel=1e-12), verdict


def _centres(cell: str) -> str:
    """Kuzushiji: the character and the middle of each box."""
    parts = str(cell).split() if isinstance(cell, str) else []
    points = []
    for at in range(0, len(parts), 5):
        x, y, width, height = map(int, parts[at + 1 : at + 5])
        points.append(f"{parts[at]} {x + width // 2} {y + height // 2}")
    return " ".join(points)


def _boxes(truth: pd.DataFrame) -> pd.DataFrame:
    """VinBigData: the boxes of each image in one cell."""
    box = truth[["x_min", "y_min", "x_max", "y_max"]].astype(str).agg(" ".join, axis=1)
    cells = truth["class_id"].astype(str) + " 1 " + box
    return cells.groupby(truth["image_id"]).agg(" ".join).rename("PredictionString").reset_index()


OF_ANOTHER_FORM: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "hms-harmful-brain-activity-classification": lambda truth: (
        truth.set_index("eeg_id").pipe(lambda votes: votes.div(votes.sum(axis=1), axis=0)).reset_index()
    ),
    "hubmap-kidney-segmentation": lambda truth: truth.rename(columns={"encoding": "predicted"})[["id", "predicted"]],
    "kuzushiji-recognition": lambda truth: truth.assign(labels=truth["labels"].map(_centres)),
    "osic-pulmonary-fibrosis-progression": lambda truth: truth.assign(Confidence=70),
    "vesuvius-challenge-ink-detection": lambda truth: truth[["Id", "Predicted"]],
    "vinbigdata-chest-xray-abnormalities-detection": _boxes,
    "tensorflow2-question-answering": lambda truth: pd.DataFrame(
        {
            "example_id": ["1_long", "1_short", "2_long", "2_short", "3_long", "3_short"],
            "PredictionString": ["299:313", "300:302", "5:50", "YES", "", ""],
        }
    ),
}
"""The best predictions for the example of a truth, where it has not itself the form of predictions."""
OF_ANOTHER_TRAINING_FORM = {*OF_ANOTHER_FORM, "3d-object-detection-for-autonomous-vehicles"}  # without a confidence


def _predictions(competition: Competition, example: Path, edition: Edition, folder: Path) -> Path:
    """The best predictions for an example of a truth."""
    target = folder / "predictions.csv"
    if competition.id in OF_ANOTHER_FORM:
        truth = pd.DataFrame() if example.suffix == ".jsonl" else pd.read_csv(example)
        OF_ANOTHER_FORM[competition.id](truth).to_csv(target, index=False)
        return target
    table = pd.read_csv(example, dtype=str, keep_default_na=False)
    table = table.rename(columns={new: old for old, new in competition.facts.files.gold_columns.items()})
    submitted = competition.facts.submission
    if OTHER_COLUMNS not in submitted:
        table = table.reindex(columns=list(submitted), fill_value="1")
    table.to_csv(target, index=False)
    return target


@pytest.mark.parametrize(("name", "edition"), cases())
def test_the_example_is_a_truth_and_the_best_predictions_for_it_are_perfect(
    name: str, edition: Edition, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    dataset = prepared.get(name, edition)
    competition = dataset.competition
    form = truth_form(competition, dataset.path / "public")
    example = tmp_path / form.example_name
    example.write_text(form.example)
    verdict = score(dataset, _predictions(competition, example, edition, tmp_path), example, edition, tmp_path)
    best = PERFECT.get((name, edition), 0.0 if competition.facts.lower_is_better else 1.0)
    assert verdict.outcome == "valid", verdict
    assert verdict.score == pytest.approx(best, abs=1e-9), verdict
    assert competition.id not in form.text + form.example


@pytest.mark.parametrize("name", [name for name in registry.list() if name not in OF_ANOTHER_TRAINING_FORM])
def test_public_training_rows_score_against_themselves(
    name: str, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    """Where the training data have the columns of a truth under their names."""
    dataset = prepared[name]
    competition, form = dataset.competition, truth_form(dataset.competition, dataset.path / "public")
    rows = _training_rows(dataset, form)
    if rows is None:
        pytest.skip("the training data have another form")
    train = tmp_path / "train.csv"
    rows.to_csv(train, index=False)
    verdict = score(dataset, _predictions(competition, train, "v1", tmp_path), train, "v1", tmp_path)
    if "one class only" in str(verdict.message):
        pytest.skip("the miniature has too few rows")
    best = PERFECT.get((name, "v1"), 0.0 if competition.facts.lower_is_better else 1.0)
    assert verdict.score == pytest.approx(best, abs=1e-6), verdict


def _training_rows(dataset: Prepared, form: TruthForm) -> pd.DataFrame | None:
    sample = dataset.path / dataset.competition.facts.files.sample_submission
    for path in sorted((dataset.path / "public").rglob("*train*.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if path != sample and form.columns and set(form.columns) <= set(table.columns):
            ids = [column for column, each in form.columns.items() if each.values == "id"]
            rows = table[list(form.columns)].drop_duplicates(ids)
            return rows[(rows != "").all(axis=1)]  # some miniatures have cells without an answer
    return None


def test_no_example_has_private_rows(prepared: PreparedCompetitions) -> None:
    """Each is made of public files, and the answers' folder need not exist."""
    for name in registry.list():
        dataset = prepared[name]
        form = truth_form(dataset.competition, dataset.path / "public")
        assert len(form.example.splitlines()) >= 2
        assert form == truth_form(dataset.competition, dataset.path / "public")


@pytest.fixture
def scorer(prepared: PreparedCompetitions) -> Iterator[Scorer]:
    dataset = prepared["digits"]
    form = truth_form(dataset.competition, dataset.path / "public")
    with Scorer(dataset.competition, form, "v1", GradingLimits(size_bytes=1 << 20)) as opened:
        yield opened


def files(folder: Path, predictions: str, truth: str) -> tuple[Path, Path]:
    (folder / "predictions.csv").write_text(predictions)
    (folder / "truth.csv").write_text(truth)
    return folder / "predictions.csv", folder / "truth.csv"


GOOD = "id,label\na,1\nb,2\nc,3\n"


@pytest.mark.parametrize(
    ("predictions", "truth", "said"),
    [
        (GOOD, "id,label\na,1\nb,x\nc,3\n", "TRUTH: Row 2: `label` is 'x'; it must be a whole number from 0 to 9."),
        (GOOD, "id,label\na,1\nb,\nc,3\n", "TRUTH: Row 2: `label` is empty."),
        (GOOD, "id,label\na,1\nb,nan\nc,3\n", "TRUTH: Row 2: `label` is empty."),
        (GOOD, "id,label\na,1\nb,inf\nc,3\n", "TRUTH: Row 2: `label` is inf; it must be a whole number from 0 to 9."),
        (GOOD, "id,label\na,1\nb,=1+1\nc,3\n", "TRUTH: Row 2: `label` is '=1+1'; it must be a whole number"),
        (GOOD, "id,label\na,1\n,2\nc,3\n", "TRUTH: Row 2: `id` is empty."),
        (GOOD, "id\na\n", "TRUTH: TRUTH lacks column `label`; it has column `id`."),
        (GOOD, "id,label\n", "TRUTH: There are no rows."),
        (GOOD, "", "TRUTH: TRUTH lacks columns `id`, `label`; it has no columns."),
        ("id,label\na,1\nb,x\nc,3\n", GOOD, "See row 2 of PREDICTIONS: `label` is 'x'."),
        ("id,label\na,1\nz,2\nc,3\n", GOOD, "See row 2 of PREDICTIONS, `id` 'z', is not in TRUTH."),
        ("id,label\na,1\nb,2\n", GOOD, "See row 3 of TRUTH, `id` 'c', is not in PREDICTIONS."),
        ("id,label\na,1\nb,2\nb,3\n", GOOD, "See row 3 of PREDICTIONS, `id` 'b', is there twice."),
        ("label\n1\n", GOOD, "PREDICTIONS: The submission"),
        ('id,label\n"a', GOOD, "PREDICTIONS"),
        (GOOD, 'id,label\n"a', "TRUTH"),
        (GOOD, "id,label\n" + "a,1\n" * 300_000, "TRUTH: the file has 1,200,009 bytes; a submission here has at most"),
        (GOOD, ",".join(f"c{n}" for n in range(100_000)), "TRUTH: the table has 100,000 columns"),
    ],
)
def test_messages_name_the_file_and_the_row(
    scorer: Scorer, tmp_path: Path, predictions: str, truth: str, said: str
) -> None:
    verdict = scorer.score(*files(tmp_path, predictions, truth))
    assert verdict.outcome == "invalid"
    assert said in str(verdict.message)
    assert str(tmp_path) not in str(verdict.message)
    assert scorer.score(*files(tmp_path, GOOD, GOOD)).score == 1.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["predictions.csv", "truth.csv"]


def test_scores_are_not_rounded(scorer: Scorer, tmp_path: Path) -> None:
    assert scorer.score(*files(tmp_path, "id,label\na,1\nb,2\nc,4\n", GOOD)).score == 2 / 3


def test_no_private_file_is_opened(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    """There is no dataset at all, only what the agent sees of the sample submission."""
    dataset = prepared["spaceship-titanic"]
    public = tmp_path / "public"
    public.mkdir()
    sample = dataset.path / dataset.competition.facts.files.sample_submission
    (public / sample.name).write_bytes(sample.read_bytes())
    form = truth_form(dataset.competition, public)
    example = tmp_path / "example.csv"
    example.write_text(form.example)
    opened = tmp_path / "opened"
    hook = f"""
import os, sys
log = os.open({str(opened)!r}, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
def note(name, found):
    if name == "open" and isinstance(found[0], (str, bytes)):
        os.write(log, os.fsencode(found[0]) + b"\\n")
sys.addaudithook(note)
"""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(hook)
    limits = GradingLimits(size_bytes=1 << 20)
    with pytest.MonkeyPatch.context() as patch, Scorer(dataset.competition, form, "v1", limits) as scorer:
        patch.setenv("PYTHONPATH", str(tmp_path / "site"))
        assert scorer.score(example, example).score == 1.0
    paths = [Path(line) for line in opened.read_text().splitlines()]
    data = [path for path in paths if path.suffix in (".csv", ".jsonl", ".parquet")]
    assert data
    assert {path.name for path in data} == {"example.csv", "test.csv"}
    assert all(path.is_relative_to(tmp_path) for path in data)
    assert not any(path.is_relative_to(dataset.path) for path in paths)


def test_a_competition_whose_truth_is_not_known_has_no_scorer() -> None:
    known = registry.get("tensorflow2-question-answering")
    require_scorable(known)
    unknown = known.model_copy(update={"facts": known.facts.model_copy(update={"truth_lines": None})})
    with pytest.raises(UserError, match=r"has no scorer: its grade.py reads the answers .* `truth_lines`"):
        require_scorable(unknown)


def test_a_sample_submission_may_have_long_cells(tmp_path: Path) -> None:
    competition = registry.get("facebook-recruiting-iii-keyword-extraction")
    (tmp_path / "sample_submission.csv").write_text("Id,Title,Body,Tags\n" + f'7,a,"{"b" * 200_000}",c\n' * 8)
    form = truth_form(competition, tmp_path)
    assert form.example.splitlines() == ["Id,Tags", "7,php mysql", "7,python", "7,c# .net linq", "7,java"]
