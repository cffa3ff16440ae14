"""The wheel holds every package but `benchmarks`, and every file that the code reads by its path."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.test_architecture import ROOMS, ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS: dict[str, Any] = PYPROJECT["tool"]["setuptools"]
_PIN = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; .+)? \\\n(?P<hashes>(?:    --hash=sha256:.+\n)+)", re.MULTILINE
)


def test_the_wheel_has_every_package_but_the_measurements() -> None:
    included = SETUPTOOLS["packages"]["find"]["include"]
    assert {room for room in ROOMS if any(fnmatch(room, pattern) for pattern in included)} == ROOMS.keys() - {
        "benchmarks"
    }


def test_the_image_is_made_of_what_the_wheel_is_made_of() -> None:
    taken = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    packaged = {*(ROOMS.keys() - {"benchmarks"}), *(f"{name}.py" for name in SETUPTOOLS["py-modules"])}
    assert taken == packaged | {"pyproject.toml", "requirements.txt", "README.md"}


@pytest.mark.parametrize("room", ROOMS)
def test_files_that_are_no_modules_are_packaged(room: str) -> None:
    patterns = SETUPTOOLS["package-data"]["*"]
    files = [path for path in (ROOT / room).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    left_out = [
        str(path.relative_to(ROOT)) for path in files if not any(fnmatch(path.name, pattern) for pattern in patterns)
    ]
    assert not left_out


@pytest.mark.parametrize("room", ROOMS)
def test_type_checkers_are_told_that_the_room_has_types(room: str) -> None:
    assert (ROOT / room / "py.typed").is_file()


PROJECT = PYPROJECT["project"]
LOCKS: dict[str, list[str]] = {
    "requirements.txt": PROJECT["dependencies"],
    "requirements-dev.txt": [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]],
    "requirements-docs.txt": PYPROJECT["dependency-groups"]["docs"],
}


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_has_a_version_of_everything_that_is_required(lock: str) -> None:
    text = (ROOT / lock).read_text()
    pinned = {canonicalize_name(found["name"]): found["version"] for found in _PIN.finditer(text)}
    assert len(pinned) == len(set(re.findall(r"^[\w.-]+(?===)", text, re.MULTILINE))), "without a hash"
    for line in LOCKS[lock]:
        required = Requirement(line)
        version = pinned.get(canonicalize_name(required.name))
        assert version is not None, f"{required.name}: make lock"
        assert required.specifier.contains(version), f"{required.name} is {version}: make lock"


def test_modules_beside_the_packages_are_packaged() -> None:
    assert sorted(f"{name}.py" for name in SETUPTOOLS["py-modules"]) == sorted(path.name for path in ROOT.glob("*.py"))


def test_every_place_names_the_same_version() -> None:
    """The changelog names the version to come; its candidates have a suffix."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert cited == PROJECT["version"]
    (first, *_) = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert Version(cited).base_version == first
