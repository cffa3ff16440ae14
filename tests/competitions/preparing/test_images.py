"""Test images encoded anew: other bytes of almost the same picture, the same ones every time."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from competitions import registry
from competitions.editions import EDITIONS
from competitions.preparing.declaration import Archive, Derived
from competitions.preparing.download import Download
from competitions.preparing.images import PARAMETER, encoded
from storage.datasets import prepare
from storage.datasets.job import recipe_of
from tests.prepared import PreparedCompetitions

GRAIN = np.random.default_rng(0).integers(0, 16, (64, 48))
PICTURE = (np.add.outer(np.arange(64), 2 * np.arange(48)) + GRAIN)[..., None].repeat(3, 2).astype(np.uint8)


@pytest.mark.parametrize(
    ("kind", "mode"), [("JPEG", "RGB"), ("PNG", "L"), ("PNG", "RGB"), ("PNG", "P"), ("TIFF", "RGB")]
)
def test_the_picture_stays_and_its_bytes_do_not(kind: str, mode: str, tmp_path: Path) -> None:
    original = io.BytesIO()
    Image.fromarray(PICTURE).convert(mode).save(original, kind)
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as archive:
        archive.writestr("a.img", original.getvalue())
    download = Download.open(str(tmp_path / "raw.zip"))
    first, second = (b"".join(encoded(download, "", "a.img", 95)) for _ in range(2))
    assert first == second != original.getvalue()
    again, before = (Image.open(io.BytesIO(data)) for data in (first, original.getvalue()))
    assert (again.format, again.mode, again.size) == (kind, mode, before.size)
    loss = np.abs(np.asarray(again.convert("RGB"), float) - np.asarray(before.convert("RGB"), float))
    assert loss.mean() < 4, "of 255"


@pytest.mark.parametrize("name", ["whale-categorization-playground", "kuzushiji-recognition"])
def test_a_parameter_of_v2_asks_for_it(name: str, prepared: PreparedCompetitions, tmp_path: Path) -> None:
    found = prepared[name]
    with zipfile.ZipFile(found.raw) as old, zipfile.ZipFile(tmp_path / "raw.zip", "w") as new:
        for member in old.namelist():  # images of miniatures are none
            new.writestr(
                member, pictures(old.read(member)) if member.endswith((".jpg", "_images.zip")) else old.read(member)
            )
    params = {**(found.params or {}), PARAMETER: 90}
    for edition in EDITIONS:
        plain, anew = (tmp_path / f"{edition}-{number}" for number in range(2))
        prepare(name, tmp_path / "raw.zip", plain, edition, found.params)
        prepare(name, tmp_path / "raw.zip", anew, edition, params)
        before, after = (contents(folder / "public") for folder in (plain, anew))
        changed = {path for path, data in before.items() if after[path] != data}
        assert before.keys() == after.keys()
        assert changed == ({path for path in before if path.startswith("test")} if edition == "v2" else set())


@pytest.mark.parametrize("name", [name for name in registry.list() if PARAMETER in registry.get(name).facts.params])
def test_every_competition_with_the_parameter_has_its_test_images_encoded(
    name: str, prepared: PreparedCompetitions
) -> None:
    found = prepared[name]
    params = {**(found.params or {}), PARAMETER: 90}
    with_it, without = (
        found.competition.declare(Download.open(str(found.raw)), "v2", each).public.operations
        for each in (params, found.params)
    )
    anew = {path for path, how in with_it.items() if isinstance(how, Derived)}
    anew |= {path for path, how in with_it.items() if isinstance(how, Archive) and not how.portable}
    anew -= {path for path, how in without.items() if isinstance(how, Archive) and not how.portable}
    assert anew
    assert all("test" in path for path in anew)


def test_without_it_recipes_are_those_of_earlier_versions(prepared: PreparedCompetitions) -> None:
    competition = prepared["whale-categorization-playground"].competition
    assert PARAMETER not in recipe_of(competition, "download", "v2").params
    assert recipe_of(competition, "download", "v2", {PARAMETER: 90}).params[PARAMETER] == 90


def pictures(data: bytes) -> bytes:
    """A picture in the place of a file, whose content decides it; in each place, for an archive."""
    content = io.BytesIO()
    if not data.startswith(b"PK"):
        Image.fromarray(PICTURE + np.uint8(sum(data) % 256)).save(content, "JPEG")
        return content.getvalue()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(content, "w") as new:
        for member in old.namelist():
            new.writestr(member, pictures(old.read(member)))
    return content.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    """Content by name; the names of images in archives follow that of the archive."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*.*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                found |= {f"{name}/{member}": archive.read(member) for member in archive.namelist()}
        elif path.suffix in (".jpg", ".csv"):
            found[name] = path.read_bytes()
    return found
