"""What becomes of the download: a declaration, nothing is written here.

In `competitions.preparing`, `download` says how to read the download (also archives in it), `declaration` what can be
declared (tables, copies, archives, derived files), and `splits` how test sets are drawn.
"""

from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    train, test = split(raw.read_csv("train.csv"), 0.2)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="area"))
    out.private.table("test.csv", test[["id", "area"]])
    out.public.table("sample_submission.csv", test[["id"]].assign(area=0.0))
    return out
