import pandas as pd
from PIL import Image

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

HIDDEN = {"inklabels.png", "inklabels_rle.csv", "ir.png"}


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    gold = raw.read_csv("train/3/inklabels_rle.csv").assign(Id="a")
    if len(gold) != 1:
        raise DownloadError(f"train/3/inklabels_rle.csv has {len(gold)} rows instead of one; download it again")
    with raw.open_file("train/3/ir.png") as file:
        width, height = Image.open(file).size
    out = Preparation()
    out.public.copy_tree("train/1", raw, "train/1")
    out.public.copy_tree("train/2", raw, "train/2")
    files = raw.tree("train/3")
    out.public.copies((f"test/a/{path}", file) for path, file in files if path.rpartition("/")[2] not in HIDDEN)
    out.public.table("sample_submission.csv", pd.DataFrame({"Id": ["a"], "Predicted": ["1 1 5 1"]}))
    out.private.table("inklabels_rle.csv", gold.assign(width=width, height=height))
    out.private.table("gold_submission.csv", gold)
    return out
