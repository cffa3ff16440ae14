from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from sandbox.limits import Limits
from sandbox.supervision.harvest import harvest
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
