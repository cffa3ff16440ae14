"""What engines do differently, by what they say of themselves. Podman itself is in `test_podman.py`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.docker import engines
from sandbox.docker.containers import look_up_image, user
from sandbox.docker.engines import Engine
from sandbox.errors import BackendError
from sandbox.limits import GIB, Limits

LIMITED = Limits(memory_bytes=GIB, processes=10)


def client(version: dict[str, Any], info: dict[str, Any]) -> Any:
    return SimpleNamespace(version=lambda: version, info=lambda: info)


PODMAN = client(
    {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}, {"Name": "Conmon"}]},
    {"Rootless": True, "CgroupVersion": "1", "CgroupDriver": "cgroupfs", "MemoryLimit": True, "PidsLimit": True},
)
DOCKER = client(
    {"Version": "27.1", "Components": [{"Name": "Engine"}]},
    {
        "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
        "CgroupVersion": "2",
        "CgroupDriver": "none",
        "MemoryLimit": False,
    },
)


@pytest.mark.parametrize(("asked", "name"), [(PODMAN, "podman 4.3.1 (rootless)"), (DOCKER, "docker 27.1 (rootless)")])
def test_an_engine_that_would_ignore_limits_is_refused(asked: Any, name: str) -> None:
    engine = engines.describe(asked)
    assert str(engine) == name
    with pytest.raises(BackendError, match="cannot limit agents") as caught:
        engines.check_limits(engine, LIMITED)
    assert "\n" not in str(caught.value)
    engines.check_limits(engine, Limits(processes=None))
    engines.check_limits(Engine("podman", rootless=True), LIMITED)
    engines.check_limits(Engine("podman", groups="1", manager="cgroupfs"), LIMITED)


def test_options_that_podman_ignores_are_refused() -> None:
    with pytest.raises(BackendError, match=r"podman 4\.3\.1 .*set `runtime` in containers\.conf"):
        engines.check_runtime(PODMAN, "runsc")
    with pytest.raises(BackendError, match="gives containers no GPUs"):
        engines.check_gpus(engines.describe(PODMAN), 1)
    engines.check_gpus(Engine("podman", "5.4.2"), 1)
    [request] = engines.gpu_requests(Engine("podman", "5.4.2"), ("GPU-a",)) or []
    assert (request["Driver"], request["DeviceIDs"]) == ("cdi", ["nvidia.com/gpu=GPU-a"])
    assert engines.gpu_requests(Engine(), ()) is None


def test_the_profile_of_system_calls_is_text_for_docker_and_a_file_for_podman(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines.tempfile, "gettempdir", lambda: str(tmp_path))
    rights, text = engines.security_options(Engine())
    assert rights == "no-new-privileges:true"
    profile = json.loads(text.removeprefix("seccomp="))
    _, path = engines.security_options(Engine("podman"))
    file = Path(path.removeprefix("seccomp="))
    assert json.loads(file.read_text()) == profile
    assert file.parent.stat().st_mode & 0o077 == 0
    assert engines.security_options(Engine("podman", options=("name=selinux",)))[-1] == "label=disable"


def test_the_agent_owns_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for uid, rootless, expected in ((0, False, (1000, 1000)), (7, False, (7, 7)), (7, True, (0, 0))):
        monkeypatch.setattr(os, "getuid", lambda uid=uid: uid)
        monkeypatch.setattr(os, "getgid", lambda uid=uid: uid)
        assert user(Engine(rootless=rootless)) == expected


def test_an_image_that_podman_has_built_is_found() -> None:
    from docker.errors import ImageNotFound

    def get(name: str) -> str:
        if name != "localhost/mlebench-base":
            raise ImageNotFound("no such image")
        return name

    asked: Any = SimpleNamespace(images=SimpleNamespace(get=get))
    assert look_up_image(asked, "mlebench-base") == "localhost/mlebench-base"
    assert look_up_image(asked, "other") is None
