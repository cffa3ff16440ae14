"""Each gate of `mlebench check` holds for the template, and not for a competition made wrong on purpose."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from competitions.competition import Competition
from flows.commands.new import TEMPLATE
from grading.competition_checks.checks import CHECKS
from grading.competition_checks.gates import GATES
from grading.competition_checks.measured import Measured
from grading.competition_checks.run import measured_of, pass_gate
from grading.competition_checks.skill import skill, targets_of
from storage.datasets import prepare
from tasks.baseline_submission import baseline_submission
from tests.parity.test_every_competition import SHAPES
from tests.prepared import PreparedCompetitions


class Folder:
    """A copy of the template whose files can be changed."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = Path(shutil.copytree(TEMPLATE, tmp_path / "my-competition"))
        self.out = tmp_path / "prepared"

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        (self.path / name).write_text(text.replace(old, new))

    def prepared(self) -> Measured:
        competition = Competition.load(self.path)
        (raw := self.out.with_name("raw.zip")).write_bytes(competition.bundle())
        prepare(competition.id, raw, self.out, "v1", None, self.path)
        return measured_of(competition, self.out, "v1")

    def add(self, name: str, content: bytes) -> None:
        """A public file, beside those that were prepared."""
        (path := self.out / "public" / name).parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_template_passes(folder: Folder, tmp_path: Path) -> None:
    measured = folder.prepared()
    agent = Measured(measured.subject, partial(baseline_submission, scratch=tmp_path / "agent"))
    results = {name: pass_gate(name, agent) for name in GATES}
    assert {
        name: (result.verdict, result.problems)
        for name, result in results.items()
        if result.verdict not in ("ok", "skipped")
    } == {}
    assert results["chance"].figures["right"] == 0
    assert results["noise"].figures["units"] == 120


def _column(code: str) -> tuple[str, str, str]:
    """A change of the table in the download."""
    return "bundle.py", "    return zip_bytes", f"    {code}\n    return zip_bytes"


def _public(code: str) -> tuple[str, str, str]:
    """One more public file."""
    return "prepare.py", "    return out", f"    {code}\n    return out"


CODED_IDS = """
    digits = [random.integers(10, 99, 600), pd.qcut(table["area"], 9, labels=False), random.permutation(600) + 1000]
    table["id"] = [f"{a}{b}{c}" for a, b, c in zip(*digits)]
""".strip()
AGAIN = "test.head(9).assign(id=range(900, 909), {})"
"""Training rows that are those of the test set."""
PANDAS = "prepare.py", "from competitions.editions", "import pandas as pd\n\nfrom competitions.editions"


PATIENTS = [
    _column('table["patient"] = random.permutation(600) // 15'),
    _column('table["area"] += table["patient"] * 7 % 40 * 2.0'),
    ("prepare.py", "holdout import hold_out", "holdout import hold_out_groups"),
    (
        "prepare.py",
        'hold_out(raw.read_csv("train.csv"), 0.2)',
        'hold_out_groups(raw.read_csv("train.csv"), "patient", 0.2)',
    ),
]
"""Fifteen rows for each patient, with answers that depend on the patient, who is in one part only."""


def _train_with(rows: str) -> tuple[str, str, str]:
    return "prepare.py", '"train.csv", train)', f'"train.csv", pd.concat([train, {rows}]))'


