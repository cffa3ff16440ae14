from __future__ import annotations

import errno
import os
import re
import socket
import tracemalloc
from pathlib import Path

import pytest

from common import trees
from sandbox.limits import Limits
from sandbox.supervision import misplaced
from sandbox.supervision.harvest import harvest
from sandbox.supervision.moving import move
from sandbox.supervision.output import CappedLog

LIMITS = Limits(submission_bytes=1000, collected_bytes=1000, collected_files=5)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for name in ("submission", "logs", "code"):
        (home / name).mkdir(parents=True)
    (tmp_path / "private.csv").write_text("secret")
    (tmp_path / "output").write_text("said\n")
    return home


def gather(home: Path) -> tuple[bool, str, Path]:
    target = home.parent / "collected"
    has_submission, notes = harvest(home, home.parent / "output", target, LIMITS)
    assert not any(path.is_symlink() for path in target.rglob("*"))
    return has_submission, "; ".join(notes), target


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_bytecode_is_not_kept_with_the_code(home: Path) -> None:
    cache = home / "code" / "own" / "__pycache__"
    cache.mkdir(parents=True)
    for name in ("model.cpython-311.pyc", "hidden.py"):
        (cache / name).write_bytes(b"x")
    target = home.parent / "kept"
    _, messages = harvest(home, home.parent / "log", target, Limits())
    kept = [path.name for path in (target / "code").rglob("*") if path.is_file()]
    assert "model.cpython-311.pyc" not in kept
    assert "hidden.py" in kept, "code is kept wherever it lies"
    assert not any("left out" in each for each in messages)


def test_submission_logs_and_code_are_taken(home: Path) -> None:
    (home / "submission" / "submission.csv").write_text("id\n1\n")
    (home / "submission" / "submission.csv").chmod(0)
    (home / "code" / "deep" / "er").mkdir(parents=True)
    (home / "code" / "deep" / "er" / "main.py").write_text("pass")
    (home / "code" / "deep").chmod(0)
    (home / "logs" / "agent.log").write_text("the agent's own")
    has_submission, notes, target = gather(home)
    assert (has_submission, notes) == (True, "")
    assert contents(target) == {
        "submission.csv": "id\n1\n",
        "code/deep/er/main.py": "pass",
        "logs/agent.log": "said\n",
        "logs/agent.own.log": "the agent's own",
    }


def link(path: Path) -> None:
    path.symlink_to(path.parents[2] / "private.csv")


def bind(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is limited to some 100 characters
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "wrote no submission"),
        (link, "is a symbolic link"),
        (os.mkfifo, "is a pipe"),
        (Path.mkdir, "is a folder"),
        (bind, "is a socket"),
        (lambda path: path.write_bytes(b"x" * 1001), "more than the limit of 1000 bytes"),
    ],
)
def test_what_is_not_a_file_within_the_limit_is_no_submission(home: Path, make: object, message: str) -> None:
    make(home / "submission" / "submission.csv")  # type: ignore[operator]
    has_submission, notes, target = gather(home)
    assert not has_submission
    assert message in notes
    assert not (target / "submission.csv").exists()


def test_folders_exchanged_for_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "submission.csv").write_text("secret")
    for name in ("submission", "code"):
        (home / name).rmdir()
        (home / name).symlink_to(elsewhere)
    (home / "logs").rmdir()
    has_submission, notes, target = gather(home)
    assert not has_submission
    assert "no longer a folder" in notes
    assert contents(target) == {"logs/agent.log": "said\n"}


def test_links_special_files_and_what_is_too_much_are_left_out(home: Path) -> None:
    link(home / "code" / "link")
    (home / "code" / "folder").symlink_to(home.parent)
    os.mkfifo(home / "code" / "pipe")
    (home / "code" / "large").write_bytes(b"x" * 1001)
    (home / "code" / "small").write_text("kept")
    (Path(os.fsdecode(os.fsencode(home / "code") + b"/\xff"))).write_text("a name that is no text")
    for number in range(7):
        (home / "logs" / f"{number}.txt").write_text("kept")
    _, notes, target = gather(home)
    assert contents(target / "code") == {"small": "kept"}
    assert len(contents(target / "logs")) == 6
    assert "5 of code/ left out" in notes
    assert "2 of logs/ left out" in notes


