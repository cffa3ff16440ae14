"""Adopting what the published benchmark has prepared: nothing is changed, nothing incomplete or different is taken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from common.errors import UserError
from competitions import registry
from competitions.competition import Competition
from storage.dataset import Dataset
from storage.datasets.adopt import adopt, prepared_folder
from storage.datasets.current import find, read_current
from storage.datasets.prepared import data_of, made_by_other_code
from storage.datasets.verify import ChecksumMismatch, is_verified, read_manifest, verify
from storage.sources.bundled import Bundled
from storage.store import Store as AnyStore
from tests.prepared import PreparedCompetitions
from tests.s3.fixtures import FaultyBucket
from tests.stores import Store

V1 = Dataset("v1", "digits")


@pytest.fixture
def digits() -> Competition:
    return registry.get("digits")


@pytest.fixture
def published(prepared: PreparedCompetitions, tmp_path: Path) -> Path:
    """Prepared data in the published layout, with a description of its own and a link that its operator made."""
    folder = tmp_path / "mle-bench" / "digits" / "prepared"
    shutil.copytree(prepared["digits"].path, folder)
    for name in ("commit.json", "manifest.parquet"):
        (folder / name).unlink(missing_ok=True)
    (folder / "public" / "description.md").write_text("# Their description")
    elsewhere = tmp_path / "large disk"
    elsewhere.mkdir()
    shutil.move(folder / "public" / "train.csv", elsewhere)
    (folder / "public" / "train.csv").symlink_to(elsewhere / "train.csv")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("link", [True, False])
def test_adopted_data_are_the_dataset_of_v1(store: Store, published: Path, digits: Competition, link: bool) -> None:
    before = contents(published)
    adopted = adopt(store, digits, published, link=link)
    assert adopted.compared == 3
    assert adopted.dataset == find(store, V1)
    assert data_of(store, V1, Bundled()).state == "prepared"
    assert is_verified(store, adopted.dataset, digits)
    assert data_of(store, V1, Bundled(), renew=True).state != "prepared"
    assert made_by_other_code(store) == []
    here = Path(store.prepared(adopted.dataset).removeprefix("file://"))
    kept = {name: data for name, data in before.items() if name != "public/description.md"}
    assert {name: data for name, data in contents(here).items() if name in kept} == kept
    assert (here / "public" / "description.md").read_text() == digits.describe("v1")
    assert (here / "public" / "description_official.md").read_text() == "# Their description"
    large = max(kept, key=lambda name: len(kept[name]))
    assert (here / large).samefile(published / large) == link
    assert contents(published) == before
    rows = {f"{part}/{path}" for part, path in read_manifest(store, adopted.dataset).rows("part", "path")}
    assert rows == set(kept)


def test_an_adoption_can_be_repeated(store: Store, published: Path, digits: Competition) -> None:
    first = adopt(store, digits, published)
    marker = store.local("prepared", "v1", "digits", first.dataset.key or "", "commit.json")
    made = marker.stat().st_mtime_ns
    assert adopt(store, digits, published) == first
    assert marker.stat().st_mtime_ns == made
    with (published / "private" / "test.csv").open("a") as file:
        file.write("\n")
    again = adopt(store, digits, published, compare=False)
    assert again.dataset.key != first.dataset.key
    assert read_current(store, V1).dataset == again.dataset


def test_an_interrupted_adoption_is_no_dataset(store: Store, published: Path, digits: Competition) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adopt(store, digits, published, on_progress=stop)
    assert find(store, V1) is None
    assert adopt(store, digits, published).compared == 3


def test_what_differs_is_named_and_nothing_is_written(store: Store, published: Path, digits: Competition) -> None:
    (published / "private" / "test.csv").write_text("id,label\n")
    with pytest.raises(ChecksumMismatch, match=r"private/test\.csv differ from the published benchmark"):
        adopt(store, digits, published)
    assert not store.exists(store.datasets(V1))


@pytest.mark.parametrize("missing", ["public", "private", "public/sample_submission.csv"])
def test_what_is_missing_is_named(store: Store, published: Path, digits: Competition, missing: str) -> None:
    path = published / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(UserError, match=f"{missing}.* missing in"):
        adopt(store, digits, published)


@pytest.mark.parametrize("target", ["nowhere", "."])
def test_links_without_an_end(store: Store, published: Path, digits: Competition, target: str) -> None:
    (published / "public" / "more").symlink_to(target)
    with pytest.raises(UserError, match="a link"):
        adopt(store, digits, published)


def test_both_layouts_are_known(published: Path) -> None:
    assert prepared_folder(published.parent.parent, "digits") == published
    shutil.move(published / "public", published.parent)
    assert prepared_folder(published.parent.parent, "digits") == published
    shutil.move(published / "private", published.parent)
    assert prepared_folder(published.parent.parent, "digits") == published.parent
    assert prepared_folder(published, "digits") is None


def test_into_a_bucket(faulty_s3: FaultyBucket, published: Path, digits: Competition) -> None:
    store = AnyStore(faulty_s3.url)
    adopted = adopt(store, digits, published)
    assert adopted.compared == 3
    assert verify(store, adopted.dataset, digits).damaged == []