BROKEN = {
    "a metric that does not look at predictions": (
        "metric: constant predictions score 5, the right ones 5",
        [("grade.py", 'return rmse(answers["area"], numbers(submission, "area"))', "return 5.0")],
    ),
    "a medal for a constant": (
        "chance: constant predictions score 6.1826, which earns bronze",
        [("competition.yaml", "bronze: 2.5\n  median: 3.0", "bronze: 7.5\n  median: 8.0")],
    ),
    "a column that was measured after the target": (
        "features: column paint explains 9",
        [_column('table["paint"] = (1000 - 3 * table["area"]).round()')],
    ),
    "test rows in the order of the target": (
        "metadata: the row number in the test table explains",
        [("prepare.py", "    out = Preparation()", '    test = test.sort_values("area")\n    out = Preparation()')],
    ),
    "ids in the order of the target": (
        "metadata: the number in the id explains",
        [_column('table["id"] = table["area"].rank(method="first").astype(int)')],
    ),
    "a word in the id that tells the target": (
        "metadata: the id without digits explains",
        [_column('table["id"] = table["id"].astype(str) + np.where(table["area"] > 8, "_large", "_small")')],
    ),
    "test rows in the training data": (
        "copies: 9 of 120 rows of the test set have a copy in the training data",
        [
            ("bundle.py", "    area = table", '    table["weight"] = random.uniform(0, 5, 600)\n    area = table'),
            _train_with(AGAIN.format('weight=test["weight"] * 1.00000001')),
            PANDAS,
        ],
    ),
    "texts that differ in case and punctuation": (
        "copies: 9 of 120 texts in letter of the test set have a copy in the training data",
        [
            _column('table["letter"] = [f"dear {n}, we are glad to hear of your garden." for n in range(600)]'),
            _train_with(AGAIN.format('letter=test["letter"].str.upper() + " !"')),
            PANDAS,
        ],
    ),
    "a test set too small for its medals": (
        "noise: with 120 units in the test set, a score worth bronze has a standard error of",
        [("competition.yaml", "gold: 1.05\n  silver: 1.5", "gold: 2.4\n  silver: 2.45")],
    ),
    "scores in another unit than the leaderboard": (
        "scale: the sample submission scores 0.095946, and bronze requires 2.5",
        [("grade.py", "return rmse(", "return 0.01 * rmse(")],
    ),
    "scores far beyond the leaderboard": (
        "scale: the sample submission scores 9.5946, the last team 0.9, right answers 0",
        [("competition.yaml", "human: false", f"percentiles: {[0.5] + [0.7] * 19 + [0.9]}")],
    ),
    "a column of another public table that was measured after the target": (
        "features: column paint of extra.csv explains 9",
        [_public('out.public.table("extra.csv", test[["id"]].assign(paint=2 * test["area"] + 1))')],
    ),
    "a digit in the middle of the id that tells the target": (
        "metadata: character 3 of the id explains",
        [_column(CODED_IDS)],
    ),
    "test rows without features": (
        "features: the test rows have ids alone",
        [("prepare.py", 'test.drop(columns="area")', 'test[["id"]]')],
    ),
    "a sample submission that scored otherwise on Kaggle": (
        "scale: the sample submission scores 9.5946, on Kaggle 40",
        [("competition.yaml", "median: 3.0", "median: 3.0\n  sample: 40.0")],
    ),
}
"""Competitions made wrong on purpose: the gate and the start of what it says, and edits of the template."""
FAILURES = {"metric"}
"""Gates without a reason why a competition may be right all the same."""


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_competition(what: str, folder: Folder) -> None:
    message, edits = BROKEN[what]
    for edit in edits:
        folder.edit(*edit)
    measured = folder.prepared()
    found = {name: pass_gate(name, measured) for name in GATES}
    gate, _, problem = message.partition(": ")
    assert found[gate].verdict == ("failed" if gate in FAILURES else "noted")
    assert any(line.startswith(problem) for line in found[gate].problems), found[gate].problems


@pytest.mark.parametrize("column", ["patient", "the start of id"])
def test_groups_that_are_not_declared_are_noted(column: str, folder: Folder) -> None:
    for edit in PATIENTS:
        folder.edit(*edit)
    if column != "patient":
        folder.edit(*_column('table["id"] = table["patient"].astype(str) + "_" + table["id"].astype(str)'))
        folder.edit(
            "prepare.py",
            "    out = Prep",
            '    train, test = (t.drop(columns="patient") for t in (train, test))\n    out = Prep',
        )
    measured = folder.prepared()
    result = pass_gate("noise", measured)
    assert result.verdict == "noted"
    assert result.problems[0].startswith(
        f"rows come in groups by {column}: the 120 rows of the test set are of 8 groups"
    )
    assert pass_gate("metadata", measured).verdict == "ok", "which patient it is explains the answers, and is no leak"


