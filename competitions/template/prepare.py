"""Declare the public and the private files of the dataset. Nothing is written here.

In `competitions.preparing`, `download` reads the download and archives in it, `declaration` declares files (tables,
copies, archives, derived files), and `holdout` draws test sets.
"""

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), 0.2)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="area"))
    out.private.table("test.csv", test[["id", "area"]])
    out.public.table("sample_submission.csv", test[["id"]].assign(area=0.0))
    return out
