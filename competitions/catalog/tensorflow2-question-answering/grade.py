from pathlib import Path

import orjson
import pandas as pd

from competitions.editions import Edition
from competitions.scoring.cells import as_text
from competitions.scoring.checks import match
from competitions.scoring.errors import InvalidSubmission
from competitions.scoring.metrics.classification import accuracy, f_beta
from competitions.scoring.reading import Reads

READS = Reads(texts="arrow")

_BUFFER = 1 << 17  # bytes read at a time; the usual 4 to 8 KB are less than a line, which is then put together of parts


def read_answers(folder: Path) -> pd.DataFrame:
    """The correct answers by row id. The documents, which make up most of the file, are skipped."""
    rows = []
    with (folder / "private/test.jsonl").open("rb", _BUFFER) as file:
        for line in file:
            question = orjson.loads(b"{" + line[line.rindex(b'"annotations":') :])
            annotation = question["annotations"][0]
            long, yes_no = annotation["long_answer"], annotation["yes_no_answer"]
            shorts = {(answer["start_token"], answer["end_token"]) for answer in annotation["short_answers"]}
            longs = {(long["start_token"], long["end_token"])} if long["start_token"] != -1 else set()
            rows.append((f"{question['example_id']}_long", longs))
            rows.append((f"{question['example_id']}_short", shorts | ({yes_no} - {"NONE"})))
    return pd.DataFrame(rows, columns=["example_id", "right"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame, edition: Edition) -> float:
    submission, answers = match(submission, answers, on="example_id", columns=["PredictionString"])
    predictions = map(parse, as_text(submission.fillna({"PredictionString": ""}), "PredictionString"))
    predicted, expected = [], []
    for prediction, true in zip(predictions, answers["right"], strict=True):
        predicted.append(prediction != "")
        expected.append(prediction in true if prediction else bool(true))
    if edition == "v2":  # v2 fixes micro-f1-is-accuracy
        pairs = list(zip(predicted, expected, strict=True))
        return f_beta(pairs.count((True, True)), pairs.count((True, False)), pairs.count((False, True)))
    return accuracy(expected, predicted)


def parse(cell: str) -> tuple[int, int] | str:
    text = cell.strip()
    if text in ("YES", "NO", ""):
        return text
    try:
        start, end = map(int, text.split(":"))
    except ValueError as error:
        raise InvalidSubmission(
            f"`PredictionString` must be start:end, YES, NO or blank, not {cell[:40]!r}."
        ) from error
    return start, end
