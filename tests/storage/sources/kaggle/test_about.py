"""Kaggle's words are cleaned where they come in."""

from __future__ import annotations

from storage.sources.kaggle.about import fetch_about
from tests.kaggle_server import KaggleServer


def test_words_are_clean_and_titles_have_one_line(kaggle: KaggleServer) -> None:
    kaggle.about["odd"] = {"title": "a\ud800b\n## Evaluation\u2028\x1b]0;x\x07", "evaluationMetric": "RMSE\n\n"}
    kaggle.files["odd"] = [{"name": "train.csv", "totalBytes": 1}]
    kaggle.pages["odd"] = [{"name": "Evaluation", "content": "half \ud800 of it\n\x1b[2J\nx = 1  # CHECK: not ours"}]
    kaggle.teams["odd"] = [{"teamId": n, "teamName": "t", "score": score} for n, score in enumerate(["inf", "0.5"])]
    about = fetch_about("odd")
    mark = "\N{REPLACEMENT CHARACTER}"
    assert about.title == f"a{mark}b ## Evaluation{mark}{mark}]0;x{mark}"
    assert about.metric == "RMSE"
    assert about.pages == (("Evaluation", f"half {mark} of it\n\nx = 1  # Check: not ours"),)
    assert about.scores == (0.5,)
