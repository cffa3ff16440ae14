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

ARCHIVE = Path(__file__).parent / "parity" / "packs.tar.xz"


@dataclass(frozen=True)
class Prepared:
    """A competition, the download it was prepared from, and where `public` and `private` lie."""

    competition: Competition
    raw: Path
    path: Path
    expected: dict[str, Any]
    """What the published benchmark does with it; empty for the competitions of the demo."""

    @property
    def params(self) -> dict[str, Any] | None:
        """Counts that the miniature cannot have as the real data do."""
        return self.expected.get("overrides") or None

    @cached_property
    def answers(self) -> Any:
        """Parsed once."""
        return self.competition.answers(self.path)


class PreparedCompetitions:
    """Prepares on demand below `root`, which the workers of a session share."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, Prepared] = {}

    def __getitem__(self, competition_id: str) -> Prepared:
        if competition_id not in self._known:
            self._known[competition_id] = self._prepare(registry.get(competition_id))
        return self._known[competition_id]

    @property
    def packs(self) -> Path:
        """Directory of packs, one folder a competition: raw.zip, submissions/*.csv, expected.json."""
        with self._once("packs") as missing:
            if missing:
                with tarfile.open(ARCHIVE) as archive:
                    archive.extractall(self.root, filter="data")
        return self.root / "packs"

    def _prepare(self, competition: Competition) -> Prepared:
        pack = self.packs / competition.id
        out = self.root / "prepared" / competition.id
        raw, expected = pack / "raw.zip", {}
        if competition.facts.source == "bundled":
            raw = self.root / f"{competition.id}.zip"
        else:
            expected = json.loads((pack / "expected.json").read_text())
        found = Prepared(competition, raw, out, expected)
        with self._once(competition.id) as missing:
            if missing:
                if competition.facts.source == "bundled":
                    raw.write_bytes(competition.bundle())
                competition.prepare(raw, out, edition="v1", params=found.params)
        return found

    @contextmanager
    def _once(self, name: str) -> Iterator[bool]:
        """True for the first one to ask, who does the work while others wait."""
        done = self.root / f".{name}.done"
        with (self.root / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield not done.exists()
            done.touch()
