from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split, split_by


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    table = raw.read_csv("train.csv")
    train, test = split(table, 0.1) if edition == "v1" else split_by(table, "PatientID", 0.1)
    annotations = raw.read_csv("train_annotations.csv")
    annotations = annotations[annotations["StudyInstanceUID"].isin(train["StudyInstanceUID"])]
    findings = list(table.columns[1:10] if edition == "v1" else table.columns[1:12])
    sample = test[["StudyInstanceUID", *findings]].assign(**dict.fromkeys(findings, 0))
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("train_annotations.csv", annotations)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", sample)
    out.public.copies(raw.each("train/{}.jpg", train["StudyInstanceUID"]))
    out.public.copies(raw.each("train/{}.jpg", test["StudyInstanceUID"], to="test/{}.jpg"))
    return out
