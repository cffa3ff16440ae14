"""A real S3 server on this machine: Ceph's radosgw with one monitor, one manager and one disk in a sparse file.

    python -m tests.s3.radosgw [--folder DIR] [--bucket NAME]

starts it on a free port of 127.0.0.1 with credentials of its own, prints them as lines for `export`, and runs until it
gets SIGTERM or SIGINT, or its standard input ends. It keeps all in one folder. For tests and trials:
one copy of each object, no authentication between Ceph's own daemons. Needs the Debian packages radosgw, ceph-mon,
ceph-mgr, ceph-osd and ceph-common, and root.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.process.processes import die_with_parent

PROGRAMS = ("radosgw", "radosgw-admin", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph", "monmaptool")
_DISK_BYTES = 8 << 30
_PATIENCE = 180.0  # seconds; it takes about 30


class S3ServerError(RuntimeError):
    """The server cannot be started; the message ends with the last lines of the daemon's log."""


def missing() -> str | None:
    """Why the server cannot be started here, None if it can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: radosgw ceph-mon ceph-mgr ceph-osd ceph-common)"
    return None if os.geteuid() == 0 else "Ceph's daemons need root here"


class S3Server:
    """The daemons of one server. Use it as a context manager; `stop_gateway` and `start_gateway` make an outage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self._mon = _free_ports(2)
        self.key, self.secret = secrets.token_hex(10), secrets.token_hex(20)
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._gateway: subprocess.Popen[bytes] | None = None
        # To the kernel the parent of a process is the thread that started it: this one lives as long as the server.
        self._starter = ThreadPoolExecutor(1)

    @property
    def environment(self) -> dict[str, str]:
        """The AWS variables that lead a client to this server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def __enter__(self) -> S3Server:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        for name in ("mon", "mgr", "osd", "run"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        cluster = str(uuid.uuid4())
        self._configure(cluster)
        monmap = self.folder / "monmap"
        self._run("monmaptool", "--create", "--addv", "a", f"[v1:127.0.0.1:{self._mon}]", "--fsid", cluster, monmap)
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap)
        self._daemon("ceph-mon", "a")
        self._until("monitor", lambda: self._ceph("status"))
        self._daemon("ceph-mgr", "a")
        identity = str(uuid.uuid4())
        number = str(self._ask("osd", "create", identity)["osdid"])
        disk = self.folder / "osd" / "block"
        with disk.open("wb") as file:
            file.truncate(_DISK_BYTES)
        self._run("ceph-osd", "--mkfs", "-i", number, "--osd-uuid", identity)
        self._ask("osd", "crush", "add", f"osd.{number}", "1.0", "root=default", "host=localhost")
        self._daemon("ceph-osd", number)
        self._until("disk", lambda: self._ceph("osd", "stat")["num_up_osds"] == 1)
        self._until("user", self._make_user)
        self.start_gateway()

    def _configure(self, cluster: str) -> None:
        (self.folder / "ceph.conf").write_text(
            f"""[global]
