from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

CLASSES = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test, answers, sample = (
        # v2 fixes missing-value-comments
        raw.archive(f"{name}.csv.zip").read_csv(f"{name}.csv", keep_default_na=edition == "v1", texts="arrow")
        for name in ("train", "test", "test_labels", "sample_submission")
    )
    ids = test["id"]
    if not all(ids.isin(other).all() and other.isin(ids).all() for other in (answers["id"], sample["id"])):
        raise DownloadError(
            "test.csv, test_labels.csv and sample_submission.csv differ in ids; is the download complete?"
        )
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test)
    out.public.table("sample_submission.csv", sample.assign(**dict.fromkeys(CLASSES, 0.5)))
    out.private.table("test.csv", answers)
    return out