@pytest.mark.parametrize(
    "path",
    [
        "submission/Submission.csv",
        "submission/submission.csv.gz",
        "submission/submission/submission.csv",
        "submission/submissions.csv",
        "submission/predictions.parquet",
        "submission/submission.csv/part-0000",
        "submission.csv",
        "submissions/submission.csv",
        "tmp/out/my_sub.csv",
        "agent/submission.csv",
        "agent/working/preds.csv",
    ],
)
def test_what_may_be_meant_as_the_submission_is_kept_and_named(home: Path, path: str) -> None:
    (home / "instructions.txt").write_text("x")
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).write_text("id\n1\n")
    has_submission, notes, target = gather(home)
    assert not has_submission
    assert contents(target / "misplaced") == {path: "id\n1\n"}
    assert notes.endswith(f"; files that look like a submission are kept in misplaced/ of the run: {path}"), notes


def test_with_a_submission_nothing_else_is_kept(home: Path) -> None:
    for path in ("submission/submission.csv", "submission/submission-2.csv", "submission.csv"):
        (home / path).write_text("id\n1\n")
    assert gather(home)[:2] == (True, "")
    assert not (home.parent / "collected" / "misplaced").exists()


def test_data_and_the_files_of_the_agent_are_not_meant(home: Path) -> None:
    for path in ("data/sample_submission.csv", "agent/sample_submission.csv"):
        (home / path).parent.mkdir()
        (home / path).write_text("id\n1\n")
        os.utime(home / path, (1, 1))
    (home / "instructions.txt").write_text("x")
    _, notes, target = gather(home)
    assert "meant" not in notes
    assert not (target / "misplaced").exists()


def test_a_submission_that_is_too_large_is_kept_as_far_as_there_is_room(home: Path) -> None:
    (home / "submission" / "submission.csv").write_bytes(b"x" * 1500)
    (home / "submission" / "other.csv").write_bytes(b"x" * 600)
    with (home / "submission.csv").open("wb") as file:
        file.truncate(2**43)  # a file with holes
    _, notes, target = gather(home)
    assert set(contents(target / "misplaced")) == {"submission/submission.csv"}
    assert "more than the limit of 1000 bytes" in notes
    assert "could not be kept: submission/other.csv (600 bytes), submission.csv (8 TiB)" in notes


@pytest.mark.parametrize("absolute", [None, "", "/home"], ids=["relative", "absolute", "in a container"])
def test_the_file_in_the_home_that_the_submission_links_to_is_kept(home: Path, absolute: str | None) -> None:
    (home / "out").mkdir()
    (home / "out" / "final").write_text("id\n1\n")
    beginning = ".." if absolute is None else absolute or os.fspath(home)
    (home / "submission" / "submission.csv").symlink_to(f"{beginning}/out/final")
    _, notes, target = gather(home)
    assert "is a symbolic link, not a file; files that look like a submission" in notes
    assert contents(target / "misplaced") == {"out/final": "id\n1\n"}


def test_nothing_outside_of_the_home_is_kept(home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "private.csv"
    (tmp_path / "private").mkdir()
    secret.rename(tmp_path / "private" / "submission.csv")
    secret.write_text("secret")
    (home / "submission.csv").symlink_to(secret)
    (home / "submission" / "submission.csv").symlink_to(secret)
    (home / "submissions").symlink_to(tmp_path / "private")
    os.mkfifo(home / "submission" / "pipe.csv")
    os.link(secret, home / "sub.csv")
    secret.chmod(0o600)
    _, _, target = gather(home)
    assert set(contents(target / "misplaced")) == {"sub.csv"}, "a link to the file itself, which the agent can read"
    assert secret.stat().st_mode & 0o777 == 0o600, "the other name of the file keeps its permissions"


def test_files_with_names_that_no_store_takes_are_kept_under_others(home: Path) -> None:
    (Path(os.fsdecode(os.fsencode(home) + b"/submission\n\xff.csv"))).write_text("id\n1\n")
    _, notes, target = gather(home)
    [(name, content)] = contents(target / "misplaced").items()
    assert name.startswith("renamed-")
    assert content == "id\n1\n"
    assert r"'submission\n\udcff.csv'" in notes


def test_the_number_of_files_is_limited_and_the_likeliest_are_kept(home: Path) -> None:
    for number in range(10):
        (home / f"pred_{number}.csv").write_text("x")
    (home / "submission" / "final.csv").write_text("x")
    _, notes, target = gather(home)
    assert len(contents(target / "misplaced")) == LIMITS.collected_files
    assert "submission/final.csv" in notes


@pytest.mark.parametrize(("depth", "searched"), [(14, True), (40, False)])
def test_long_paths_of_many_files_take_little_memory(home: Path, depth: int, searched: bool) -> None:
    with trees.opened_folder(home / "submission") as top:
        for above in range(depth):
            folder = trees.folder_below(top, ["d" * 250] * above)
            os.mkdir("d" * 250, dir_fd=folder)
            os.close(folder)
        folder = trees.folder_below(top, ["d" * 250] * depth)
        for number in range(2000):
            os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        os.close(folder)
    tracemalloc.start()
    try:
        _, _, target = gather(home)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2 << 20, "the paths of all files would have more than 7 MB"
    assert len(contents(target / "misplaced")) == (LIMITS.collected_files if searched else 0)


def test_a_file_that_cannot_be_opened_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "submission.csv").write_text("id\n1\n")

    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(misplaced, "_opened", fail)
    assert "could not be kept: submission.csv" in gather(home)[1]


