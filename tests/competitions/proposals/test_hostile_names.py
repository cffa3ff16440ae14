"""Names of columns, files and archives stay names: of a table's cells, too."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml

from common.errors import UserError
from competitions.preparing.download import Download
from competitions.proposals import folder as folders
from competitions.proposals.about import About
from competitions.proposals.folder import write_folder
from competitions.proposals.layout import quoted, read_layout
from competitions.proposals.propose import propose
from competitions.proposals.vocabulary import foreign_words

NAMES = {
    "raw": "{raw}",
    "name": "{name}",
    "code": "if 0 else __import__('os').system('touch pwned'))or[1])#",
    "quotes": "\"'''\\",
    "newline": 'y"]\nimport os\nos.system("touch pwned")  #',
    "separator": "a\u2028b\x85c\x7f",
    "emoji": "\N{GRINNING FACE}",
    "comment": "y # CHECK: x",
    "dunder": "__debug__",
    "keyword": "class",
    "self": "self",
    "ligature": "\N{LATIN SMALL LIGATURE FI}x",
    "long": "\x7f" * 200 + "y" * 2000,
}


def written(top: Path, files: dict[str, str | bytes], title: str = "") -> tuple[Path, str | None]:
    """The folder of a download, and what is wrong with it."""
    path, folder = top / "some.zip", top / "own" / "some"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    raw, about = Download.open(str(path)), About("some", title, pages=(("evaluation", "Accuracy."),))
    layout = read_layout(raw)
    problem = write_folder(folder, about, propose(layout, about), layout, raw)
    for code in ("prepare.py", "grade.py"):
        assert foreign_words((folder / code).read_text("utf-8")) == []
    return folder, problem


def texts(code: str) -> set[str]:
    """The texts in the code."""
    return {
        node.value
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def table(count: int, **columns: object) -> str:
    return pd.DataFrame({"id": [f"r{number}" for number in range(count)], **columns}).to_csv(index=False)


@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_columns(name: str, tmp_path: Path) -> None:
    train, sample = table(20, x=1, **{name: [0, 1] * 10}), table(3, **{name: 0})
    folder, problem = written(tmp_path, {"train.csv": train, "sample_submission.csv": sample}, title=name)
    assert problem is None
    facts = yaml.safe_load((folder / "competition.yaml").read_text("utf-8"))
    assert (facts["name"], set(facts["submission"])) == (name, {"id", name})
    assert name in texts((folder / "prepare.py").read_text("utf-8")) | texts((folder / "grade.py").read_text("utf-8"))


@pytest.mark.parametrize("name", [name for name in NAMES.values() if name.isprintable() and "\\" not in name])
@pytest.mark.parametrize("other", ["{raw}", "{name}"])
def test_archives_and_tables_of_json(name: str, other: str, tmp_path: Path) -> None:
    records = json.dumps([{"id": number, "y": number % 2} for number in range(40)])
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(f"{name}train.json", records)
    sample = "id,y\n100,0\n101,0\n"
    folder, problem = written(tmp_path, {f"{other}.zip": inner.getvalue(), "sample_submission.csv": sample})
    assert problem is None
    assert {f"{other}.zip", f"{name}train.json"} <= texts((folder / "prepare.py").read_text("utf-8"))


@pytest.mark.parametrize("name", ["{raw}", "))if 0 else print('PWNED'))#{name}", "{0.__class__}"])
def test_folders_of_classes(name: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{name}train/c{number % 3}/{number}.jpg": b"x" for number in range(60)}
    sample = "file,label\n" + "".join(f"z{number}.jpg,c0\n" for number in range(30))
    _, problem = written(tmp_path, files | {"sample_submission.csv": sample})
    assert problem is None


@pytest.mark.parametrize("name", ["{raw}", "{0.__class__}", "{"])
def test_folders_of_files_of_rows(name: str, tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for number in range(20):
            archive.writestr(f"r{number}.png", b"x")
            archive.writestr(f"{name}/r{number}.txt", b"x")
    tables = {"train.csv": table(20, y=[0, 1] * 10), "sample_submission.csv": table(3, y=0)}
    _, problem = written(tmp_path, {**tables, f"{name}.zip": inner.getvalue()})
    assert problem is None


def test_cells() -> None:
    for value in (float("inf"), float("-inf"), 0.1, 10**30, True, None, "a\ud800\n", ["a", '"']):
        assert eval(quoted(value)) == value, "a literal"
        assert yaml.safe_load(quoted("a\n\x85\U000e0001\N{GRINNING FACE}")) == "a\n\x85\U000e0001\N{GRINNING FACE}"


def test_code_beyond_the_vocabulary_is_neither_run_nor_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    make: Callable[..., str] = folders.prepare_code
    evil = f"\nimport os\nos.mkdir({str(ran)!r})\n"
    monkeypatch.setattr(folders, "prepare_code", lambda *found: make(*found) + evil)
    with pytest.raises(UserError, match=r"prepare\.py would use mkdir, os\."):
        written(tmp_path, {"train.csv": table(20, y=[0, 1] * 10), "sample_submission.csv": table(3, y=0)})
    assert not ran.exists()
    assert not (tmp_path / "own" / "some").exists()


def test_a_table_of_json_in_a_single_archive(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("train.json", json.dumps([{"id": number, "y": number % 2} for number in range(40)]))
        archive.writestr("sample_submission.csv", "id,y\n100,0\n101,0\n")
    folder, problem = written(tmp_path, {"all.zip": inner.getvalue()})
    assert problem is None
    assert '.read_json("train.json")' in (folder / "prepare.py").read_text("utf-8")


def test_a_folder_is_there_as_a_whole_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "_public_names", interrupted)
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path, {"train.csv": table(20, y=[0, 1] * 10), "sample_submission.csv": table(3, y=0)})
    assert list((tmp_path / "own").iterdir()) == []


def test_tables_in_another_encoding_are_named(tmp_path: Path) -> None:
    sample = "id,caf\u00e9\n100,0\n101,0\n".encode("latin-1")
    folder, _ = written(tmp_path, {"train.csv": table(20, y=[0, 1] * 10), "sample_submission.csv": sample})
    assert "sample_submission.csv could not be read: is it UTF-8?" in (folder / "prepare.py").read_text("utf-8")
