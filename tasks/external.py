"""Results of other systems as runs: a JSONL file of submissions with their code and logs, in a separate store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from storage.runs.folders import RunFolder
from storage.runs.records import RunRecord
from storage.store import Store
from tasks.wiring.context import open_store

GROUP = "external"
"""Run group of the examined results, in their own store."""


@dataclass(frozen=True)
class External:
    """One result: the competition, and where its submission, code and logs are, if there are any."""

    competition_id: str
    submission: Path | None = None
    code: Path | None = None
    logs: Path | None = None
    run_id: str | None = None


@contextmanager
def external_runs(results: Iterable[External]) -> Iterator[Store]:
    """A store with the results as finished runs of `GROUP`, removed at the end of the `with` block.

    Files are copied without following links, because the folders are of unknown origin.
    """
    with tempfile.TemporaryDirectory(prefix="mlebench-external-") as root:
        store = open_store(root)
        seeds: dict[str, int] = {}
        for result in results:
            seed = seeds.get(result.competition_id, 0)
            seeds[result.competition_id] = seed + 1
            folder = RunFolder(store, GROUP, result.competition_id, seed)
            target = Path(root, store.relative(folder.url))
            target.mkdir(parents=True)
            for name, source in (("code", result.code), ("logs", result.logs)):
                if source is not None:
                    _copy(source, target / name)
            has_submission = result.submission is not None and result.submission.is_file()
            if has_submission and result.submission is not None:
                shutil.copyfile(result.submission, target / "submission.csv")
            folder.write_run(
                RunRecord(
                    key="external",
                    run_group=GROUP,
                    run_id=result.run_id or f"{result.competition_id}-{seed}",
                    competition_id=result.competition_id,
                    seed=seed,
                    agent=GROUP,
                    edition="v1",
                    submission_exists=has_submission,
                )
            )
        yield store


def _copy(source: Path, target: Path) -> None:
    """Copy a file, or the regular files of a folder, into the folder `target`."""
    target.mkdir()
    if source.is_file():
        shutil.copyfile(source, target / source.name)
        return
    for path in sorted(source.rglob("*")):
        if path.is_file() and not path.is_symlink() and not _through_link(path, source):
            destination = target / path.relative_to(source)
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, destination)


def _through_link(path: Path, top: Path) -> bool:
    """Whether a folder between `top` and the file is a link."""
    return any(parent.is_symlink() for parent in path.parents if parent != top and parent.is_relative_to(top))
