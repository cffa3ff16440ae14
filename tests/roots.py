"""A scratch folder with the root file systems of images, each made once."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from common.locks import locked
from sandbox.definitions import BASE_IMAGE
from sandbox.errors import BackendError
from sandbox.rootless import backend, roots
from sandbox.rootless.archives import unpack_archive
from tests import images


@cache
def missing() -> str | None:
    """Why the rootless backend cannot be used here; None if it can."""
    try:
        backend.require_usable()
    except BackendError as error:
        return str(error)
    return images.without_base_image()


@cache
def scratch(image: str = BASE_IMAGE) -> Path:
    """The folder, in which the image has a root file system. It is kept between sessions of tests."""
    folder = Path(tempfile.gettempdir(), f"mlebench-test-roots-{os.getuid()}")
    folder.mkdir(exist_ok=True, mode=0o755)
    format_ = ["--format", "{{.Id}}"]
    inspected = subprocess.run(
        ["docker", "image", "inspect", *format_, image], capture_output=True, text=True, check=True
    )
    with locked(folder / "lock", wait=True):
        try:
            if roots.root_of(image, folder).digest == inspected.stdout.strip().removeprefix("sha256:"):
                return folder
        except BackendError:
            pass
        archive = folder / "image.tar"
        try:
            subprocess.run(["docker", "save", "--output", archive, image], check=True)
            roots.add(image, folder, image, lambda top: unpack_archive(archive, top, image))
        finally:
            archive.unlink(missing_ok=True)
    return folder


def lend(folder: Path, image: str = BASE_IMAGE) -> None:
    """Let runs whose scratch folder is `folder` use the root file system of the image."""
    lent = scratch(image) / "roots"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "roots").exists():
        (folder / "roots").symlink_to(lent)
