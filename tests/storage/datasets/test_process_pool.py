"""Preparing with several processes makes the files, and raises the errors, of one; none of them is left behind."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import psutil
import pytest

from common.causes import explain
from competitions import registry
from competitions.errors import DownloadError
from storage import datasets
from storage.datasets import executors, plan, prepare
from storage.datasets.executors import ProcessPool

PREPARE = """from competitions.preparing.declaration import Preparation
def prepare(raw, edition, params):
    out = Preparation()
    out.public.copies((name, raw.file(name)) for name in raw.names())
    out.public.archive("images.zip", {name: raw.file(name) for name in raw.names()[::2]})
    out.private.derived("size.txt", size)
    out.public.text("a.txt", "computed")
    return out
def size(raw):
    yield b"%d" % len(raw.names())
"""
SCRIPT = """import sys
from pathlib import Path
from storage import datasets
from storage.datasets import plan
datasets.LARGE_DOWNLOAD_BYTES, plan.MAX_CHUNK_FILES = 0, 10
datasets.prepare("pictures", Path(sys.argv[1]), Path(sys.argv[2]), folder=Path(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "pictures"
    folder.mkdir()
    digits = registry.get("digits").folder
    facts = (digits / "competition.yaml").read_text().replace("id: digits", f"id: {folder.name}")
    (folder / "competition.yaml").write_text(facts)
    for name in ("description.md", "grade.py"):
        (folder / name).write_bytes((digits / name).read_bytes())
    (folder / "prepare.py").write_text(PREPARE)
    return folder


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = random.Random(0)
    path = tmp_path_factory.mktemp("raw") / "pictures.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for number in range(60):
            out.writestr(f"{number:03d}.bin", generator.randbytes(100) * 20)
    return path


@pytest.fixture
def several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "LARGE_DOWNLOAD_BYTES", 0)
    monkeypatch.setattr(plan, "MAX_CHUNK_FILES", 10)
    monkeypatch.setattr(executors.os, "cpu_count", lambda: 2)


def contents(out: Path) -> dict[str, bytes]:
    parts = [path for part in ("public", "private") for path in (out / part).rglob("*") if path.is_file()]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in parts}


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.usefixtures("several_processes")
def test_the_files_are_those_of_one_process(
    pictures: Path, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()
    together = prepare("pictures", raw, tmp_path / "together", folder=pictures)
    assert children() <= before | _trackers(), "no worker is left"
    monkeypatch.setattr(datasets, "LARGE_DOWNLOAD_BYTES", 1 << 40)
    alone = prepare("pictures", raw, tmp_path / "alone", folder=pictures)
    assert together.equals(alone)
    assert contents(tmp_path / "together") == contents(tmp_path / "alone")


def _trackers() -> set[int]:
    """Processes of joblib that remove what a killed process leaves; they end with this one."""
    return {child.pid for child in psutil.Process().children() if "resource_tracker" in " ".join(child.cmdline())}


@pytest.mark.usefixtures("several_processes")
def test_damage_that_a_process_finds_is_raised_here(pictures: Path, raw: Path, tmp_path: Path) -> None:
    damaged = bytearray(raw.read_bytes())
    damaged[damaged.index(b"030.bin") + 40] ^= 1
    (tmp_path / "pictures.zip").write_bytes(damaged)
    with pytest.raises(DownloadError, match=r"030.bin"):
        prepare("pictures", tmp_path / "pictures.zip", tmp_path / "out", folder=pictures)
    assert not (tmp_path / "out/commit.json").exists()


@pytest.mark.usefixtures("several_processes")
def test_an_error_in_a_process_has_the_line_of_prepare(pictures: Path, raw: Path, tmp_path: Path) -> None:
    broken = tmp_path / "pictures"
    shutil.copytree(pictures, broken)
    text = PREPARE.replace('    yield b"%d" % len(raw.names())', "    yield raw['nothing']")
    (broken / "prepare.py").write_text(text)
    with pytest.raises(TypeError) as raised:
        prepare("pictures", raw, tmp_path / "out", folder=broken)
    assert explain(raised.value).endswith(f"(pictures/prepare.py, line {len(text.splitlines())})")


def test_a_script_needs_no_guard(pictures: Path, raw: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(raw), str(tmp_path / "out"), str(pictures)]
    env = {**os.environ, "PYTHONPATH": str(Path(datasets.__file__).parents[2])}
    subprocess.run(command, check=True, env=env, timeout=120)
    assert (tmp_path / "out/commit.json").exists()


def test_a_single_value_and_heavy_functions_stay_in_this_process() -> None:
    assert list(ProcessPool().map(_pid, [1])) == list(ProcessPool().map(_pid, [1], heavy=True)) == [os.getpid()]
    assert len(set(ProcessPool().map(_pid, [1, 2], heavy=True))) == 1
    assert os.getpid() not in ProcessPool().map(_pid, [1, 2])


def _pid(_value: int) -> int:
    return os.getpid()
