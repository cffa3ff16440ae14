from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    data = raw.archive("competition_data.zip")
    table = data.read_csv("competition_data/train.csv").fillna("")
    if (found := len(data.glob("competition_data/train/images/*.png"))) != len(table):
        raise DownloadError(f"competition_data.zip contains {found} training images, its train.csv {len(table)} rows")
    train, test = (part.sort_values("id") for part in hold_out(table, 0.25))
    depths = raw.read_csv("depths.csv")
    shown = table if edition == "v2" else train
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(rle_mask="1 1"))
    out.public.table("depths.csv", depths[depths["id"].isin(shown["id"])].sort_values("id"))
    for folder, part in (("train/images", train), ("train/masks", train), ("test/images", test)):
        source = folder.replace("test", "train")
        out.public.copies((f"{folder}/{i}.png", data.file(f"competition_data/{source}/{i}.png")) for i in part["id"])
    return out
