"""The table has 6 million questions (7 GB), so `BigTable` reorders its rows in a scratch file."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.preparing.declaration import LeftOut, Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.preparing.tables.bigtable import BigTable

GUESS = "javascript c# python php java"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    text = {"Id": str, "Tags": str}
    # v2 fixes missing-value-tags
    table = BigTable(raw.archive("Train.zip"), "Train.csv", dtype=text, keep_default_na=edition == "v1")
    train, test = hold_out(table.rows, 0.1)
    out = Preparation()
    if edition == "v2":  # v2 fixes copies-on-both-sides
        questions = fingerprints(table)
        before, train = len(train), train[~np.isin(questions[train], questions[test])]
        out.left_out.append(LeftOut("copies-on-both-sides", "questions", before - len(train), before))
    out.public.content("train.csv", table.content(train))
    out.public.table("test.csv", (rows.drop(columns="Tags") for rows in table.frames(test)))
    out.public.table("sample_submission.csv", (sample(rows, edition) for rows in table.frames(test)))
    out.private.content("test.csv", table.content(test))
    return out


def fingerprints(table: BigTable) -> NDArray[np.uint64]:
    """A hash of 64 bits of the title and the body of each row, in file order."""
    frames = table.frames(table.rows)
    return np.concatenate([pd.util.hash_pandas_object(rows[["Title", "Body"]], index=False) for rows in frames])


def sample(rows: pd.DataFrame, edition: Edition) -> pd.DataFrame:
    guessed = rows.assign(Tags=GUESS)
    return guessed[["Id", "Tags"]] if edition == "v2" else guessed  # v2 fixes bodies-in-sample
