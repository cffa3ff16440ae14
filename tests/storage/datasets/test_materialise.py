"""From declaration to files: complete or absent, continued after a kill, the same on one process and on Dask."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import blake3
import pandas as pd
import pytest

from common.errors import UserError
from competitions import registry
from competitions.competition import Competition
from competitions.errors import BadCompetition
from competitions.preparing.declaration import Content, Pass, Preparation, json_content, table, text_content
from competitions.preparing.download import Download
from storage.datasets import archives, prepare
from storage.datasets.execute import execute
from storage.datasets.executors import Serial
from storage.datasets.job import Job
from storage.datasets.manifest import Done
from storage.datasets.materialise import materialise
from storage.datasets.plan import Task, by_pass, group_copies
from storage.datasets.reuse import difference
from storage.writers import Destination


def download_of(tmp_path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Download:
    with zipfile.ZipFile(tmp_path / "raw.zip", "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return Download.open(str(tmp_path / "raw.zip"))


def carry_out(preparation: Preparation, download: Download, out: Path) -> dict[str, Any]:
    operations = [*preparation.operations()]
    tasks = group_copies(operations, [f"{part}/{path}" for part, path, _ in operations])
    columns = execute(tasks, registry.get("digits"), download, Destination(str(out)))
    return {f"{row[0]}/{row[1]}": Done(*row) for row in zip(*columns, strict=True)}


class TestDeclaring:
    def test_a_path_is_declared_once(self) -> None:
        out = Preparation()
        out.public.text("a.txt", "1")
        with pytest.raises(BadCompetition, match="declared twice"):
            out.public.text("a.txt", "2")

    @pytest.mark.parametrize("path", ["../private/x", "/etc/passwd", "a/../b", "./a"])
    def test_paths_stay_inside(self, path: str) -> None:
        with pytest.raises(BadCompetition, match="not a plain relative path"):
            Preparation().public.text(path, "x")

    def test_an_archive_holds_a_name_once(self) -> None:
        with pytest.raises(BadCompetition, match="a name twice"):
            Preparation().public.archive("a.zip", [("x", json_content(1)), ("x", json_content(2))])


class TestTables:
    def test_slices_joined_are_the_bytes_of_one_call(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"a": range(120_001), "b": ['say "x"\r\n', None, "ü,"] * 40_000 + ["\r"], "c": 1 / 3})
        assert b"".join(table(frame).pieces()) == frame.to_csv(index=False).encode()

    def test_frames_from_an_iterator_share_one_header(self) -> None:
        frame = pd.DataFrame({"a": range(10)})
        assert (
            b"".join(table(frame.iloc[i : i + 3] for i in range(0, 10, 3)).pieces())
            == frame.to_csv(index=False).encode()
        )

    def test_an_empty_table_has_its_header(self) -> None:
        assert b"".join(table(pd.DataFrame({"a": [], "b": []})).pieces()) == b"a,b\n"

    def test_the_suffix_decides_the_format(self) -> None:
        frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", None]})
        assert b"".join(table(frame, "x.tsv").pieces()) == b"a\tb\n1.5\tx\n2.5\t\n"
        parquet = b"".join(table((frame.iloc[[0]], frame.iloc[[1]]), "x.parquet").pieces())
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(parquet)), frame)


class TestExecuting:
    def test_members_are_copied_byte_for_byte_with_hashes(self, tmp_path: Path) -> None:
        download = download_of(tmp_path, {"a.bin": b"12345"})
        out = Preparation()
        out.public.copies([("x/a.bin", download.file("a.bin")), ("y/a.bin", download.file("a.bin"))])
        rows = carry_out(out, download, tmp_path / "out")
        assert (
            (tmp_path / "out/public/x/a.bin").read_bytes() == (tmp_path / "out/public/y/a.bin").read_bytes() == b"12345"
        )
        assert rows["public/x/a.bin"].md5 == "827ccb0eea8a706c4c34a16891f84e7b"
        assert rows["public/x/a.bin"].source == "a.bin"

    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_zip_members_move_without_recompression(
        self, tmp_path: Path, method: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        download = download_of(tmp_path, {"a.bin": b"abc" * 5000, "b.bin": b""}, method)
        out = Preparation()
        out.public.archive("out.zip", {name: download.file(name) for name in ("b.bin", "a.bin")})
        monkeypatch.setattr(archives.ZipWriter, "add", None)  # would compress
        carry_out(out, download, tmp_path / "out")
        with zipfile.ZipFile(tmp_path / "out/public/out.zip") as archive:
            assert archive.testzip() is None
            assert archive.namelist() == ["b.bin", "a.bin"]
            assert archive.read("a.bin") == b"abc" * 5000
            assert archive.getinfo("a.bin").compress_type == method

    def test_archives_of_content_and_members(self, tmp_path: Path) -> None:
        download = download_of(tmp_path, {"a.bin": b"abc"})
        out = Preparation()
        entries: list[tuple[str, Any]] = [("a.bin", download.file("a.bin")), ("t.csv", table(pd.DataFrame({"x": [1]})))]
        out.public.archive("stored.zip", entries, stored=True)
        out.public.archive("seven.7z", entries)
        carry_out(out, download, tmp_path / "out")
        with zipfile.ZipFile(tmp_path / "out/public/stored.zip") as archive:
            assert {i.filename: (i.compress_type, archive.read(i)) for i in archive.infolist()} == {
                "a.bin": (zipfile.ZIP_STORED, b"abc"),
                "t.csv": (zipfile.ZIP_STORED, b"x\n1\n"),
            }

    def test_tar_bytes_do_not_depend_on_the_order_of_entries(self, tmp_path: Path) -> None:
        download = download_of(tmp_path, {"b": b"2" * 700, "a": b"1", "c": b""})
        hashes = []
        for order in ("abc", "cab"):
            out = Preparation()
            out.public.archive("out.tar.gz", {f"x/{name}": download.file(name) for name in order})
            hashes.append(carry_out(out, download, tmp_path / order)["public/out.tar.gz"].hash)
        assert hashes[0] == hashes[1]
        with tarfile.open(tmp_path / "abc/public/out.tar.gz", "r:") as archive:
            assert [(m.name, file.read()) for m in archive if (file := archive.extractfile(m))] == [
                ("x/a", b"1"), ("x/b", b"2" * 700), ("x/c", b""),
            ]  # fmt: skip

    def test_nothing_half_written_keeps_its_name(self, tmp_path: Path) -> None:
        def breaks() -> Iterator[bytes]:
            yield b"half"
            raise RuntimeError("no more")

        out = Preparation()
        out.public.content("x.csv", Content(breaks))
        with pytest.raises(RuntimeError):
            carry_out(out, download_of(tmp_path, {"a": b""}), tmp_path / "out")
        assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file()]


class TestContentsOfOnePass:
    @staticmethod
    def declared(runs: list[str], pieces: list[tuple[int, bytes]], *, fails: bool = False) -> Preparation:
        def run() -> Iterator[tuple[int, bytes]]:
            runs.append("run")
            yield from pieces
            if fails:
                raise RuntimeError("no more")

        first, second, third = Pass(run).contents(3)
        out = Preparation()
        out.public.content("a.txt", first)
        out.public.text("between.txt", "x")
        out.public.content("b.txt", second)
        out.private.content("again.txt", second)
        out.private.content("empty.txt", third)
        return out

    def test_they_are_written_in_one(self, tmp_path: Path) -> None:
        runs: list[str] = []
        out = self.declared(runs, [(0, b"one"), (1, b"1"), (0, b"two"), (3, b"of nobody"), (1, b"2" * (3 << 20))])
        rows = carry_out(out, download_of(tmp_path, {"a": b""}), tmp_path / "out")
        expected = {
            "public/a.txt": b"onetwo",
            "public/between.txt": b"x",
            "public/b.txt": b"1" + b"2" * (3 << 20),
            "private/again.txt": b"1" + b"2" * (3 << 20),
            "private/empty.txt": b"",
        }
        assert {name: (tmp_path / "out" / name).read_bytes() for name in rows} == expected
        for name, content in expected.items():
            row = rows[name]
            assert (row.bytes, row.md5) == (len(content), hashlib.md5(content).hexdigest())
            assert row.hash == blake3.blake3(content).hexdigest()
        assert runs == ["run"]

    def test_each_can_be_had_alone(self) -> None:
        out = self.declared([], [(0, b"one"), (1, b"1"), (0, b"two")])
        contents = [how for _, _, how in out.operations() if isinstance(how, Content)]
        for _ in range(2):
            assert [b"".join(content.pieces()) for content in contents] == [b"onetwo", b"x", b"1", b"1", b""]

    def test_a_proof_computes_them_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        runs: list[str] = []
        out = self.declared(runs, [(0, b"one"), (1, b"1")])
        monkeypatch.setattr(Competition, "declare", lambda *_: out)
        download_of(tmp_path, {"a": b""})
        prepare("digits", tmp_path / "raw.zip", tmp_path / "out")
        runs.clear()
        job = Job("digits", str(tmp_path / "raw.zip"), str(tmp_path / "again"))
        assert difference(job, str(tmp_path / "out")) is None
        assert runs == ["run"]
        out.public.operations["a.txt"] = text_content("another")
        assert difference(job, str(tmp_path / "out")) == "public/a.txt has other content"

    def test_they_are_together_where_the_first_is(self) -> None:
        tasks = [Task(part, path, how) for part, path, how in self.declared([], []).operations()]
        together = [[task.name for task in some] for some in by_pass(tasks)]
        assert together == [
            ["public/a.txt", "public/b.txt", "private/again.txt", "private/empty.txt"],
            ["public/between.txt"],
        ]

    def test_none_of_them_is_half_written(self, tmp_path: Path) -> None:
        out = self.declared([], [(0, b"one"), (1, b"1")], fails=True)
        with pytest.raises(RuntimeError):
            carry_out(out, download_of(tmp_path, {"a": b""}), tmp_path / "out")
        assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file()]


class Stops(Exception):
    """Stands for a kill."""


class Killed:
    """An executor that is killed after some chunks."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.chunks = 0

    def map(
        self, function: Callable[..., Any], values: Sequence[Any], *fixed: Any, heavy: bool = False
    ) -> Iterator[Any]:
        for value in values:
            if function.__name__ == "run_chunk":
                if self.chunks == self.after:
                    raise Stops
                self.chunks += 1
            yield function(value, *fixed)


