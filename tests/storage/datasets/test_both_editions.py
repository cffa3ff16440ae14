"""Two editions that are prepared of one download read it once, and get the files that each gets alone."""

from __future__ import annotations

import fnmatch
import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing import download as downloads
from competitions.preparing.archives.containers import SevenZipContainer, TarContainer
from competitions.preparing.archives.zips import ZipContainer
from competitions.tables import columns, csv_blocks
from storage.datasets.checkpoint import FOLDER
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.datasets.recipe import Recipe
from storage.writers import Destination
from tests.parity.packs import members
from tests.prepared import PreparedCompetitions
from tests.s3.fixtures import Bucket
from tests.storage.datasets.small_members import note_small_members

DIFFERENT = [name for name in registry.list() if registry.get(name).files_of("v2") == "v2"]
"""Competitions of which v2 has other files than v1; of the others it has the same dataset."""

SEARCHED = "v2 searches the images for copies"
CHANGED = "v1 copies the scans, v2 changes them"
RECORDS = "the names in the records are read, and the records are copied"
LISTED = "a compressed tar is listed before it is read"
OPENED_AGAIN: dict[str, dict[str, str]] = {
    "3d-object-detection-for-autonomous-vehicles": {
        "raw.zip!/train_data/*.json": "published in two folders",
        "raw.zip!/train_maps/*": "published in two folders",
    },
    "cassava-leaf-disease-classification": {"raw.zip!/train_tfrecords/*": RECORDS},
    "denoising-dirty-documents": {"train_cleaned.zip!/*": "test pages are answers, and v2 compares all pages"},
    "dogs-vs-cats-redux-kernels-edition": {"train.zip!/*": "v1 publishes each picture as a file and in an archive"},
    "h-and-m-personalized-fashion-recommendations": {
        "raw.zip!/transactions_train.csv": "the names of the columns are read before the table",
        "raw.zip!/sample_submission.csv": "v2 reads it, and both copy it",
    },
    "inaturalist-2019-fgvc6": {
        "raw.zip!/train_val2019.tar.gz": LISTED,
        "raw.zip!/val2019.json": "v2 reads it, and both copy it",
    },
    "multi-modal-gesture-recognition": {"raw.zip!/training4.tar.gz": f"{LISTED}; v1 copies it, v2 changes it"},
    "petfinder-pawpularity-score": {"raw.zip!/train/*.jpg": SEARCHED},
    "plant-pathology-2021-fgvc8": {"raw.zip!/train_images/*": SEARCHED},
    "rsna-breast-cancer-detection": {"raw.zip!/train_images/*": CHANGED},
    "rsna-miccai-brain-tumor-radiogenomic-classification": {"raw.zip!/train/*": CHANGED},
    "siim-isic-melanoma-classification": {
        "raw.zip!/train.csv": "the editions read numbers differently",
        "raw.zip!/tfrecords/*": RECORDS,
    },
    "tensorflow-speech-recognition-challenge": {"train.7z!/*/_background_noise_/*": "v2 cuts clips of silence out"},
}
"""Patterns of the members that are opened more than once, and why, by competition."""

PARSED_AGAIN = {
    "chaii-hindi-and-tamil-question-answering",
    "facebook-recruiting-iii-keyword-extraction",
    "jigsaw-toxic-comment-classification-challenge",
    "lmsys-chatbot-arena",
    "movie-review-sentiment-analysis-kernels-only",
    "siim-isic-melanoma-classification",
    "text-normalization-challenge-english-language",
    "text-normalization-challenge-russian-language",
    "tweet-sentiment-extraction",
}
"""Where the editions read a table differently: "NA" is a missing value in v1 and text in v2, or numbers differ."""


