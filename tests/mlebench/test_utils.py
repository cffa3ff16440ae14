"""The helpers that other programs import."""

from __future__ import annotations

import gzip
import logging
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pandas as pd
import py7zr
import pytest

from competitions.scoring.errors import InvalidSubmission
from mlebench import utils


def write(path: Path, content: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_json_lines_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": 1}\n\n  [2]\n"\u2028"\n')
    assert utils.read_jsonl(path) == [{"a": 1}, [2], "\u2028"]
    assert utils.read_jsonl(str(path)) == utils.load_answers(path)
    commented = write(tmp_path / "b.jsonl", '# one\n{"a": 1}\n // two\n{"a": "# 3"}\n')
    assert utils.read_jsonl(commented, skip_commented_out_lines=True) == [{"a": 1}, {"a": "# 3"}]
    with pytest.raises(ValueError, match="line 1 is not JSON"):
        utils.read_jsonl(commented)


def test_tables_are_read_with_exact_floats(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n0.1234567890123456789,NA\n")
    frame = utils.read_csv(path)
    assert frame["a"][0] == 0.1234567890123456789
    assert frame["b"].isna().all()
    pd.testing.assert_frame_equal(utils.load_answers(str(path)), frame)
    assert utils.read_csv(path, dtype=str, keep_default_na=False)["b"][0] == "NA"
    assert utils.read_csv(write(tmp_path / "empty.csv", "")).shape == (0, 0)
    with pytest.raises(ValueError, match=r"\.csv or a \.jsonl"):
        utils.load_answers(write(tmp_path / "a.txt"))


def test_yaml_is_read_without_objects(tmp_path: Path) -> None:
    assert utils.load_yaml(write(tmp_path / "a.yaml", "a: [1, x]\n")) == {"a": [1, "x"]}
    with pytest.raises(Exception, match="python/object"):
        utils.load_yaml(write(tmp_path / "b.yaml", "!!python/object/apply:os.getcwd []\n"))


def test_directories_are_empty_or_not(tmp_path: Path) -> None:
    assert utils.is_empty(tmp_path)
    file = write(tmp_path / ".hidden")
    assert not utils.is_empty(str(tmp_path))
    with pytest.raises(NotADirectoryError):
        utils.is_empty(file)


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tgz", ".7z"])
def test_archives_are_unpacked(suffix: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(source / "a.txt", "a")
    write(source / "b" / "c.txt", "c")
    archive = tmp_path / f"archive{suffix}"
    if suffix == ".zip":
        utils.compress(source, archive)
    elif suffix == ".7z":
        with py7zr.SevenZipFile(archive, "w") as seven:
            seven.writeall(source, arcname="")
    else:
        with tarfile.open(archive, "w" if suffix == ".tar" else "w:gz") as tar:
            tar.add(source, arcname=".")
    utils.extract(archive, tmp_path / "new" / "target")
    assert files(tmp_path / "new" / "target") == files(source)


def test_one_file_in_gzip_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\n1\n"))
    utils.extract(tmp_path / "a.csv.gz", tmp_path / "target")
    assert files(tmp_path / "target") == {"a.csv": "a\n1\n"}


def test_archives_in_archives_are_unpacked_beside_themselves(tmp_path: Path) -> None:
    write(tmp_path / "inner" / "a.txt", "a")
    (tmp_path / "outer").mkdir()
    utils.compress(tmp_path / "inner", tmp_path / "outer" / "inner.zip")
    utils.compress(tmp_path / "outer", tmp_path / "outer.zip")
    utils.extract(tmp_path / "outer.zip", tmp_path / "flat")
    assert [path.name for path in (tmp_path / "flat").iterdir()] == ["inner.zip"]
    utils.extract(tmp_path / "outer.zip", tmp_path / "deep", recursive=True)
    assert (tmp_path / "deep" / "inner" / "a.txt").read_text() == "a"


def test_names_that_are_taken_and_files_that_are_no_archives_end_nothing(tmp_path: Path) -> None:
    write(tmp_path / "outer" / "train.csv", "own")
    (tmp_path / "outer" / "train.csv.gz").write_bytes(gzip.compress(b"packed"))
    for name in ("a.zip", "b.gz", "c.7z", "d.tar"):
        write(tmp_path / "outer" / name)
    utils.compress(tmp_path / "outer", tmp_path / "outer.zip")
    utils.extract(tmp_path / "outer.zip", tmp_path / "deep", recursive=True)
    assert (tmp_path / "deep" / "train.csv").read_text() == "own"
    assert (tmp_path / "deep" / "train.csv-2" / "train.csv").read_text() == "packed"
    assert len(list((tmp_path / "deep").iterdir())) == 7


def test_nothing_is_unpacked_outside_of_the_target(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../outside.txt", "x")
    utils.extract(tmp_path / "a.zip", tmp_path / "target" / "folder")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(write(tmp_path / "x"), arcname="../outside.txt")
    with pytest.raises(tarfile.FilterError):
        utils.extract(tmp_path / "a.tar", tmp_path / "target" / "folder")
    assert not (tmp_path / "outside.txt").exists()
    assert not (tmp_path / "target" / "outside.txt").exists()


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="known kind"):
        utils.extract(write(tmp_path / "a.rar"), tmp_path / "target")
    with pytest.raises(FileNotFoundError):
        utils.extract(tmp_path / "none.zip", tmp_path / "target")


def test_members_of_zips_have_no_folder_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "train" / "a" / "1.jpg")
    utils.compress(tmp_path / "train", tmp_path / "train.zip")
    assert zipfile.ZipFile(tmp_path / "train.zip").namelist() == ["a/1.jpg"]
    utils.compress(tmp_path / "train" / "a" / "1.jpg", tmp_path / "one.zip")
    assert zipfile.ZipFile(tmp_path / "one.zip").namelist() == ["1.jpg"]
    with pytest.raises(FileExistsError):
        utils.compress(tmp_path / "train", tmp_path / "one.zip")
    utils.compress(tmp_path / "train", tmp_path / "one.zip", exist_ok=True)
    assert zipfile.ZipFile(tmp_path / "one.zip").namelist() == ["a/1.jpg"]


def test_a_zip_in_its_own_source_is_not_packed(tmp_path: Path) -> None:
    write(tmp_path / "a.txt")
    for _ in range(2):
        utils.compress(tmp_path, tmp_path / "all.zip", exist_ok=True)
        assert zipfile.ZipFile(tmp_path / "all.zip").namelist() == ["a.txt"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "all.zip"}


def test_functions_are_imported_by_name(tmp_path: Path) -> None:
    assert utils.import_fn("shutil:copy") is shutil.copy
    path = write(tmp_path / "my grade.py", "def grade(submission, answers):\n    return 0.5\n")
    assert utils.import_fn(f"file:{path}:grade")(None, None) == 0.5
    with pytest.raises(ValueError, match=r"module\.path:function"):
        utils.import_fn("shutil")
    for wrong in ("shutil:none", f"file:{path}:none"):
        with pytest.raises(AttributeError):
            utils.import_fn(wrong)
    with pytest.raises(FileNotFoundError):
        utils.import_fn(f"file:{tmp_path / 'none.py'}:grade")


def test_graders_of_the_catalog_are_imported_although_ids_have_dashes() -> None:
    grade = utils.import_fn("mlebench.competitions.spaceship-titanic.grade:grade")
    answers = pd.DataFrame({"PassengerId": ["a", "b"], "Transported": [True, False]})
    assert grade(answers.assign(Transported=True), answers) == 0.5
    with pytest.raises(InvalidSubmission):
        grade(answers[:1], answers)
    assert callable(utils.import_fn("mlebench.competitions.spaceship-titanic.prepare:prepare"))
    with pytest.raises(FileNotFoundError, match="unknown competition 'no-such'"):
        utils.import_fn("mlebench.competitions.no-such.grade:grade")(answers, answers)


def test_loggers_write_once_to_each_place(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logger = utils.get_logger("mlebench.test-of-loggers")
    assert utils.get_logger("mlebench.test-of-loggers", level=logging.WARNING) is logger
    utils.get_logger("mlebench.test-of-loggers", logging.WARNING, tmp_path / "log.txt")
    logger.info("not this")
    logger.warning("but this")
    assert capfd.readouterr().err.count("but this") == 1
    assert re.fullmatch(r"\[.*\] \[test_utils.py:\d+\] but this\n", (tmp_path / "log.txt").read_text())


def test_runs_have_directories_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "get_repo_dir", lambda: tmp_path)
    first, second = (utils.create_run_dir("digits", "agent", "group") for _ in range(2))
    assert first != second
    assert first.parent == second.parent == tmp_path / "runs" / "group"
    assert first.name.startswith("digits_")
    assert utils.create_run_dir().is_dir()


def test_small_things() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\S+", utils.get_timestamp())
    assert utils.purple("x") == "\033[1;35mx\033[0m"
    assert (utils.get_module_dir() / "utils.py").is_file()
    assert utils.get_repo_dir() == utils.get_module_dir().parent


def test_without_credentials_kaggle_is_not_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path))
    with pytest.raises(PermissionError, match="Kaggle authentication failed"):
        utils.authenticate_kaggle_api()
    monkeypatch.setenv("KAGGLE_USERNAME", "somebody")
    monkeypatch.setenv("KAGGLE_KEY", "0" * 32)
    assert utils.authenticate_kaggle_api().get_config_value("username") == "somebody"
