"""Read images that other tools have written: docker save, podman save, OCI layouts, and archives of a root itself."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import os
import platform
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from common import trees
from sandbox.errors import BuildError
from sandbox.rootless.unpacking import Unusable, unpack

MAX_JSON_BYTES = 16 << 20
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names of processors in images, where the kernel has another one."""
BASE_ENVIRONMENT = {
    "PATH": "/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "MLEBENCH_PYTHON": "/opt/venv/bin/python",
}
"""The variables of the base image, for roots that have its Python and do not come from an image."""
APPTAINER = (".singularity.d", "env")
_EXPORT = re.compile(r"""^export (\w+)="(?:\$\{\1:-)?"?([^"$]*)""", re.M)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_Open = Callable[[str], IO[bytes]]
"""Opens a file of an image. Raises `KeyError` if there is none of that name."""


@dataclass(frozen=True)
class Content:
    """What was unpacked."""

    digest: str
    """SHA-256 (hex): the image's id, as an engine shows it, or that of an archive of a root itself."""
    environment: dict[str, str]
    """The environment variables that the image sets."""


@dataclass(frozen=True)
class _Image:
    digest: str
    environment: dict[str, str]
    layers: tuple[tuple[str, str], ...]
    """The name of the file of each layer, and the digest of its content."""


class _NoImage(Exception):
    """An archive of a root itself."""


def unpack_archive(path: Path, top: int, image: str) -> Content:
    """Unpack the image in an archive, or an archive of a root itself, into an empty directory.

    Args:
        path: the archive, which may be compressed.
        top: descriptor of the directory.
        image: name of the image to choose, if the archive has several.

    Raises:
        BuildError: the archive cannot be used.
    """
    with _errors(str(path)), contextlib.ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        if (plain := decompressed(file)) is not file:  # the files of an image are not in the order of its layers
            file = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(plain, file, 1 << 20)
            file.seek(0)
        archive = stack.enter_context(tarfile.open(fileobj=file, mode="r:"))

        def opened(name: str) -> IO[bytes]:
            for path in (f"./{name}", name):
                with contextlib.suppress(KeyError):
                    if (found := archive.extractfile(path)) is not None:  # None: a folder or device
                        return found
            raise KeyError(name)

        try:
            chosen = _chosen(opened, image)
        except _NoImage:
            file.seek(0)
            return _unpack_root(file, top)
        return _unpack_image(chosen, opened, top)


def unpack_layout(folder: Path, top: int, image: str) -> Content:
    """As `unpack_archive`, for the directory of an OCI layout."""

    def opened(name: str) -> IO[bytes]:
        try:
            return (folder / name).open("rb")
        except FileNotFoundError:
            raise KeyError(name) from None

    with _errors(str(folder)):
        return _unpack_image(_chosen(opened, image), opened, top)


def unpack_stream(stream: IO[bytes], top: int, source: str) -> Content:
    """As `unpack_archive`, for an archive of a root that a program writes."""
    with _errors(source):
        return _unpack_root(stream, top)


