"""Every competition prepared from its miniature, once a session whatever the number of pytest workers."""

from __future__ import annotations

import fcntl
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from competitions import registry
from competitions.competition import Competition
from competitions.editions import Edition
from storage.datasets import prepare

ARCHIVE = Path(__file__).parent / "parity" / "packs.tar.xz"


@dataclass(frozen=True)
class Prepared:
    """A competition, the download it was prepared from, and where `public` and `private` lie."""

    competition: Competition
    raw: Path
    path: Path
    edition: Edition
    expected: dict[str, Any]
    """What the published benchmark does with it; empty for the competitions of the demo."""

    @property
    def params(self) -> dict[str, Any] | None:
        """Counts that the miniature cannot have as the real data do."""
        return self.expected.get("overrides") or None

    def submission(self, name: str) -> Path:
        """One of the submissions that the published benchmark was asked to grade."""
        return self.raw.parent / "submissions" / f"{name}.csv"

    @cached_property
    def answers(self) -> Any:
        """Parsed once."""
        return self.competition.answers(self.path)


class PreparedCompetitions:
    """Prepares on demand below `root`, which the workers of a session share."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[tuple[str, Edition], Prepared] = {}

    def __getitem__(self, competition_id: str) -> Prepared:
        return self.get(competition_id, "v1")

    def get(self, competition_id: str, edition: Edition) -> Prepared:
        """The competition in this edition."""
        key = competition_id, edition
        if key not in self._known:
            self._known[key] = self._prepare(registry.get(competition_id), edition)
        return self._known[key]

    @property
    def packs(self) -> Path:
        """Directory of packs, one folder a competition: raw.zip, submissions/*.csv, expected.json."""
        with self._once("packs") as missing:
            if missing:
                with tarfile.open(ARCHIVE) as archive:
                    archive.extractall(self.root, filter="data")
        return self.root / "packs"

    def _prepare(self, competition: Competition, edition: Edition) -> Prepared:
        raw, expected = self.packs / competition.id / "raw.zip", {}
        if competition.facts.source == "bundled":
            raw = self.root / f"{competition.id}.zip"
            with self._once(raw.name) as missing:
                if missing:
                    raw.write_bytes(competition.bundle())
        else:
            expected = json.loads((raw.parent / "expected.json").read_text())
        found = Prepared(competition, raw, self.root / f"prepared-{edition}" / competition.id, edition, expected)
        with self._once(f"{competition.id}-{edition}") as missing:
            if missing:
                prepare(competition.id, raw, found.path, edition=edition, params=found.params)
        return found

    @contextmanager
    def _once(self, name: str) -> Iterator[bool]:
        """True for the first one to ask, who does the work while others wait."""
        done = self.root / f".{name}.done"
        with (self.root / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield not done.exists()
            done.touch()
