"""What the probes share: a miniature as an agent meets it in one edition, and attacks that several graders allow.

A probe uses what an agent has: the public files, Kaggle's public files (the download that the miniature stands for),
and the verdicts and scores of the grader. Only the referee's side of a probe (`perfect`, `truth`) reads private files,
to tell whether an attack succeeded, or to have a submission whose score is known before it is tampered with.
"""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from competitions.editions import EDITIONS, Edition
from competitions.preparing.declaration import LeftOut
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.scoring.errors import InvalidSubmission
from storage.datasets import prepare
from tests.prepared import Prepared

Refused = str
"""The message of an `InvalidSubmission`."""


@dataclass
class World:
    """A competition prepared in one edition."""

    prepared: Prepared
    scratch: Path

    @property
    def public(self) -> Path:
        """The directory of files that agents get."""
        return self.prepared.path / "public"

    @functools.cached_property
    def kaggle(self) -> Download:
        """Kaggle's public files."""
        return Download.open(str(self.prepared.raw))

    def score(self, submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        """The score of parsed tables, for answers that the miniature does not have."""
        return self.prepared.competition.score_table(submission, answers, self.prepared.edition)

    def table(self, name: str, **options: Any) -> pd.DataFrame:
        """A public CSV."""
        return pd.read_csv(self.public / name, **options)

    def packed(self, name: str, member: str, **options: Any) -> pd.DataFrame:
        """A CSV in a public zip."""
        with zipfile.ZipFile(self.public / name) as archive:
            return pd.read_csv(io.BytesIO(archive.read(member)), **options)

    def shared(self, train: str, test: str, column: str) -> float:
        """The share of test rows whose value of `column` is known from the training table; both are public CSVs."""
        return float(self.table(test)[column].isin(self.table(train)[column]).mean())

    @property
    def sample(self) -> pd.DataFrame:
        """The sample submission, its cells as text exactly as they are in the file."""
        return self._text(self.prepared.competition.facts.files.sample_submission)

    @property
    def perfect(self) -> pd.DataFrame:
        """The submission with the right answers, its cells as text: in v2, which allows no other columns, without."""
        found = self._text(self.prepared.competition.facts.files.gold_submission)
        wanted = [name for name in self.sample if name in found]
        return found if self.prepared.edition == "v1" or len(wanted) < len(self.sample.columns) else found[wanted]

    @property
    def truth(self) -> Any:
        """The parsed answers."""
        return self.prepared.answers

    @property
    def left_out(self) -> list[LeftOut]:
        """What preparing has recorded as left out of the training data."""
        marker = json.loads((self.prepared.path / "commit.json").read_text("utf-8"))
        return [LeftOut(**each) for each in marker.get("left_out", ())]

    @property
    def private_columns(self) -> list[str]:
        """The columns of the file of answers, whichever the grader reads."""
        facts = self.prepared.competition.facts
        return list(pd.read_csv(self.prepared.path / facts.files.answers, nrows=0).columns)

    def grade(self, submission: pd.DataFrame | str) -> float:
        """The score of a submission. Raises `InvalidSubmission`."""
        path = self.scratch / "submission.csv"
        text = submission if isinstance(submission, str) else submission.to_csv(index=False)
        path.write_text(text, encoding="utf-8")
        return self.prepared.competition.score(path, self.truth, self.prepared.edition)

    def refusal(self, submission: pd.DataFrame | str) -> Refused:
        """Why the submission is invalid; an empty text if it is not."""
        try:
            self.grade(submission)
        except InvalidSubmission as error:
            return str(error)
        return ""

    def accepts(self, submission: pd.DataFrame | str) -> bool:
        """Whether the submission is valid."""
        return not self.refusal(submission)

    def _text(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.prepared.path / name, dtype=str, keep_default_na=False)


def cell(frame: pd.DataFrame, column: str, value: Any, row: int = 0) -> pd.DataFrame:
    """The frame with one other cell."""
    cells = frame[column].astype(object).tolist()
    cells[row] = value
    return frame.assign(**{column: pd.Series(cells, index=frame.index, dtype=object)})


def remade(
    world: World, members: Mapping[str, bytes | Callable[[bytes], bytes]], **params: Any
) -> dict[Edition, World]:
    """The worlds made of the same download with other bytes in some of its members, which may be new."""
    raw = world.scratch / "raw.zip"
    with zipfile.ZipFile(world.prepared.raw) as old, zipfile.ZipFile(raw, "w") as new:
        names = old.namelist()
        for name in names + [name for name in members if name not in names]:
            change = members.get(name, bytes)
            new.writestr(name, change(old.read(name)) if callable(change) else change)
    worlds: dict[Edition, World] = {}
    found = world.prepared
    for edition in EDITIONS:
        path = world.scratch / edition
        prepare(found.competition.id, raw, path, edition=edition, params={**(found.params or {}), **params} or None)
        worlds[edition] = World(Prepared(found.competition, raw, path, edition, found.expected), world.scratch)
    return worlds


def table_bytes(frame: pd.DataFrame, **options: Any) -> bytes:
    """A CSV."""
    return frame.to_csv(index=False, **options).encode()


def zipped(**members: bytes) -> bytes:
    """A zip of files, whose names end in .csv."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.csv", data)
    return content.getvalue()


def copied_images(world: World, prefix: str) -> dict[str, bytes]:
    """For two images of the download below `prefix` each the same picture, in other sizes and qualities."""
    names = [name for name in world.kaggle.container.sizes if name.startswith(prefix)]
    pictures = np.random.default_rng(0).integers(0, 255, (len(names), 8, 8), dtype=np.uint8)
    content = {}
    for number, name in enumerate(names):
        file = io.BytesIO()
        picture, side = Image.fromarray(pictures[number % (len(names) // 2)]), 160 + number % 7 * 16
        image = picture.resize((side, side), Image.Resampling.NEAREST)
        image.save(file, "JPEG", quality=80 + number % 15)
        content[name] = file.getvalue()
    return content


def shown_in_both(world: World, train: str, test: str) -> float:
    """The share of test images that look like a training image once both are small."""

    def small(path: Path) -> bytes:
        with Image.open(path) as image:
            pixels = np.asarray(image.resize((8, 8), Image.Resampling.BOX), dtype=float)
        return (pixels > 127).tobytes()

    seen = {small(path) for path in (world.public / train).iterdir()}
    return float(np.mean([small(path) in seen for path in (world.public / test).iterdir()]))


def names_are_known(v1: World, v2: World, column: str, known: pd.Series) -> None:
    """Kaggle's table names all test rows of v1, and none of v2, where no test file has such a name either."""
    hidden = set(v1.sample[column])
    assert hidden <= set(known)
    assert not set(v2.sample[column]) & set(known)
    assert len(v2.sample) == len(set(v2.sample[column])) > 0

    def files(world: World) -> set[str]:
        paths = [path for each in world.public.glob("test*") for path in (each, *each.rglob("*")) if path.is_file()]
        packed = [name for path in paths if path.suffix == ".zip" for name in zipfile.ZipFile(path).namelist()]
        return {form for path in (*paths, *map(Path, packed)) for form in (path.name, path.stem)}

    assert hidden <= files(v1)
    assert not set(known) & files(v2)
    assert set(v2.sample[column]) <= files(v2)
    assert v2.grade(v2.perfect) == pytest.approx(v1.grade(v1.perfect), nan_ok=True)


def known_by_place(world: World, places: Sequence[int], order: Sequence[str] | None = None) -> float:
    """The share of test rows whose label an agent tells from their places in a list that is sorted by label.

    `places` are those of the rows of the sample submission, as the code with its constant seed tells them. The agent
    knows the `order` of the labels (ascending) and how many test rows each has, which the training set tells.
    """
    column = world.sample.columns[1]
    labels = world.perfect.set_index(world.sample.columns[0])[column].loc[world.sample[world.sample.columns[0]]]
    rank = {label: number for number, label in enumerate(order or sorted(set(labels)))}
    guesses = np.array(sorted(labels, key=rank.__getitem__))[np.argsort(np.argsort(places))]
    return float(np.mean(guesses == labels.to_numpy()))


def drawn_places(count: int, **size: float) -> list[int]:
    """The places of test rows in Kaggle's list, in the order in which `hold_out` returns them."""
    return hold_out(list(range(count)), **size)[1]  # type: ignore[arg-type]


def shuffled_anew(places: Sequence[int]) -> list[int]:
    """The places after another shuffling with a constant seed."""
    return pd.Series(places).sample(frac=1, random_state=0).tolist()


def the_seed_tells_categories(v1: World, v2: World, document: str, **encoding: str) -> None:
    """The number of a test image is its place in the list of categories, shuffled with a constant seed."""
    listed = v1.kaggle.read_json(document, **encoding)["annotations"]
    order = list(dict.fromkeys(str(each["category_id"]) for each in listed))
    places = list(range(len(v1.sample)))
    Random(0).shuffle(places)
    assert known_by_place(v1, places, order) == 1.0
    assert len(v2.sample) == len(places)
    assert known_by_place(v2, places, order) < 0.5
    assert known_by_place(v2, shuffled_anew(places), order) < 0.5


def a_word_makes_everything_wrong(v1: World, v2: World, column: str) -> None:
    """One word among whole numbers: pandas reads the column as text, and every right answer counts as wrong."""
    assert v1.grade(v1.perfect) == v2.grade(v2.perfect) == 1.0
    assert v1.grade(cell(v1.perfect, column, "cat")) == 0.0
    assert column in v2.refusal(cell(v2.perfect, column, "cat"))


def fractions_pass(v1: World, v2: World, column: str) -> None:
    """Numbers that no regression rounded score as the classes below them."""
    halves = [world.perfect.assign(**{column: world.perfect[column].astype(int) + 0.5}) for world in (v1, v2)]
    assert v1.grade(halves[0]) == v1.grade(v1.perfect)
    assert "fraction" in v2.refusal(halves[1])


def odd_masks_pass(v1: World, v2: World, column: str, odd_masks: tuple[str, ...] = ("7", "1 2 3")) -> None:
    """One number, or three, are not pairs of start and length, but v1 makes a mask of them."""
    for odd in odd_masks:
        assert v1.accepts(cell(v1.perfect, column, odd)), odd
        assert column in v2.refusal(cell(v2.perfect, column, odd)), odd


def endless_run_passes(v1: World, v2: World, column: str) -> None:
    """A run far longer than the image marks all of it, without the agent's having looked at its size."""
    assert v1.accepts(cell(v1.perfect, column, "1 99999999"))
    assert column in v2.refusal(cell(v2.perfect, column, "1 99999999"))


def blanked(published: pd.Series, original: pd.Series) -> int:
    """How many cells are blank in the published column but hold text in the original one, row by row."""
    pairs = zip(published.tolist(), original.tolist(), strict=True)
    return sum(text == "" and before != "" for text, before in pairs)
