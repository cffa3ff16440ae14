"""The corpus has 30 million lines (4 GB) and is read twice as a stream; only the test sentences are kept in memory.

A random number is drawn for each line, and a second one for each test sentence, so all lines must be read in order.
"""

import io
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import LeftOut, Params, Preparation, text_content
from competitions.preparing.download import Download

HEADER = '"id","sentence"\n'


class Held(NamedTuple):
    """A test sentence, the number of its line, and the sentence with one word removed."""

    line: int
    sentence: str
    question: str


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    total = params["total_lines"]
    held_out = list(hold_out(raw, total, edition))
    answers = HEADER + "".join(f'{number},"{row.sentence}"\n' for number, row in enumerate(held_out))
    questions = HEADER + "".join(f'{number},"{row.question}"\n' for number, row in enumerate(held_out))
    train_lines = others(lines(raw, total), [row.line for row in held_out])
    out = Preparation()
    if edition == "v2":  # the corpus repeats sentences
        out.left_out.append(repeated := LeftOut("copies-on-both-sides", "lines", 0, total - len(held_out)))
        train_lines = without(train_lines, {row.sentence for row in held_out}, repeated)
    train = text_content(train_lines)
    out.public.archive("train_v2.txt.zip", {"train_v2.txt": train})
    out.public.archive("test_v2.txt.zip", {"test_v2.txt": text_content(questions)})
    out.private.text("test.csv", answers)
    out.private.text("sample_submission.csv", questions)
    return out


def without(lines: Iterator[str], asked: set[str], repeated: LeftOut) -> Iterator[str]:
    """The lines that are none of the sentences `asked`. The others are counted in `repeated`."""
    for line in lines:
        if " ".join(quoted(line).split()) in asked:
            repeated.count += 1
        else:
            yield line


def lines(raw: Download, total: int) -> Iterator[str]:
    file = raw.archive("train_v2.txt.zip").open_file("train_v2.txt")
    return islice(io.TextIOWrapper(file, "utf-8"), total)


def quoted(line: str) -> str:
    return line.strip().replace('"', '""')


def hold_out(raw: Download, total: int, edition: Edition) -> Iterator[Held]:
    rng = np.random.RandomState(0)
    draw = rng.random_sample
    number = -1
    for number, line in enumerate(lines(raw, total)):
        if draw() <= 0.01 and len(line.split()) > 2:
            sentence = quoted(line)
            words = sentence.split()
            missing = rng.randint(1, len(words) - 1)
            question = " ".join(words[:missing] + words[missing + 1 :])
            yield Held(number, " ".join(words) if edition == "v2" else sentence, question)  # v2 fixes white-space
    if number + 1 != total:
        raise DownloadError(f"train_v2.txt has {number + 1} lines instead of {total}; download it again")


def others(lines: Iterator[str], held: list[int]) -> Iterator[str]:
    """The lines whose numbers are not in `held` (ascending)."""
    start = 0
    for number in held:
        yield from islice(lines, number - start)
        next(lines)
        start = number + 1
    yield from lines