class Reads:
    """How often each member of the download is opened, and each text parsed."""

    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()
        self.parsed: Counter[str] = Counter()

    def clear(self) -> None:
        self.opened.clear()
        self.parsed.clear()

    def opened_again(self) -> set[str]:
        return {each for each, count in self.opened.items() if count > 1}

    def parsed_again(self) -> set[str]:
        return {each for each, count in self.parsed.items() if count > 1}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reads:
    """Counts at the lowest level: where members are opened, and where bytes become tables or JSON values."""
    found = Reads()

    def note(container: Any, name: str) -> None:
        if not container.label.startswith(str(tmp_path)):  # what is taken from the other dataset
            found.opened[f"{container.label.rpartition('/')[2]}!/{name}"] += 1

    for kind, names in ((ZipContainer, ("open", "read", "checked", "compressed")), (TarContainer, ("open",))):
        for method in names:
            original = getattr(kind, method)

            def counted(self: Any, name: str, original: Any = original) -> Any:
                if not isinstance(self, TarContainer) or self.random_access:  # otherwise it is streamed
                    note(self, name)
                return original(self, name)

            monkeypatch.setattr(kind, method, counted)
    note_small_members(monkeypatch, note)
    for sequential in (TarContainer, SevenZipContainer):
        streamed = sequential.stream

        def stream(
            self: Any, names: Iterable[str], streamed: Callable[..., Iterator[Any]] = streamed
        ) -> Iterator[tuple[str, IO[bytes]]]:
            for name, file in streamed(self, names):
                if not self.random_access:
                    note(self, name)
                yield name, file

        monkeypatch.setattr(sequential, "stream", stream)

    def parsing(module: Any, function: str) -> None:
        original = getattr(module, function)

        def counted(source: Any, *arguments: Any, **options: Any) -> Any:
            if options.get("nrows") == 0:  # the names of columns
                return original(source, *arguments, **options)
            content = source if isinstance(source, bytes) else source.read()
            parsed = original(content if isinstance(source, bytes) else io.BytesIO(content), *arguments, **options)
            if parsed is not None:  # otherwise another parser is tried
                found.parsed[f"{content[:60]!r} {hashlib.sha256(content).hexdigest()}"] += 1
            return parsed

        monkeypatch.setattr(module, function, counted)

    parsing(pd, "read_csv")
    parsing(pd, "read_json")
    parsing(columns, "read_stream")
    parsing(csv_blocks, "parse")
    parsing(downloads.orjson, "loads")
    return found


def job(prepared: PreparedCompetitions, name: str, out: Path, edition: Edition, **how: Any) -> Job:
    raw = prepared.packs / name / "raw.zip"
    params = prepared.get(name, "v1").params or {}
    recipe = Recipe(edition, "the download", "the code", params)
    return Job(name, str(raw), str(out), edition, params, key=out.name, recipe=recipe, **how)


def bytes_of(folder: Path) -> dict[str, str]:
    return {
        # The bytes of a 7z archive have the time at which it was made.
        path.relative_to(folder).as_posix(): repr(members(path))
        if path.suffix == ".7z"
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for part in ("public", "private")
        for path in (folder / part).rglob("*")
        if path.is_file()
    }


def prepare_both(prepared: PreparedCompetitions, name: str, folder: Path) -> None:
    first = job(prepared, name, folder / "one", "v1")
    second = job(prepared, name, folder / "two", "v2", like=first.out, like_edition="v1")
    materialise(first, ahead=second)
    materialise(second)


@pytest.mark.parametrize("name", DIFFERENT)
def test_both_editions_read_once_what_they_get_alone(
    prepared: PreparedCompetitions, name: str, tmp_path: Path, reads: Reads
) -> None:
    alone: dict[Edition, dict[str, str]] = {each: bytes_of(prepared.get(name, each).path) for each in ("v1", "v2")}
    reads.clear()
    prepare_both(prepared, name, tmp_path)
    assert bytes_of(tmp_path / "one") == alone["v1"]
    assert bytes_of(tmp_path / "two") == alone["v2"]
    assert reads.opened
    again, known = reads.opened_again(), OPENED_AGAIN.get(name, {})
    matches = {pattern: set(fnmatch.filter(again, pattern)) for pattern in known}
    assert all(matches.values()), "a pattern is not needed"
    assert not again.difference(*matches.values())
    assert bool(reads.parsed_again()) == (name in PARSED_AGAIN), reads.parsed_again()


WHALES = "whale-categorization-playground"


def test_archives_are_known_without_declaring_the_first_edition_again(
    prepared: PreparedCompetitions, tmp_path: Path, declared: list[str]
) -> None:
    prepared.get("iwildcam-2019-fgvc6", "v1")
    declared.clear()
    prepare_both(prepared, "iwildcam-2019-fgvc6", tmp_path)
    assert declared == ["v1", "v2"]


