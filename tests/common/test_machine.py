"""Facts about the machine that reports compare."""

from pathlib import Path

import pytest

from common import machine


def test_gpus_are_named_as_their_driver_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_NVIDIA", tmp_path)
    machine.hardware.cache_clear()
    assert "NVIDIA" not in machine.hardware()
    for number, model in enumerate(("NVIDIA A10", "NVIDIA A10", "NVIDIA H100")):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
        (tmp_path / f"0000:0{number}:00.0" / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 42\n")
    machine.hardware.cache_clear()
    assert machine.hardware().endswith(", 2 x NVIDIA A10, NVIDIA H100")
    machine.hardware.cache_clear()
