"""More on disk than allowed, where a scan of the home does not see it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.limits import GIB, MIB, Limits
from sandbox.supervision.disk import DiskUse, nameless_bytes
from tests.sandbox.attacks.conftest import HANDS_IN, Hostile, python
from tests.waiting import until

pytestmark = pytest.mark.slow

LIMIT = 16 * MIB


def ended_at_the_limit(hostile: Hostile, code: str, **limits: int) -> None:
    result = hostile.run(HANDS_IN + python(code), disk_bytes=LIMIT, time_limit_seconds=60, **limits).result
    assert (result.status, result.message) == ("disk", "more on disk than the limit of 16 MiB")
    assert result.submission is not None


def test_a_file_that_is_open_but_has_no_name(hostile: Hostile) -> None:
    code = """
        import os, time
        for number in range(3):
            file = os.open(f"tmp/{number}", os.O_RDWR | os.O_CREAT)
            os.unlink(f"tmp/{number}")
            os.write(file, bytes(8 << 20))
        time.sleep(1000)
    """
    ended_at_the_limit(hostile, code)


def test_a_file_without_a_name_that_is_only_mapped(hostile: Hostile) -> None:
    if os.getuid():
        pytest.skip("only root sees what is mapped")
    code = """
        import mmap, os, time
        kept = []
        for number in range(3):
            file = os.open(f"tmp/{number}", os.O_RDWR | os.O_CREAT)
            os.unlink(f"tmp/{number}")
            os.write(file, bytes(8 << 20))
            kept.append(mmap.mmap(file, 8 << 20))
            os.close(file)
        time.sleep(1000)
    """
    ended_at_the_limit(hostile, code)


def test_empty_files_by_the_thousands(hostile: Hostile) -> None:
    code = """
        import time
        for number in range(6000):
            open(f"tmp/{number}", "w").close()
        time.sleep(1000)
    """
    ended_at_the_limit(hostile, code)


def test_files_deeper_than_a_path_can_say(hostile: Hostile) -> None:
    code = """
        import os, time
        os.chdir("tmp")
        for number in range(300):
            os.mkdir("deep" * 10)
            os.chdir("deep" * 10)
        for number in range(3):
            open(str(number), "wb").write(bytes(8 << 20))
        time.sleep(1000)
    """
    ended_at_the_limit(hostile, code)


def test_more_than_allowed_left_at_the_end(hostile: Hostile) -> None:
    """An agent that ends between two measurements."""
    code = "for number in range(3): open(f'tmp/{number}', 'wb').write(bytes(8 << 20))"
    ended_at_the_limit(hostile, code)


def test_a_home_exchanged_for_a_link_to_the_host_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "large").write_bytes(bytes(8 * MIB))
    (tmp_path / "home").mkdir()
    use = DiskUse(tmp_path / "home", Limits(disk_bytes=MIB), list, mounted_data=False)
    (tmp_path / "home" / "data").symlink_to(tmp_path / "elsewhere")
    use.close()
    assert use.exceeded() is None


def test_a_slow_scan_does_not_delay_the_time_limit(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hostile.contained:
        pytest.skip("the supervisor of the process backend is another process")
    import threading

    from sandbox.supervision import disk

    ended = threading.Event()
    monkeypatch.setattr(disk, "bytes_on_disk", lambda *_, **__: ended.wait(300) and 0)
    import sandbox.docker.watch as watch

    stop = watch.stop

    def stopping(*arguments: object) -> None:
        stop(*arguments)  # type: ignore[arg-type]
        ended.set()

    monkeypatch.setattr(watch, "stop", stopping)
    assert hostile.run("sleep 1000", time_limit_seconds=1).result.status == "timeout"


def test_bytes_written_between_two_slow_scans(tmp_path: Path) -> None:
    """The free space falls by more than is allowed: the next scan starts at once, however long the interval is."""
    home = tmp_path / "home"
    home.mkdir()
    use = DiskUse(home, Limits(disk_bytes=MIB), list, mounted_data=True)
    use.start()
    until(lambda: use._intervals[0].due > 0)
    use._intervals[0].shortest = 1e6
    until(lambda: (not use._intervals[0].is_due() and use._intervals[0].due > 1e5) or use._intervals[0].look)
    (home / "burst").write_bytes(os.urandom(8 * MIB))
    os.sync()
    until(lambda: use.exceeded())
    use.close()


def test_sparse_files_that_would_grow_when_they_are_stored(hostile: Hostile) -> None:
    """They take nothing on the agent's disk. What is kept is no longer than what the agent may use there."""
    script = 'cd "$HOME"; for n in 1 2 3; do truncate -s 40M logs/$n code/$n; done; echo kept >code/kept'
    done = hostile.run(script, disk_bytes=64 * MIB)
    assert done.result.status == "completed"
    assert "2 of logs/ left out" in str(done.result.message)
    for folder in (done.result.logs, done.result.code):
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 64 * MIB
    assert (done.result.code / "kept").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.getuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", folder], check=False).returncode
    ):
        pytest.skip("only root can mount a file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_machine_without_free_space(small_disk: Path) -> None:
    """The run that uses most of what it may is ended first, and the other one when it cannot be helped."""
    greedy, modest = (small_disk / name for name in ("greedy", "modest"))
    limits = Limits(disk_bytes=60 * MIB, free_bytes=GIB)  # the floor: a tenth of the disk
    uses = []
    for home, length in ((greedy, 55), (modest, 4)):
        home.mkdir()
        (home / "x").write_bytes(bytes(length * MIB))
        use = DiskUse(home, limits, list, mounted_data=True)
        use.close()
        uses.append(use)
    assert uses[0].exceeded() is None
    assert "nearly full (5 MiB left)" in str(uses[0].over())
    assert uses[1].over() is None
    (small_disk / "unknown").write_bytes(bytes(5 * MIB - 4096))
    assert "nearly full" in str(uses[1].over())


def test_a_full_disk_at_the_end(hostile: Hostile, small_disk: Path) -> None:
    """The run has an outcome and its submission, although the agent has filled the disk to the last byte."""
    code = """
        import os
        for folder in ("tmp", "tmp", "logs"):
            number, size = 0, 1 << 20
            while size >= 1:
                try:
                    with open(f"{folder}/{size}-{number}", "wb", buffering=0) as file:
                        written = file.write(bytes(size))
                        if written < size:
                            size //= 2
                    number += 1
                except OSError:
                    size //= 2
    """
    spec = hostile.spec(HANDS_IN + python(code), change={"workdir": small_disk / "run"}, disk_bytes=GIB, free_bytes=1)
    result = hostile.finish(spec).result
    assert result.submission is not None


def test_files_that_nobody_can_count(tmp_path: Path) -> None:
    """A process of another user, or one that is gone, does not stop the count."""
    assert nameless_bytes([2**22 - 1, 1], tmp_path.stat().st_dev) >= 0


HIDDEN = """
    import os, socket, time
    here, there = socket.socketpair()
    for number in range(6):
        file = os.open(f"tmp/{number}", os.O_RDWR | os.O_CREAT)
        os.unlink(f"tmp/{number}")
        try:
            os.write(file, bytes(15 << 20))
        except OSError as error:
            print(error.errno, flush=True)
        socket.send_fds(here, [b"x"], [file])  # now only a message that nobody reads has it
        os.close(file)
    print("hidden", flush=True)
    time.sleep(1000)
"""


def test_files_hidden_in_a_socket_on_a_disk_of_its_own(contained: Hostile) -> None:
    """With MLEBENCH_DISK_IMAGES, the file system itself knows what is used, and there is no more of it."""
    if os.getuid():
        pytest.skip("only root can mount a file system")
    spec = contained.spec(HANDS_IN + python(HIDDEN), change={"own_disk": True}, disk_bytes=LIMIT, time_limit_seconds=60)
    done = contained.finish(spec)
    assert (done.result.status, done.result.message) == ("disk", "more on disk than the limit of 16 MiB")
    assert done.result.submission is not None
    assert not [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(spec.workdir) in line]
    assert not (spec.workdir / "home.img").exists()
    contained.backend.discard(done.handle)
    assert not spec.workdir.exists()


def test_inodes_on_a_disk_of_its_own(contained: Hostile) -> None:
    if os.getuid():
        pytest.skip("only root can mount a file system")
    code = """
        import time
        made = 0
        try:
            for number in range(100_000):
                open(f"tmp/{number}", "w").close()
                made += 1
        except OSError as error:
            print("stopped", made < 6000, flush=True)
        time.sleep(1)
    """
    spec = contained.spec(python(code), change={"own_disk": True}, disk_bytes=LIMIT, time_limit_seconds=60)
    done = contained.finish(spec)
    assert "stopped True" in done.lines or done.result.status == "disk"


def test_a_disk_of_its_own_without_the_right_to_mount(tmp_path: Path) -> None:
    from sandbox.errors import BackendError
    from sandbox.world import quota

    (tmp_path / "home").mkdir()
    with pytest.raises(BackendError, match="without a disk limit"):
        quota.mount(tmp_path / "home", None)
