"""Make root file systems: from Dockerfiles, and from what container engines, Apptainer and debootstrap have made."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from sandbox.definitions import BASE_IMAGE, DOCKERFILE, Agent
from sandbox.docker import build
from sandbox.errors import BackendError, BuildError
from sandbox.rootless import archives, debootstrap
from sandbox.rootless.archives import Content
from sandbox.rootless.roots import Root, add, new_folder, root_of

ENGINE = "docker://"
DEBOOTSTRAP = "debootstrap"
_SIF = b"SIF_MAGIC"
_TAR = (
    *("tar", "--create", "--one-file-system", "--sort=name", "--format=posix", "--ignore-failed-read"),
    *("--owner=0", "--group=0", "--numeric-owner", "--pax-option=delete=atime,delete=ctime"),
)
"""Writes the same bytes for the same files. What cannot be read, such as passwords of the system, is left out."""
_FORMS = "an archive of docker save or podman save, an OCI layout, an Apptainer image, or a directory"
OnLine = Callable[[str], None]


def build_base(scratch: Path, on_line: OnLine, *, base: str | None = None, packages: str = "small") -> Root:
    """Build the base image with the program that this machine has, and make its root.

    Args:
        scratch: the scratch folder.
        on_line: called with every line that programs print.
        base: image with Python to build on.
        packages: small or full.

    Raises:
        BuildError: it cannot be built.
    """
    program = _program()
    with _or_from(", or debootstrap"):
        build.build_base(base=base, packages=packages, on_line=on_line, program=program)
    return _from_engine(BASE_IMAGE, BASE_IMAGE, scratch, on_line, program)


def build_agent(
    agent: Agent, arguments: Mapping[str, str], scratch: Path, on_line: OnLine, *, trusted: bool = False
) -> Root:
    """Build an agent's image with the program that this machine has, and make its root; as `docker.build.build_agent`.

    Raises:
        BuildError: the agent has no Dockerfile, or it cannot be built.
    """
    if not (agent.folder / DOCKERFILE).is_file() and agent.image_name != BASE_IMAGE:  # somebody else's image
        return import_root(agent.image_name, f"{ENGINE}{agent.image_name}", scratch, on_line)
    program = _program()
    with _or_from():
        build.build_agent(agent, arguments, on_line, trusted=trusted, program=program)
    return _from_engine(agent.image_name, agent.image_name, scratch, on_line, program)


def import_root(image: str, source: str, scratch: Path, on_line: OnLine, packages: str = "small") -> Root:
    """Make the root of an image from something that exists.

    Args:
        image: name of the image that runs will find it by.
        source: `docker://IMAGE` of an engine of this machine; an archive of docker save, of an OCI layout or of a root;
            an Apptainer image; the directory of an OCI layout or of a root; or `debootstrap:SUITE`.
        scratch: the scratch folder.
        on_line: called with every line that programs print.
        packages: small or full, for debootstrap.

    Raises:
        BuildError: it cannot be used.
    """
    if source.startswith(ENGINE):
        return _from_engine(image, source.removeprefix(ENGINE), scratch, on_line)
    if source.partition(":")[0] == DEBOOTSTRAP and not Path(source).exists():
        if image != BASE_IMAGE:
            raise BuildError(f"--from {source} makes the base image only: mlebench build base --rootless")
        suite = source.partition(":")[2] or debootstrap.SUITE
        with new_folder(scratch) as folder:
            archive = debootstrap.archive(suite, packages, folder, on_line)
            return add(image, scratch, source, partial(archives.unpack_archive, archive, image=image))
    path = Path(source).absolute()
    if path.is_dir():
        is_layout = (path / "index.json").is_file() and (path / "blobs").is_dir()
        unpack = partial(archives.unpack_layout, path, image=image) if is_layout else partial(_unpack_folder, path)
        return add(image, scratch, str(path), unpack)
    if not path.is_file():
        raise BuildError(f"{source} does not exist: --from takes {ENGINE}IMAGE, {_FORMS}")
    if _is_sif(path):
        return _from_sif(image, path, scratch, on_line)
    return add(image, scratch, str(path), partial(archives.unpack_archive, path, image=archives.untagged(image)))


def is_base(root: Root, scratch: Path) -> bool:
    """Whether a root is that of the base image."""
    with contextlib.suppress(BackendError):
        return root_of(BASE_IMAGE, scratch).digest == root.digest
    return False


def _program() -> str | None:
    """Podman or buildah; None if there is neither, but a Docker client."""
    for name in ("podman", "buildah"):
        if path := shutil.which(name):
            return path
    if shutil.which("docker"):
        return None
    raise BuildError(
        "this machine has neither podman nor buildah nor docker: install podman, or build the image on a machine that "
        f"has one, docker save -o FILE IMAGE there, and use --from FILE here, which takes {_FORMS}"
    )


@contextlib.contextmanager
def _or_from(also: str = "") -> Iterator[None]:
    """Add to the message of a build that fails that it may come from elsewhere."""
    try:
        yield
    except BuildError as error:
        raise BuildError(
            f"{error}. Without a build, --from takes what another machine has made: {_FORMS}{also}"
        ) from error


def _from_engine(image: str, name: str, scratch: Path, on_line: OnLine, program: str | None = None) -> Root:
    """Make a root from an image of a container engine; by default, of the first one that has it."""
    with new_folder(scratch) as folder:
        archive, failures = folder / "image.tar", list[str]()
        for path in [program] if program else filter(None, map(shutil.which, ("docker", "podman", "buildah"))):
            save = ["save", "--output", str(archive), "--", name]
            command = ["push", "--", name, f"docker-archive:{archive}"] if Path(path).name == "buildah" else save
            try:
                build.run([path, *command], f"{Path(path).name} cannot save image {name}", on_line)
            except BuildError as error:
                failures.append(str(error))
                continue
            return add(image, scratch, f"{ENGINE}{name}", partial(archives.unpack_archive, archive, image=image))
    why = "; ".join(failures) or f"this machine has no docker, podman or buildah to take {name} from"
    raise BuildError(f"{why}: docker save -o FILE {name} on a machine that has it, and use --from FILE here")


def _unpack_folder(folder: Path, top: int) -> Content:
    """Copy the directory of a root."""
    with tempfile.TemporaryFile() as errors:
        command = [*_TAR, "--directory", str(folder), "."]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        with process:
            content = archives.unpack_stream(process.stdout, top, str(folder))
        if process.returncode > 1:  # 1: a file has changed meanwhile
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise BuildError(f"{folder} cannot be read: {''.join(last)[:300]}")
    return content


def _is_sif(path: Path) -> bool:
    with path.open("rb") as file:
        return _SIF in file.read(64)


def _from_sif(image: str, path: Path, scratch: Path, on_line: OnLine) -> Root:
    program = shutil.which("apptainer") or shutil.which("singularity")
    if program is None:
        raise BuildError(
            f"{path} is an image of Apptainer, which this machine does not have: apptainer build --sandbox DIRECTORY "
            f"{path.name} where it is installed, and use --from DIRECTORY"
        )
    with new_folder(scratch) as new:
        folder = new / "sandbox"
        build.run(
            [program, "build", "--fix-perms", "--sandbox", str(folder), str(path)],
            f"{path} cannot be unpacked",
            on_line,
        )
        return add(image, scratch, str(path), partial(_unpack_folder, folder))
