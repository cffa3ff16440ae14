"""Runs whose files are made to end or to blind the examination of their whole group."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from grading.integrity.detectors import RunTexts, detect
from grading.integrity.examiner import Examiner, Unreadable
from storage.runs import texts
from storage.tables import read_table
from tasks.plagiarism import find_plagiarism
from tasks.violations import find_violations
from tests.flows.test_integrity_plagiarism import COMPETITION, add_run
from tests.stores import Store

HONEST = "from sklearn.linear_model import Ridge\nRidge().fit(X, y)\n"
GUILTY = "import requests\n" + HONEST
HOSTILE = {
    "number.ipynb": json.dumps({"cells": 5}),
    "deep.ipynb": "[" * 200_000,
    "deep.py": "(" * 200_000,
    "long.py": "def (\n" + "a" * 2_000_000,
    "venv/solve.py": GUILTY,
    "site-packages/solve.py": GUILTY,
}


def found(store: Store) -> set[tuple[str, str, str]]:
    """Run, rule and file of each finding."""
    rows = find_violations(store, "g").rows
    return {(row["agent"], row["rule"], row["file"]) for row in rows}


def test_an_agents_own_folder_that_is_too_much_for_its_parser(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the folder, too, each file is read in a process with limits."""
    home = tmp_path / "agents" / "hostile"
    home.mkdir(parents=True)
    (home / "agent.yaml").write_text("name: hostile\ndescription: is too much\n")
    (home / "start.sh").write_text("#!/bin/bash\n")
    (home / "bomb.py").write_text("x = 1\n")
    (home / "good.py").write_text(HONEST)
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", str(home.parent))
    get_settings.cache_clear()
    examined, call = [], Examiner.call

    def too_much(self: Examiner, function: Callable[..., Any], name: str, text: str) -> object:
        examined.append(name)
        if name == "bomb.py":
            raise Unreadable("it takes too much memory")
        return call(self, function, name, text)

    monkeypatch.setattr(Examiner, "call", too_much)
    add_run(store, "g", "hostile", {"main.py": HONEST}, {})
    rows = find_plagiarism(store, "g")
    get_settings.cache_clear()
    assert {"bomb.py", "good.py"} < set(examined)
    (row,) = (row for row in rows if row["other_kind"] == "unreadable")
    assert (row["file"], row["other"]) == ("agent folder: bomb.py", "it takes too much memory")


def folder(store: Store, part: str) -> Path:
    return Path(store.top.path(store.relative(f"{store.run('g', COMPETITION, 0)}/{part}")))


def test_one_runs_trouble_is_no_other_runs(store: Store) -> None:
    add_run(store, "g", "hostile", HOSTILE, {"agent.log": "\0\0\0\0 start\n$ wget https://example.org/answers.zip\n"})
    add_run(store, "g", "guilty", {"main.py": GUILTY}, {}, seed=1)
    seen = found(store)
    assert ("guilty", "network", "main.py") in seen
    assert ("hostile", "network", "agent.log") in seen  # the NULs hide nothing
    assert ("hostile", "network", "venv/solve.py") in seen
    assert ("hostile", "not-examined", "") in seen  # the installed packages are named
    whys = read_table(store, "violations").query("rule == 'not-examined'")["why"].tolist()
    assert whys == ["1 files, installed packages in code: site-packages/solve.py"]
    find_plagiarism(store, "g")


def test_thousands_of_files_in_front(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "FILES", 20)
    filler = {f"a{number:03}.py": "x = 1\n" for number in range(30)}
    add_run(store, "g", "hostile", {**filler, "z.py": GUILTY}, {})
    rows = find_violations(store, "g").rows
    (row,) = (row for row in rows if row["rule"] == "not-examined")
    assert row["severity"] == "violation"
    assert row["why"].startswith("11 files, more files or bytes than are read in code: ")


def test_names_that_are_no_text(store: Store) -> None:
    add_run(store, "g", "hostile", {"main.py": HONEST}, {"agent.log": "training\n"})
    code = folder(store, "code")
    (Path(os.fsdecode(os.fsencode(code) + b"/\xff\xfe\n\x1b[2J.py"))).write_text(GUILTY)
    (name,) = (row["file"] for row in find_violations(store, "g").rows if row["rule"] == "network")
    assert name.isprintable()
    assert name.endswith(".py")
    find_plagiarism(store, "g")


def test_content_that_is_no_text(store: Store) -> None:
    add_run(store, "g", "hostile", {"main.py": HONEST}, {"agent.log": "training\n"})
    logs = folder(store, "logs")
    (logs / "latin.log").write_bytes(b"\xe9\xff caf\xe9\n$ wget https://example.org/answers.zip\n")
    (logs / "noise.log").write_bytes(bytes(range(256)) * 100)
    rows = find_violations(store, "g").rows
    assert {(row["rule"], row["file"]) for row in rows} == {("network", "latin.log"), ("not-examined", "")}


def test_ids_that_a_broken_submission_hides(store: Store) -> None:
    """Lines as long as the file, and whatever is no CSV: the ids before them count."""
    ids = [f"case-{number:03}" for number in range(20)]
    code = HONEST + f"labels = {dict.fromkeys(ids, 1)}\n"
    add_run(store, "g", "hostile", {"main.py": code}, {"agent.log": "training\n"})
    rows = "".join(f"{each},1\n" for each in ids)
    store.write(f"{store.run('g', COMPETITION, 0)}/submission.csv", f"id,label\n{rows}{'x' * 3_000_000}\n".encode())
    (why,) = (row["why"] for row in find_violations(store, "g").rows if row["rule"] == "hand-written")
    assert why == "20 ids of test cases are written out"


def test_ids_that_make_every_file_slow(store: Store) -> None:
    """The agent chooses the ids of its submission. They are not looked for one by one in each of its files."""
    looked: list[str] = []

    class Text(str):
        """A text that remembers what was looked for in it."""

        __slots__ = ()

        def __contains__(self, part: object) -> bool:
            looked.append(str(part))
            return super().__contains__(str(part))

    ids = frozenset(map(str, range(1000)))
    detect(RunTexts({"a.py": Text(GUILTY)}, ids=ids))
    assert ids.isdisjoint(looked)
