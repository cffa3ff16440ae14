"""The download is one file of 307,000 lines (17 GB). It is streamed in chunks of 1,000 lines (about 50 MB)."""

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.concurrency import prefetch
from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Pass, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .questions import Question, parse, text_of

FILE = "simplified-nq-train.jsonl"
CHUNK = 1000
QUESTION = ["example_id", "question_text", "document_text", "long_answer_candidates"]
TOGETHER = 50  # lines; some 2 MB: the system clears the memory of larger pieces each time
AHEAD = CHUNK // TOGETHER  # texts that wait to be written: those of a chunk


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    reading = Reading(raw)
    train, questions, answers = Pass(reading.texts).contents(3)
    out = Preparation()
    out.public.content("simplified-nq-train.jsonl", train)
    out.public.content("simplified-nq-test.jsonl", questions)
    out.public.table("sample_submission.csv", (gold.assign(PredictionString="") for gold in reading.gold()))
    out.private.content("test.jsonl", answers)
    out.private.table("gold_submission.csv", reading.gold())
    return out


class Reading:
    """Reads the file once: while the train part and the two files of the test part are written, gold rows are kept."""

    def __init__(self, raw: Download) -> None:
        self._raw = raw
        self._gold: list[tuple[str, str]] | None = None

    def texts(self) -> Iterator[tuple[int, bytes]]:
        """Yield the texts of the train part (0), of the questions (1) and of the answers (2) of the test part."""
        rows: list[tuple[str, str]] = []
        # One thread inflates, one checks and formats, and this one writes.
        for texts in prefetch(divided(prefetch(groups(self._raw), 4)), AHEAD):
            rows.extend(texts.rows)
            for number, texts_of_output in enumerate((texts.train, texts.questions, texts.answers)):
                for text in texts_of_output:
                    yield number, text
        self._gold = rows

    def gold(self) -> Iterator[pd.DataFrame]:
        """Yield the gold submission. It costs a pass of its own if the texts were not written before."""
        if self._gold is None:
            for _ in self.texts():
                pass
        yield pd.DataFrame(self._gold, columns=["example_id", "PredictionString"])


class Texts(NamedTuple):
    """What is added to the files: texts of the train part, the two texts of the test part, and its gold rows."""

    train: Sequence[bytes] = ()
    questions: Sequence[bytes] = ()
    answers: Sequence[bytes] = ()
    rows: Sequence[tuple[str, str]] = ()


class Chunk:
    """The lines that are divided together. They are checked as they come, and formatted when all are there."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._questions: list[Question | None] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, lines: list[bytes]) -> None:
        """Check the next lines."""
        self._lines += lines
        self._questions += map(parse, lines)

    def train(self, rows: NDArray[np.intp]) -> Iterator[Texts]:
        """Yield the text of the train part, which has these rows."""
        questions = self._known(rows)
        if questions is None:
            yield Texts(by_pandas(self._of(rows), None)[:1])
        else:
            for part in parts(questions):
                yield Texts([text_of(part)])

    def test(self, rows: NDArray[np.intp]) -> Texts:
        """The texts and the gold rows of the test part, which has these rows."""
        parsed = self._known(rows)
        if parsed is None:
            questions, answers, gold = by_pandas(self._of(rows), QUESTION, None)
            return Texts([], [questions], [answers], gold)
        gold = [*gold_rows([question.example_id for question in parsed], [question.annotations for question in parsed])]
        return Texts([], [text_of(part, QUESTION) for part in parts(parsed)], [*map(text_of, parts(parsed))], gold)

    def _known(self, rows: NDArray[np.intp]) -> list[Question] | None:
        """The questions in these rows; None if only pandas knows one of them."""
        questions = [question for row in rows if (question := self._questions[row]) is not None]
        return questions if len(questions) == len(rows) else None

    def _of(self, rows: NDArray[np.intp]) -> list[bytes]:
        return [self._lines[row] for row in rows]


def groups(raw: Download) -> Iterator[list[bytes]]:
    """Yield some lines of a chunk at a time."""
    count = 0
    with raw.open_file(FILE) as file:
        while lines := list(islice(file, min(TOGETHER, CHUNK - count))):
            yield lines
            count = (count + len(lines)) % CHUNK


def divided(read: Iterable[list[bytes]]) -> Iterator[Texts]:
    """Yield the texts of all chunks, of which some lines are read at a time."""
    chunk = Chunk()
    for lines in chain(read, [[]]):  # at the end, for a last chunk that is smaller
        if lines:
            chunk.add(lines)
        if len(chunk) == CHUNK or (chunk and not lines):
            first, second = hold_out(np.arange(len(chunk)), 0.1)
            yield chunk.test(second)
            yield from chunk.train(first)
            chunk = Chunk()


def parts(questions: list[Question]) -> Iterator[list[Question]]:
    """Yield some questions at a time."""
    for start in range(0, len(questions), TOGETHER):
        yield questions[start : start + TOGETHER]


def by_pandas(lines: list[bytes], *layouts: list[str] | None) -> list[Any]:
    """The text of the lines with the columns of each of `layouts` (None: all), and the gold rows, if there are several.

    pandas decides from all lines together how the values of a column are written.
    """
    chunk = pd.read_json(io.BytesIO(b"\n".join(lines)), orient="records", lines=True, dtype=False)
    chunk = chunk.assign(example_id=chunk["example_id"].astype(str))
    texts = [
        (chunk[columns] if columns else chunk).to_json(orient="records", lines=True).encode() for columns in layouts
    ]
    gold = gold_rows(chunk["example_id"].tolist(), chunk["annotations"].tolist())
    return [*texts, [*gold] if len(layouts) > 1 else None]


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
