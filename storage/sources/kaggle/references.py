"""Recorded references to notebooks, with which the same set can be fetched again.

A list of the most voted notebooks changes every day, and notebooks are edited. References name each notebook, its
version and the hash of its code, so that others can compare with the same set, or learn what has changed.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common.errors import UserError
from storage.sources.kaggle.errors import KaggleError, NoCredentials, Unreachable
from storage.sources.kaggle.kernels import (
    Kernel,
    code_of,
    fetch_each,
    fetch_kernel,
    read_index,
    replace_index,
    write_kernel,
)
from storage.sources.source import NETWORK_TIMEOUT, Report
from storage.store import Store


@dataclass(frozen=True)
class Reference:
    """A notebook at the time of a pull. `sha256` is that of its plain code; `version` is None if Kaggle named none."""

    competition_id: str
    ref: str
    version: int | None
    votes: int
    sha256: str


def references_of(store: Store, competition_id: str) -> list[Reference]:
    """The notebooks of a competition that are in the store, most voted first."""
    index = read_index(store, competition_id)
    return [
        Reference(
            competition_id,
            str(row["ref"]),
            None if row["version"] != row["version"] or row["version"] is None else int(row["version"]),
            int(row["votes"]),
            hashlib.sha256(store.read(store.url("kernels", competition_id, str(row["path"])))).hexdigest(),
        )
        for row in ([] if index is None else index.to_dict("records"))
    ]


def write_references(path: Path, references: Iterable[Reference]) -> None:
    """Write references as CSV. Raises `UserError` if the file cannot be written."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Reference)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(reference) for reference in references)
    try:
        path.write_text(text.getvalue(), "utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}") from error


def read_references(path: Path) -> dict[str, list[Reference]]:
    """The references in a CSV file, by competition. Raises `UserError` naming the line of a bad one."""
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    by_competition: dict[str, list[Reference]] = {}
    for number, row in enumerate(rows, 2):
        reference = _parse(row)
        if reference is None:
            columns = ", ".join(field.name for field in fields(Reference))
            raise UserError(f"{path}:{number}: not a reference to a notebook with the columns {columns}")
        by_competition.setdefault(reference.competition_id, []).append(reference)
    if not by_competition:
        raise UserError(f"{path} has no references: write some with mlebench kernels --write-references")
    return by_competition


def pull_references(
    store: Store,
    competition_id: str,
    references: Sequence[Reference],
    report: Report = lambda _: None,
    timeout: float = NETWORK_TIMEOUT,
) -> tuple[list[Kernel], int]:
    """Fetch recorded notebooks into ``kernels/<id>/`` instead of what is there.

    If the code of a notebook has changed, the recorded version is requested. Unavailable notebooks are left out, and
    notebooks of which only other code is available are stored with that code. Both are reported.

    Returns:
        The rows of the index, and the number of notebooks that differ from the record.

    Raises:
        KaggleError: no notebook can be fetched.
    """
    kernels, recorded = [], 0
    for reference, answer in fetch_each(references, report, timeout):
        if not _same(answer, reference) and (older := _recorded(reference, timeout)) is not None:
            answer = older
        facts = answer.metadata or SimpleNamespace(title="", author="", last_run_time=None)
        listed = SimpleNamespace(
            ref=reference.ref,
            title=facts.title or reference.ref,
            author=facts.author or reference.ref.split("/")[0],
            total_votes=reference.votes,
            last_run_time=facts.last_run_time,
        )
        kernel = write_kernel(store, competition_id, answer, listed)
        if _same(answer, reference):
            kernel = replace(kernel, version=reference.version)
            recorded += 1
        else:
            report(
                f"{reference.ref}: has other code now (version {kernel.version}) than was recorded "
                f"({reference.version})"
            )
        kernels.append(kernel)
    if not kernels:
        raise KaggleError(f"{competition_id}: none of {len(references)} recorded notebooks can be fetched")
    replace_index(store, competition_id, kernels)
    return kernels, len(references) - recorded


def _same(answer: Any, reference: Reference) -> bool:
    return hashlib.sha256(code_of(answer)).hexdigest() == reference.sha256


def _recorded(reference: Reference, timeout: float) -> Any:
    """Kaggle's answer with the recorded version; None if it does not have it."""
    if reference.version is None:
        return None
    try:
        answer = fetch_kernel(reference.ref, timeout, reference.version)
    except (NoCredentials, Unreachable):
        raise
    except KaggleError:
        return None
    return answer if _same(answer, reference) else None


def _parse(row: dict[str, Any]) -> Reference | None:
    try:
        version, digest = row["version"], row["sha256"].lower()
        name, ref = row["competition_id"], row["ref"]
        if not name or "/" not in ref or len(bytes.fromhex(digest)) != hashlib.sha256().digest_size:
            return None
        return Reference(name, ref, int(version) if version else None, int(row["votes"] or 0), digest)
    except (KeyError, ValueError, AttributeError, TypeError):
        return None
