"""Medal thresholds of the demo competitions, from a leaderboard of trained models.

For each demo competition some 60 "teams" (a model with its settings, on a subset of the features, with a seed) are
trained on the public data, their predictions are graded like any submission, and the thresholds are taken from the
ranking by the benchmark's position rule. Copy the printed numbers into the competition.yaml files:

    python -m benchmarks.demo_leaderboard
"""

from __future__ import annotations

import io
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from competitions import registry
from grading.medals import thresholds_from_leaderboard
from storage.datasets import prepare

Model = Callable[[int], Any]


def _with(setting: Any, build: Callable[[int, Any], Any]) -> Model:
    """A model with one setting. A function of its own, so that it binds the current value of a loop variable."""
    return lambda seed: build(seed, setting)


def classifiers() -> Iterator[Model]:
    """Classifiers from a stump to a support vector machine, each a function of the seed."""
    for depth in (1, 2, 4, None):
        yield _with(depth, lambda seed, d: DecisionTreeClassifier(max_depth=d, random_state=seed))
    for strength in (1e-3, 0.1, 10.0):
        yield _with(strength, lambda seed, c: make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=2000)))
        yield _with(
            strength, lambda seed, c: make_pipeline(StandardScaler(), SVC(C=c, probability=True, random_state=seed))
        )
    for neighbours in (1, 5, 25):
        yield _with(neighbours, lambda seed, k: make_pipeline(StandardScaler(), KNeighborsClassifier(k)))
    yield lambda seed: make_pipeline(PCA(5, random_state=seed), GaussianNB())
    yield lambda seed: GaussianNB()
    for trees in (10, 100):
        yield _with(trees, lambda seed, n: RandomForestClassifier(n, random_state=seed))
        yield _with(trees, lambda seed, n: ExtraTreesClassifier(n, random_state=seed))
    yield lambda seed: GradientBoostingClassifier(n_estimators=30, random_state=seed)


def regressors() -> Iterator[Model]:
    """Regressors, each a function of the seed."""
    for depth in (1, 2, 4, None):
        yield _with(depth, lambda seed, d: DecisionTreeRegressor(max_depth=d, random_state=seed))
    for strength in (0.1, 10.0, 1000.0):
        yield _with(strength, lambda seed, a: make_pipeline(StandardScaler(), Ridge(a)))
        yield _with(strength, lambda seed, a: make_pipeline(StandardScaler(), SVR(C=a)))
    for strength in (0.1, 1.0):
        yield _with(strength, lambda seed, a: make_pipeline(StandardScaler(), Lasso(a)))
        yield _with(strength, lambda seed, a: make_pipeline(StandardScaler(), ElasticNet(a)))
    for neighbours in (1, 5, 25):
        yield _with(neighbours, lambda seed, k: make_pipeline(StandardScaler(), KNeighborsRegressor(k)))
    for trees in (10, 100):
        yield _with(trees, lambda seed, n: RandomForestRegressor(n, random_state=seed))
        yield _with(trees, lambda seed, n: ExtraTreesRegressor(n, random_state=seed))
    yield lambda seed: GradientBoostingRegressor(n_estimators=30, random_state=seed)


def features(public: Path, target: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(train features, train target, test features) of a demo competition. Pictures are converted to rows of pixels."""
    train = pd.read_csv(public / "train.csv")
    if (public / "train.zip").exists():
        sample = pd.read_csv(public / "sample_submission.csv")
        return (
            pixels(public / "train.zip", train["id"]),
            train[target].to_numpy(),
            pixels(public / "test.zip", sample["id"]),
        )
    test = pd.read_csv(public / "test.csv")
    columns = [name for name in test.columns if name != "id"]
    return train[columns].to_numpy(), train[target].to_numpy(), test[columns].to_numpy()


def pixels(archive: Path, ids: pd.Series) -> np.ndarray:
    """One row of grey values per picture."""
    with zipfile.ZipFile(archive) as file:
        return np.stack([np.asarray(Image.open(io.BytesIO(file.read(f"{name}.png")))).ravel() for name in ids])


def leaderboard(competition_id: str) -> list[float]:
    """Scores of all teams, unsorted."""
    competition = registry.get(competition_id)
    scores = []
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        (out / "raw.zip").write_bytes(competition.bundle())
        prepare(competition.id, out / "raw.zip", out)
        sample = pd.read_csv(out / competition.facts.files.sample_submission)
        target = sample.columns[-1]
        x, y, x_test = features(out / "public", target)
        family = regressors if competition_id == "diabetes" else classifiers
        for seed, share in enumerate((1.0, 0.5, 0.2)):
            chosen = np.random.default_rng(seed).permutation(x.shape[1])[: max(5, int(share * x.shape[1]))]
            for build in family():
                model = build(seed).fit(x[:, chosen], y)
                binary = target == "malignant"
                prediction = (
                    model.predict_proba(x_test[:, chosen])[:, 1] if binary else model.predict(x_test[:, chosen])
                )
                sample.assign(**{target: prediction}).to_csv(out / "submission.csv", index=False)
                scores.append(competition.grade(out / "submission.csv", out))
    return scores


def main() -> None:
    """Print teams, thresholds and percentiles of each demo competition."""
    warnings.filterwarnings("ignore")
    for competition_id in registry.list("demo"):
        facts = registry.get(competition_id).facts
        scores = sorted(leaderboard(competition_id), reverse=not facts.lower_is_better)
        board = thresholds_from_leaderboard(scores, lower_is_better=facts.lower_is_better)
        percentiles = [round(scores[round(share * (len(scores) - 1))], 5) for share in np.linspace(0, 1, 21)]
        print(competition_id, board, percentiles, sep="\n    ")


if __name__ == "__main__":
    main()
