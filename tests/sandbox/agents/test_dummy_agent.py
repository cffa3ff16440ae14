from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.agent_registry import load_agent
from sandbox.backend import RunSpec
from sandbox.process.backend import ProcessBackend

SAMPLE = "id,label\n1,0\n2,0\n"


def as_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__MACOSX/._sample_submission.csv", "x")
        archive.writestr("folder/sample_submission.csv", SAMPLE)


def as_7z(path: Path) -> None:
    import py7zr

    with py7zr.SevenZipFile(path, "w") as archive:
        archive.writestr(SAMPLE, "sample_submission.csv")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("sample_submission.csv", lambda path: path.write_text(SAMPLE)),
        ("deep/Sample Submission V2.csv", lambda path: path.write_text(SAMPLE)),
        ("sampleSubmission.csv.gz", lambda path: path.write_bytes(gzip.compress(SAMPLE.encode()))),
        ("sample_submission.zip", as_zip),
        ("sample_submission.csv.7z", as_7z),
    ],
)
def test_it_hands_in_the_sample_submission(
    backend: ProcessBackend, make_spec: Callable[..., RunSpec], name: str, write: Callable[[Path], object]
) -> None:
    spec = make_spec("", agent=load_agent("dummy"))
    (spec.data / "sample_submission.csv").unlink()
    (spec.data / name).parent.mkdir(exist_ok=True)
    write(spec.data / name)
    result = backend.wait(backend.start(spec))
    assert (result.status, result.message) == ("completed", None)
    assert result.submission is not None
    assert result.submission.read_text() == SAMPLE


def test_it_takes_the_one_it_is_told(backend: ProcessBackend, make_spec: Callable[..., RunSpec]) -> None:
    spec = make_spec("", agent=load_agent("dummy"))
    (spec.data / "images" / "example.csv").write_text("other")
    result = backend.wait(backend.start(replace(spec, sample_submission="images/example.csv")))
    assert result.submission is not None
    assert result.submission.read_text() == "other"


def test_without_a_sample_it_says_so(backend: ProcessBackend, make_spec: Callable[..., RunSpec]) -> None:
    spec = make_spec("", agent=load_agent("dummy"))
    (spec.data / "sample_submission.csv").unlink()
    result = backend.wait(backend.start(spec))
    assert (result.status, result.submission) == ("crashed", None)
    assert "there is no sample submission" in (result.logs / "agent.log").read_text()
