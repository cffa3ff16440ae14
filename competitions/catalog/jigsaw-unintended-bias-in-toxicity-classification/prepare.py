from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

COLUMNS = 45


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    answers = raw.read_csv("test_private_expanded.csv", texts="arrow")
    if len(answers.columns) != COLUMNS:
        raise DownloadError(f"test_private_expanded.csv has {len(answers.columns)} columns instead of {COLUMNS}")
    out = Preparation()
    out.public.copy("train.csv", raw.file("train.csv"))
    out.public.table("test.csv", answers[["id", "comment_text"]])
    out.public.table("sample_submission.csv", answers[["id"]].assign(prediction=0.0))
    out.private.copy("test.csv", raw.file("test_private_expanded.csv"))
    return out
