"""Ctrl-C in a terminal while agents run and others wait for a slot: a pseudo-terminal, a process group, real agents."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from flows.commands import stopping
from tests import roots, services
from tests.agents import write_agent
from tests.prefect_home import make_home
from tests.waiting import until

ROOT = Path(__file__).parents[2]
STOPS = "mlebench: stopped. Finished work is kept; to continue, run the same command with --run-group stopped."
SLOTS = 2
COMMAND = ("run", "-c", "digits", "--agent", "waits", "--seeds", "3", "--agents", str(SLOTS), "--run-group", "stopped")


class Terminal:
    """A command in a terminal of its own: Ctrl-C reaches all processes of its foreground group, as for a user."""

    def __init__(self, *arguments: str) -> None:
        self.output = b""
        self.code: int | None = None
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execv(sys.executable, [sys.executable, "-m", "flows.cli", *arguments])
        threading.Thread(target=self._read, daemon=True).start()

    def press_ctrl_c(self) -> None:
        os.write(self._terminal, b"\x03")

    def ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def text(self) -> str:
        return self.output.decode(errors="replace")

    def _read(self) -> None:
        while select.select([self._terminal], [], []):
            try:
                self.output += os.read(self._terminal, 65536)
            except OSError:
                return


def processes_of(here: Path) -> list[psutil.Process]:
    """The processes that were started by a command whose files are in `here`."""
    found = []
    for process in psutil.process_iter(["environ", "cmdline", "status"]):
        texts = [*(process.info["environ"] or {}).values(), *(process.info["cmdline"] or [])]
        ours = process.pid != os.getpid() and any(str(here / "scratch") in each for each in texts)
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def run_until_agents_wait(
    here: Path, prefect_database: Path, monkeypatch: pytest.MonkeyPatch, script: str, *options: str
) -> Terminal:
    """Start three runs with two slots; returns when two agents run and the other one waits."""
    for name, value in {"SCRATCH": "scratch", "AGENT_DIRS": "agents", "STORE": "store"}.items():
        monkeypatch.setenv(f"MLEBENCH_{name}", str(here / value))
    home = make_home(here / "scratch" / "prefect", prefect_database)
    if "rootless" in options:
        roots.lend(here / "scratch")
    monkeypatch.setenv("PREFECT_HOME", str(home))
    monkeypatch.setenv("MLEBENCH_DASK_WORKERS", "1")
    write_agent(here / "agents" / "waits", script)
    terminal = Terminal(*COMMAND, *options)
    until(lambda: begun(here) == SLOTS, seconds=180, what="the first agents", may_yet=lambda: not terminal.ended())
    return terminal


def begun(here: Path) -> int:
    """How many agents have been started, as the manifest of the group tells."""
    entries = [json.loads(each.read_text()) for each in (here / "store" / "manifests" / "stopped").glob("*.json")]
    return sum(each["kind"] == "started" for each in entries)


@pytest.mark.parametrize("backend", services.BACKENDS)
def test_ctrl_c_ends_what_runs_and_starts_nothing(
    tmp_path: Path, prefect_database: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """Or SIGTERM: `kill` has the same effect. Then the same command goes on."""
    script = f"[ -e {tmp_path}/go ] || sleep 1000"
    terminal = run_until_agents_wait(tmp_path, prefect_database, monkeypatch, script, "--backend", backend)
    if backend == "rootless":
        os.kill(terminal.pid, signal.SIGTERM)
    else:
        terminal.press_ctrl_c()
    until(terminal.ended, seconds=60, what="the end of the command")

    assert terminal.code == 130, terminal.text()
    until(lambda: STOPS in terminal.text(), what="the line that says how to go on")
    assert "Traceback" not in terminal.text()
    until(lambda: not processes_of(tmp_path), seconds=30, what="the end of all that it had started")
    assert begun(tmp_path) == SLOTS, "an agent that waited for a slot was started"

    if backend == "process":
        (tmp_path / "go").touch()
        again = subprocess.run([sys.executable, "-m", "flows.cli", *COMMAND], capture_output=True, text=True)
        assert again.returncode == 0, again.stdout + again.stderr
        assert "digits: reused" in again.stdout + again.stderr


@pytest.mark.parametrize("backend", services.BACKENDS)
def test_a_second_ctrl_c_is_immediate_and_the_agents_end_nevertheless(
    tmp_path: Path, prefect_database: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    script = "trap '' TERM\nwhile true; do sleep 0.1; done"
    terminal = run_until_agents_wait(tmp_path, prefect_database, monkeypatch, script, "--backend", backend)
    if backend == "docker":
        until(lambda: len(containers_of(tmp_path)) == SLOTS, seconds=100, what="the containers")
    terminal.press_ctrl_c()
    until(lambda: "stopping" in terminal.text(), what="the answer to the first Ctrl-C")
    terminal.press_ctrl_c()
    until(terminal.ended, seconds=60, what="the end of the command")

    assert terminal.code == 130, terminal.text()
    assert "Traceback" not in terminal.text()
    until(lambda: not processes_of(tmp_path), seconds=60, what="the end of all that it had started")
    if backend == "docker":
        until(lambda: not containers_of(tmp_path), seconds=60, what="the end of the containers")
        for name in containers_of(tmp_path, "--all", role=""):
            subprocess.run(["docker", "rm", "--force", name], check=True, capture_output=True)
        ours = ["docker", "network", "ls", "--quiet", "--filter", f"label=mlebench.store=file://{tmp_path / 'store'}"]
        for name in subprocess.run(ours, capture_output=True, text=True, check=True).stdout.split():
            subprocess.run(["docker", "network", "rm", name], check=True, capture_output=True)
    assert begun(tmp_path) == SLOTS


def containers_of(here: Path, *options: str, role: str = "agent") -> list[str]:
    """Ids of the containers of a command whose store is in `here`: those of its agents, or all."""
    labels = [f"mlebench.store=file://{here / 'store'}", *([f"mlebench.role={role}"] if role else [])]
    filters = [part for label in labels for part in ("--filter", f"label={label}")]
    return subprocess.run(
        ["docker", "ps", "--quiet", *options, *filters], capture_output=True, text=True, check=True
    ).stdout.split()


STUCK = """\
import hashlib
from flows.commands.stopping import interruptible

