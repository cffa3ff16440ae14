"""Data that are there count, wherever they came from, and a dry run says what the run does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from tasks.checksum import keeps_archive
from tests.competitions.test_registry import copy_of
from tests.kaggle_server import KaggleServer
from tests.stores import Store

LEAF, SPOOKY = "leaf-classification", "spooky-author-identification"


@pytest.fixture
def downloads(tmp_path: Path, packs: Path) -> Path:
    """A directory with the downloads of two competitions, in miniature."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in (LEAF, SPOOKY):
        shutil.copy(packs / name / "raw.zip", folder / f"{name}.zip")
    return folder


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A user without credentials for Kaggle."""
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


def prepare(store: Store, *options: str) -> int:
    # The miniatures have other checksums than the real data.
    return main(["prepare", "--skip-verification", "--store", store.root, *options])


def run(store: Store, *options: str) -> int:
    command = ["run", "-c", LEAF, "--agent", "dummy", "--run-group", "g", "--skip-verification", "--store", store.root]
    return main([*command, *options])


class TestWithoutTheSource:
    @pytest.mark.usefixtures("nobody")
    def test_what_was_prepared_from_a_directory_counts_without_it(
        self, store: Store, downloads: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert prepare(store, "-c", LEAF, "--raw-dir", str(downloads)) == 0
        for directory in ("with", "moved", "empty", "without"):
            options = [] if directory == "without" else ["--raw-dir", str(downloads)]
            if directory == "moved":
                downloads.rename(downloads.with_name("elsewhere"))
            if directory == "empty":
                downloads.mkdir()
            capfd.readouterr()
            assert prepare(store, "-c", LEAF, *options) == 0, directory
            assert "1 reused" in capfd.readouterr().out
            assert run(store, "--dry-run", *options) == 0, directory
            assert f"{LEAF}: prepared already, to be reused" in capfd.readouterr().out
            if directory in ("empty", "without"):
                main(["doctor", "-c", LEAF, "--store", store.root, *options])
                assert "not needed: the selected competitions are prepared or bundled" in capfd.readouterr().out
        assert run(store) == 0
        assert "prepared already" in capfd.readouterr().out

    @pytest.mark.usefixtures("nobody")
    def test_a_directory_that_is_gone_matters_for_what_is_not_prepared(
        self, store: Store, downloads: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert prepare(store, "-c", LEAF, "--raw-dir", str(downloads)) == 0
        capfd.readouterr()
        gone = str(tmp_path / "gone")
        assert prepare(store, "-c", LEAF, "-c", SPOOKY, "--raw-dir", gone) == 2
        assert (
            capfd.readouterr().err
            == f"mlebench: --raw-dir {gone} is not a directory, and {SPOOKY} is not prepared yet\n"
        )

    def test_credentials_download_nothing_again(
        self, store: Store, downloads: Path, kaggle: KaggleServer, packs: Path
    ) -> None:
        kaggle.archives[LEAF] = (packs / LEAF / "raw.zip").read_bytes()
        assert prepare(store, "-c", LEAF, "--raw-dir", str(downloads)) == 0
        assert prepare(store, "-c", LEAF) == 0
        assert prepare(store, "-c", LEAF, "--edition", "v2") == 0
        assert not kaggle.asked("api", "DownloadDataFiles")

    def test_an_archive_in_the_store_counts_whatever_its_source_was(
        self, store: Store, downloads: Path, kaggle: KaggleServer
    ) -> None:
        assert prepare(store, "-c", LEAF, "--raw-dir", str(downloads), "--keep-raw") == 0
        shutil.rmtree(store.local("prepared"))
        assert prepare(store, "-c", LEAF) == 0
        assert not kaggle.asked("api", "DownloadDataFiles")

    def test_a_failing_download_leaves_what_there_was(
        self, store: Store, downloads: Path, kaggle: KaggleServer, packs: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        kaggle.archives[LEAF] = (packs / LEAF / "raw.zip").read_bytes()[:-50]
        assert prepare(store, "-c", LEAF, "--raw-dir", str(downloads), "--keep-raw") == 0
        record, archive = (store.local("raw", LEAF, name) for name in ("download.json", f"{LEAF}.zip"))
        before = record.read_bytes(), archive.read_bytes()
        capfd.readouterr()
        assert prepare(store, "-c", LEAF, "--renew") == 1
        assert "is not a complete zip archive" in capfd.readouterr().out
        assert (record.read_bytes(), archive.read_bytes()) == before
        assert prepare(store, "-c", LEAF) == 0
        assert "1 reused" in capfd.readouterr().out


class TestArchives:
    @pytest.mark.parametrize("edition", ["v1", "both"])
    def test_they_go_unless_they_are_kept(self, store: Store, downloads: Path, edition: str) -> None:
        archive = store.local("raw", LEAF, f"{LEAF}.zip")
        assert prepare(store, "-c", LEAF, "--edition", edition, "--raw-dir", str(downloads)) == 0
        assert not archive.exists()
        shutil.rmtree(store.local("prepared"))
        assert prepare(store, "-c", LEAF, "--edition", edition, "--raw-dir", str(downloads), "--keep-raw") == 0
        assert archive.exists()

    def test_those_of_competitions_outside_the_catalog_stay(self, tmp_path: Path) -> None:
        copy_of(LEAF, tmp_path / "mine")
        copy_of("diabetes", tmp_path / "bundled")
        registry.extend([tmp_path])
        assert [name for name in ("mine", "bundled", LEAF, "diabetes") if keeps_archive(name)] == ["mine"]


class TestDryRun:
    @pytest.mark.parametrize("verified", [False, True])
    def test_it_knows_whether_data_are_to_be_verified(
        self, store: Store, downloads: Path, verified: bool, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert prepare(store, "-c", LEAF, "--raw-dir", str(downloads)) == 0
        capfd.readouterr()
        options = [] if verified else ["--skip-verification"]
        command = ["run", "-c", LEAF, "--agent", "dummy", "--run-group", "g", "--store", store.root, *options]
        assert main([*command, "--dry-run"]) == 0
        said = capfd.readouterr().out
        assert f"{LEAF}: prepared already, to be {'verified' if verified else 'reused'}" in said
        assert main(command) == (1 if verified else 0)

    @pytest.mark.usefixtures("nobody")
    def test_it_names_what_the_run_will_refuse(
        self, store: Store, downloads: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (downloads / f"{SPOOKY}.zip").unlink()
        command = ["run", "-c", LEAF, "-c", SPOOKY, "--agent", "dummy", "--run-group", "g", "--skip-verification"]
        command += ["--raw-dir", str(downloads), "--store", store.root]
        assert main([*command, "--dry-run"]) == 1
        lines = capfd.readouterr().out.splitlines()
        assert f"{LEAF}: to be prepared, the download is at hand" in lines
        assert f"{SPOOKY}: cannot be prepared, see below" in lines
        assert lines[-1] == f"Refused: {downloads}/{SPOOKY}.zip does not exist; put the download of {SPOOKY} there"
        assert main(command) == 1
        assert f"failed  {SPOOKY}: {downloads}/{SPOOKY}.zip does not exist" in capfd.readouterr().out


class TestRoom:
    def free(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10**12, used=0, free=count))

    def test_what_fits_is_prepared_in_order(
        self, store: Store, downloads: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        large = downloads / f"{LEAF}.zip"
        spooky = (downloads / f"{SPOOKY}.zip").stat().st_size
        self.free(monkeypatch, int(2.4 * spooky))
        with large.open("ab") as file:
            file.write(bytes(10 * spooky))
        command = ["-c", LEAF, "-c", SPOOKY, "--raw-dir", str(downloads)]
        assert prepare(store, *command) == 1
        said = capfd.readouterr().out
        assert f"done    {SPOOKY}" in said
        assert f"failed  {LEAF}: not enough space in {store.root}: {LEAF} needs about " in said
        assert "--skip-space-check" in said
        assert main(["doctor", "-c", LEAF, "--raw-dir", str(downloads), "--store", store.root, "--json"]) == 1
        disk = [line for line in capfd.readouterr().out.splitlines() if '"disk"' in line]
        assert json.loads(disk[0])["verdict"] == "fail"

    def test_archives_at_hand_are_measured_and_the_check_can_be_left_out(
        self, store: Store, downloads: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        command = ["-c", LEAF, "--raw-dir", str(downloads)]
        self.free(monkeypatch, 10_000)
        assert prepare(store, *command) == 1
        error = capfd.readouterr().err
        assert error.startswith(f"mlebench: not enough space in {store.root}: {LEAF} needs about "), error
        assert error.count("\n") == 1
        assert prepare(store, *command, "--skip-space-check") == 0
        monkeypatch.delenv("MLEBENCH_SPACE_CHECK")
        get_settings.cache_clear()

    def test_36_mb_by_the_facts_are_much_less_in_this_archive(
        self, store: Store, downloads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        size = (downloads / f"{LEAF}.zip").stat().st_size
        self.free(monkeypatch, int(2.4 * size))
        assert prepare(store, "-c", LEAF, "--raw-dir", str(downloads)) == 0

    def test_kept_archives_are_counted(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        from flows.preparing import Need, without_room

        self.free(monkeypatch, 300)
        wanted = [Need(name, 50, 40) for name in "abcd"]
        assert list(without_room(store, wanted)) == []
        assert list(without_room(store, wanted, keep_raw=True)) == ["d"]
        assert list(without_room(store, [Need("a", 200, 200), *wanted[1:]])) == ["a"]
