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
        found = QUESTIONS.parse([line])
        if found is not None:
            known += 1
            for columns in (None, PREPARE.QUESTION):
                assert QUESTIONS.text_of(found, columns) == by_pandas([line], columns), line
    assert known > 20


@pytest.mark.parametrize("seed", range(4))
def test_lines_are_known_together_if_each_of_them_is(seed: int) -> None:
    rng, known = random.Random(seed), 0
    for _ in range(200):
        lines = [question(rng) for _ in range(rng.randint(1, 4))]
        lines[-1] = lines[-1][: len(lines[-1]) - rng.randint(0, 1)]  # the end of the file may have no newline
        found = QUESTIONS.parse(lines)
        alone = [QUESTIONS.parse([line]) for line in lines]
        assert (found is None) == (None in alone)
        if found is not None:
            known += len(lines) > 1
            assert QUESTIONS.text_of(found) == b"".join(QUESTIONS.text_of(each) for each in alone)
    assert known > 2


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
def test_an_odd_text_is_found_among_plain_ones(text: bytes) -> None:
    line = PLAIN.replace(b'"a"', b'"' + text + b'"')
    assert QUESTIONS.parse([PLAIN, PLAIN]) is not None
    for lines in ([line], [PLAIN, line, PLAIN], [line, PLAIN]):
        assert QUESTIONS.parse(lines) is None


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
    lines = [line for line in (question(rng) for _ in range(60)) if QUESTIONS.parse([line]) is not None][:5]
    odd = lines[0].replace(b'{"document_text": "', b'{"document_text":  "caf\xc3\xa9 ')
    assert QUESTIONS.parse([odd]) is None
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


def candidates(rng: random.Random) -> bytes:
    names = rng.sample(["start_token", "end_token", "top_level"], 3)
    values = [
        {name: rng.random() < 0.5 if name == "top_level" else rng.choice([0, 7, 10**17, rng.randrange(10**6)])}
        for _ in range(rng.randint(1, 3))
        for name in names
    ]
    rows = [{**values[n], **values[n + 1], **values[n + 2]} for n in range(0, len(values), 3)]
    return json.dumps(rows).encode()


@pytest.mark.parametrize("seed", range(4))
def test_plain_candidates_only_lose_their_blanks(seed: int) -> None:
    rng, plain = random.Random(seed), {True: 0, False: 0}
    for _ in range(3000):
        text = bytearray(candidates(rng))
        for _ in range(rng.choice([0, 1, 1, 2])):
            place, other = rng.randrange(len(text)), rng.choice(b'0123456789 ,:{}[]"-.eE\\truefalse\n')
            change = rng.choice(["insert", "delete", "replace", "move"])
            if change == "insert":
                text.insert(place, other)
            elif change == "replace":
                text[place] = other
            else:
                moved = text.pop(place)
                if change == "move" and text:
                    text.insert(rng.randrange(len(text)), moved)
        found = QUESTIONS._are_plain([bytes(text)])
        plain[found] += 1
        if found:
            parsed = json.loads(text)
            assert json.dumps(parsed).encode() == text, "with the keys, numbers and blanks of a list that json writes"
            assert all(type(row[name]) is int for row in parsed for name in ("start_token", "end_token"))
            assert QUESTIONS._compact(bytes(text)) == text.translate(None, b" ")
            assert not QUESTIONS._are_plain([bytes(text), b"[]"]), "all of several are plain"
    assert min(plain.values()) > 500


ONE = b'{"start_token": 1, "top_level": true, "end_token": 22}'
TWO = b'{"start_token": 3, "top_level": false, "end_token": 4}'


@pytest.mark.parametrize(
    ("lists", "plain"),
    [
        ([b"[" + ONE + b"]"], True),
        ([b"[" + ONE + b", " + TWO + b"]", b"[" + TWO + b"]"], True),
        ([b"[" + ONE + b"]", b"[" + TWO + b", " + ONE + b"]", b"[" + ONE + b"]"], True),
        ([b"[" + ONE + b"][" + TWO + b"]"], False),
        ([b"[" + ONE + b"][" + TWO + b"]", b"[" + ONE + b"]"], False),
        ([b"[" + ONE + b", ", TWO + b"]"], False),
        ([b"[" + ONE + b", ", b"[" + TWO + b"]"], False),
        ([b"[" + ONE + b",  " + TWO + b"]"], False),
        ([b"[" + ONE + b"," + TWO + b"]"], False),
        ([b"[" + ONE + b"; " + TWO + b"]"], False),
        ([b"[" + ONE + b", " + TWO + b"]]"], False),
        ([b"[" + ONE + b", " + TWO + b"}]"], False),
        ([b"[" + ONE + b"]", b"[]"], False),
        ([b"[]"], False),
        ([b"[" + TWO.replace(b"false", b"other") + b"]"], False),
        ([b"[" + ONE + b", " + TWO.replace(b"false", b"falsE") + b"]"], False),
        ([b"[" + ONE + b", " + TWO.replace(b"start", b"stale") + b"]"], False),
        ([b"[" + ONE + b", " + b'{"end_token": 22, "top_level": true, "start_token": 1}' + b"]"], False),
    ],
)
def test_candidates_of_several_lines_are_plain_together(lists: list[bytes], plain: bool) -> None:
    assert QUESTIONS._are_plain(lists) == plain


@pytest.mark.parametrize("seed", range(4))
def test_lists_with_any_change_are_plain_only_if_each_is(seed: int) -> None:
    rng, plain = random.Random(seed), {True: 0, False: 0}
    for _ in range(2000):
        names = rng.sample(["start_token", "end_token", "top_level"], 3)
        lists = [
            json.dumps(
                [
                    {name: rng.random() < 0.5 if name == "top_level" else rng.randrange(10**6) for name in names}
                    for _ in range(rng.randint(1, 3))
                ]
            ).encode()
            for _ in range(rng.randint(1, 3))
        ]
        if rng.random() < 0.5:  # a piece of one is put in place of one of another
            number, other = rng.randrange(len(lists)), rng.choice(lists)
            start, length = rng.randrange(len(other)), rng.randint(1, 40)
            place, text = rng.randrange(len(lists[number])), lists[number]
            lists[number] = text[:place] + other[start : start + length] + text[place + rng.randint(0, 40) :]
        found = QUESTIONS._are_plain(lists)
        plain[found] += 1
        assert not found or all(QUESTIONS._are_plain([each]) for each in lists)
        assert not found or all(json.dumps(json.loads(each)).encode() == each for each in lists)
    assert min(plain.values()) > 200


@pytest.mark.parametrize("number", [b"1" * 18, b"0", b"1" * 19, b"01", b"-1", b"1.5", b"1e5", b"", b"null", b'"1"'])
def test_candidates_with_other_numbers_are_parsed(number: bytes) -> None:
    text = b'[{"start_token": ' + number + b', "end_token": 3, "top_level": true}]'
    assert QUESTIONS._are_plain([text]) == (number in (b"1" * 18, b"0"))
