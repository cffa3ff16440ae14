"""The shared preparation of the English and the Russian text normalization challenge.

The real tables have ten million rows of tokens, which are Arrow arrays: two million rows take 0.6 GB of memory.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from competitions.editions import Edition
from competitions.preparing.declaration import LeftOut, Preparation, table
from competitions.preparing.holdout import hold_out_by

if TYPE_CHECKING:
    import pandas as pd

    from competitions.preparing.download import Download


def prepare_language(raw: Download, edition: Edition, language: str) -> Preparation:
    """The dataset of `language` ("en" or "ru"): one sentence in ten is held out, and both parts are renumbered.

    Edition v1 replaces tokens that pandas reads as missing values ("NA", "null", ...) by empty text. Edition v2 leaves
    out the training sentences that the test set has as well.
    """
    # v2 fixes missing-value-tokens
    archive = raw.archive(f"{language}_train.csv.zip")
    tokens = archive.read_csv(f"{language}_train.csv", keep_default_na=edition == "v1", texts="arrow")
    train, answers = hold_out_by(tokens, "sentence_id", 0.1)
    out = Preparation()
    if edition == "v2":  # v2 fixes sentences-on-both-sides
        sentence_count, train = train["sentence_id"].nunique(), _without(train, answers)
        dropped = sentence_count - train["sentence_id"].nunique()
        out.left_out.append(LeftOut("sentences-on-both-sides", "sentences", dropped, sentence_count))
    train, answers = map(_renumber, (train, answers))
    ids = answers["sentence_id"].astype(str) + "_" + answers["token_id"].astype(str)
    sample = answers[[]].assign(id=ids, after=answers["before"])
    public = {
        f"{language}_train.csv": train[["sentence_id", "token_id", "class", "before", "after"]],
        f"{language}_test_2.csv": answers[["sentence_id", "token_id", "before"]],
        f"{language}_sample_submission_2.csv": sample,
    }
    for name, rows in public.items():
        out.public.archive(f"{name}.zip", {name: table(rows, quoting=csv.QUOTE_NONNUMERIC)}, stored=True)
    out.private.table("answers.csv", sample.assign(after=answers["after"]), quoting=csv.QUOTE_NONNUMERIC)
    out.private.table("sample_submission.csv", sample, quoting=csv.QUOTE_NONNUMERIC)
    return out


def _without(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """The rows of the training sentences that do not occur in the test set."""
    return train[~train["sentence_id"].map(_fingerprints(train).isin(_fingerprints(test)))]


def _fingerprints(tokens: pd.DataFrame) -> pd.Series:
    """A 64-bit hash of each sentence, by its id: of its tokens and their positions, but not of what is read aloud."""
    import numpy as np
    import pandas as pd

    codes, words = pd.factorize(tokens["before"])
    hashed_positions = pd.util.hash_array(tokens["token_id"].to_numpy(dtype="int64"))
    mixed = (pd.util.hash_array(np.asarray(words, dtype=object))[codes] | np.uint64(1)) * hashed_positions
    return pd.Series(mixed, index=tokens.index).groupby(tokens["sentence_id"]).sum()


def _renumber(part: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return part.assign(sentence_id=pd.factorize(part["sentence_id"])[0])
