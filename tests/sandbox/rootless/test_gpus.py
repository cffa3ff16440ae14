"""A run gets the device files of its own GPUs, and the driver of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.rootless.gpus import NONE, gpus


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    files = [
        *(f"dev/nvidia{number}" for number in range(2)),
        "dev/nvidiactl",
        "dev/nvidia-uvm",
        "dev/sda",
        "usr/bin/nvidia-smi",
    ]
    files += [f"usr/lib64/{name}" for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.12", "libc.so.6")]
    for file in [*files, "usr/lib/libcuda.so.1", "dev/nvidia-caps/nvidia-cap1"]:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    for number in range(2):
        folder = tmp_path / f"proc/driver/nvidia/gpus/0000:0{number}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t A10\nGPU UUID:\t GPU-{number}\nDevice Minor: \t {1 - number}\n")
    return tmp_path


def test_a_run_gets_its_own_gpus_and_the_driver(machine: Path) -> None:
    found = gpus(["GPU-0"], top=machine)
    assert [str(path) for path in found.devices] == [
        *("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1")
    ]
    assert {str(target): source.relative_to(machine).as_posix() for source, target in found.files} == {
        "/run/nvidia/lib/libcuda.so.1": "usr/lib64/libcuda.so.1",
        "/run/nvidia/lib/libnvidia-ml.so.1": "usr/lib64/libnvidia-ml.so.1",
        "/run/nvidia/bin/nvidia-smi": "usr/bin/nvidia-smi",
    }
    assert found.environment("/bin") == {"LD_LIBRARY_PATH": "/run/nvidia/lib", "PATH": "/bin:/run/nvidia/bin"}


def test_the_list_of_nvidias_own_program_counts(machine: Path) -> None:
    found = gpus(["GPU-1"], ["/usr/lib64/libcuda.so.1", ""], machine)
    assert [source.relative_to(machine).as_posix() for source, _ in found.files] == ["usr/lib64/libcuda.so.1"]
    assert str(found.devices[0]) == "/dev/nvidia0"


def test_a_run_without_gpus_gets_nothing(machine: Path) -> None:
    assert gpus([], top=machine) == NONE
    assert NONE.environment("/bin") == {}
