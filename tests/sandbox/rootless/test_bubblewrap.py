from __future__ import annotations

import ctypes
import struct
from pathlib import Path, PurePosixPath

from sandbox.confinement.world import Mount
from sandbox.rootless import bubblewrap, syscalls
from sandbox.rootless.gpus import Gpus
from sandbox.rootless.namespaces import STAGE

MOUNTS = [
    Mount(PurePosixPath("/"), Path("/roots/base"), read_only=True),
    Mount(PurePosixPath("/home"), Path("/runs/one/home")),
    Mount(PurePosixPath("/home/data"), Path("/data"), read_only=True),
]


def options(exists: tuple[str, ...] = ("/proc/keys", "/proc/acpi", "/sys/devices/system/cpu")) -> list[str]:
    found = {"/proc/keys": False, "/proc/acpi": True, "/sys/devices/system/cpu": True}
    env = {"A": "a b"}
    return bubblewrap.arguments(MOUNTS, env, 1024, lambda path: found[path] if path in exists else None)


def following(option: str, arguments: list[str], count: int) -> list[list[str]]:
    return [arguments[at + 1 : at + 1 + count] for at, word in enumerate(arguments) if word == option]


def test_every_namespace_is_new_and_none_can_be_made_within() -> None:
    arguments = options()
    for kind in ("user", "ipc", "pid", "net", "uts"):
        assert f"--unshare-{kind}" in arguments
    assert "--disable-userns" in arguments
    assert following("--cap-drop", arguments, 1) == [["ALL"]]
    assert following("--uid", arguments, 1) == following("--gid", arguments, 1) == [["1000"]]
    assert {"--die-with-parent", "--new-session"} <= set(arguments)


def test_the_root_comes_first_and_only_the_home_can_be_written_to() -> None:
    arguments = options()
    assert following("--bind", arguments, 2) == [["/runs/one/home", "/home"]]
    read_only = following("--ro-bind", arguments, 2)
    assert read_only[0] == ["/roots/base", "/"]
    assert ["/data", "/home/data"] in read_only
    assert arguments.index("/roots/base") < arguments.index("--proc") < arguments.index("/runs/one/home")


def test_devices_and_driver_of_gpus_are_there_before_their_folders_become_read_only() -> None:
    devices = Gpus((Path("/dev/nvidia1"),), ((Path("/usr/lib64/libcuda.so.1"), Path("/run/nvidia/lib/libcuda.so.1")),))
    arguments = bubblewrap.arguments(MOUNTS, {}, 1024, lambda _: None, devices)
    assert following("--dev-bind", arguments, 2) == [["/dev/nvidia1", "/dev/nvidia1"]]
    assert ["/usr/lib64/libcuda.so.1", "/run/nvidia/lib/libcuda.so.1"] in following("--ro-bind", arguments, 2)
    for path, folder in (("/dev/nvidia1", "/dev"), ("/run/nvidia/lib/libcuda.so.1", "/run")):
        closed = next(at for at, word in enumerate(arguments) if word == "--remount-ro" and arguments[at + 1] == folder)
        assert arguments.index(path) < closed


def test_what_tells_of_the_machine_is_hidden_where_it_exists() -> None:
    arguments = options()
    assert ["/dev/null", "/proc/keys"] in following("--ro-bind", arguments, 2)
    assert ["/proc/acpi"] in following("--tmpfs", arguments, 1)
    assert "/proc/kcore" not in arguments


def test_the_environment_is_the_agents_own() -> None:
    arguments = options()
    assert arguments[-4:] == ["--clearenv", "--setenv", "A", "a b"]


def test_sources_for_another_user_are_numbered() -> None:
    assert [str(mount.source) for mount in bubblewrap.staged(MOUNTS)] == [f"{STAGE}/{number}" for number in range(3)]


def test_the_filter_is_a_program_for_this_processor() -> None:
    """Instructions of eight bytes; the last one returns, and 32-bit calls end a program."""
    program = syscalls.program()
    assert len(program) % 8 == 0
    codes = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    returned = {value for code, _, _, value in codes if code == 0x06}
    assert {0x7FFF0000, 0x00050001, 0x00050026} <= returned
    assert ctypes.sizeof(ctypes.c_void_p) == 8
