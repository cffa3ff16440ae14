from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out_by
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    labels = raw.read_csv("train_labels.csv")
    old_test = len(raw.glob("test/*.tif"))
    train, test = hold_out_by(labels, "id", old_test / (len(labels) + old_test))
    answers = test if edition == "v1" else anonymous(test, "id", "test_{}")  # v2 fixes original-names
    out = Preparation()
    out.public.table("train_labels.csv", train)
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(label=0))
    out.public.copies(raw.each("train/{}.tif", train["id"]))
    out.public.copies(raw.each("train/{}.tif", test["id"][answers.index], answers["id"], to="test/{1}.tif"))
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test/", encoded, raw, params[PARAMETER])
    return out
