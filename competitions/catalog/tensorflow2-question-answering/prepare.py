"""The download is one file of 307,000 lines (17 GB). It is streamed in chunks of 1,000 lines (about 50 MB)."""

import io
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Content, Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.tables.threads import ahead, in_order

from .questions import parse, text_of

FILE = "simplified-nq-train.jsonl"
CHUNK = 1000
QUESTION = ["example_id", "question_text", "document_text", "long_answer_candidates"]
PIECE = 1 << 20
TOGETHER = 50  # lines; some 2 MB: the system clears the memory of larger pieces each time


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    passed = Pass(raw)
    out = Preparation()
    out.public.content("simplified-nq-train.jsonl", Content(passed.train_lines))
    out.public.content("simplified-nq-test.jsonl", Content(lambda: pieces(passed.test().questions)))
    out.public.table("sample_submission.csv", (test.assign(PredictionString="") for test in passed.gold()))
    out.private.content("test.jsonl", Content(lambda: pieces(passed.test().answers)))
    out.private.table("gold_submission.csv", passed.gold())
    return out


class Test(NamedTuple):
    """The test part, a tenth of the file: the text of two files as scratch files, and the gold rows."""

    questions: IO[bytes]
    answers: IO[bytes]
    rows: list[tuple[str, str]]


class Pass:
    """Reads the file once: while the train part is written, the test part is collected."""

    def __init__(self, raw: Download) -> None:
        self._raw = raw
        self._test: Test | None = None

    def test(self) -> Test:
        """The test part. It costs a pass of its own if the train part was not written before."""
        if self._test is None:
            for _ in self._lines(train=False):
                pass
        assert self._test is not None
        return self._test

    def gold(self) -> Iterator[pd.DataFrame]:
        """Yield the gold submission."""
        yield pd.DataFrame(self.test().rows, columns=["example_id", "PredictionString"])

    def train_lines(self) -> Iterator[bytes]:
        """Yield the text of the train part."""
        return self._lines(train=True)

    def _lines(self, *, train: bool) -> Iterator[bytes]:
        test = Test(tempfile.TemporaryFile(), tempfile.TemporaryFile(), [])  # noqa: SIM115
        with ThreadPoolExecutor(1) as pool:  # formats while the next lines are inflated
            for text, public, private, gold in in_order(pool, partial(parts, train=train), ahead(chunks(self._raw)), 1):
                test.questions.writelines(public)
                test.answers.writelines(private)
                test.rows.extend(gold)
                yield from text
        self._test = test


def chunks(raw: Download) -> Iterator[list[bytes]]:
    """Yield the lines of each chunk."""
    with raw.open_file(FILE) as file:
        while lines := list(islice(file, CHUNK)):
            yield lines


def parts(lines: list[bytes], train: bool) -> list[Any]:
    """The text of the train part of a chunk, the two texts of its test part, and its gold rows."""
    first, second = hold_out(np.arange(len(lines)), 0.1)
    text = formatted([lines[i] for i in first], None)[0] if train else []
    return [text, *formatted([lines[i] for i in second], QUESTION, None)]


def formatted(lines: list[bytes], *layouts: list[str] | None) -> list[Any]:
    """The text of the lines with the columns of each of `layouts`, in pieces (None: all), and the gold rows."""
    texts: list[list[bytes]] = [[] for _ in layouts]
    names: list[str] = []
    annotations: list[list[dict[str, Any]]] = []
    for start in range(0, len(lines), TOGETHER):
        questions = parse(lines[start : start + TOGETHER])
        if questions is None:
            return by_pandas(lines, *layouts)
        for text, columns in zip(texts, layouts, strict=True):
            text.append(text_of(questions, columns))
        names += [each.example_id for each in questions]
        annotations += [each.annotations for each in questions]
    return [*texts, list(gold_rows(names, annotations)) if len(layouts) > 1 else None]


def by_pandas(lines: list[bytes], *layouts: list[str] | None) -> list[Any]:
    """The same for any lines: pandas decides from all of them together how the values of a column are written."""
    chunk = pd.read_json(io.BytesIO(b"\n".join(lines)), orient="records", lines=True, dtype=False)
    chunk = chunk.assign(example_id=chunk["example_id"].astype(str))
    texts = [
        [(chunk[columns] if columns else chunk).to_json(orient="records", lines=True).encode()] for columns in layouts
    ]
    gold = gold_rows(chunk["example_id"].tolist(), chunk["annotations"].tolist())
    return [*texts, list(gold) if len(layouts) > 1 else None]


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
