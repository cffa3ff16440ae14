from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train_labels.csv"), 0.1)
    original = test["id"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "id", "{:012x}")
    out = Preparation()
    out.public.table("train_labels.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(target=0.5))
    out.public.copies(raw.each("train/{0[0]}/{0}.npy", train["id"]))
    out.public.copies(raw.each("train/{0[0]}/{0}.npy", original[test.index], test["id"], to="test/{1[0]}/{1}.npy"))
    if edition == "v1":  # v2 fixes old-data-public
        out.public.copy_tree("old_leaky_data", raw, "old_leaky_data")
    return out
