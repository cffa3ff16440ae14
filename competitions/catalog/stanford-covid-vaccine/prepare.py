from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import LeftOut, Params, Preparation
from competitions.preparing.download import Download

from .columns import TARGETS

SIMILAR = 0.8
DECIMALS = {"float_format": "%.10f"}


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table, unlabelled = (raw.read_json_lines(name) for name in ("train.json", "test.json"))
    drawn = table[table["SN_filter"] > 0].sample(n=int(len(table) * 0.1), random_state=0)
    is_test = table.index.isin(drawn.index)
    train, test = table[~is_test], table[is_test]
    out = Preparation()
    if edition == "v2":  # v2 fixes similar-sequences
        before, train = len(train), train[~similar(train["sequence"], test["sequence"])]
        out.left_out.append(LeftOut("similar-sequences", "sequences", before - len(train), before))
    answers = positions(test)
    out.public.text("train.json", json_lines(train))
    out.public.text("test.json", json_lines(test[unlabelled.columns]))
    out.private.table("test.csv", answers, **DECIMALS)
    out.public.table("sample_submission.csv", answers[["id_seqpos"]].assign(**dict.fromkeys(TARGETS, 0.0)), **DECIMALS)
    return out


def similar(sequences: pd.Series, others: pd.Series) -> NDArray[np.bool_]:
    """Which sequences have the same base as one of the others in four fifths of the places."""
    length = int(max(sequences.str.len().max(), others.str.len().max()))
    letters, other_letters = (
        np.array([list(sequence.ljust(length)) for sequence in part]) for part in (sequences, others)
    )
    equal = sum((letters == base).astype(np.float32) @ (other_letters == base).astype(np.float32).T for base in "ACGU")
    return np.asarray(equal).max(axis=1) >= SIMILAR * length


def json_lines(part: pd.DataFrame) -> str:
    return part.assign(index=range(len(part))).to_json(orient="records", lines=True)


def positions(test: pd.DataFrame) -> pd.DataFrame:
    """One row per base: the measured values, then zeros for the bases that were not measured."""
    lengths, scored = test["seq_length"], test["seq_scored"]
    wrong = (lengths != lengths.iloc[0]) | (scored >= lengths)
    for target in TARGETS:
        wrong |= test[target].str.len() != scored
    if wrong.any():
        raise DownloadError("train.json has measurements that do not fit the sequence lengths; download it again")
    indexes = np.arange(lengths.iloc[0])
    rows: dict[str, Any] = {"id_seqpos": [f"{sequence}_{index}" for sequence in test["id"] for index in indexes]}
    keep = (indexes < scored.to_numpy()[:, None]).ravel()
    for target in TARGETS:
        rows[target] = np.zeros(keep.shape)
        rows[target][keep] = np.array(list(chain.from_iterable(test[target])), float)
    return pd.DataFrame(rows | {"keep": keep})
