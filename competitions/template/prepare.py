"""What becomes of the download: a declaration, nothing is written here.

competitions/download.py says how to read the download (also archives in it), competitions/preparation.py what can be
declared (tables, copies, archives, derived files), and competitions/splits.py how test sets are drawn.
"""

from competitions.download import Download
from competitions.preparation import Preparation
from competitions.splits import split


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    train, test = split(raw.read_csv("train.csv"), 0.2)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="area"))
    out.private.table("test.csv", test[["id", "area"]])
    out.public.table("sample_submission.csv", test[["id"]].assign(area=0.0))
    return out
