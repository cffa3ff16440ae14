"""The download is one file of 307,000 lines (17 GB). It is streamed in chunks of 1,000 lines (about 50 MB)."""

import io
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import IO, Any

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Content, Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.tables.threads import in_order

from .questions import parse

FILE = "simplified-nq-train.jsonl"
CHUNK = 1000
QUESTION = ["example_id", "question_text", "document_text", "long_answer_candidates"]
PIECE = 1 << 20


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # A tenth of the file: it is formatted here, and read from scratch files when it is written.
    rows, questions, answers = [], tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
    for lines in chunks(raw, "test"):
        public, private, gold = formatted(lines, QUESTION, None)
        questions.write(public)
        answers.write(private)
        rows += gold
    table = pd.DataFrame(rows, columns=["example_id", "PredictionString"])
    out = Preparation()
    out.public.derived("simplified-nq-train.jsonl", train_lines)
    out.public.content("simplified-nq-test.jsonl", Content(partial(pieces, questions)))
    out.public.table("sample_submission.csv", table.assign(PredictionString=""))
    out.private.content("test.jsonl", Content(partial(pieces, answers)))
    out.private.table("gold_submission.csv", table)
    return out


def chunks(raw: Download, part: str) -> Iterator[list[bytes]]:
    """Yield the lines of the train or test part of each chunk. The other lines are not parsed."""
    with raw.open_file(FILE) as file:
        while lines := list(islice(file, CHUNK)):
            train, test = hold_out(np.arange(len(lines)), 0.1)
            yield [lines[i] for i in (train if part == "train" else test)]


def train_lines(raw: Download) -> Iterator[bytes]:
    with ThreadPoolExecutor(1) as pool:  # formats while the next lines are inflated
        yield from in_order(pool, lambda lines: formatted(lines, None)[0], chunks(raw, "train"), 1)


def formatted(lines: list[bytes], *layouts: list[str] | None) -> list[Any]:
    """The text of the lines with the columns of each of `layouts`; None for all. After these, the gold rows."""
    questions = [parse(line) for line in lines]
    known = [question for question in questions if question]
    if len(known) == len(lines):
        texts = [b"".join([question.line(columns) for question in known]) for columns in layouts]
        names, annotations = [each.example_id for each in known], [each.annotations for each in known]
    else:
        chunk = pd.read_json(io.BytesIO(b"\n".join(lines)), orient="records", lines=True, dtype=False)
        chunk = chunk.assign(example_id=chunk["example_id"].astype(str))
        tables = [chunk[columns] if columns else chunk for columns in layouts]
        texts = [table.to_json(orient="records", lines=True).encode() for table in tables]
        names, annotations = chunk["example_id"].tolist(), chunk["annotations"].tolist()
    return [*texts, list(gold_rows(names, annotations)) if len(layouts) > 1 else None]


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece


def gold_rows(names: list[str], notes: list[list[dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    for name, annotations in zip(names, notes, strict=True):
        if len(annotations) != 1:
            raise DownloadError(f"question {name} of {FILE} has {len(annotations)} annotations instead of one")
        (annotation,) = annotations
        long, shorts, yes_no = annotation["long_answer"], annotation["short_answers"], annotation["yes_no_answer"]
        yield f"{name}_short", yes_no if yes_no != "NONE" else span(shorts[0]) if shorts else ""
        yield f"{name}_long", span(long) if long["start_token"] != -1 else ""


def span(answer: dict[str, int]) -> str:
    return f"{answer['start_token']}:{answer['end_token']}"
