"""The baseline agent on small versions of what competitions look like; it must beat the sample submission."""

from __future__ import annotations

import importlib
import io
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn import datasets, metrics

from sandbox.agent_registry import load_agent
from sandbox.backend import RunSpec
from sandbox.definitions import BUILTIN_AGENTS
from sandbox.process.backend import ProcessBackend

Attempt = Callable[..., tuple[pd.DataFrame, str]]


@pytest.fixture(scope="module")
def baseline() -> Iterator[ModuleType]:
    """The agent's main module. Most tests run it in this process: importing scikit-learn for each would take long."""
    folder = str(BUILTIN_AGENTS / "baseline")
    sys.path.insert(0, folder)
    yield importlib.import_module("baseline")
    sys.path.remove(folder)
    for name in ("baseline", "discover", "models", "official", "question"):
        del sys.modules[name]


@pytest.fixture
def attempt(
    baseline: ModuleType, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> Attempt:
    """Give the agent tables, get its submission and its log."""

    def attempt(
        train: pd.DataFrame | None,
        test: pd.DataFrame | None,
        sample: pd.DataFrame,
        seed: int = 0,
        time_limit: int = 300,
    ) -> tuple[pd.DataFrame, str]:
        write(prepared, train, test, sample)
        world = {
            "DATA_DIR": prepared / "public",
            "SUBMISSION_DIR": tmp_path,
            "SEED": seed,
            "TIME_LIMIT_SECONDS": time_limit,
        }
        for name, value in world.items():
            monkeypatch.setenv(name, str(value))
        baseline.main()
        log = capsys.readouterr().out
        assert "because of the error" not in log
        return pd.read_csv(tmp_path / "submission.csv"), log

    return attempt


def write(prepared: Path, train: pd.DataFrame | None, test: pd.DataFrame | None, sample: pd.DataFrame) -> None:
    for name, table in (("train", train), ("test", test), ("sample_submission", sample)):
        if table is not None:
            table.to_csv(prepared / "public" / f"{name}.csv", index=False)


def split(features: pd.DataFrame, answers: pd.Series, shown: Any) -> tuple[pd.DataFrame, ...]:
    """Training table, test table, sample submission, and true answers of the test rows."""
    table = features.assign(**{str(answers.name): answers})
    table.insert(0, "id", [f"row{number}" for number in range(len(table))])
    table = table.sample(frac=1, random_state=0)
    train, test = table.iloc[: len(table) * 2 // 3], table.iloc[len(table) * 2 // 3 :]
    truth = test[["id", answers.name]].reset_index(drop=True)
    return train, test.drop(columns=answers.name), truth.assign(**{str(answers.name): shown}), truth


def test_numbers_in_a_table(attempt: Attempt) -> None:
    data = datasets.load_diabetes(as_frame=True)
    train, test, sample, truth = split(data.data, data.target.rename("progression"), 150)
    submission, log = attempt(train, test, sample)
    assert submission["id"].equals(truth["id"])
    assert "predict a number" in log
    error = metrics.root_mean_squared_error(truth["progression"], submission["progression"])
    assert error < 0.85 * metrics.root_mean_squared_error(truth["progression"], sample["progression"])
    other, _ = attempt(train, test, sample, seed=1)
    assert 0 < np.abs(other["progression"] - submission["progression"]).mean() < 20
    again, _ = attempt(train, test, sample, seed=1)
    assert again.equals(other)


def test_probabilities_in_a_table(attempt: Attempt) -> None:
    data = datasets.load_breast_cancer(as_frame=True)
    train, test, sample, truth = split(data.data, (1 - data.target).rename("malignant"), 0.5)
    submission, log = attempt(train, test, sample)
    assert "predict a probability" in log
    assert metrics.roc_auc_score(truth["malignant"], submission["malignant"]) > 0.97
    assert submission["malignant"].between(0, 1).all()


@pytest.mark.parametrize("folders", [False, True], ids=["zip archives", "nested folders"])
def test_images(attempt: Attempt, prepared: Path, folders: bool) -> None:
    data = datasets.load_digits()
    labels = pd.Series(data.target, name="label")[:900]
    train, test, sample, truth = split(pd.DataFrame(index=labels.index), labels, 0)
    for name, table in (("train", train), ("test", test)):
        images = {row: picture(data.images[index]) for index, row in table["id"].items()}
        if folders:
            folder = prepared / "public" / "images" / name / "png"
            folder.mkdir(parents=True)
            for row, image in images.items():
                (folder / f"{row}.png").write_bytes(image)
        else:
            with zipfile.ZipFile(prepared / "public" / f"{name}.zip", "w") as archive:
                for row, image in images.items():
                    archive.writestr(f"{row}.png", image)
    submission, log = attempt(train, None, sample)
    assert "predict one of them" in log
    assert metrics.accuracy_score(truth["label"], submission["label"]) > 0.9


def picture(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray((pixels * 15).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_column_for_every_class(attempt: Attempt) -> None:
    data = datasets.load_wine(as_frame=True)
    names = pd.Series(np.array(["barbera", "barolo", "grignolino"])[data.target], name="wine")
    train, test, sample, truth = split(data.data, names, 0)
    sample = sample[["id"]].assign(barbera=1 / 3, barolo=1 / 3, grignolino=1 / 3)
    submission, _ = attempt(train, test, sample)
    assert list(submission.columns) == list(sample.columns)
    assert metrics.log_loss(truth["wine"], submission.drop(columns="id")) < 0.3


def test_text_and_words_as_labels(attempt: Attempt) -> None:
    rng = np.random.default_rng(0)
    words = {"sea": ["ship", "wave", "the", "and", "sail", "storm"], "land": ["horse", "the", "and", "road", "hill"]}
    labels = pd.Series(rng.choice(["sea", "land"], 300), name="about")
    text = [" ".join(rng.choice(words[label], 8)) for label in labels]
    train, test, sample, truth = split(pd.DataFrame({"text": text}), labels, "sea")
    submission, log = attempt(train, test, sample)
    assert "1 of text" in log
    assert (submission["about"] == truth["about"]).mean() > 0.95


def test_categories_gaps_and_true_or_false(attempt: Attempt) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"colour": rng.choice(np.array(["red", "green", None]), 300), "size": rng.normal(size=300)})
    table.loc[::7, "size"] = np.nan
    answers = ((table["colour"] == "red") | (table["size"] > 1)).rename("bought")
    train, test, sample, truth = split(table, answers, False)
    submission, _ = attempt(train, test, sample)
    assert submission["bought"].dtype == bool
    assert (submission["bought"] == truth["bought"]).mean() > 0.9


def test_classes_by_folder(attempt: Attempt, prepared: Path) -> None:
    rng = np.random.default_rng(0)
    (prepared / "public" / "test").mkdir()
    truth = []
    for name, level in (("dark", 4), ("bright", 12)):
        (prepared / "public" / "train" / name).mkdir(parents=True)
        for number in range(40):
            image = picture(np.clip(rng.normal(level, 2, (30, 40)), 0, 16))
            place = f"train/{name}/{number}.png" if number < 30 else f"test/{name[0]}{number}.png"
            (prepared / "public" / place).write_bytes(image)
            truth += [(f"{name[0]}{number}.png", name)] if number >= 30 else []
    sample = pd.DataFrame({"file": [file for file, _ in truth], "species": "dark"})
    submission, _ = attempt(None, None, sample)
    assert list(submission["species"]) == [name for _, name in truth]


def test_what_it_does_not_understand_leaves_the_sample(attempt: Attempt) -> None:
    sample = pd.DataFrame({"id": ["1", "2"], "mask": ["1 2 3", "4 5"]})
    submission, log = attempt(None, None, sample)
    assert submission["mask"].equals(sample["mask"])
    assert "the earlier submission is kept" in log


def test_little_time_is_kept_to(attempt: Attempt) -> None:
    features, answers = datasets.make_regression(6_000, 20, random_state=0)
    train, test, sample, _ = split(pd.DataFrame(features).rename(columns=str), pd.Series(answers, name="y"), 0.5)
    submission, log = attempt(train, test, sample, time_limit=2)
    assert submission.shape == sample.shape
    assert "gradient boosting" not in log


def test_in_its_world_it_leaves_its_code_too(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], prepared: Path
) -> None:
    data = datasets.load_wine(as_frame=True)
    train, test, sample, truth = split(data.data, data.target.rename("cultivar"), 0)
    write(prepared, train, test, sample)
    result = backend.wait(backend.start(make_spec("", agent=load_agent("baseline"))))
    assert (result.status, result.message) == ("completed", None)
    assert result.submission is not None
    assert (pd.read_csv(result.submission)["cultivar"] == truth["cultivar"]).mean() > 0.9
    assert (result.code / "baseline.py").is_file()
    assert "chosen: " in (result.logs / "agent.log").read_text()
