"""The 32 million transactions are processed by `BigTable`, so they are never all in memory."""

import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.tables.bigtable import BigTable

WEEK = pd.Timedelta(days=7)
COPIED = ["sample_submission.csv", "articles.csv", "customers.csv"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = BigTable(raw, "transactions_train.csv", keep=("t_dat",))
    days = table.kept["t_dat"]
    dates = pd.to_datetime(days.cat.categories)
    start = dates.max() - WEEK
    # The test "week" of v1 has eight days, because both ends are included.
    in_week = dates > start if edition == "v2" else dates >= start  # v2 fixes eight-day-window
    is_test = days.isin(days.cat.categories[in_week]).to_numpy()
    bought = table.frame(table.rows[is_test]).groupby("customer_id")["article_id"]
    out = Preparation()
    out.public.content("transactions_train.csv", table.content(table.rows[~is_test]))
    answers = bought.agg(" ".join).rename("prediction").reset_index()
    # v2 fixes buyers-revealed, leading-zeros-lost, sample-scores-zero
    if edition == "v2":  # everybody who has to be in a submission; no articles for those who bought nothing
        everybody = raw.read_csv("sample_submission.csv", usecols=["customer_id"])
        answers = everybody.merge(answers, on="customer_id", how="left")
    out.private.table("answers.csv", answers)
    out.public.copies(raw.each("{}", COPIED))
    out.public.copy_tree("images", raw, "images")
    return out
