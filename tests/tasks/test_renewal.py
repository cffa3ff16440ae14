"""Datasets and the code that makes them: what changes bytes makes a new dataset, what does not writes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from common.settings import get_settings
from competitions import fingerprints
from storage.dataset import Dataset
from storage.datasets import current
from storage.datasets.prepared import committed_key, made_by_other_code
from storage.datasets.verify import is_verified
from storage.upkeep import gc
from tasks.checksum import verify_checksums
from tasks.download import download_archive
from tasks.split import split_dataset
from tasks.wiring.context import already_prepared, open_store
from tests.competitions.test_registry import copy_of
from tests.stores import Store

OWN = Dataset("v1", "own")
PREPARE = """
import hashlib

from competitions.preparing.declaration import Preparation
from competitions.preparing.holdout import hold_out

from .names import TABLE

def prepare(raw, edition, params):
    out = Preparation()
    train, test = hold_out(raw.read_csv(TABLE), 0.5)
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.copies({f"images/{n}.bin": raw.file(f"{n}.bin") for n in range(3)})
    out.public.archive("images.zip", {f"{n}.bin": raw.file(f"{n}.bin") for n in range(3)})
    out.private.derived("sizes.txt", sizes, "bytes")
    return out

def sizes(download, unit):
    yield f"{download.file('0.bin').size} {unit}".encode()
"""
BUNDLE = """
import io, zipfile

def bundle():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("all.csv"), "id,x\\n" + "".join(f"{n},{n * n}\\n" for n in range(20)))
        for n in range(3):
            archive.writestr(zipfile.ZipInfo(f"{n}.bin"), bytes([n]) * 1000)
    return buffer.getvalue()
"""


class Own:
    """A user's competition folder, a store, and preparing in plain calls."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store, self.told = folder, store, list[str]()

    def write(self, name: str, text: str) -> None:
        """Change a file of the folder, and forget what this process has imported, as a new process would have."""
        (self.folder / name).write_text(text)
        for module in [module for module in sys.modules if module.startswith("competition_own_")]:
            del sys.modules[module]

    def prepare(self, renew: bool = False) -> str:
        """What the flow does; returns the key of the current dataset."""
        open_store(self.store.root)
        if not already_prepared(self.store, OWN, renew=renew):
            archive = download_archive("own", self.store.root, renew=renew)
            key = split_dataset("own", self.store.root, "v1", archive, tell=self.told.append)
            verify_checksums("own", self.store.root, "v1", key, keep_raw=True)
        return str(committed_key(self.store, OWN))

    def files(self) -> dict[str, tuple[int, int]]:
        """Inode and time of modification of every file below the datasets, but `current.json`."""
        top = self.store.local("prepared")
        return {
            str(path): (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in top.rglob("*")
            if path.is_file() and path.name != current.CURRENT
        }


@pytest.fixture
def own(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Own:
    """The competition in a folder of the user's, prepared, with its archive kept."""
    folder = copy_of("diabetes", tmp_path / "competitions" / "own")
    facts = (folder / "competition.yaml").read_text().split("checksums:")[0]
    (folder / "competition.yaml").write_text(facts)
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(folder.parent))
    # This process stands for several ones, each of which would import the code anew.
    monkeypatch.setattr("tasks.split._code", lambda _: "")
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    get_settings.cache_clear()
    found = Own(folder, store)
    for name, text in (("names.py", "TABLE = 'all.csv'\n"), ("prepare.py", PREPARE), ("bundle.py", BUNDLE)):
        found.write(name, text)
    found.prepare()
    return found


def test_a_refactoring_writes_nothing_and_the_key_stays(own: Own) -> None:
    key, before = own.prepare(), own.files()
    own.write("names.py", "# The table of the download.\nTABLE = 'all.csv'\n")
    assert made_by_other_code(own.store) == [Dataset("v1", "own", key)]
    assert own.prepare() == key
    assert own.told == ["own (v1): the current code makes the same files; the dataset is kept"]
    assert own.files() == before
    assert made_by_other_code(own.store) == []
    assert own.prepare() == key
    assert len(own.told) == 1, "it is known now"
    own.write("names.py", "TABLE = 'all.csv'\n")
    assert already_prepared(own.store, OWN), "the code before makes it, too"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("0.5", "0.25"), r"public/train.csv has other content"),
        (("'bytes'", "'bytes'"), ""),
        (("range(3)", "range(2)"), r"public/images/2.bin is in one of them only"),
        (('bin": raw.file(f"{n}', 'bin": raw.file(f"{2 - n}'), "public/images/0.bin comes from 2.bin"),
        (('sizes, "bytes"', 'sizes, "B"'), r"private/sizes.txt has other content"),
        (('"images.zip", {', '"images.zip", stored=True, entries={'), r"public/images.zip has other content"),
    ],
)  # fmt: skip
def test_another_result_has_another_key(own: Own, change: tuple[str, str], told: str) -> None:
    key, before = own.prepare(), own.files()
    own.write("prepare.py", PREPARE.replace(*change))
    new = own.prepare()
    assert (new != key) == bool(told)
    if told:
        assert own.told == [f"own (v1): the current code makes other files ({told}); prepared under a new key"]
    assert {path: now for path, now in own.files().items() if path in before} == before, "readers have the old one"
    own.write("prepare.py", PREPARE)
    known = own.files()
    assert own.prepare() == key, "the old dataset is current again"
    assert own.files() == known, "without being made again"


