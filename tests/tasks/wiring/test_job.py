"""The end of a job is told by a file that no other user of the machine can make first, replace or redirect."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.wiring import job


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The file of a job that has begun."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(job.FILE_VARIABLE, "")
    handlers = {number: signal.getsignal(number) for number in job.SIGNALS}
    job.begin(3600)
    yield Path(os.environ[job.FILE_VARIABLE])
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_the_file_is_in_a_folder_of_its_own(file: Path, tmp_path: Path) -> None:
    assert file.parent.parent == tmp_path
    assert (file.parent.stat().st_mode & 0o777, file.parent.stat().st_uid) == (0o700, os.getuid())
    assert not job.is_leaving()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert job.is_leaving()
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.usefixtures("file")
def test_a_signal_raises_nothing_if_the_file_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(job.FILE_VARIABLE, str(tmp_path / "missing" / "file"))
    os.kill(os.getpid(), signal.SIGUSR2)
    assert "the end of the job cannot be written" in capfd.readouterr().err
