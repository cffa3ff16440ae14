"""The download is one file of 307,000 lines (17 GB). It is streamed in chunks of 1,000 lines (about 50 MB)."""

import io
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

FILE = "simplified-nq-train.jsonl"
CHUNK = 1000
QUESTION = ["example_id", "question_text", "document_text", "long_answer_candidates"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    rows = [row for chunk in chunks(raw, "test") for row in gold_rows(chunk)]
    gold = pd.DataFrame(rows, columns=["example_id", "PredictionString"])
    out = Preparation()
    out.public.derived("simplified-nq-train.jsonl", json_lines, "train")
    out.public.derived("simplified-nq-test.jsonl", json_lines, "test", QUESTION)
    out.public.table("sample_submission.csv", gold.assign(PredictionString=""))
    out.private.derived("test.jsonl", json_lines, "test")
    out.private.table("gold_submission.csv", gold)
    return out


def chunks(raw: Download, part: str) -> Iterator[pd.DataFrame]:
    """Yield the train or test part of each chunk. The other lines are not parsed."""
    with raw.open_file(FILE) as file:
        while lines := list(islice(file, CHUNK)):
            train, test = hold_out(np.arange(len(lines)), 0.1)
            wanted = b"\n".join(lines[i] for i in (train if part == "train" else test))
            chunk = pd.read_json(io.BytesIO(wanted), orient="records", lines=True, dtype=False)
            yield chunk.assign(example_id=chunk["example_id"].astype(str))


def json_lines(raw: Download, part: str, columns: list[str] | None = None) -> Iterator[bytes]:
    for chunk in chunks(raw, part):
        yield (chunk[columns] if columns else chunk).to_json(orient="records", lines=True).encode()


def gold_rows(chunk: pd.DataFrame) -> Iterator[tuple[str, str]]:
    for name, annotations in zip(chunk["example_id"], chunk["annotations"], strict=True):
        if len(annotations) != 1:
            raise DownloadError(f"question {name} of {FILE} has {len(annotations)} annotations instead of one")
        (annotation,) = annotations
        long, shorts, yes_no = annotation["long_answer"], annotation["short_answers"], annotation["yes_no_answer"]
        yield f"{name}_short", yes_no if yes_no != "NONE" else span(shorts[0]) if shorts else ""
        yield f"{name}_long", span(long) if long["start_token"] != -1 else ""


def span(answer: dict[str, int]) -> str:
    return f"{answer['start_token']}:{answer['end_token']}"