def test_declared_groups_are_the_units(folder: Folder) -> None:
    for edit in PATIENTS:
        folder.edit(*edit)
    folder.edit(*_column('table["id"] = table["patient"].astype(str) + "_" + table["id"].astype(str)'))
    folder.edit("competition.yaml", "files:  ", "resampling: {pattern: '^([0-9]+)_'}\nfiles:  ")
    measured = folder.prepared()
    result = pass_gate("noise", measured)
    assert result.figures["units"] == 8
    assert not any(problem.startswith("rows come in groups") for problem in result.problems)
    assert pass_gate("metadata", measured).verdict == "ok"
    assert pass_gate("features", measured).figures["patient"] < 0.5


def _packed(content: bytes) -> bytes:
    with tarfile.open(fileobj=(packed := io.BytesIO()), mode="w:gz") as archive:
        (info := tarfile.TarInfo("in/x.csv")).size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


FORMATS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "INFO.CSV": lambda table: table.to_csv(index=False).encode(),
    "x.csv": lambda table: table.to_csv(index=False, sep=";").encode(),
    "x.txt": lambda table: table.to_csv(index=False, sep="|").encode(),
    "x.tsv.xz": lambda table: lzma.compress(table.to_csv(index=False, sep="\t").encode()),
    "x.csv.gz": lambda table: gzip.compress(table.to_csv(index=False).encode()),
    "x.tar.gz": lambda table: _packed(table.to_csv(index=False).encode()),
    "utf-16.csv": lambda table: table.to_csv(index=False).encode("utf-16"),
    "by-id.json": lambda table: json.dumps(dict(zip(table["id"], table["area"], strict=True))).encode(),
    "records.json": lambda table: table.to_json(orient="records").encode(),
    "columns.json": lambda table: table.to_json().encode(),
    "nested.json": lambda table: json.dumps({"about": "x", "rows": table.to_dict("records")}).encode(),
    "x.jsonl": lambda table: table.to_json(orient="records", lines=True).encode(),
    "x.parquet": lambda table: table.to_parquet(index=False),
    "x.npy": lambda table: _saved(table.iloc[:, -1].to_numpy()),
}


def _saved(values: np.ndarray) -> bytes:
    np.save(file := io.BytesIO(), values)
    return file.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_answers_in_a_public_table_of_any_format(name: str, folder: Folder) -> None:
    measured = folder.prepared()
    answers = measured.tables.answers["area"].astype(float).reset_index()
    folder.add(name, FORMATS[name](answers.rename(columns={"area": "paint"} if ".json" not in name else {})))
    problems = CHECKS["public"](measured.subject)
    assert any(line.startswith(f"public/{name}") and "has the answers area" in line for line in problems), problems


def test_ok_does_not_cover_files_that_are_not_read(folder: Folder) -> None:
    measured = folder.prepared()
    for name in ("a.pkl", "b.zip", "b/picture.png", "b/page.html"):
        folder.add(name, b"no table")
    expected = "not covered: 2 files not read as tables: a.pkl, b.zip"
    assert CHECKS["public"](measured.subject) == []
    assert measured.subject.not_covered["public"] == expected
    result = pass_gate("features", measured)
    assert (result.verdict, result.problems) == ("ok", (expected,))


@pytest.mark.parametrize("channel", ["size", "time", "folder", "place in the archive"])
def test_files_that_tell_the_target(channel: str, folder: Folder) -> None:
    measured = folder.prepared()
    assert pass_gate("metadata", measured).verdict == "ok"
    areas = measured.tables.answers["area"].astype(float).sort_values()
    with zipfile.ZipFile(folder.out / "public" / "scans.zip", "w") as archive:
        for name, area in areas.items():
            size = int(100 * area + 1000) if channel == "size" else 10
            place = f"scans/{area // 5 if channel == 'folder' else 0}/{name}.bin"
            if channel == "place in the archive":
                archive.writestr(zipfile.ZipInfo(place), b"." * size)
            else:
                folder.add(place, b"." * size)
                os.utime(folder.out / "public" / place, (time := 1e9 + area * (channel == "time"), time))
    problems = pass_gate("metadata", measured_of(measured.subject.competition, folder.out, "v1")).problems
    assert [problem.split(" explains ")[0] for problem in problems[:-1]] == [f"the {channel} of the file"]


