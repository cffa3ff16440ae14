"""mypy looks at competition folders as it looks at everything else."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from tests.catalog_types import ROOT, check, folders

TEMPLATE = ROOT / "competitions" / "template"


def test_every_folder_of_the_catalog_and_the_template_is_checked() -> None:
    named = {path.parent for path in (ROOT / "competitions").glob("*/**/prepare.py")}
    assert set(folders()) == named


def test_a_mistake_is_found_and_shown_where_it_is(tmp_path: Path) -> None:
    name = f"2-of-my-own-{uuid.uuid4().hex}"  # mypy repeats cached messages, with their old paths
    folder = tmp_path / name
    shutil.copytree(TEMPLATE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "columns.py").write_text("TARGET = 3\n")
    grade = folder / "grade.py"
    grade.write_text(grade.read_text() + "\n\nfrom .columns import TARGET\nNAME: str = TARGET\n")
    code, output = check([folder], tmp_path / "links")
    line = len(grade.read_text().splitlines())
    assert code == 1
    assert f"{name}/grade.py:{line}: error: Incompatible types" in output
