from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .columns import SUBMITTED

TARGETS = [f"EC{number}" for number in range(1, 7)]
COLUMNS = 38


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    if len(table.columns) != COLUMNS:
        raise DownloadError(f"train.csv has {len(table.columns)} columns, not {COLUMNS}; download it again")
    train, test = hold_out(table, 0.1)
    submitted = test.loc[:, test.columns.isin(["id", *SUBMITTED])]
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns=TARGETS))
    out.private.table("test.csv", submitted if edition == "v2" else test)  # v2 fixes answers-with-features
    out.public.table("sample_submission.csv", submitted.assign(**dict.fromkeys(SUBMITTED, 0.5)))
    return out
