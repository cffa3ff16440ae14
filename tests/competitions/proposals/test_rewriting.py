"""What is taken over of a language model's answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions.proposals.rewriting import FILES, noted, question, take_over

GOOD = "import pandas as pd\n\n\ndef grade(submission, answers, edition):\n    return 1.0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).write_text("as it was\n")
    return tmp_path


def answer(**files: str) -> str:
    return "".join(f"=== FILE {name.replace('_', '.')} ===\n{text}=== END ===\n" for name, text in files.items())


def test_a_whole_file_is_taken_over(folder: Path) -> None:
    assert take_over(folder, "Here it is:\n" + answer(grade_py=GOOD)) == (["grade.py"], [])
    assert (folder / "grade.py").read_text() == GOOD
    assert (folder / "prepare.py").read_text() == "as it was\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("    import subprocess", "imports subprocess"),
        ("    from . import other", "imports ."),
        ("    exec('1')", "uses exec"),
        ("    open('/etc/passwd')", "uses open"),
        ("    ().__class__", "uses __class__"),
        ("    __builtins__", "uses __builtins__"),
        ("    pd.read_pickle('x')", "uses read_pickle"),
        ("    return (", "it is no Python"),
    ],
)
def test_code_that_reaches_out_is_refused(folder: Path, line: str, problem: str) -> None:
    written, (refused,) = take_over(folder, answer(grade_py=GOOD.replace("    return 1.0", line)))
    assert not written
    assert problem in refused
    assert (folder / "grade.py").read_text() == "as it was\n"


def test_other_names_and_empty_answers_change_nothing(folder: Path) -> None:
    for text in ("", "sorry", answer(grade_py=""), "=== FILE ../x.py ===\nx\n=== END ===\n"):
        written, refused = take_over(folder, text)
        assert (written, len(refused)) == ([], 1), text
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert not (folder.parent / "x.py").exists()


def test_a_record_that_cannot_be_read_is_noted_as_well(folder: Path) -> None:
    assert noted(folder) is None
    (folder / "written_by.yaml").write_text("nothing")
    assert "a person should read them" in (noted(folder) or "")


def test_the_question_has_the_files_the_findings_and_the_metrics(folder: Path) -> None:
    text = question(folder, ["train.csv: id, y"])
    assert "=== FILE prepare.py ===\nas it was" in text
    assert "train.csv: id, y" in text
    assert "regression.mae(truth: ArrayLike, predicted: ArrayLike): " in text