def decompressed(file: IO[bytes]) -> IO[bytes]:
    """The content of a file that may be compressed; the file itself if it is not."""
    start = file.read(6)
    file.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if start.startswith(b"\xfd7zXZ"):
        return cast("IO[bytes]", lzma.LZMAFile(file))
    if start.startswith(b"BZh"):
        return cast("IO[bytes]", bz2.BZ2File(file))
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow

        return cast("IO[bytes]", pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd"))
    return file


class _Hashed:
    """A file whose content is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.hash = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read and hash."""
        piece = self._file.read(size)
        self.hash.update(piece)
        return piece


def _unpack_root(file: IO[bytes], top: int) -> Content:
    hashed = _Hashed(file)
    unpack(cast("IO[bytes]", hashed), top)
    return Content(hashed.hash.hexdigest(), _environment(top))


def _unpack_image(image: _Image, opened: _Open, top: int) -> Content:
    for name, expected in image.layers:
        with opened(name) as file:
            hashed = _Hashed(decompressed(file))
            unpack(cast("IO[bytes]", hashed), top)
        if f"sha256:{hashed.hash.hexdigest()}" != expected:
            raise Unusable(f"it is damaged: layer {name[:80]} has another content than the image says")
    return Content(image.digest, image.environment)


def _chosen(opened: _Open, image: str) -> _Image:
    """The image of that name, or the only one, of those for this machine. Raises `_NoImage` if there is none at all."""
    try:
        try:
            images = _json(opened("manifest.json"))  # of docker save
        except KeyError:
            try:
                index = _json(opened("index.json"))
            except KeyError:
                raise _NoImage from None
            return _in_index(opened, index)
        if len(images) != 1:
            named = [found for found in images if image in map(untagged, found.get("RepoTags") or ())]
            if len(named) != 1:
                tags = sorted(tag for found in images for tag in found.get("RepoTags") or ())
                raise Unusable(
                    f"it has {len(images)} images ({', '.join(tags)[:200]}): save the one of the agent alone"
                )
            images = named
        with opened(str(images[0]["Config"])) as file:
            return _described(file.read(MAX_JSON_BYTES), list(map(str, images[0]["Layers"])))
    except (Unusable, _NoImage):
        raise
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise Unusable(f"it is no image that docker save or an OCI tool has written ({error!r})") from error


def _in_index(opened: _Open, index: Any) -> _Image:
    """The image for this machine in an OCI layout, among those for other machines and what is no image."""
    found: list[tuple[bytes, list[str]]] = []
    waiting, seen = [index], set[str]()
    while waiting:
        document = waiting.pop()
        entries = document.get("manifests", ())
        images = [entry for entry in entries if (entry.get("platform") or {}).get("architecture") != "unknown"]
        for entry in images:  # the others say how an image was made
            if _blob(entry) not in seen:
                seen.add(_blob(entry))
                waiting.append(json.loads(_content(opened, entry)))
        if "config" in document:
            found.append((_content(opened, document["config"]), [_blob(layer) for layer in document["layers"]]))
    fitting = [(config, layers) for config, layers in found if _runs_here(json.loads(config))] or found
    if len(fitting) != 1:
        raise Unusable(f"it has {len(fitting)} images: save the one of the agent alone")
    return _described(*fitting[0])


def _described(config_text: bytes, layers: list[str]) -> _Image:
    config = json.loads(config_text)
    if not _runs_here(config):
        raise Unusable(
            f"its image is for {config['architecture']}, and this machine is {_machine()}: build it with --platform "
            f"linux/{_machine()}"
        )
    variables = dict(text.partition("=")[::2] for text in (config.get("config") or {}).get("Env") or ())
    with_digests = tuple(zip(layers, config["rootfs"]["diff_ids"], strict=True))
    return _Image(hashlib.sha256(config_text).hexdigest(), variables, with_digests)


def _environment(top: int) -> dict[str, str]:
    """The variables of a root that does not come with the description of an image."""
    with contextlib.suppress(OSError):
        folder = trees.folder_below(top, APPTAINER)
        try:
            with trees.opened_file("10-docker2singularity.sh", folder) as file:
                text = b"".join(trees.pieces(file, MAX_JSON_BYTES)).decode(errors="replace")
        finally:
            os.close(folder)
        return dict(_EXPORT.findall(text))
    with contextlib.suppress(OSError):
        os.stat("opt/venv/bin/python", dir_fd=top, follow_symlinks=False)
        return BASE_ENVIRONMENT
    return {}


def _machine() -> str:
    return MACHINES.get(platform.machine(), platform.machine())


def _runs_here(config: dict[str, Any]) -> bool:
    return config.get("architecture") in (None, "", _machine())


def _blob(entry: dict[str, Any]) -> str:
    if not _DIGEST.fullmatch(entry["digest"]):
        raise Unusable(f"it has a file with an unusual digest ({entry['digest'][:80]})")
    return f"blobs/{entry['digest'].replace(':', '/')}"


def _content(opened: _Open, entry: dict[str, Any]) -> bytes:
    """A description, if it has the digest that it is named by."""
    with opened(_blob(entry)) as file:
        content = file.read(MAX_JSON_BYTES)
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != entry["digest"]:
        raise Unusable(f"it is damaged: {_blob(entry)} has another content than its name says")
    return content


def _json(file: IO[bytes]) -> Any:
    with file:
        return json.loads(file.read(MAX_JSON_BYTES))


def untagged(image: str) -> str:
    """The name of an image without its host and tag where these are the defaults.

    >>> untagged("localhost/mlebench-base:latest"), untagged("python:3.12")
    ('mlebench-base', 'python:3.12')
    """
    return image.removeprefix("docker.io/library/").removeprefix("localhost/").removesuffix(":latest")


@contextlib.contextmanager
def _errors(source: str) -> Iterator[None]:
    """Raise what can be wrong with an archive as `BuildError`."""
    try:
        yield
    except Unusable as error:
        raise BuildError(f"{source} cannot be used: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, RecursionError, ValueError, OverflowError) as error:
        raise BuildError(f"{source} cannot be used: it is no archive, or damaged ({error})") from error
    except KeyError as error:
        raise BuildError(f"{source} cannot be used: a layer is missing ({error})") from error
    except OSError as error:
        raise BuildError(f"{source} cannot be unpacked: {error.strerror or error}") from error
