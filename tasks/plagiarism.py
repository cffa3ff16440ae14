"""Comparing the code of runs with public notebooks and with other agents' runs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common import plain_json, trees
from common.errors import UserError
from common.settings import get_settings
from grading.integrity.examiner import Examiner, Unreadable
from grading.integrity.matching import Corpus, Fragment, Match
from grading.integrity.tokens import Document, tokenize
from sandbox.agent_registry import load_agent
from sandbox.definitions import Agent
from storage.notebooks import plain_code
from storage.runs.folders import StoredRun, runs_of, stored_runs
from storage.runs.records import ExaminationRecord
from storage.runs.texts import FILE_BYTES, code_of
from storage.sources.kaggle.kernels import read_index
from storage.store import Store
from storage.tables import write_table

logger = logging.getLogger(__name__)

MIN_SHOWN_SIMILARITY = 0.05
"""Pairs of files below this similarity are left out of the table."""
MAX_FRAGMENTS, MAX_FRAGMENT_LINES = 12, 60
"""Number of fragments of a pair that are kept for the report, the longest first, and of lines kept of each."""

MAX_CHARACTERS = 20_000_000
"""Characters of the Python files of a run, or of an agent's folder, that are compared. A run's smallest files come
first."""
TOO_MUCH_CODE = "there is more code than is compared"
_NOTHING_SHARED = {
    "similarity": 0.0,
    "of_file": 0.0,
    "of_other": 0.0,
    "shared_tokens": 0,
    "fragments": 0,
    "flagged": True,
    "matched": "[]",
}
"""Figures of a file that could not be compared: a person should look at it."""


def find_plagiarism(
    store: Store, run_group: str, against: Sequence[str] = (), notebooks: Store | None = None
) -> list[dict[str, Any]]:
    """Compare every run of a group; writes tables/plagiarism and returns its rows, the most similar first.

    Args:
        store: the store with the runs and the pulled notebooks.
        run_group: the group whose runs are compared.
        against: the groups to compare with, besides the notebooks; if empty, all other groups. Runs of the same agent
            are left out, because similar code of one agent is not plagiarism.
        notebooks: the store with the pulled notebooks, if it is another one.
    """
    by_competition: dict[str, list[StoredRun]] = {}
    for run in runs_of(store, run_group):
        by_competition.setdefault(run.record.competition_id, []).append(run)
    with Examiner() as examiner:
        rows = _compare((store, notebooks or store), by_competition, against, run_group, examiner)
    rows.sort(key=lambda row: (-row["flagged"], -row["similarity"]))
    write_table(store, "plagiarism", run_group, rows)
    flagged = len({row["run_id"] for row in rows if row["flagged"]})
    examination = ExaminationRecord(
        run_group=run_group,
        stage="plagiarism",
        runs=sum(map(len, by_competition.values())),
        flagged=flagged,
        by="winnowing",
        at=datetime.now(UTC),
    )
    write_table(store, "examinations", run_group, [examination.to_row()], part=examination.stage)
    return rows


def _compare(
    stores: tuple[Store, Store],
    by_competition: dict[str, list[StoredRun]],
    against: Sequence[str],
    run_group: str,
    examiner: Examiner,
) -> list[dict[str, Any]]:
    (store, notebooks), rows, agent_dirs = stores, [], get_settings().agent_dirs
    for competition_id, runs in sorted(by_competition.items()):
        kernels, urls = kernel_documents(notebooks, competition_id, examiner)
        other_runs = [
            run
            for run in stored_runs(store, competition_id=competition_id)
            if run.record.run_group != run_group and (not against or run.record.run_group in against)
        ]
        for agent in sorted({run.record.agent for run in runs}):
            other_documents = [
                document
                for other in other_runs
                if other.record.agent != agent
                for document in _documents(store, other, examiner).values()
                if isinstance(document, Document)
            ]
            template = _template(agent, agent_dirs, examiner)
            template_documents = [document for document in template.values() if isinstance(document, Document)]
            corpora = {
                "kernel": Corpus(kernels, template_documents, whole=True),
                "run": Corpus(other_documents, template_documents),
            }
            # The files of the agent's own folder can be copies, too. All of their code is compared, for each run.
            shipped = {f"agent folder: {name}": document for name, document in template.items()}
            corpora_without_template = {"kernel": Corpus(kernels, whole=True)}
            for run in (run for run in runs if run.record.agent == agent):
                rows += _rows(run, _documents(store, run, examiner), corpora, urls)
                rows += (row for row in _rows(run, shipped, corpora_without_template, urls) if row["flagged"])
    return rows


def kernel_documents(store: Store, competition_id: str, examiner: Examiner) -> tuple[list[Document], dict[str, str]]:
    """The pulled notebooks of a competition, and their URLs by name; both are empty if none were pulled."""
    index = read_index(store, competition_id)
    rows = {str(row["ref"]): row for row in (index.to_dict("records") if index is not None else [])}

    def read(ref: str) -> str:
        content = store.read(store.url("kernels", competition_id, str(rows[ref]["path"])))
        return content.decode("utf-8", "replace")

    documents = _tokens(rows, read, "", examiner, math.inf)
    for ref, document in documents.items():
        if isinstance(document, str):
            logger.warning("notebook %s of %s is not compared: %s", ref, competition_id, document)
    return (
        [document for document in documents.values() if isinstance(document, Document)],
        {ref: str(row["url"]) for ref, row in rows.items()},
    )


def _template(agent: str, agent_dirs: Sequence[Path], examiner: Examiner) -> dict[str, Document | str]:
    """Python files and notebooks of an agent's own folder, which runs share with each other, as `_tokens` has them."""
    try:
        definition = load_agent(agent, agent_dirs)
        names = [str(name) for name in definition.files() if _python(str(name))]
        return _tokens(names, lambda name: _text(definition, Path(name)), "", examiner)
    except UserError:  # the agent no longer exists, or cannot be read
        return {}


