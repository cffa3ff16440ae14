"""Datasets below their keys: one is current, readers keep the one that they found, and nobody changes it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.errors import UserError
from competitions.competition import Competition
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.current import find, make_current, read_current, require
from storage.datasets.job import Job, Recipe
from storage.datasets.local_copy import local_copy
from storage.datasets.materialise import materialise
from storage.datasets.uses import is_used, uses_url
from storage.datasets.verify import ChecksumMismatch, check_dataset
from storage.upkeep import gc
from tests.stores import Store, put_dataset

ROOT = Path(__file__).parents[3]
DIGITS = Dataset("v1", "digits")


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of modification of every file below a folder."""
    return {str(p): (p.stat().st_ino, p.stat().st_mtime_ns) for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", limit=10**9)


class TestReaders:
    def test_they_keep_the_dataset_that_they_found(self, store: Store, cache: Cache) -> None:
        first = put_dataset(store, "digits", key="one")
        with local_copy(store, DIGITS, "public", cache) as folder:
            before = state_of(folder / "public")
            second = put_dataset(store, "digits", key="two")
            assert state_of(folder / "public") == before != {}
            with local_copy(store, DIGITS, "public", cache) as other:
                assert (folder.name, other.name) == ("one", "two")
        assert (find(store, DIGITS), find(store, first)) == (second, first), "the first is still there under its key"

    def test_what_is_not_committed_is_not_found(self, store: Store) -> None:
        dataset = put_dataset(store, "digits")
        store.remove(f"{store.prepared(dataset)}/commit.json")
        assert find(store, DIGITS) is None
        with pytest.raises(UserError, match="does not have the dataset k of digits"):
            require(store, dataset)

    def test_a_dataset_that_was_committed_but_not_made_current_is_not_current(self, store: Store) -> None:
        first = put_dataset(store, "digits", key="one")
        materialise(Job("digits", store.raw("digits"), store.prepared(Dataset("v1", "digits", "two")), key="two"))
        assert find(store, DIGITS) == first

    def test_a_store_that_cannot_be_written_is_read(
        self, store: Store, cache: Cache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put_dataset(store, "digits")

        def refuse(*_: object) -> None:
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr("storage.uses.use", refuse)
        with local_copy(store, DIGITS, "public", cache) as folder:
            assert (folder / "public" / "train.csv").is_file()


class TestDamaged:
    def test_it_is_mended_under_its_key_and_who_reads_it_is_not_disturbed(
        self, store: Store, digits: Competition, cache: Cache
    ) -> None:
        dataset = put_dataset(store, "digits")
        folder = store.local("prepared", "v1", "digits", "k")
        before = {path.relative_to(folder): path.read_bytes() for path in (folder / "public").rglob("*.*")}
        with local_copy(store, DIGITS, "public", cache) as read:
            (folder / "private" / "test.csv").unlink()
            with pytest.raises(ChecksumMismatch, match=r"private/test\.csv missing or of the wrong size; run prepare"):
                check_dataset(store, dataset, digits)
            assert find(store, DIGITS) is None, "nobody starts to use it"
            open_now = (read / "public" / "train.csv").open("rb")

            def look() -> None:
                assert {path: (folder / path).read_bytes() for path in before} == before

            job = Job("digits", store.raw("digits"), store.prepared(dataset), key="k")
            materialise(job, on_progress=lambda _: look())
            with open_now:
                assert open_now.read() == before[Path("public/train.csv")]
        assert find(store, DIGITS) == dataset
        assert check_dataset(store, dataset, digits) == 3


class TestUses:
    def test_a_dataset_in_use_is_kept_and_it_is_said(self, store: Store, cache: Cache) -> None:
        first = put_dataset(store, "digits", key="one")
        with local_copy(store, first, "public", cache):
            put_dataset(store, "digits", key="two")
            (kept,) = gc.old_datasets(store, gc.everything(store), None, dry=False)
            assert (kept.state, kept.dataset) == ("in use", first)
            assert {each.state for each in gc.edition_datasets(store, gc.everything(store), "v1", dry=True)} == {
                "in use", "complete",
            }  # fmt: skip
        assert not is_used(store, first)
        assert not store.exists(uses_url(store, first)), "nothing of the use is left"
        assert [each.state for each in gc.old_datasets(store, gc.everything(store), None, dry=False)] == ["old"]
        assert sorted(path.name for path in store.local("prepared", "v1", "digits").iterdir()) == [
            "current.json",
            "two",
        ]

    def test_an_agent_outlives_its_orchestrator_and_so_does_the_use(self, store: Store) -> None:
        dataset = put_dataset(store, "digits")
        code = (
            "import sys, time\nfrom storage.dataset import Dataset\nfrom storage.datasets.uses import use\n"
            "from storage.store import Store\nfrom storage.uses import Continuing\nfrom pathlib import Path\n"
            "run = Continuing(Path.cwd(), float(sys.argv[2]))\n"
            "with use(Store(sys.argv[1]), Dataset('v1', 'digits'), run):\n"
            "    print('uses', flush=True)\n    time.sleep(600)\n"
        )
        for seconds, lives in ((3600.0, True), (0.001, False)):
            process = subprocess.Popen(
                [sys.executable, "-c", code, store.root, str(seconds)], cwd=ROOT, stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            assert process.stdout.readline() == b"uses\n"
            assert is_used(store, dataset), "its process is alive"
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            assert is_used(store, dataset) == lives
            shutil.rmtree(store.local(store.relative(uses_url(store, dataset))), ignore_errors=True)

    def test_one_of_another_machine_lives_for_the_time_it_asked_for(self, store: Store) -> None:
        dataset = put_dataset(store, "digits")
        for until, lives in ((time.time() + 60, True), (time.time() - 1, False)):
            store.write_json(
                f"{uses_url(store, dataset)}/1.json", {"boot": "another", "workdir": "/there", "until": until}
            )
            assert is_used(store, dataset) == lives

    def test_who_starts_to_use_it_while_it_is_removed_is_told_or_has_it(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from storage.datasets.uses import remove_dataset

        first = put_dataset(store, "digits", key="one")
        put_dataset(store, "digits", key="two")
        found, users = gc.everything(store), []
        remove = Store.remove

        def and_then(own: Store, url: str) -> None:
            remove(own, url)
            if url.endswith("one/commit.json"):  # between the marker and the files
                users.append(1)
                store.write_json(f"{store.datasets(first)}/one.uses/1.json", {"until": 1e12, "workdir": "/"})
                with pytest.raises(UserError, match="does not have the dataset one of digits"):
                    require(store, first)

        monkeypatch.setattr(Store, "remove", and_then)
        assert remove_dataset(store, first) is False
        assert users
        assert require(store, first) == first, "it is complete as before"
        monkeypatch.undo()
        assert [each.state for each in gc.old_datasets(store, found, None, dry=False)] == ["in use"]


class TestGarbageCollectionLooksAgain:
    def test_a_dataset_completed_since_it_was_listed_stays(self, store: Store) -> None:
        dataset = put_dataset(store, "digits")
        marker = store.local("prepared", "v1", "digits", "k", "commit.json")
        content = marker.read_bytes()
        marker.unlink()
        found = gc.everything(store)
        assert [each.state for each in found if each.dataset] == ["incomplete"]
        marker.write_bytes(content)
        assert [each for each in gc.orphans(store, found, dry=False) if each.dataset] == []
        assert find(store, DIGITS) == dataset

    def test_a_dataset_made_current_again_since_it_was_listed_stays(self, store: Store) -> None:
        first = put_dataset(store, "digits", key="one")
        put_dataset(store, "digits", key="two")
        found = gc.everything(store)
        make_current(store, first)
        assert list(gc.old_datasets(store, found, None, dry=False)) == []
        assert find(store, first) is not None

    def test_that_other_code_makes_the_same_dataset_stays_known(self, store: Store) -> None:
        """The runs of the dataset name its key: made again by the new code, it has the same one."""
        dataset, recipe = put_dataset(store, "digits"), Recipe("v1", "hash of the download", "other code", {})
        make_current(store, dataset, recipe)
        assert [each.state for each in gc.edition_datasets(store, gc.everything(store), "v1", dry=False)] == [
            "complete"
        ]
        assert find(store, DIGITS) is None
        assert read_current(store, DIGITS).key_of(recipe) == "k"
        assert not store.local("prepared", "v1", "digits", "k").exists()


def test_removing_by_hand_is_noticed(store: Store) -> None:
    dataset = put_dataset(store, "digits")
    shutil.rmtree(store.local("prepared", "v1", "digits", "k"))
    assert find(store, DIGITS) is None
    assert put_dataset(store, "digits") == dataset == find(store, DIGITS)
