import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    case, day = (table["id"].str.split("_").str[part] for part in (0, 1))
    _, test_cases = hold_out(case.unique(), 0.1, seed=42)
    # `late` marks the fifth and later days of a case.
    late = day.str.removeprefix("day").astype(int).groupby(case).rank("dense") > 4
    in_test = case.isin(test_cases) | late
    train, test = table[~in_test], table[in_test].rename(columns={"segmentation": "predicted"})
    sizes = slice_sizes(raw, test["id"])
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test[["id", "class"]])
    out.private.table("test.csv", test.join(sizes, on="id"))
    out.public.table("sample_submission.csv", test[["id", "class"]].assign(predicted="1 1 5 2"))
    cases, test_folders = set(case), {*test_cases, *(case + "_" + day)[late]}
    for path, scan in raw.tree("train"):
        folders = path.split("/")
        if folders[0] in cases:
            out.public.copy(f"{'train' if test_folders.isdisjoint(folders[:2]) else 'test'}/{path}", scan)
    return out


def slice_sizes(raw: Download, ids: pd.Series) -> pd.DataFrame:
    """Return width and height by slice id, as floats.

    They are in the names: <case>_<day>/scans/slice_<number>_<width>_<height>_...
    """
    files = pd.Series(raw.glob("train/*/*/scans/slice_*.png"))
    parts = files.str.extract(r"([^/]+)/scans/(slice_[^_]+)_([^_]+)_([^_]+)_")
    sizes = parts[[2, 3]].astype(float).set_axis(["image_width", "image_height"], axis=1)
    sizes = sizes.set_axis(parts[0] + "_" + parts[1])
    sizes = sizes[sizes.index.isin(ids)]
    if len(sizes) != ids.nunique() or not sizes.index.is_unique:
        raise DownloadError("the download must have one scan for every slice in train.csv; download it again")
    return sizes