rounds = iter([{rounds}])
with interruptible('how to go on'):
    while True:
        try:  # the signal may come before the thread is stuck
            print('in', flush=True)
            hashlib.pbkdf2_hmac('sha256', b'', b'', next(rounds, 10**9))  # without a look at signals
        except KeyboardInterrupt:
            pass
"""


@pytest.mark.parametrize("rounds", [10**9, 10**7], ids=["for minutes", "and late"])
def test_a_main_thread_that_is_stuck_is_no_obstacle(rounds: int) -> None:
    """With 10 million rounds its handler runs a few seconds late, which is no second Ctrl-C."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK.format(rounds=rounds)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert output.count("stopping: agents are being ended") == 1
    assert "mlebench: how to go on" in output


LEAVING = """\
import time
from flows.commands.stopping import interruptible

with interruptible('the agents go on', ends_agents=False):
    while True:
        try:  # the signal may come before it waits for a server that is away
            print('in', flush=True)
            time.sleep(1000)
        except KeyboardInterrupt:
            pass
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_with_a_work_pool_leaves_its_agents_alone_and_ends(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEAVING], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        process.send_signal(number)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert output.count("stopping: the agents of the work pool go on") == 1
    assert "mlebench: the agents go on" in output


def test_a_signal_that_is_told_twice_is_one_and_two_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(stopping, "_exit", said.append)
    monkeypatch.setattr(stopping, "_tell", said.append)
    monkeypatch.setattr(stopping, "_end", lambda *_, **__: None)
    monkeypatch.setattr(stopping, "_end_containers", lambda: None)  # those of the tests that come next
    signals = stopping.Signals(threading.Event(), "how to go on")
    signals.react(1)  # the watching thread was first,
    signals.handle()  # the main thread late
    assert len(said) == 1
    signals.handle()
    signals.react(2)
    assert sum("Stopped at once" in each for each in said) == 1
