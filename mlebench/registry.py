"""Competitions by id, with the paths of their files below a data directory or in a store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from common.locations import local_path
from mlebench._catalog import competition, imported, name_of
from mlebench._files import CACHE, MADE_OF_FACTS, existing
from mlebench.grade_helpers import Grader

DEFAULT_DATA_DIR = CACHE / "data"
"""Where `registry` looks for datasets until `set_data_dir` names another directory."""
_SPLITS = Path(__file__).parent / "splits"
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/+(?P<path>.*)")
_OF_A_STORE = ("store.json", "prepared/v1")


@dataclass(frozen=True, eq=False, repr=False)
class Competition:
    """A competition, and the paths of its files. Can be pickled, and changed with `dataclasses.replace`.

    A path of a dataset in a store is fetched when it is read. A dataset that is not prepared has paths that do not
    exist: see `mlebench.data.is_dataset_prepared`.

    Args:
        id: Kaggle's slug.
        name: the title.
        description: the text for agents.
        grader: the grader.
        answers: what submissions are graded against.
        gold_submission: the submission with the right answers.
        sample_submission: a valid submission.
        competition_type: "simple".
        prepare_fn: prepares the unpacked download: `prepare_fn(raw, public, private)`, three folders.
        raw_dir: the unpacked download, if it was kept.
        private_dir: the folder with the answers.
        public_dir: the folder for agents.
        checksums: a YAML file with the MD5s of archive (`zip`) and prepared files (`public`, `private`).
        leaderboard: a CSV file with the column `score`, best first.
        store: the URL of the store in which the dataset lies.
    """

    id: str
    name: str
    description: str
    grader: Grader
    answers: Path
    gold_submission: Path
    sample_submission: Path
    competition_type: str
    prepare_fn: Callable[..., Any]
    raw_dir: Path
    private_dir: Path
    public_dir: Path
    checksums: Path
    leaderboard: Path
    store: str | None = None

    def __getattribute__(self, name: str) -> Any:
        """Paths are those of existing files, if the files can be made or fetched."""
        value = super().__getattribute__(name)
        if name not in _MADE_WHEN_READ:
            return value
        # Of files that the caller has put elsewhere, none is replaced.
        made = name in MADE_OF_FACTS and value.parent == super().__getattribute__("raw_dir").parent
        if value.exists() and not made:
            return value
        return existing(super().__getattribute__("id"), super().__getattribute__("store"), name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Competition) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.id, self.store, self.raw_dir))

    def __repr__(self) -> str:
        """The id and where it is: other fields are long, or would be fetched."""
        return f"Competition(id={self.id!r}, raw_dir={self.raw_dir!r}, store={self.store!r})"

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Competition:
        """The competition with these fields. Paths and functions may be text, and the grader a mapping."""
        values = dict(data)
        if "preparer" in values:
            values["prepare_fn"] = values.pop("preparer")
        if isinstance(values["prepare_fn"], str):
            values["prepare_fn"] = imported(values["prepare_fn"])
        if not isinstance(values["grader"], Grader):
            values["grader"] = Grader.from_dict(values["grader"])
        values.setdefault("gold_submission", values["answers"])
        for name in _PATHS:
            values[name] = Path(values[name])
        return Competition(**{field.name: values[field.name] for field in fields(Competition) if field.name in values})


_MADE_WHEN_READ = frozenset(
    ("answers", "gold_submission", "sample_submission", "private_dir", "public_dir", "checksums", "leaderboard")
)
_PATHS = (*sorted(_MADE_WHEN_READ), "raw_dir")


class Registry:
    """The competitions, with the paths of their files below a data directory."""

    def __init__(self, data_dir: Path | str = DEFAULT_DATA_DIR) -> None:
        """`data_dir` has the published layout, `<id>/prepared/public` and `private`; or it is a store of ours.

        A store may be the URL of an object store. What is asked for is then fetched.
        """
        text = str(data_dir)
        if url := _URL.fullmatch(text):  # a Path has made one slash of two
            text = f"{url['scheme']}://{url['path'] if url['scheme'] != 'file' else '/' + url['path']}"
        folder = local_path(text)
        self._store = text if folder is None else None
        if folder is None:
            folder = CACHE / "stores" / hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        self._data_dir = folder.expanduser().absolute()

    def get_competition(self, competition_id: str) -> Competition:
        """The competition with that id. Raises `FileNotFoundError`, naming close matches."""
        ours = competition(competition_id)
        folder = self._data_dir / ours.id
        prepared, files = folder / "prepared", ours.facts.files
        return Competition(
            id=ours.id,
            name=ours.facts.name,
            description=ours.description,
            grader=Grader(ours.facts.metric.name, name_of(ours.id, "grade")),
            answers=prepared / files.answers,
            gold_submission=prepared / files.gold_submission,
            sample_submission=prepared / files.sample_submission,
            competition_type="simple",
            prepare_fn=imported(name_of(ours.id, "prepare")),
            raw_dir=folder / "raw",
            private_dir=prepared / "private",
            public_dir=prepared / "public",
            checksums=folder / "checksums.yaml",
            leaderboard=folder / "leaderboard.csv",
            store=self._store or (str(self._data_dir) if self._is_store else None),
        )

    @property
    def _is_store(self) -> bool:
        """Whether the data directory is a store."""
        return any((self._data_dir / name).exists() for name in _OF_A_STORE)

    def list_competition_ids(self) -> list[str]:
        """The sorted ids of the 82 competitions, and of those in the folders of MLEBENCH_COMPETITIONS."""
        from competitions import registry as catalog
        from mlebench._catalog import read_settings

        read_settings()
        bundled = {catalog.CATALOG / name for name in catalog.list("demo")}
        return sorted(name for name, folder in catalog.folders().items() if folder not in bundled)

    def get_lite_competition_ids(self) -> list[str]:
        """The ids of MLE-bench Lite, in the order of its list."""
        return (_SPLITS / "low.txt").read_text("utf-8").split()

    def get_splits_dir(self) -> Path:
        """The folder with the lists of competitions, `low.txt` and so on, one id on each line."""
        return _SPLITS

    def get_competitions_dir(self) -> Path:
        """The folder with a folder for each competition of the catalog."""
        from competitions.registry import CATALOG

        return CATALOG

    def get_data_dir(self) -> Path:
        """The data directory; of a store that is not local, the directory to which its files are fetched."""
        return self._data_dir

    def set_data_dir(self, new_data_dir: Path | str) -> Registry:
        """A new registry with another data directory. This one does not change."""
        return Registry(new_data_dir)


registry = Registry()


def is_local(store: str) -> bool:
    """Whether a store is a directory of this machine."""
    return local_path(store) is not None
