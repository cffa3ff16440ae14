"""Bytes and memory where the watch does not look, and other runs' disks."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from common import trees
from sandbox.limits import MIB, Limits
from sandbox.supervision.disk import DiskUse
from sandbox.world import quota
from tests.sandbox.attacks.conftest import HANDS_IN, Hostile, as_nobody, python

LIMIT = 16 * MIB
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount, and become somebody else")
ENDS_FIRST = """
    import ctypes, os, platform, threading, time
    def hide():
        kept = []
        @what@
        time.sleep(1000)
    threading.Thread(target=hide).start()
    ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)  # ends this thread only
"""


def after_the_first_thread(code: str) -> str:
    """A program whose first thread ends: the kernel then shows no descriptors and no memory of its process."""
    return python(ENDS_FIRST.replace("@what@", code.replace("\n", "\n        ")))


def test_files_held_by_a_thread_when_the_first_one_has_ended(hostile: Hostile) -> None:
    code = """for number in range(3):
    kept.append(os.open(f"tmp/{number}", os.O_RDWR | os.O_CREAT))
    os.unlink(f"tmp/{number}")
    os.write(kept[-1], bytes(8 << 20))"""
    result = hostile.run(HANDS_IN + after_the_first_thread(code), disk_bytes=LIMIT, time_limit_seconds=20).result
    assert (result.status, result.submission is not None) == ("disk", True)


def test_memory_of_a_process_whose_first_thread_has_ended(hostile: Hostile) -> None:
    code = "kept.append(b'x' * (400 << 20))"
    done = hostile.run(after_the_first_thread(code), memory_bytes=200 * MIB, time_limit_seconds=20)
    assert done.result.status == "memory" or "MemoryError" in done.log


def test_a_home_moved_away(hostile: Hostile) -> None:
    """In a container it is a mount, which nobody can move."""
    code = """
        import os, time
        home = os.environ["HOME"]
        try:
            os.rename(home, home + ".moved")
            os.symlink("/proc", home)
        except OSError:
            pass
        for number in range(3):
            open(f"tmp/{number}", "wb").write(bytes(8 << 20))
        time.sleep(1000)
    """
    assert hostile.run(python(code), disk_bytes=LIMIT, time_limit_seconds=20).result.status == "disk"


def test_files_made_as_fast_as_they_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count would never end. It does at the limit."""
    (tmp_path / "x").write_bytes(bytes(MIB))
    with trees.opened_folder(tmp_path) as top:
        [entry] = trees.walk(top)
    use = DiskUse(tmp_path, Limits(disk_bytes=LIMIT), list, mounted_data=True)
    monkeypatch.setattr(trees, "walk", lambda *_, **__: itertools.repeat(entry))
    use.close()
    assert use.exceeded()


def test_folders_that_an_orchestrator_without_root_may_not_read(foreign: Path) -> None:
    """The agent has its user id, and can take permissions away."""
    code = """
import os
from pathlib import Path
from sandbox.limits import Limits
from sandbox.supervision.disk import DiskUse
os.makedirs("home/tmp/hidden")
use = DiskUse(Path("home"), Limits(disk_bytes=4 << 20), list, mounted_data=True)
Path("home/tmp/hidden/x").write_bytes(bytes(8 << 20))
for name in ("home/tmp/hidden", "home/tmp", "home"):
    os.chmod(name, 0)
use.close()
print(use.exceeded().status)
"""
    assert as_nobody(code, folder=foreign) == ["disk"]


def test_a_submission_that_an_orchestrator_without_root_may_not_read(foreign: Path) -> None:
    code = """
import os
from pathlib import Path
from sandbox.limits import Limits
from sandbox.supervision.harvest import harvest
os.makedirs("home/submission")
os.makedirs("home/code/a")
Path("home/submission/submission.csv").write_text("x")
Path("home/code/a/b").write_text("x")
for name in ("home/submission", "home/code/a", "home/code", "home"):
    os.chmod(name, 0)
Path("log").touch()
print(harvest(Path("home"), Path("log"), Path("left"), Limits()))
print(Path("left/submission.csv").read_text(), Path("left/code/a/b").read_text())
"""
    assert as_nobody(code, folder=foreign) == ["(True, [])", "x x"]


@needs_root
def test_a_disk_of_another_run_behind_a_link(isolated: Hostile, tmp_path: Path) -> None:
    """Disks below a folder are unmounted before it is removed, but not below the target of a link."""
    other = tmp_path / "other" / "home"
    other.mkdir(parents=True)
    quota.mount(other, LIMIT)
    try:
        (other / "x").write_text("x")
        for target in (other.parent, other):
            done = isolated.run(f'cd /; rm -rf "$HOME/tmp"; ln -s {target} "$HOME/tmp"')
            isolated.backend.discard(done.handle)
            assert (other / "x").read_text() == "x"
        assert Path(f"{other}.img").exists()
    finally:
        quota.unmount(other)
    assert not other.is_mount()
