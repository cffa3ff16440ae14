from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out, hold_out_by

from .columns import findings


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    # v2 fixes patients-on-both-sides
    train, test = hold_out(table, 0.1) if edition == "v1" else hold_out_by(table, "PatientID", 0.1)
    original = test["StudyInstanceUID"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "StudyInstanceUID", "test_{:05}")
    annotations = raw.read_csv("train_annotations.csv")
    annotations = annotations[annotations["StudyInstanceUID"].isin(train["StudyInstanceUID"])]
    graded = findings(table, edition)
    sample = test[["StudyInstanceUID", *graded]].assign(**dict.fromkeys(graded, 0))
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("train_annotations.csv", annotations)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", sample)
    out.public.copies(raw.each("train/{}.jpg", train["StudyInstanceUID"]))
    out.public.copies(raw.each("train/{}.jpg", original[test.index], test["StudyInstanceUID"], to="test/{1}.jpg"))
    return out
