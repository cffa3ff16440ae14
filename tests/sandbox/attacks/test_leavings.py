"""What an agent leaves behind, for the orchestrator to stumble over when it collects and removes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common import trees
from sandbox.backend import RunResult
from sandbox.errors import BackendError
from sandbox.supervision.harvest import OUTPUT
from sandbox.supervision.moving import move
from sandbox.world.files import remove_tree
from storage.runs.folders import RunFolder
from storage.store import Store
from tasks.wiring.storing import _left_files
from tests.s3.fixtures import Bucket
from tests.sandbox.attacks.conftest import HANDS_IN, Hostile, layout_of, python
from tests.sandbox.conftest import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A folder of the host, with permissions that nobody may change."""
    folder = tmp_path / "treasure"
    folder.mkdir()
    (folder / "key").write_text("secret")
    (folder / "key").chmod(0o400)
    folder.chmod(0o500)
    return folder


def untouched(treasure: Path) -> None:
    assert treasure.stat().st_mode & 0o777 == 0o500
    assert (treasure / "key").stat().st_mode & 0o777 == 0o400
    assert (treasure / "key").read_text() == "secret"


@pytest.mark.parametrize("name", ["tmp", "logs", "code", "submission", "agent"])
def test_a_folder_exchanged_for_a_link_to_the_host(hostile: Hostile, treasure: Path, name: str) -> None:
    script = HANDS_IN + f'cd "$HOME"; chmod -R u+w {name}; rm -rf {name}; ln -s {treasure} {name}'
    done = hostile.run(script)
    assert done.result.status == "completed"
    untouched(treasure)
    hostile.backend.discard(done.handle)
    assert not done.handle.workdir.exists()
    untouched(treasure)


def test_links_to_the_host_in_every_folder(hostile: Hostile, treasure: Path) -> None:
    done = hostile.run(f'for f in tmp logs code submission; do ln -s {treasure} "$HOME/$f/x"; done; ln -s / "$HOME/y"')
    hostile.backend.discard(done.handle)
    untouched(treasure)


def test_the_home_itself_exchanged_for_a_link(tmp_path: Path, treasure: Path) -> None:
    (tmp_path / "home").symlink_to(treasure)
    remove_tree(tmp_path / "home")
    assert not os.path.lexists(tmp_path / "home")
    untouched(treasure)


def test_a_home_exchanged_for_a_link_while_the_agent_ends(hostile: Hostile, tmp_path: Path) -> None:
    """The scratch files in it are the first to be removed."""
    (tmp_path / "foreign" / "tmp").mkdir(parents=True)
    (tmp_path / "foreign" / "tmp" / "x").write_text("x")
    done = hostile.run(f'cd /; mv "$HOME" "$HOME.moved" 2>/dev/null && ln -s {tmp_path}/foreign "$HOME"; true')
    assert (tmp_path / "foreign" / "tmp" / "x").read_text() == "x"
    hostile.backend.discard(done.handle)
    assert not done.handle.workdir.exists()
    assert (tmp_path / "foreign" / "tmp" / "x").read_text() == "x"


def test_a_folder_exchanged_for_a_file_while_it_is_collected(tmp_path: Path) -> None:
    """By a process that survived. What was moved is looked at again afterwards."""
    (tmp_path / "logs" / "x" / "deep").mkdir(parents=True)
    (tmp_path / "logs" / "x" / "deep" / "y").symlink_to("/etc/passwd")
    (tmp_path / "left").mkdir()
    with trees.opened_folder(tmp_path / "logs") as folder:
        assert not move("x", folder, tmp_path / "left" / "x")
    assert list((tmp_path / "left").iterdir()) == []


def test_a_program_with_the_rights_of_its_owner_left_for_others(hostile: Hostile) -> None:
    """No other user of the machine gets to the folder of a run, during the run and later."""
    done = hostile.run('cp /bin/true "$CODE_DIR/x"; chmod 6755 "$CODE_DIR/x"; cp -p "$CODE_DIR/x" "$HOME/tmp/x"')
    assert done.handle.workdir.stat().st_mode & 0o777 == 0o700
    assert (done.result.code / "x").stat().st_mode & 0o7777 == 0o644


def test_folders_without_any_permission(hostile: Hostile) -> None:
    done = hostile.run('mkdir -p "$HOME/tmp/a/b" "$HOME/code/c/d"; echo x >"$HOME/code/c/d/e"; chmod 0 "$HOME"/tmp/a/b')
    hostile.backend.discard(done.handle)
    assert not done.handle.workdir.exists()


