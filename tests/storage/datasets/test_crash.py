"""What goes wrong ends cleanly, a rerun completes and keeps what was done, and half a dataset never counts."""

from __future__ import annotations

import io
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from common.errors import UserError
from competitions import registry
from competitions.errors import DownloadError
from storage.datasets.cluster import ClusterError, DaskExecutor, cluster, connect
from storage.datasets.commit import MARKER
from storage.datasets.declare import declare
from storage.datasets.job import Job
from storage.datasets.materialise import Progress, materialise, run_chunk
from storage.lease import LeaseLost
from storage.remote import describe_error, is_transient
from storage.sources.acquire import acquire
from storage.sources.local import Local
from storage.store import Store
from tests.disks import SmallDisk
from tests.storage.datasets.dask_processes import DaskProcesses

ROOT = Path(__file__).parents[3]
PARTS = ("public", "private")
FILES = 500


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A competition of many files in several chunks: copies, and an archive whose members are taken over."""
    folder = tmp_path_factory.mktemp("own") / "pictures"
    folder.mkdir()
    facts = (registry.get("digits").folder / "competition.yaml").read_text()
    (folder / "competition.yaml").write_text(facts.replace("id: digits", "id: pictures"))
    for name in ("description.md", "grade.py"):
        (folder / name).write_bytes((registry.get("digits").folder / name).read_bytes())
    (folder / "prepare.py").write_text(
        """from competitions.preparing.declaration import Preparation
def prepare(raw, edition, params):
    out = Preparation()
    names = raw.names("images")
    out.public.copies((name, raw.file(name)) for name in names)
    out.public.archive("images.zip", {name: raw.file(name) for name in names[:40]})
    out.public.text("a.txt", "computed")
    return out
"""
    )
    return folder


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its download: 150 MB in 500 members, every other one compressed."""
    path = tmp_path_factory.mktemp("raw") / "pictures.zip"
    generator = random.Random(0)
    with zipfile.ZipFile(path, "w") as out:
        for number in range(FILES):
            method = zipfile.ZIP_DEFLATED if number % 2 else zipfile.ZIP_STORED
            content = generator.randbytes(1000) * 300
            out.writestr(zipfile.ZipInfo(f"images/{number:04d}.bin"), content, compress_type=method)
    return path