def test_the_file_that_the_submission_links_to_comes_first(home: Path) -> None:
    for number in range(10):
        (home / "submission" / f"submission_{number}.csv").write_text("x")
    (home / "preds.csv").write_text("linked")
    (home / "submission" / "submission.csv").symlink_to("../preds.csv")
    _, notes, target = gather(home)
    assert "are kept in misplaced/ of the run: preds.csv, " in notes
    assert len(contents(target / "misplaced")) == LIMITS.collected_files


def test_a_harvest_that_is_repeated_knows_what_it_has_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("submission/submission\\1.csv", "submission\\2.csv", "submission/3.csv", "4_preds.csv"):
        (home / path).write_bytes(b"x" * 600)
    moved: list[str] = []

    def move_one(name: str, folder: int, target: Path, *, copied: bool = False) -> bool:
        if moved:
            raise OSError(errno.ENOSPC, "No space left on device")
        moved.append(name)
        return move(name, folder, target, copied=copied)

    with monkeypatch.context() as patched:
        patched.setattr(misplaced, "move", move_one)
        with pytest.raises(OSError, match="No space"):
            gather(home)
    assert moved == ["submission\\1.csv"]
    _, notes, target = gather(home)
    kept = contents(target / "misplaced")
    assert len(kept) == 3, "as many as without the interruption: there is room for 2000 bytes"
    assert re.search(r"misplaced/ of the run: renamed-\w+, submission/3\.csv, submission\\2\.csv;", notes)
    assert "could not be kept: 4_preds.csv (600 bytes)" in notes


def test_code_and_logs_are_searched_too(home: Path) -> None:
    (home / "code" / "submission.csv").write_text("x")
    (home / "code" / "submission.py").write_text("x")
    _, notes, target = gather(home)
    assert "files in logs/ and code/ that look like a submission: code/submission.csv" in notes
    assert not (target / "misplaced").exists()


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_log_keeps_its_beginning_and_its_end(tmp_path: Path, chunk: int) -> None:
    said = b"".join(b"%05d\n" % number for number in range(1000))
    log = CappedLog(tmp_path / "log", 800)
    for start in range(0, len(said), chunk):
        log.write(said[start : start + chunk])
    log.close()
    kept = (tmp_path / "log").read_bytes()
    assert kept.startswith(said[:700])
    assert kept.endswith(said[-100:])
    assert b"[... 5200 bytes left out" in kept


@pytest.mark.parametrize("length", [0, 1, 699, 700, 701, 800])
def test_a_log_within_its_limit_is_whole(tmp_path: Path, length: int) -> None:
    said = bytes(range(256)) * 4
    log = CappedLog(tmp_path / "log", 800)
    log.write(said[:length])
    log.close()
    assert (tmp_path / "log").read_bytes() == said[:length]


@pytest.mark.parametrize("name", [b"fol\xff/x.txt", b"x\x1b[2J.txt", b"a\nb", b"/".join([b"y" * 200] * 4)])
def test_files_that_no_store_takes_are_left_out_and_counted(home: Path, name: bytes) -> None:
    """Otherwise all files of the run would be lost when they are uploaded."""
    path = home / "logs" / os.fsdecode(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    (home / "logs" / "kept.txt").write_text("y")
    _, notes, target = gather(home)
    assert "1 of logs/ left out" in notes
    assert set(contents(target / "logs")) == {"kept.txt", "agent.log"}
