"""A session of tests leaves no process behind, and names tests that pass when they are alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
DAEMON = """
import subprocess, sys, threading
from pathlib import Path

def test_that_waits():
    program = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"
    daemon = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, stdout=subprocess.PIPE)
    daemon.stdout.readline()
    print(daemon.pid, file=sys.__stderr__, flush=True)
    {wait}
"""


def session(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`tests.session` on the tests of a folder, without the plugins of this one."""
    (folder / "pytest.ini").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-m", "tests.session", "-s", "-c", "pytest.ini", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def has_ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_process_that_a_test_leaves_behind_is_ended(tmp_path: Path) -> None:
    (tmp_path / "test_daemon.py").write_text(DAEMON.format(wait=""))
    with session(tmp_path) as running:
        _, errors = running.communicate()
    assert running.returncode == 0, errors
    assert has_ended(int(errors.split()[0]))


def test_after_ctrl_c_nothing_runs(tmp_path: Path) -> None:
    (tmp_path / "test_daemon.py").write_text(DAEMON.format(wait="threading.Event().wait()"))
    with session(tmp_path) as running:
        assert running.stderr is not None
        daemon = int(running.stderr.readline())
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate()
    assert running.returncode == 2, output
    assert "KeyboardInterrupt" in output
    assert "Traceback" not in output + errors
    assert has_ended(daemon)
    kept = re.search(r"Temporary files of this session: (.*)", errors)
    assert kept is not None, "the files of a session that was interrupted can be looked at"
    Path(kept[1]).rmdir()


def test_what_passes_alone_is_named_as_flaky(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_addoption, pytest_terminal_summary\n")
    test = 'def test_once(): assert Path("second").exists()\ndef test_never(): assert False\ndef test_always(): pass\n'
    (tmp_path / "test_some.py").write_text(f"from pathlib import Path\n{test}")
    with session(tmp_path, "-q") as first:
        first.communicate()
    (tmp_path / "second").touch()
    with session(tmp_path, "-q", "--last-failed") as second:
        output, _ = second.communicate()
    assert second.returncode == 1
    assert (
        "FLAKY (unless the code has changed): 1 tests failed before and passed now\n  test_some.py::test_once" in output
    )
