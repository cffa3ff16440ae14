"""What the generators of answers share: their registry, the order of submissions, and files that several write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

Generator = np.random.Generator
GENERATORS: dict[str, Callable] = {}


def case(competition: str) -> Callable:
    """Register a generator f(public, private, rng, scale) -> submission (or a list of them)."""

    def register(function: Callable) -> Callable:
        GENERATORS[competition] = function
        return function

    return register


def mixed(table: pd.DataFrame, rng: Generator) -> pd.DataFrame:
    """The rows in random order: submissions need not keep the order of the answers."""
    return table.iloc[rng.permutation(len(table))]


def write(gold: pd.DataFrame, path: Path, public: Path, placeholder: str) -> None:
    """Write ids and answers to `path`, and the sample submission with `placeholder` as each answer."""
    gold.to_csv(path, index=False)
    gold.assign(**{gold.columns[-1]: placeholder}).to_csv(public / "sample_submission.csv", index=False)
