"""The table has 55 million rows and is never completely in memory, see `competitions.preparing.tables.bigtable`."""

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.preparing.tables.bigtable import BigTable

TEST_ROWS = 9914
NOTE = "GCP-Coupons-Instructions.rtf"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = BigTable(raw, "train.csv")
    train, test = hold_out(table.rows, TEST_ROWS)
    rides = table.frame(test)
    out = Preparation()
    out.public.content("labels.csv", table.content(train))
    out.public.table("test.csv", rides.drop(columns="fare_amount"))
    out.public.table("sample_submission.csv", rides[["key"]].assign(fare_amount=11.35))
    out.private.table("test.csv", rides)
    out.public.copy(NOTE, raw.file(NOTE))
    return out