def test_one_edition_keeps_nothing(
    prepared: PreparedCompetitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = job(prepared, WHALES, tmp_path / "one", "v1")
    monkeypatch.setattr("competitions.preparing.download.Memo", None)
    materialise(first)


class TestDraftsThatAreOfNoUse:
    """The second edition is then declared anew."""

    @pytest.fixture
    def jobs(self, prepared: PreparedCompetitions, tmp_path: Path, declared: list[str]) -> tuple[Job, Job]:
        first = job(prepared, WHALES, tmp_path / "one", "v1")
        second = job(prepared, WHALES, tmp_path / "two", "v2", like=first.out, like_edition="v1")
        prepared.get(WHALES, "v2")
        declared.clear()
        materialise(first, ahead=second)
        assert declared == ["v1", "v2"]
        return first, second

    def test_one_whose_files_are_gone(
        self, jobs: tuple[Job, Job], declared: list[str], prepared: PreparedCompetitions
    ) -> None:
        _, second = jobs
        (Path(second.out) / "private" / "test.csv").unlink()
        materialise(second)
        assert declared == ["v1", "v2", "v2"]
        assert bytes_of(Path(second.out)) == bytes_of(prepared.get(WHALES, "v2").path)

    def test_one_that_is_like_another_dataset(self, jobs: tuple[Job, Job], declared: list[str], tmp_path: Path) -> None:
        first, second = jobs
        other = replace(first, out=str(tmp_path / "other"), key="other")
        materialise(other)
        materialise(replace(second, like=other.out))
        assert declared == ["v1", "v2", "v1", "v2"]

    def test_one_that_is_damaged(self, jobs: tuple[Job, Job], declared: list[str]) -> None:
        _, second = jobs
        (draft,) = (Path(second.out) / FOLDER).rglob("draft.json")
        draft.write_text("{")
        materialise(second)
        assert declared == ["v1", "v2", "v2"]


def test_an_edition_that_cannot_be_declared_leaves_the_other_alone(
    prepared: PreparedCompetitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = job(prepared, WHALES, tmp_path / "one", "v1")
    second = job(prepared, WHALES, tmp_path / "two", "v2", like=first.out, like_edition="v1")
    original = Competition.declare

    def declare(self: Competition, raw: Any, edition: Edition = "v1", *rest: Any) -> Any:
        if edition == "v2":
            raise DownloadError("train.csv has no rows")
        return original(self, raw, edition, *rest)

    monkeypatch.setattr(Competition, "declare", declare)
    materialise(first, ahead=second)
    with pytest.raises(DownloadError, match="no rows"):
        materialise(second)


def test_a_download_on_s3_is_fetched_once(
    prepared: PreparedCompetitions, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both datasets lie in the bucket as well, so that the server copies what they have in common."""
    name = "champs-scalar-coupling"
    raw = f"{s3.url}/raw.zip"
    stored = Destination(s3.url)
    stored.fs.pipe_file(stored.path("raw.zip"), (prepared.packs / name / "raw.zip").read_bytes())
    alone = {each: bytes_of(prepared.get(name, each).path) for each in ("v1", "v2")}
    fetched: Counter[str] = Counter()
    original = ZipContainer.open

    def opened(self: Any, member: str) -> Any:
        fetched[member] += 1
        return original(self, member)

    monkeypatch.setattr(ZipContainer, "open", opened)
    first = replace(job(prepared, name, Path("one"), "v1"), raw=raw, out=f"{s3.url}/one")
    second = job(prepared, name, Path("two"), "v2", like=first.out, like_edition="v1")
    second = replace(second, raw=raw, out=f"{s3.url}/two")
    materialise(first, ahead=second)
    materialise(second)
    assert fetched
    assert set(fetched.values()) == {1}, fetched
    for edition, out in (("v1", "one"), ("v2", "two")):
        for path, digest in alone[edition].items():
            content = stored.fs.cat_file(stored.path(f"{out}/{path}"))
            assert hashlib.sha256(content).hexdigest() == digest
