"""Roots are complete or not there, shared by all who use them, and removed when nobody does."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pyarrow
import pytest

from common.locks import locked, release
from sandbox.agent_registry import load_agent
from sandbox.definitions import BASE_IMAGE
from sandbox.errors import BackendError, BuildError
from sandbox.rootless import building, rootfs, roots
from sandbox.rootless.archives import unpack_archive
from tests.sandbox.rootless import images
from tests.sandbox.rootless.images import archive, config, docker_save, entry, folder, link, oci_layout

SHELL = entry("bin/sh")
LAYERS = [archive(SHELL, folder("usr"), entry("usr/a", b"1")), archive(entry("usr/b", b"2"))]
import_root = partial(building.import_root, on_line=lambda _: None)


def saved(path: Path, layers: list[object]) -> None:
    """Write an archive of docker save that names odd entries as its layers."""
    manifest = json.dumps([{"Config": "config.json", "Layers": layers}]).encode()
    odd = (folder("folder"), link("link", "link"))
    path.write_bytes(archive(entry("config.json", config(LAYERS[:1])), entry("manifest.json", manifest), *odd))


def circle(path: Path) -> None:
    """Make an OCI layout with an index that names itself."""
    layout, digest = oci_layout(path, {}), "a" * 64
    index = json.dumps({"manifests": [{"digest": f"sha256:{digest}"}]})
    (layout / "blobs/sha256" / digest).write_text(index)
    (layout / "index.json").write_text(index)


def content(root: roots.Root) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root.path / "usr").iterdir() if path.is_file()}


class TestSources:
    def test_the_archive_of_docker_save(self, tmp_path: Path) -> None:
        description = config(LAYERS, ["PATH=/opt/bin:/bin", "A=b=c"])
        source = docker_save(tmp_path / "image.tar", LAYERS, description)
        root = import_root(BASE_IMAGE, str(source), tmp_path / "scratch")
        assert content(root) == {"a": "1", "b": "2"}
        assert root == roots.root_of(f"{BASE_IMAGE}:latest", tmp_path / "scratch")
        assert (root.environment, root.digest) == (
            {"PATH": "/opt/bin:/bin", "A": "b=c"},
            hashlib.sha256(description).hexdigest(),
        ), "the image's id, as an engine shows it"
        for path in (*rootfs.FOLDERS, *rootfs.FILES):
            assert (root.path / path).exists(), "mount points"

    def test_several_images_in_one_archive(self, tmp_path: Path) -> None:
        source = docker_save(tmp_path / "image.tar", LAYERS)
        both = [
            {
                "Config": "config.json",
                "RepoTags": [f"{name}:latest"],
                "Layers": ["layer0/layer.tar", "layer1/layer.tar"],
            }
            for name in ("localhost/mine", "other")
        ]
        names = [("config.json", config(LAYERS)), ("manifest.json", json.dumps(both).encode())]
        names += [(f"layer{number}/layer.tar", layer) for number, layer in enumerate(LAYERS)]
        source.write_bytes(archive(*(entry(*pair) for pair in names)))
        assert content(import_root("mine", str(source), tmp_path)) == {"a": "1", "b": "2"}
        with pytest.raises(BuildError, match=r"has 2 images \(localhost/mine:latest, other:latest\)"):
            import_root("third", str(source), tmp_path)

    def test_an_oci_layout_as_directory_and_archive_with_images_of_other_processors(self, tmp_path: Path) -> None:
        compressed = {LAYERS[0]: gzip.compress(LAYERS[0]), LAYERS[1]: pyarrow.compress(LAYERS[1], "zstd", asbytes=True)}
        layout = oci_layout(tmp_path / "layout", {"s390x": LAYERS[:1], images.ARCHITECTURE: LAYERS}, compressed)
        root = import_root("x", str(layout), tmp_path)
        assert content(root) == {"a": "1", "b": "2"}
        subprocess.run(["tar", "-czf", tmp_path / "l.tgz", "-C", layout, "."], check=True)
        assert import_root("y", str(tmp_path / "l.tgz"), tmp_path) == root

    def test_a_directory_and_the_archive_of_one(self, tmp_path: Path) -> None:
        source = tmp_path / "sandbox"
        (source / "usr/bin").mkdir(parents=True)
        (source / "usr/bin/sh").touch()
        (source / "usr/a").write_text("1")
        (source / ".singularity.d/env").mkdir(parents=True)
        (source / ".singularity.d/env/10-docker2singularity.sh").write_text(
            '#!/bin/sh\nexport PATH="/opt/venv/bin:/usr/bin"\nexport MLEBENCH_PYTHON="${MLEBENCH_PYTHON:-"/opt/py"}"\n'
        )
        first, again = import_root("x", str(source), tmp_path), import_root("y", str(source), tmp_path)
        assert first == again, "the same files have the same digest"
        assert first.environment == {"PATH": "/opt/venv/bin:/usr/bin", "MLEBENCH_PYTHON": "/opt/py"}
        assert content(first) == {"a": "1"}
        (source / "opt/venv/bin").mkdir(parents=True)
        (source / "opt/venv/bin/python").symlink_to("/usr/bin/python3")
        subprocess.run(["rm", "-r", source / ".singularity.d"], check=True)
        subprocess.run(["tar", "-cJf", tmp_path / "root.tar.xz", "-C", source, "."], check=True)
        second = import_root("x", str(tmp_path / "root.tar.xz"), tmp_path)
        assert second.environment["MLEBENCH_PYTHON"] == "/opt/venv/bin/python"
        assert roots.root_of("x", tmp_path) == second

    def test_an_apptainer_image_needs_apptainer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = tmp_path / "agent.sif"
        source.write_bytes(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0" + b"\0" * 100)
        with pytest.raises(BuildError, match="apptainer build --sandbox"):
            import_root("x", str(source), tmp_path / "scratch")
        program = tmp_path / "bin" / "apptainer"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\nmkdir -p "$4/usr" "$4/bin" && touch "$4/bin/sh" && echo "$5" > "$4/usr/a"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        assert content(import_root("x", str(source), tmp_path / "scratch")) == {"a": f"{source}\n"}

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda path: None, "does not exist"),
            (lambda path: path.write_text("hello"), "no archive, or damaged"),
            (lambda path: path.write_bytes(gzip.compress(archive(entry("a", b"x")))[:-20]), "damaged"),
            (lambda path: docker_save(path, LAYERS, config(LAYERS[::-1])), "another content than the image says"),
            (lambda path: docker_save(path, LAYERS, config(LAYERS, architecture="sparc")), "image is for sparc"),
            (lambda path: docker_save(path, LAYERS, b"[]"), "no image that docker save"),
            (lambda path: path.write_bytes(archive(entry("manifest.json", b"{"))), "no image that docker save"),
            (lambda path: path.write_bytes(archive(link("manifest.json", "manifest.json"))), "cannot be used"),
            (lambda path: docker_save(path, [archive(entry("../x", b"x"))]), "leads out of it"),
            (lambda path: saved(path, ["folder"]), "a layer is missing"),
            (lambda path: saved(path, ["link"]), "cannot be used"),
            (lambda path: saved(path, [7]), "a layer is missing"),
            (lambda path: path.write_bytes(b"\0" * 600), "no /bin/sh"),
            (lambda path: docker_save(path, LAYERS, config(LAYERS, ["=x"])), "environment variable ''"),
            (lambda path: docker_save(path, LAYERS, config(LAYERS, ["A=\0"])), "environment variable 'A'"),
            (lambda path: docker_save(path, LAYERS, config(LAYERS, ["A=\ud800"])), "environment variable 'A'"),
            (lambda path: docker_save(path, LAYERS, config(LAYERS, [f"V{n}=x" for n in range(3500)])), "sets 3500"),
            (lambda path: docker_save(path, LAYERS, config(LAYERS, ["A=" + "x" * 200_000])), "sets 1 environment"),
            (lambda path: circle(path), "another content than its name says"),
        ],
    )
    def test_what_cannot_be_used_leaves_nothing(self, tmp_path: Path, make: object, message: str) -> None:
        make(tmp_path / "source")  # type: ignore[operator]
        with pytest.raises(BuildError, match=message) as caught:
            import_root("x", str(tmp_path / "source"), tmp_path / "scratch")
        assert "\n" not in str(caught.value)
        assert not list((tmp_path / "scratch").glob("roots/*")) + list((tmp_path / "scratch").glob("roots/.*"))

    def test_mount_points_are_never_links(self, tmp_path: Path) -> None:
        layer = archive(SHELL, link("etc", "/etc"), link("tmp", "usr"), link("home", "../.."), entry("proc", b"x"))
        root = import_root("x", str(docker_save(tmp_path / "i.tar", [layer])), tmp_path)
        for path in (*rootfs.FOLDERS, *rootfs.FILES):
            assert not (root.path / path).is_symlink()


def test_without_a_root_the_message_has_the_command(tmp_path: Path) -> None:
    own = tmp_path / "my agents" / "mine"
    own.mkdir(parents=True)
    (own / "agent.yaml").write_text("name: mine\ndescription: d\n")
    (own / "start.sh").touch()
    aide, mine = load_agent("aide"), load_agent(own)
    for agent, built_by in (
        (aide, "aide"),
        (mine, "base"),
        (mine.model_copy(update={"image": "somebody/image:3"}), f"'{own}'"),
        (mine.model_copy(update={"image": "../" * 100}), f"'{own}'"),
    ):
        with pytest.raises(BackendError, match=f"mlebench build {built_by} --rootless"):
            roots.root_of(agent.image_name, tmp_path, agent.built_by)


def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "roots").symlink_to("/nowhere/roots")
    roots.require_own(tmp_path)  # other backends can use the folder
    for use in (roots.root_of, partial(import_root, source=str(tmp_path))):
        with pytest.raises(BackendError, match="roots leads to /nowhere/roots, which does not exist"):
            use("x", scratch=tmp_path)


def test_roots_are_removed_once_no_image_has_them_and_no_run_uses_them(tmp_path: Path) -> None:
    old = import_root("x", str(docker_save(tmp_path / "1.tar", LAYERS[:1])), tmp_path)
    held = roots.hold(tmp_path, old.digest)
    new = import_root("x", str(docker_save(tmp_path / "2.tar", LAYERS)), tmp_path)
    assert [(entry.names, entry.digest, entry.in_use) for entry in roots.entries(tmp_path)] == [
        (("x",), new.digest, False),
        ((), old.digest, True),
    ]
    assert [entry.in_use for entry in roots.remove_unused(tmp_path, dry=False)] == [True]
    assert old.path.is_dir()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held])
    os.close(held)
    assert [entry.in_use for entry in roots.remove_unused(tmp_path, dry=False)] == [True], "a supervisor has it"
    child.communicate()
    assert [entry.digest for entry in roots.remove_unused(tmp_path, dry=True)] == [old.digest]
    assert old.path.is_dir()
    assert [entry.digest for entry in roots.remove_unused(tmp_path, dry=False)] == [old.digest]
    assert not old.path.parent.exists()
    with pytest.raises(BackendError, match="has been removed"):
        roots.hold(tmp_path, old.digest)
    assert roots.root_of("x", tmp_path) == new


def test_nobody_else_can_write_to_a_root(tmp_path: Path) -> None:
    layer = archive(SHELL, folder("tmp", 0o1777), folder("opt", 0o775), entry("opt/x", b"x", mode=0o666))
    umask = os.umask(0)
    try:
        root = import_root("x", str(docker_save(tmp_path / "i.tar", [layer])), tmp_path / "scratch")
    finally:
        os.umask(umask)
    assert [path for path in [root.path.parent, *root.path.parent.rglob("*")] if path.stat().st_mode & 0o022] == []


def test_a_lock_that_somebody_keeps_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "LOCK_SECONDS", 0.0)
    root = import_root("x", str(docker_save(tmp_path / "i.tar", LAYERS)), tmp_path)
    lock = root.path.parent / "lock"
    with locked(lock) as mine:
        assert mine is not None
        with pytest.raises(BackendError, match=f"another process keeps {lock} locked"):
            roots.hold(tmp_path, root.digest)
    release(roots.hold(tmp_path, root.digest))


@pytest.mark.parametrize("left", [b"", b"{}", b'{"environment": [], "bytes": 1}', None])
def test_a_damaged_root_is_built_again(tmp_path: Path, left: bytes | None) -> None:
    source = docker_save(tmp_path / "i.tar", LAYERS)
    root = import_root(BASE_IMAGE, str(source), tmp_path)
    facts = root.path.parent / "root.json"
    facts.unlink()
    if left is not None:
        facts.write_bytes(left)
    with pytest.raises(BackendError, match="mlebench build base --rootless"):
        roots.root_of(BASE_IMAGE, tmp_path)
    assert [entry.damaged for entry in roots.entries(tmp_path)] == [True]
    held = roots.hold(tmp_path, root.digest)
    assert import_root(BASE_IMAGE, str(source), tmp_path) == roots.root_of(BASE_IMAGE, tmp_path) == root
    assert [entry.damaged for entry in roots.entries(tmp_path)] == [False]
    assert len(list((tmp_path / "roots").glob(f"{roots.TRASH}*"))) == 1, "a run uses it"
    release(held)


def test_what_a_killed_build_has_left_is_removed_an_hour_later(tmp_path: Path) -> None:
    for name, age in (("young", 0), ("old", 4000)):
        left = tmp_path / "roots" / f"{roots.NEW}{name}"
        (left / "rootfs").mkdir(parents=True)
        os.utime(left, (time.time() - age,) * 2)
    assert [entry.digest for entry in roots.remove_unused(tmp_path, dry=False)] == [f"{roots.NEW}old"]
    assert [path.name for path in (tmp_path / "roots").iterdir()] == [f"{roots.NEW}young"]


def test_many_make_the_same_root_while_it_is_collected(tmp_path: Path) -> None:
    source, stop, failures = docker_save(tmp_path / "i.tar", LAYERS), threading.Event(), list[BaseException]()

    def make(name: str) -> None:
        try:
            for number in range(10):
                root = roots.add(f"{name}{number % 2}", tmp_path, "test", partial(unpack_archive, source, image="x"))
                held = roots.hold(tmp_path, root.digest)
                assert content(root) == {"a": "1", "b": "2"}
                release(held)
                (tmp_path / "roots/names" / f"{name}{number % 2}.txt").unlink()
        except BackendError as error:
            if "has been removed" not in str(error):
                failures.append(error)
        except BaseException as error:
            failures.append(error)

    def collect() -> None:
        while not stop.is_set():
            list(roots.remove_unused(tmp_path, dry=False))

    collector = threading.Thread(target=collect)
    makers = [threading.Thread(target=make, args=[name]) for name in "ab"]
    for thread in (collector, *makers):
        thread.start()
    for thread in makers:
        thread.join()
    stop.set()
    collector.join()
    assert not failures


@pytest.mark.skipif(os.getuid() != 0, reason="makes folders of another user")
@pytest.mark.parametrize(
    ("owner", "mode", "roots_owner", "roots_mode"),
    [(1234, 0o755, 0, 0o755), (0, 0o777, 0, 0o755), (0, 0o755, 0, 0o777), (0, 0o1777, 1234, 0o755)],
)
def test_roots_that_another_user_could_have_put_there(
    tmp_path: Path, owner: int, mode: int, roots_owner: int, roots_mode: int
) -> None:
    scratch, source = tmp_path / "scratch", docker_save(tmp_path / "i.tar", LAYERS)
    import_root("x", str(source), scratch)
    roots.root_of("x", scratch)
    for path, uid, bits in ((scratch, owner, mode), (scratch / "roots", roots_owner, roots_mode)):
        os.chown(path, uid, uid)
        path.chmod(bits)
    with pytest.raises(BackendError, match="other users can write to"):
        roots.root_of("x", scratch)
    with pytest.raises(BackendError, match="other users can write to"):
        import_root("y", str(source), scratch)
