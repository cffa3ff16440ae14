"""An infinite score in a store: whatever is printed or written as JSON is read by a strict reader, with the score."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from storage.runs.files import GRADES
from storage.runs.folders import RunFolder
from tests.storage.runs.recorded import recorded_store
from tests.stores import Store

__all__ = ["recorded_store"]
GROUP = "old-process"


@pytest.fixture
def infinite(recorded_store: Store) -> Store:
    """A group of which a run has the score -Infinity, and NaN at an earlier time."""
    folder = RunFolder(recorded_store, GROUP, "digits", 0)
    grade = folder.read_grade()
    assert grade is not None
    folder.write_grade(grade.replace(score=-math.inf))
    folder.write_snapshots([each.replace(score=math.nan) for each in folder.read_snapshots()])
    assert main(["report", GROUP, "--store", recorded_store.root]) == 0
    return recorded_store


def strict(content: str | bytes) -> Any:
    return json.loads(content, parse_constant=lambda token: pytest.fail(f"{token} is no JSON"))


def test_in_files_of_the_store(infinite: Store) -> None:
    urls = [
        url
        for top in ("runs", "reports")
        for depth in range(1, 6)
        for url in infinite.glob(f"{top}/{'*/' * depth}*.json")
    ]
    urls = [url for url in urls if GROUP in url]
    assert {url.rsplit("/", 1)[1] for url in urls} >= {"run.json", "grade.json", "summary.json"}
    assert '"-Infinity"' in infinite.read(f"{RunFolder(infinite, GROUP, 'digits', 0).url}/{GRADES[-1]}").decode()
    for url in urls:
        strict(infinite.read(url))


@pytest.mark.parametrize("arguments", [["show", f"{GROUP}/digits/0"], ["ls", GROUP], ["ls"], ["report", GROUP]])
def test_on_standard_output(infinite: Store, capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    capfd.readouterr()
    assert main([*arguments, "--json", "--store", infinite.root]) == 0
    out = capfd.readouterr().out
    for text in [out] if out.startswith("[") else out.splitlines():
        strict(text)
    if arguments[0] == "show":
        assert strict(out)["grade"]["score"] == "-Infinity"


@pytest.mark.parametrize("form", ["report", "inspect", "atif", "every-eval-ever"])
def test_in_exports(infinite: Store, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    assert main(["export", GROUP, "--format", form, "--output-dir", str(out), "--store", infinite.root]) == 0
    contents = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for name in [name for name in contents if name.endswith(".eval")]:
        with zipfile.ZipFile(io.BytesIO(contents.pop(name))) as archive:
            contents |= {f"{name}/{each}": archive.read(each) for each in archive.namelist()}
    found = [strict(content) for name, content in contents.items() if name.endswith(".json")]
    assert found or form == "atif"
