"""What a process finds out about its Slurm job; tests/deployments/test_slurm.py asks a real Slurm."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from common import slurm


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Environment of job 7; returns the file that squeue prints."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program, answer = tmp_path / "squeue", tmp_path / "answer"
    program.write_text(f'#!/bin/sh\n[ "$3" = 7 ] && cat {answer}\n')
    program.chmod(0o755)
    return answer


def test_outside_of_a_job_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "4")
    assert slurm.job() is slurm.cpus() is slurm.memory_bytes() is slurm.seconds_left() is None


def test_newer_versions_tell_the_end_in_the_environment(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 600))
    assert slurm.seconds_left() == pytest.approx(600, abs=5)
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1700000000")
    assert slurm.seconds_left() is None, "a shell has outlived its job"


def test_older_versions_tell_the_end_in_the_queue(job: Path) -> None:
    job.write_text(f"{datetime.now() + timedelta(minutes=10):%Y-%m-%dT%H:%M:%S}\n")
    assert slurm.seconds_left() == pytest.approx(600, abs=5)


@pytest.mark.parametrize("answer", ["N/A\n", "NONE\n", ""])
def test_a_job_may_have_no_end(job: Path, answer: str) -> None:
    job.write_text(answer)
    assert slurm.seconds_left() is None


def test_there_may_be_no_squeue(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert slurm.seconds_left() is None


def test_a_job_has_a_part_of_its_machine(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert slurm.memory_bytes() is None
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "8")
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "1024")
    assert (slurm.cpus(), slurm.memory_bytes()) == (8, 8 << 30)
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "65536")
    assert slurm.memory_bytes() == 64 << 30


def test_a_shell_may_outlive_its_job(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_text("RUNNING\n")
    slurm.forget_ended()
    assert slurm.job() == "7"
    for answer in ("", None):
        job.write_text(answer or "")
        if answer is None:
            (job.parent / "squeue").write_text("#!/bin/sh\necho 'error: Invalid job id specified' >&2; exit 1\n")
        slurm.forget_ended()
        assert slurm.job() is None
        monkeypatch.setenv("SLURM_JOB_ID", "7")
    (job.parent / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    slurm.forget_ended()
    assert slurm.job() == "7"
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1700000000")
    slurm.forget_ended()
    assert slurm.job() is None
