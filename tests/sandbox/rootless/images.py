"""Small images for tests, as `docker save` and other tools write them."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def entry(name: str, content: bytes | None = None, **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """An entry of a layer: a file with that content, or of the `type` in the fields."""
    info = tarfile.TarInfo(name)
    info.mode, info.size, info.mtime = 0o644, len(content or b""), 1_700_000_000
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content or b""


def folder(name: str, mode: int = 0o755) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=tarfile.SYMTYPE, linkname=target)


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar archive with these entries."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def config(layers: Sequence[bytes], environment: Sequence[str] = (), architecture: str = ARCHITECTURE) -> bytes:
    """The description of an image with these layers."""
    digests = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    facts = {"architecture": architecture, "os": "linux", "config": {"Env": list(environment)}}
    return json.dumps({**facts, "rootfs": {"type": "layers", "diff_ids": digests}}).encode()


def docker_save(
    path: Path, layers: Sequence[bytes], description: bytes | None = None, tags: Sequence[str] = ()
) -> Path:
    """Write an archive as `docker save` does."""
    description = config(layers) if description is None else description
    names = [f"layer{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "config.json", "RepoTags": list(tags), "Layers": names}]).encode()
    files = [("config.json", description), *zip(names, layers, strict=True), ("manifest.json", manifest)]
    path.write_bytes(archive(*(entry(name, content) for name, content in files)))
    return path


def oci_layout(path: Path, images: Mapping[str, Sequence[bytes]], blobs: Mapping[bytes, bytes] | None = None) -> Path:
    """Write the directory of an OCI layout with one image per processor; `blobs`: layers as they are stored."""
    (path / "blobs/sha256").mkdir(parents=True)

    def put(content: bytes, **fields: object) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        (path / "blobs/sha256" / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content), **fields}

    manifests = []
    for architecture, layers in images.items():
        stored = [put((blobs or {}).get(layer, layer)) for layer in layers]
        manifest = {"config": put(config(layers, architecture=architecture)), "layers": stored}
        manifests.append(put(json.dumps(manifest).encode(), platform={"architecture": architecture, "os": "linux"}))
    attestation = put(b'{"config": {}, "layers": []}', platform={"architecture": "unknown", "os": "unknown"})
    index = put(json.dumps({"manifests": [*manifests, attestation]}).encode())
    (path / "index.json").write_text(json.dumps({"manifests": [index]}))
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return path
