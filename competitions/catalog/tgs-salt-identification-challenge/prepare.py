import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    data = raw.archive("competition_data.zip")
    table = data.read_csv("competition_data/train.csv").fillna("")
    if (image_count := len(data.glob("competition_data/train/images/*.png"))) != len(table):
        raise DownloadError(
            f"competition_data.zip contains {image_count} training images, its train.csv {len(table)} rows"
        )
    train, test = hold_out(table, 0.25)
    depths, original = raw.read_csv("depths.csv"), test["id"]
    public_ids = train["id"]
    if edition == "v2":  # v2 fixes test-depths-withheld, original-names
        test = anonymous(test, "id", "test_{:05}")
        depths["id"] = depths["id"].replace(dict(zip(original.loc[test.index], test["id"], strict=True)))
        public_ids = pd.concat([public_ids, test["id"]])
    train, test = (part.sort_values("id") for part in (train, test))
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(rle_mask="1 1"))
    out.public.table("depths.csv", depths[depths["id"].isin(public_ids)].sort_values("id"))
    for folder in ("train/images", "train/masks"):
        out.public.copies((f"{folder}/{i}.png", data.file(f"competition_data/{folder}/{i}.png")) for i in train["id"])
    source, names = "competition_data/train/images", zip(test["id"], original.loc[test.index], strict=True)
    out.public.copies((f"test/images/{new}.png", data.file(f"{source}/{old}.png")) for new, old in names)
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test/images/", encoded, raw, params[PARAMETER])
    return out
