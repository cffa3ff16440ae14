from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    if list(table.columns) != ["segment_id", "time_to_eruption"]:
        raise DownloadError("train.csv must have the columns segment_id and time_to_eruption; download it again")
    train, test = hold_out(table, 0.1)
    original = test["segment_id"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "segment_id", "{}")
        test = test.assign(segment_id=range(table["segment_id"].max() + 1, table["segment_id"].max() + 1 + len(test)))
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(time_to_eruption=0))
    out.public.copies(raw.each("train/{}.csv", train["segment_id"]))
    out.public.copies(raw.each("train/{}.csv", original[test.index], test["segment_id"], to="test/{1}.csv"))
    return out