def test_a_file_that_cannot_be_removed_is_named_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "stubborn"
    folder.mkdir()
    (folder / "x").write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(BackendError, match="could not be removed"):
        remove_tree(folder)


NAMES = {
    "a folder where the log belongs": "mkdir -p logs/agent.log logs/agent.own.log; echo x >logs/agent.log/x",
    "the name of the replaced log": "echo x >logs/agent.log; mkdir logs/agent.own.log; echo y >logs/agent.own.log/y",
    "both names as files": "echo x >logs/agent.log; echo y >logs/agent.own.log",
    "a link where the log belongs": "ln -s /etc/passwd logs/agent.log",
    "a pipe where the log belongs": "mkfifo logs/agent.log",
    "a version of the log": "echo forged >'logs/agent.log?versionId=1'",
    "a chain of file systems": "echo forged >'logs/x::memory:'",
    "patterns": "echo x >'logs/*'; echo x >'logs/[a]'; echo x >'logs/a?'",
    "a fragment": "echo x >'logs/a#b'; echo x >'logs/%2e%2e'; echo x >'logs/a%00b'",
    "a very long name": 'echo x >"logs/$(printf %0250d 0)"; echo x >"logs/$(printf %0235d 0)"',
    "no text": 'mkdir "logs/$(printf "a\\377")"; echo x >"logs/$(printf "a\\377")/x"',
    "control characters": 'echo x >"logs/$(printf "a\\033[2Jb\\n")"',
    "the names of the services": "echo forged >validation.jsonl; echo forged >logs/validation.jsonl; "
    "echo forged >logs/gateway.jsonl; echo forged >run.json",
    "nested names": "mkdir -p "
    + "/".join(["logs", *["d" * 100] * 20])
    + "; echo x >"
    + "/".join(["logs", *["d" * 100] * 20, "x"]),
}


@pytest.mark.parametrize("attempt", NAMES)
def test_names_that_spoil_collecting(hostile: Hostile, attempt: str) -> None:
    done = hostile.run(HANDS_IN + 'echo said; cd "$HOME"; exec 2>/dev/null; ' + NAMES[attempt] + "; true")
    assert done.result.status == "completed"
    assert done.result.submission is not None
    assert (done.result.logs / OUTPUT).read_text() == "said\n"
    hostile.backend.discard(done.handle)
    assert not done.handle.workdir.exists()


def test_a_tree_that_takes_for_ever_to_remove(hostile: Hostile) -> None:
    code = """
        import os
        os.chdir(os.environ["HOME"] + "/tmp")
        for number in range(3000):
            open(str(number), "w").close()
        for _ in range(700):
            os.mkdir("d" * 100)
            os.chdir("d" * 100)
    """
    done = hostile.run(HANDS_IN + python(code))
    assert done.result.submission is not None
    assert not layout_of(done).home.exists()


@pytest.mark.parametrize("attempt", ["a version of the log", "a chain of file systems", "patterns", "a fragment"])
def test_names_that_no_store_takes(run: Callable[..., Run], attempt: str, s3: Bucket) -> None:
    """What was collected arrives in an object store under its own name, and replaces nothing."""
    done = run('echo said; cd "$HOME"; exec 2>/dev/null; ' + NAMES[attempt] + "; true")
    logs = done.result.logs
    left = {path.relative_to(logs).as_posix(): path for path in logs.rglob("*") if path.is_file()}
    store = Store(s3.url)
    store.put_many(store.url("runs", "x", "logs"), left)
    top = store.top.path("runs/x/logs/")
    assert {str(path).removeprefix(top) for path in store.top.fs.find(top)} == set(left)
    assert store.top.fs.cat_file(top + OUTPUT) == b"said\n"


def test_keys_that_are_too_long_with_the_folder_of_the_run(tmp_path: Path, s3: Bucket) -> None:
    """Object stores take 1,024 bytes for all of it. A longer name would make storing fail, and the record with it."""
    logs, code = tmp_path / "logs", tmp_path / "code"
    deep = logs.joinpath(*["d" * 99] * 6)
    deep.mkdir(parents=True)
    code.mkdir()
    for path in (deep / "x", logs / OUTPUT):
        path.write_text("x")
    now = datetime.now(UTC)
    result = RunResult("completed", None, 0, now, now, 1.0, None, logs, code)
    store = Store(f"{s3.url}/{'p' * 200}/{'q' * 200}")
    folder = RunFolder(store, "group", "competition", 0)
    files, dropped = _left_files(folder, result)
    assert (list(files), dropped) == ([f"logs/{OUTPUT}"], 1)
    store.put_many(folder.url, files)
    assert store.top.fs.find(store.top.path(""))
