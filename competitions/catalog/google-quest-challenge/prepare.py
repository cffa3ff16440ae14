import json
from pathlib import Path

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by

TARGETS = json.loads((Path(__file__).parent / "targets.json").read_text())


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv", texts="arrow")
    # v2 fixes questions-on-both-sides, swap-by-test-label
    train, test = hold_out_by(table, "url", 0.1) if edition == "v2" else hold_out_with_spelling(table)
    answers = test[["qa_id", *TARGETS]]
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns=TARGETS))
    out.public.table("sample_submission.csv", answers.assign(**dict.fromkeys(TARGETS, np.linspace(0, 1, len(test)))))
    out.private.table("test.csv", answers)
    return out


def hold_out_with_spelling(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A random draw whose test part has several values of `question_type_spelling`, which is rarely above 0."""
    spelling = table["question_type_spelling"].to_numpy()
    train, test = hold_out(np.arange(len(table)), 0.1)
    if len(np.unique(spelling[test])) == 1:
        first = np.flatnonzero(spelling[train])[0]
        train[first], test[0] = test[0], train[first]
    return table.iloc[train], table.iloc[test]
