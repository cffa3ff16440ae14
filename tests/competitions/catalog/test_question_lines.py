"""Lines of TensorFlow 2.0 Question Answering are what pandas makes of them, or left to pandas."""

from __future__ import annotations

import importlib
import io
import json
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions import registry

PREPARE = registry.get("tensorflow2-question-answering").module("prepare")
QUESTIONS = importlib.import_module(f"{PREPARE.__package__}.questions")
CHARACTERS = [*"abc /\"\\\n\t\r\b\f\x01\x1f\x7féÿ日本\u2028\uffff😀𝄞<>&'", "\x80", "\xa0"]


def by_pandas(lines: list[bytes], columns: list[str] | None) -> bytes:
    chunk = pd.read_json(io.BytesIO(b"\n".join(lines)), orient="records", lines=True, dtype=False)
    chunk = chunk.assign(example_id=chunk["example_id"].astype(str))
    text: str = (chunk[columns] if columns else chunk).to_json(orient="records", lines=True)
    return text.encode()


def question(rng: random.Random) -> bytes:
    def text(alphabet: Any = CHARACTERS) -> str:
        return "".join(rng.choices(alphabet, k=rng.randint(0, 20)))

    record: dict[str, Any] = {
        "document_text": text('ab /é日"\\\n😀') if rng.random() < 0.8 else text(),
        "long_answer_candidates": [
            {"start_token": rng.randint(-5, 10**9), "top_level": rng.random() < 0.5, "end_token": 3}
            for _ in range(rng.randint(0, 3))
        ],
        "question_text": text(),
        "annotations": [{"yes_no_answer": "NONE", "annotation_id": rng.choice([2**64 - 1, 5, 2**63, -(2**63)])}],
        "document_url": text(),
        "example_id": rng.choice([rng.randint(-(2**63), 2**62), "x" + text()]),
    }
    if rng.random() < 0.05:
        record["long_answer_candidates"].append(rng.choice([1.5, None, 2.0, 1e30]))
    if rng.random() < 0.03:
        record["extra"] = 1
    line = json.dumps(record, ensure_ascii=rng.random() < 0.9).encode() + b"\n"
    spelling = rng.random()
    if spelling < 0.1:
        return line.replace(b"/", b"\\/")
    return line.replace(b"\\u00e9", b"\\u00E9") if spelling < 0.2 else line


@pytest.mark.parametrize("seed", range(4))
def test_a_line_is_spelled_as_pandas_spells_it(seed: int) -> None:
    rng, known = random.Random(seed), 0
    for _ in range(100):
        line = question(rng)
        parsed = QUESTIONS.parse(line)
        if parsed is not None:
            known += 1
            for columns in (None, PREPARE.QUESTION):
                assert QUESTIONS.text_of([parsed], columns) == by_pandas([line], columns), line
    assert known > 20


REST = b', "question_text": "q", "annotations": [], "document_url": "u", "example_id": 1}\n'
PLAIN = b'{"document_text": "a", "long_answer_candidates": []' + REST


@pytest.mark.parametrize(
    "text",
    [
        b"a\\",  # so that the quote after it is one of the text
        b'a\\", "long_answer_candidates": b',
        b'a" b',
        b'\\" a" \\n',
        b"\\u00",
        b"\t",
        b"\r",
        b"\x7f",
        b"\\ud83d",
        b"\\/",
        b"\xc3\xa9",
    ],
)
def test_a_line_with_an_odd_text_is_left_to_pandas(text: bytes) -> None:
    assert QUESTIONS.parse(PLAIN) is not None
    assert QUESTIONS.parse(PLAIN.replace(b'"a"', b'"' + text + b'"')) is None


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (rb"\u00eb \u65e5 \n \" \\ \ud83d\ude00", True),
        (rb"\u00eb \u65e5 \n \"", True),
        (rb"\u00EB", False),
        (rb"\u0041", False),
        (rb"\uzzzz", False),
        (rb"\u00e", False),
        (rb"\ud83d", False),
        (rb"\x", False),
        (rb"\/", False),
        (rb'"', False),
        (rb'\\"', False),
        (b"\\\\", True),
        (b"\\", False),
        ("é".encode(), False),
    ],
)
def test_escapes_are_those_of_pandas(text: bytes, known: bool) -> None:
    assert QUESTIONS._is_canonical(text) == known
    assert QUESTIONS._is_canonical(b"plain " + text + b" plain") == known


def test_one_odd_line_leaves_its_chunk_to_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PREPARE, "TOGETHER", 2)
    rng = random.Random(9)
    lines = [line for line in (question(rng) for _ in range(60)) if QUESTIONS.parse(line) is not None][:5]
    odd = lines[0].replace(b'{"document_text": "', b'{"document_text":  "caf\xc3\xa9 ')
    assert QUESTIONS.parse(odd) is None
    for content, pieces in ((lines, 3), ([*lines, odd], 1)):
        chunk, rows = PREPARE.Chunk(), np.arange(len(content))
        chunk.add(content)
        texts = [*chunk.train(rows)]
        assert len(texts) == pieces
        assert b"".join(text for each in texts for text in each.train) == by_pandas(content, None)
        assert not any(each.questions or each.answers or each.rows for each in texts), "this is the train part"


def test_the_file_is_read_once_for_all_that_is_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    note = {"yes_no_answer": "YES", "long_answer": {"start_token": -1, "end_token": 2}, "short_answers": []}
    lines = []
    for number in range(57):
        record = json.loads(question(rng)) | {"annotations": [note], "example_id": number}
        lines.append(json.dumps(record).encode())
    monkeypatch.setattr(PREPARE, "CHUNK", 10)

    class Raw:
        opened = 0

        def open_file(self, name: str) -> io.BytesIO:
            self.opened += 1
            return io.BytesIO(b"\n".join(lines) + b"\n")

    first, second = Raw(), Raw()
    together, alone = PREPARE.Reading(first), PREPARE.Reading(second)
    parts: list[list[bytes]] = [[], [], []]
    for number, text in together.texts():
        parts[number].append(text)
    (gold,), (same) = together.gold(), alone.gold()
    pd.testing.assert_frame_equal(gold, *same)
    assert first.opened == second.opened == 1, "the file is read once"
    train, questions, answers = (pd.read_json(io.BytesIO(b"".join(part)), lines=True) for part in parts)
    assert len(questions) == len(answers) == len(gold) // 2 == 6
    assert len(train) == 57 - 6
    assert (questions["example_id"] == answers["example_id"]).all()
    assert not {*train["example_id"]} & {*answers["example_id"]}


@pytest.mark.parametrize(
    ("number", "known"),
    [(b"1" * 18, True), (b"0", True), (b"-1", True), (b"01", False), (b"1.5", False), (b"1e5", False)],
)
def test_candidates_with_whole_numbers_only_lose_their_blanks(number: bytes, known: bool) -> None:
    text = b'[{"start_token": ' + number + b', "end_token": 3, "top_level": true}]'
    assert QUESTIONS._compact(text) == (text.translate(None, b" ") if known else None)
