"""Choose a model on a part of the data, train it on as much data as time allows, and predict.

It is chosen by the competition's metric on held-out rows if the run has a scorer, otherwise by cross-validation.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

TRIAL_ROWS = 2_000
MOST_CLASSES = 200
METRICS = {
    "number": "neg_root_mean_squared_error",
    "label": "accuracy",
    "probability": "roc_auc",
    "classes": "neg_log_loss",
}
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def _columns(train: pd.DataFrame) -> tuple[list[str], list[str], list[str]]:
    """Columns with numbers, with categories, and with text. Other columns are of no use to these models."""
    numbers, categories, texts = [], [], []
    for name in train.columns:
        values = train[name]
        some = values.dropna().iloc[:1000]
        if pd.api.types.is_numeric_dtype(values):
            numbers.append(name)
        elif not some.map(lambda value: isinstance(value, (list, dict))).any():
            if len(some) and some.astype(str).str.count(r"\s").mean() >= 3:
                texts.append(name)
            elif values.nunique() <= max(20, 0.3 * len(values)):
                categories.append(name)
    return numbers, categories, texts


def _candidates(train: pd.DataFrame, kind: str, classes: int, pixels: bool, seed: int) -> dict[str, BaseEstimator]:
    """Models that suit the kinds of data and prediction, the safest first."""
    numbers, categories, texts = _columns(train)
    print(f"{len(numbers)} columns of numbers, {len(categories)} of categories, {len(texts)} of text")
    reduced = [PCA(min(64, len(train) // 2, len(numbers)), random_state=seed)] if pixels else []
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), *reduced)
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    words = TfidfVectorizer(ngram_range=(1, 2), max_features=50_000, sublinear_tf=True)
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    linear_input = ColumnTransformer(
        [("numbers", scaled, numbers), ("categories", one_hot, categories), *((f"text {n}", words, n) for n in texts)]
    )
    tree_input = ColumnTransformer([("numbers", SimpleImputer(), numbers), ("categories", ordinal, categories)])
    if kind == "number":
        linear = {"ridge regression": RidgeCV(np.logspace(-2, 4, 13))}
        trees = {
            "extremely randomised trees": ExtraTreesRegressor(
                200, min_samples_leaf=3, n_jobs=THREADS, random_state=seed
            ),
            "gradient boosting": HistGradientBoostingRegressor(random_state=seed),
        }
    else:
        linear = {"logistic regression": LogisticRegression(max_iter=300)}
        if kind == "label" and len(train) <= 5_000:
            linear["support vector machine"] = SVC(C=5)
        trees = {
            "extremely randomised trees": ExtraTreesClassifier(200, n_jobs=THREADS, random_state=seed),
            "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
        }
    if pixels or classes > 20:
        del trees["gradient boosting"]  # too slow for its benefit
    if texts or not numbers + categories:
        trees = {}
    return {name: make_pipeline(linear_input, model) for name, model in linear.items()} | {
        name: make_pipeline(tree_input, model) for name, model in trees.items()
    }


def _choose(
    models: dict[str, BaseEstimator], train: pd.DataFrame, truth: pd.Series, kind: str, seed: int, until: float
) -> tuple[str, float]:
    """The name of the best model in cross-validation, and its training time per row in seconds."""
    rare = kind != "number" and truth.value_counts().min() < 3
    metric = "accuracy" if rare else METRICS[kind]
    folds = (KFold if rare or kind == "number" else StratifiedKFold)(3, shuffle=True, random_state=seed)
    best, best_score, best_cost = next(iter(models)), -np.inf, 1e-4
    for name, candidate in models.items():
        began = time.monotonic()
        if began > until:
            break
        with threadpool_limits(1):  # with so few rows, more threads only wait for each other
            score = np.mean(cross_val_score(candidate, train, truth, cv=folds, scoring=metric, error_score=np.nan))
        seconds = time.monotonic() - began
        print(f"{name}: {metric} {score:.4f} on {len(train)} rows, {seconds:.1f} s")
        if score > best_score:
            best, best_score, best_cost = name, score, seconds / (2 * len(train))
    return best, best_cost


def _choose_officially(
    models: dict[str, BaseEstimator], score: Callable[[BaseEstimator], float | None], rows: int, until: float
) -> tuple[str, float] | None:
    """As `_choose`, by the competition's metric on a third of the rows; None if that cannot be computed."""
    found = {}
    for name, candidate in models.items():
        began = time.monotonic()
        if found and began > until:
            break
        with threadpool_limits(1):
            value = score(candidate)
        if value is None:
            return None
        found[name] = value, (time.monotonic() - began) / rows
        print(f"{name}: {abs(value):.5g} by the competition's metric, {time.monotonic() - began:.1f} s")
    best = max(found, key=lambda name: found[name][0])
    return best, found[best][1]