class TestCommitting:
    def test_the_manifest_lists_every_file(self, digits_zip: Path, tmp_path: Path) -> None:
        manifest = prepare("digits", digits_zip, tmp_path / "out")
        found = {p.relative_to(tmp_path / "out").as_posix(): p.stat().st_size for p in (tmp_path / "out").rglob("*.*")}
        listed = dict(zip(manifest["part"] + "/" + manifest["path"], manifest["bytes"], strict=True))
        assert found.pop("public/description.md"), "beside the dataset, not part of it"
        assert {name: size for name, size in found.items() if "/" in name} == listed
        assert manifest["hash"].str.len().eq(64).all()
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out/manifest.parquet"), manifest)

    @pytest.mark.parametrize("after", [0, 1])
    def test_a_killed_run_is_not_complete_and_goes_on(self, digits_zip: Path, tmp_path: Path, after: int) -> None:
        out = tmp_path / "out"
        with pytest.raises(Stops):
            materialise(Job("digits", str(digits_zip), str(out), key="k"), executor=Killed(after))
        assert not (out / "commit.json").exists()

        rest = Killed(99)
        manifest = materialise(Job("digits", str(digits_zip), str(out), key="k"), executor=rest).to_pandas()

        assert rest.chunks == 2 - after, "finished chunks are not done again"
        assert json.loads((out / "commit.json").read_text())["files"] == len(manifest) == 5
        assert not (out / ".progress").exists()
        pd.testing.assert_frame_equal(manifest, prepare("digits", digits_zip, tmp_path / "whole"))

    def test_a_wrong_edition_removes_nothing(self, digits_zip: Path, tmp_path: Path) -> None:
        prepare("digits", digits_zip, tmp_path / "out")
        with pytest.raises(UserError, match="unknown edition 'v9'"):
            prepare("digits", digits_zip, tmp_path / "out", edition="v9")  # type: ignore[arg-type]
        assert (tmp_path / "out" / "commit.json").exists()

    def test_progress_of_other_content_is_not_used(self, digits_zip: Path, tmp_path: Path) -> None:
        with pytest.raises(Stops):
            materialise(Job("digits", str(digits_zip), str(tmp_path / "out"), key="old"), executor=Killed(1))
        rest = Killed(99)
        materialise(Job("digits", str(digits_zip), str(tmp_path / "out"), key="new"), executor=rest)
        assert rest.chunks == 2

    def test_a_complete_dataset_is_never_changed(self, digits_zip: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        manifest = materialise(Job("digits", str(digits_zip), str(out), key="k")).to_pandas()
        before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.rglob("*")}
        again = materialise(Job("digits", "the archive is gone", str(out), key="k"), executor=Killed(0)).to_pandas()
        pd.testing.assert_frame_equal(again, manifest)
        with pytest.raises(ValueError, match="has the dataset k, not other"):
            materialise(Job("digits", str(digits_zip), str(out), key="other"))
        assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.rglob("*")} == before

    def test_without_a_key_the_marker_goes_first(self, digits_zip: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        materialise(Job("digits", str(digits_zip), str(out)))
        with pytest.raises(Stops):
            materialise(Job("digits", str(digits_zip), str(out)), executor=Killed(0))
        assert not (out / "commit.json").exists()

    def test_any_file_system_holds_the_same_files(self, digits_zip: Path, tmp_path: Path) -> None:
        import fsspec

        here = materialise(Job("digits", str(digits_zip), str(tmp_path / "out")))
        there = materialise(Job("digits", str(digits_zip), f"memory://{tmp_path.name}/out"), executor=Serial())
        assert here.equals(there)
        fs = fsspec.filesystem("memory")
        assert fs.cat_file(f"/{tmp_path.name}/out/public/train.csv") == (tmp_path / "out/public/train.csv").read_bytes()
        assert fs.exists(f"/{tmp_path.name}/out/commit.json")


def test_a_prepare_that_ends_the_process_fails_alone() -> None:
    def leave(_: object) -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match=r"leave tried to end the process \(3\)"):
        next(iter(Serial().map(leave, ["job"])))
