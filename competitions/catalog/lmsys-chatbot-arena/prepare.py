from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split, split_by

VERDICTS = ["winner_model_a", "winner_model_b", "winner_tie"]


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    table = raw.read_csv("train.csv", keep_default_na=edition == "v1")
    train, answers = split_by(table, "prompt", 0.1) if edition == "v2" else split(table, 0.1)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", answers[["id", "prompt", "response_a", "response_b"]])
    out.public.table("sample_submission.csv", answers[["id"]].assign(**dict.fromkeys(VERDICTS, 1 / 3)))
    out.private.table("answers.csv", answers)
    return out
