from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation, table
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # v2 fixes missing-value-phrases
    phrases = raw.archive("train.tsv.zip").read_csv("train.tsv", sep="\t", keep_default_na=edition == "v1")
    # v2 fixes sentences-on-both-sides
    train, answers = hold_out_by(phrases, "SentenceId", 0.3) if edition == "v2" else hold_out(phrases, 0.3)
    test = answers.drop(columns="Sentiment")
    out = Preparation()
    out.public.archive("train.tsv.zip", {"train.tsv": table(train, "train.tsv")})
    out.public.archive("test.tsv.zip", {"test.tsv": table(test, "test.tsv")})
    out.public.table("sampleSubmission.csv", test[["PhraseId"]].assign(Sentiment=2))
    out.private.table("answers.csv", answers)
    return out