def test_a_shared_module_and_a_library_count(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    key, before = own.prepare(), own.files()
    read = fingerprints.source

    def with_a_comment(path: Path) -> fingerprints.Source:
        found = read(path)
        if path.name == "holdout.py":
            return fingerprints.Source(found.digest[::-1], found.imports, found.text)
        return found

    for changed in (
        ("source", with_a_comment),
        ("_version", lambda library: "99" if library == "pandas" else "1"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(fingerprints, *changed)
            assert not already_prepared(own.store, OWN)
            assert own.prepare() == key
    assert (own.files(), len(own.told)) == (before, 2)


def test_what_only_graders_use_prepares_nothing_again(own: Own) -> None:
    own.write("grade.py", (own.folder / "grade.py").read_text() + "\nLABELS = 'labels.json'\n")
    own.write("labels.json", json.dumps(["a"]))
    own.prepare()
    own.write("labels.json", json.dumps(["a", "b"]))
    assert already_prepared(own.store, OWN)


def test_parameters_that_changed_are_no_refactoring(own: Own) -> None:
    key = own.prepare()
    facts = own.folder / "competition.yaml"
    facts.write_text(facts.read_text() + "\nparams: {count: 1}\n")
    from competitions import registry

    registry.reread()
    assert own.prepare() != key
    assert own.told == []


def test_a_dataset_collected_and_made_again_has_its_key(own: Own) -> None:
    """Its runs name that key; the code that makes it now was proven to make the same."""
    key = own.prepare()
    own.write("names.py", "# The table of the download.\nTABLE = 'all.csv'\n")
    own.prepare()
    assert [each.state for each in gc.edition_datasets(own.store, gc.everything(own.store), "v1", dry=False)] == [
        "complete"
    ]
    assert committed_key(own.store, OWN) is None
    assert own.prepare() == key


def test_new_checksums_are_compared_with_a_dataset_that_exists(own: Own) -> None:
    from competitions import registry
    from storage.datasets.verify import ChecksumMismatch

    key = own.prepare()
    facts = (own.folder / "competition.yaml").read_text()
    md5 = {False: "0" * 32, True: "ede3d3b685b4e137ba4cb2521329a75e"}  # of a thousand zeros
    for right in (False, True):
        text = f"{facts}\nchecksums:\n  prepared:\n    public/images/0.bin: '{md5[right]}'\n"
        (own.folder / "competition.yaml").write_text(text)
        registry.reread()
        own.store.remove(own.store.raw("own"))
        assert not is_verified(own.store, Dataset("v1", "own", key), registry.get("own"))
        assert not already_prepared(own.store, OWN)
        if right:
            assert own.prepare() == key
            assert already_prepared(own.store, OWN)
            assert not own.store.exists(own.store.raw("own")), "nothing was downloaded for it"
        else:
            with pytest.raises(ChecksumMismatch, match=r"public/images/0\.bin differ from the published benchmark"):
                own.prepare()
    assert own.told == []
