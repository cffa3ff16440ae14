"""Layers of images become one directory, and hostile ones write nothing outside of it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from common import trees
from sandbox.rootless.unpacking import Unusable, unpack
from tests.sandbox.rootless.images import archive, entry, folder, link


def unpacked(tmp_path: Path, *layers: bytes) -> Path:
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    with trees.opened_folder(root) as top:
        for layer in layers:
            unpack(io.BytesIO(layer), top)
    return root


def files(root: Path) -> dict[str, str]:
    found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*"))}
    return {name: path.read_text() for name, path in found.items() if path.is_file() and not path.is_symlink()}


def test_later_layers_replace_and_hide_what_earlier_ones_have(tmp_path: Path) -> None:
    below = archive(
        *(
            folder("etc"),
            entry("etc/old", b"1"),
            entry("etc/kept", b"1"),
            entry("opt/a/x", b"1"),
            entry("opt/a/b/y", b"1"),
        ),
        *(entry("was/file", b"1"), folder("was/folder"), entry("was/folder/x", b"1")),
    )
    above = archive(
        *(entry("etc/.wh.old"), entry("etc/new", b"2"), entry("opt/a/b/z", b"2"), entry("opt/a/.wh..wh..opq")),
        *(
            folder("was/file"),
            entry("was/file/x", b"2"),
            entry("was/folder", b"2"),
            entry("opt/n", b"2"),
            entry("opt/.wh.n"),
        ),
    )
    root = unpacked(tmp_path, below, above)
    assert files(root) == {
        "etc/kept": "1",
        "etc/new": "2",
        "opt/a/b/z": "2",
        "opt/n": "2",
        "was/file/x": "2",
        "was/folder": "2",
    }


def test_rights_of_the_image_are_not_taken_over(tmp_path: Path) -> None:
    layer = archive(
        *(entry("su", b"x", mode=0o6755, uid=0), entry("secret", b"x", mode=0o000), folder("closed", 0o000)),
        *(folder("tmp", 0o1777), entry("all", b"x", mode=0o666)),
        *(entry("closed/x", b"x"), entry("dev/sda", type=tarfile.BLKTYPE), entry("pipe", type=tarfile.FIFOTYPE)),
    )
    root = unpacked(tmp_path, layer)
    assert {name: (root / name).stat().st_mode & 0o7777 for name in ("su", "secret", "closed", "tmp", "all")} == {
        "su": 0o755,
        "secret": 0o600,
        "closed": 0o700,
        "tmp": 0o755,
        "all": 0o644,
    }, "and nobody else may change what all users share"
    assert sorted(files(root)) == ["all", "closed/x", "secret", "su"]
    assert not any((root / "dev").iterdir())
    assert (root / "su").stat().st_mtime == 1_700_000_000, "compiled modules of Python depend on it"


def test_links_are_resolved_as_in_a_chroot(tmp_path: Path) -> None:
    layer = archive(
        *(folder("usr"), folder("usr/lib"), link("lib", "usr/lib"), link("abs", "/usr/lib"), link("up", "../../usr")),
        *(entry("lib/a", b"a"), entry("abs/b", b"b"), entry("up/lib/c", b"c")),
        entry("hard", type=tarfile.LNKTYPE, linkname="lib/a"),
    )
    root = unpacked(tmp_path, layer)
    assert files(root) == {"hard": "a", "usr/lib/a": "a", "usr/lib/b": "b", "usr/lib/c": "c"}
    assert (root / "hard").stat().st_ino == (root / "usr/lib/a").stat().st_ino


@pytest.mark.parametrize(
    "entries",
    [
        [entry("../outside", b"x")],
        [entry("/a/../../outside", b"x")],
        [entry("a", b"x"), entry("a/b", b"x")],
        [entry("l", type=tarfile.LNKTYPE, linkname="../outside")],
        [entry("l", type=tarfile.LNKTYPE, linkname="nothing")],
        [link("a", "b"), link("b", "a"), entry("a/x", b"x")],
        [entry("a/.wh..", b"")],
        [entry("/".join("d" * 300), b"x")],
        [entry("x", b"x", pax_headers={"mtime": "nan"})],
    ],
    ids=[
        "above",
        "above in the middle",
        "below a file",
        "link out",
        "link to nothing",
        "circle",
        "whiteout",
        "deep",
        "time",
    ],
)
def test_what_leads_out_or_makes_no_sense_is_refused(
    tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    (tmp_path / "outside").write_text("mine")
    with pytest.raises(Unusable):
        unpacked(tmp_path, archive(*entries))
    assert (tmp_path / "outside").read_text() == "mine"


@pytest.mark.parametrize("target", ["{outside}", "../outside", "../../../../../../../../{outside}"])
def test_no_entry_is_written_through_a_link_out_of_the_root(tmp_path: Path, target: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    target = target.format(outside=outside)
    layers = [
        archive(link("a", target), link("b", f"{target}/file")),
        archive(entry("a/file", b"theirs"), entry("a/new", b"theirs"), entry("a/.wh.file"), entry("a/.wh..wh..opq")),
        archive(entry("b", b"theirs"), folder("a"), entry("a/file", b"theirs")),
        archive(link("c", f"{target}/file"), entry("d", type=tarfile.LNKTYPE, linkname="c"), entry("d", b"theirs")),
    ]
    unpacked(tmp_path, *layers)
    assert files(outside) == {"file": "mine"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "root"]


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    layer = archive(entry("a", b"x" * 10_000))
    with pytest.raises(Unusable, match="damaged"):
        unpacked(tmp_path, layer[:5000])