fsid = {cluster}
monmap = {self.folder}/monmap
public network = 127.0.0.0/8
ms bind msgr2 = false
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = bluestore
osd client watch timeout = 10
osd crush update on start = false
osd class update on start = false
osd memory target = 939524096
bluestore block size = {_DISK_BYTES}
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 1
mon data avail warn = 2
mon data = {self.folder}/mon
mgr data = {self.folder}/mgr
osd data = {self.folder}/osd
run dir = {self.folder}/run
admin socket = {self.folder}/run/$name.$pid.asok
pid file =
log file = {self.folder}/$name.log
keyring = {self.folder}/keyring
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{self.port}
rgw data = {self.folder}/run
rgw thread pool size = 64
"""
        )
        (self.folder / "keyring").touch()

    def _make_user(self) -> bool:
        user = ("user", "create", "--uid=mlebench", "--display-name=mlebench")
        with contextlib.suppress(S3ServerError):  # at times it crashes on leaving, when all is done
            self._run("radosgw-admin", *user, f"--access-key={self.key}", f"--secret-key={self.secret}")
        return self.key in self._run("radosgw-admin", "user", "info", "--uid=mlebench")

    def start_gateway(self) -> None:
        """Start radosgw and wait until it answers."""
        self._gateway = self._spawn("radosgw", "-f", "-n", "client.rgw")
        self._until("gateway", self._answers)

    def stop_gateway(self) -> None:
        """Kill radosgw: to its clients the server is gone, its objects stay."""
        if self._gateway is not None:
            self._gateway.kill()
            self._gateway.wait()
            self._gateway = None

    def stop(self) -> None:
        """End all daemons, the last one started first."""
        self.stop_gateway()
        for process in reversed(self._daemons):
            process.kill()
            process.wait()
        self._daemons.clear()
        self._starter.shutdown()

    def _answers(self) -> bool:
        with contextlib.suppress(urllib.error.HTTPError):  # any HTTP answer is one
            urllib.request.urlopen(self.environment["AWS_ENDPOINT_URL"], timeout=5).close()
        return True

    def _daemon(self, program: str, name: str) -> None:
        self._daemons.append(self._spawn(program, "-f", "-i", name))

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}.out").open("ab") as out:
            return self._starter.submit(
                subprocess.Popen,
                [program, "-c", str(self.folder / "ceph.conf"), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C in the terminal is for us, who then end them in order
                preexec_fn=die_with_parent,  # a killed test run must leave no daemons behind
            ).result()

    def _run(self, program: str, *arguments: str | Path) -> str:
        command = [program, *map(str, arguments), "-c", str(self.folder / "ceph.conf")]
        result = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        if result.returncode:
            raise S3ServerError(f"{' '.join(command[:4])}: {result.stderr.strip()[-2000:]}")
        return result.stdout

    def _ceph(self, *arguments: str) -> dict[str, int]:
        text = self._run("ceph", "--connect-timeout=10", *arguments, "--format=json").strip()
        answer: dict[str, int] = json.loads(text) if text else {}
        return answer

    def _ask(self, *arguments: str) -> dict[str, int]:
        """Send the monitor a command that may be repeated: it refuses commands for a moment when a manager joins."""
        answers: list[dict[str, int]] = []

        def answered() -> bool:
            answers.append(self._ceph(*arguments))
            return True

        self._until("monitor", answered)
        return answers[0]

    def _until(self, what: str, ready: object) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            for process in [*self._daemons, *filter(None, [self._gateway])]:
                if process.poll() is not None:
                    raise S3ServerError(f"the {what} does not start: {self._last_lines()}")
            with contextlib.suppress(OSError, S3ServerError):
                if ready():  # type: ignore[operator]
                    return
            if time.monotonic() > end:
                raise S3ServerError(f"the {what} does not answer within {_PATIENCE:.0f} s: {self._last_lines()}")
            time.sleep(0.2)

    def _last_lines(self) -> str:
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-500:]}" for path in sorted(self.folder.glob("*.out"))
        )


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as open_at_once:
        probes = [open_at_once.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def main(arguments: list[str] | None = None) -> int:
    """Run a server until told to stop."""
    import argparse

    parser = argparse.ArgumentParser(description="A real S3 server on this machine (Ceph radosgw).")
    parser.add_argument("--folder", type=Path, help="where to keep its data; default: a temporary folder")
    parser.add_argument("--bucket", default="mlebench", help="a bucket to make (default: mlebench)")
    options = parser.parse_args(arguments)
    if reason := missing():
        print(f"s3_server: {reason}", file=sys.stderr)
        return 1
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    if not sys.stdin.isatty():
        threading.Thread(target=_at_the_end_of_input, args=(end,), daemon=True).start()
    with (
        tempfile.TemporaryDirectory(prefix="mlebench-s3-", ignore_cleanup_errors=True) as scratch,
        S3Server(options.folder or Path(scratch)) as server,
    ):
        os.environ.update(server.environment)
        _make_bucket(options.bucket)
        for name, value in {**server.environment, "MLEBENCH_STORE": f"s3://{options.bucket}"}.items():
            print(f"export {name}={value}", flush=True)
        end.wait()
    return 0


def _at_the_end_of_input(end: threading.Event) -> None:
    sys.stdin.read()
    end.set()


def _make_bucket(name: str) -> None:
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)


if __name__ == "__main__":
    sys.exit(main())
