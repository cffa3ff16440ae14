from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by

from .columns import VERDICTS


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # v2 fixes missing-value-texts
    table = raw.read_csv("train.csv", keep_default_na=edition == "v1", texts="arrow")
    # v2 fixes prompts-on-both-sides
    train, answers = hold_out_by(table, "prompt", 0.1) if edition == "v2" else hold_out(table, 0.1)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", answers[["id", "prompt", "response_a", "response_b"]])
    out.public.table("sample_submission.csv", answers[["id"]].assign(**dict.fromkeys(VERDICTS, 1 / 3)))
    out.private.table("answers.csv", answers)
    return out
