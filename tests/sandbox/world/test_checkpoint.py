"""What an agent leaves in its home reaches nothing, neither when it is packed nor when it is restored."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common import trees
from sandbox.definitions import Agent
from sandbox.errors import BackendError
from sandbox.limits import MIB
from sandbox.world import checkpoint
from sandbox.world.checkpoint import CheckpointStopped, pack, unpack


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(name="a", description="A.", resume=[".session", "agent/notes", ".cache/kept"], folder=tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for name in ("submission", "code", "logs", "tmp", "data", "agent/notes", ".session", ".cache/kept", "work/deep"):
        (home / name).mkdir(parents=True)
    for name in (
        "submission/submission.csv",
        "code/a.py",
        ".session/1",
        "agent/notes/1",
        ".cache/kept/1",
        "work/deep/w",
    ):
        (home / name).write_text(name)
    for name in (
        "data/train.csv",
        "tmp/x",
        "agent/start.sh",
        "instructions.txt",
        ".cache/pip",
        "validate_submission.sh",
    ):
        (home / name).write_text("not taken")
    return home


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


TAKEN = ["submission/submission.csv", "code/a.py", ".session/1", "agent/notes/1", ".cache/kept/1", "work/deep/w"]


def test_session_and_workspace_are_taken_and_nothing_else(home: Path, agent: Agent, tmp_path: Path) -> None:
    (home / "code" / "a.py").chmod(0o4755)
    packed = pack(home, agent, tmp_path / "c.tar", MIB)
    assert packed.left_out == 0
    unpack(tmp_path / "c.tar", tmp_path / "new")
    assert files(tmp_path / "new") == {name: name for name in sorted(TAKEN)}
    assert (tmp_path / "new" / "code" / "a.py").stat().st_mode & 0o7777 == 0o755


def test_files_are_as_old_as_they_were(home: Path, agent: Agent, tmp_path: Path) -> None:
    for name, at in ((".session/1", 2e9), ("code/a.py", 1.75e9 + 0.25), ("work/deep/w", -5)):
        os.utime(home / name, (at, at))
    pack(home, agent, tmp_path / "c.tar", MIB)
    unpack(tmp_path / "c.tar", tmp_path / "new")
    times = [(tmp_path / "new" / name).stat().st_mtime for name in (".session/1", "code/a.py", "work/deep/w")]
    assert times == [2e9, 1.75e9 + 0.25, -5]


@pytest.mark.parametrize("whole", [checkpoint.MAX_REREAD_BYTES, 1])
@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)])
def test_a_database_in_use_is_restored_as_of_one_moment(
    home: Path, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: int, order: Any
) -> None:
    """Its agent commits and moves the log into the database when it has been read, or its log."""
    database = home / ".session" / "db"
    monkeypatch.setattr(checkpoint, "MAX_REREAD_BYTES", whole)
    monkeypatch.setattr(os, "scandir", _ordered(order))
    pieces = trees.pieces
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("CREATE TABLE said (line TEXT)")
        writer.execute("INSERT INTO said VALUES ('first')")
        due = ["INSERT INTO said VALUES ('second')", "PRAGMA wal_checkpoint(TRUNCATE)"]

        def interrupted(descriptor: int, at_most: int | None = None) -> Iterator[bytes]:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            for piece in pieces(descriptor, at_most):
                while path.name.startswith("db") and due:
                    writer.execute(due.pop(0))
                yield piece

        monkeypatch.setattr(trees, "pieces", interrupted)
        pack(home, agent, tmp_path / "c.tar", MIB)
    assert due == []
    unpack(tmp_path / "c.tar", tmp_path / "new")
    with contextlib.closing(sqlite3.connect(tmp_path / "new" / ".session" / "db")) as restored:
        assert restored.execute("SELECT line FROM said").fetchall() == [("first",), ("second",)]
        assert restored.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_files_that_are_called_like_those_of_databases_are_taken(home: Path, agent: Agent, tmp_path: Path) -> None:
    odd = ["code/-wal", "code/b-wal", "code/c", "code/c-journal", "code/c-wal", "code/c-wal-wal", "code/c-wal-wal-wal"]
    for name in odd:
        (home / name).write_text(name)
    (home / "code" / "b").mkdir()
    pack(home, agent, tmp_path / "c.tar", MIB)
    unpack(tmp_path / "c.tar", tmp_path / "new")
    assert files(tmp_path / "new") == {name: name for name in sorted([*TAKEN, *odd])}


def _ordered(order: Callable[[Iterable[Any]], list[Any]]) -> Callable[..., Any]:
    """`os.scandir` with the entries in this order of their names."""
    scandir = os.scandir

    @contextlib.contextmanager
    def ordered(folder: int) -> Iterator[list[Any]]:
        with scandir(folder) as found:
            entries = {each.name: each for each in found}
            yield [entries[name] for name in order(entries)]

    return ordered


def test_what_is_no_plain_file_is_left_out(home: Path, agent: Agent, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    (home / ".session" / "link").symlink_to(secret)
    (home / "code" / "up").symlink_to("../../..")
    os.mkfifo(home / "logs" / "pipe")
    (home / "code" / "a\nb").touch()
    os.link(home / "code" / "a.py", home / "logs" / "hard")
    with (home / "work" / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    packed = pack(home, agent, tmp_path / "c.tar", MIB)
    assert packed.left_out == 5
    assert (tmp_path / "c.tar").stat().st_size < 2 * MIB
    unpack(tmp_path / "c.tar", tmp_path / "new")
    restored = files(tmp_path / "new")
    assert sorted(restored) == sorted([*TAKEN, "logs/hard"])
    assert "of the host" not in restored.values()


def test_a_session_that_is_too_large_makes_no_checkpoint(home: Path, agent: Agent, tmp_path: Path) -> None:
    with (home / ".session" / "huge").open("wb") as huge:
        huge.truncate(1 << 40)
    with pytest.raises(BackendError, match=r"its session, submission/, code/, logs/ have more than 1 MiB"):
        pack(home, agent, tmp_path / "c.tar", MIB)
    with pytest.raises(CheckpointStopped):
        pack(home, agent, tmp_path / "c.tar", MIB, lambda: True)


def test_restoring_replaces_nothing_and_leads_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "new"
    (home / "agent").mkdir(parents=True)
    for name in ("agent/start.sh", "instructions.txt"):
        (home / name).write_text("ours")
    link = tarfile.TarInfo("code")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    device = tarfile.TarInfo("code/null")
    device.type = tarfile.CHRTYPE
    with tarfile.open(tmp_path / "c.tar", "w") as tar:
        for info in (link, device):
            tar.addfile(info)
        for name in (
            "../out",
            "/tmp/h",
            "code/../../out",
            "agent/start.sh",
            "instructions.txt",
            "agent",
            "code/x",
            "code",
        ):
            info = tarfile.TarInfo(name)
            info.size = 3
            tar.addfile(info, io.BytesIO(b"bad"))
    unpack(tmp_path / "c.tar", home)
    assert files(home) == {"agent/start.sh": "ours", "code/x": "bad", "instructions.txt": "ours"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.tar", "new"]
    (tmp_path / "c.tar").write_bytes(b"no tar at all")
    with pytest.raises(BackendError, match="is damaged"):
        unpack(tmp_path / "c.tar", home)