def test_pictures_that_are_saved_again(folder: Folder) -> None:
    measured = folder.prepared()
    draw = np.random.default_rng(0)
    for number, name in enumerate(measured.tables.answers.index[:6]):
        picture = Image.fromarray(draw.integers(0, 255, (24, 24, 3), dtype=np.uint8)).resize((160, 160))
        picture.save(content := io.BytesIO(), "PNG")
        folder.add(f"test/{name}.png", content.getvalue())
        picture = picture if number < 2 else picture.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
        picture.resize((128, 128)).save(content := io.BytesIO(), "JPEG")
        folder.add(f"train/{name}.jpg", content.getvalue())  # numbers of other rows, as ids often are
    result = pass_gate("copies", measured_of(measured.subject.competition, folder.out, "v1"))
    assert result.problems[0] == "2 of 6 images of the test set have a copy in the training data"


def test_a_baseline_that_finds_a_leak(folder: Folder, tmp_path: Path) -> None:
    folder.edit("bundle.py", "    return zip_bytes", '    table["paint"] = 3 * table["area"]\n    return zip_bytes')
    measured = folder.prepared()
    agent = Measured(measured.subject, partial(baseline_submission, scratch=tmp_path / "agent"))
    assert "and gold requires 1.05" in pass_gate("baseline", agent).problems[0]


def test_a_baseline_that_is_worse_than_the_sample(folder: Folder, tmp_path: Path) -> None:
    measured = folder.prepared()
    table = pd.read_csv(measured.subject.path("sample_submission")).assign(area=1e6)
    table.to_csv(tmp_path / "bad.csv", index=False)
    agent = Measured(measured.subject, lambda *_: (tmp_path / "bad.csv", ""))
    assert pass_gate("baseline", agent).problems[0].startswith("the baseline agent scores 9.9999e+05")


def test_a_baseline_that_cannot_model_the_data_is_no_verdict(folder: Folder) -> None:
    measured = folder.prepared()
    sample = measured.subject.path("sample_submission")
    agent = Measured(measured.subject, lambda *_: (sample, "nothing to learn from"))
    result = pass_gate("baseline", agent)
    assert (result.verdict, result.problems) == (
        "skipped",
        ("the baseline agent scores like the sample submission; it said: nothing to learn from",),
    )


def test_a_grader_without_a_number_passes_nothing(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the prepared dataset is named by a relative path."""
    folder.edit("grade.py", "return rmse(", 'return float("nan") * rmse(')
    competition = folder.prepared().subject.competition
    monkeypatch.chdir(tmp_path)
    agent = partial(baseline_submission, scratch=tmp_path / "agent")
    measured = measured_of(competition, Path(folder.out.name), "v1", agent)
    for name in ("metric", "chance", "noise", "scale", "baseline"):
        result = pass_gate(name, measured)
        assert result.verdict == "skipped"
        assert "no number" in result.problems[0] or name in ("noise", "scale"), result.problems


@pytest.mark.parametrize("competition_id", sorted({*SHAPES, "breast-cancer", "diabetes", "digits"}))
def test_every_shape_of_competition(competition_id: str, prepared: PreparedCompetitions) -> None:
    """A gate may note something of a published competition, but fails and raises for none."""
    found = prepared[competition_id]
    measured = measured_of(found.competition, found.path, "v1")
    results = {name: pass_gate(name, measured) for name in GATES}
    assert [(name, result.problems) for name, result in results.items() if result.verdict == "failed"] == []


def test_noise_predicts_nothing_and_every_kind_of_function_everything() -> None:
    draw = np.random.default_rng(0)
    values = pd.Series(draw.permutation(600))
    targets = targets_of(pd.DataFrame({"a": (values // 100).astype(str)}))
    assert targets is not None
    assert skill(values.astype(str), targets) > 0.95  # blocks of neighbours with the same answer
    assert skill((values // 100).map("abcdef".__getitem__), targets) == 1
    assert skill(pd.Series(draw.permutation(600)), targets) < 0.05
    patients = values // 15
    of_patients = targets_of(pd.DataFrame({"a": (patients * 7 % 40).astype(str)}))
    assert of_patients is not None
    assert skill(patients, of_patients) > 0.5
    assert skill(patients, of_patients, patients.to_numpy()) < 0.2, "which patient it is tells nothing about others"
    assert targets_of(pd.DataFrame({"a": list(map("text {}".format, range(50)))})) is None
