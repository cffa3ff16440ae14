"""A small Slurm of its own on this machine: a controller and one node, with the daemon that signs their messages.

    with slurm(folder) as cluster:
        job = cluster.submit("#!/bin/sh\\nhostname\\n", "--time=1")
        until(lambda: cluster.has_ended(job))

Needs the Debian packages slurmctld, slurmd, slurm-client and munge, and root.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from deployments.background import BackgroundProcesses, free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
_CORES = 4
"""The cores that the node says it has; jobs on a machine with fewer share them."""


def missing() -> str | None:
    """Why a Slurm cannot be started here; None if it can."""
    if absent := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{', '.join(absent)} not installed (Debian: slurmctld slurmd slurm-client munge)"
    return None if os.geteuid() == 0 else "Slurm's daemons need root here"


class Slurm:
    """A cluster of one node, and its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._processes = BackgroundProcesses(folder / "services")

    def submit(self, script: str, *options: str, **env: str) -> str:
        """Submit a batch job; returns its number. Its output is for `output`."""
        where = ("--parsable", "--chdir", str(self.folder), "--output", f"{self.folder}/%j.out")
        return self._run("sbatch", *where, *options, input=script, env=env).strip()

    def has_ended(self, job: str) -> bool:
        """Whether a job has ended."""
        return self._state(job) not in ("PENDING", "RUNNING", "COMPLETING")

    def result(self, job: str) -> str:
        """The state and the exit code of a job, such as COMPLETED 0:0."""
        facts = dict(each.split("=", 1) for each in self._run("scontrol", "show", "job", job).split() if "=" in each)
        return f"{facts['JobState']} {facts['ExitCode']}"

    def signal(self, job: str, name: str) -> None:
        """Send a signal to the batch script of a job alone, as `sbatch --signal=B:` has Slurm do."""
        self._run("scancel", "--batch", "--signal", name, job)

    def output(self, job: str) -> str:
        """What a job has printed."""
        path = self.folder / f"{job}.out"
        return path.read_text() if path.exists() else ""

    def start(self) -> None:
        """Start the daemons; returns once the node takes jobs."""
        key, sign = self.folder / "munge.key", self.folder / "munge.socket"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        host, ports = socket.gethostname().partition(".")[0], (free_port(), free_port())
        (self.folder / "slurm.conf").write_text(
            f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={sign}
CredType=cred/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2
KillWait=10
NodeName={host} NodeAddr=127.0.0.1 CPUs={_CORES} RealMemory=4096 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
        )
        files = [f"--{name}-file={self.folder}/munge.{name}" for name in ("log", "pid", "seed")]
        # With --force, munged does not refuse a socket below a folder that others may write to.
        munged = ["munged", "--foreground", "--force", f"--socket={sign}", f"--key-file={key}", *files]
        self._processes.start("munged", munged, self.env, sign.exists)
        self._processes.start("slurmctld", ["slurmctld", "-D", "-i"], self.env, lambda: bool(self._run("sinfo")))
        self._processes.start("slurmd", ["slurmd", "-D", "-N", host], self.env, self._is_idle)

    def stop(self) -> None:
        """End all jobs, and the daemons."""
        with contextlib.suppress(subprocess.SubprocessError):
            self._run("scancel", "--state=RUNNING")
            self._run("scancel", "--state=PENDING")
        self._processes.stop()

    def _is_idle(self) -> bool:
        return self._run("sinfo", "--noheader", "--format", "%T").strip() == "idle"

    def _state(self, job: str) -> str:
        return self._run("squeue", "--noheader", "--job", job, "--states=all", "--format", "%T").split("\n")[0]

    def _run(self, *command: str, input: str | None = None, env: dict[str, str] | None = None) -> str:
        environment = {**self.env, **(env or {})}
        environment.pop("MLEBENCH_HOST_NAME", None)  # jobs are hosts of their own
        ran = subprocess.run(command, env=environment, input=input, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise subprocess.SubprocessError(f"{command[0]}: {ran.stderr.strip()}")
        return ran.stdout


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[Slurm]:
    """Run a Slurm of its own in an empty folder during the block."""
    cluster = Slurm(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