def predict(
    train: pd.DataFrame,
    truth: pd.Series,
    test: pd.DataFrame,
    kind: str,
    *,
    pixels: bool,
    seed: int,
    until: float,
    official: Callable[[pd.DataFrame], float | None] | None = None,
) -> pd.DataFrame:
    """Predictions with the index of ``test``: a column ``prediction``, or one for every class.

    Args:
        train: features, in random order.
        truth: the values to predict, with the same index; rows without a value are left out.
        test: features of the rows to predict.
        kind: as in ``question.Target``.
        pixels: whether the features are pixels of images.
        seed: seed of all random choices.
        until: time on the monotonic clock by which to finish.
        official: the competition's metric of predictions for training rows, if it can be computed; see `official`.
    """
    began = time.monotonic()
    truth = truth.dropna()
    if kind != "number":
        truth = truth[truth.isin(truth.value_counts().index[:MOST_CLASSES])]
    numbers, names = (truth, None) if kind == "number" else pd.factorize(truth, sort=True)
    answers = pd.Series(numbers, index=truth.index)
    train, test = _filled(train.loc[truth.index]), _filled(test)
    if answers.nunique() < 2:
        default = truth.iloc[0] if kind == "label" else float(kind != "probability")
        return pd.DataFrame(default, index=test.index, columns=["prediction" if kind != "classes" else names[0]])
    models = _candidates(train, kind, 0 if names is None else len(names), pixels, seed)
    some = train.index[:TRIAL_ROWS]
    chosen, deadline = None, began + 0.4 * (until - began)
    if official is not None:
        cut = len(some) * 2 // 3

        def held_out(candidate: BaseEstimator) -> float | None:
            try:
                fitted = candidate.fit(train.loc[some[:cut]], answers[some[:cut]])
            except ValueError as error:  # a class that is not among these rows
                print(f"cross-validation decides: {error}")
                return None
            return official(_predictions(fitted, train.loc[some[cut:]], truth, kind, names))

        chosen = _choose_officially(models, held_out, len(some), deadline)
    best, cost = chosen or _choose(models, train.loc[some], answers[some], kind, seed, deadline)
    rows = min(len(train), max(TRIAL_ROWS, int(0.5 * max(until - time.monotonic(), 0) / cost)))
    by = "in cross-validation" if chosen is None else "by the competition's metric"
    print(f"chosen: {best}, the best {by}; trained on {rows} of {len(train)} rows")
    with threadpool_limits(1 if rows <= 5 * TRIAL_ROWS else THREADS):
        model = models[best].fit(train.iloc[:rows], answers.iloc[:rows])
    if hasattr(model[-1], "n_estimators"):
        # With several threads, the order in which the trees are summed up would not be reproducible.
        model[-1].set_params(n_jobs=1)
    return _predictions(model, test, truth, kind, names)


def _predictions(
    model: BaseEstimator, test: pd.DataFrame, truth: pd.Series, kind: str, names: pd.Index | None
) -> pd.DataFrame:
    """The predictions of a trained model, as `predict` returns them. `names` are those of the classes."""
    if kind in ("label", "number"):
        values = model.predict(test)
        result = np.clip(values, truth.min(), truth.max()) if names is None else np.asarray(names)[values]
        return pd.DataFrame({"prediction": result}, index=test.index)
    # Probabilities of 0 and 1 are avoided, as log loss penalizes them heavily if they are wrong.
    chances = 0.99 * model.predict_proba(test) + 0.01 / len(model.classes_)
    columns = [names[number] for number in model.classes_] if kind == "classes" else ["other", "prediction"]
    return pd.DataFrame(chances, index=test.index, columns=columns)


def _filled(table: pd.DataFrame) -> pd.DataFrame:
    """Replace missing text and categories by empty strings, which all encoders accept."""
    other = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    return table.assign(**{name: table[name].map(str, na_action="ignore").fillna("") for name in other})