@pytest.fixture(scope="module")
def expected(pictures: Path, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    job = Job("pictures", str(archive), str(tmp_path_factory.mktemp("whole")), folder=str(pictures))
    return materialise(job).to_pandas()


def job_of(pictures: Path, archive: Path, out: Path) -> Job:
    return Job("pictures", str(archive), str(out), folder=str(pictures), key="k")


class Seen:
    """What was told while preparing: how much was there at the beginning, and a hook at the first progress after it."""

    def __init__(self, out: Path) -> None:
        self.out, self.steps = out, list[Progress]()

    def __call__(self, progress: Progress) -> None:
        assert not (self.out / MARKER).exists(), "not complete before it is"
        self.steps.append(progress)

    @property
    def kept(self) -> int:
        """Files that were there before anything was done."""
        return self.steps[0].files


def assert_nothing_else(out: Path, manifest: pd.DataFrame) -> None:
    """What a killed process left half written is gone."""
    found = {path.relative_to(out).as_posix() for part in PARTS for path in (out / part).rglob("*") if path.is_file()}
    assert found == {*(manifest["part"] + "/" + manifest["path"]), "public/description.md"}
    assert not (out / ".progress").exists()


class TestWorkers:
    def test_a_killed_worker_costs_its_chunk_only(
        self, pictures: Path, archive: Path, expected: pd.DataFrame, tmp_path: Path
    ) -> None:
        out, killed = tmp_path / "out", list[int]()
        with cluster(workers=2) as address:
            client = connect(address)
            seen = Seen(out)

            def kill_one(progress: Progress) -> None:
                seen(progress)
                if not killed:
                    pids = client.run(os.getpid)
                    killed.append(next(iter(pids.values())))
                    os.kill(killed[0], signal.SIGKILL)

            manifest = materialise(
                job_of(pictures, archive, out),
                executor=DaskExecutor(address),
                on_progress=kill_one,
            ).to_pandas()
            client.close()
        assert killed
        pd.testing.assert_frame_equal(manifest, expected)
        assert_nothing_else(out, manifest)

    def test_a_killed_scheduler_is_one_line_and_the_rerun_keeps_what_was_done(
        self, pictures: Path, archive: Path, expected: pd.DataFrame, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        seen = Seen(out)
        with DaskProcesses(tmp_path, 1) as (address, processes):

            def kill_scheduler(progress: Progress) -> None:
                seen(progress)
                if len(seen.steps) == 2:  # one chunk is done
                    processes[0].kill()

            with pytest.raises(ClusterError, match="scheduler") as caught:
                materialise(
                    job_of(pictures, archive, out),
                    executor=DaskExecutor(address),
                    on_progress=kill_scheduler,
                )
        assert "\n" not in str(caught.value)
        assert not (out / MARKER).exists()

        again = Seen(out)
        manifest = materialise(job_of(pictures, archive, out), on_progress=again).to_pandas()
        assert again.kept >= seen.steps[1].files > 1, "chunks that were done are kept"
        pd.testing.assert_frame_equal(manifest, expected)
        assert_nothing_else(out, manifest)


def test_a_process_killed_within_a_file_leaves_nothing_of_it(pictures: Path, archive: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "dies-once" / "pictures", tmp_path / "out"
    shutil.copytree(pictures, folder)
    (folder / "prepare.py").write_text(
        f"""import os, signal
from competitions.preparing.declaration import Preparation
def pieces():
    yield "x" * (3 << 20)
    if not os.path.exists({str(tmp_path / "died")!r}):
        open({str(tmp_path / "died")!r}, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
def prepare(raw, edition, params):
    out = Preparation()
    out.public.text("a.txt", pieces())
    return out
"""
    )
    code = "from storage.datasets.materialise import materialise as m"
    code += "; from storage.datasets.job import Job; import sys"
    code += "; m(Job('pictures', sys.argv[1], sys.argv[2], folder=sys.argv[3], key='k'))"
    command = [sys.executable, "-c", code, str(archive), str(out), str(folder)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert [path for path in (out / "public").rglob("*") if path.is_file()] == []
    manifest = materialise(Job("pictures", str(archive), str(out), folder=str(folder), key="k")).to_pandas()
    assert manifest["bytes"].max() == 3 << 20
    assert_nothing_else(out, manifest)


class TestDownloads:
    def test_a_truncated_archive_is_found_at_once(self, digits_zip: Path, tmp_path: Path) -> None:
        (tmp_path / "downloads").mkdir()
        cut = tmp_path / "downloads" / "digits.zip"
        store = Store(str(tmp_path / "store"))
        whole = digits_zip.read_bytes()
        for size in (0, 1, len(whole) // 2, len(whole) - 1):
            cut.write_bytes(whole[:size])
            with pytest.raises(DownloadError, match="download it again"):
                acquire(store, registry.get("digits"), Local(cut.parent))
            assert not store.exists(store.raw("digits"))
        cut.write_bytes(whole)
        assert acquire(store, registry.get("digits"), Local(cut.parent))["bytes"] == len(whole)

    @pytest.mark.parametrize("seed", range(4))
    def test_a_flipped_bit_never_reaches_a_dataset(self, pictures: Path, tmp_path: Path, seed: int) -> None:
        generator = random.Random(seed)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as out:
            for number in range(6):
                info = zipfile.ZipInfo(f"images/{number}.bin")
                method = zipfile.ZIP_DEFLATED if number % 2 else zipfile.ZIP_STORED
                out.writestr(info, generator.randbytes(100) * 4, compress_type=method)
        whole = buffer.getvalue()
        raw = tmp_path / "pictures.zip"
        raw.write_bytes(whole)
        right = materialise(Job("pictures", str(raw), str(tmp_path / "right"), folder=str(pictures))).to_pandas()
        directory, found = whole.index(b"PK\1\2"), 0
        for _ in range(60):
            position = generator.randrange(len(whole))
            flipped = bytearray(whole)
            flipped[position] ^= 1 << generator.randrange(8)
            raw.write_bytes(flipped)
            out_of_flipped = tmp_path / "flipped"
            try:
                manifest = materialise(Job("pictures", str(raw), str(out_of_flipped), folder=str(pictures))).to_pandas()
            except (DownloadError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
                found += 1
                assert not (out_of_flipped / MARKER).exists()
                continue
            # A time, which is no content; or a name in the directory, which has no checksum: then the file is missing,
            # which only the MD5 of the whole archive can tell (`acquire` compares it). No file has other bytes.
            copies = manifest[manifest["path"].str.startswith("images/")].merge(right, on="path")
            assert (copies["hash_x"] == copies["hash_y"]).all()
            if position < directory:
                pd.testing.assert_frame_equal(manifest, right)
        assert found > 30

    def test_a_large_member_that_is_taken_over_is_checked_too(self, pictures: Path, tmp_path: Path) -> None:
        raw = tmp_path / "pictures.zip"
        content = random.Random(0).randbytes(3 << 20)
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(raw, "w", method) as out:
                out.writestr("images/large.bin", content)
            materialise(Job("pictures", str(raw), str(tmp_path / "right"), folder=str(pictures)))
            with zipfile.ZipFile(tmp_path / "right/public/images.zip") as taken:
                assert taken.read("images/large.bin") == content
            flipped = bytearray(raw.read_bytes())
            flipped[2 << 20] ^= 1
            raw.write_bytes(flipped)
            with pytest.raises((DownloadError, zipfile.BadZipFile)):
                materialise(Job("pictures", str(raw), str(tmp_path / "flipped"), folder=str(pictures)))
            assert not (tmp_path / "flipped/public/images.zip").exists()


def test_a_full_disk_is_said_and_the_rerun_goes_on(
    pictures: Path, archive: Path, expected: pd.DataFrame, small_disk: SmallDisk
) -> None:
    small_disk.resize(40)
    out = small_disk.path / "out"
    with pytest.raises(OSError, match="No space left") as caught:
        materialise(job_of(pictures, archive, out))
    assert not is_transient(caught.value), "trying again would not make room"
    assert "make room" in describe_error(caught.value)
    assert not (out / MARKER).exists()
    small_disk.resize(400)

    again = Seen(out)
    manifest = materialise(job_of(pictures, archive, out), on_progress=again).to_pandas()
    pd.testing.assert_frame_equal(manifest, expected)
    assert_nothing_else(out, manifest)


def test_files_of_another_version_do_not_stay(pictures: Path, digits_zip: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    materialise(Job("digits", str(digits_zip), str(out)))
    (out / "public" / "left-over.csv").write_text("answers of an older split")
    materialise(Job("digits", str(digits_zip), str(out)))
    assert not (out / "public" / "left-over.csv").exists()


def test_the_worker_of_a_killed_client_leaves_a_complete_dataset_alone(
    pictures: Path, archive: Path, tmp_path: Path
) -> None:
    """Its chunks may still run, or wait, on a scheduler elsewhere when another client finishes the dataset."""
    job = job_of(pictures, archive, tmp_path / "out")
    declare(job)
    materialise(job)
    before = tree_of(tmp_path / "out")
    run_chunk(0, job)
    assert tree_of(tmp_path / "out") == before


def test_the_worker_of_a_killed_client_writes_into_no_other_dataset(
    pictures: Path, archive: Path, tmp_path: Path
) -> None:
    old, new = (replace(job_of(pictures, archive, tmp_path / key), key=key) for key in ("old", "new"))
    declare(old)
    materialise(new)
    before = tree_of(tmp_path / "new")
    run_chunk(0, old)
    assert tree_of(tmp_path / "new") == before
    with pytest.raises(ValueError, match="has the dataset new, not old"):
        run_chunk(0, replace(old, out=new.out))
    assert tree_of(tmp_path / "new") == before


def tree_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of modification of every file and folder."""
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


def test_who_lost_the_lease_does_not_publish(digits_zip: Path, tmp_path: Path) -> None:
    def lost() -> None:
        raise LeaseLost("another process took over")

    with pytest.raises(UserError, match="took over"):
        materialise(Job("digits", str(digits_zip), str(tmp_path / "out"), key="k"), before_commit=lost)
    assert not (tmp_path / "out" / MARKER).exists()
