"""The code and the logs that runs left in the store, as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from common.errors import UserError
from storage.notebooks import plain_code
from storage.runs.paths import RUN
from storage.store import Store
from storage.tables import write_table

FILE_BYTES = 4 * 1024**2
LOG_BYTES = 16 * 1024**2
"""Of larger files the beginning and the end are read."""
FILES = 2000
"""Read of a run's code or logs; Python files and notebooks come first."""
CODE = (".py", ".ipynb", ".sh", ".r", ".R", ".sql", ".yaml", ".json", ".toml", ".txt", ".md")
_INSTALLED = re.compile(r"(^|/)(site-packages|node_modules|\.git|\.?venv|__pycache__|\.ipynb_checkpoints)(/|$)")


@dataclass(frozen=True)
class StoredRun:
    """A finished run: its record and where it lies."""

    record: dict[str, Any]
    url: str

    @property
    def name(self) -> str:
        """GROUP/COMPETITION/SEED."""
        return "{run_group}/{competition_id}/{seed}".format(**self.record)

    @property
    def who(self) -> dict[str, Any]:
        """The columns that name a run in a table."""
        return {n: self.record.get(n) for n in ("run_group", "run_id", "competition_id", "seed", "agent")}

    @property
    def source(self) -> str:
        """Where its files are: a regraded copy has none of its own."""
        return str(self.record.get("submission_from") or self.url)


def stored_runs(store: Store, run_group: str = "*", competition_id: str = "*") -> list[StoredRun]:
    """The finished runs of a group, or of a competition in all groups, sorted by name."""
    urls = store.glob(f"runs/{run_group}/{competition_id}/*/{RUN}")
    records = [(store.read_json(url), url.removesuffix(f"/{RUN}")) for url in urls]
    return [StoredRun(record, url) for record, url in records if record]


def runs_of(store: Store, run_group: str) -> list[StoredRun]:
    """As `stored_runs` of one group. Raises `UserError` if there is none."""
    found = stored_runs(store, run_group)
    if not found:
        raise UserError(f"no finished runs of group {run_group!r} in {store.root}")
    return found


def code_of(store: Store, run: StoredRun) -> dict[str, str]:
    """What the agent wrote to its code folder, by path below it; notebooks as plain code. Installed packages not."""
    return {
        name: plain_code(text) if name.endswith(".ipynb") else text
        for name, text in _texts(store, run, "code", FILE_BYTES)
        if name.endswith(CODE)
    }


def logs_of(store: Store, run: StoredRun) -> dict[str, str]:
    """The agent's output and what it wrote to its logs folder, by path below it; binary files not."""
    return {name: text for name, text in _texts(store, run, "logs", LOG_BYTES) if "\0" not in text[:4096]}


def note_examination(store: Store, run_group: str, stage: str, runs: int, flagged: int, by: str) -> None:
    """Write down in tables/examinations that a group was examined, also if nothing was found."""
    row = {"stage": stage, "runs": runs, "flagged": flagged, "by": by, "at": datetime.now(UTC).isoformat()}
    write_table(store, "examinations", run_group, [row], part=stage)


def _texts(store: Store, run: StoredRun, part: str, most: int) -> Iterator[tuple[str, str]]:
    fs, top = store.top.fs, store.top.path(store.relative(f"{run.source}/{part}"))
    found = {path[len(top) + 1 :]: (path, info["size"] or 0) for path, info in fs.find(top, detail=True).items()}
    names = [name for name in found if not _INSTALLED.search(name)]
    for name in sorted(names, key=lambda name: (not name.endswith((".py", ".ipynb")), name))[:FILES]:
        path, size = found[name]
        if size <= most:
            content = fs.cat_file(path)
        else:
            left_out = f"\n[{size - most} bytes left out]\n".encode()
            content = fs.cat_file(path, 0, most // 2) + left_out + fs.cat_file(path, size - most // 2, size)
        yield name, content.decode("utf-8", "replace")
