"""A baseline agent: submit the sample submission, inspect the data, train a suitable model, submit its predictions."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

import discover
import models
import numpy as np
import official
import pandas as pd
import question

TABLE_ROWS = 200_000
IMAGES = 8_000
PIXELS = 24


class Clock:
    """The time budget of the agent: nine tenths of the time limit."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._limit = 0.9 * float(os.environ.get("TIME_LIMIT_SECONDS", "3600"))

    def at(self, share: float) -> float:
        """The time on the monotonic clock at which this share of the budget is used up."""
        return self._began + share * self._limit


def hand_in(table: pd.DataFrame) -> None:
    """Replace the submission atomically, so that it is complete at any time."""
    folder = Path(os.environ["SUBMISSION_DIR"])
    table.to_csv(folder / "next.csv", index=False)
    (folder / "next.csv").replace(folder / "submission.csv")


def describe(
    asked: question.Question, data: Path, clock: Clock, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame, bool]:
    """Features of the training rows (in random order) and of the test rows, and whether the features are pixels.

    The indexes are the row numbers in the training table and in the submission. Rows without features are missing.
    """
    columns, rows = asked.feature_columns(), rng.permutation(asked.train.index)
    train_images, test_images = discover.images(data) if len(columns) < 2 else ({}, {})
    names = asked.train.loc[rows[:IMAGES], asked.train_key].astype(str)
    if names.isin(train_images.keys()).mean() > 0.5:
        train = discover.pixels(names, train_images, PIXELS, clock.at(0.25))
        test = discover.pixels(asked.ids, test_images, PIXELS, clock.at(0.5)).reindex(
            columns=train.columns, fill_value=0
        )
        print(f"features: {train.shape[1]} pixel values of images")
        return train, test, True
    if not columns:
        raise question.NotUnderstood("the training rows have neither features nor images")
    print(f"features: {len(columns)} columns of {asked.train_name} and {asked.test_name}")
    return asked.train.loc[rows[:TABLE_ROWS], columns], asked.test_rows()[columns], False


def model(asked: question.Question, submission: pd.DataFrame, data: Path, clock: Clock, seed: int) -> None:
    """Fill the submission with predictions."""
    rng = np.random.default_rng(seed)
    train, test, pixels = describe(asked, data, clock, rng)
    print(f"{len(train)} training rows and {len(test)} of {len(asked.ids)} test rows have features")
    if len(train) < 10 or test.empty:
        raise question.NotUnderstood("there are too few training rows, or no test rows")
    # A different 97 % of the rows for every seed, so that seeds also differ for models without randomness.
    train = train[rng.random(len(train)) < 0.97]
    for number, target in enumerate(asked.targets, 1):
        until = clock.at(0.5 + 0.5 * number / len(asked.targets))
        truth = target.values.loc[train.index]
        options = {"pixels": pixels, "seed": seed, "until": until, "official": official.scorer(asked)}
        predicted = models.predict(train, truth, test, target.kind, **options)
        question.fill_in(submission, target, predicted.reindex(range(len(submission))))


def main() -> None:
    """Make a submission."""
    clock, data, seed = Clock(), Path(os.environ["DATA_DIR"]), int(os.environ.get("SEED", "0"))
    sample_path = discover.sample_submission(data)
    sample = discover.read_table(sample_path, dtype=str, keep_default_na=False)
    hand_in(sample)
    print(f"submitted {sample_path.name} unchanged: {len(sample)} rows, columns {', '.join(sample.columns[:10])}")
    try:
        asked = question.understand(data, sample_path, sample)
        submission = sample.copy()
        for target in asked.targets:
            print(target.explanation)
            question.fill_in(submission, target, None)
        hand_in(question.balance(submission, sample, asked.targets))
        print("submitted the most common value, mean or frequency of the training data for every row")
        official.ask_and_choose()
        model(asked, submission, data, clock, seed)
        hand_in(question.balance(submission, sample, asked.targets))
        print("submitted the model's predictions")
        official.ask_and_choose()
    except question.NotUnderstood as problem:
        print(f"the earlier submission is kept: {problem}")
    except Exception:  # there is a valid submission in any case
        traceback.print_exc()
        print("the earlier submission is kept because of the error above")


if __name__ == "__main__":
    main()