def _text(agent: Agent, name: Path) -> str:
    with agent.opened(name) as file:
        text = b"".join(trees.pieces(file, FILE_BYTES)).decode("utf-8", "replace")
    return plain_code(text) if name.suffix == ".ipynb" else text


def _documents(store: Store, run: StoredRun, examiner: Examiner) -> dict[str, Document | str]:
    """The Python files of a run, as `_tokens` has them."""
    texts = code_of(store, run).texts
    return _tokens(filter(_python, texts), texts.__getitem__, f"{run.name}/", examiner)


def _tokens(
    names: Iterable[str],
    read: Callable[[str], str],
    prefix: str,
    examiner: Examiner,
    characters: float = MAX_CHARACTERS,
) -> dict[str, Document | str]:
    """Files by name as tokens, or why a file could not be read. The prefix is part of the documents' names."""
    documents: dict[str, Document | str] = {}
    for name in names:
        if characters < 0:
            documents[name] = TOO_MUCH_CODE
            continue
        text = read(name)
        characters -= len(text)
        try:
            documents[name] = examiner.call(tokenize, f"{prefix}{name}", text) if characters >= 0 else TOO_MUCH_CODE
        except Unreadable as error:
            documents[name] = str(error)
    return documents


def _python(name: str) -> bool:
    return name.endswith((".py", ".ipynb"))


def _rows(
    run: StoredRun, documents: Mapping[str, Document | str], corpora: dict[str, Corpus], urls: dict[str, str]
) -> list[dict[str, Any]]:
    """The rows about files of a run, or of its agent's folder."""
    rows: list[dict[str, Any]] = []
    for name, document in documents.items():
        row = {**run.record.who, "file": name}
        if isinstance(document, str):
            rows.append({**row, "other_kind": "unreadable", "other": document, "url": "", **_NOTHING_SHARED})
            continue
        for kind, corpus in corpora.items():
            texts = {document.name: document.text for document in corpus.documents}
            for match in corpus.matches(document):
                if match.flagged or max(match.similarity, match.of_first, match.of_second) >= MIN_SHOWN_SIMILARITY:
                    row |= {"other_kind": kind, "other": match.second, "url": urls.get(match.second, "")}
                    rows.append({**row, **_figures(match, document.text, texts)})
    return rows


def _figures(match: Match, text: str, texts: dict[str, str]) -> dict[str, Any]:
    longest = sorted(match.fragments, key=lambda fragment: -fragment.tokens)[:MAX_FRAGMENTS]
    shown_fragments = [_fragment(fragment, text, texts[match.second]) for fragment in longest] if match.flagged else []
    return {
        "similarity": match.similarity,
        "of_file": match.of_first,
        "of_other": match.of_second,
        "shared_tokens": match.tokens,
        "fragments": len(match.fragments),
        "flagged": match.flagged,
        "matched": plain_json.dumps(shown_fragments),
    }


def _fragment(fragment: Fragment, text: str, other: str) -> dict[str, Any]:
    sides: dict[str, Any] = {}
    for side, (first, last), source in (("file", fragment.first, text), ("other", fragment.second, other)):
        lines = source.split("\n")[first - 1 : min(last, first + MAX_FRAGMENT_LINES - 1)]
        sides |= {f"{side}_line": first, f"{side}_text": "\n".join(lines)}
    return {**sides, "tokens": fragment.tokens}
